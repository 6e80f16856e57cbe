//! Exchanges with peers that behave, and with peers that do not.

use super::*;
use crate::edge::base_url::BaseUrl;
use crate::edge::credential_state::CacheSettings;
use crate::edge::credentials::CredentialCache;
use crate::edge::hand::Hand;
use crate::edge::head::size_over;
use crate::edge::path::Path;
use crate::edge::peer::{Act, FIN, HANG, Peer, RST, in_own_process, read_request};
use crate::edge::seen::Seen;
use crate::edge::sigv4::Signer;
use crate::edge::tls::{ClientIdentity, Roots, TlsSettings};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use tokio::net::TcpListener;

mod tls;

const PLENTY: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(60);
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
const LIMITS: BodyLimits = BodyLimits { success: 100, error: 8 };

fn base(peer: &Peer) -> BaseUrl {
    BaseUrl::parse(&format!("http://{}/prod", peer.address), false).unwrap()
}

fn target(peer: &Peer) -> Target {
    let query = [("secret".to_owned(), "query-marker".to_owned())];
    base(peer).target(&"/orders".into(), &query).unwrap()
}

fn settings() -> TransportSettings {
    TransportSettings { https_only: false, connect_timeout: PLENTY, ..TransportSettings::default() }
}

fn transport() -> Transport {
    Transport::new(settings(), Hand::new()).unwrap()
}

impl Transport {
    /// The exchange, as of now.
    async fn exchange_now(
        &self,
        request: (&Method, &Target, HeaderMap, Bytes),
        timeout: Duration,
        limits: BodyLimits,
    ) -> Exchanged {
        self.exchange(request, self.ambient.now(), timeout, limits).await
    }
}

async fn send(transport: &Transport, target: &Target, timeout: Duration) -> Exchanged {
    let body = Bytes::from_static(b"{}");
    transport.exchange_now((&Method::POST, target, HeaderMap::new(), body), timeout, LIMITS).await
}

/// What came of one exchange, in a form that can be compared.
fn told(exchanged: &Exchanged) -> String {
    match exchanged {
        Exchanged::Answered { status, body, oversized, .. } => {
            let more = if *oversized { "+" } else { "" };
            format!("{} {}{more}", status.as_u16(), String::from_utf8_lossy(body))
        }
        Exchanged::Lost { how, status, .. } => format!("{how:?} {:?}", status.map(|status| status.as_u16())),
        Exchanged::NeverSent { why, .. } => format!("{why:?}"),
    }
}

async fn one(acts: &[Act], timeout: Duration) -> String {
    let peer = Peer::playing(acts).await;
    let exchanged = send(&transport(), &target(&peer), timeout).await;
    if let Exchanged::Lost { source, .. } | Exchanged::NeverSent { source, .. } = &exchanged {
        assert!(!format!("{source} {source:?} {exchanged:?}").contains("query-marker"));
    }
    assert_eq!(peer.requests().len(), 1, "nothing is sent twice");
    told(&exchanged)
}

#[tokio::test]
async fn a_request_goes_out_as_it_was_given() {
    let peer = Peer::playing(&[Act::Write(OK)]).await;
    let path = Path::from("/a b/%7e{x}").segment("50% é/+");
    let query = [("q", "a b+c"), ("id", "2"), ("id", "1"), ("flag", "")];
    let query = query.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let target = base(&peer).target(&path, &query).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.append("x-twice", HeaderValue::from_static("1"));
    headers.append("x-twice", HeaderValue::from_static("2"));
    let body = Bytes::from_static(b"body");
    let answer =
        transport().exchange_now((&Method::PUT, &target, headers.clone(), body), PLENTY, LIMITS).await;
    assert_eq!(told(&answer), "200 hi");

    let request = peer.requests().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<&str> = head.lines().collect();
    let line = lines.remove(0);
    assert_eq!(line, "PUT /prod/a%20b/%7E%7Bx%7D/50%25%20%C3%A9%2F%2B?q=a%20b%2Bc&id=2&id=1&flag= HTTP/1.1");
    assert!(target.as_str().ends_with(line.split(' ').nth(1).unwrap()));
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "accept: */*",
            "content-length: 4",
            "content-type: text/plain",
            &format!("host: {}", target.host_header()),
            concat!("user-agent: eastwest/", env!("CARGO_PKG_VERSION")),
            "x-twice: 1",
            "x-twice: 2",
        ]
    );
    assert_eq!(body, "body");
    // The estimate allows for a body of eight digits, here it has one.
    assert_eq!(size_over(0, &headers, &target), Some(lines.join("\r\n").len() + 2 + 7));
}

#[tokio::test]
async fn a_bodiless_post_put_or_patch_says_so_and_the_other_methods_say_nothing() {
    let peer = Peer::playing(&[Act::Write("HTTP/1.1 204 No Content\r\n\r\n")]).await;
    let transport = transport();
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::GET, Method::DELETE, Method::OPTIONS] {
        let none = HeaderMap::new();
        let answer =
            transport.exchange_now((&method, &target(&peer), none, Bytes::new()), PLENTY, LIMITS).await;
        assert_eq!(told(&answer), "204 ");
        let request = peer.requests().pop().unwrap();
        let expected = matches!(method, Method::POST | Method::PUT | Method::PATCH);
        assert_eq!(request.contains("\r\ncontent-length: 0\r\n"), expected, "{request}");
        assert!(!request.contains("transfer-encoding"));
    }
}

#[tokio::test]
async fn a_callers_own_user_agent_wins_and_no_encoding_is_asked_for() {
    let peer = Peer::playing(&[Act::Write(OK)]).await;
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static("orders/1"));
    transport().exchange_now((&Method::GET, &target(&peer), headers, Bytes::new()), PLENTY, LIMITS).await;
    let request = peer.requests().remove(0);
    assert!(request.contains("\r\nuser-agent: orders/1\r\n"));
    assert!(!request.contains("eastwest") && !request.contains("accept-encoding"));
}

#[tokio::test]
async fn the_signed_host_is_the_host_on_the_wire() {
    let peer = Peer::playing(&[Act::Write(OK)]).await;
    let signer = Signer::new("eu-central-1", "execute-api").unwrap();
    let hash = signer.body_hash(b"");
    let keys = Credentials::from_keys("AKID", "secret", None);
    let at = crate::policy::moment::some_moment().wall;
    let signed = signer.sign(&Method::GET, &target(&peer), HeaderMap::new(), &hash, &keys, at).unwrap();
    let headers = signed.into_headers();
    assert!(!headers.contains_key(HOST));
    transport().exchange_now((&Method::GET, &target(&peer), headers, Bytes::new()), PLENTY, LIMITS).await;
    let request = peer.requests().remove(0);
    assert!(request.contains(&format!("\r\nhost: {}\r\n", target(&peer).host_header())));
    assert!(request.contains("SignedHeaders=host;x-amz-date,"));
}

#[tokio::test]
async fn no_subscriber_at_trace_sees_a_header_a_query_or_a_body() {
    let seen = Seen::default();
    let writer = seen.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let listening = tracing::subscriber::set_default(subscriber);
    tracing::trace!("the subscriber listens");
    let peer = Peer::playing(&[Act::Write(OK), FIN]).await;
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("header-marker"));
    let (transport, body) = (transport(), Bytes::from_static(b"body-marker"));
    for _ in 0..2 {
        let (headers, body) = (headers.clone(), body.clone());
        transport.exchange_now((&Method::POST, &target(&peer), headers, body), PLENTY, LIMITS).await;
    }
    drop(listening);
    let text = seen.text();
    assert!(text.contains("the subscriber listens"));
    for marker in ["header-marker", "query-marker", "body-marker"] {
        assert!(!text.contains(marker), "{text}");
    }
}

#[test]
fn an_exchange_and_a_wait_for_credentials_can_move_between_threads() {
    fn sendable<T: Send>(_: T) {}
    let transport = transport();
    let target = BaseUrl::parse("https://h.test", false).unwrap().target(&"/".into(), &[]).unwrap();
    sendable(transport.exchange_now((&Method::GET, &target, HeaderMap::new(), Bytes::new()), PLENTY, LIMITS));
    let keys = Credentials::from_keys("AKID", "secret", None);
    let provider = SharedCredentialsProvider::new(keys.clone());
    let cache = CredentialCache::new(provider, Hand::new(), CacheSettings::default());
    sendable(cache.get(PLENTY));
    sendable(cache.refresh(&keys, PLENTY));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let elsewhere = Peer::playing(&[Act::Write(OK)]).await;
    let location =
        format!("HTTP/1.1 307 x\r\nlocation: http://{}/\r\ncontent-length: 0\r\n\r\n", elsewhere.address);
    assert_eq!(one(&[Act::Write(location.leak())], PLENTY).await, "307 ");
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_connection_that_ends_without_an_answer_is_lost_and_nothing_is_repeated() {
    assert_eq!(one(&[FIN], PLENTY).await, "Connection None");
    assert_eq!(one(&[RST], PLENTY).await, "Connection None");
    assert_eq!(one(&[Act::WriteAndFin("HTTP/1.1 200 OK\r\ncontent-le")], PLENTY).await, "Connection None");
}

#[tokio::test]
async fn what_is_not_http_is_garbage() {
    assert_eq!(one(&[Act::WriteAndHang("SSH-2.0-OpenSSH_9.6\r\n\r\n")], PLENTY).await, "Garbage None");
    assert_eq!(
        one(&[Act::WriteAndHang("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")], PLENTY)
            .await,
        "Garbage Some(200)"
    );
}

#[tokio::test]
async fn the_timeout_covers_everything_to_the_last_byte_of_the_body() {
    assert_eq!(one(&[HANG], SHORT).await, "TimedOut None");
    assert_eq!(one(&[Act::WriteAndHang("HTTP/1.1 200 OK\r\n")], SHORT).await, "TimedOut None");
    let stalled = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    assert_eq!(one(&[Act::WriteAndHang(stalled)], SHORT).await, "TimedOut Some(200)");
}

#[tokio::test]
async fn a_success_that_breaks_off_is_truncated() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    let chunk_cut = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    assert_eq!(one(&[Act::WriteAndFin(cut)], PLENTY).await, "Truncated Some(200)");
    assert_eq!(one(&[Act::WriteAndFin(chunk_cut)], PLENTY).await, "Truncated Some(200)");
    // The reset may overtake what was written before it.
    let reset = one(&[Act::WriteAndRst(cut)], PLENTY).await;
    assert!(["Truncated Some(200)", "Connection None"].contains(&reset.as_str()), "{reset}");
}

#[tokio::test]
async fn of_any_other_answer_the_status_decides_and_what_came_of_the_body_is_kept() {
    let cut = "HTTP/1.1 503 x\r\ncontent-length: 9\r\n\r\nhalf";
    assert_eq!(one(&[Act::WriteAndFin(cut)], PLENTY).await, "503 half");
    assert_eq!(one(&[Act::WriteAndHang(cut)], SHORT).await, "503 half");
    let chunk_cut = "HTTP/1.1 400 x\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    assert_eq!(one(&[Act::WriteAndFin(chunk_cut)], PLENTY).await, "400 half");
}

#[tokio::test]
async fn a_body_is_read_up_to_its_limit_and_no_further() {
    const FULL: BodyLimits = BodyLimits { success: 4, error: 2 };
    let read = async |text: &'static str| {
        let peer = Peer::playing(&[Act::WriteAndHang(text)]).await;
        let body = Bytes::new();
        told(
            &transport()
                .exchange_now((&Method::GET, &target(&peer), HeaderMap::new(), body), PLENTY, FULL)
                .await,
        )
    };
    assert_eq!(read("HTTP/1.1 200 x\r\ncontent-length: 4\r\n\r\nfour").await, "200 four");
    assert_eq!(read("HTTP/1.1 500 x\r\ncontent-length: 2\r\n\r\nno").await, "500 no");
    // None of these ever comes to its end.
    assert_eq!(read("HTTP/1.1 200 x\r\ncontent-length: 99\r\n\r\nfives").await, "200 fi+");
    assert_eq!(read("HTTP/1.1 500 x\r\ncontent-length: 99\r\n\r\nnoo").await, "500 no+");
    assert_eq!(
        read("HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nfiv\r\n3\r\neee\r\n").await,
        "200 fi+"
    );
    assert_eq!(
        read("HTTP/1.1 403 x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nn\r\n3\r\noff\r\n").await,
        "403 no+"
    );
}

#[tokio::test]
async fn the_length_of_a_body_that_head_leaves_out_passes_no_limit() {
    let peer = Peer::playing(&[Act::Write("HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n")]).await;
    let none = HeaderMap::new();
    let answer =
        transport().exchange_now((&Method::HEAD, &target(&peer), none, Bytes::new()), PLENTY, LIMITS).await;
    assert_eq!(told(&answer), "200 ");
}

#[tokio::test]
async fn a_connection_is_kept_after_an_answer_of_any_status() {
    let peer =
        Peer::playing(&[Act::Write("HTTP/1.1 503 x\r\ncontent-length: 4\r\n\r\nbusy"), Act::Write(OK)]).await;
    let transport = transport();
    assert_eq!(told(&send(&transport, &target(&peer), PLENTY).await), "503 busy");
    assert_eq!(told(&send(&transport, &target(&peer), PLENTY).await), "200 hi");
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn an_exchange_tells_when_it_began_and_when_the_answer_was_there() {
    let peer = Peer::playing(&[Act::Write(OK)]).await;
    let clock = Hand::new();
    clock.moving(Duration::from_secs(2));
    let transport = Transport::new(settings(), clock).unwrap();
    let Exchanged::Answered { sent, received, .. } = send(&transport, &target(&peer), PLENTY).await else {
        panic!("no answer");
    };
    assert_eq!(received.since(&sent), Duration::from_secs(2));
}

#[tokio::test]
async fn a_kept_connection_that_the_peer_gave_up_is_lost_and_the_next_exchange_opens_another() {
    for act in [FIN, RST] {
        let peer = Peer::playing(&[Act::Write(OK), act, Act::Write(OK)]).await;
        let transport = transport();
        assert_eq!(told(&send(&transport, &target(&peer), PLENTY).await), "200 hi");
        assert_eq!(told(&send(&transport, &target(&peer), PLENTY).await), "Connection None");
        assert_eq!(peer.requests().len(), 2);
        assert_eq!(told(&send(&transport, &target(&peer), PLENTY).await), "200 hi");
        assert_eq!((peer.requests().len(), peer.connections()), (3, 2));
    }
}

fn thawed(exchanged: &Exchanged) -> bool {
    let Exchanged::Lost { thawed, .. } = exchanged else {
        panic!("not lost: {exchanged:?}");
    };
    *thawed
}

#[tokio::test]
async fn a_loss_on_a_connection_that_lay_idle_is_told_from_one_in_the_midst_of_traffic() {
    for (idle, expected) in [(Duration::from_secs(2), true), (Duration::from_millis(500), false)] {
        let peer = Peer::playing(&[Act::Write(OK), FIN]).await;
        let clock = Hand::new();
        let transport = Transport::new(settings(), Arc::clone(&clock) as _).unwrap();
        send(&transport, &target(&peer), PLENTY).await;
        clock.thaw_after(idle);
        assert_eq!(thawed(&send(&transport, &target(&peer), PLENTY).await), expected);
        // The new pool has no old connection to blame.
        clock.thaw_after(idle);
        assert!(!thawed(&send(&transport, &target(&peer), PLENTY).await));
    }
}

#[tokio::test]
async fn an_exchange_that_took_longer_than_it_may_was_frozen() {
    let peer = Peer::playing(&[FIN]).await;
    let clock = Hand::new();
    clock.moving(PLENTY + Duration::from_secs(2));
    let transport = Transport::new(settings(), clock).unwrap();
    assert!(thawed(&send(&transport, &target(&peer), PLENTY).await));
}

#[tokio::test]
async fn a_sandbox_that_slept_past_the_idle_time_begins_with_an_empty_pool() {
    let peer = Peer::playing(&[Act::Write(OK)]).await;
    let clock = Hand::new();
    let transport = Transport::new(settings(), Arc::clone(&clock) as _).unwrap();
    send(&transport, &target(&peer), PLENTY).await;
    clock.thaw_after(Duration::from_secs(15));
    send(&transport, &target(&peer), PLENTY).await;
    assert_eq!(peer.connections(), 1);
    clock.thaw_after(Duration::from_secs(16));
    assert_eq!(told(&send(&transport, &target(&peer), PLENTY).await), "200 hi");
    assert_eq!(peer.connections(), 2);
    transport.renew();
    assert_eq!(told(&send(&transport, &target(&peer), PLENTY).await), "200 hi");
    assert_eq!(peer.connections(), 3);
}

#[tokio::test]
async fn where_nobody_listens_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let target = BaseUrl::parse(&base, false).unwrap().target(&"/a".into(), &[]).unwrap();
    let exchanged = send(&transport(), &target, PLENTY).await;
    assert_eq!(told(&exchanged), "Refused");
    let Exchanged::NeverSent { reason, .. } = exchanged else { panic!("{exchanged:?}") };
    assert!(reason.starts_with("no connection to 127.0.0.1: "), "{reason}");
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_told_as_such() {
    // No resolver is asked for a label of more than 63 characters.
    let base = format!("http://{}.test", "a".repeat(64));
    let target = BaseUrl::parse(&base, true).unwrap().target(&"/a".into(), &[]).unwrap();
    assert_eq!(told(&send(&transport(), &target, PLENTY).await), "Dns");
}

#[tokio::test]
async fn plain_http_is_refused_here_too_unless_it_is_allowed() {
    let peer = Peer::playing(&[Act::Write(OK)]).await;
    let transport = Transport::new(TransportSettings::default(), Hand::new()).unwrap();
    assert_eq!(told(&send(&transport, &target(&peer), PLENTY).await), "Refused");
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn a_name_is_reached_at_the_address_that_was_given_for_it() {
    let peer = Peer::playing(&[Act::Write(OK)]).await;
    let settings = TransportSettings {
        resolve: vec![("api.example.test".to_owned(), "127.0.0.1:0".parse().unwrap())],
        ..settings()
    };
    let transport = Transport::new(settings, Hand::new()).unwrap();
    let base = format!("http://api.example.test:{}", peer.address.port());
    let target = BaseUrl::parse(&base, true).unwrap().target(&"/a".into(), &[]).unwrap();
    assert_eq!(told(&send(&transport, &target, PLENTY).await), "200 hi");
    assert!(peer.requests()[0].contains(&format!("\r\nhost: api.example.test:{}\r\n", peer.address.port())));
}

async fn send_to_the_environments_target(environment_proxies: bool) {
    let Ok(address) = std::env::var("EASTWEST_TEST_TARGET") else {
        return;
    };
    let settings = TransportSettings { environment_proxies, ..settings() };
    let base = BaseUrl::parse(&format!("http://{address}"), false).unwrap();
    let target = base.target(&"/a".into(), &[]).unwrap();
    let transport = Transport::new(settings, Hand::new()).unwrap();
    assert_eq!(told(&send(&transport, &target, PLENTY).await), "200 hi");
}

#[tokio::test]
#[ignore = "run by the test below, in a process with proxies in its environment"]
async fn with_proxies_ignored() {
    send_to_the_environments_target(false).await;
}

#[tokio::test]
#[ignore = "run by the test below, in a process with proxies in its environment"]
async fn with_proxies_asked() {
    send_to_the_environments_target(true).await;
}

#[tokio::test]
async fn the_proxies_of_the_environment_are_asked_only_if_that_is_asked_for() {
    for (test, by_proxy) in [("with_proxies_ignored", false), ("with_proxies_asked", true)] {
        let (proxy, api) = (Peer::playing(&[Act::Write(OK)]).await, Peer::playing(&[Act::Write(OK)]).await);
        let (by, to) = (format!("http://{}", proxy.address), api.address.to_string());
        let names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
        let mut environment: Vec<(&str, &str)> = names.iter().map(|name| (*name, by.as_str())).collect();
        environment.push(("EASTWEST_TEST_TARGET", &to));
        assert!(in_own_process(&format!("{}::{test}", module_path!()), &environment).await);
        assert_eq!((proxy.requests().len(), api.requests().len()), if by_proxy { (1, 0) } else { (0, 1) });
    }
}
