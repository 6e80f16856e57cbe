//! The guard's layer in front of a function of `lambda_http`, fed with events of both payload formats.

use eastwest::callee::{self, Guard, GuardService};
use eastwest::testing::{FakeGateway, Reply};
use eastwest::{CallContext, ServiceClient};
use lambda_http::tower::{Layer, Service, service_fn};
use lambda_http::{Body, Error, Request, Response, request};
use serde_json::{Value, json};

/// A handler as a function's owner writes it: it calls on, and answers for the call if that fails.
async fn handle(orders: ServiceClient, request: Request) -> Result<Response<Body>, Error> {
    let context = request.extensions().get::<CallContext>().ok_or("the layer left no context")?;
    Ok(match orders.post(context, "/orders").json(&["A-7"]).send().await {
        Ok(placed) => Response::new(Body::from(placed.into_body().to_vec())),
        Err(error) => {
            let (head, body) = error.to_response().into_parts();
            Response::from_parts(head, Body::from(String::from_utf8_lossy(&body).into_owned()))
        }
    })
}

fn guarded(
    guard: Guard,
    orders: ServiceClient,
) -> GuardService<impl Service<Request, Response = Response<Body>, Error = Error, Future: Send>> {
    callee::layer(guard).layer(service_fn(move |request| handle(orders.clone(), request)))
}

async fn orders(script: Reply) -> (FakeGateway, ServiceClient) {
    let gateway = FakeGateway::builder().credentials("AKIDLANE", "lane-secret", None).region("eu-central-1");
    let gateway = gateway.route("POST", "/orders", [script]).start().await.unwrap();
    let client = ServiceClient::builder(gateway.base_url()).region("eu-central-1");
    let client = client.static_credentials("AKIDLANE", "lane-secret", None).build().unwrap();
    (gateway, client)
}

/// An event of a REST API, with the case of names as they were sent (*Input format of a Lambda function for proxy
/// integration in API Gateway*).
fn v1(headers: &[(&str, &str)]) -> Request {
    let single: Value = headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let mut multi = serde_json::Map::new();
    for (name, value) in headers {
        multi.entry(*name).or_insert(json!([])).as_array_mut().unwrap().push(json!(value));
    }
    let event = json!({
        "resource": "/orders",
        "path": "/orders",
        "httpMethod": "POST",
        "headers": single,
        "multiValueHeaders": multi,
        "queryStringParameters": null,
        "multiValueQueryStringParameters": null,
        "pathParameters": null,
        "stageVariables": null,
        "requestContext": {
            "accountId": "123456789012",
            "resourceId": "123456",
            "stage": "prod",
            "requestId": "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
            "identity": {"sourceIp": "192.0.2.1"},
            "resourcePath": "/orders",
            "httpMethod": "POST",
            "apiId": "1234567890",
        },
        "body": "{}",
        "isBase64Encoded": false,
    });
    request::from_str(&event.to_string()).unwrap()
}

/// An event of an HTTP API or a function URL: lower case, and one value a name.
fn v2(headers: &[(&str, &str)]) -> Request {
    let headers: Value = headers.iter().map(|(name, value)| (name.to_lowercase(), json!(value))).collect();
    let event = json!({
        "version": "2.0",
        "routeKey": "POST /orders",
        "rawPath": "/orders",
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api-id",
            "domainName": "id.execute-api.eu-central-1.amazonaws.com",
            "domainPrefix": "id",
            "http": {
                "method": "POST",
                "path": "/orders",
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "agent",
            },
            "requestId": "id",
            "routeKey": "POST /orders",
            "stage": "$default",
            "time": "12/Mar/2026:19:03:58 +0000",
            "timeEpoch": 1_773_342_238_000_u64,
        },
        "body": "{}",
        "isBase64Encoded": false,
    });
    request::from_str(&event.to_string()).unwrap()
}

const FORMATS: [(&str, fn(&[(&str, &str)]) -> Request); 2] = [("1.0", v1), ("2.0", v2)];

fn text(answer: Response<Body>) -> String {
    match answer.into_body() {
        Body::Text(text) => text,
        Body::Binary(bytes) => String::from_utf8(bytes).unwrap(),
        _ => String::new(),
    }
}

#[tokio::test]
async fn a_function_finds_its_context_in_events_of_both_formats() {
    for (format, event) in FORMATS {
        let (gateway, client) = orders(Reply::json(201, r#"{"id":"o-1"}"#)).await;
        let event = event(&[("X-Hop-Count", "3"), ("X-Correlation-Id", "order-1"), ("X-Idempotency-Key", "k")]);
        let answer = guarded(Guard::new(), client).call(event).await.unwrap();
        assert_eq!((answer.status().as_u16(), text(answer).as_str()), (200, r#"{"id":"o-1"}"#), "{format}");
        let sent = gateway.attempts().pop().unwrap();
        assert!(sent.signature_valid(), "{format}: {}", sent.explain());
        let sent = ["x-hop-count", "x-correlation-id"].map(|name| sent.header(name));
        assert_eq!(sent, [Some("4"), Some("order-1")], "{format}");
    }
}

#[tokio::test]
async fn what_the_guard_refuses_is_answered_as_text_and_before_the_function() {
    let refusals: [(&[(&str, &str)], u16, &str); 4] = [
        (&[], 400, "MissingHopCount"),
        (&[("X-Hop-Count", "03")], 400, "InvalidHopCount"),
        (&[("X-Hop-Count", "8")], 508, "HopBudgetExhausted"),
        (&[("X-Hop-Count", "3")], 400, "MissingIdempotencyKey"),
    ];
    for (format, event) in FORMATS {
        for (headers, status, told) in refusals {
            let (gateway, client) = orders(Reply::ok()).await;
            let answer = guarded(Guard::new(), client).call(event(headers)).await.unwrap();
            assert_eq!(answer.headers()["x-should-retry"], "false", "{format}");
            assert!(matches!(answer.body(), Body::Text(_)), "{format}: it would go out in base64");
            assert_eq!(answer.status().as_u16(), status, "{format}");
            let body: Value = serde_json::from_str(&text(answer)).unwrap();
            assert_eq!((&body["type"], gateway.attempts().len()), (&json!(told), 0), "{format}");
        }
    }
}

#[tokio::test]
async fn a_loop_s_end_is_passed_back_with_its_status() {
    for (format, event) in FORMATS {
        let (gateway, client) = orders(Reply::ok()).await;
        let event = event(&[("X-Hop-Count", "7"), ("X-Idempotency-Key", "k")]);
        let answer = guarded(Guard::new(), client).call(event).await.unwrap();
        assert_eq!((answer.status().as_u16(), gateway.attempts().len()), (508, 0), "{format}");
    }
}

#[tokio::test]
async fn two_hop_counts_of_format_2_are_refused_and_of_format_1_the_last_is_kept() {
    let (_gateway, client) = orders(Reply::ok()).await;
    let mut function = guarded(Guard::new(), client);
    let joined = v2(&[("X-Hop-Count", "2,3"), ("X-Idempotency-Key", "k")]);
    assert_eq!(function.call(joined).await.unwrap().status().as_u16(), 400);
    // lambda_http lays the single-value headers over the others: nothing behind it can see that there were two.
    let twice = v1(&[("X-Hop-Count", "2"), ("X-Hop-Count", "7"), ("X-Idempotency-Key", "k")]);
    assert_eq!(function.call(twice).await.unwrap().status().as_u16(), 508);
}

#[tokio::test]
async fn the_service_is_one_that_lambda_http_can_run() {
    let (_gateway, client) = orders(Reply::ok()).await;
    // Not started: this machine is no Lambda, and that it compiles is the proof.
    drop(lambda_http::run(guarded(Guard::new(), client)));
}
