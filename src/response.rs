//! A buffered answer, with the story of its attempts.

use crate::error::{Answered, Cause, Error};
use crate::error_kind::ErrorKind;
use crate::json::NotThisJson;
use crate::policy::gateway::{clean, request_id};
use crate::policy::method::is_safe;
use crate::story::{Attempt, Story};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::fmt;
use std::time::Duration;

/// A successful answer, its body read to the end.
pub struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) story: Story,
}

impl Response {
    /// The status, one of 200 to 299 unless a rule of the client's or the call's makes another one a success.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// All headers, names in lower case.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body as it came: nothing is decompressed.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Gives the body up.
    #[must_use]
    pub fn into_body(self) -> Bytes {
        self.body
    }

    /// Decodes the body as JSON. An empty body decodes to `()` and to `Option::None`.
    ///
    /// # Errors
    /// [`ErrorKind::Decode`], with the status and the content type. The call has succeeded all the same:
    /// [`Error::may_have_committed`] is true unless it only read, and nothing is sent again.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        let body: &[u8] = if self.body.is_empty() { b"null" } else { &self.body };
        serde_json::from_slice(body)
            .map_err(|cause| self.undecodable("the JSON asked for", Some(NotThisJson::from(&cause))))
    }

    /// The body as text.
    ///
    /// # Errors
    /// [`ErrorKind::Decode`] if it is not UTF-8.
    pub fn text(&self) -> Result<&str, Error> {
        str::from_utf8(&self.body).map_err(|_| self.undecodable("UTF-8 text", None))
    }

    /// All attempts, in order; the last one is this answer.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        &self.story.attempts
    }

    /// How long the call took.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.story.elapsed
    }

    /// The correlation id of the call.
    #[must_use]
    pub fn correlation_id(&self) -> &str {
        self.story.subject.correlation_id()
    }

    /// The idempotency key of the call.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&str> {
        self.story.subject.idempotency_key()
    }

    /// The gateway's id of the request, to ask its owners about.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        request_id(&self.headers)
    }

    fn undecodable(&self, wanted: &str, cause: Option<NotThisJson>) -> Error {
        let kind = self.headers.get(http::header::CONTENT_TYPE);
        let kind = kind.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let kind = kind.as_deref().map_or("no content type".into(), |kind| clean(kind, 100));
        let (status, size) = (self.status.as_u16(), self.body.len());
        let why = cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
        let what = format!("the body of the {status} ({size} bytes, {kind}) is not {wanted}{why}");
        let mut error = Error::of(ErrorKind::Decode, None, what);
        let inner = error.inner_mut();
        inner.answer = Some(Answered {
            status: self.status,
            headers: self.headers.clone(),
            body: self.body.clone(),
            ..Answered::default()
        });
        inner.story = Some(self.story.clone());
        inner.may_have_committed = !is_safe(&self.story.subject.method);
        inner.cause = cause.map(|cause| Box::new(cause) as Cause);
        error
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("body_len", &self.body.len())
            .field("attempts", &self.story.attempts)
            .field("correlation_id", &self.story.subject.correlation_id())
            .field("idempotency_key", &self.story.subject.idempotency_key())
            .finish_non_exhaustive()
    }
}
