//! From times of a wall clock to instants: what becomes of a rule when the clocks of a zone change.
//!
//! A rule is a set of wall-clock times. Between two clock changes each of them is one instant. At a change it depends on
//! the [`Pace`] of the rule. A *fixed* time runs once: at the first instant at which the clocks show it or, since they
//! went forward over it, a later time. A rule of *free* hours follows elapsed time: it runs whenever the clocks show one
//! of its times, in the second pass as in the first, and what they go forward over runs as if they had not changed yet.
//! Two times that come to one instant are one occurrence.

use std::ops::Range;

use super::words::FEW;
use crate::zone::{Stretch, WIDEST_SECONDS};
use crate::{Timestamp, Zone};

const MICROS: i64 = 1_000_000;
const HOUR: i64 = 3600;

/// How a rule takes clock changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Its times are times of day: each runs once.
    Fixed,
    /// Its hours are free: it follows elapsed time.
    Free,
}

/// A set of wall-clock times, each in whole seconds since 1970-01-01T00:00 of the wall clock.
pub(super) trait WallTimes {
    /// The first time at or after this one.
    fn first_from(&self, wall: i64) -> Option<i64>;
    /// The last time before this one.
    fn last_before(&self, wall: i64) -> Option<i64>;
    /// How many times there are from one, it included, to another, which is not.
    fn count(&self, from: i64, until: i64) -> u64;
    /// How it takes clock changes.
    fn pace(&self) -> Pace;
    /// Whether there is a time in a range. It looks at the days of the range only, however rare the times are.
    fn has_any(&self, walls: Range<i64>) -> bool {
        self.count(walls.start, walls.end) > 0
    }
}

/// Wall-clock times that come to one instant since the clocks go forward over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// The first [`FEW`] of them.
    pub(super) first: Vec<i64>,
    /// How many there are.
    pub(super) count: u64,
    /// A time of the rule that the clocks do show at that instant.
    pub(super) shared: Option<i64>,
}

/// A rule by the clocks of a zone.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnClock<'a, W> {
    pub(super) times: W,
    pub(super) zone: &'a Zone,
}

impl<W: WallTimes> OnClock<'_, W> {
    /// The first occurrence after an instant.
    pub(super) fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        let mut from = instant.as_micros().div_euclid(MICROS) + 1;
        loop {
            let part = self.part(from);
            if let Some(found) = part.first_from(from) {
                return in_calendar(found);
            }
            // Nothing lies between here and shortly before the next time of the rule: no clock change in between matters.
            let end = part.stretch.end?.seconds();
            let next = self.times.first_from(end - WIDEST_SECONDS)?;
            from = end.max(next - WIDEST_SECONDS);
        }
    }

    /// The last occurrence at or before an instant.
    pub(super) fn last_at_or_before(&self, instant: Timestamp) -> Option<Timestamp> {
        let mut until = instant.as_micros().div_euclid(MICROS);
        loop {
            let part = self.part(until);
            if let Some(found) = part.last_until(until) {
                return in_calendar(found);
            }
            let start = part.stretch.start?.seconds();
            let last = self.times.last_before(start + WIDEST_SECONDS)?;
            until = (start - 1).min(last + WIDEST_SECONDS);
        }
    }

    /// How many occurrences there are from one instant to another, both included.
    pub(super) fn count_between(&self, from: Timestamp, to: Timestamp) -> u64 {
        let (mut from, to) = ((from.as_micros() + MICROS - 1).div_euclid(MICROS), to.as_micros().div_euclid(MICROS));
        let mut count = 0;
        while from <= to {
            let part = self.part(from);
            let end = part.stretch.end.map_or(i64::MAX, |end| end.seconds());
            let found = part.count(from, end.min(to + 1));
            count += found;
            from = match (found, part.stretch.end) {
                (0, Some(_)) => {
                    self.times.first_from(end - WIDEST_SECONDS).map_or(i64::MAX, |next| end.max(next - WIDEST_SECONDS))
                }
                _ => end,
            };
        }
        count
    }

    /// What an occurrence stands for that the clocks never show.
    pub(super) fn left_out(&self, occurrence: Timestamp) -> Option<LeftOut> {
        let at = occurrence.as_micros().div_euclid(MICROS);
        self.part(at).left_out_at(at)
    }

    fn part(&self, at: i64) -> Part<'_, W> {
        let stretch = self.zone.stretch(Timestamp::from_seconds(at));
        let done = match self.times.pace() {
            Pace::Free => i64::MIN,
            Pace::Fixed => self.shown_before(&stretch),
        };
        Part { times: &self.times, stretch, done }
    }

    /// Up to which wall-clock time the clocks have come before a stretch, it not included.
    fn shown_before(&self, stretch: &Stretch) -> i64 {
        let Some(start) = stretch.start else { return i64::MIN };
        let (mut shown, mut earlier) = (start.wall_before(), start);
        // Only what is near can have come further.
        while let Some(change) = self.zone.previous_transition(just_before(earlier.at))
            && change.seconds() > start.seconds() - WIDEST_SECONDS
        {
            shown = shown.max(change.wall_before());
            earlier = change;
        }
        shown
    }
}

/// A rule within one stretch. All instants and wall-clock times are in seconds.
struct Part<'a, W> {
    times: &'a W,
    stretch: Stretch,
    /// The wall-clock times before this one have run, or never will.
    done: i64,
}

impl<W: WallTimes> Part<'_, W> {
    /// The first occurrence of the stretch from this instant on, which lies in it.
    fn first_from(&self, from: i64) -> Option<i64> {
        let offset = self.stretch.offset;
        let shown = self.times.first_from(self.done.max(from + offset)).map(|wall| wall - offset);
        let left_out = self.gap().and_then(|gap| match self.times.pace() {
            Pace::Fixed => (from <= gap.at && self.times.has_any(gap.from..gap.until)).then_some(gap.at),
            Pace::Free => self
                .times
                .first_from(gap.from.max(from + gap.offset))
                .filter(|wall| *wall < gap.until)
                .map(|wall| wall - gap.offset),
        });
        let first = shown.into_iter().chain(left_out).min()?;
        self.stretch.end.is_none_or(|end| first < end.seconds()).then_some(first)
    }

    /// The last occurrence of the stretch up to this instant, which lies in it and is included.
    fn last_until(&self, until: i64) -> Option<i64> {
        let offset = self.stretch.offset;
        let begin = self.stretch.start.map_or(i64::MIN, |start| start.wall_after()).max(self.done);
        let shown = self.times.last_before(until + offset + 1).filter(|wall| *wall >= begin).map(|wall| wall - offset);
        let left_out = self.gap().and_then(|gap| match self.times.pace() {
            Pace::Fixed => self.times.has_any(gap.from..gap.until).then_some(gap.at),
            Pace::Free => self
                .times
                .last_before(gap.until.min(until + gap.offset + 1))
                .filter(|wall| *wall >= gap.from)
                .map(|wall| wall - gap.offset),
        });
        shown.into_iter().chain(left_out).max()
    }

    /// How many occurrences there are from one instant, it included, to another, which is not; both lie in the stretch.
    fn count(&self, from: i64, until: i64) -> u64 {
        let offset = self.stretch.offset;
        let shown = self.times.count(self.done.max(from + offset), until + offset);
        let left_out = self.gap().map_or(0, |gap| match self.times.pace() {
            Pace::Fixed => {
                let coincides = self.times.has_any(gap.at + offset..gap.at + offset + 1);
                u64::from(from <= gap.at && gap.at < until && !coincides && self.times.has_any(gap.from..gap.until))
            }
            Pace::Free => self.count_left_out(&gap, from, until),
        });
        shown + left_out
    }

    /// Those of the times in a gap that come to an instant of their own.
    fn count_left_out(&self, gap: &Gap, from: i64, until: i64) -> u64 {
        let width = gap.until - gap.from;
        let end = gap.until.min(until + gap.offset);
        let (mut wall, mut count) = (gap.from.max(from + gap.offset), 0);
        while let Some(next) = self.times.first_from(wall).filter(|next| *next < end) {
            // The times of an hour are those of any other hour, or that one has none.
            let step = if width % HOUR == 0 { HOUR - next.rem_euclid(HOUR) } else { 1 };
            wall = end.min(next + step);
            if self.times.count(next + width, wall + width) == 0 {
                count += self.times.count(next, wall);
            }
        }
        count
    }

    /// The wall-clock times in the gap that come to this instant. What follows elapsed time is not told when the clocks
    /// show a time of the rule then: it goes on as ever.
    fn left_out_at(&self, at: i64) -> Option<LeftOut> {
        let (gap, wall) = (self.gap()?, at + self.stretch.offset);
        let shared = (wall >= self.done && self.times.has_any(wall..wall + 1)).then_some(wall);
        let times = match self.times.pace() {
            Pace::Fixed if at == gap.at => gap.from..gap.until,
            Pace::Free if shared.is_none() => (at + gap.offset).max(gap.from)..(at + gap.offset + 1).min(gap.until),
            _ => return None,
        };
        let next = |from| self.times.first_from(from).filter(|wall| *wall < times.end);
        let first: Vec<i64> = std::iter::successors(next(times.start), |wall| next(wall + 1)).take(FEW).collect();
        let count = self.times.count(times.start, times.end);
        (!first.is_empty()).then_some(LeftOut { first, count, shared })
    }

    /// What the clocks go forward over at the beginning, as far as it has not run before.
    fn gap(&self) -> Option<Gap> {
        let change = self.stretch.start.filter(|change| change.forward_seconds() > 0)?;
        let gap = Gap {
            at: change.seconds(),
            from: change.wall_before().max(self.done),
            until: change.wall_after(),
            offset: i64::from(change.before.whole_seconds()),
        };
        (gap.from < gap.until).then_some(gap)
    }
}

/// Wall-clock times that the clocks of a zone never show.
struct Gap {
    /// The instant of the change.
    at: i64,
    from: i64,
    until: i64,
    /// The offset before the change.
    offset: i64,
}

fn just_before(at: Timestamp) -> Timestamp {
    Timestamp::from_micros(at.as_micros() - 1)
}

fn in_calendar(seconds: i64) -> Option<Timestamp> {
    let range = Timestamp::MIN.as_micros() / MICROS..=Timestamp::MAX.as_micros() / MICROS;
    range.contains(&seconds).then(|| Timestamp::from_seconds(seconds))
}

#[cfg(test)]
mod tests;
