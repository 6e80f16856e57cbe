//! Exchanges over TLS, and peers with whom there can be none.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::net::SocketAddr;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

const NAME: &str = "orders.example.test";

/// A throw-away authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

struct Issued {
    certificate: CertificateDer<'static>,
    pem: String,
    key: KeyPair,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn issue(&self, name: &str, until: i32) -> Issued {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued { certificate: certificate.der().clone(), pem: certificate.pem(), key }
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    fn store(&self) -> Arc<RootCertStore> {
        let mut store = RootCertStore::empty();
        store.add(self.0.der().clone()).unwrap();
        Arc::new(store)
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The settings of a server with this certificate, which asks for certificates of `clients`, if of any.
fn server(issued: &Issued, clients: Option<&Authority>) -> ServerConfig {
    let builder =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(authority.store(), provider());
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = PrivateKeyDer::try_from(issued.key.serialize_der()).unwrap();
    builder.with_single_cert(vec![issued.certificate.clone()], key).unwrap()
}

/// A peer that answers every request over TLS, and how many it has read.
async fn secure_peer(config: ServerConfig) -> (SocketAddr, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, read) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(0)));
    let (acceptor, count) = (TlsAcceptor::from(Arc::new(config)), Arc::clone(&read));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, count) = (acceptor.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                while read_request(&mut stream).await.is_some() {
                    *count.lock().unwrap() += 1;
                    stream.write_all(OK.as_bytes()).await.unwrap();
                }
            });
        }
    });
    (address, read)
}

/// A peer that does this with every connection.
async fn raw_peer<F: Future<Output = ()> + Send + 'static>(act: fn(TcpStream) -> F) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(act(stream));
        }
    });
    address
}

fn trusting(roots: Roots) -> TransportSettings {
    TransportSettings {
        https_only: true,
        resolve: vec![(NAME.to_owned(), "127.0.0.1:0".parse().unwrap())],
        tls: TlsSettings { roots, ..TlsSettings::default() },
        ..settings()
    }
}

fn trusting_only(authority: &Authority) -> TransportSettings {
    trusting(Roots::none().and_pem(authority.pem().as_bytes()).unwrap())
}

async fn exchange_with(address: SocketAddr, settings: TransportSettings, timeout: Duration) -> Exchanged {
    let base = BaseUrl::parse(&format!("https://{NAME}:{}", address.port()), false).unwrap();
    let target = base.target(&"/orders".into(), &[]).unwrap();
    send(&Transport::new(settings, Hand::new()).unwrap(), &target, timeout).await
}

/// Asserts that the exchange failed for good before anything was sent, and that the reason names host and cause.
fn assert_certificate(exchanged: &Exchanged, cause: &str) {
    let Exchanged::NeverSent { why: Unsent::Certificate, reason, .. } = exchanged else {
        panic!("{exchanged:?}");
    };
    assert!(reason.contains(NAME) && reason.contains(cause), "{reason}");
}

#[tokio::test]
async fn a_peer_with_a_certificate_of_a_trusted_authority_is_answered_by() {
    let authority = Authority::new();
    let (address, read) = secure_peer(server(&authority.issue(NAME, 2100), None)).await;
    assert_eq!(told(&exchange_with(address, trusting_only(&authority), PLENTY).await), "200 hi");
    let added = trusting(Roots::bundled().and_pem(authority.pem().as_bytes()).unwrap());
    assert_eq!(told(&exchange_with(address, added, PLENTY).await), "200 hi");
    assert_eq!(*read.lock().unwrap(), 2);
}

#[tokio::test]
async fn a_certificate_of_another_name_an_unknown_authority_or_another_time_is_a_setting() {
    let authority = Authority::new();
    let trusted = || trusting_only(&authority);
    let (address, read) = secure_peer(server(&authority.issue("other.example.test", 2100), None)).await;
    assert_certificate(&exchange_with(address, trusted(), PLENTY).await, "not valid for name");
    let (address, _) = secure_peer(server(&authority.issue(NAME, 2021), None)).await;
    assert_certificate(&exchange_with(address, trusted(), PLENTY).await, "expired");
    let (address, _) = secure_peer(server(&authority.issue(NAME, 2100), None)).await;
    assert_certificate(&exchange_with(address, trusting(Roots::bundled()), PLENTY).await, "UnknownIssuer");
    assert_eq!(*read.lock().unwrap(), 0);
}

#[tokio::test]
async fn a_peer_that_shares_no_protocol_or_speaks_no_tls_is_a_setting() {
    let authority = Authority::new();
    let mut config = server(&authority.issue(NAME, 2100), None);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let (address, _) = secure_peer(config).await;
    assert_certificate(
        &exchange_with(address, trusting_only(&authority), PLENTY).await,
        "NoApplicationProtocol",
    );
    let talks_first = raw_peer(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        std::future::pending().await
    });
    assert_certificate(&exchange_with(talks_first.await, trusting_only(&authority), PLENTY).await, NAME);
}

#[tokio::test]
async fn a_connection_that_is_cut_in_the_handshake_sent_nothing_and_may_be_tried_again() {
    let authority = Authority::new();
    let fin = raw_peer(|stream| async { drop(stream) }).await;
    assert_eq!(told(&exchange_with(fin, trusting_only(&authority), PLENTY).await), "HandshakeCut");
    let rst = raw_peer(|stream| async move { stream.set_zero_linger().unwrap() }).await;
    assert_eq!(told(&exchange_with(rst, trusting_only(&authority), PLENTY).await), "HandshakeCut");
    let later = raw_peer(|mut stream| async move {
        let _ = stream.read_u8().await;
    });
    assert_eq!(told(&exchange_with(later.await, trusting_only(&authority), PLENTY).await), "HandshakeCut");
}

#[tokio::test]
async fn a_handshake_that_hangs_is_surely_unsent_only_while_the_connect_timeout_is_the_shorter() {
    let authority = Authority::new();
    let silent = raw_peer(|stream| async move {
        let _stream = stream;
        std::future::pending().await
    })
    .await;
    let short = TransportSettings { connect_timeout: SHORT, ..trusting_only(&authority) };
    let exchanged = exchange_with(silent, short, PLENTY).await;
    assert_eq!(told(&exchanged), "ConnectTimeout");
    let Exchanged::NeverSent { reason, .. } = exchanged else { panic!("{exchanged:?}") };
    assert_eq!(reason, format!("no connection to {NAME} within the connect timeout"));
    assert_eq!(told(&exchange_with(silent, trusting_only(&authority), SHORT).await), "TimedOut None");
}

#[tokio::test]
async fn a_domain_that_asks_for_a_client_certificate_gets_it_and_refuses_for_good_without() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let (address, read) = secure_peer(server(&authority.issue(NAME, 2100), Some(&clients))).await;
    assert_certificate(
        &exchange_with(address, trusting_only(&authority), PLENTY).await,
        "CertificateRequired",
    );
    let own = clients.issue("caller.example.test", 2100);
    let mut settings = trusting_only(&authority);
    let identity = ClientIdentity::from_pem(own.pem.as_bytes(), own.key.serialize_pem().as_bytes());
    settings.tls.identity = Some(identity.unwrap());
    assert_eq!(told(&exchange_with(address, settings, PLENTY).await), "200 hi");
    assert_eq!(*read.lock().unwrap(), 1);
}

#[test]
fn tls_settings_that_cannot_work_are_faults_and_repeat_no_key() {
    let fault =
        |roots: Roots| TlsSettings { roots, ..TlsSettings::default() }.client_config().unwrap_err().field;
    assert_eq!(fault(Roots::none()), "roots");
    assert_eq!(Roots::none().and_pem(b"no pem").unwrap_err().field, "roots");
    let (one, other) = (Authority::new().issue(NAME, 2100), Authority::new().issue(NAME, 2100));
    let broken = ClientIdentity::from_pem(one.pem.as_bytes(), b"hunter2").unwrap_err();
    assert_eq!(broken.to_string(), "client_certificate: holds no key in PEM");
    assert!(ClientIdentity::from_pem(b"", one.key.serialize_pem().as_bytes()).is_err());
    let mixed = ClientIdentity::from_pem(one.pem.as_bytes(), other.key.serialize_pem().as_bytes()).unwrap();
    assert_eq!(format!("{mixed:?}"), "ClientIdentity { .. }");
    let settings = TlsSettings { roots: Roots::bundled(), identity: Some(mixed), offer_http2: false };
    assert_eq!(settings.client_config().unwrap_err().field, "client_certificate");
}
