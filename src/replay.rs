//! From a dead letter to a call again.

use crate::call::Call;
use crate::client::ServiceClient;
use crate::context::{CallContext, CorrelationId, HopCount};
use crate::dead_letter::{DeadLetter, SCHEMA_VERSION};
use crate::edge::path::Path;
use crate::error::Error;
use crate::intent::Origin;
use crate::observe;
use crate::policy::method::is_safe;
use http::Method;
use percent_encoding::percent_decode_str;
use std::sync::Arc;
use std::time::Duration;

impl ServiceClient {
    /// Makes a call of a letter again: the same method, path, query, headers, body, idempotency key, correlation id and hop,
    /// signed anew, with the attempts counted from 1.
    ///
    /// A user token and the letter's `withheld_headers` are not in it. Where the letter's call had a token, it is not sent
    /// before it is given one again ([`Call::user_token`], or the client's source): what was asked in a user's name is not
    /// asked in the service's own. The other withheld headers have to be given where they are needed. Times and counts are this client's. A letter without a key that may have been carried out needs
    /// [`Call::allow_unkeyed`] before it is sent; a safe method, or one that the callee recognises by reference, does not.
    /// Where the first attempt is older than
    /// [`idempotency_window`](crate::ClientBuilder::idempotency_window) a warning says that the key no longer protects.
    ///
    /// The call's own letter, where it fails, has the id of this one and takes its place.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration), with [`Error::field`] naming what is wrong: a letter of
    /// another base URL or API id, of an unknown version, or one that was tampered with.
    pub fn replay(&self, letter: &DeadLetter) -> Result<Call, Error> {
        if letter.schema_version != SCHEMA_VERSION {
            let reason = format!("{} is not known, only {SCHEMA_VERSION}", letter.schema_version);
            return Err(Error::configuration("schema_version", reason));
        }
        if letter.base_url != self.0.base.to_string() {
            return Err(Error::configuration("base_url", "the letter is of another one"));
        }
        let api_id = self.0.edge.api_id.as_ref().and_then(|id| id.to_str().ok());
        if letter.api_id.as_deref() != api_id {
            return Err(Error::configuration("api_id", "the letter is of another API behind this endpoint"));
        }
        let method = Method::from_bytes(letter.method.as_bytes())
            .map_err(|_| Error::configuration("method", "not a method (RFC 9110, 9.1)"))?;
        let (safe, path) = (is_safe(&method), Path::from(letter.path.as_str()));
        let mut call = Call::new(Arc::clone(&self.0), context(letter)?, method, path);
        for pair in letter.query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            call = call.query(decoded(name)?, decoded(value)?);
        }
        let content_type = letter.content_type.iter().map(|value| ("content-type", value.as_str()));
        let headers = letter.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in headers.chain(content_type) {
            call = call.header(name, value);
        }
        call = call.body(letter.body.clone());
        call = match &letter.idempotency_key {
            Some(key) => call.idempotency_key(key),
            None => call.no_idempotency_key(),
        };
        if letter.repeat_safe_by_reference {
            call = call.repeat_safe_by_reference();
        }
        let guarded = letter.idempotency_key.is_some() || letter.repeat_safe_by_reference || safe;
        let call = call.replaying(origin(letter), letter.may_have_committed && !guarded)?;
        self.warn_of_an_old_key(letter);
        Ok(call)
    }

    fn warn_of_an_old_key(&self, letter: &DeadLetter) {
        let (Some(key), Some(first)) = (&letter.idempotency_key, letter.first_attempt_at) else {
            return;
        };
        let now = self.0.gates.ambient.now().wall;
        let (age, window) =
            (now.duration_since(first).unwrap_or(Duration::ZERO), self.0.letters.idempotency_window);
        if age > window {
            observe::key_out_of_window(&letter.id, &letter.correlation_id, key, age, window);
        }
    }
}

fn origin(letter: &DeadLetter) -> Origin {
    Origin {
        id: letter.id.clone(),
        created_at: letter.created_at,
        first_attempt_at: letter.first_attempt_at,
        last_attempt_at: letter.last_attempt_at,
        withheld_headers: letter.withheld_headers.clone(),
        may_have_committed: letter.may_have_committed,
    }
}

/// A context whose next hop is the letter's.
fn context(letter: &DeadLetter) -> Result<CallContext, Error> {
    let correlation_id = CorrelationId::new(&letter.correlation_id)
        .map_err(|fault| Error::configuration("correlation_id", fault.to_string()))?;
    let inbound = letter.hop.checked_sub(1).ok_or_else(|| Error::configuration("hop", "begins with 1"))?;
    let inbound_hop = HopCount::parse(inbound.to_string().as_bytes());
    if inbound > 0 && inbound_hop.is_none() {
        return Err(Error::configuration("hop", "not a hop count"));
    }
    // The letter's headers have the trace.
    Ok(CallContext::of(inbound_hop, correlation_id, None))
}

fn decoded(text: &str) -> Result<String, Error> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(String::from).map_err(|_| Error::configuration("query", "not UTF-8"))
}
