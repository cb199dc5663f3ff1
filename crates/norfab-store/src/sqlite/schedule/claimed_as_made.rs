//! Jobs that are claimed as they are made. A job is mostly sent in the pass that makes it: written as SUBMITTING from the
//! beginning, it is not read again, and half of its indexes are written once instead of twice.

use std::collections::HashSet;

use norfab_model::{Claim, Claimed, Job, JobId, JobStatus, Post, Scope, StoreError};
use rusqlite::Connection;

use super::row::Row;
use crate::materialize::PlannedRow;
use crate::sqlite::{Session, select};
use crate::transition::{self, ClaimStep};

/// So many jobs at the most, of so many schedules: their arguments are held in memory together. Where it would be more, the
/// jobs are made first and claimed then.
pub(super) const MOST_JOBS: usize = 16;
/// As many bytes, as they are stored, are read of the arguments of a schedule, and of its keyword arguments; for the same
/// reason.
pub(super) const MOST_STORED_BYTES: i64 = 64 << 10;
/// As many bytes of arguments go into the messages. What is stored is compressed, and each job has its own.
const MOST_BYTES: usize = 1 << 20;

/// What becomes of the NEW jobs of a batch when all of them are claimed as they are made.
pub(super) struct ClaimedAsMade {
    jobs: Vec<Job>,
    posts: Vec<Post>,
}

impl ClaimedAsMade {
    /// None when they are to be made first and claimed then: others come before them, one of them cannot be sent, or they are
    /// too many or too large.
    pub(super) fn of(
        shared: &Session<'_>,
        connection: &Connection,
        claim: &Claim<'_>,
        rows: &[Row],
        planned: &[PlannedRow],
    ) -> Result<Option<Self>, StoreError> {
        let new = || planned.iter().filter(|planned| planned.job.status == JobStatus::New);
        let most = MOST_JOBS.min(claim.limit as usize);
        if *claim.scope != Scope::All || !(1..=most).contains(&new().count()) {
            return Ok(None);
        }
        let (mut jobs, mut posts, mut bytes) = (Vec::new(), Vec::new(), 0);
        for planned in new() {
            let Some((job, post)) = claim_new(shared, claim, rows, planned) else { return Ok(None) };
            bytes += post.args.as_str().len() + post.kwargs.as_str().len();
            if bytes > MOST_BYTES {
                return Ok(None);
            }
            jobs.push(job);
            posts.push(post);
        }
        let others = select::to_claim(connection, claim.now, claim.scope, 1, super::materialize::DOING)?;
        Ok(others.is_empty().then_some(Self { jobs, posts }))
    }

    /// How a planned job is written, when it is one of them.
    pub(super) fn job(&self, planned: &PlannedRow) -> Option<&Job> {
        self.jobs.iter().find(|job| job.uuid == planned.job.uuid)
    }

    /// What is to be sent of those that were not there already. They were all that could be claimed.
    pub(super) fn into_claimed(self, made: &HashSet<JobId>) -> Claimed {
        let posts = self.posts.into_iter().filter(|post| made.contains(&post.job)).collect();
        Claimed { posts, ..Claimed::default() }
    }
}

fn claim_new(shared: &Session<'_>, claim: &Claim<'_>, rows: &[Row], planned: &PlannedRow) -> Option<(Job, Post)> {
    let row = rows.iter().find(|row| row.row == planned.schedule)?;
    let (args, kwargs) = (shared.payloads.args(&row.args).ok()?, shared.payloads.kwargs(&row.kwargs).ok()?);
    let mut job = planned.job.clone();
    let ClaimStep::Send = transition::claim(&mut job, claim.now, claim.live, claim.policy) else { return None };
    let target = job.dispatch_target.clone()?;
    let post = transition::post(&job, target, args, kwargs);
    Some((job, post))
}
