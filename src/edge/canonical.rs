//! The pieces of a request in the one spelling that both ends sign (IAM, "Create a signed AWS API request").

use crate::edge::path::RESERVED;
use percent_encoding::utf8_percent_encode;
use sha2::{Digest, Sha256};
use std::time::{Duration, SystemTime};

/// Spells a second since 1970 that lies within the calendar: `20150830T123600Z`.
pub(crate) fn date_time(seconds: u64) -> String {
    let (year, month, day) = civil_date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let mut full = String::with_capacity(16);
    push_digits(&mut full, &[year / 100, year, month, day]);
    full.push('T');
    push_digits(&mut full, &[hour, minute, second]);
    full.push('Z');
    full
}

/// The day of a time so spelt: `20150830`.
pub(crate) fn day(date_time: &str) -> &str {
    date_time.split_once('T').map_or("", |(day, _)| day)
}

/// Appends the last two digits of each number.
fn push_digits(text: &mut String, numbers: &[u64]) {
    for number in numbers {
        for digit in [number / 10 % 10, number % 10] {
            text.push(char::from(b'0' + u8::try_from(digit).unwrap_or_default()));
        }
    }
}

/// The proleptic Gregorian date of a day counted from 1970-01-01.
fn civil_date(days: u64) -> (u64, u64, u64) {
    // Years are counted from March, so that the leap day is the last: then all months but that one repeat in a
    // pattern of 153 days in five. 719,468 days lie between 0000-03-01 and 1970-01-01.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Moves a time that cannot be written with four digits of a year to the nearest one that can.
pub(crate) fn within_calendar(at: SystemTime) -> SystemTime {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs().min(END_OF_YEAR_9999);
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Appends the path, encoded once more, as every service but S3 has it.
pub(crate) fn push_path(text: &mut String, path: &str) {
    for (at, segment) in path.split('/').enumerate() {
        if at > 0 {
            text.push('/');
        }
        text.extend(utf8_percent_encode(segment, RESERVED));
    }
}

/// Appends the pairs in order of name and value; only this copy is sorted. The target's encoding is already the strict
/// one.
pub(crate) fn push_query(text: &mut String, query: &str) {
    let mut pairs: Vec<(&str, &str)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    for (at, (name, value)) in pairs.into_iter().enumerate() {
        push(text, &[if at > 0 { "&" } else { "" }, name, "=", value]);
    }
}

/// Appends a header's value, trimmed and with runs of spaces made one.
pub(crate) fn push_value(text: &mut String, value: &str) {
    // Nearly every value, the long session token for one, has no space at all.
    if !value.contains(' ') {
        return push(text, &[value]);
    }
    for (at, word) in value.split(' ').filter(|word| !word.is_empty()).enumerate() {
        push(text, &[if at > 0 { " " } else { "" }, word]);
    }
}

/// The SHA-256 of `bytes`.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Appends a hash in hexadecimal, lower case.
pub(crate) fn push_hash(text: &mut String, hash: &[u8; 32]) {
    let mut written = [0; 64];
    for (pair, byte) in written.chunks_exact_mut(2).zip(hash) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    push(text, &[str::from_utf8(&written).unwrap_or_default()]);
}

fn digit(half: u8) -> u8 {
    if half < 10 { b'0' + half } else { b'a' - 10 + half }
}

/// Appends all of these. Not inlined: a signature needs it a dozen times, and the code of one place stays in the
/// processor's cache.
#[inline(never)]
pub(crate) fn push(text: &mut String, parts: &[&str]) {
    for part in parts {
        text.push_str(part);
    }
}

const END_OF_YEAR_9999: u64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

    proptest! {
        #[test]
        fn every_date_of_the_calendar_is_the_one_that_http_has(seconds in 0..=END_OF_YEAR_9999) {
            let http = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
            let parts: Vec<&str> = http.split([' ', ':']).collect();
            let [_, day, month, year, hour, minute, second, "GMT"] = parts.as_slice() else {
                panic!("{http}");
            };
            let month = MONTHS.iter().position(|name| name == month).unwrap() + 1;
            let spelt = date_time(seconds);
            prop_assert_eq!(super::day(&spelt), format!("{year}{month:02}{day}"));
            prop_assert_eq!(&spelt, &format!("{year}{month:02}{day}T{hour}{minute}{second}Z"));
        }
    }

    fn written(push: impl Fn(&mut String, &str), value: &str) -> String {
        let mut text = String::new();
        push(&mut text, value);
        text
    }

    #[test]
    fn the_query_is_sorted_by_name_and_then_by_value() {
        assert_eq!(written(push_query, "b=1&a=2&a=10&a-b=0&B=&=x"), "=x&B=&a=10&a=2&a-b=0&b=1");
        assert_eq!(written(push_query, ""), "");
    }

    #[test]
    fn the_path_is_encoded_once_more_and_its_slashes_are_not() {
        assert_eq!(written(push_path, "/prod/a%2Fb/x:y@z/~/"), "/prod/a%252Fb/x%3Ay%40z/~/");
        assert_eq!(written(push_path, "/"), "/");
    }

    #[test]
    fn values_lose_the_spaces_that_no_proxy_keeps() {
        for (value, kept) in [("  a   b  ", "a b"), ("c\td", "c\td"), ("", ""), ("  ", ""), ("abc", "abc")] {
            assert_eq!(written(push_value, value), kept);
        }
    }

    #[test]
    fn a_hash_is_written_with_both_halves_of_every_byte() {
        let mut hash = String::new();
        push_hash(&mut hash, &sha256(b""));
        assert_eq!(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
