//! What a failed call tells, and what it never tells.

use crate::rig::{Rig, SECRET, TOKEN};
use eastwest::testing::Reply;
use eastwest::{CallContext, Class, ErrorKind, StopReason};
use std::error::Error as _;
use std::time::Duration;

#[tokio::test]
async fn a_doubt_once_had_stays_to_the_end() {
    let rig =
        Rig::answering([Reply::integration_timeout(), Reply::throttled(), Reply::json(404, "{}")]).await;
    let error = rig.post().await.unwrap_err();
    assert!(error.may_have_committed());
    assert_eq!(error.status().unwrap().as_u16(), 404);
    let rig = Rig::answering([Reply::throttled(), Reply::json(404, "{}")]).await;
    assert!(!rig.post().await.unwrap_err().may_have_committed());
}

#[tokio::test]
async fn an_error_carries_all_that_is_needed_to_ask_about_it() {
    let rig = Rig::answering([Reply::unavailable(), Reply::lambda_failed()]).await;
    let context = CallContext::root().with_correlation_id("order-77").unwrap();
    let call = rig.client().post(&context, "/orders").idempotency_key("key-77").max_attempts(2);
    let error = call.send().await.unwrap_err();
    assert_eq!((error.kind(), error.class()), (ErrorKind::Unavailable, Some(Class::BadGateway)));
    assert_eq!(error.gateway_error().map(|e| e.as_str()), Some("InternalServerErrorException"));
    assert_eq!(error.message(), Some("Internal server error"));
    assert_eq!((error.correlation_id(), error.idempotency_key()), (Some("order-77"), Some("key-77")));
    assert!(error.request_id().is_some());
    assert_eq!(error.attempts().len(), 2);
    assert_eq!(error.attempts()[0].wait_after(), Some(Duration::from_millis(100)));
    assert!(error.first_attempt_at().unwrap() < error.last_attempt_at().unwrap());
    assert!(error.elapsed() >= Duration::from_millis(100));
    assert_eq!(
        error.to_string(),
        "POST /prod/orders: 502 bad gateway (InternalServerErrorException); after 2 attempts; attempts exhausted; \
         it may have been carried out [correlation order-77, request 00000000-0000-4000-8000-000000000002]"
    );
}

#[tokio::test]
async fn what_only_reads_leaves_no_doubt_behind() {
    let rig = Rig::answering([Reply::integration_timeout()]).await;
    let error = rig.client().get(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert!(!error.may_have_committed());
    assert!(!error.to_string().contains("carried out"), "{error}");
    let rig = Rig::answering([Reply::json(200, "{}")]).await;
    let answer = rig.client().get(&CallContext::root(), "/orders").send().await.unwrap();
    let error = answer.json::<u32>().unwrap_err();
    assert!(!error.may_have_committed());
    let text = error.to_string();
    assert!(
        text.starts_with("GET /prod/orders: the body of the 200 (2 bytes, application/json) is not"),
        "{text}"
    );
    assert!(text.contains("something else than u32 (line 1, column 0)"), "{text}");
}

#[tokio::test]
async fn an_html_page_does_not_hide_the_status() {
    let page = "<html><body>502</body></html>";
    let rig = Rig::answering([Reply::status(502).header("content-type", "text/html").body(page)]).await;
    let error = rig.post().await.unwrap_err();
    assert_eq!((error.status().unwrap().as_u16(), error.message()), (502, None));
    assert_eq!(rig.seen(), 2, "502 is retried once, whatever its body");
    let rig = Rig::answering([Reply::status(200).header("content-type", "text/html").body(page)]).await;
    let error = rig.post().await.unwrap().json::<Vec<u8>>().unwrap_err();
    assert_eq!((error.kind(), error.status().unwrap().as_u16()), (ErrorKind::Decode, 200));
    assert!(error.to_string().contains("text/html"), "{error}");
    assert!(error.may_have_committed());
    assert_eq!(rig.seen(), 1);
}

#[tokio::test]
async fn an_empty_answer_decodes_to_nothing_and_not_to_something() {
    for empty in [Reply::status(204), Reply::status(200)] {
        let rig = Rig::answering([empty]).await;
        let response = rig.post().await.unwrap();
        assert_eq!(response.json::<Option<u32>>().unwrap(), None);
        response.json::<()>().unwrap();
        let error = response.json::<u32>().unwrap_err();
        assert_eq!(error.status(), Some(response.status()));
        assert_eq!(rig.seen(), 1);
    }
}

#[tokio::test]
async fn no_secret_and_no_body_is_in_any_printed_form() {
    let reply = Reply::json(400, r#"{"message":"m","note":"answer-body"}"#);
    let rig = Rig::answering([reply]).await;
    let client = rig.client();
    let call = client
        .post(&CallContext::root(), "/orders")
        .query("q", "query-value")
        .header("x-own", "header-value")
        .json(&["request-body"]);
    let mut printed = format!("{client:?} {call:?} {:?}", rig.builder());
    let error = call.send().await.unwrap_err();
    printed += &format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        printed += &format!("{cause} {cause:?}");
        source = cause.source();
    }
    let signature = rig.attempts()[0].header("authorization").unwrap().rsplit('=').next().unwrap().to_owned();
    for secret in [SECRET, TOKEN, &signature, "query-value", "header-value", "request-body", "answer-body"] {
        assert!(!printed.contains(secret), "{secret} in {printed}");
    }
}

#[tokio::test]
async fn a_callee_s_error_can_be_read_as_its_own_type() {
    #[derive(serde::Deserialize)]
    struct Own {
        code: String,
    }
    let rig = Rig::answering([Reply::json(422, r#"{"code":"OUT_OF_STOCK"}"#)]).await;
    let error = rig.post().await.unwrap_err();
    assert_eq!(error.json::<Own>().unwrap().code, "OUT_OF_STOCK");
    assert_eq!(error.stop_reason(), Some(StopReason::NotRetryable));
    assert_eq!(error.json::<Vec<u8>>().unwrap_err().kind(), ErrorKind::Decode);
}

#[test]
fn every_class_has_a_kind_and_the_table_in_the_docs_says_which() {
    let documented = include_str!("../../src/error_kind.rs");
    let rows: Vec<(Vec<String>, String)> = documented
        .lines()
        .skip_while(|line| !line.contains("| class | kind |"))
        .skip(2)
        .take_while(|line| line.trim_start().starts_with("/// |"))
        .map(|line| {
            let mut cells = line.trim_start().trim_start_matches("/// |").trim_end_matches('|').split('|');
            let classes = cells.next().unwrap().split(';').next().unwrap();
            let classes = classes.split(", ").map(|c| c.trim().to_owned()).collect();
            (classes, cells.next().unwrap().trim().trim_matches('`').to_owned())
        })
        .collect();
    for class in Class::ALL.iter().copied().filter(|class| *class != Class::Success) {
        let name = class.as_str().replace(',', "");
        let (_, kind) = rows.iter().find(|(classes, _)| classes.contains(&name)).expect(&name);
        assert_eq!(&format!("{:?}", ErrorKind::of_class(class)), kind, "{name}");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_text_is_told_with_its_size_and_its_request_s_id() {
    let rig =
        Rig::answering([Reply::status(200).body("grüße"), Reply::status(200).body(vec![0xffu8, 0xfe])]).await;
    let answer = rig.post().await.unwrap();
    let id = "00000000-0000-4000-8000-000000000001";
    assert_eq!((answer.text().unwrap(), answer.request_id()), ("grüße", Some(id)));
    let error = rig.post().await.unwrap().text().map(str::to_owned).unwrap_err();
    assert_eq!((error.kind(), error.status().unwrap().as_u16()), (ErrorKind::Decode, 200));
    assert!(error.to_string().contains("(2 bytes, no content type) is not UTF-8 text"), "{error}");
    assert!(error.may_have_committed());
}
