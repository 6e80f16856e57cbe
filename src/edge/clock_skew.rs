//! How far the gateway's clock is from ours.

use crate::policy::moment::Moment;
use http::header::{AGE, DATE};
use http::{HeaderMap, HeaderValue};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The offset that is added to the wall clock before anything is signed; shared by all calls of a client.
#[derive(Debug, Default)]
pub(crate) struct ClockSkew {
    /// Whole seconds that the gateway is ahead of us.
    offset: AtomicI64,
    /// The last `Date` that was read: answers of one second have the same.
    last: Mutex<Option<(Vec<u8>, SystemTime)>>,
}

impl ClockSkew {
    /// The largest offset that is taken, in seconds: a day. A clock that is further off is not to be worked around.
    pub(crate) const MOST_SECONDS: u64 = LARGEST.unsigned_abs();

    /// Notes what an answer showed, as [`measure`] has it, and says whether the offset was moved.
    ///
    /// A gap moves the offset after a 403 whose words are about time, or when it is more than four minutes from the
    /// offset in force: a signature is good for five. A clock that was repaired brings the offset back to zero.
    pub(crate) fn note(&self, gap: i64, time_worded_403: bool) -> bool {
        let offset = self.offset.load(Ordering::Relaxed);
        if time_worded_403 {
            self.apply(gap);
        } else if gap.saturating_sub(offset).saturating_abs() > TOLERATED {
            // A gap that would not have been noted to begin with is none.
            self.apply(if gap.saturating_abs() > TOLERATED { gap } else { 0 });
        }
        self.seconds() != offset
    }

    /// As [`measure`] has it, without reading a `Date` again that was read for the answer before.
    pub(crate) fn measure(&self, headers: &HeaderMap, sent: Moment, received: Moment) -> Option<i64> {
        gap(headers, (sent, received), |date| self.read(date))
    }

    fn read(&self, date: &HeaderValue) -> Option<SystemTime> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((text, time)) if text == date.as_bytes() => Some(*time),
            _ => {
                let time = read(date)?;
                *last = Some((date.as_bytes().to_vec(), time));
                Some(time)
            }
        }
    }

    /// Sets the offset, held to a day either way.
    pub(crate) fn apply(&self, gap: i64) {
        self.offset.store(gap.clamp(-LARGEST, LARGEST), Ordering::Relaxed);
    }

    /// The offset in whole seconds; positive where the gateway is ahead of us.
    pub(crate) fn seconds(&self) -> i64 {
        self.offset.load(Ordering::Relaxed)
    }

    /// The wall clock as the gateway has it; the wall clock itself where no such time can be told.
    pub(crate) fn corrected(&self, wall: SystemTime) -> SystemTime {
        let offset = self.seconds();
        let distance = Duration::from_secs(offset.unsigned_abs());
        let moved = if offset < 0 { wall.checked_sub(distance) } else { wall.checked_add(distance) };
        moved.unwrap_or(wall)
    }
}

/// How many whole seconds the gateway's clock is ahead of our own, uncorrected one (behind, if negative): the `Date` of
/// an answer less the middle between sending and receiving it. A `Date` in between is no gap: the answer may have been
/// made at any time of a round trip, and one that held a frozen sandbox for ten minutes must not move the clock by five.
///
/// `None` where it does not tell: no `Date` or more than one, an `Age` (a cache kept the answer), or a round trip of
/// more than 15 minutes.
pub(crate) fn measure(headers: &HeaderMap, sent: Moment, received: Moment) -> Option<i64> {
    gap(headers, (sent, received), read)
}

fn gap(
    headers: &HeaderMap,
    (sent, received): (Moment, Moment),
    read: impl FnOnce(&HeaderValue) -> Option<SystemTime>,
) -> Option<i64> {
    if headers.contains_key(AGE) || received.since(&sent) > LONGEST_ROUND_TRIP {
        return None;
    }
    let date = read(one_date(headers)?)?;
    if sent.wall <= date && date <= received.wall {
        return Some(0);
    }
    // A clock that was set back in between leaves nothing to halve.
    let half = received.wall.duration_since(sent.wall).unwrap_or_default() / 2;
    let middle = received.wall.checked_sub(half)?;
    Some(match date.duration_since(middle) {
        Ok(ahead) => rounded(ahead),
        Err(behind) => -rounded(behind.duration()),
    })
}

/// The `Date`, if there is one and no more.
fn one_date(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut dates = headers.get_all(DATE).iter();
    match (dates.next(), dates.next()) {
        (Some(date), None) => Some(date),
        _ => None,
    }
}

fn read(date: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(date.to_str().ok()?).ok()
}

fn rounded(gap: Duration) -> i64 {
    let seconds = gap.as_secs().saturating_add(u64::from(gap.subsec_millis() >= 500));
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// Seconds that a signature can be off and still be taken, with a minute to spare.
const TOLERATED: i64 = 240;
const LARGEST: i64 = 86_400;
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(15 * 60);

/// How many seconds after the signed time the one `Date` of an answer is; `offset` is what had been added to `sent`.
pub(crate) fn signature_age(headers: &HeaderMap, sent: SystemTime, offset: i64) -> Option<i64> {
    let date = read(one_date(headers)?)?;
    let whole = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let after = match date.duration_since(sent) {
        Ok(ahead) => whole(ahead),
        Err(behind) => -whole(behind.duration()),
    };
    Some(after.saturating_sub(offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::moment::some_moment;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn after(moment: Moment, time: Duration) -> Moment {
        Moment { monotonic: moment.monotonic + time, wall: moment.wall + time }
    }

    fn dated(at: SystemTime) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(DATE, httpdate::fmt_http_date(at).parse().unwrap());
        headers
    }

    #[test]
    fn the_gap_is_the_date_less_the_middle_of_the_round_trip() {
        let sent = some_moment();
        let received = after(sent, Duration::from_secs(4));
        let gap = |at| measure(&dated(at), sent, received);
        assert_eq!(gap(sent.wall + Duration::from_secs(2)), Some(0));
        assert_eq!(gap(sent.wall + Duration::from_secs(602)), Some(600));
        assert_eq!(gap(sent.wall - Duration::from_secs(598)), Some(-600));
        assert_eq!(measure(&dated(sent.wall), sent, sent), Some(0));
    }

    #[test]
    fn a_date_within_the_round_trip_agrees_with_our_clock() {
        let sent = some_moment();
        let woken = after(sent, Duration::from_secs(600));
        for at in [sent.wall, sent.wall + Duration::from_secs(300), woken.wall] {
            assert_eq!(measure(&dated(at), sent, woken), Some(0));
        }
        assert_eq!(measure(&dated(woken.wall + Duration::from_secs(300)), sent, woken), Some(600));
    }

    #[test]
    fn a_clock_that_was_set_back_in_flight_is_measured_when_the_answer_came() {
        let sent = some_moment();
        let received =
            Moment { wall: sent.wall - Duration::from_secs(3_600), ..after(sent, Duration::from_secs(1)) };
        assert_eq!(measure(&dated(received.wall), sent, received), Some(0));
    }

    #[test]
    fn a_date_that_was_read_before_is_measured_like_a_fresh_one() {
        let skew = ClockSkew::default();
        let sent = some_moment();
        for seconds in [600, 600, 0, 600, 601] {
            let headers = dated(sent.wall + Duration::from_secs(seconds));
            for received in [sent, after(sent, Duration::from_secs(2))] {
                let told = skew.measure(&headers, sent, received);
                assert_eq!(told, measure(&headers, sent, received), "{seconds}");
                assert!(told.is_some());
            }
        }
        let mut junk = HeaderMap::new();
        junk.insert(DATE, HeaderValue::from_static("soon"));
        assert_eq!(skew.measure(&junk, sent, sent), None);
    }

    #[test]
    fn an_answer_of_a_cache_or_of_a_quarter_of_an_hour_ago_tells_nothing() {
        let sent = some_moment();
        let mut headers = dated(sent.wall + Duration::from_secs(9_000));
        assert_eq!(measure(&headers, sent, sent), Some(9_000));
        let limit = Duration::from_secs(900);
        assert!(measure(&headers, sent, after(sent, limit)).is_some());
        assert_eq!(measure(&headers, sent, after(sent, limit + Duration::from_secs(1))), None);
        // Frozen: the wall clock alone went on.
        let woken = Moment { wall: sent.wall + Duration::from_secs(3_600), ..sent };
        assert_eq!(measure(&headers, sent, woken), None);
        headers.insert(AGE, HeaderValue::from_static("0"));
        assert_eq!(measure(&headers, sent, sent), None);
    }

    #[test]
    fn an_answer_without_one_clear_date_tells_nothing() {
        let sent = some_moment();
        assert_eq!(measure(&HeaderMap::new(), sent, sent), None);
        for junk in ["", "soon", "1790000000", "Thu, 01 Jan 1970 00:00:00 +0200"] {
            let mut headers = HeaderMap::new();
            headers.insert(DATE, junk.parse().unwrap());
            assert_eq!(measure(&headers, sent, sent), None, "{junk}");
        }
        let mut twice = dated(sent.wall);
        let same = twice[DATE].clone();
        twice.append(DATE, same);
        assert_eq!(measure(&twice, sent, sent), None);
    }

    #[test]
    fn a_gap_up_to_four_minutes_moves_nothing_until_a_refusal_is_about_time() {
        let skew = ClockSkew::default();
        for gap in [240, -240, 1, 0] {
            assert!(!skew.note(gap, false));
        }
        assert_eq!(skew.seconds(), 0);
        assert!(skew.note(100, true));
        assert_eq!(skew.seconds(), 100);
        assert!(skew.note(241 + 100, false));
        assert_eq!(skew.seconds(), 341);
    }

    #[test]
    fn a_wrong_clock_is_followed_and_a_repaired_one_returns_to_zero() {
        let skew = ClockSkew::default();
        assert!(skew.note(600, false));
        assert!(!skew.note(601, false), "small drift is left alone");
        assert_eq!(skew.seconds(), 600);
        assert!(skew.note(2, false));
        assert_eq!(skew.seconds(), 0);
        assert!(skew.note(-900, true));
        assert!(skew.note(0, true));
        assert_eq!(skew.seconds(), 0);
    }

    #[test]
    fn no_offset_is_more_than_a_day() {
        let skew = ClockSkew::default();
        assert!(skew.note(3 * 86_400, true));
        assert_eq!(skew.seconds(), 86_400);
        assert!(!skew.note(3 * 86_400, false));
        assert!(skew.note(i64::MIN, false));
        assert_eq!(skew.seconds(), -86_400);
    }

    #[test]
    fn the_corrected_clock_runs_ahead_or_behind_by_the_offset() {
        let (skew, wall) = (ClockSkew::default(), some_moment().wall);
        assert_eq!(skew.corrected(wall), wall);
        skew.apply(-420);
        assert_eq!(skew.corrected(wall), wall - Duration::from_secs(420));
        skew.apply(420);
        assert_eq!(skew.corrected(wall), wall + Duration::from_secs(420));
    }

    proptest! {
        #[test]
        fn no_gap_and_no_clock_panics(gaps in prop::collection::vec((any::<i64>(), any::<bool>()), 1..6)) {
            let skew = ClockSkew::default();
            for (gap, worded) in gaps {
                skew.note(gap, worded);
                prop_assert!(skew.seconds().abs() <= 86_400);
                let _ = skew.corrected(SystemTime::UNIX_EPOCH);
            }
        }
    }
}
