//! Clocks, dice, credentials and the account's bucket, as a test sets them.

use eastwest::policy::moment::Draw;
use eastwest::testing::{FakeCredentials, FakeGateway, IdempotentCallee, ManualClock, Reply, TokenBucket};
use eastwest::{CallContext, ErrorKind, RetryBudget};
use std::time::Duration;

#[tokio::test]
async fn a_seed_repeats_waits_and_keys_from_run_to_run() {
    let run = async |seed: u64| {
        let clock = ManualClock::new();
        clock.seed(seed);
        let gateway = FakeGateway::builder()
            .manual_clock(&clock)
            .route("POST", "/orders", [Reply::unavailable(), Reply::unavailable(), Reply::ok()])
            .without_socket();
        let answer = gateway.client().build().unwrap().post(&CallContext::root(), "/orders").send().await;
        (clock.waits(), answer.unwrap().idempotency_key().unwrap().to_owned())
    };
    let (first, again, other) = (run(7).await, run(7).await, run(8).await);
    assert_eq!(first, again);
    assert!(first.0 != other.0 && first.1 != other.1);
    assert_ne!(first.0[0], Duration::from_millis(500), "the highest throw");
    let clock = ManualClock::new();
    clock.set_draw(Draw::LOWEST);
}

#[tokio::test]
async fn a_clock_that_is_off_is_found_out_once_and_the_signature_put_right() {
    for offset in [-3_600, 600] {
        let gateway = FakeGateway::builder()
            .manual_clock(&ManualClock::new())
            .clock_offset(offset)
            .route("GET", "/orders", [Reply::ok()])
            .without_socket();
        let client = gateway.client().build().unwrap();
        let get = || client.get(&CallContext::root(), "/orders").send();
        get().await.unwrap();
        get().await.unwrap();
        gateway.assert_attempts(3).assert_statuses([403, 200, 200]);
        gateway.set_clock_offset(0);
        get().await.unwrap();
        let statuses: Vec<_> =
            gateway.attempts()[3..].iter().map(|attempt| attempt.status().unwrap()).collect();
        assert_eq!(statuses, [403, 200], "and back again");
    }
}

#[tokio::test]
async fn one_bucket_throttles_two_gateways_and_fills_as_their_clock_goes_on() {
    let (clock, account) = (ManualClock::new(), TokenBucket::new(1, 2));
    let gateway = || {
        FakeGateway::builder().manual_clock(&clock).token_bucket(&account).route(
            "GET",
            "/x",
            [Reply::status(204)],
        )
    };
    let (one, other) = (gateway().start().await.unwrap(), gateway().without_socket());
    let clients = [&one, &other].map(|gateway| gateway.client().max_attempts(1).build().unwrap());
    let get = async |at: usize| clients[at].get(&CallContext::root(), "/x").send().await.map(drop);
    get(0).await.unwrap();
    get(1).await.unwrap();
    for at in [0, 1] {
        assert_eq!(get(at).await.unwrap_err().kind(), ErrorKind::Throttled);
    }
    clock.advance(Duration::from_secs(1));
    get(0).await.unwrap();
    assert_eq!((account.drawn(), account.refused()), (3, 2));
    assert_eq!(one.attempts()[1].told(), "429 TooManyRequestsException: the token bucket is empty");
}

#[tokio::test]
async fn a_provider_is_asked_once_for_many_calls_again_after_a_refusal_and_its_failure_is_told() {
    let gateway = FakeGateway::builder()
        .credentials("AKIDNEW", "new", None)
        .manual_clock(&ManualClock::new())
        .route("GET", "/x", [Reply::ok()])
        .without_socket();
    let credentials = FakeCredentials::new("AKIDOLD", "old", None);
    credentials.then("AKIDNEW", "new", None);
    let client = gateway.client().credentials_provider(credentials.clone()).build().unwrap();
    for _ in 0..3 {
        client.get(&CallContext::root(), "/x").send().await.unwrap();
    }
    gateway.assert_attempts(4).assert_statuses([403, 200, 200, 200]);
    assert_eq!((credentials.loads(), credentials.failures()), (2, 0));
    let failing = FakeCredentials::new("AKIDNEW", "new", None);
    failing.fail_next(1);
    let client = gateway.client().credentials_provider(failing.clone()).build().unwrap();
    let error = client.get(&CallContext::root(), "/x").send().await.unwrap_err();
    assert_eq!((error.kind(), failing.failures()), (ErrorKind::Credentials, 1));
    gateway.assert_attempts(4);
}

#[tokio::test]
async fn a_retry_that_meets_its_own_key_at_work_gets_the_reply_of_the_one_commit() {
    let callee = IdempotentCallee::new(|_, commit| Reply::json(201, commit.to_string()));
    let gateway = FakeGateway::builder()
        .manual_clock(&ManualClock::new())
        .route("POST", "/x", [callee.is_at_work_then(Reply::integration_timeout(), 2), callee.answers()])
        .without_socket();
    let client = gateway.client().max_attempts(4).retry_budget(RetryBudget::off()).build().unwrap();
    let answer = client.post(&CallContext::root(), "/x").send().await.unwrap();
    assert_eq!(answer.body(), "1");
    gateway.assert_attempts(4).assert_statuses([504, 409, 409, 201]).assert_same_key();
    callee.assert_commits(1);
}
