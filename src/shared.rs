//! What clones of a client and its calls share.

use crate::context::{IdempotencyKey, headers};
use crate::dead_letter::{DeadLetterSink, SINK_LIMIT, deliver};
use crate::edge::ambient::fresh_uuid;
use crate::edge::base_url::BaseUrl;
use crate::edge::exchange::Edge;
use crate::edge::head::add;
use crate::edge::order::Order;
use crate::error::Error;
use crate::intent::{Intent, Origin};
use crate::policy::attempts::Terms;
use crate::policy::rate_limit::RateLimit;
use crate::retry_loop::Gates;
use crate::settings::Settings;
use http::{HeaderMap, HeaderName};
use std::sync::Arc;
use std::time::Duration;

/// One callee as this process knows it: settings, breaker, budgets, credentials and connections.
pub(crate) struct Shared {
    pub(crate) base: BaseUrl,
    pub(crate) settings: Settings,
    /// The terms of calls that may be sent again, and of those that may not, under these settings.
    pub(crate) terms: [Arc<Terms>; 2],
    pub(crate) names: Names,
    pub(crate) gates: Gates,
    pub(crate) edge: Edge,
    pub(crate) letters: Letters,
    pub(crate) limits: Limits,
}

/// What bounds how fast and how many at once attempts are made, as it was set.
pub(crate) struct Limits {
    pub(crate) rate: Option<RateLimit>,
    pub(crate) in_flight: Option<u32>,
    pub(crate) is_shared: bool,
    pub(crate) has_fleet: bool,
}

/// What becomes of the letters of failed calls.
pub(crate) struct Letters {
    pub(crate) sink: Option<Arc<dyn DeadLetterSink>>,
    /// How long the callee knows a key.
    pub(crate) idempotency_window: Duration,
}

impl Shared {
    /// The terms of a call under the client's own settings.
    pub(crate) fn terms(&self, repeatable: bool) -> Arc<Terms> {
        let [of_repeatable, of_others] = &self.terms;
        Arc::clone(if repeatable { of_repeatable } else { of_others })
    }

    /// One fresh key for one intent.
    pub(crate) fn fresh_key(&self) -> IdempotencyKey {
        IdempotencyKey::from_uuid(fresh_uuid(&*self.gates.ambient))
    }

    /// A letter of a call in a user's name is not sent again in the service's own.
    pub(crate) fn check_user(&self, origin: Option<&Origin>, has_token: bool) -> Result<(), Error> {
        let name = self.names.user_token.as_str();
        let had_one =
            origin.is_some_and(|origin| origin.withheld_headers.iter().any(|header| header == name));
        if had_one && !has_token && self.edge.user_tokens.is_none() {
            let reason = "the letter's call had one, which no letter keeps: give it again";
            return Err(Error::configuration("user_token", reason));
        }
        Ok(())
    }

    /// Keeps with its error what a failed call was, and hands its letter to the sink.
    pub(crate) async fn bury(&self, mut error: Error, order: Order, afterlife: Afterlife) -> Error {
        let query = order.subject.target.query().to_owned();
        let path = self.base.path_below(&order.subject.target).to_owned();
        let mut headers = HeaderMap::with_capacity(order.headers.len());
        for header in order.headers.iter() {
            add(&mut headers, header);
        }
        // A user's token is in no letter; that there was one is.
        let had_token = order.user_token.is_some() || self.edge.user_tokens.is_some();
        let withheld = if had_token { vec![self.names.user_token.to_string()] } else { Vec::new() };
        error.inner_mut().intent = Some(Box::new(Intent {
            id: fresh_uuid(&*self.gates.ambient).to_string(),
            failed_at: self.gates.ambient.now().wall,
            base_url: self.base.to_string(),
            api_id: self.edge.api_id.as_ref().and_then(|id| id.to_str().ok()).map(str::to_owned),
            withheld,
            method: order.subject.method.clone(),
            path,
            query,
            headers,
            body: order.body,
            hop: order.hop,
            repeat_safe_by_reference: afterlife.by_reference,
            origin: afterlife.origin.map(|origin| *origin),
        }));
        if let (Some(sink), Some(letter)) = (&self.letters.sink, error.dead_letter()) {
            // The reserve before a Lambda's deadline is for this, and for the reply that comes after it.
            let now = self.gates.ambient.now().monotonic;
            let deadline = order.subject.context.lambda_deadline();
            let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
            deliver(sink, letter, time_to_store(left)).await;
        }
        error
    }
}

/// How long a call waits for its letter, with so much left until the sandbox itself has to be done.
fn time_to_store(left: Option<Duration>) -> Duration {
    left.map_or(SINK_LIMIT, |left| SINK_LIMIT.min(left.saturating_sub(FOR_THE_REPLY)))
}

/// A replay that may do the work twice, and was not allowed to.
pub(crate) fn unkeyed() -> Error {
    let reason = "the letter has none and may have been carried out: look it up, then allow_unkeyed()";
    Error::configuration("idempotency_key", reason)
}

/// What a letter tells of a call that its template does not.
pub(crate) struct Afterlife {
    pub(crate) by_reference: bool,
    pub(crate) origin: Option<Box<Origin>>,
}

/// What is left of a deadline after the letter: enough to write an answer.
const FOR_THE_REPLY: Duration = Duration::from_millis(20);

/// The header names that an owner may choose.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) idempotency_key: HeaderName,
    pub(crate) user_token: HeaderName,
}

impl Names {
    /// The names that were chosen; neither may be the other's, nor have a meaning of its own.
    pub(crate) fn chosen(idempotency_key: &str, user_token: &str) -> Result<Names, Error> {
        let names = Names {
            idempotency_key: header_name("idempotency_header", idempotency_key, &headers::IDEMPOTENCY_KEY)?,
            user_token: header_name("user_token_header", user_token, &headers::USER_TOKEN)?,
        };
        if names.idempotency_key == names.user_token {
            return Err(Error::configuration("user_token_header", "the idempotency key goes by this name"));
        }
        Ok(names)
    }
}

fn header_name(field: &'static str, name: &str, default: &HeaderName) -> Result<HeaderName, Error> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| Error::configuration(field, "not a header name (RFC 9110, 5.1)"))?;
    if headers::has_another_meaning(&parsed, default) {
        return Err(Error::configuration(field, "the name has another meaning"));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_not_waited_for_past_the_sandbox_s_deadline() {
        assert_eq!(time_to_store(None), SINK_LIMIT);
        assert_eq!(time_to_store(Some(Duration::from_secs(60))), SINK_LIMIT);
        assert_eq!(time_to_store(Some(Duration::from_millis(400))), Duration::from_millis(380));
        assert_eq!(time_to_store(Some(Duration::from_millis(5))), Duration::ZERO);
    }
}
