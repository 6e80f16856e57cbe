//! One case, sent through the client to a gateway of its own.

use crate::case::{Case, Key};
use eastwest::testing::{FakeGateway, ManualClock, RecordedAttempt, Reply};
use eastwest::{CallContext, ServiceClient, callee};
use std::error::Error;
use std::sync::Arc;

/// Sends a request, and answers what arrived. The gateway has verified the signature, or it would not have answered 200.
pub(crate) async fn send(case: &Case) -> Result<RecordedAttempt, Box<dyn Error>> {
    let clock = ManualClock::starting_at(case.at);
    let gateway = gateway(case, &clock).await?;
    let client = client(case, &clock, &gateway)?;
    let context = match &case.inbound {
        Some((hop, id)) => {
            callee::accept([("x-hop-count", hop.to_string()), ("x-correlation-id", id.clone())])?
        }
        None => CallContext::root(),
    };
    let mut call = client
        .request(&context, case.method.clone(), &case.path.text)
        .segments(&case.path.segments)
        .body(case.body.clone());
    for (name, value) in &case.query {
        call = call.query(name, value);
    }
    for (name, value) in &case.headers {
        call = call.header(name, value);
    }
    call = match &case.key {
        Key::Fresh => call,
        Key::Given(key) => call.idempotency_key(key),
        Key::None => call.no_idempotency_key(),
    };
    let sent = call.send().await;
    let arrived = gateway.attempts();
    gateway.shutdown().await;
    let told: Vec<String> = arrived.iter().map(RecordedAttempt::explain).collect();
    let answer = sent.map_err(|error| format!("{error:?}\n{}", told.join("\n")))?;
    match <[RecordedAttempt; 1]>::try_from(arrived) {
        Ok([attempt]) if answer.status() == 200 && attempt.body() == &case.body => Ok(attempt),
        Ok([attempt]) => Err(format!("another body, or {:?}", attempt.status()).into()),
        Err(arrived) => Err(format!("it arrived {} times", arrived.len()).into()),
    }
}

async fn gateway(case: &Case, clock: &ManualClock) -> std::io::Result<FakeGateway> {
    let time = clock.clone();
    let credentials = &case.credentials;
    let stage = encoded(case.stage);
    // The base itself arrives as the root.
    let path = Some(case.path.on_the_wire()).filter(|path| !path.is_empty());
    FakeGateway::builder()
        .credentials(&credentials.id, &credentials.secret, credentials.token.as_deref())
        .region(case.region)
        .service(case.service.name())
        .allow_unsigned_payload(true)
        .stage(stage)
        .clock(Arc::new(move || time.wall()))
        .route("ANY", path.as_deref().unwrap_or("/"), [Reply::ok()])
        .start()
        .await
}

fn client(case: &Case, clock: &ManualClock, gateway: &FakeGateway) -> Result<ServiceClient, eastwest::Error> {
    let address = gateway.addr();
    let (host, stage) = (case.host, case.stage);
    let credentials = case.credentials.clone();
    let builder = ServiceClient::builder(format!("http://{host}:{}/{stage}", address.port()))
        .region(case.region)
        .service(case.service.name())
        .static_credentials(credentials.id, credentials.secret, credentials.token.as_deref())
        .idempotency_header(case.idempotency_header)
        .dangerously_allow_http()
        .resolve(known_to_the_resolver(host), address)
        .max_attempts(1)
        .ambient(Arc::new(clock.clone()));
    match &case.api_id {
        Some(id) => builder.api_id(id),
        None => builder,
    }
    .build()
}

/// A host as it is looked up: in lower case, and in Punycode.
fn known_to_the_resolver(host: &str) -> String {
    match host {
        "bücher.example.test" => "xn--bcher-kva.example.test".to_owned(),
        other => other.to_ascii_lowercase(),
    }
}

fn encoded(stage: &str) -> String {
    stage.replace('ö', "%C3%B6").replace('ß', "%C3%9F")
}
