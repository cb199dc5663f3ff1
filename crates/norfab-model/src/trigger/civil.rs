//! Days of the proleptic Gregorian calendar as numbers: days since 1970-01-01, months since year 0.

/// Seconds of a day as a wall clock shows it.
pub(super) const DAY: i64 = 86_400;
/// The first and the last month of the calendar: January of year 1 to December of year 9999.
pub(super) const MONTHS: std::ops::RangeInclusive<i64> = 12..=9999 * 12 + 11;

/// The month of a day, and its day of the month from 1.
pub(super) fn month_of(day: i64) -> (i64, u32) {
    // Years that begin in March have their leap day at the end; 400 of them have 146,097 days.
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * march_month + 2) / 5 + 1;
    // Below 32.
    ((era * 400 + year) * 12 + march_month + 2, day_of_month as u32)
}

/// The first day of a month.
pub(super) fn first_day(month: i64) -> i64 {
    let (year, march_month) = ((month - 2).div_euclid(12), (month - 2).rem_euclid(12));
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * march_month + 2) / 5 - 719_468
}

/// How many days a month has.
pub(super) fn length(month: i64) -> u32 {
    // 28 to 31.
    (first_day(month + 1) - first_day(month)) as u32
}

/// The weekday of a day, Sunday being 0.
pub(super) fn weekday(day: i64) -> u32 {
    (day + 4).rem_euclid(7) as u32
}

/// The month of the year, January being 1.
pub(super) fn month_of_year(month: i64) -> u32 {
    month.rem_euclid(12) as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_another_calendar() {
        let epoch = time::Date::from_ordinal_date(1970, 1).expect("date").to_julian_day();
        let range =
            time::Date::from_ordinal_date(1, 1).expect("date").to_julian_day()..=time::Date::MAX.to_julian_day();
        for julian in range {
            let (date, day) = (time::Date::from_julian_day(julian).expect("date"), i64::from(julian - epoch));
            let (month, day_of_month) = month_of(day);
            let expected = i64::from(date.year()) * 12 + i64::from(u8::from(date.month())) - 1;
            assert_eq!((month, day_of_month), (expected, u32::from(date.day())));
            assert_eq!(first_day(month), day - i64::from(date.day()) + 1);
            assert_eq!(weekday(day), u32::from(date.weekday().number_days_from_sunday()));
            assert_eq!(
                (length(month), month_of_year(month)),
                (u32::from(date.month().length(date.year())), u32::from(u8::from(date.month())))
            );
        }
        assert_eq!((first_day(*MONTHS.start()), month_of(0)), (-719_162, (1970 * 12, 1)));
    }
}
