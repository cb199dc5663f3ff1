//! By which zone data a cursor was computed, for both stores: so that a process with other data sees the cursor where it
//! is by its own, and what the zone's clocks showed by the other one is still known.

use norfab_model::{Rezoned, Schedule, Zone};
use serde::Serialize;
use time::UtcOffset;

/// What is kept beside a cursor; nothing where no zone decides about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ByZone {
    /// The release of the zone data.
    pub(crate) zone_data: Option<String>,
    /// How many seconds the zone was ahead of UTC at the occurrence.
    pub(crate) zone_offset: Option<i32>,
}

impl ByZone {
    /// Of a cursor that this process has computed.
    pub(crate) fn of(schedule: &Schedule) -> Self {
        match schedule.next.filter(|_| schedule.trigger.is_zone_bound()) {
            Some(next) => Self {
                zone_data: Some(Zone::data_version().to_owned()),
                zone_offset: Some(schedule.timezone.offset_at(next.occurrence).whole_seconds()),
            },
            None => Self::default(),
        }
    }

    /// Whether this process has computed the cursor anew when a schedule that stood there as `before` is `after`.
    pub(crate) fn is_new(before: &Schedule, after: &Schedule) -> bool {
        before.next != after.next || before.trigger != after.trigger || before.timezone != after.timezone
    }

    /// Whether the cursor of a schedule hangs on its zone and was computed by other data than this one, or by nobody knows
    /// which.
    pub(crate) fn is_other(&self, schedule: &Schedule, zone_data: &str) -> bool {
        schedule.trigger.is_zone_bound() && schedule.next.is_some() && self.zone_data.as_deref() != Some(zone_data)
    }

    /// The schedule that stands there as `stored`, by the zone data of this process: what every reader, call and pass
    /// goes by, so that none of them computes a cursor from one that means another instant here.
    pub(crate) fn current(&self, stored: &Schedule) -> Schedule {
        if self.is_other(stored, Zone::data_version()) { self.rezoned(stored) } else { stored.clone() }
    }

    /// What this process's data makes of a schedule whose cursor was computed by another one. An offset that nobody knows,
    /// or that is none, is taken for today's.
    pub(crate) fn rezoned(&self, stored: &Schedule) -> Schedule {
        let Some(next) = stored.next else { return stored.clone() };
        let then = self.zone_offset.and_then(|seconds| UtcOffset::from_whole_seconds(seconds).ok());
        let then = then.unwrap_or_else(|| stored.timezone.offset_at(next.occurrence));
        stored.rezoned(then).unwrap_or_else(|| stored.clone())
    }
}

/// What is told of a schedule whose cursor other zone data has moved.
pub(crate) fn told(stored: &Schedule, after: &Schedule) -> Option<Rezoned> {
    let from = stored.next.filter(|_| after.next != stored.next)?;
    Some(Rezoned { schedule: stored.uuid.clone(), name: stored.name.clone(), from, to: after.next })
}
