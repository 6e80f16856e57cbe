//! No call takes longer than it was given.

use crate::rig::{Rig, SHORT, builder};
use eastwest::policy::backoff::Backoff;
use eastwest::policy::profile::Profile;
use eastwest::testing::Reply;
use eastwest::{CallContext, ErrorKind, StopReason};
use std::time::{Duration, SystemTime};

#[test]
fn all_default_times_are_finite_and_the_attempts_fit_the_total() {
    for profile in [Profile::interactive(), Profile::standard(), Profile::background()] {
        assert!(profile.total_timeout() <= Duration::from_secs(60), "{}", profile.name());
        assert!(profile.attempt_timeout() < profile.total_timeout());
        assert!(profile.connect_timeout() < profile.attempt_timeout());
    }
}

/// The one test that waits for a default: it takes the least of them, a whole attempt, out of the callee's hands by
/// asking for the profile that waits least and looking at what the callee was told.
#[tokio::test]
async fn a_client_of_nothing_but_defaults_waits_for_the_time_that_its_profile_says() {
    let rig = Rig::answering([Reply::ok()]).await;
    let plain = || {
        eastwest::ServiceClient::builder(rig.gateway.base_url())
            .region(crate::rig::REGION)
            .static_credentials(crate::rig::KEY_ID, crate::rig::SECRET, Some(crate::rig::TOKEN))
            .ambient(rig.clock.clone())
    };
    for (client, profile) in [
        (plain(), Profile::standard()),
        (plain().profile(Profile::interactive()), Profile::interactive()),
        (plain().profile(Profile::background()), Profile::background()),
    ] {
        client.build().unwrap().get(&CallContext::root(), "/orders").send().await.unwrap();
        let told = rig.attempts().pop().unwrap().header("x-time-budget-ms").unwrap().to_owned();
        assert_eq!(told, profile.attempt_timeout().as_millis().to_string(), "{}", profile.name());
    }
    rig.gateway.script("ANY", "/orders", [Reply::unavailable()]);
    let error = plain().build().unwrap().get(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert_eq!(error.attempts().len(), Profile::standard().max_attempts() as usize);
}

#[tokio::test]
async fn a_gateway_that_never_answers_is_given_up() {
    let rig = Rig::answering([Reply::hang()]).await;
    let error = rig.post_with(|call| call.attempt_timeout(SHORT).max_attempts(2)).await.unwrap_err();
    assert_eq!((rig.seen(), error.kind()), (2, ErrorKind::Timeout));
    assert!(error.may_have_committed());
    assert!(error.attempts().iter().all(|attempt| attempt.status().is_none()));
}

#[tokio::test]
async fn a_body_that_stalls_is_a_timeout_too() {
    let stalled = || Reply::json(200, "0123456789").stall_after(3);
    let rig = Rig::answering([stalled()]).await;
    let error = rig.post_with(|call| call.attempt_timeout(SHORT).max_attempts(1)).await.unwrap_err();
    assert_eq!((rig.seen(), error.kind()), (1, ErrorKind::Timeout));
    let rig = Rig::answering([stalled(), Reply::ok()]).await;
    rig.post_with(|call| call.attempt_timeout(SHORT)).await.unwrap();
    assert_eq!(rig.seen(), 2);
}

#[tokio::test]
async fn a_body_that_drips_does_not_outlast_the_attempt() {
    let dripping = Reply::json(200, "0123456789".repeat(20)).drip(1, Duration::from_millis(5));
    let rig = Rig::answering([dripping, Reply::ok()]).await;
    rig.post_with(|call| call.attempt_timeout(SHORT)).await.unwrap();
    assert_eq!(rig.seen(), 2);
}

#[tokio::test]
async fn a_wait_that_does_not_fit_is_not_begun_and_the_error_keeps_the_last_outcome() {
    let rig = Rig::answering([Reply::unavailable()]).await;
    let base = Duration::from_millis(600);
    let call = |call: eastwest::Call| {
        call.total_timeout(Duration::from_secs(1)).backoff(Backoff::new(base, base, Duration::from_secs(2)))
    };
    let error = rig.post_with(call).await.unwrap_err();
    assert_eq!((rig.seen(), rig.waits()), (2, vec![600]));
    assert_eq!(error.stop_reason(), Some(StopReason::TimeBudgetExhausted));
    assert_eq!(error.status().unwrap().as_u16(), 503);
}

#[tokio::test]
async fn the_callee_is_told_how_long_this_attempt_will_be_waited_for() {
    let rig = Rig::answering([Reply::unavailable(), Reply::ok()]).await;
    let call = |call: eastwest::Call| {
        call.attempt_timeout(Duration::from_millis(900)).total_timeout(Duration::from_secs(1))
    };
    rig.post_with(call).await.unwrap();
    let told: Vec<_> =
        rig.attempts().iter().map(|a| a.header("x-time-budget-ms").unwrap().to_owned()).collect();
    assert_eq!(told, ["900", "900"], "100 ms were waited, so a total of 1 s leaves 900 ms");
    let client = rig.builder().without_time_budget_header().build().unwrap();
    client.get(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!(rig.attempts().last().unwrap().header("x-time-budget-ms"), None);
}

#[tokio::test]
async fn a_context_s_deadline_bounds_the_call() {
    let rig = Rig::answering([Reply::ok()]).await;
    let wall = eastwest::callee::accept([("x-hop-count", "1"), ("x-time-budget-ms", "31")]).unwrap();
    let call = builder(rig.gateway.base_url()).build().unwrap().get(&wall, "/orders");
    let error = call.send().await.unwrap_err();
    assert_eq!((rig.seen(), error.stop_reason()), (0, Some(StopReason::TimeBudgetExhausted)));
}

#[tokio::test]
async fn a_lambda_s_own_deadline_bounds_the_call_and_a_reserve_is_kept_before_it() {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
    let rig = Rig::answering([Reply::ok()]).await;
    let (passed, far) = (SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + 200 * YEAR);
    for (deadline, reserve, seen) in
        [(passed, Duration::ZERO, 0), (far, 300 * YEAR, 0), (far, Duration::ZERO, 1)]
    {
        let client = rig.builder().deadline_reserve(reserve).build().unwrap();
        let context = CallContext::root().with_lambda_deadline(deadline);
        let error = client.get(&context, "/orders").send().await.err();
        let expected = (seen == 0).then_some(StopReason::TimeBudgetExhausted);
        assert_eq!((rig.seen(), error.and_then(|error| error.stop_reason())), (seen, expected));
    }
}

#[tokio::test]
async fn a_call_takes_its_times_from_a_profile_of_its_own() {
    let rig = Rig::answering([Reply::ok()]).await;
    let client = eastwest::ServiceClient::builder(rig.gateway.base_url())
        .region(crate::rig::REGION)
        .static_credentials(crate::rig::KEY_ID, crate::rig::SECRET, Some(crate::rig::TOKEN))
        .ambient(rig.clock.clone())
        .build()
        .unwrap();
    let call = || client.get(&CallContext::root(), "/orders");
    call().profile(Profile::background()).send().await.unwrap();
    call().send().await.unwrap();
    let told: Vec<_> =
        rig.attempts().iter().map(|a| a.header("x-time-budget-ms").unwrap().to_owned()).collect();
    let times = [Profile::background(), Profile::standard()].map(|profile| profile.attempt_timeout());
    assert_eq!(told, times.map(|time| time.as_millis().to_string()));
    assert_ne!(told[0], told[1]);
}
