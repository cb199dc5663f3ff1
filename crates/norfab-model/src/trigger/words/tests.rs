//! Triggers in words, one line each.

use super::*;
use crate::{Trigger, Weekdays};

#[track_caller]
fn check(expression: &str, words: &str) {
    let cron = Cron::new(expression).or_else(|_| Cron::with_seconds(expression)).expect(expression);
    assert_eq!(Trigger::from(cron).describe(), words);
}

#[test]
fn times() {
    check("0 3 * * *", "at 03:00 every day");
    check("0,30 3,15 * * *", "at 03:00, 03:30, 15:00 and 15:30 every day");
    check("* * * * *", "every minute");
    check("*/15 * * * *", "every 15 minutes");
    check("*/7 * * * *", "at minute 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour");
    check("30 * * * *", "at minute 30 of every hour");
    check("0 * * * *", "every hour");
    check("0 */2 * * *", "every 2 hours");
    check("30 */2 * * *", "at minute 30 of every 2nd hour");
    check("0 1/2 * * *", "at minute 0 of hours 1 to 23 in steps of 2 every day");
    check("1/2 * * * *", "at minute 1 to 59 in steps of 2 of every hour");
    // A list of all hours is not free.
    let all = "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23";
    check(&format!("*/5 {all} * * *"), "every 5 minutes of hours 0 to 23");
    check(&format!("30 {all} * * *"), "at minute 30 of hours 0 to 23 every day");
    check("0 0,2,4,6,8,10,12,14,16,18,20,22 * * *", "at minute 0 of hours 0 to 22 in steps of 2 every day");
    check("*/10 9-17 * * *", "every 10 minutes of hours 9 to 17");
    check("* 3 * * *", "every minute of hour 3");
    check("5-10,20 9-17,22 * * *", "at minute 5 to 10 and 20 of hours 9 to 17 and 22 every day");
    check("@daily", "at 00:00 every day");
}

#[test]
fn seconds() {
    check("* * * * * *", "every second");
    check("*/5 * * * * *", "every 5 seconds");
    check("30 0 3 * * *", "at 03:00:30 every day");
    check("15 */10 * * * *", "at second 15 of every 10th minute");
    check("30 * * * * *", "at second 30 of every minute");
    check("30 * 9-17 * * *", "at second 30 of every minute of hours 9 to 17");
    check("5,35 7 * * * *", "at second 5 and 35 of minute 7 of every hour");
    check("* */2 * * * *", "every second of every 2nd minute");
    check("*/10 */5 */2 * * *", "every 10 seconds of every 5th minute of every 2nd hour");
    check("* 1/2 * * * *", "every second of minute 1 to 59 in steps of 2 of every hour");
    check("*/5 3 4 * * *", "every 5 seconds of minute 3 of hour 4");
    check("* * 3 * * 1", "on Mondays every second of hour 3");
    check("0 */10 * * * *", "every 10 minutes");
    check("* * 3 * * *", "every second of hour 3");
}

#[test]
fn days() {
    check("0 0 13 * 5", "on the 13th or on Fridays at 00:00");
    check("0 0 13 * *", "on the 13th at 00:00");
    check("0 0 1,2,3,15,31 * *", "on the 1st to 3rd, 15th and 31st at 00:00");
    check("0 0 * * 1-5", "on Mondays to Fridays at 00:00");
    check("0 0 * * sat-sun", "on Saturdays and Sundays at 00:00");
    check("*/15 * * * 5", "on Fridays every 15 minutes");
    check("0 0 * 1,7 *", "every day in January and July at 00:00");
    check("0 0 1 jan-mar *", "on the 1st in January to March at 00:00");
    check("@yearly", "on the 1st in January at 00:00");
    check("0 6 L * *", "on the last day of the month at 06:00");
    check("0 6 LW,15W * *", "on the last Monday to Friday of the month and Monday to Friday nearest the 15th at 06:00");
    check("0 0 * * 0-6", "at 00:00 every day");
    check("0 0 * * 0-7", "at 00:00 every day");
    check("0 0 1-31 * *", "at 00:00 every day");
    check("0 0 1-31 * 5", "at 00:00 every day");
    check("0 0 * 6 0-6", "every day in June at 00:00");
    check("0 0 */2 * *", "on the 1st to 31st in steps of 2 at 00:00");
    check("0 0 * 2 1#5", "on the fifth Monday of February at 00:00");
    check("0 0 L,LW 2 *", "on the last day of February and last Monday to Friday of February at 00:00");
    check("0 0 L 2,6 *", "on the last day of the month in February and June at 00:00");
    check("0 0 13,L 2 *", "on the 13th and last day of the month in February at 00:00");
    check("0 0 13 2 *", "on the 13th in February at 00:00");
    check("0 6 * * 5#2", "on the second Friday of the month at 06:00");
    check("0 6 * * 1,5L", "on Mondays and the last Friday of the month at 06:00");
}

#[test]
fn calendar_intervals() {
    let daily =
        |every| Calendar::new(Cadence::Days { every }, "03:00".parse().expect("time")).expect("valid").to_string();
    assert_eq!((daily(1), daily(2)), ("at 03:00 every day".to_owned(), "at 03:00 every 2 days".to_owned()));
    let weekdays = Weekdays::named(["mon", "tue", "wed", "sun"]).expect("weekdays");
    let weekly =
        |every| Calendar::new(Cadence::Weeks { every, weekdays }, "03:00".parse().expect("time")).expect("valid");
    assert_eq!(weekly(1).to_string(), "on Mondays to Wednesdays and Sundays at 03:00");
    assert_eq!(weekly(2).to_string(), "on Mondays to Wednesdays and Sundays of every 2 weeks at 03:00");
    let monthly =
        |every, day| Calendar::new(Cadence::Months { every, day }, "03:00".parse().expect("time")).expect("valid");
    assert_eq!(monthly(1, 1).to_string(), "on the 1st of every month at 03:00");
    assert_eq!(monthly(3, 29).to_string(), "on the 29th, or else the last day, of every 3 months at 03:00");
}
