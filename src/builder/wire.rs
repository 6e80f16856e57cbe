//! The settings of connections: how long they are kept, where they lead, whom they trust.

use super::{ClientBuilder, Trust};
use std::net::SocketAddr;
use std::time::Duration;

impl ClientBuilder {
    /// Sets how long an idle connection is kept; 15 s by default, under the usual 20 s of servers. At most an hour.
    pub fn pool_idle_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.pool_idle_timeout = timeout.min(LONGEST_IDLE);
        self
    }

    /// Speaks HTTP/2 where the gateway offers it in the TLS handshake; without TLS, in any case. HTTP/1.1 by default:
    /// a stalled HTTP/2 connection holds up every call that shares it.
    #[cfg(feature = "http2")]
    pub fn http2(mut self) -> ClientBuilder {
        self.speaks_http2 = true;
        self
    }

    /// Obeys `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`. Off by default: signed internal traffic does
    /// not leave through a proxy because a variable says so.
    pub fn environment_proxy(mut self) -> ClientBuilder {
        self.environment_proxy = true;
        self
    }

    /// Connects to `address` where the base URL's host is `host`, while `host` is signed, sent and checked against
    /// the certificate: an endpoint DNS name with the API's own host.
    pub fn resolve(mut self, host: impl Into<String>, address: SocketAddr) -> ClientBuilder {
        self.resolve.push((host.into(), address));
        self
    }

    /// Trusts the system's certificates in place of the bundled ones: a company's own authority, at the price of
    /// reading the trust store at start.
    pub fn platform_roots(mut self) -> ClientBuilder {
        self.roots = Trust::Platform;
        self
    }

    /// Trusts none but the authorities given with [`add_roots_pem`](ClientBuilder::add_roots_pem).
    pub fn no_other_roots(mut self) -> ClientBuilder {
        self.roots = Trust::Nobody;
        self
    }

    /// Trusts the authorities in this PEM text too.
    pub fn add_roots_pem(mut self, pem: impl Into<Vec<u8>>) -> ClientBuilder {
        self.more_roots.push(pem.into());
        self
    }

    /// Shows this certificate chain and proves it with this key, both PEM: a custom domain with mutual TLS.
    pub fn client_certificate_pem(
        mut self,
        chain: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> ClientBuilder {
        self.client_identity = Some((chain.into(), key.into()));
        self
    }

    /// Names the API in `x-apigw-api-id`, signed, where the base URL is an interface endpoint's own DNS name.
    pub fn api_id(mut self, id: impl Into<String>) -> ClientBuilder {
        self.api_id = Some(id.into());
        self
    }

    /// Allows plain `http` to any host: a test container, a sidecar that does the TLS.
    pub fn dangerously_allow_http(mut self) -> ClientBuilder {
        self.allow_http = true;
        self
    }
}

/// The gateway closes a connection that was idle for 310 s; the HTTP client adds this time to a clock.
const LONGEST_IDLE: Duration = Duration::from_secs(3_600);
