//! The integration between the embedded gateway and the callee: a request passed on, and what becomes of its answer.

use crate::callee::{Answer, Callee};
use eastwest::testing::{RecordedAttempt, Reply};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tokio::time::timeout;

/// What the gateway does for one request.
#[derive(Clone, Copy, Debug)]
pub enum Integration {
    /// Answers 504 where the callee, having committed, has not answered within 150 ms.
    Impatient,
    /// Waits for the callee's answer, and resets the connection instead of passing it on.
    Losing,
    /// Waits for the callee's answer and passes it on: to a first attempt as a 504, which came a moment too early.
    LosingFirst,
    /// Waits for the callee's answer and passes it on.
    Patient,
}

/// What the gateway heard from the callee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Answered(u16),
    Nothing,
    /// It threw an error of this type.
    Threw(String),
}

/// All that was heard, in the order of hearing.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<Heard>>>);

impl Log {
    pub fn all(&self) -> Vec<Heard> {
        self.0.lock().unwrap().clone()
    }
}

/// A reply that is made by the callee. It blocks the thread that it is made on, so the runtime must have several.
pub fn reply(integration: Integration, callee: Callee, log: &Log) -> Reply {
    let log = log.clone();
    Reply::dynamic(move |attempt| {
        let decided = decide(integration, callee, attempt);
        let (heard, reply) = block_in_place(|| Handle::current().block_on(decided));
        log.0.lock().unwrap().push(heard);
        reply
    })
}

async fn decide(integration: Integration, callee: Callee, attempt: &RecordedAttempt) -> (Heard, Reply) {
    let (head, body) = (head(attempt), attempt.body());
    let exchange = callee.exchange(&head, body);
    let answer = match integration {
        Integration::Impatient => match timeout(PATIENCE, exchange).await {
            Ok(answer) => answer,
            Err(_) => {
                // However slow the machine: late is what has been committed.
                callee.has_committed(&order(body)).await;
                return (Heard::Nothing, Reply::integration_timeout());
            }
        },
        _ => exchange.await,
    };
    let heard = heard(&answer);
    let first = attempt.header("x-attempt-count") == Some("1");
    let reply = match integration {
        Integration::Losing => Reply::reset(),
        Integration::LosingFirst if first => Reply::integration_timeout(),
        _ if answer.threw => Reply::lambda_failed(),
        _ => Reply::json(answer.status, answer.body),
    };
    (heard, reply)
}

/// Request line and header lines as they came, but for what belongs to the connection.
fn head(attempt: &RecordedAttempt) -> String {
    let mut head = format!("{} {} HTTP/1.1\r\n", attempt.method(), attempt.target());
    for line in attempt.header_lines() {
        let name = line.split(':').next().unwrap().to_ascii_lowercase();
        if !["connection", "content-length", "transfer-encoding"].contains(&name.as_str()) {
            head.push_str(&line);
            head.push_str("\r\n");
        }
    }
    head
}

fn heard(answer: &Answer) -> Heard {
    if answer.threw {
        let error: Value = serde_json::from_str(&answer.body).unwrap();
        return Heard::Threw(error["errorType"].as_str().unwrap().to_owned());
    }
    Heard::Answered(answer.status)
}

fn order(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap();
    body["id"].as_str().unwrap().to_owned()
}

/// In place of the 29 s that API Gateway waits.
const PATIENCE: Duration = Duration::from_millis(150);
