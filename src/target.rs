//! The one URL that is both signed and sent.

use http::HeaderValue;
use std::fmt;
use std::sync::Arc;
use url::Url;

/// The final URL of a call: exactly these bytes are signed and sent.
#[derive(Clone)]
pub(crate) struct Target {
    url: Url,
    host: Arc<Authority>,
}

impl Target {
    pub(crate) fn new(url: Url, host: Arc<Authority>) -> Target {
        Target { url, host }
    }

    /// The URL as it is signed and sent.
    #[cfg(test)]
    pub(crate) fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The URL as the HTTP client takes it.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The path with stage or base path, without the query: what an error may show.
    pub(crate) fn path(&self) -> &str {
        self.url.path()
    }

    /// The query without its question mark, strictly encoded, empty if there is none.
    pub(crate) fn query(&self) -> &str {
        self.url.query().unwrap_or_default()
    }

    /// The host, without the port.
    pub(crate) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The `Host` header as it is written to the wire.
    pub(crate) fn host_header(&self) -> &str {
        &self.host.text
    }

    /// The same as a value.
    pub(crate) fn host_value(&self) -> &HeaderValue {
        &self.host.value
    }
}

/// Never shows the query.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = format!("{}://{}{}", self.url.scheme(), self.host.text, self.path());
        f.debug_tuple("Target").field(&shown).finish()
    }
}

/// The `Host` header as it is written to the wire, made once for all calls.
#[derive(PartialEq, Eq)]
pub(crate) struct Authority {
    text: String,
    value: HeaderValue,
}

impl Authority {
    /// None where no header can carry the host.
    pub(crate) fn of(origin: &Url) -> Option<Authority> {
        let host = origin.host_str().unwrap_or_default();
        // `Url` has dropped the scheme's own port, as hyper does when it writes the header.
        let text = match origin.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let value = HeaderValue::from_str(&text).ok()?;
        Some(Authority { text, value })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}
