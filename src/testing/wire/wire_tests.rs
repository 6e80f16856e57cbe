//! What goes over the wire, whole or broken, as a raw client sees it.

use crate::testing::answers::reply::Reply;
use crate::testing::gateway::raw_client::{
    Client, ask, let_others_through, open, order, signed_order, strict,
};
use crate::testing::signature::signed::to_wire;
use crate::testing::signature::verdict::Verdict;
use crate::testing::wire::http::RawRequest;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const AN_HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_connection_is_used_again_and_its_exchanges_say_so() {
    let gateway = open([Reply::ok()]).await;
    let mut client = Client::connect(&gateway).await;
    client.ask(&order()).await;
    client.ask(&order()).await;
    ask(&gateway, &order()).await;
    let seen: Vec<_> = gateway.attempts().iter().map(|a| (a.order(), a.connection(), a.status())).collect();
    assert_eq!(seen, [(1, 1, Some(200)), (2, 1, Some(200)), (3, 2, Some(200))]);
    assert_eq!(gateway.connections(), 2);
}

#[tokio::test]
async fn requests_sent_ahead_and_byte_by_byte_are_all_answered() {
    let gateway = open([Reply::ok()]).await;
    let mut client = Client::connect(&gateway).await;
    let chunked = b"\r\nPOST /prod/orders HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n";
    let wire = [&to_wire(&order())[..], chunked, &to_wire(&order())[..]].concat();
    client.stream.set_nodelay(true).unwrap();
    for byte in wire {
        client.stream.write_all(&[byte]).await.unwrap();
    }
    for _ in 0..3 {
        assert_eq!(client.answer().await.status, 200);
    }
    let bodies: Vec<_> = gateway.attempts().iter().map(|attempt| attempt.body().clone()).collect();
    assert_eq!(bodies, ["{}", "[]", "{}"]);
}

#[tokio::test]
async fn answers_bear_the_headers_of_whoever_gives_them() {
    let gateway = open([Reply::ok(), Reply::throttled(), Reply::http_api_unavailable()]).await;
    let [callee, rest, http] =
        [ask(&gateway, &order()).await, ask(&gateway, &order()).await, ask(&gateway, &order()).await];
    for answer in [&callee, &rest] {
        let id = answer.header("x-amzn-requestid").unwrap();
        assert_eq!(id.parse::<uuid::Uuid>().unwrap().get_version_num(), 4);
        assert!(answer.header("x-amz-apigw-id").is_some());
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert!(answer.header("date").is_some());
    }
    assert_ne!(callee.header("x-amzn-requestid"), rest.header("x-amzn-requestid"));
    assert!(callee.header("x-amzn-trace-id").is_some() && callee.header("x-amzn-errortype").is_none());
    assert_eq!(rest.header("x-amzn-errortype"), Some("TooManyRequestsException"));
    assert_eq!((http.header("content-length"), http.header("content-type")), (Some("33"), None));
    assert!(http.header("apigw-requestid").is_some() && http.header("x-amzn-requestid").is_none());
}

#[tokio::test]
async fn a_header_of_the_script_takes_the_place_of_the_gateways() {
    let reply = Reply::ok()
        .header("date", "soon")
        .header("x-should-retry", "false")
        .without_header("X-Amzn-RequestId");
    let gateway = open([reply]).await;
    let answer = ask(&gateway, &order()).await;
    assert_eq!(answer.head.matches("ate: ").count(), 1, "{}", answer.head);
    assert_eq!((answer.header("date"), answer.header("x-should-retry")), (Some("soon"), Some("false")));
    assert_eq!(answer.header("x-amzn-requestid"), None);
}

#[tokio::test]
async fn an_answer_to_head_and_a_204_have_no_body() {
    let gateway = open([Reply::ok(), Reply::json(204, "{}"), Reply::ok()]).await;
    let mut client = Client::connect(&gateway).await;
    client.send(&RawRequest::new("HEAD", "/prod/orders").with_header("host", "h")).await;
    let head = client.head().await;
    assert!(head.contains("Content-Length: 11\r\n"), "{head}");
    client.send(&order()).await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 204 No Content\r\n") && !head.contains("Content-Length"), "{head}");
    assert_eq!(client.ask(&order()).await.status, 200);
}

#[tokio::test]
async fn close_reads_the_request_and_ends_the_connection_without_a_word() {
    let gateway = open([Reply::close()]).await;
    let mut client = Client::connect(&gateway).await;
    client.send(&order()).await;
    assert_eq!(client.rest().await.unwrap(), "");
    let attempts = gateway.attempts();
    assert_eq!((attempts[0].status(), &attempts[0].body()[..]), (None, &b"{}"[..]));
}

#[tokio::test]
async fn reset_reads_the_request_and_resets() {
    let gateway = open([Reply::reset()]).await;
    let mut client = Client::connect(&gateway).await;
    client.send(&order()).await;
    assert_eq!(client.rest().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(&gateway.attempts()[0].body()[..], b"{}");
}

#[tokio::test]
async fn reset_before_reading_does_not_wait_for_the_body() {
    let gateway = strict().route("POST", "/orders", [Reply::reset_before_reading(), Reply::ok()]);
    let gateway = gateway.start().await.unwrap();
    let mut client = Client::connect(&gateway).await;
    client
        .stream
        .write_all(b"POST /prod/orders HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(client.rest().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let attempts = gateway.attempts();
    assert_eq!((attempts[0].verdict(), attempts[0].status()), (&Verdict::NotChecked, None));
    assert_eq!(ask(&gateway, &signed_order()).await.status, 200);
}

#[tokio::test]
async fn hang_says_nothing_and_keeps_the_connection_open() {
    let gateway = open([Reply::hang()]).await;
    let mut client = Client::connect(&gateway).await;
    client.send(&order()).await;
    assert_eq!(gateway.wait_for_attempts(1).await[0].status(), None);
    let_others_through(&gateway).await;
    assert!(client.is_silent());
}

#[tokio::test]
async fn a_stalled_answer_stops_after_the_bytes_it_was_given() {
    let gateway = open([Reply::ok().stall_after(4)]).await;
    let mut client = Client::connect(&gateway).await;
    client.send(&order()).await;
    assert!(client.head().await.contains("Content-Length: 11\r\n"));
    while client.buffer.len() < 4 {
        client.stream.read_buf(&mut client.buffer).await.unwrap();
    }
    let_others_through(&gateway).await;
    assert_eq!(std::mem::take(&mut client.buffer), br#"{"ok"#);
    assert!(client.is_silent());
    assert_eq!(gateway.attempts()[0].status(), Some(200));
}

#[tokio::test]
async fn a_truncated_answer_promises_more_than_it_brings() {
    let gateway = open([Reply::ok().truncate_after(4), Reply::ok().truncate_after(99)]).await;
    let mut client = Client::connect(&gateway).await;
    client.send(&order()).await;
    let answer = client.rest().await.unwrap();
    assert!(answer.contains("Content-Length: 11\r\n") && answer.ends_with("\r\n\r\n{\"ok"), "{answer}");
    let mut client = Client::connect(&gateway).await;
    client.send(&order()).await;
    assert!(client.rest().await.unwrap().ends_with(r#"{"ok":true}"#));
}

#[tokio::test]
async fn a_dripping_answer_waits_before_every_piece_and_comes_whole() {
    let gateway = open([Reply::ok().drip(2, AN_HOUR), Reply::ok().drip(2, Duration::from_millis(1))]).await;
    let mut client = Client::connect(&gateway).await;
    client.send(&order()).await;
    client.head().await;
    let_others_through(&gateway).await;
    assert!(client.is_silent());
    assert_eq!(ask(&gateway, &order()).await.body, r#"{"ok":true}"#);
}

#[tokio::test]
async fn a_delayed_reply_is_recorded_at_once_and_comes_later() {
    let gateway = open([Reply::ok().delay(AN_HOUR), Reply::ok().delay(Duration::from_millis(1))]).await;
    let mut client = Client::connect(&gateway).await;
    client.send(&order()).await;
    gateway.wait_for_attempts(1).await;
    let_others_through(&gateway).await;
    assert!(client.is_silent());
    assert_eq!(ask(&gateway, &order()).await.status, 200);
}

#[tokio::test]
async fn garbage_is_no_http_and_ends_the_connection() {
    let gateway = open([Reply::garbage()]).await;
    let mut client = Client::connect(&gateway).await;
    client.send(&order()).await;
    let garbage = client.rest().await.unwrap();
    assert!(!garbage.is_empty() && !garbage.contains("HTTP/"), "{garbage}");
}

#[tokio::test]
async fn a_connection_ends_where_either_side_says_so() {
    let gateway = open([Reply::ok().keep_alive(false), Reply::ok()]).await;
    let wires: [&[u8]; 3] = [
        b"GET /prod/orders HTTP/1.1\r\nhost: h\r\n\r\n",
        b"GET /prod/orders HTTP/1.1\r\nhost: h\r\nConnection: foo, Close\r\n\r\n",
        b"GET /prod/orders HTTP/1.0\r\n\r\n",
    ];
    for wire in wires {
        let mut client = Client::connect(&gateway).await;
        client.stream.write_all(wire).await.unwrap();
        let answer = client.rest().await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("Connection: close\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_answered_counted_and_not_recorded() {
    let gateway = open([Reply::ok()]).await;
    let long = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(70_000));
    for (wire, status) in
        [("no request\r\n\r\n", "400"), (&*long, "431"), ("\x16\x03\x01\r\n\r\nrest", "400")]
    {
        let mut client = Client::connect(&gateway).await;
        client.stream.write_all(wire.as_bytes()).await.unwrap();
        assert!(client.rest().await.unwrap().starts_with(&format!("HTTP/1.1 {status} ")), "{wire:.20}");
    }
    assert_eq!(gateway.malformed_requests(), 3);
    assert!(gateway.attempts().is_empty());
}

#[tokio::test]
async fn a_target_that_is_no_uri_and_a_request_without_host_are_bad() {
    let gateway = open([Reply::ok()]).await;
    for wire in [
        "GET /prod/orders?q=a b HTTP/1.1\r\nhost: h\r\n\r\n",
        "GET /prod/orders?q=é HTTP/1.1\r\nhost: h\r\n\r\n",
        "GET /prod/orders?q=a|b HTTP/1.1\r\nhost: h\r\n\r\n",
        "GET /prod/orders HTTP/1.1\r\n\r\n",
        "GET /prod/orders HTTP/1.1\r\nhost: h\r\nhost: h\r\n\r\n",
    ] {
        let mut client = Client::connect(&gateway).await;
        client.stream.write_all(wire.as_bytes()).await.unwrap();
        assert_eq!(client.answer().await.status, 400, "{wire}");
    }
    assert_eq!(gateway.attempts().len(), 5);
}

#[tokio::test]
async fn many_at_once_use_each_reply_once() {
    let replies = (0..20).map(|n| Reply::json(200, n.to_string())).chain([Reply::status(500)]);
    let gateway = Arc::new(open(replies).await);
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let gateway = Arc::clone(&gateway);
            tokio::spawn(async move { ask(&gateway, &order()).await.body })
        })
        .collect();
    let mut bodies = Vec::new();
    for task in tasks {
        bodies.push(task.await.unwrap().parse::<u32>().unwrap());
    }
    bodies.sort_unstable();
    assert_eq!(bodies, (0..20).collect::<Vec<_>>());
    let orders: Vec<usize> = gateway.attempts().iter().map(|attempt| attempt.order()).collect();
    assert_eq!(orders, (1..=20).collect::<Vec<_>>());
    assert_eq!(ask(&gateway, &order()).await.status, 500);
}

#[tokio::test]
async fn shutdown_cuts_connections_refuses_new_ones_and_keeps_the_record() {
    let gateway = open([Reply::hang()]).await;
    let mut client = Client::connect(&gateway).await;
    client.send(&order()).await;
    gateway.wait_for_attempts(1).await;
    gateway.shutdown().await;
    assert_eq!(client.rest().await.unwrap_or_default(), "");
    let refused = TcpStream::connect(gateway.addr()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(gateway.attempts().len(), 1);
    gateway.shutdown().await;
}

#[tokio::test]
async fn dropping_the_gateway_cuts_its_connections() {
    let gateway = open([Reply::hang()]).await;
    let mut client = Client::connect(&gateway).await;
    client.send(&order()).await;
    gateway.wait_for_attempts(1).await;
    drop(gateway);
    assert_eq!(client.rest().await.unwrap_or_default(), "");
}
