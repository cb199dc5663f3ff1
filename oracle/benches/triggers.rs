//! What a look at a trigger costs, beside croner's own search and the crate `cron`. Each sample is one call, at an instant
//! of its own: the slowest of them is the worst of two years.

use std::cell::Cell;
use std::hint::black_box;
use std::str::FromStr;

use chrono::DateTime;
use chrono_tz::Europe::Berlin;
use chrono_tz::Tz;
use divan::Bencher;
use norfab_model::{Calendar, Cron, Occurrences, Timestamp, Trigger, Zone};

/// 2026-01-01T00:00:00Z, in seconds.
const START: i64 = 1_767_225_600;
const YEAR: i64 = 365 * 86_400;
/// Between an instant and the next one looked at: a prime, so that they fall on all times of day and of the year.
const APART: i64 = 611_953;

const COMMON: [&str; 5] = ["* * * * *", "*/15 * * * *", "0 3 * * *", "30 2 * * 1-5", "0 */2 * * *"];
const RARE: [&str; 4] = ["0 0 29 2 *", "30 2 31 12 *", "0 9 1 1 *", "0 0 13 6 *"];

fn main() {
    divan::main();
}

/// Instants over two years, one after the other.
fn instants() -> impl Fn() -> i64 {
    let at = Cell::new(0);
    move || {
        at.set((at.get() + APART) % (2 * YEAR));
        START + at.get()
    }
}

fn berlin() -> Zone {
    Zone::find("Europe/Berlin").expect("a zone")
}

fn trigger(expression: &str) -> Trigger {
    Cron::new(expression).expect("valid").into()
}

/// The instants of an expression, found by ours.
fn ours(bencher: Bencher<'_, '_>, expression: &str) {
    let (trigger, zone) = (trigger(expression), berlin());
    let occurrences = Occurrences::new(&trigger, &zone, Timestamp::EPOCH, None, None);
    let next = instants();
    bencher.with_inputs(|| Timestamp::from_seconds(next())).bench_local_values(|at| occurrences.next_after(at));
}

fn local(at: i64) -> DateTime<Tz> {
    DateTime::from_timestamp(at, 0).expect("a time").with_timezone(&Berlin)
}

fn croner(bencher: Bencher<'_, '_>, expression: &str) {
    let cron = croner::Cron::from_str(expression).expect("valid");
    let next = instants();
    bencher.with_inputs(|| local(next())).bench_local_values(|at| cron.find_next_occurrence(&at, false).expect("one"));
}

/// The crate `cron` numbers the weekdays from 1, and has a field for seconds always.
fn cron(bencher: Bencher<'_, '_>, expression: &str) {
    let expression = format!("0 {}", expression.replace("1-5", "Mon-Fri"));
    let schedule = cron::Schedule::from_str(&expression).expect("valid");
    let next = instants();
    bencher.with_inputs(|| local(next())).bench_local_values(|at| schedule.after(&at).next().expect("one"));
}

#[divan::bench_group(sample_count = 2000, sample_size = 1)]
mod next_after_common {
    use super::*;

    #[divan::bench(args = COMMON)]
    fn norfab(bencher: Bencher<'_, '_>, expression: &str) {
        ours(bencher, expression);
    }

    #[divan::bench(args = COMMON)]
    fn croner(bencher: Bencher<'_, '_>, expression: &str) {
        super::croner(bencher, expression);
    }

    #[divan::bench(args = COMMON)]
    fn cron(bencher: Bencher<'_, '_>, expression: &str) {
        super::cron(bencher, expression);
    }
}

#[divan::bench_group(sample_count = 2000, sample_size = 1)]
mod next_after_rare {
    use super::*;

    #[divan::bench(args = RARE)]
    fn norfab(bencher: Bencher<'_, '_>, expression: &str) {
        ours(bencher, expression);
    }

    #[divan::bench(args = RARE)]
    fn croner(bencher: Bencher<'_, '_>, expression: &str) {
        super::croner(bencher, expression);
    }

    #[divan::bench(args = RARE)]
    fn cron(bencher: Bencher<'_, '_>, expression: &str) {
        super::cron(bencher, expression);
    }
}

#[divan::bench(sample_count = 2000, sample_size = 1)]
fn last_at_or_before(bencher: Bencher<'_, '_>) {
    let (trigger, zone) = (trigger("0 3 * * *"), berlin());
    let occurrences = Occurrences::new(&trigger, &zone, Timestamp::EPOCH, None, None);
    let next = instants();
    bencher.with_inputs(|| Timestamp::from_seconds(next())).bench_local_values(|at| occurrences.last_at_or_before(at));
}

#[divan::bench(sample_count = 2000, sample_size = 1)]
fn next_after_every_two_weeks(bencher: Bencher<'_, '_>) {
    let (trigger, zone) = (Trigger::from(Calendar::weekly("mon,thu@03:00").expect("valid")), berlin());
    let occurrences = Occurrences::new(&trigger, &zone, Timestamp::EPOCH, None, None);
    let next = instants();
    bencher.with_inputs(|| Timestamp::from_seconds(next())).bench_local_values(|at| occurrences.next_after(at));
}

/// How many occurrences an expression for every second has in so many years.
#[divan::bench(args = [1, 10, 1000])]
fn count_every_second(bencher: Bencher<'_, '_>, years: i64) {
    let (trigger, zone) = (Trigger::from(Cron::with_seconds("* * * * * *").expect("valid")), berlin());
    let occurrences = Occurrences::new(&trigger, &zone, Timestamp::EPOCH, None, None);
    let (from, to) = (Timestamp::from_seconds(START), Timestamp::from_seconds(START + years * YEAR));
    bencher.bench_local(|| occurrences.count_in(black_box(from), black_box(to)));
}

/// How many occurrences an expression has in the whole calendar, through all the clock changes of a zone.
#[divan::bench(args = ["0 0 * 2 1#5", "30 2 29 2 *", "30 2 * * *"])]
fn count_the_whole_calendar(bencher: Bencher<'_, '_>, expression: &str) {
    let (trigger, zone) = (trigger(expression), berlin());
    let occurrences = Occurrences::new(&trigger, &zone, Timestamp::EPOCH, None, None);
    bencher.bench_local(|| occurrences.count_in(black_box(Timestamp::MIN), black_box(Timestamp::MAX)));
}

/// Reading an expression, and refusing one.
#[divan::bench(args = ["0 3 * * *", "*/5 9-17 1,15,L * mon-fri", "0 0 31 2 *", "0-100000000 * * * *"])]
fn read(expression: &str) -> bool {
    Cron::new(black_box(expression)).is_ok()
}

/// Refusing a zone, with a hint at the nearest name.
#[divan::bench(args = ["America/New_Yrok", "CST", "+05:30", "America/Argentina/ComodRivadaviaComodRivadavia"])]
fn refuse_zone(name: &str) -> bool {
    Zone::find(black_box(name)).is_ok()
}
