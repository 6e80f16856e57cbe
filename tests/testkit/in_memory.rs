//! A gateway without a socket does what one with a socket does, and takes no time.

use eastwest::testing::{
    Ambient, Delivery, FakeGateway, GatewayBuilder, GatewayResponse, ManualClock, Network, Outgoing, Reply,
};
use eastwest::{CallContext, Error, ErrorKind, Profile, Response, RetryBudget, ServiceClient};
use std::pin::Pin;
use std::time::Duration;

const AN_HOUR: Duration = Duration::from_secs(3_600);

fn answering(script: impl IntoIterator<Item = Reply>) -> GatewayBuilder {
    FakeGateway::builder().manual_clock(&ManualClock::new()).route("POST", "/orders", script)
}

async fn post(gateway: &FakeGateway) -> Result<Response, Error> {
    post_within(Duration::from_secs(4), gateway).await
}

async fn post_within(attempt: Duration, gateway: &FakeGateway) -> Result<Response, Error> {
    let client = gateway.client().max_attempts(2).attempt_timeout(attempt).connect_timeout(attempt);
    client.build().unwrap().post(&CallContext::root(), "/orders").json(&["A-7"]).send().await
}

/// What a call came to, in memory or over a socket.
fn told(result: &Result<Response, Error>, gateway: &FakeGateway) -> String {
    let seen: Vec<_> = gateway.attempts().iter().map(|a| (a.told().to_owned(), a.body().clone())).collect();
    match result {
        Ok(answer) => {
            format!("{} {:?} {:?} {seen:?}", answer.status(), answer.body(), classes(answer.attempts()))
        }
        Err(error) => {
            let (kind, stop) = (error.kind(), error.stop_reason());
            let (doubt, text) = (error.may_have_committed(), error.body());
            format!(
                "{kind:?} {stop:?} {doubt} {:?} {text:?} {:?} {seen:?}",
                error.status(),
                classes(error.attempts())
            )
        }
    }
}

fn classes(attempts: &[eastwest::Attempt]) -> Vec<&'static str> {
    attempts.iter().map(|attempt| attempt.class().as_str()).collect()
}

#[test]
fn a_client_that_was_not_given_the_gateway_without_a_socket_is_told_so_when_it_is_built() {
    let gateway = answering([]).without_socket();
    let builder = || {
        let (id, secret) = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        ServiceClient::builder(gateway.base_url()).region("eu-central-1").static_credentials(id, secret, None)
    };
    let error = builder().build().unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Configuration, Some("base_url")));
    assert!(error.to_string().contains("exchange_with"), "{error}");
    builder().exchange_with(gateway.in_memory()).build().unwrap();
}

#[tokio::test]
async fn a_gateway_that_was_shut_down_refuses_in_memory_as_over_a_socket() {
    for over_a_socket in [true, false] {
        let gateway = answering([order()]);
        let gateway = if over_a_socket { gateway.start().await.unwrap() } else { gateway.without_socket() };
        gateway.shutdown().await;
        assert_eq!(post(&gateway).await.unwrap_err().kind(), ErrorKind::Transport, "{over_a_socket}");
    }
}

fn order() -> Reply {
    Reply::json(201, r#"{"id":"o-1"}"#)
}

/// Holds that the script comes to the same in memory as over a socket.
async fn is_the_same(script: Vec<Reply>, attempt: Duration) {
    let over_a_socket = answering(script.clone()).start().await.unwrap();
    let in_memory = answering(script.clone()).without_socket();
    let expected = post_within(attempt, &over_a_socket).await;
    let found = post_within(attempt, &in_memory).await;
    assert_eq!(told(&found, &in_memory), told(&expected, &over_a_socket), "{script:?}");
    for sent in in_memory.attempts().iter().filter(|sent| !sent.body().is_empty()) {
        assert!(sent.signature_valid(), "{}", sent.explain());
    }
}

#[tokio::test]
async fn every_answer_and_every_fault_comes_to_the_same_in_memory_as_over_a_socket() {
    let mut scripts: Vec<Vec<Reply>> = GatewayResponse::ALL.iter().map(|kind| vec![kind.reply()]).collect();
    scripts.extend([
        vec![order()],
        vec![Reply::status(204)],
        vec![Reply::close(), order()],
        vec![Reply::garbage(), order()],
        vec![Reply::reset(), order()],
        vec![Reply::reset_before_reading(), order()],
        vec![order().drip(6, Duration::from_millis(1))],
        vec![order().truncate_after(3), order()],
        vec![order().close_after(99)],
        vec![order().reset_after(3), order()],
        vec![Reply::json(500, r#"{"message":"cut"}"#).truncate_after(3), order()],
        vec![(0..120).fold(order(), |reply, at| reply.header(format!("x-{at}"), "1"))],
        vec![order().header("not a name", "1")],
        vec![Reply::signature_expired(), order()],
        vec![Reply::dynamic(|attempt| Reply::json(200, attempt.order().to_string()))],
    ]);
    for script in scripts {
        is_the_same(script, Duration::from_secs(4)).await;
    }
}

#[tokio::test]
async fn what_takes_too_long_comes_to_the_same_in_memory_as_over_a_socket() {
    for slow in [
        Reply::stall(),
        order().delay(AN_HOUR),
        order().drip(1, AN_HOUR),
        order().stall_after(3),
        Reply::json(422, r#"{"code":"X"}"#).stall_after(3),
    ] {
        is_the_same(vec![slow], Duration::from_millis(60)).await;
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the runtime's own clock is what must not move")]
fn three_retries_an_hour_apart_need_no_sleep_and_no_socket() {
    // Without a driver for sockets a socket would panic, and on a paused clock a sleep would show.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let start = tokio::time::Instant::now();
        let busy = || Reply::unavailable().header("Retry-After", "3600");
        let clock = ManualClock::new();
        let gateway = FakeGateway::builder()
            .manual_clock(&clock)
            .route("POST", "/orders", [busy(), busy(), busy(), Reply::ok()])
            .without_socket();
        let client = gateway.client().profile(Profile::background()).total_timeout(6 * AN_HOUR);
        let client = client.retry_budget(RetryBudget::off()).build().unwrap();
        client.post(&CallContext::root(), "/orders").send().await.unwrap();
        assert_eq!(clock.waits(), [AN_HOUR + Duration::from_secs(5); 3]);
        assert_eq!(start.elapsed(), Duration::ZERO);
        gateway.assert_attempts(4).assert_same_key().assert_resigned();
    });
}

#[tokio::test]
async fn an_attempt_that_stalls_takes_its_timeout_by_the_clock_and_is_no_wait() {
    let clock = ManualClock::new();
    let gateway = FakeGateway::builder()
        .manual_clock(&clock)
        .route(
            "GET",
            "/orders",
            [Reply::stall(), Reply::json(200, "12").stall_after(1), Reply::ok().delay(AN_HOUR)],
        )
        .without_socket();
    let client = gateway.client().build().unwrap();
    let before = clock.wall();
    for seconds in [4, 8, 12] {
        let call = client.get(&CallContext::root(), "/orders").max_attempts(1);
        assert_eq!(call.send().await.unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(clock.wall(), before + Duration::from_secs(seconds));
    }
    assert!(clock.waits().is_empty());
}

#[tokio::test]
async fn a_refused_connection_was_never_sent_and_is_tried_again() {
    let gateway = answering([Reply::refuse(), Reply::ok()]).without_socket();
    let answer = post(&gateway).await.unwrap();
    assert_eq!(classes(answer.attempts()), ["never sent", "success"]);
    gateway.refuse_connections().await;
    let error = post(&gateway).await.unwrap_err();
    assert_eq!((error.kind(), error.may_have_committed()), (ErrorKind::Transport, false));
    gateway.accept_connections().await.unwrap();
    post(&gateway).await.unwrap();
}

#[tokio::test]
async fn over_a_socket_connections_are_refused_until_they_are_accepted_again_at_the_same_address() {
    let gateway = answering([Reply::refuse(), Reply::ok()]).start().await.unwrap();
    let (address, error) = (gateway.addr(), post(&gateway).await.unwrap_err());
    assert!(error.message().unwrap().contains("refuse_connections"), "a script cannot: {error}");
    assert!(gateway.story().to_string().contains("refuse_connections"), "{}", gateway.story());
    for _ in 0..2 {
        gateway.refuse_connections().await;
        let error = post(&gateway).await.unwrap_err();
        assert_eq!((error.kind(), error.may_have_committed()), (ErrorKind::Transport, false));
        gateway.accept_connections().await.unwrap();
        post(&gateway).await.unwrap();
    }
    assert_eq!(gateway.addr(), address);
}

#[tokio::test]
async fn what_is_sent_is_the_same_in_memory_as_over_a_socket_byte_for_byte() {
    let (over_a_socket, in_memory) = (answering([]).start().await.unwrap(), answering([]).without_socket());
    let mut sent = Vec::new();
    for gateway in [&over_a_socket, &in_memory] {
        let client = gateway.client().build().unwrap();
        let context = CallContext::root();
        for call in [
            client.get(&context, "/a b/é").segment("x/y").query("q", "ü & z+1'").query("empty", ""),
            client.post(&context, "/orders").header("x-own", "1").idempotency_key("k"),
            client.put(&context, "/orders").body("{}").idempotency_key("k"),
        ] {
            // Where there is no route, the signature is verified all the same.
            let _ = call.send().await;
        }
        let names = |line: &String| line.split(':').next().unwrap_or_default().to_owned();
        sent.push(
            gateway
                .assert_all_signed()
                .attempts()
                .iter()
                .map(|attempt| {
                    let mut headers: Vec<_> = attempt.header_lines().iter().map(names).collect();
                    headers.sort();
                    (
                        attempt.method().to_owned(),
                        attempt.target().to_owned(),
                        attempt.body().clone(),
                        headers,
                    )
                })
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(sent[0].len(), 3);
    assert_eq!(sent[0], sent[1]);
}

/// A network of a test's own: it says what it was asked for, after a while.
struct Echo;

impl Network for Echo {
    fn exchange<'a>(
        &'a self,
        request: Outgoing,
        timeout: Duration,
        ambient: &'a dyn Ambient,
    ) -> Pin<Box<dyn Future<Output = Delivery> + Send + 'a>> {
        Box::pin(async move {
            ambient.pass(timeout / 2).await;
            Delivery::Answered(http::Response::new(request.target.into()))
        })
    }
}

#[tokio::test]
async fn what_is_not_the_gateway_may_stand_in_for_sockets_too() {
    let clock = ManualClock::new();
    let client = ServiceClient::builder("https://orders.example/v1")
        .region("eu-central-1")
        .static_credentials("AKIDEXAMPLE", "secret", None)
        .ambient(clock.clone())
        .exchange_with(Echo);
    let before = clock.wall();
    let answer = client.build().unwrap().get(&CallContext::root(), "/orders").query("page", 2).send().await;
    assert_eq!(answer.unwrap().body(), "/v1/orders?page=2");
    assert_eq!(clock.wall(), before + Duration::from_secs(2));
}

#[tokio::test]
async fn a_body_over_the_gateway_s_limit_and_an_answer_over_the_client_s_are_told_in_memory_too() {
    let gateway = answering([Reply::json(200, "x".repeat(100))]).without_socket();
    let client = gateway.client().request_body_limit(20_000_000).response_body_limit(99).build().unwrap();
    let call = || client.post(&CallContext::root(), "/orders");
    assert_eq!(call().body(vec![b'x'; 10_485_761]).send().await.unwrap_err().status().unwrap(), 413);
    assert_eq!(call().send().await.unwrap_err().kind(), ErrorKind::TooLarge);
}
