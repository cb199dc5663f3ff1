//! By which zone data a cursor was computed, for both stores: so that it is noticed when a process starts with other data,
//! and what the zone's clocks showed by the older one is still known.

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

    /// Whether this process has computed the cursor anew when a schedule that was `before` is `after`.
    pub(crate) fn is_new(before: &Schedule, after: &Schedule) -> bool {
        before.next != after.next || before.trigger != after.trigger || before.timezone != after.timezone
    }
}

/// What the zone data of this process makes of a schedule whose cursor was computed by another one, with the offset that
/// the zone had by it; one that nobody knows, or that is none, is taken for today's. Also tells when the cursor moves.
pub(crate) fn rezone(before: &Schedule, offset_then: Option<i32>) -> (Schedule, Option<Rezoned>) {
    let Some(from) = before.next else { return (before.clone(), None) };
    let offset = offset_then.and_then(|seconds| UtcOffset::from_whole_seconds(seconds).ok());
    let offset = offset.unwrap_or_else(|| before.timezone.offset_at(from.occurrence));
    let after = before.rezoned(offset).unwrap_or_else(|| before.clone());
    let told = (after.next != before.next).then(|| Rezoned {
        schedule: before.uuid.clone(),
        name: before.name.clone(),
        from,
        to: after.next,
    });
    (after, told)
}
