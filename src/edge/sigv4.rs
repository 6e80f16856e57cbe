//! A fresh signature for every attempt.

use crate::edge::canonical::{self, push};
use crate::edge::fault::Fault;
use crate::edge::head::set;
use crate::edge::signing_key::{SigningFault, SigningKeys, secret};
use crate::target::Target;
use aws_credential_types::Credentials;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::fmt;
use std::time::SystemTime;

/// Signs requests with AWS Signature Version 4 for one Region and service.
///
/// The keys and the signature come from `aws-sigv4`; the canonical request is written here, over a [`Target`] that is
/// already in its strict form. That crate's own signer of requests prints what it is handed to every TRACE subscriber,
/// panics on some header values, and derives the key anew each time.
pub(crate) struct Signer {
    region: String,
    service: String,
    /// What follows the day in a signature's scope.
    scope: String,
    unsigned_payload: bool,
    coverage: Coverage,
    keys: SigningKeys,
}

impl Signer {
    /// Makes a signer. `execute-api` and `lambda` sign the body's hash, `vpc-lattice-svcs` cannot (VPC Lattice,
    /// "SIGv4 authenticated requests").
    ///
    /// # Errors
    /// A Region or service that is empty or holds anything but letters, digits, `-`, `_` and `.`.
    pub(crate) fn new(region: impl Into<String>, service: impl Into<String>) -> Result<Signer, Fault> {
        let (region, service) = (region.into(), service.into());
        check_scope_part("region", &region)?;
        check_scope_part("service", &service)?;
        Ok(Signer {
            unsigned_payload: service == "vpc-lattice-svcs",
            scope: format!("/{region}/{service}/aws4_request"),
            region,
            service,
            coverage: Coverage {
                names: RIDE_ALONG.map(HeaderName::from_static).to_vec(),
                #[cfg(test)]
                all: false,
            },
            keys: SigningKeys::default(),
        })
    }

    /// Signs the header of this name too, where it has one value that is not sensitive.
    #[must_use]
    pub(crate) fn also_signing(mut self, name: HeaderName) -> Signer {
        self.coverage.names.push(name);
        self
    }

    /// The Region and the service that signatures name.
    pub(crate) fn scope(&self) -> (&str, &str) {
        (&self.region, &self.service)
    }

    /// Hashes a body, once for all attempts of a call; a service that cannot check it costs nothing.
    pub(crate) fn body_hash(&self, body: &[u8]) -> BodyHash {
        BodyHash((!self.unsigned_payload).then(|| canonical::sha256(body)))
    }

    /// Signs one attempt: returns the headers given with this signature's, and nothing of an earlier one.
    ///
    /// Signed are `host`, `content-type`, `x-amz-*`, `x-apigw-api-id` and the names that ride along, where they have
    /// one value, in UTF-8: what a proxy, a tracer or a logger may touch stays out, and so does every sensitive value.
    ///
    /// # Errors
    /// Credentials that no header can carry. White space in them is nearly always a stray newline of an environment
    /// variable or a file.
    pub(crate) fn sign(
        &self,
        method: &Method,
        target: &Target,
        mut headers: HeaderMap,
        body: &BodyHash,
        credentials: &Credentials,
        at: SystemTime,
    ) -> Result<SignedHeaders, SigningFault> {
        let at = canonical::within_calendar(at);
        let (date, key) = self.keys.at(credentials, at, (&self.region, &self.service))?;
        for name in [AUTHORIZATION, HOST, CONTENT_SHA256, SECURITY_TOKEN] {
            headers.remove(name);
        }
        set(&mut headers, DATE, date.clone().into_value());
        if self.unsigned_payload {
            set(&mut headers, CONTENT_SHA256, HeaderValue::from_static(UNSIGNED_PAYLOAD));
        }
        if let Some(token) = key.token() {
            set(&mut headers, SECURITY_TOKEN, token.clone());
        }

        // The usual headers and the body's hash take 600 bytes.
        let length = target.path().len() + target.query().len() + key.token().map_or(0, HeaderValue::len);
        let mut request = String::with_capacity(640 + length);
        push(&mut request, &[method.as_str(), "\n"]);
        canonical::push_path(&mut request, target.path());
        push(&mut request, &["\n"]);
        canonical::push_query(&mut request, target.query());
        push(&mut request, &["\n"]);
        let names = self.push_headers(&mut request, &headers, target);
        push(&mut request, &["\n", &names, "\n"]);
        match &body.0 {
            Some(hash) => canonical::push_hash(&mut request, hash),
            None => push(&mut request, &[UNSIGNED_PAYLOAD]),
        }

        let (time, day, scope) = (date.as_str(), date.day(), self.scope.as_str());
        let mut to_sign = String::with_capacity(256);
        push(&mut to_sign, &[ALGORITHM, "\n", time, "\n", day, scope, "\n"]);
        canonical::push_hash(&mut to_sign, &canonical::sha256(request.as_bytes()));
        let signature = key.sign(&to_sign);

        let mut authorization = String::with_capacity(256 + names.len());
        let id = credentials.access_key_id();
        let parts = [
            ALGORITHM,
            " Credential=",
            id,
            "/",
            day,
            scope,
            ", SignedHeaders=",
            &names,
            ", Signature=",
            &signature,
        ];
        push(&mut authorization, &parts);
        set(&mut headers, AUTHORIZATION, secret(authorization)?);
        Ok(SignedHeaders { headers, signed_at: at })
    }

    /// Appends the canonical headers, a line each, in order of their names; returns the names.
    fn push_headers(&self, request: &mut String, headers: &HeaderMap, target: &Target) -> String {
        // Where no name is repeated, which is nearly always, none need be looked up again.
        let repeats = headers.len() > headers.keys_len();
        let mut signed: Vec<(&str, &str)> = Vec::with_capacity(headers.len() + 1);
        for (name, value) in headers {
            let alone = !repeats || headers.get_all(name).iter().count() == 1;
            if let Some(value) = self.coverage.covered(name, value, alone) {
                signed.push((name.as_str(), value));
            }
        }
        signed.push((HOST.as_str(), target.host_header()));
        signed.sort_by_key(|(name, _)| *name);
        let (mut names, mut last) = (String::with_capacity(256), "");
        for (name, value) in signed {
            if name == last {
                // Only published test vectors sign repeats, joined by a comma.
                request.pop();
                push(request, &[","]);
            } else {
                push(&mut names, &[if last.is_empty() { "" } else { ";" }, name]);
                push(request, &[name, ":"]);
            }
            canonical::push_value(request, value);
            push(request, &["\n"]);
            last = name;
        }
        names
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("region", &self.region)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

/// What the signature says of the body: its hash, or none where it is not signed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyHash(Option<[u8; 32]>);

/// The headers of one attempt, signed.
#[derive(Clone)]
pub(crate) struct SignedHeaders {
    headers: HeaderMap,
    signed_at: SystemTime,
}

impl SignedHeaders {
    /// The headers to send; `authorization` and the session token are marked sensitive. `host` is not among them: it
    /// follows from the URL.
    pub(crate) fn into_headers(self) -> HeaderMap {
        self.headers
    }

    /// The same headers, to look at.
    #[cfg(test)]
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The time the signature carries.
    #[cfg(test)]
    pub(crate) fn signed_at(&self) -> SystemTime {
        self.signed_at
    }
}

impl fmt::Debug for SignedHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedHeaders").field("signed_at", &self.signed_at).finish_non_exhaustive()
    }
}

/// Which headers are signed.
struct Coverage {
    names: Vec<HeaderName>,
    /// All of them, repeats joined: what published test vectors are made with.
    #[cfg(test)]
    all: bool,
}

impl Coverage {
    /// The value as text, if it is signed; `alone` says that its name has no other.
    fn covered<'a>(&self, name: &HeaderName, value: &'a HeaderValue, alone: bool) -> Option<&'a str> {
        let text = str::from_utf8(value.as_bytes()).ok()?;
        #[cfg(test)]
        if self.all {
            return Some(text);
        }
        let listed = name == CONTENT_TYPE || name.as_str().starts_with("x-amz-") || self.names.contains(name);
        // The session token is secret and signed all the same: the protocol demands it.
        let usable = alone && (!value.is_sensitive() || name == SECURITY_TOKEN);
        (listed && usable).then_some(text)
    }
}

fn check_scope_part(field: &'static str, part: &str) -> Result<(), Fault> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if part.is_empty() || !part.chars().all(fits) {
        return Err(Fault::new(field, "is empty or holds a character that it may not"));
    }
    Ok(())
}

/// The client's own headers that are signed; the idempotency header is added under the name it has.
const RIDE_ALONG: [&str; 5] =
    ["x-apigw-api-id", "x-attempt-count", "x-correlation-id", "x-hop-count", "x-time-budget-ms"];
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

#[cfg(test)]
mod vectors;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::base_url::BaseUrl;
    use crate::edge::path::Path;
    use crate::edge::seen::Seen;
    use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
    use aws_sigv4::sign::v4;
    use proptest::prelude::*;
    use std::fmt::Write;
    use std::time::Duration;

    const KEY_ID: &str = "AKIDEXAMPLE";
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    fn keys(token: Option<&str>) -> Credentials {
        Credentials::from_keys(KEY_ID, SECRET, token.map(str::to_owned))
    }

    fn suite_time() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160)
    }

    fn target(path: &str, query: &[(&str, &str)]) -> Target {
        let pairs: Vec<_> = query.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let base = BaseUrl::parse("https://example.amazonaws.com", false).unwrap();
        base.target(&Path::from(path), &pairs).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        let mut headers = HeaderMap::new();
        pairs.for_each(|(name, value): (_, HeaderValue)| {
            headers.append(name, value);
        });
        headers
    }

    fn authorization(signed: &SignedHeaders) -> &str {
        signed.headers()[AUTHORIZATION].to_str().unwrap()
    }

    fn signature(signed: &SignedHeaders) -> &str {
        authorization(signed).rsplit_once("Signature=").unwrap().1
    }

    fn names(signed: &SignedHeaders) -> &str {
        let (_, rest) = authorization(signed).split_once("SignedHeaders=").unwrap();
        rest.split_once(',').unwrap().0
    }

    /// The same request, signed by `aws-sigv4` from end to end.
    fn second_opinion(
        method: &Method,
        target: &Target,
        signed_headers: &[(&str, &str)],
        body: &[u8],
        credentials: &Credentials,
        at: SystemTime,
    ) -> String {
        let identity = credentials.clone().into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region("eu-central-1")
            .name("execute-api")
            .time(at)
            .settings(SigningSettings::default())
            .build()
            .unwrap()
            .into();
        let headers = signed_headers.iter().copied();
        let request =
            SignableRequest::new(method.as_str(), target.as_str(), headers, SignableBody::Bytes(body))
                .unwrap();
        sign(request, &params).unwrap().into_parts().1
    }

    fn signer() -> Signer {
        Signer::new("eu-central-1", "execute-api").unwrap()
    }

    #[test]
    fn what_is_printed_of_a_signer_and_of_its_headers_holds_no_secret() {
        let signer = Signer::new("eu-central-1", "execute-api").unwrap();
        let hash = signer.body_hash(b"");
        let signed = signer
            .sign(
                &Method::POST,
                &target("/", &[]),
                HeaderMap::new(),
                &hash,
                &keys(Some("token")),
                suite_time(),
            )
            .unwrap();
        assert_eq!(format!("{signer:?}"), r#"Signer { region: "eu-central-1", service: "execute-api", .. }"#);
        assert_eq!(format!("{signed:?}"), format!("SignedHeaders {{ signed_at: {:?}, .. }}", suite_time()));
    }

    proptest! {
        #[test]
        fn every_signature_agrees_with_the_aws_signer(
            path in "(/[a-zA-Z0-9é %@:;+$~.-]{1,6}){0,3}/?",
            segments in prop::collection::vec("\\PC{1,6}", 0..3),
            query in prop::collection::vec(("\\PC{0,5}", "\\PC{0,5}"), 0..5),
            content_type in "[ -~]{1,20}",
            token in prop::option::of("[!-~]{1,40}"),
            seconds in 0_u64..253_402_300_799,
            body in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let base = BaseUrl::parse("https://h.example.test:8443/prod", false).unwrap();
            let path = segments.iter().fold(Path::from(path), |path, segment| path.segment(segment));
            if let Ok(target) = base.target(&path, &query) {
                let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
                let credentials = keys(token.as_deref());
                let template = headers(&[("content-type", &content_type), ("x-hop-count", "3"), ("accept", "*/*")]);
                let expected = second_opinion(
                    &Method::PATCH,
                    &target,
                    &[("content-type", template["content-type"].to_str().unwrap()), ("x-hop-count", "3")],
                    &body,
                    &credentials,
                    at,
                );
                let signer = signer();
                let hash = signer.body_hash(&body);
                // Twice, so that the kept key is checked like the fresh one.
                for _ in 0..2 {
                    let signed =
                        signer.sign(&Method::PATCH, &target, template.clone(), &hash, &credentials, at).unwrap();
                    prop_assert_eq!(signature(&signed), expected.as_str());
                }
            }
        }

        #[test]
        fn no_time_and_no_credential_makes_signing_panic(
            id in "\\PC{0,8}|[ -~\\n]{1,8}",
            secret in "\\PC{0,8}|[!-~]{1,8}",
            token in prop::option::of("\\PC{0,8}|[!-~]{1,8}"),
            seconds in any::<u64>(),
            past in any::<bool>(),
        ) {
            let distance = Duration::from_secs(seconds);
            let epoch = SystemTime::UNIX_EPOCH;
            let at = if past { epoch.checked_sub(distance) } else { epoch.checked_add(distance) };
            let credentials = Credentials::from_keys(id, secret, token);
            let signer = signer();
            let hash = signer.body_hash(b"");
            let _ = signer.sign(
                &Method::GET,
                &target("/", &[]),
                HeaderMap::new(),
                &hash,
                &credentials,
                at.unwrap_or(epoch),
            );
        }
    }

    #[test]
    fn what_a_proxy_or_a_tracer_may_touch_is_not_signed() {
        let template = headers(&[
            ("accept-encoding", "gzip"),
            ("via", "1.1 x"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x-amzn-trace-id", "Root=1-2"),
            ("user-agent", "curl"),
            ("traceparent", "00-1"),
            ("content-type", "application/json"),
            ("x-amz-target", "a"),
            ("x-apigw-api-id", "abc123"),
            ("x-hop-count", "1"),
            ("x-correlation-id", "c"),
            ("idempotency-key", "k"),
            ("x-time-budget-ms", "900"),
            ("x-attempt-count", "1"),
        ]);
        let signer = signer().also_signing(HeaderName::from_static("idempotency-key"));
        let hash = signer.body_hash(b"{}");
        let signed = signer
            .sign(&Method::POST, &target("/", &[]), template.clone(), &hash, &keys(Some("tok")), suite_time())
            .unwrap();
        assert_eq!(
            names(&signed),
            "content-type;host;idempotency-key;x-amz-date;x-amz-security-token;x-amz-target;x-apigw-api-id;\
             x-attempt-count;x-correlation-id;x-hop-count;x-time-budget-ms"
        );
        assert!(template.keys().all(|name| signed.headers().get(name) == template.get(name)));
    }

    #[test]
    fn repeated_and_sensitive_headers_go_out_as_they_came_and_are_not_signed() {
        let mut template = headers(&[("content-type", "a"), ("content-type", "b")]);
        let mut token = HeaderValue::from_static("user-token");
        token.set_sensitive(true);
        template.insert("x-amz-user", token);
        let signer = signer();
        let hash = signer.body_hash(b"");
        let signed = signer
            .sign(&Method::GET, &target("/", &[]), template.clone(), &hash, &keys(None), suite_time())
            .unwrap();
        assert_eq!(names(&signed), "host;x-amz-date");
        assert_eq!(signed.headers().get_all("content-type").iter().count(), 2);
        assert!(signed.headers()["x-amz-user"].is_sensitive());
    }

    #[test]
    fn nothing_of_an_earlier_signature_survives() {
        let signer = signer();
        let hash = signer.body_hash(b"");
        let sign = |template: &HeaderMap, token| {
            let at = suite_time();
            signer.sign(&Method::GET, &target("/", &[]), template.clone(), &hash, &keys(token), at).unwrap()
        };
        let first = sign(&HeaderMap::new(), Some("old-session"));
        let again = sign(first.headers(), None);
        assert!(!again.headers().contains_key("x-amz-security-token"));
        assert_eq!(authorization(&again), authorization(&sign(&HeaderMap::new(), None)));
        assert_eq!(again.headers().len(), 2);
    }

    #[test]
    fn the_headers_that_the_protocol_sets_are_nobody_else_s() {
        let foreign = headers(&[
            ("authorization", "foreign"),
            ("host", "foreign"),
            ("x-amz-content-sha256", "foreign"),
            ("x-amz-date", "foreign"),
            ("x-amz-security-token", "foreign"),
        ]);
        let signer = signer();
        let hash = signer.body_hash(b"");
        let signed =
            signer.sign(&Method::GET, &target("/", &[]), foreign, &hash, &keys(None), suite_time()).unwrap();
        assert_eq!(names(&signed), "host;x-amz-date");
        assert_eq!(signed.headers().len(), 2);
        assert!(signed.headers().values().all(|value| value != "foreign"));
    }

    #[test]
    fn a_later_attempt_carries_a_later_time_and_another_signature() {
        let signer = signer();
        let hash = signer.body_hash(b"");
        let sign = |at| {
            signer.sign(&Method::GET, &target("/", &[]), HeaderMap::new(), &hash, &keys(None), at).unwrap()
        };
        let (first, second) = (sign(suite_time()), sign(suite_time() + Duration::from_secs(420)));
        assert_eq!(first.headers()["x-amz-date"], "20150830T123600Z");
        assert_eq!(second.headers()["x-amz-date"], "20150830T124300Z");
        assert_eq!(second.signed_at(), suite_time() + Duration::from_secs(420));
        assert_ne!(signature(&first), signature(&second));
    }

    #[test]
    fn another_secret_under_the_same_id_is_not_signed_with_the_kept_key() {
        let signer = signer();
        let hash = signer.body_hash(b"");
        let sign = |secret: &str| {
            let keys = Credentials::from_keys(KEY_ID, secret, None);
            let signed = signer
                .sign(&Method::GET, &target("/", &[]), HeaderMap::new(), &hash, &keys, suite_time())
                .unwrap();
            signature(&signed).to_owned()
        };
        let wrong = sign("wrong");
        assert_ne!(sign(SECRET), wrong);
        assert_eq!(sign("wrong"), wrong);
    }

    #[test]
    fn the_key_of_yesterday_does_not_sign_today() {
        let (kept, fresh) = (signer(), signer());
        let hash = kept.body_hash(b"");
        let sign = |signer: &Signer, at| {
            let target = target("/", &[]);
            let signed =
                signer.sign(&Method::GET, &target, HeaderMap::new(), &hash, &keys(None), at).unwrap();
            signature(&signed).to_owned()
        };
        let today = suite_time() + Duration::from_secs(86_400);
        sign(&kept, suite_time());
        assert_eq!(sign(&kept, today), sign(&fresh, today));
    }

    #[test]
    fn a_stray_newline_in_any_credential_is_a_typed_error_that_repeats_nothing() {
        let signer = signer();
        let hash = signer.body_hash(b"");
        for (id, secret, token, fault) in [
            ("AKID\n", "s", Some("t"), SigningFault::KeyId),
            ("", "s", None, SigningFault::KeyId),
            ("AK ID", "s", None, SigningFault::KeyId),
            ("AKÎD", "s", None, SigningFault::KeyId),
            ("AKID", "hunter2 ", None, SigningFault::SecretKey),
            ("AKID", "", None, SigningFault::SecretKey),
            ("AKID", "s", Some("hunter2\r\nx-evil: 1"), SigningFault::SessionToken),
            ("AKID", "s", Some(""), SigningFault::SessionToken),
        ] {
            let keys = Credentials::from_keys(id, secret, token.map(str::to_owned));
            let found = signer
                .sign(&Method::GET, &target("/", &[]), HeaderMap::new(), &hash, &keys, suite_time())
                .unwrap_err();
            assert_eq!(found, fault);
            assert!(!format!("{found} {found:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_clock_before_1970_or_beyond_four_digit_years_signs_at_the_edge() {
        let signer = signer();
        let hash = signer.body_hash(b"");
        let date = |at| {
            let signed =
                signer.sign(&Method::GET, &target("/", &[]), HeaderMap::new(), &hash, &keys(None), at);
            signed.unwrap().headers()["x-amz-date"].to_str().unwrap().to_owned()
        };
        let epoch = SystemTime::UNIX_EPOCH;
        assert_eq!(date(epoch - Duration::from_secs(1 << 40)), "19700101T000000Z");
        assert_eq!(date(epoch), "19700101T000000Z");
        assert_eq!(date(epoch + Duration::from_secs(951_782_400)), "20000229T000000Z");
        assert_eq!(date(epoch + Duration::from_secs(1_709_251_199)), "20240229T235959Z");
        assert_eq!(date(epoch + Duration::from_secs(4_107_542_400)), "21000301T000000Z");
        assert_eq!(date(epoch + Duration::from_secs(1 << 50)), "99991231T235959Z");
    }

    #[test]
    fn what_is_longer_than_the_room_that_is_made_at_first_is_signed_whole() {
        let long = |letter: char, length| letter.to_string().repeat(length);
        let (path, value, token) = (format!("/{}", long('p', 700)), long('v', 2_000), long('t', 2_000));
        let names: Vec<_> = ('a'..='f').map(|letter| format!("x-amz-{}", long(letter, 60))).collect();
        let (mut template, mut listed) = (HeaderMap::new(), Vec::new());
        for name in &names {
            template.insert(HeaderName::try_from(name).unwrap(), HeaderValue::from_static("1"));
            listed.push((name.as_str(), "1"));
        }
        let (signer, keys) = (signer(), keys(Some(&token)));
        for query in [&[][..], &[("q", value.as_str())]] {
            let target = target(&path, query);
            let hash = signer.body_hash(b"");
            let signed =
                signer.sign(&Method::GET, &target, template.clone(), &hash, &keys, suite_time()).unwrap();
            let expected = second_opinion(&Method::GET, &target, &listed, b"", &keys, suite_time());
            assert_eq!(signature(&signed), expected);
        }
    }

    #[test]
    fn every_method_is_signed_with_the_hash_of_the_body_that_is_sent() {
        let signer = signer();
        for method in [Method::GET, Method::POST, Method::DELETE, Method::PUT, Method::PATCH, Method::HEAD] {
            for body in [&b""[..], b"{}"] {
                let hash = signer.body_hash(body);
                let none = HeaderMap::new();
                let signed =
                    signer.sign(&method, &target("/", &[]), none, &hash, &keys(None), suite_time()).unwrap();
                let expected =
                    second_opinion(&method, &target("/", &[]), &[], body, &keys(None), suite_time());
                assert_eq!(signature(&signed), expected, "{method}");
            }
        }
    }

    #[test]
    fn lattice_says_that_the_payload_is_unsigned_and_the_others_say_nothing_of_it() {
        let sign = |service: &str| {
            let signer = Signer::new("eu-central-1", service).unwrap();
            let hash = signer.body_hash(b"{}");
            signer
                .sign(&Method::POST, &target("/", &[]), HeaderMap::new(), &hash, &keys(None), suite_time())
                .unwrap()
        };
        let lattice = sign("vpc-lattice-svcs");
        assert_eq!(lattice.headers()["x-amz-content-sha256"], "UNSIGNED-PAYLOAD");
        assert_eq!(names(&lattice), "host;x-amz-content-sha256;x-amz-date");
        for service in ["execute-api", "lambda"] {
            let signed = sign(service);
            assert!(!signed.headers().contains_key("x-amz-content-sha256"));
            assert!(
                authorization(&signed).contains(&format!("/20150830/eu-central-1/{service}/aws4_request,"))
            );
        }
    }

    #[test]
    fn a_signer_tells_the_region_and_the_service_that_it_signs_for() {
        assert_eq!(signer().scope(), ("eu-central-1", "execute-api"));
    }

    #[test]
    fn region_and_service_cannot_break_the_scope() {
        for bad in ["", "eu/central", "eu central", "eu\n", "é"] {
            assert_eq!(Signer::new(bad, "execute-api").unwrap_err().field, "region");
            assert_eq!(Signer::new("eu-central-1", bad).unwrap_err().field, "service");
        }
    }

    #[test]
    fn no_subscriber_at_trace_and_no_debug_sees_a_secret() {
        let seen = Seen::default();
        let writer = seen.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        let signed = tracing::subscriber::with_default(subscriber, || {
            tracing::trace!("the subscriber listens");
            let signer = signer();
            let hash = signer.body_hash(b"body-marker");
            let target = target("/", &[("q", "query-marker")]);
            signer.sign(
                &Method::POST,
                &target,
                HeaderMap::new(),
                &hash,
                &keys(Some("the-token")),
                suite_time(),
            )
        })
        .unwrap();
        let mut text = seen.text();
        assert!(text.contains("the subscriber listens"));
        let _ = write!(text, "{signed:?} {:?} {:?}", signed.headers(), signer());
        for secret in [SECRET, "the-token", "query-marker", "body-marker", signature(&signed), KEY_ID] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert!(signed.headers()[AUTHORIZATION].is_sensitive());
        assert!(signed.headers()["x-amz-security-token"].is_sensitive());
    }
}
