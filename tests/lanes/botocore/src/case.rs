//! One request as a caller asks for it, and how such are drawn.

use crate::path::{Path, any_path};
use crate::text;
use http::Method;
use proptest::prelude::*;
use std::time::{Duration, SystemTime};

/// A request as a caller asks for it, and the client that it is asked of.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) service: Service,
    pub(crate) region: &'static str,
    pub(crate) host: &'static str,
    pub(crate) stage: &'static str,
    pub(crate) at: SystemTime,
    pub(crate) credentials: Credentials,
    pub(crate) api_id: Option<String>,
    pub(crate) idempotency_header: &'static str,
    pub(crate) inbound: Option<(u8, String)>,
    pub(crate) method: Method,
    pub(crate) path: Path,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) key: Key,
    pub(crate) body: Vec<u8>,
}

/// The name in the credential scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    ExecuteApi,
    Lambda,
    VpcLattice,
}

impl Service {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Service::ExecuteApi => "execute-api",
            Service::Lambda => "lambda",
            Service::VpcLattice => "vpc-lattice-svcs",
        }
    }
}

/// Made up, and accepted by nobody else.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
}

/// Where the idempotency key comes from.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    Fresh,
    Given(String),
    None,
}

pub(crate) fn any_case(service: Service) -> impl Strategy<Value = Case> {
    let place = (
        prop::sample::select(REGIONS),
        prop::sample::select(HOSTS),
        prop::sample::select(STAGES),
        any_time(),
    );
    let client = (
        any_credentials(),
        prop::option::of("[a-z0-9]{4,12}"),
        prop::sample::select(IDEMPOTENCY_HEADERS),
        prop::option::of((1_u8..7, "[A-Za-z0-9._:-]{1,128}")),
    );
    let call = (any_method(), any_path(), any_query(), any_headers(), any_key(), any_body());
    (place, client, call).prop_map(move |(place, client, call)| {
        let (region, host, stage, at) = place;
        // A host that names its Region is signed for in no other.
        let named = REGIONS.iter().find(|region| host.contains(&format!(".{region}.")));
        let region = named.copied().unwrap_or(region);
        let (credentials, api_id, idempotency_header, inbound) = client;
        let (method, path, query, mut headers, key, body) = call;
        // The API's id is signed, so it is taken once: from the client, or else from the call.
        let mut ids = usize::from(api_id.is_some());
        headers.retain(|(name, _)| {
            let is_id = name.eq_ignore_ascii_case("x-apigw-api-id");
            ids += usize::from(is_id);
            !is_id || ids == 1
        });
        Case {
            service,
            region,
            host,
            stage,
            at,
            credentials,
            api_id,
            idempotency_header,
            inbound,
            // A safe method carries no key, and a given one is refused.
            key: if method.is_safe() { Key::None } else { key },
            method,
            path,
            query,
            headers,
            body,
        }
    })
}

/// Any second from 1970 to 2099; the days before and after leap days and turns of the year more often.
fn any_time() -> impl Strategy<Value = SystemTime> {
    let corner = prop::sample::select(
        &[951_782_399_u64, 951_868_800, 1_709_251_199, 1_735_689_599, 1_735_689_600][..],
    );
    prop_oneof![4 => 86_400_u64..4_102_444_800, 1 => corner]
        .prop_map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn any_credentials() -> impl Strategy<Value = Credentials> {
    let token = prop::option::of("[A-Za-z0-9+/]{16,1200}={0,2}");
    ("[A-Z0-9]{16,20}", "[A-Za-z0-9+/=]{1,64}", token).prop_map(|(id, secret, token)| Credentials {
        id,
        secret,
        token,
    })
}

fn any_method() -> impl Strategy<Value = Method> {
    prop_oneof![
        Just(Method::GET),
        Just(Method::HEAD),
        Just(Method::OPTIONS),
        Just(Method::POST),
        Just(Method::POST),
        Just(Method::PUT),
        Just(Method::PATCH),
        Just(Method::DELETE),
        "[A-Z]{3,8}".prop_filter_map("one of the connection's own", |name| {
            Method::from_bytes(name.as_bytes()).ok().filter(|method| *method != Method::CONNECT)
        }),
    ]
}

/// No pairs, few, many; empty names, empty values, and pairs that come again.
fn any_query() -> impl Strategy<Value = Vec<(String, String)>> {
    let pair = (text::data(8), text::data(12));
    let repeats = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
    (prop::collection::vec(pair, 0..6), repeats, any::<bool>()).prop_map(
        |(mut pairs, repeats, same_value)| {
            for repeat in repeats.into_iter().filter(|_| !pairs.is_empty()).collect::<Vec<_>>() {
                let (name, value) = repeat.get(&pairs).clone();
                let value = if same_value { value } else { format!("{value}~") };
                pairs.insert(0, (name, value));
            }
            pairs
        },
    )
}

fn any_headers() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let content_type = prop_oneof![
        3 => prop::sample::select(CONTENT_TYPES).prop_map(str::to_owned),
        1 => text::header_value(),
    ];
    let callers = prop::collection::vec((prop::sample::select(CALLERS), text::header_value()), 0..5);
    (prop::option::of(content_type), callers).prop_map(|(content_type, mut headers)| {
        headers.extend(content_type.map(|value| ("content-type", value)));
        headers
    })
}

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![2 => Just(Key::Fresh), 2 => text::visible(255).prop_map(Key::Given), 1 => Just(Key::None)]
}

/// Bytes of every value, none to 64 KiB, most often few.
fn any_body() -> impl Strategy<Value = Vec<u8>> {
    let length =
        prop_oneof![2 => Just(0_usize), 6 => 1_usize..400, 1 => 400_usize..=65_536, 1 => Just(65_536)];
    (length, any::<u64>()).prop_map(|(length, seed)| bytes(length, seed))
}

/// A linear congruence: one number a body to draw, where a vector would be one a byte.
fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    })
    .take(length)
    .collect()
}

const REGIONS: &[&str] = &["eu-central-1", "us-east-1", "ap-southeast-3", "us-gov-west-1", "cn-north-1"];
/// All of them lead to the loopback; the port is always part of the host.
const HOSTS: &[&str] = &[
    "127.0.0.1",
    "localhost",
    "abc123.execute-api.eu-central-1.amazonaws.com",
    "vpce-0123-abcd.execute-api.us-east-1.vpce.amazonaws.com",
    "Orders.Example.TEST",
    "bücher.example.test",
];
const STAGES: &[&str] = &["", "prod", "v1/internal", "$default", "größe"];
const IDEMPOTENCY_HEADERS: &[&str] = &["x-idempotency-key", "Idempotency-Key", "x-orders-once"];
const CONTENT_TYPES: &[&str] = &[
    "application/json",
    "application/json; charset=utf-8",
    "text/plain;   charset=\"utf  8\"",
    "  application/vnd.acme+json;v=1  ",
    "multipart/form-data; boundary=----a,b;c=d:e",
    "",
];
const CALLERS: &[&str] = &[
    "accept",
    "accept-language",
    "user-agent",
    "x-tenant",
    "x-api-key",
    "cookie",
    "if-match",
    "x-amzn-trace-id",
    "traceparent",
    "x-apigw-api-id",
    "X-Mixed-Case",
];
