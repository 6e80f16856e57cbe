//! The hint of a server: a floor, in all its forms, and never an endless one.

use crate::rig::Rig;
use eastwest::StopReason;
use eastwest::policy::moment::Draw;
use eastwest::testing::Reply;
use std::time::Duration;

fn limited(hint: &str) -> Reply {
    Reply::throttled().header("retry-after", hint)
}

#[tokio::test]
async fn a_date_is_a_wait_and_not_a_number() {
    for format in ["imf", "rfc850", "asctime"] {
        // The gateway's clock is the test's: noon.
        let hint = match format {
            "imf" => "Fri, 02 Oct 2026 12:00:03 GMT",
            "rfc850" => "Friday, 02-Oct-26 12:00:03 GMT",
            _ => "Fri Oct  2 12:00:03 2026",
        };
        let rig = Rig::answering([limited(hint), Reply::ok()]).await;
        rig.clock.set_draw(Draw::LOWEST);
        rig.post().await.unwrap();
        assert_eq!(rig.waits(), [3_000], "{format}");
    }
}

#[tokio::test]
async fn a_hint_is_never_cut_short_and_a_little_jitter_comes_on_top() {
    let rig = Rig::answering([limited("2"), Reply::ok()]).await;
    rig.post().await.unwrap();
    assert_eq!(rig.waits(), [3_000], "2 s and half as much at the most");
}

#[tokio::test]
async fn junk_and_the_past_are_no_hint_and_never_a_wait_of_zero() {
    for hint in ["soon", "-1", "1.5", "0", "+3", "Fri, 02 Oct 2026 11:59:00 GMT"] {
        let rig = Rig::answering([limited(hint), Reply::ok()]).await;
        rig.clock.set_draw(Draw::LOWEST);
        rig.post().await.unwrap();
        assert_eq!(rig.waits(), [50], "{hint}");
    }
    let twice = Reply::throttled().header("retry-after", "1").header("retry-after", "1");
    let rig = Rig::answering([twice, Reply::ok()]).await;
    rig.clock.set_draw(Draw::LOWEST);
    rig.post().await.unwrap();
    assert_eq!(rig.waits(), [50]);
}

#[tokio::test]
async fn an_enormous_hint_is_too_long_and_not_absent() {
    for hint in ["9223372037", "18446744073709551615", "18446744073709551616", "9".repeat(40).as_str()] {
        let rig = Rig::answering([limited(hint), Reply::ok()]).await;
        let error = rig.post().await.unwrap_err();
        assert_eq!((rig.seen(), rig.waits()), (1, vec![]), "{hint}");
        assert_eq!(error.stop_reason(), Some(StopReason::TimeBudgetExhausted));
        assert!(error.retry_after().unwrap() >= Duration::from_secs(9_223_372_037));
    }
}

#[tokio::test]
async fn a_hint_past_the_deadline_ends_the_call_at_once() {
    let rig = Rig::answering([limited("60"), Reply::ok()]).await;
    let error = rig.post_with(|call| call.total_timeout(Duration::from_secs(3))).await.unwrap_err();
    assert_eq!((rig.seen(), rig.waits()), (1, vec![]));
    assert_eq!(error.stop_reason(), Some(StopReason::TimeBudgetExhausted));
    assert_eq!(error.status().unwrap().as_u16(), 429);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(60)));
    let rig = Rig::answering([limited("1"), Reply::ok()]).await;
    rig.post_with(|call| call.total_timeout(Duration::from_secs(3))).await.unwrap();
    assert_eq!(rig.seen(), 2);
}
