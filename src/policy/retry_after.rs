//! What a callee says about when to come back.

use crate::policy::moment::Draw;
use http::header::{DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// What an answer's headers say about when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// They say nothing.
    Absent,
    /// Not before this much time has gone by; never zero, and saturated where the number is out of range.
    After(Duration),
    /// They ask for a wait, in words that cannot be followed.
    Unusable,
}

impl Hint {
    /// The wait that was asked for, where it could be read.
    #[must_use]
    pub fn duration(self) -> Option<Duration> {
        match self {
            Hint::After(hint) => Some(hint),
            Hint::Absent | Hint::Unusable => None,
        }
    }
}

/// Reads `Retry-After` (RFC 9110, section 10.2.3) or, where there is none, `x-amz-retry-after`.
///
/// `Retry-After` is whole seconds, in ASCII digits alone, or a date in one of the three forms of RFC 9110,
/// section 5.6.7. A date is measured against the answer's own `Date`, which the same clock wrote, or against
/// `gateway_now` if there is not exactly one that can be read. Zero, a past date, a sign, a fraction, several
/// values and all else are [`Hint::Unusable`].
///
/// `x-amz-retry-after` is whole milliseconds. It is read as the AWS SDKs read it: anything that is not a number
/// above zero is ignored.
#[must_use]
pub fn read(headers: &HeaderMap, gateway_now: SystemTime) -> Hint {
    if !headers.contains_key(RETRY_AFTER) {
        return single(headers, &X_AMZ_RETRY_AFTER)
            .and_then(digits)
            .filter(|millis| *millis > 0)
            .map_or(Hint::Absent, |millis| Hint::After(Duration::from_millis(millis)));
    }
    let wait = single(headers, &RETRY_AFTER).and_then(|value| match digits(value) {
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None => {
            let then = httpdate::parse_http_date(value).ok()?;
            let now = single(headers, &DATE).and_then(|date| httpdate::parse_http_date(date).ok());
            then.duration_since(now.unwrap_or(gateway_now)).ok()
        }
    });
    match wait {
        Some(wait) if !wait.is_zero() => Hint::After(wait),
        _ => Hint::Unusable,
    }
}

/// Draws the wait that obeys a hint: `hint + uniform(0, min(hint / 2, 5 s))`.
///
/// The hint is a floor. What is added keeps those who were all told the same from coming back together.
#[must_use]
pub fn wait(hint: Duration, draw: Draw) -> Duration {
    hint.saturating_add(draw.up_to((hint / 2).min(MOST_ADDED)))
}

/// The text of a header that is there exactly once and holds visible ASCII.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value: &HeaderValue = values.next()?;
    if values.next().is_some() {
        return None;
    }
    // White space around a value is not part of it (RFC 9110, section 5.5).
    value.to_str().ok().map(|text| text.trim_matches([' ', '\t']))
}

/// A number of one or more ASCII digits and nothing else; past `u64::MAX` it stays there.
pub(crate) fn digits(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0_u64, |number, byte| {
        byte.is_ascii_digit().then(|| number.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
    })
}

/// The most that is added to a hint.
const MOST_ADDED: Duration = Duration::from_secs(5);

const X_AMZ_RETRY_AFTER: HeaderName = HeaderName::from_static("x-amz-retry-after");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110.
    const THEN: u64 = 784_111_777;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
            })
            .collect::<Vec<_>>()
            .into_iter()
            .fold(HeaderMap::new(), |mut map, (name, value)| {
                map.append(name, value);
                map
            })
    }

    fn read_one(value: &str) -> Hint {
        read(&headers(&[("retry-after", value)]), at(THEN - 3))
    }

    fn seconds(n: u64) -> Hint {
        Hint::After(Duration::from_secs(n))
    }

    #[test]
    fn whole_seconds_are_read() {
        assert_eq!(read_one("1"), seconds(1));
        assert_eq!(read_one("0120"), seconds(120));
        assert_eq!(read_one(" 7\t"), seconds(7));
    }

    #[test]
    fn seconds_out_of_range_saturate_and_never_become_no_hint() {
        assert_eq!(read_one("9223372037"), seconds(9_223_372_037));
        assert_eq!(read_one("18446744073709551615"), seconds(u64::MAX));
        assert_eq!(read_one("18446744073709551616"), seconds(u64::MAX));
        assert_eq!(read_one(&"9".repeat(40)), seconds(u64::MAX));
        assert_eq!(read_one(&"9".repeat(4_000)), seconds(u64::MAX));
    }

    #[test]
    fn all_three_date_forms_are_read() {
        for date in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(read_one(date), seconds(3), "{date}");
        }
    }

    #[test]
    fn a_date_is_measured_against_the_answers_own_date() {
        let answer = headers(&[
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("date", "Sun, 06 Nov 1994 08:49:07 GMT"),
        ]);
        assert_eq!(read(&answer, at(0)), seconds(30));
        assert_eq!(read(&answer, at(THEN + 9)), seconds(30));
    }

    #[test]
    fn without_exactly_one_readable_date_our_view_of_the_gateways_clock_is_used() {
        let hint = ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT");
        let date = ("date", "Sun, 06 Nov 1994 08:49:07 GMT");
        for answer in
            [headers(&[hint]), headers(&[hint, ("date", "yesterday")]), headers(&[hint, date, date])]
        {
            assert_eq!(read(&answer, at(THEN - 12)), seconds(12));
        }
    }

    #[test]
    fn a_date_ahead_by_less_than_a_second_is_still_ahead() {
        let now = at(THEN) - Duration::from_millis(300);
        let answer = headers(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]);
        assert_eq!(read(&answer, now), Hint::After(Duration::from_millis(300)));
    }

    #[test]
    fn a_date_that_is_past_or_now_is_unusable() {
        let answer = headers(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]);
        assert_eq!(read(&answer, at(THEN)), Hint::Unusable);
        assert_eq!(read(&answer, at(THEN + 1)), Hint::Unusable);
    }

    #[test]
    fn what_is_neither_seconds_nor_a_date_is_unusable() {
        for value in [
            "",
            " ",
            "0",
            "000",
            "+5",
            "-1",
            "1.5",
            "1e3",
            "0x10",
            "5s",
            "5 6",
            "3, 5",
            "soon",
            "\u{0663}",
            "5\u{a0}",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT, 5",
            "Sun, 06 Nov 1994 08:49:60 GMT",
            "1994-11-06T08:49:37Z",
        ] {
            assert_eq!(read_one(value), Hint::Unusable, "{value:?}");
        }
    }

    #[test]
    fn two_values_are_unusable_even_if_equal() {
        let twice = headers(&[("retry-after", "5"), ("retry-after", "5")]);
        assert_eq!(read(&twice, at(THEN)), Hint::Unusable);
    }

    #[test]
    fn no_header_is_no_hint() {
        assert_eq!(read(&HeaderMap::new(), at(THEN)), Hint::Absent);
    }

    #[test]
    fn milliseconds_of_the_aws_header_are_read_where_the_standard_one_is_missing() {
        let millis = |value| read(&headers(&[("x-amz-retry-after", value)]), at(THEN));
        assert_eq!(millis("1500"), Hint::After(Duration::from_millis(1_500)));
        assert_eq!(millis("99999999999999999999"), Hint::After(Duration::from_millis(u64::MAX)));
        for ignored in ["0", "", "-5", "1.5", "soon", "Sun, 06 Nov 1994 08:49:37 GMT"] {
            assert_eq!(millis(ignored), Hint::Absent, "{ignored:?}");
        }
        let twice = headers(&[("x-amz-retry-after", "5"), ("x-amz-retry-after", "5")]);
        assert_eq!(read(&twice, at(THEN)), Hint::Absent);
    }

    #[test]
    fn the_standard_header_goes_before_the_aws_one() {
        let both = headers(&[("x-amz-retry-after", "1500"), ("retry-after", "4")]);
        assert_eq!(read(&both, at(THEN)), seconds(4));
        let junk = headers(&[("x-amz-retry-after", "1500"), ("retry-after", "soon")]);
        assert_eq!(read(&junk, at(THEN)), Hint::Unusable);
    }

    #[test]
    fn a_wait_begins_at_the_hint_and_adds_half_of_it_to_five_seconds_at_most() {
        let (two, sixty) = (Duration::from_secs(2), Duration::from_secs(60));
        assert_eq!(wait(two, Draw::LOWEST), two);
        assert_eq!(wait(two, Draw::HIGHEST), Duration::from_secs(3));
        assert_eq!(wait(sixty, Draw::LOWEST), sixty);
        assert_eq!(wait(sixty, Draw::HIGHEST), Duration::from_secs(65));
        assert_eq!(wait(Duration::MAX, Draw::HIGHEST), Duration::MAX);
    }

    proptest! {
        #[test]
        fn no_header_makes_the_reader_panic_or_answer_zero(
            value in proptest::collection::vec(prop_oneof![Just(b'\t'), 32..=126_u8, 128..=255_u8], 0..60),
            date in "[ -~]{0,40}",
            now in any::<u32>(),
        ) {
            let mut map = headers(&[("date", &date)]);
            map.insert(RETRY_AFTER, HeaderValue::from_bytes(&value).unwrap());
            prop_assert_ne!(read(&map, at(now.into())), Hint::After(Duration::ZERO));
            prop_assert_ne!(read(&map, at(now.into())), Hint::Absent);
        }

        #[test]
        fn a_wait_is_never_shorter_than_the_hint(
            secs in any::<u64>(), nanos in 0..1_000_000_000_u32, draw in any::<u64>(),
        ) {
            let hint = Duration::new(secs, nanos);
            let waited = wait(hint, Draw(draw));
            prop_assert!(waited >= hint);
            prop_assert!(waited <= hint.saturating_add((hint / 2).min(Duration::from_secs(5))));
        }

        #[test]
        fn every_date_that_can_be_written_is_read_back(now in 1..253_402_300_000_u64, ahead in 1..100_000_u64) {
            let then = httpdate::fmt_http_date(at((now + ahead).min(253_402_300_799)));
            let answer = headers(&[("retry-after", &then), ("date", &httpdate::fmt_http_date(at(now)))]);
            prop_assert_eq!(read(&answer, at(0)), seconds((now + ahead).min(253_402_300_799) - now));
        }
    }
}
