//! What the gateway refuses for its size, each limit at its last byte.

use crate::testing::answers::reply::Reply;
use crate::testing::gateway::raw_client::{Client, ask, open, order, strict};
use crate::testing::gateway::shared::ANY;
use crate::testing::signature::signed::Signer;
use crate::testing::wire::http::RawRequest;

#[tokio::test]
async fn a_body_over_ten_megabytes_is_refused_in_plain_text_and_the_connection_lives() {
    let gateway = strict().route("POST", "/orders", [Reply::ok()]).start().await.unwrap();
    let mut client = Client::connect(&gateway).await;
    let over = order().with_body(vec![b'x'; 10_485_761]);
    let answer = client.ask(&Signer::new().sign(over)).await;
    assert_eq!((answer.status, answer.header("content-type")), (413, Some("text/plain")));
    assert_eq!(answer.body, "HTTP content length exceeded 10485760 bytes.");
    let at_limit = order().with_body(vec![b'x'; 10_485_760]);
    assert_eq!(client.ask(&Signer::new().sign(at_limit)).await.status, 200);
}

#[tokio::test]
async fn headers_over_the_limit_are_refused_with_all_that_is_in_their_lines_and_use_no_reply_up() {
    let gateway = open([Reply::status(201), Reply::ok()]).await;
    let mut client = Client::connect(&gateway).await;
    // "host: 127.0.0.1", "content-length: 2" and "x-big: ", each with its line end.
    let filled = |bytes: usize| order().with_header("x-big", "x".repeat(bytes - 17 - 19 - 9));
    let answer = client.ask(&filled(10_241)).await;
    assert_eq!((answer.status, &*answer.body), (431, r#"{"message":"Request Header Fields Too Large"}"#));
    assert_eq!(client.ask(&filled(10_240)).await.status, 201);
    let seen: Vec<_> = gateway.attempts().iter().map(|attempt| attempt.status()).collect();
    assert_eq!(seen, [Some(431), Some(201)]);
}

#[tokio::test]
async fn a_url_over_the_limit_is_refused_before_route_and_signature_are_looked_at() {
    let gateway = strict().route(ANY, "/orders", [Reply::ok()]).start().await.unwrap();
    let begin = "http://127.0.0.1/prod/orders?q=".len();
    let order = |characters: usize| {
        let target = format!("/prod/orders?q={}", "x".repeat(characters - begin));
        RawRequest::new("GET", target).with_header("host", "127.0.0.1")
    };
    let answer = ask(&gateway, &order(10_241)).await;
    assert_eq!((answer.status, &*answer.body), (414, r#"{"message":"Request URI too long"}"#));
    assert_eq!(ask(&gateway, &Signer::new().sign(order(10_240))).await.status, 200);
    let absolute =
        RawRequest::new("GET", format!("http://h/{}", "x".repeat(10_232))).with_header("host", "h");
    assert_eq!(ask(&gateway, &absolute).await.status, 414);
}
