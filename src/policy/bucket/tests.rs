//! The bucket against hand-made times, and against plain arithmetic.

use super::*;
use crate::policy::moment::some_moment;
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);
const ALL: [Priority; 3] = [Priority::Bulk, Priority::Critical, Priority::Normal];

fn after(start: Moment, time: Duration) -> Moment {
    Moment { monotonic: start.monotonic + time, wall: start.wall + time }
}

/// Takes and spends as many tokens as there are.
fn empty(bucket: &mut Bucket, now: Moment, priority: Priority) -> u32 {
    let mut taken = 0;
    while bucket.take(now, priority).is_ok() {
        bucket.spend(now);
        taken += 1;
    }
    taken
}

#[test]
fn bulk_never_takes_the_reserved_part_and_critical_may_take_all() {
    let now = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_second(100), now);
    assert_eq!(empty(&mut bucket, now, Priority::Bulk), 70);
    assert_eq!(empty(&mut bucket, now, Priority::Normal), 20);
    assert_eq!(empty(&mut bucket, now, Priority::Critical), 10);
    assert_eq!(bucket.available(), 0);
}

#[test]
fn a_wall_clock_that_is_ahead_by_a_second_has_seen_no_freeze_and_by_more_it_has() {
    for (ahead, earned) in [(SECOND, 0), (SECOND + Duration::from_nanos(1), 5)] {
        let start = some_moment();
        let mut bucket = Bucket::new(RateLimit::per_second(5), start);
        assert_eq!(empty(&mut bucket, start, Priority::Critical), 5);
        let woken = Moment { monotonic: start.monotonic, wall: start.wall + ahead };
        assert_eq!(empty(&mut bucket, woken, Priority::Critical), earned, "{ahead:?}");
    }
}

#[test]
fn what_was_taken_is_earned_back_by_time_and_no_more_than_the_burst() {
    let start = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_second(10).burst(5), start);
    assert_eq!(empty(&mut bucket, start, Priority::Critical), 5);
    assert_eq!(bucket.take(start, Priority::Critical), Err(SECOND / 10));
    assert_eq!(empty(&mut bucket, after(start, SECOND / 5), Priority::Critical), 2);
    assert_eq!(empty(&mut bucket, after(start, SECOND * 60), Priority::Critical), 5);
}

#[test]
fn a_wait_is_never_told_too_short_where_it_cannot_be_told_exactly() {
    let start = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_second(3).burst(1), start);
    bucket.take(start, Priority::Critical).unwrap();
    bucket.spend(start);
    let wait = bucket.take(start, Priority::Critical).unwrap_err();
    assert_eq!(wait, Duration::from_nanos(333_333_334));
    assert!(bucket.take(after(start, wait - Duration::from_nanos(1)), Priority::Critical).is_err());
    assert!(bucket.take(after(start, wait), Priority::Critical).is_ok());
}

#[test]
fn a_limit_a_minute_earns_a_token_a_share_of_a_minute() {
    let start = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_minute(2), start);
    bucket.take(start, Priority::Bulk).unwrap();
    bucket.spend(start);
    assert_eq!(bucket.take(start, Priority::Bulk), Err(SECOND * 30));
}

#[test]
fn those_who_wait_are_told_their_own_turn_and_the_more_important_go_first() {
    let start = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_second(1), start);
    assert_eq!(empty(&mut bucket, start, Priority::Critical), 1);
    let places = [Priority::Bulk, Priority::Bulk, Priority::Normal].map(|p| bucket.line_up(p));
    let waits = places.each_ref().map(|place| bucket.take_at(start, place).unwrap_err());
    assert_eq!(waits, [SECOND * 2, SECOND * 3, SECOND]);
    // Who comes now does not overtake them, unless it is more important.
    assert_eq!(bucket.take(start, Priority::Bulk), Err(SECOND * 4));
    assert_eq!(bucket.take(start, Priority::Critical), Err(SECOND));
    let now = after(start, SECOND);
    assert!(bucket.take_at(now, &places[0]).is_err());
    bucket.take_at(now, &places[2]).unwrap();
    bucket.spend(now);
    bucket.leave(&places[2]);
    bucket.take_at(after(start, SECOND * 2), &places[0]).unwrap();
}

#[test]
fn who_waits_and_does_not_come_back_holds_up_nobody() {
    let start = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_second(1), start);
    assert_eq!(empty(&mut bucket, start, Priority::Critical), 1);
    let [asleep, awake] = [Priority::Critical, Priority::Bulk].map(|p| bucket.line_up(p));
    bucket.take_at(start, &asleep).unwrap_err();
    bucket.take_at(after(start, SECOND), &awake).unwrap_err();
    bucket.take_at(after(start, SECOND * 2), &awake).unwrap();
}

#[test]
fn a_token_that_is_out_keeps_its_place_and_goes_back_whole() {
    let start = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_second(1).burst(2), start);
    bucket.take(start, Priority::Critical).unwrap();
    let later = after(start, SECOND * 10);
    assert_eq!(bucket.wait(later, Priority::Critical), Duration::ZERO);
    assert_eq!(bucket.available(), 1, "no refill takes the place of a token that is out");
    bucket.give_back();
    assert_eq!(bucket.available(), 2);
    bucket.give_back();
    assert_eq!(bucket.available(), 2, "and nothing fills it past its brim");
}

#[test]
fn a_token_spent_for_nothing_goes_back() {
    let now = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_second(1).burst(2), now);
    bucket.take(now, Priority::Critical).unwrap();
    bucket.spend(now);
    assert_eq!(bucket.available(), 1);
    bucket.unspend();
    assert_eq!(bucket.available(), 2);
}

#[test]
fn a_429_empties_the_bucket_and_closes_it_for_as_long_as_is_asked() {
    let start = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_second(10), start);
    bucket.drain(start, None);
    assert_eq!(bucket.take(start, Priority::Critical), Err(SECOND / 10));
    bucket.drain(start, Some(SECOND * 3));
    bucket.drain(start, Some(SECOND));
    assert_eq!(bucket.take(start, Priority::Critical), Err(SECOND * 3 + SECOND / 10));
    let open = after(start, SECOND * 4);
    assert_eq!(empty(&mut bucket, open, Priority::Critical), 10, "the second after it is open again");
}

#[test]
fn nobody_closes_it_for_longer_than_an_hour() {
    let start = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_second(10), start);
    bucket.drain(start, Some(Duration::MAX));
    assert_eq!(bucket.wait(start, Priority::Critical), LONGEST_CLOSED + SECOND / 10);
    let mut bucket = Bucket::new(RateLimit::per_second(10), start);
    bucket.lower(start, 0, Some(LONGEST_CLOSED + SECOND));
    assert_eq!(bucket.wait(start, Priority::Critical), SECOND / 10, "what is further off is not believed");
}

#[test]
fn what_a_callee_says_is_left_lowers_the_bucket_and_never_raises_it() {
    let start = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_second(10), start);
    bucket.lower(start, 3, Some(SECOND * 60));
    assert_eq!(bucket.available(), 3);
    bucket.lower(start, u64::MAX, None);
    assert_eq!(bucket.available(), 3);
    bucket.lower(start, 0, Some(SECOND * 20));
    assert_eq!(bucket.wait(start, Priority::Critical), SECOND * 20 + SECOND / 10);
}

#[test]
fn a_sandbox_that_was_frozen_for_an_hour_finds_a_full_bucket() {
    let start = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_minute(1), start);
    assert_eq!(empty(&mut bucket, start, Priority::Critical), 1);
    let woken = Moment { wall: start.wall + SECOND * 3_600, ..start };
    bucket.take(woken, Priority::Bulk).unwrap();
}

#[test]
fn clocks_that_go_back_or_disagree_a_little_earn_nothing() {
    let start = after(some_moment(), SECOND * 100);
    let mut bucket = Bucket::new(RateLimit::per_second(1), start);
    assert_eq!(empty(&mut bucket, start, Priority::Critical), 1);
    let back = Moment { monotonic: start.monotonic - SECOND * 50, wall: start.wall };
    let set_back = Moment { wall: start.wall - SECOND * 50, ..start };
    for now in [back, start, back, start, set_back] {
        assert!(bucket.take(now, Priority::Critical).is_err());
    }
    // A wall clock that is set forward looks like a freeze. It fills the bucket once and does no more.
    assert_eq!(empty(&mut bucket, start, Priority::Critical), 1);
}

#[test]
fn the_largest_numbers_are_no_panic() {
    let now = some_moment();
    let mut bucket = Bucket::new(RateLimit::per_minute(u32::MAX).burst(u32::MAX), now);
    assert_eq!(bucket.available(), u32::MAX);
    bucket.take(now, Priority::Bulk).unwrap();
    bucket.drain(now, Some(Duration::MAX));
    bucket.wait(after(now, SECOND * 4_000_000_000), Priority::Bulk);
    let mut never = Bucket::new(RateLimit::per_second(0), now);
    never.take(now, Priority::Critical).unwrap();
    never.spend(now);
    assert_eq!(never.take(now, Priority::Critical), Err(Duration::MAX));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Drain,
    GiveBack,
    Pass(u64),
    Spend,
    Take(Priority),
}

fn step() -> impl Strategy<Value = Step> {
    let priority = (0..3_usize).prop_map(|at| ALL[at]);
    prop_oneof![
        1 => Just(Step::Drain),
        2 => Just(Step::GiveBack),
        4 => (0..400_u64).prop_map(Step::Pass),
        8 => Just(Step::Spend),
        12 => priority.prop_map(Step::Take),
    ]
}

proptest! {
    #[test]
    fn in_no_window_more_is_sent_than_burst_and_rate_allow(
        rate in 1..20_u32,
        burst in 1..8_u32,
        steps in proptest::collection::vec(step(), 0..150),
    ) {
        let start = some_moment();
        let mut bucket = Bucket::new(RateLimit::per_second(rate).burst(burst), start);
        let (mut millis, mut out, mut sent) = (0_u64, 0_u32, Vec::new());
        for step in steps {
            let now = after(start, Duration::from_millis(millis));
            match step {
                Step::Drain => bucket.drain(now, None),
                Step::GiveBack if out > 0 => {
                    bucket.give_back();
                    out -= 1;
                }
                Step::Spend if out > 0 => {
                    bucket.spend(now);
                    out -= 1;
                    sent.push(millis);
                }
                Step::Take(priority) if bucket.take(now, priority).is_ok() => {
                    out += 1;
                    let kept = RateLimit::per_second(rate).burst(burst).kept_from(priority);
                    prop_assert!(bucket.available() >= kept, "{priority:?} took of the reserved part");
                }
                Step::Pass(time) => millis += time,
                _ => {}
            }
            prop_assert!(bucket.available() + out <= burst);
        }
        for (first, from) in sent.iter().enumerate() {
            for (last, to) in sent.iter().enumerate().skip(first) {
                let allowed = u64::from(burst) * 1_000 + u64::from(rate) * (to - from);
                prop_assert!((last - first + 1) as u64 * 1_000 <= allowed);
            }
        }
    }

    #[test]
    fn who_waits_as_long_as_it_was_told_is_admitted(
        rate in 1..50_u32,
        burst in 1..10_u32,
        at in 0..3_usize,
        closed in 0..5_000_u64,
    ) {
        let start = some_moment();
        let mut bucket = Bucket::new(RateLimit::per_second(rate).burst(burst), start);
        bucket.drain(start, Some(Duration::from_millis(closed)));
        let wait = bucket.take(start, ALL[at]).unwrap_err();
        prop_assert!(bucket.take(after(start, wait), ALL[at]).is_ok());
    }

    #[test]
    fn no_order_of_readings_earns_more_than_the_time_that_passed(
        readings in proptest::collection::vec((0..10_000_u64, 0..10_000_u64), 1..60),
    ) {
        let start = some_moment();
        let mut bucket = Bucket::new(RateLimit::per_second(10).burst(1_000), start);
        empty(&mut bucket, start, Priority::Critical);
        let latest = readings.iter().map(|(monotonic, _)| *monotonic).max().unwrap_or_default();
        for (monotonic, skew) in readings {
            // The wall clock of another thread's reading, at most half a second off.
            let wall = start.wall + Duration::from_millis(monotonic + skew % 500);
            bucket.wait(Moment { monotonic: start.monotonic + Duration::from_millis(monotonic), wall }, Priority::Bulk);
        }
        prop_assert!(u64::from(bucket.available()) <= latest / 100);
    }
}
