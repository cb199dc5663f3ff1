//! Expressions of any kind: against the plain meaning of their fields where no clock ever changes, and against themselves
//! through the changes of odd zones.

use proptest::prelude::*;
use time::{Date, Weekday};

use super::*;
use crate::{Occurrences, Timestamp, Trigger, Zone};

const DAY: i64 = 86_400;
const ZONES: [&str; 6] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Pacific/Apia",
    "America/Scoresbysund",
];

/// A field: its text, and its values. None: it is `*`.
#[derive(Debug, Clone)]
struct Values {
    text: String,
    values: Option<Vec<i64>>,
}

impl Values {
    fn has(&self, value: i64) -> bool {
        self.values.as_ref().is_none_or(|values| values.contains(&value))
    }
}

fn field(least: i64, greatest: i64) -> impl Strategy<Value = Values> {
    let of = |text: String, values: Vec<i64>| Values { text, values: Some(values) };
    let list = prop::collection::vec(least..=greatest, 1..4)
        .prop_map(move |values| of(values.iter().map(ToString::to_string).collect::<Vec<_>>().join(","), values));
    let range = (least..=greatest, least..=greatest, 1..9_i64).prop_map(move |(one, other, step)| {
        let (from, to) = (one.min(other), one.max(other));
        of(format!("{from}-{to}/{step}"), (from..=to).step_by(step as usize).collect())
    });
    let step =
        (1..30_i64).prop_map(move |step| of(format!("*/{step}"), (least..=greatest).step_by(step as usize).collect()));
    prop_oneof![2 => Just(Values { text: "*".into(), values: None }), 2 => list, 1 => range, 1 => step]
}

#[derive(Debug, Clone)]
struct Expression {
    second: Values,
    minute: Values,
    hour: Values,
    day: Values,
    month: Values,
    weekday: Values,
}

fn expression() -> impl Strategy<Value = Expression> {
    let time = (field(0, 59), field(0, 59), field(0, 23));
    (time, field(1, 31), field(1, 12), field(0, 6)).prop_map(|((second, minute, hour), day, month, weekday)| {
        Expression { second, minute, hour, day, month, weekday }
    })
}

impl Expression {
    /// None: it never fires.
    fn trigger(&self) -> Option<Trigger> {
        let Self { second, minute, hour, day, month, weekday } = self;
        let text = [second, minute, hour, day, month, weekday].map(|field| field.text.as_str()).join(" ");
        match Cron::with_seconds(&text) {
            Err(TriggerError::NeverFires { .. }) => None,
            read => Some(read.expect("valid").into()),
        }
    }

    fn has_date(&self, date: Date) -> bool {
        let (day, weekday) = (self.day.has(date.day().into()), self.weekday.has(sunday_first(date.weekday())));
        let either = self.day.values.is_some() && self.weekday.values.is_some();
        self.month.has(u8::from(date.month()).into()) && if either { day || weekday } else { day && weekday }
    }

    /// The times of a day, in seconds.
    fn times(&self) -> Vec<i64> {
        let hours = (0..24).filter(|hour| self.hour.has(*hour));
        let minutes = hours.flat_map(|hour| (hour * 60..hour * 60 + 60).filter(|minute| self.minute.has(minute % 60)));
        minutes.flat_map(|minute| (minute * 60..minute * 60 + 60).filter(|at| self.second.has(at % 60))).collect()
    }
}

fn sunday_first(weekday: Weekday) -> i64 {
    weekday.number_days_from_sunday().into()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn agrees_with_the_meaning_of_its_fields(
        expression in expression(),
        day in 0..40_000_i64,
        second in 0..DAY,
        days in 0..100_i64,
    ) {
        let Some(trigger) = expression.trigger() else { return Ok(()) };
        let zone = Zone::utc();
        let occurrences = Occurrences::new(&trigger, &zone, Timestamp::EPOCH, None, None);
        let date = |day: i64| Date::from_julian_day((day + 2_440_588) as i32).expect("date");
        let times = expression.times();
        let (from, to) = (day * DAY + second, (day + days) * DAY + second / 2);
        let near = (day..=day + days).filter(|day| expression.has_date(date(*day)));
        let walked: Vec<i64> = near
            .flat_map(|day| times.iter().map(move |time| day * DAY + time))
            .filter(|at| (from..=to).contains(at))
            .collect();
        prop_assert_eq!(occurrences.count_in(at(from), at(to)), walked.len() as u64);
        let first = occurrences.first_at_or_after(at(from)).filter(|found| *found <= at(to));
        prop_assert_eq!(first, walked.first().map(|s| at(*s)));
        let last = occurrences.last_at_or_before(at(to)).filter(|found| *found >= at(from));
        prop_assert_eq!(last, walked.last().map(|s| at(*s)));
        let found: Vec<_> = occurrences.after(at(from - 1)).take(walked.len().min(200)).collect();
        prop_assert_eq!(found, walked.iter().take(200).map(|s| at(*s)).collect::<Vec<_>>());
    }

    #[test]
    fn forwards_backwards_and_by_number(
        expression in expression(),
        zone in prop::sample::select(&ZONES),
        from in -1_000_000_000..4_000_000_000_i64,
        number in 1..60_usize,
    ) {
        let Some(trigger) = expression.trigger() else { return Ok(()) };
        let zone = Zone::find(zone).expect("zone");
        let occurrences = Occurrences::new(&trigger, &zone, Timestamp::EPOCH, None, None);
        // Begin shortly before a clock change.
        let from = zone.next_transition(at(from)).map_or(from, |change| change.at.as_micros() / 1_000_000 - 20);
        let found: Vec<_> = occurrences.after(at(from)).take(number).collect();
        prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", found);
        for (n, one) in found.iter().enumerate() {
            prop_assert_eq!(occurrences.last_at_or_before(*one), Some(*one));
            prop_assert_eq!(occurrences.count_in(at(from + 1), *one), n as u64 + 1);
            let just_before = Timestamp::from_micros(one.as_micros() - 1);
            let before = if n == 0 { occurrences.last_at_or_before(at(from)) } else { Some(found[n - 1]) };
            prop_assert_eq!(occurrences.last_at_or_before(just_before), before);
            prop_assert_eq!(occurrences.next_after(just_before), Some(*one));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-0-9*/,?LW#a-z@ é]{0,40}", other in "\\PC{0,60}") {
        for text in [text, other] {
            let _ = (Cron::new(&text), Cron::with_seconds(&text));
        }
    }
}

#[test]
fn ends_of_the_calendar() {
    for (expression, zone) in [
        ("* * * * *", "Pacific/Kiritimati"),
        ("0 0 29 2 1", "America/New_York"),
        ("59 23 31 12 *", "Pacific/Pago_Pago"),
    ] {
        let (trigger, zone) = (Trigger::from(Cron::new(expression).expect("valid")), Zone::find(zone).expect("zone"));
        let all = Occurrences::new(&trigger, &zone, Timestamp::EPOCH, None, None);
        let (first, last) =
            (all.next_after(Timestamp::MIN).expect("one"), all.last_at_or_before(Timestamp::MAX).expect("one"));
        assert!(all.next_after(Timestamp::MAX).is_none() && all.next_after(last).is_none());
        assert_eq!(all.last_before(first).filter(|before| *before > Timestamp::MIN), None);
        assert!(all.count_in(Timestamp::MIN, Timestamp::MAX) > 1000);
    }
}
