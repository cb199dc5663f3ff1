//! What every store must do, as one suite of named cases: a store of your own is held against the same as the two here.
//!
//! ```
//! use norfab_model::ScheduleId;
//! use norfab_store::{MemoryStore, conformance};
//!
//! #[derive(Clone, Default)]
//! struct Memory(MemoryStore);
//!
//! impl conformance::Database for Memory {
//!     type Store = MemoryStore;
//!     async fn open(&self) -> MemoryStore {
//!         self.0.clone()
//!     }
//!     async fn leave(&self, schedule: &ScheduleId, cursor: conformance::LeftCursor) {
//!         self.0.schedule_leave(schedule, cursor);
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(
//! conformance::exercise(async || Memory::default())
//! # );
//! ```

// This is a test that other crates run too: what is wrong must stop it, with the place in the suite.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

mod answer;
mod apply;
mod claimed_as_made;
mod delivery;
mod life;
mod materialize;
mod pass;
mod query;
mod schedule;
mod support;
mod zone;

use norfab_model::{Link, ScheduleId, ScheduleStore, Scope, Store, Timestamp, Upcoming};

/// One database, on which several handles may be open.
pub trait Database {
    /// The store under test.
    type Store: Store + ScheduleStore;

    /// Opens one more handle, which shares nothing with the others but the database. A handle that was closed before may
    /// be followed by a new one, as after a restart.
    fn open(&self) -> impl Future<Output = Self::Store> + Send;

    /// Makes the cursor of a schedule what another release of the program has left, past the store: so that the suite can
    /// show what becomes of it when the zone data has changed.
    fn leave(&self, schedule: &ScheduleId, cursor: LeftCursor) -> impl Future<Output = ()> + Send;
}

/// The cursor of a schedule as a release of the program with other zone data has left it.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftCursor {
    /// The release of the zone data. None: another program wrote the row.
    pub zone_data: Option<String>,
    /// How many seconds the zone was ahead of UTC at the occurrence by it.
    pub zone_offset: Option<i32>,
    /// The next occurrence by it.
    pub next: Upcoming,
    /// Up to when everything is decided.
    pub decided_until: Timestamp,
}

/// Carries a pass at `now` out on any table of jobs, and checks that it leaves nothing for another one at the same time:
/// whoever sleeps until [`job_next_due`](Store::job_next_due) must not wake at once, over and over. Jobs in flight are
/// asked for that have not been for ten seconds. Without a link only what is missed or expires is looked at.
///
/// # Panics
/// When something is still due, or the store fails.
pub async fn pass_ends(store: &impl Store, scope: &Scope, now: Timestamp, link: Link) {
    support::pass_ends(store, scope, now, link).await;
}

/// Runs every case, each on a fresh database of `make`.
///
/// # Panics
/// When the store does something else than it must.
pub async fn exercise<D: Database>(make: impl AsyncFn() -> D) {
    macro_rules! cases {
        ($($room:ident: $($case:ident)*;)*) => {
            $($(
                tracing::debug!(case = stringify!($case), "Exercising the store");
                $room::$case(&make().await).await;
            )*)*
        };
    }
    cases! {
        life:
            an_immediate_job_is_new_and_its_deadline_runs
            a_delayed_job_waits_without_a_deadline
            an_identity_is_taken_once
            payloads_come_back_to_the_letter
            instants_come_back_to_the_microsecond
            what_is_added_at_once_is_all_there
            of_two_with_one_identity_one_is_added
            only_a_waiting_job_is_cancelled
            only_a_waiting_job_is_rescheduled
            of_a_cancellation_and_a_release_one_takes_effect
            rescheduling_keeps_the_grace
            an_unknown_job_is_none_or_an_error
            all_is_there_after_a_restart
            only_what_others_change_shows
            a_change_of_another_handle_is_seen;
        pass:
            a_job_is_released_at_its_time_and_no_earlier
            the_completion_deadline_starts_at_release
            the_start_deadline_alone_decides_lateness
            without_a_link_nothing_is_released_but_jobs_are_missed
            a_job_is_released_once
            the_oldest_are_claimed_first
            a_claim_records_target_and_count
            claimed_jobs_are_not_claimed_again
            a_claim_that_was_taken_back_is_as_if_never_made
            only_claims_are_taken_back
            jobs_expire_at_their_deadline
            an_expired_job_keeps_the_results_that_came
            waiting_jobs_do_not_expire
            the_longest_ago_are_asked_for_first
            only_outstanding_workers_are_asked
            a_clock_set_back_brings_instants_back
            a_restart_sends_claims_again
            only_what_no_worker_can_have_is_given_up
            next_due_tells_the_nearest_of_each_kind
            nothing_is_due_after_a_pass
            a_claim_is_bounded_by_its_payloads
            a_guest_serves_its_own_jobs_only;
        apply:
            a_job_lives_through_its_replies
            replies_are_folded_in_their_order
            results_of_several_workers_are_kept_together
            a_refused_post_fails_the_job
            a_worker_missing_from_a_list_gets_a_failed_result
            a_lost_job_gets_a_failed_result
            ended_jobs_are_immutable
            replies_for_nobody_are_told_apart
            questions_are_kept_until_answered
            repeated_events_are_stored_once
            progress_changes_no_row;
        delivery:
            any_goes_to_a_live_worker_and_again_to_the_same
            a_job_for_nobody_waits_or_fails
            a_refused_job_is_tried_again_with_its_full_time
            what_the_broker_does_not_confirm_is_sent_again
            a_worker_that_does_not_have_it_gets_it_again
            a_job_of_a_worker_that_is_gone_goes_elsewhere
            what_a_list_lacks_is_tried_for_its_time
            a_restart_asks_for_what_may_not_start_any_more
            unsent_jobs_expire_apart_from_those_in_flight;
        answer:
            answers_are_taken_once_in_their_order
            answers_to_closed_questions_are_dropped
            answers_need_a_job
            a_guest_takes_its_own_answers_only
            what_is_dropped_makes_room;
        query:
            the_newest_come_first_page_by_page
            a_page_has_its_bounds
            filtered_pages_have_the_newest_first
            filters_by_status
            filters_by_service_task_and_worker
            filters_by_due_time
            filters_together
            unfinished_jobs_come_in_their_order
            events_come_in_their_order
            own_events_tell_of_delayed_jobs_only
            everything_is_counted;
        schedule:
            a_schedule_comes_back_to_the_letter
            a_name_is_taken_once
            the_same_schedule_is_added_once
            an_unknown_schedule_is_none_or_an_error
            a_pause_is_passed_over
            a_change_of_timing_moves_the_cursor_at_once
            a_call_that_waited_for_its_turn_moves_nothing_back
            what_is_deleted_is_history
            history_outlives_every_call
            what_is_disabled_makes_nothing
            run_by_hand_it_takes_no_occurrence
            run_by_hand_it_keeps_to_its_overlap_policy
            a_forbidden_task_is_not_run_by_hand
            schedules_are_listed_page_by_page
            unfinished_jobs_are_counted
            a_change_of_a_schedule_is_seen_by_others
            jobs_of_schedules_live_as_others_do;
        materialize:
            an_occurrence_becomes_a_job_at_its_due_time
            policies_decide_what_becomes_of_a_heap
            one_missed_job_stands_for_all
            what_a_pass_missed_is_listed_before_what_it_runs
            a_week_that_was_slept_over_runs_late_or_is_missed
            a_schedule_ends_with_its_last_occurrence
            the_earliest_are_looked_at_first_and_each_once
            what_was_seen_is_left_out
            a_long_backlog_starves_no_other
            a_clock_that_goes_back_runs_nothing_twice
            a_clock_that_goes_back_and_forward_runs_nothing_that_was_decided
            what_stands_right_is_not_realigned
            a_missed_occurrence_is_written_once
            a_forbidden_task_switches_only_its_schedule_off
            failed_runs_are_counted_as_they_end
            a_failed_run_is_counted_whatever_ends_it
            only_schedules_of_jobs_count_them
            a_year_of_missed_seconds_is_one_job
            two_handles_make_each_occurrence_once
            a_worker_that_dies_blocks_no_schedule_for_ever;
        claimed_as_made:
            what_is_made_is_claimed_with_it
            what_was_new_before_is_claimed_before_it
            as_many_are_claimed_as_may_be
            what_cannot_be_sent_is_made_all_the_same
            a_worker_is_chosen_for_what_is_made
            what_is_missed_is_not_claimed
            a_claim_without_a_due_schedule_is_a_claim
            many_and_large_ones_are_claimed_too;
        zone:
            rules_by_the_clock_come_back_to_the_letter
            an_occurrence_follows_the_clocks_of_its_zone
            the_same_zone_data_moves_nothing
            other_zone_data_is_noticed_once
            a_cursor_keeps_its_time_of_day
            a_time_of_day_that_is_left_out_now_runs_after_the_gap
            what_ran_by_other_zone_data_does_not_run_again
            free_hours_go_on_by_elapsed_time
            a_rule_that_differs_later_moves_no_cursor
            what_nobody_knows_is_taken_for_todays
            nothing_may_be_left_by_other_zone_data
            readers_see_the_cursor_by_their_own_data
            a_pause_that_ends_under_other_zone_data_repeats_nothing
            what_was_off_repeats_nothing_under_other_zone_data
            an_update_under_other_zone_data_repeats_nothing
            a_run_by_hand_under_other_zone_data_moves_the_cursor_with_it
            a_pass_under_other_zone_data_repeats_nothing_and_leaves_none_out
            a_clock_set_back_under_other_zone_data_keeps_nothing_silent;
    }
}
