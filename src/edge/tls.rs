//! TLS settings of our own: one provider of cryptography, chosen roots, an optional client certificate.

use crate::edge::fault::Fault;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::sync::Arc;

/// Whom to trust and who we are.
#[derive(Debug, Default)]
pub(crate) struct TlsSettings {
    /// The authorities that are trusted.
    pub(crate) roots: Roots,
    /// The client certificate, for a domain that asks for one.
    pub(crate) identity: Option<ClientIdentity>,
    /// Whether HTTP/2 is offered before HTTP/1.1: no.
    pub(crate) offer_http2: bool,
}

impl TlsSettings {
    /// Builds the configuration: TLS 1.2 and 1.3, HTTP/1.1 unless more is asked for, nothing installed for the whole process.
    ///
    /// # Errors
    /// No root certificate at all, or a client certificate whose key is not its own.
    pub(crate) fn client_config(&self) -> Result<ClientConfig, Fault> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| Fault::new("tls", error.to_string()))?
            .with_root_certificates(self.roots.store()?);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
                .map_err(|error| Fault::new(IDENTITY, error.to_string()))?,
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if self.offer_http2 {
            config.alpn_protocols.insert(0, b"h2".to_vec());
        }
        Ok(config)
    }
}

/// The authorities that are trusted: a base, and certificates added to it.
///
/// The base is Mozilla's list, bundled, unless another is chosen: it needs no file in the image, costs a third of a
/// millisecond where the system's store costs three, and knows Amazon's authorities. A company's own authority is added,
/// or comes with the platform's store.
#[derive(Clone, Default)]
pub(crate) struct Roots {
    base: Base,
    added: Vec<CertificateDer<'static>>,
}

impl Roots {
    /// Mozilla's list, as of this build.
    pub(crate) fn bundled() -> Roots {
        Roots::default()
    }

    /// The system's trust store, read when the client is built.
    pub(crate) fn platform() -> Roots {
        Roots { base: Base::Platform, added: Vec::new() }
    }

    /// Nobody but who is added.
    pub(crate) fn none() -> Roots {
        Roots { base: Base::Nobody, added: Vec::new() }
    }

    /// Adds every certificate of a PEM text.
    ///
    /// # Errors
    /// Text that holds no certificate, or a broken one.
    pub(crate) fn and_pem(mut self, pem: &[u8]) -> Result<Roots, Fault> {
        self.added.extend(certificates(ROOTS, pem)?);
        Ok(self)
    }

    fn store(&self) -> Result<RootCertStore, Fault> {
        let mut store = RootCertStore::empty();
        match self.base {
            Base::Bundled => store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Base::Nobody => {}
            Base::Platform => {
                // A store may hold certificates that no verifier can use; the others count.
                store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        for certificate in &self.added {
            store.add(certificate.clone()).map_err(|error| {
                Fault::new(ROOTS, format!("hold a certificate that is no authority: {error}"))
            })?;
        }
        if store.is_empty() {
            return Err(Fault::new(ROOTS, "hold no certificate, so that no callee could be trusted"));
        }
        Ok(store)
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} and {} added", self.base, self.added.len())
    }
}

/// A client certificate with its key, for a custom domain with mutual TLS.
pub(crate) struct ClientIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl ClientIdentity {
    /// Reads a chain, the client's own certificate first, and its key, both in PEM.
    ///
    /// # Errors
    /// Text that holds no certificate or no key. Neither is repeated.
    pub(crate) fn from_pem(chain: &[u8], key: &[u8]) -> Result<ClientIdentity, Fault> {
        Ok(ClientIdentity {
            chain: certificates(IDENTITY, chain)?,
            key: PrivateKeyDer::from_pem_slice(key)
                .map_err(|_| Fault::new(IDENTITY, "holds no key in PEM"))?,
        })
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity").finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, Default)]
enum Base {
    #[default]
    Bundled,
    Nobody,
    Platform,
}

fn certificates(field: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(Fault::new(field, "holds no certificate in PEM, or a broken one")),
    }
}

/// ring unless AWS-LC is asked for: AWS-LC spends some 30 ms of CPU on entropy at every cold start.
fn provider() -> Arc<CryptoProvider> {
    #[cfg(feature = "aws-lc-rs")]
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    #[cfg(not(feature = "aws-lc-rs"))]
    let provider = rustls::crypto::ring::default_provider();
    Arc::new(provider)
}

const IDENTITY: &str = "client_certificate";
const ROOTS: &str = "roots";
