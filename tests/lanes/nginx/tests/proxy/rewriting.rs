//! nginx rewrites what is a proxy's to rewrite, and the signature stands; what is not, and it falls.

use crate::nginx::{Site, statuses};
use crate::rig::{Rig, header, real_now, root};
use eastwest::testing::{ManualClock, Reply};
use eastwest::{ErrorKind, ServiceClient, StopReason};
use http::Method;
use std::sync::Arc;
use std::time::Duration;

/// All that proxies commonly do to headers.
const BUSY: &str = "proxy_pass http://callee$request_uri;
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header Connection \"\";
    proxy_set_header Via \"1.1 lane\";
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header Accept-Encoding \"\";
    proxy_set_header Accept \"application/json\";
    proxy_set_header User-Agent \"lane\";
    proxy_set_header X-Amzn-Trace-Id \"Root=1-68dd0000-000000000000000000000001\";
    proxy_set_header traceparent \"00-000102030405060708090a0b0c0d0e0f-0001020304050607-00\";
    proxy_set_header Cookie \"\";";

#[tokio::test]
async fn headers_that_a_proxy_adds_rewrites_or_strips_leave_the_signature_standing() {
    let site = Site {
        forwarding: BUSY,
        ..Site::default()
    };
    let rig = Rig::new(site, [Reply::ok()]).await;
    let client = rig.client();
    let methods = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    for method in &methods {
        let call = client
            .request(&root(), method.clone(), "/orders")
            .header("accept-encoding", "gzip")
            .header(
                "x-amzn-trace-id",
                "Root=1-6858764a-5c96ac04102925a7698c3690;Sampled=0",
            )
            .header(
                "traceparent",
                "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-01",
            )
            .header("cookie", "a=1")
            .header("content-type", "application/json;  charset=utf-8");
        let call = if method.is_safe() {
            call
        } else {
            call.body("{\"sku\": \"A-7\"}")
        };
        call.send().await.unwrap();
    }
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![200; 7], 7));
    let each = |value: &'static str| vec![value; methods.len()];
    // Proof that nginx did all that it was told.
    assert_eq!(header(&arrived, "via"), each("1.1 lane"));
    assert_eq!(header(&arrived, "x-forwarded-for"), each("127.0.0.1"));
    assert_eq!(header(&arrived, "x-forwarded-proto"), each("http"));
    assert_eq!(header(&arrived, "x-real-ip"), each("127.0.0.1"));
    assert_eq!(header(&arrived, "accept"), each("application/json"));
    assert_eq!(header(&arrived, "user-agent"), each("lane"));
    assert!(
        header(&arrived, "x-amzn-trace-id")
            .iter()
            .all(|id| id.ends_with("01"))
    );
    assert!(
        header(&arrived, "traceparent")
            .iter()
            .all(|id| id.ends_with("-00"))
    );
    for stripped in ["accept-encoding", "cookie", "connection"] {
        assert!(header(&arrived, stripped).is_empty(), "{stripped}");
    }
}

#[tokio::test]
async fn a_connection_header_of_the_proxy_s_own_leaves_the_signature_standing() {
    let site = Site {
        // HTTP/1.0 and `Connection: close` are what nginx speaks unless told otherwise.
        forwarding: "proxy_pass http://callee$request_uri; proxy_set_header Host $http_host;",
        ..Site::default()
    };
    let rig = Rig::new(site, [Reply::ok()]).await;
    let client = rig.client();
    for body in ["", "order"] {
        client.post(&root(), "/orders").body(body).send().await.unwrap();
    }
    let (served, arrived) = rig.seen().await;
    assert_eq!((statuses(&served), arrived.len()), (vec![200; 2], 2));
    assert_eq!(header(&arrived, "connection"), ["close", "close"]);
}

#[tokio::test]
async fn path_and_query_pass_as_they_were_signed() {
    let rig = Rig::new(Site::default(), [Reply::ok()]).await;
    let paths = [
        "/orders/a%2Fb/%20c/d+e:@/%C3%A9/",
        "/orders/a%2Fb/c%20d/e%2Bf%25/%C3%A9%E6%97%A5",
    ];
    for path in paths {
        rig.also_answers(path, [Reply::ok()]);
    }
    let client = rig.client();
    let queried = |path: &str| {
        client
            .get(&root(), path)
            .query("z", "1")
            .query("a", "2/%2F+ &=")
            .query("a", "")
            .query("é", "日本")
            .query("", "x")
    };
    queried("/orders/a%2Fb/%20c/d+e:@/é/").send().await.unwrap();
    let data = ["a/b", "c d", "e+f%", "é日"];
    queried("/orders").segments(data).send().await.unwrap();
    let (served, arrived) = rig.seen().await;
    let query = "?z=1&a=2%2F%252F%2B%20%26%3D&a=&%C3%A9=%E6%97%A5%E6%9C%AC&=x";
    let targets = paths.map(|path| format!("/prod{path}{query}"));
    assert_eq!(
        arrived.iter().map(|attempt| attempt.target()).collect::<Vec<_>>(),
        targets
    );
    assert_eq!(
        served.iter().map(|line| line.uri.as_str()).collect::<Vec<_>>(),
        targets
    );
}

/// What the proofs above are worth: an nginx that changes what was signed is caught, by each of these.
#[tokio::test]
async fn a_proxy_that_changes_what_was_signed_is_told_as_a_signature_error_after_one_recovery() {
    let rewritings = [
        "proxy_pass http://callee$request_uri;",
        "proxy_pass http://callee$request_uri; proxy_set_header Host $http_host;
         proxy_set_header Content-Type application/xml;",
        "proxy_pass http://callee$request_uri; proxy_set_header Host $http_host;
         proxy_set_header X-Hop-Count 2;",
        "proxy_pass http://callee$request_uri; proxy_set_header Host $http_host;
         proxy_set_body '{\"sku\": \"A-8\"}';",
        "proxy_pass http://callee$request_uri&page=2; proxy_set_header Host $http_host;",
    ];
    for forwarding in rewritings {
        let site = Site {
            forwarding,
            ..Site::default()
        };
        let rig = Rig::new(site, [Reply::ok()]).await;
        let call = rig.client().post(&root(), "/orders").query("page", "1");
        let error = call.json(&[1]).send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Signature, "{forwarding}: {error:?}");
        assert_eq!(
            error.stop_reason(),
            Some(StopReason::RecoveryUsed),
            "{forwarding}"
        );
        assert!(!error.may_have_committed());
        let told = format!("{error} {error:?} {}", String::from_utf8_lossy(error.body()));
        assert!(!told.contains("nginx-session-token"), "{told}");
        let (served, arrived) = rig.seen_unverified().await;
        assert_eq!((statuses(&served), arrived.len()), (vec![403, 403], 2));
    }
}

#[tokio::test]
async fn a_path_that_nginx_normalises_is_caught() {
    let site = Site {
        forwarding: "proxy_pass http://callee/; proxy_set_header Host $http_host;",
        ..Site::default()
    };
    let rig = Rig::new(site, [Reply::ok()]).await;
    rig.also_answers("/orders/a/b", [Reply::ok()]);
    let call = rig.client().get(&root(), "/orders").segments(["a/b"]);
    assert_eq!(call.send().await.unwrap_err().kind(), ErrorKind::Signature);
    let (served, arrived) = rig.seen_unverified().await;
    assert_eq!(served[0].uri, "/prod/orders/a%2Fb");
    assert_eq!(arrived[0].target(), "/prod/orders/a/b");
}

#[tokio::test]
async fn a_clock_an_hour_behind_is_put_right_by_the_date_of_a_proxy() {
    let rig = Rig::new(Site::default(), [Reply::ok()]).await;
    let late = ManualClock::starting_at(real_now() - Duration::from_secs(3_600));
    let client: ServiceClient = rig.builder().ambient(Arc::new(late)).build().unwrap();
    assert_eq!(
        client
            .post(&root(), "/orders")
            .send()
            .await
            .unwrap()
            .attempts()
            .len(),
        2
    );
    assert_eq!(
        client
            .post(&root(), "/orders")
            .send()
            .await
            .unwrap()
            .attempts()
            .len(),
        1
    );
    let (served, arrived) = rig.seen_unverified().await;
    assert_eq!(statuses(&served), [403, 200, 200]);
    assert_eq!(
        arrived.iter().filter(|attempt| attempt.signature_valid()).count(),
        2
    );
}
