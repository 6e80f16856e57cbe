//! From what a call was given to what its attempts begin from.

use crate::context::headers::{self, API_ID};
use crate::context::{CallContext, HopLimit, IdempotencyKey};
use crate::edge::order::Order;
use crate::edge::own_headers::{JSON, OwnHeaders};
use crate::edge::path::Path;
use crate::edge::user_token::UserToken;
use crate::error::Error;
use crate::error_kind::ErrorKind;
use crate::observe::Watch;
use crate::policy::attempts::StopReason;
use crate::settings::Settings;
use crate::shared::{Names, Shared};
use crate::story::{Story, Subject};
use crate::usage::{RefusedBy, Reporter};
use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use std::sync::Arc;
use tracing::Span;

/// What a call was given so far.
pub(crate) struct Draft {
    pub(crate) context: CallContext,
    pub(crate) method: Method,
    pub(crate) path: Path,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: OwnHeaders,
    pub(crate) body: Bytes,
    pub(crate) is_json: bool,
    pub(crate) user_token: Option<UserToken>,
    pub(crate) url_template: Option<Arc<str>>,
}

impl Draft {
    pub(crate) fn new(context: CallContext, method: Method, path: Path) -> Draft {
        Draft {
            context,
            method,
            path,
            query: Vec::new(),
            headers: OwnHeaders::default(),
            body: Bytes::new(),
            is_json: false,
            user_token: None,
            url_template: None,
        }
    }

    /// The template of all attempts.
    pub(crate) fn into_order(
        mut self,
        shared: &Shared,
        settings: &Settings,
        key: Option<IdempotencyKey>,
    ) -> Result<Order, Error> {
        if self.method == Method::CONNECT {
            return Err(Error::configuration("method", "CONNECT asks for a tunnel, not for an answer"));
        }
        let target = shared.base.target(&self.path, &self.query)?;
        if self.body.len() > settings.request_body_limit {
            let limit = settings.request_body_limit;
            return Err(Error::too_large("body", format!("{} bytes, the limit is {limit}", self.body.len())));
        }
        if shared.edge.api_id.is_some() && self.headers.has(&API_ID) {
            return Err(Error::configuration("x-apigw-api-id", "the client has one of its own"));
        }
        self.complete_headers()?;
        let hop = self.hop();
        let subject = Subject {
            method: self.method,
            target,
            url_template: self.url_template,
            context: self.context,
            idempotency_key: key,
        };
        Ok(Order {
            priority: settings.priority,
            hop,
            subject: Arc::new(subject),
            headers: self.headers,
            body_hash: shared.edge.body_hash(&self.body),
            body: self.body,
            user_token: self.user_token.map(Box::new),
            response_body_limit: settings.response_body_limit,
        })
    }

    /// Adds the body's type and the context's trace to the caller's own headers, as far as the caller set none by hand.
    fn complete_headers(&mut self) -> Result<(), Error> {
        // Both are signed, and a signature covers one value.
        for (field, name) in [("content-type", CONTENT_TYPE), ("x-apigw-api-id", API_ID)] {
            if self.headers.count(&name) > 1 {
                return Err(Error::configuration(field, "given twice"));
            }
        }
        // Looked up before the first is added: a `tracestate` may have several lines.
        let missing = self.context.trace_headers().filter(|(name, _)| !self.headers.has(name));
        let missing: Vec<_> = missing.map(|(name, value)| (name, value.clone())).collect();
        for (name, value) in missing {
            self.headers.push(name, value);
        }
        if self.is_json && !self.headers.has(&CONTENT_TYPE) {
            self.headers.push(CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        Ok(())
    }

    /// The hop that the call carries; whether it may is another question.
    pub(crate) fn hop(&self) -> u8 {
        self.context.hop().saturating_add(1)
    }
}

/// The call would be a hop that every callee refuses.
pub(crate) fn too_many_hops(
    limit: &HopLimit,
    story: Story,
    (usage, watch): (&Reporter, &Watch),
    span: &Span,
) -> Error {
    usage.call();
    usage.refused(RefusedBy::HopLimit);
    let mut error = Error::of(ErrorKind::HopLimit, None, limit.to_string());
    let inner = error.inner_mut();
    inner.stop_reason = Some(StopReason::HopLimit);
    inner.story = Some(story);
    span.in_scope(|| watch.gave_up(&error, span));
    error
}

/// A header that a caller may set, or why not.
pub(crate) fn checked_header(
    name: &str,
    value: &str,
    names: &Names,
) -> Result<(HeaderName, HeaderValue), Error> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| Error::configuration("header", "the name is not a header name (RFC 9110, 5.1)"))?;
    if headers::is_reserved(&parsed, &names.idempotency_key, &names.user_token) {
        let way = match parsed.as_str() {
            "authorization" => "; the signature goes there, a user's token is given with user_token",
            name if name == names.idempotency_key.as_str() => "; it is given with idempotency_key",
            _ => "",
        };
        let reason = format!("`{parsed}` is not the caller's to set{way}");
        return Err(Error::configuration("header", reason));
    }
    let printable = !value.chars().any(char::is_control);
    // Bytes, for a value may be any UTF-8.
    let value = match value {
        // That of nearly every call is not copied.
        JSON => Some(HeaderValue::from_static(JSON)),
        value => HeaderValue::from_bytes(value.as_bytes()).ok().filter(|_| printable),
    };
    let refused =
        || Error::configuration("header", format!("the value of `{parsed}` holds a control character"));
    match value {
        Some(value) => Ok((parsed, value)),
        None => Err(refused()),
    }
}
