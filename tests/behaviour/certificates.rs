//! A certificate that does not stand is a setting: never retried, and the error names host and reason.

use crate::rig::builder;
use eastwest::policy::breaker::{BreakerSettings, State};
use eastwest::{CallContext, Class, ClientBuilder, ErrorKind, StopReason};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A TLS server with a certificate of its own making.
struct Server {
    port: u16,
    authority_pem: String,
    answered: Arc<AtomicUsize>,
}

impl Server {
    async fn with_certificate(shape: impl FnOnce(&mut CertificateParams)) -> Server {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let mut leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        shape(&mut leaf);
        let key = KeyPair::generate().unwrap();
        let certificate = leaf.signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (acceptor, answered) = (TlsAcceptor::from(Arc::new(config)), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&answered);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { break };
                    head.push(byte);
                }
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
                let _ = stream.shutdown().await;
            }
        });
        Server { port, authority_pem: issuer.pem(), answered }
    }

    fn client(&self) -> ClientBuilder {
        builder(format!("https://localhost:{}/prod", self.port))
            .breaker(BreakerSettings::default().with_failures_in_row(1))
    }

    fn trusting_client(&self) -> ClientBuilder {
        self.client().no_other_roots().add_roots_pem(self.authority_pem.clone())
    }
}

async fn refused(server: &Server, client: ClientBuilder, reason: &str) {
    let client = client.build().unwrap();
    let error = client.get(&CallContext::root(), "/orders").send().await.unwrap_err();
    assert_eq!((error.kind(), error.class()), (ErrorKind::Transport, Some(Class::CertificateRefused)));
    assert_eq!((error.attempts().len(), error.stop_reason()), (1, Some(StopReason::NotRetryable)));
    assert!(!error.may_have_committed());
    let text = error.to_string();
    assert!(text.contains("localhost") && text.to_lowercase().contains(reason), "{text}");
    assert_eq!(server.answered.load(Ordering::SeqCst), 0);
    assert_eq!(client.breaker().state(), State::Closed);
}

#[tokio::test]
async fn a_given_authority_is_trusted() {
    let server = Server::with_certificate(|_| {}).await;
    let client = server.trusting_client().build().unwrap();
    client.get(&CallContext::root(), "/orders").send().await.unwrap();
    assert_eq!(server.answered.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_unknown_authority_is_final() {
    let server = Server::with_certificate(|_| {}).await;
    refused(&server, server.client(), "issuer").await;
}

#[tokio::test]
async fn a_certificate_of_another_name_is_final() {
    let other = |leaf: &mut CertificateParams| {
        leaf.subject_alt_names = vec![rcgen::SanType::DnsName("other.example".try_into().unwrap())];
    };
    let server = Server::with_certificate(other).await;
    refused(&server, server.trusting_client(), "name").await;
}

#[tokio::test]
async fn an_expired_certificate_is_final() {
    let expired = |leaf: &mut CertificateParams| {
        leaf.not_before = rcgen::date_time_ymd(2020, 1, 1);
        leaf.not_after = rcgen::date_time_ymd(2021, 1, 1);
    };
    let server = Server::with_certificate(expired).await;
    refused(&server, server.trusting_client(), "expired").await;
}

#[test]
fn roots_and_certificates_that_are_none_are_refused_by_name() {
    let new = || builder("https://api.example.test/prod");
    assert!(new().add_roots_pem("no pem at all").build().unwrap_err().field().is_some());
    assert!(new().client_certificate_pem("x", "y").build().unwrap_err().field().is_some());
}
