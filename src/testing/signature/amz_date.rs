//! The time form of SigV4, `yyyymmddThhmmssZ`, read and written.

use std::time::{Duration, SystemTime};

/// Reads `yyyymmddThhmmssZ`; `None` for every other form and for a day that no calendar has.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    if date.len() != 8 || time.len() != 6 || !date.bytes().chain(time.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let field = |text: &str, from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (field(date, 0, 4)?, field(date, 4, 6)?, field(date, 6, 8)?);
    let (hour, minute, second) = (field(time, 0, 2)?, field(time, 2, 4)?, field(time, 4, 6)?);
    let days = days_from_civil(year, month, day);
    if civil_from_days(days) != (year, month, day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    from_unix_seconds(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Writes `yyyymmddThhmmssZ`; a fraction of a second is cut off.
pub(crate) fn format(at: SystemTime) -> String {
    let seconds = unix_seconds(at);
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Cuts a time down to the whole second.
pub(crate) fn whole_second(at: SystemTime) -> SystemTime {
    from_unix_seconds(unix_seconds(at)).unwrap_or(at)
}

fn unix_seconds(at: SystemTime) -> i64 {
    // Held to about ten thousand years either way, so that no arithmetic on it can overflow.
    const FURTHEST: i64 = 253_402_300_799;
    let seconds = match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(FURTHEST),
        Err(before) => {
            let before = before.duration();
            let whole = i64::try_from(before.as_secs()).unwrap_or(FURTHEST).min(FURTHEST);
            -whole - i64::from(before.subsec_nanos() > 0)
        }
    };
    seconds.clamp(-FURTHEST, FURTHEST)
}

fn from_unix_seconds(seconds: i64) -> Option<SystemTime> {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    }
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar, counted in years that begin in March, so that the leap
/// day is the last of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn known_times_are_read_and_written() {
        for (text, seconds) in [
            ("19700101T000000Z", 0),
            ("20000229T235959Z", 951_868_799),
            ("20150830T123600Z", 1_440_938_160),
            ("20261002T100000Z", 1_790_935_200),
        ] {
            assert_eq!(parse(text), Some(at(seconds)), "{text}");
            assert_eq!(format(at(seconds)), text);
        }
        assert_eq!(parse("19691231T235959Z").map(format).as_deref(), Some("19691231T235959Z"));
    }

    #[test]
    fn every_other_form_is_refused() {
        for text in [
            "",
            "20150830T123600",
            "20150830 123600Z",
            "2015-08-30T12:36:00Z",
            "20150230T000000Z",
            "20150001T000000Z",
            "20151301T000000Z",
            "20150830T240000Z",
            "20150830T126000Z",
            "20150830T123660Z",
            "+0150830T123600Z",
            "２０１５T123600Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_to_the_second(seconds in 0u64..253_402_300_799, nanos in 0u32..1_000_000_000) {
            let time = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
            prop_assert_eq!(parse(&format(time)), Some(at(seconds)));
            prop_assert_eq!(whole_second(time), at(seconds));
        }

        #[test]
        fn dates_agree_with_those_of_http(seconds in 0u64..253_402_300_799) {
            let http = httpdate::fmt_http_date(at(seconds));
            let words: Vec<&str> = http.split([' ', ':']).collect();
            let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
            let month = months.iter().position(|month| *month == words[2]).unwrap() + 1;
            let expected = format!("{}{month:02}{}T{}{}{}Z", words[3], words[1], words[4], words[5], words[6]);
            prop_assert_eq!(format(at(seconds)), expected);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,20}") {
            let _ = parse(&text);
        }
    }
}
