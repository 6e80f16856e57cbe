//! One run of a parent that may be run again, as a process of its own: accepts a request and places an order for it.

use eastwest::{ServiceClient, callee};
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base_url, inbound_key, label, body] = arguments.as_slice() else {
        return Err("usage: eastwest-lane-powertools BASE_URL INBOUND_KEY LABEL BODY".into());
    };
    let context = callee::accept([("x-hop-count", "2"), ("x-idempotency-key", inbound_key)])?;
    let client = ServiceClient::builder(base_url).region("eu-central-1").environment_credentials().build()?;
    let call = client.post(&context, "/orders").idempotency_key_for(label);
    let answer = call.header("content-type", "application/json").body(body.clone()).send().await?;
    println!("{}", answer.text()?);
    Ok(())
}
