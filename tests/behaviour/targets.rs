//! What is signed is what is sent, whatever a caller puts into path, query, headers and body.

use crate::rig::{KEY_ID, REGION, Rig, SECRET, TOKEN, builder};
use eastwest::testing::{ANY, FakeGateway, RawRequest, Reply, VerifierSettings, verify};
use eastwest::{CallContext, ClientBuilder};
use http::Method;

/// A gateway that answers every path asked for here, with the client's clock.
async fn rig_for(path: &str) -> Rig {
    let rig = Rig::answering([Reply::ok()]).await;
    rig.gateway.script(ANY, path, [Reply::ok()]);
    rig
}

fn at(rig: &Rig, base: &str) -> ClientBuilder {
    builder(format!("http://{}{base}", rig.gateway.addr())).ambient(rig.clock.clone())
}

#[tokio::test]
async fn segments_are_encoded_once_and_the_signature_stands() {
    let encoded = "/users/a%20b%40x%3Ay/caf%C3%A9/50%25%2Foff/%24";
    let rig = rig_for(encoded).await;
    let call = rig.client().get(&CallContext::root(), "");
    call.segments(["users", "a b@x:y", "café", "50%/off", "$"]).send().await.unwrap();
    let attempt = rig.attempts().pop().unwrap();
    assert_eq!(attempt.target(), format!("/prod{encoded}"));
}

#[tokio::test]
async fn a_path_as_text_keeps_its_escapes_and_gets_the_ones_it_lacks() {
    let rig = rig_for("/a%2Fb/caf%C3%A9/x%20y/").await;
    rig.client().get(&CallContext::root(), "/a%2fb/café/x y/").send().await.unwrap();
    assert_eq!(rig.attempts()[0].target(), "/prod/a%2Fb/caf%C3%A9/x%20y/");
}

#[tokio::test]
async fn base_and_path_are_joined_by_exactly_one_slash_and_the_stage_is_kept() {
    let rig = rig_for("/orders").await;
    for (base, path) in
        [("/prod/", "/orders"), ("/prod", "orders"), ("/prod", "/orders"), ("/prod/", "orders")]
    {
        let client = at(&rig, base).build().unwrap();
        client.get(&CallContext::root(), path).send().await.unwrap();
    }
    assert!(rig.attempts().iter().all(|attempt| attempt.target() == "/prod/orders"));
    assert_eq!(rig.seen(), 4);
    let error = rig.client().get(&CallContext::root(), "orders//7").send().await.unwrap_err();
    assert_eq!((error.field(), rig.seen()), (Some("path"), 4));
}

#[tokio::test]
async fn a_query_is_sent_in_the_caller_s_order_and_in_the_strict_spelling() {
    let rig = rig_for("/orders").await;
    let call = rig.client().get(&CallContext::root(), "/orders");
    let call =
        call.query("q", "a b+c").query("id", "2").query("id", "1").query("flag", "").query("ü/?", "&=#");
    call.send().await.unwrap();
    let attempt = rig.attempts().pop().unwrap();
    assert_eq!(attempt.query(), Some("q=a%20b%2Bc&id=2&id=1&flag=&%C3%BC%2F%3F=%26%3D%23"));
}

#[tokio::test]
async fn an_endpoint_s_own_name_goes_with_the_api_s_id_and_both_are_signed() {
    let rig = rig_for("/orders").await;
    let client = rig.builder().api_id("abc123").build().unwrap();
    client.get(&CallContext::root(), "/orders").send().await.unwrap();
    let attempt = rig.attempts().pop().unwrap();
    assert_eq!(attempt.header("x-apigw-api-id"), Some("abc123"));
    let authorization = attempt.header("authorization").unwrap();
    assert!(
        authorization.contains("host;x-amz-date") && authorization.contains(";x-apigw-api-id;"),
        "{authorization}"
    );
    assert_eq!(attempt.header("host"), Some(rig.gateway.addr().to_string().as_str()));
    rig.client().get(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!(rig.attempts().pop().unwrap().header("x-apigw-api-id"), None);
    for bad in ["", "a/b", "a\n", "a b"] {
        assert_eq!(rig.builder().api_id(bad).build().unwrap_err().field(), Some("api_id"), "{bad:?}");
    }
}

#[tokio::test]
async fn a_private_endpoint_is_reached_by_its_address_while_the_api_s_own_name_is_signed_and_sent() {
    let rig = rig_for("/orders").await;
    let addr = rig.gateway.addr();
    let name = "abc123.execute-api.eu-central-1.amazonaws.com";
    let client = builder(format!("http://{name}:{}/prod", addr.port()))
        .dangerously_allow_http()
        .resolve(name, addr)
        .ambient(rig.clock.clone())
        .build()
        .unwrap();
    client.get(&CallContext::root(), "/orders").send().await.unwrap();
    let attempt = rig.attempts().pop().unwrap();
    assert_eq!(attempt.header("host"), Some(format!("{name}:{}", addr.port()).as_str()));
}

#[tokio::test]
async fn the_scope_is_the_configured_region_and_service_even_on_a_custom_domain() {
    let rig = rig_for("/orders").await;
    let client = builder(format!("http://orders.example.test:{}/prod", rig.gateway.addr().port()))
        .dangerously_allow_http()
        .resolve("orders.example.test", rig.gateway.addr())
        .ambient(rig.clock.clone())
        .build()
        .unwrap();
    client.get(&CallContext::root(), "/orders").send().await.unwrap();
    let authorization = rig.attempts()[0].header("authorization").unwrap().to_owned();
    assert!(
        authorization.contains(&format!("/20261002/{REGION}/execute-api/aws4_request")),
        "{authorization}"
    );
}

#[tokio::test]
async fn what_a_proxy_changes_on_the_way_is_not_in_the_signature() {
    let rig = rig_for("/orders").await;
    let incidental = ["accept-encoding", "via", "x-forwarded-for", "x-amzn-trace-id", "user-agent"];
    let call = rig.client().post(&CallContext::root(), "/orders").json(&[1]);
    incidental.iter().fold(call, |call, name| call.header(name, "as sent")).send().await.unwrap();
    let attempt = rig.attempts().pop().unwrap();
    let settings = VerifierSettings::new(REGION, "execute-api").credentials(KEY_ID, SECRET, Some(TOKEN));
    for name in incidental {
        let mut altered: RawRequest = attempt.request().clone();
        altered.replace_header(name, "as altered");
        let verification = verify(&altered, &settings, rig.clock.wall());
        assert!(verification.is_valid(), "{name}: {}", verification.explain());
    }
    let mut altered = attempt.request().clone();
    altered.replace_header("x-hop-count", "2");
    assert!(!verify(&altered, &settings, rig.clock.wall()).is_valid(), "what rides along is signed");
}

#[tokio::test]
async fn the_hash_is_of_the_bytes_that_go_out_for_every_method() {
    let rig = rig_for("/orders").await;
    let client = rig.client();
    for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        for body in ["", "{}"] {
            client.request(&CallContext::root(), method.clone(), "/orders").body(body).send().await.unwrap();
            assert_eq!(rig.attempts().pop().unwrap().body(), body, "{method}");
        }
    }
    assert_eq!(rig.attempts().len(), 10, "and every signature stood");
}

#[tokio::test]
async fn a_lattice_service_gets_an_unsigned_payload_and_a_function_url_its_own_scope() {
    for (service, marker) in [("vpc-lattice-svcs", Some("UNSIGNED-PAYLOAD")), ("lambda", None)] {
        let clock = eastwest::testing::ManualClock::new();
        let gateway = FakeGateway::builder()
            .credentials(KEY_ID, SECRET, Some(TOKEN))
            .region(REGION)
            .service(service)
            .allow_unsigned_payload(true)
            .manual_clock(&clock)
            .route("POST", "/orders", [Reply::ok()])
            .start()
            .await
            .unwrap();
        let client = builder(gateway.base_url()).service(service).ambient(clock).build().unwrap();
        client.post(&CallContext::root(), "/orders").body("x").send().await.unwrap();
        let attempt = gateway.attempts().pop().unwrap();
        assert!(attempt.signature_valid(), "{}", attempt.explain());
        assert_eq!(attempt.header("x-amz-content-sha256"), marker);
    }
}

#[tokio::test]
async fn an_ipv6_literal_and_a_port_are_signed_as_they_are_sent() {
    let Ok(listener) = tokio::net::TcpListener::bind("[::1]:0").await else {
        // A machine without IPv6 has nothing to show here.
        return;
    };
    let port = listener.local_addr().unwrap().port();
    let (sent, received) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        sent.send(head).unwrap();
    });
    let clock = eastwest::testing::ManualClock::new();
    let client = builder(format!("http://[::1]:{port}/prod")).ambient(clock.clone()).build().unwrap();
    client.get(&CallContext::root(), "/orders").send().await.unwrap();
    let request = RawRequest::parse(&received.await.unwrap()).unwrap();
    assert_eq!(request.header("host"), Some(format!("[::1]:{port}").as_str()));
    let settings = VerifierSettings::new(REGION, "execute-api").credentials(KEY_ID, SECRET, Some(TOKEN));
    let verification = verify(&request, &settings, clock.wall());
    assert!(verification.is_valid(), "{}", verification.explain());
}

#[tokio::test]
async fn a_slash_at_the_end_and_pairs_given_together_are_sent_and_signed() {
    let rig = rig_for("/orders/7/").await;
    let call = rig.client().head(&CallContext::root(), "/orders").segment(7).trailing_slash();
    call.query_pairs([("id", 2), ("id", 1)]).query("q", "x").send().await.unwrap();
    let attempt = rig.attempts().pop().unwrap();
    assert_eq!((attempt.method(), attempt.target()), ("HEAD", "/prod/orders/7/?id=2&id=1&q=x"));
}
