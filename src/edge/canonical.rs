//! The pieces of a request in the one spelling that both ends sign (IAM, "Create a signed AWS API request").

use crate::edge::path::RESERVED;
use http::{HeaderMap, HeaderName};
use percent_encoding::utf8_percent_encode;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::time::{Duration, SystemTime};

/// One time in the two spellings of the protocol.
pub(crate) struct DateTime {
    /// `20150830T123600Z`
    pub(crate) full: String,
    /// `20150830`
    pub(crate) day: String,
}

impl DateTime {
    /// Spells `at`, which lies within the calendar.
    pub(crate) fn of(at: SystemTime) -> DateTime {
        let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let (year, month, day) = civil_date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
        let day = format!("{year:04}{month:02}{day:02}");
        DateTime { full: format!("{day}T{hour:02}{minute:02}{second:02}Z"), day }
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

/// The path encoded once more, as every service but S3 has it.
pub(crate) fn path(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len() + 16);
    for (at, segment) in path.split('/').enumerate() {
        if at > 0 {
            encoded.push('/');
        }
        encoded.extend(utf8_percent_encode(segment, RESERVED));
    }
    encoded
}

/// The pairs in order of name and value; only this copy is sorted. The target's encoding is already the strict one.
pub(crate) fn query(query: &str) -> String {
    let mut pairs: Vec<(&str, &str)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    let mut sorted = String::with_capacity(query.len());
    for (name, value) in pairs {
        if !sorted.is_empty() {
            sorted.push('&');
        }
        let _ = write!(sorted, "{name}={value}");
    }
    sorted
}

/// The values of a header, trimmed and with runs of spaces made one, joined by commas.
pub(crate) fn values(headers: &HeaderMap, name: &HeaderName) -> String {
    let mut joined = String::new();
    for (at, value) in headers.get_all(name).iter().enumerate() {
        if at > 0 {
            joined.push(',');
        }
        let value = String::from_utf8_lossy(value.as_bytes());
        let mut words = value.split(' ').filter(|word| !word.is_empty());
        joined.push_str(words.next().unwrap_or_default());
        for word in words {
            joined.push(' ');
            joined.push_str(word);
        }
    }
    joined
}

/// The SHA-256 of `bytes` in hexadecimal, lower case.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
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
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            let http = httpdate::fmt_http_date(at);
            let parts: Vec<&str> = http.split([' ', ':']).collect();
            let [_, day, month, year, hour, minute, second, "GMT"] = parts.as_slice() else {
                panic!("{http}");
            };
            let month = MONTHS.iter().position(|name| name == month).unwrap() + 1;
            let spelt = DateTime::of(at);
            prop_assert_eq!(&spelt.day, &format!("{year}{month:02}{day}"));
            prop_assert_eq!(spelt.full, format!("{}T{hour}{minute}{second}Z", spelt.day));
        }
    }

    #[test]
    fn the_query_is_sorted_by_name_and_then_by_value() {
        assert_eq!(query("b=1&a=2&a=10&a-b=0&B=&=x"), "=x&B=&a=10&a=2&a-b=0&b=1");
        assert_eq!(query(""), "");
    }

    #[test]
    fn the_path_is_encoded_once_more_and_its_slashes_are_not() {
        assert_eq!(path("/prod/a%2Fb/x:y@z/~/"), "/prod/a%252Fb/x%3Ay%40z/~/");
        assert_eq!(path("/"), "/");
    }

    #[test]
    fn values_lose_the_spaces_that_no_proxy_keeps() {
        let mut headers = HeaderMap::new();
        let name = HeaderName::from_static("x-a");
        headers.append(&name, "  a   b  ".parse().unwrap());
        headers.append(&name, "c\td".parse().unwrap());
        headers.append(&name, "".parse().unwrap());
        assert_eq!(values(&headers, &name), "a b,c\td,");
    }
}
