//! Where a callee is reached, and the URLs of its calls.

use crate::edge::fault::Fault;
use crate::edge::path::{self, PATH, Path, RESERVED};
use crate::target::{Authority, Target};
use percent_encoding::utf8_percent_encode;
use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;
use url::{Host, Url};

/// Where a callee is reached: scheme, host, port, and the stage or base path before every path.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BaseUrl {
    origin: Url,
    authority: Arc<Authority>,
    path: String,
    longest: usize,
}

impl BaseUrl {
    /// Parses a base URL; the stage or base path is kept, with or without its trailing slash.
    ///
    /// # Errors
    /// Anything but `https` (`http` only to the loopback, or where `allow_plain_http` says so), user information, a
    /// query, a fragment, white space or control characters, an empty host, and a path that [`Path`] would not take.
    pub(crate) fn parse(text: &str, allow_plain_http: bool) -> Result<BaseUrl, Fault> {
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(fault("holds white space or a control character"));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(fault("is not of the form https://host/path"));
        };
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(at).unwrap_or((rest, ""));
        check_authority(authority)?;
        if path.contains('?') || path.contains('#') {
            return Err(fault("holds a query or a fragment"));
        }
        let origin = parse_origin(scheme, authority)?;
        if origin.scheme() == "http" && !allow_plain_http && !is_loopback(&origin) {
            return Err(fault(
                "is not https; plain http is for the loopback, or with `.dangerously_allow_http()`",
            ));
        }
        let encoded = path::encode_text(BASE_URL, path)?;
        let kept = encoded.strip_suffix('/').unwrap_or(&encoded);
        Ok(BaseUrl {
            authority: Authority::of(&origin)
                .ok_or_else(|| fault("has a host that no header can carry"))?
                .into(),
            origin,
            path: if kept.is_empty() { String::new() } else { format!("/{kept}") },
            longest: LONGEST_URL,
        })
    }

    /// Sets the greatest length of a whole URL, in characters, at most 65,000; 8,192 if it is never set, the limit of
    /// private APIs (API Gateway, "Quotas for REST APIs").
    #[must_use]
    pub(crate) fn with_longest_url(mut self, characters: usize) -> BaseUrl {
        self.longest = characters.min(LONGEST_URI_OF_HTTP);
        self
    }

    /// The `Host` header as it is written to the wire: lower case, without the scheme's own port.
    #[cfg(test)]
    pub(crate) fn host_header(&self) -> &str {
        self.authority.as_str()
    }

    /// The path of a target of this base, without the base's own.
    pub(crate) fn path_below<'a>(&self, target: &'a Target) -> &'a str {
        target.path().strip_prefix(&*self.path).unwrap_or(target.path())
    }

    /// The host, without the port.
    pub(crate) fn host(&self) -> &str {
        self.origin.host_str().unwrap_or_default()
    }

    /// Scheme and authority, as a URL of this base begins.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", self.origin.scheme(), self.authority.as_str())
    }

    /// The port, the scheme's own where the URL names none.
    pub(crate) fn port(&self) -> Option<u16> {
        self.origin.port_or_known_default()
    }

    /// Whether the host is one of the names by which a private API is reached: an interface endpoint's own, or the
    /// alias of an API and an endpoint (*How to invoke a private API*, API Gateway Developer Guide).
    pub(crate) fn is_private_endpoint(&self) -> bool {
        let host = self.host();
        let first = host.split('.').next().unwrap_or_default();
        host.contains(".vpce.") || (host.contains(".execute-api.") && first.contains("-vpce-"))
    }

    /// The Region that the host's name tells, where it is one of AWS's own for an API, a function URL or a VPC Lattice service
    /// (*AWS service endpoints*, AWS General Reference).
    pub(crate) fn named_region(&self) -> Option<&str> {
        let host = self.host().strip_suffix('.').unwrap_or(self.host());
        let name = AWS_DOMAINS.iter().find_map(|domain| host.strip_suffix(domain))?;
        let mut labels = name.rsplit('.').filter(|label| *label != "vpce");
        let region = labels.next()?;
        labels.next().filter(|service| OF_A_REGION.contains(service)).map(|_| region)
    }

    /// Whether the connection is not encrypted.
    pub(crate) fn is_plain_http(&self) -> bool {
        self.origin.scheme() == "http"
    }

    /// Assembles the final URL of `path` below this base, with `query` in the order given.
    ///
    /// # Errors
    /// A path that would not arrive as it was meant, or a URL that is too long.
    pub(crate) fn target(&self, path: &Path, query: &[(String, String)]) -> Result<Target, Fault> {
        let mut wanted = self.path.clone();
        path.write_to(&mut wanted)?;
        if wanted.is_empty() {
            wanted.push('/');
        }
        let mut pairs = String::new();
        write_query(&mut pairs, query);
        // The host was parsed once for all calls, and no path or query can change it.
        let mut url = self.origin.clone();
        url.set_path(&wanted);
        if !query.is_empty() {
            url.set_query(Some(&pairs));
        }
        let length = url.as_str().len();
        if length > self.longest {
            let reason = format!("makes a URL of {length} characters, the limit is {}", self.longest);
            return Err(Fault::too_large(PATH, reason));
        }
        // What is signed was meant, what is sent is that URL.
        if url.path() != wanted || url.query().unwrap_or_default() != pairs {
            return Err(Fault::new(PATH, "would be changed on its way to the wire"));
        }
        Ok(Target::new(url, Arc::clone(&self.authority)))
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BaseUrl").field(&self.to_string()).finish()
    }
}

fn check_authority(authority: &str) -> Result<(), Fault> {
    if authority.contains('@') {
        return Err(fault("holds user information"));
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err(fault("has no host"));
    }
    // A backslash would begin the path, a percent sign would be decoded: neither belongs to a host.
    if authority.contains(['\\', '%']) {
        return Err(fault("holds a character that no host may hold"));
    }
    Ok(())
}

fn parse_origin(scheme: &str, authority: &str) -> Result<Url, Fault> {
    let origin = Url::parse(&format!("{scheme}://{authority}/")).map_err(|error| fault(error.to_string()))?;
    if !matches!(origin.scheme(), "http" | "https") {
        return Err(fault("is neither https nor http"));
    }
    if origin.host_str().is_none_or(str::is_empty) || origin.path() != "/" || origin.port() == Some(0) {
        return Err(fault("has no usable host and port"));
    }
    Ok(origin)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address == Ipv6Addr::LOCALHOST,
        None => false,
    }
}

fn write_query(text: &mut String, query: &[(String, String)]) {
    for (at, (name, value)) in query.iter().enumerate() {
        if at > 0 {
            text.push('&');
        }
        text.extend(utf8_percent_encode(name, RESERVED));
        text.push('=');
        text.extend(utf8_percent_encode(value, RESERVED));
    }
}

fn fault(reason: impl Into<String>) -> Fault {
    Fault::new(BASE_URL, reason)
}

const LONGEST_URL: usize = 8_192;
/// Where the names end that AWS gives, with the Region before.
const AWS_DOMAINS: [&str; 5] =
    [".amazonaws.com", ".amazonaws.com.cn", ".api.amazonwebservices.com.cn", ".api.aws", ".on.aws"];
/// What stands before the Region.
const OF_A_REGION: [&str; 4] = ["execute-api", "execute-api-fips", "lambda-url", "vpc-lattice-svcs"];
const LONGEST_URI_OF_HTTP: usize = 65_000;
const BASE_URL: &str = "base_url";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn base(text: &str) -> BaseUrl {
        BaseUrl::parse(text, false).unwrap()
    }

    fn refusal(text: &str) -> String {
        let fault = BaseUrl::parse(text, false).unwrap_err();
        assert_eq!(fault.field, "base_url");
        fault.reason
    }

    fn sent(path: &str) -> Result<String, Fault> {
        let target = base("https://orders.example.test/prod").target(&path.into(), &[])?;
        Ok(target.path().to_owned())
    }

    fn segments(of: &[&str]) -> Path {
        of.iter().fold(Path::default(), |path, segment| path.segment(*segment))
    }

    #[test]
    fn the_stage_is_kept_and_joined_with_exactly_one_slash() {
        for text in ["https://h.test/prod", "https://h.test/prod/"] {
            for path in ["/orders", "orders"] {
                let target = base(text).target(&path.into(), &[]).unwrap();
                assert_eq!(target.as_str(), "https://h.test/prod/orders");
            }
        }
        assert_eq!(base("https://h.test").target(&"a".into(), &[]).unwrap().path(), "/a");
    }

    #[test]
    fn the_empty_path_is_the_base_itself_and_a_slash_its_trailing_slash() {
        assert_eq!(sent("").unwrap(), "/prod");
        assert_eq!(sent("/").unwrap(), "/prod/");
        for path in ["", "/"] {
            assert_eq!(base("https://h.test").target(&path.into(), &[]).unwrap().path(), "/");
        }
        let asked = base("https://h.test").target(&Path::default().trailing_slash(), &[]).unwrap();
        assert_eq!(asked.as_str(), "https://h.test/");
    }

    #[test]
    fn the_names_that_aws_gives_tell_their_region_and_no_others_do() {
        for (host, region) in [
            ("a1b2c3.execute-api.eu-central-1.amazonaws.com", Some("eu-central-1")),
            ("a1b2c3-vpce-0f1e.execute-api.us-east-1.amazonaws.com", Some("us-east-1")),
            ("vpce-0f1e-ab.execute-api.us-east-1.vpce.amazonaws.com", Some("us-east-1")),
            ("vpce-0f1e-ab-us-east-1a.execute-api.us-east-1.vpce.amazonaws.com", Some("us-east-1")),
            ("a1b2c3.execute-api-fips.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
            ("a1b2c3.execute-api.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("a1b2c3.execute-api.eu-west-1.api.aws", Some("eu-west-1")),
            ("A1B2C3.LAMBDA-URL.EU-WEST-1.ON.AWS", Some("eu-west-1")),
            ("svc-1.7d67968.vpc-lattice-svcs.us-west-2.on.aws", Some("us-west-2")),
            ("a1b2c3.execute-api.eu-central-1.amazonaws.com.", Some("eu-central-1")),
            ("a1b2c3.execute-api.cn-north-1.api.amazonwebservices.com.cn", Some("cn-north-1")),
            ("orders.example.com", None),
            ("execute-api.eu-central-1.example.com", None),
            ("d-123.cloudfront.amazonaws.com", None),
            ("amazonaws.com", None),
            ("127.0.0.1", None),
        ] {
            assert_eq!(base(&format!("https://{host}/prod")).named_region(), region, "{host}");
        }
    }

    #[test]
    fn an_origin_names_no_port_but_one_that_is_not_the_scheme_s_own() {
        let origin = |text| BaseUrl::parse(text, true).unwrap().origin();
        assert_eq!(origin("https://API.example.test:443/prod"), "https://api.example.test");
        assert_eq!(origin("https://api.example.test:80/prod"), "https://api.example.test:80");
        assert_eq!(origin("http://api.example.test:443"), "http://api.example.test:443");
    }

    #[test]
    fn the_host_header_is_what_is_written_to_the_wire() {
        let host = |text| BaseUrl::parse(text, true).unwrap().host_header().to_owned();
        assert_eq!(host("https://Orders.Example.TEST:443/x"), "orders.example.test");
        assert_eq!(host("https://h.test:8443"), "h.test:8443");
        assert_eq!(host("http://h.test:80"), "h.test");
        assert_eq!(host("http://h.test:443"), "h.test:443");
        assert_eq!(host("http://[::1]:8080/a"), "[::1]:8080");
        assert_eq!(host("https://[0:0:0:0:0:0:0:1]/a"), "[::1]");
        assert_eq!(host("https://bücher.test"), "xn--bcher-kva.test");
    }

    #[test]
    fn plain_http_is_for_the_loopback_unless_it_is_allowed_by_name() {
        for text in ["http://127.0.0.1:80", "http://127.9.9.9", "http://[::1]:9", "http://localhost/p"] {
            assert!(base(text).is_plain_http());
        }
        for text in ["http://h.test", "http://128.0.0.1", "http://localhost.h.test", "http://[::2]"] {
            assert_eq!(
                refusal(text),
                "is not https; plain http is for the loopback, or with `.dangerously_allow_http()`"
            );
            assert!(BaseUrl::parse(text, true).is_ok());
        }
    }

    #[test]
    fn user_information_is_refused_and_not_repeated() {
        for text in ["https://user:hunter2@h.test/", "https://hunter2@h.test", "https://@h.test"] {
            let fault = BaseUrl::parse(text, true).unwrap_err();
            assert_eq!(fault.reason, "holds user information");
            assert!(!format!("{fault} {fault:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_base_url_that_is_more_or_less_than_a_base_is_refused() {
        for text in [
            "",
            "h.test",
            "//h.test",
            "https:h.test",
            "https:/h.test/a",
            "https://",
            "https:///a",
            "https://:443/a",
            "ftp://h.test",
            "file:///etc/passwd",
            "https://h.test?x",
            "https://h.test/?x=1",
            "https://h.test/#f",
            "https://h.test#f",
            "https://h.test/a b",
            " https://h.test",
            "https://h.test\n",
            "https://h.te\tst",
            "https://h.test\\@evil.test/",
            "https://h%2etest/",
            "https://h.test:0/",
            "https://h.test:99999/",
            "https://h.test/a/../b",
            "https://h.test//a",
            "https://h.test/%2e%2e/b",
            "https://h.test/%zz",
            "https://h.test/a//",
            "https://[::1",
            "https://h.test/a\u{0}",
        ] {
            assert!(BaseUrl::parse(text, true).is_err(), "{text:?}");
        }
    }

    #[test]
    fn path_text_keeps_its_escapes_and_encodes_what_a_path_may_not_hold() {
        assert_eq!(sent("/users/a b@x:y").unwrap(), "/prod/users/a%20b@x:y");
        assert_eq!(sent("/a%2fb/%c3%a9/é").unwrap(), "/prod/a%2Fb/%C3%A9/%C3%A9");
        assert_eq!(sent("/a+b&c=d;e,f!g$h'i(j)k*l").unwrap(), "/prod/a+b&c=d;e,f!g$h'i(j)k*l");
        assert_eq!(
            sent(r#"/{id}/a\b/a"b/<x>/`/^/|/[1]"#).unwrap(),
            "/prod/%7Bid%7D/a%5Cb/a%22b/%3Cx%3E/%60/%5E/%7C/%5B1%5D"
        );
        assert_eq!(sent("/a/b/").unwrap(), "/prod/a/b/");
        assert_eq!(sent("/.../.a/a.").unwrap(), "/prod/.../.a/a.");
        assert_eq!(sent("/a%00").unwrap(), "/prod/a%00");
    }

    #[test]
    fn path_text_that_could_mean_another_resource_is_refused() {
        for path in [
            "//a",
            "/a//b",
            "a//",
            "///",
            "/.",
            "/..",
            "/a/../b",
            "/a/./b",
            "..",
            "/%2e%2e/b",
            "/%2E/a",
            "/a/.%2e",
            "/a/%2e.",
            "/%2e%2E/",
            "/a?x=1",
            "/a#f",
            "/a\nb",
            "/a\tb",
            "/\u{7f}",
            "/\u{85}",
            "/100%",
            "/%",
            "/%2",
            "/%zz",
            "/%é1",
        ] {
            let fault = sent(path).unwrap_err();
            assert_eq!((fault.field, fault.too_large), ("path", false), "{path:?}");
        }
    }

    #[test]
    fn segments_are_data_and_are_encoded_one_by_one() {
        let path =
            |of: &[&str]| base("https://h.test/prod").target(&segments(of), &[]).map(|t| t.path().to_owned());
        assert_eq!(path(&["users", "a b@x:y", "café"]).unwrap(), "/prod/users/a%20b%40x%3Ay/caf%C3%A9");
        assert_eq!(
            path(&["a/b", "50%", "%2F", "?x#y", "a+b~c"]).unwrap(),
            "/prod/a%2Fb/50%25/%252F/%3Fx%23y/a%2Bb~c"
        );
        assert_eq!(path(&["%2e%2e"]).unwrap(), "/prod/%252e%252e");
        for bad in [&[""][..], &["a", "", "b"], &["."], &["a", ".."]] {
            assert!(path(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn segments_follow_text_and_a_trailing_slash_is_asked_for_by_name() {
        let base = base("https://h.test/prod");
        let path = |path: Path| base.target(&path, &[]).unwrap().path().to_owned();
        assert_eq!(path(Path::from("/orders").segment("7/8")), "/prod/orders/7%2F8");
        assert_eq!(path(Path::from("orders/").segment("7").segment("8")), "/prod/orders/7/8");
        assert_eq!(path(Path::from("/").segment("7")), "/prod/7");
        assert_eq!(path(segments(&["orders"]).trailing_slash()), "/prod/orders/");
        assert_eq!(path(Path::from("orders").trailing_slash()), "/prod/orders/");
        assert_eq!(path(Path::from("orders/").trailing_slash()), "/prod/orders/");
        assert_eq!(path(Path::from("orders/").segment("7").trailing_slash()), "/prod/orders/7/");
    }

    #[test]
    fn query_pairs_are_encoded_strictly_in_order_and_with_their_repeats() {
        let pairs = [("q", "a b+c"), ("id", "2"), ("id", "1"), ("flag", ""), ("k/&=", "é'*")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let target = base("https://h.test/prod").target(&"/a".into(), &pairs).unwrap();
        let query = "q=a%20b%2Bc&id=2&id=1&flag=&k%2F%26%3D=%C3%A9%27%2A";
        assert_eq!(target.query(), query);
        assert_eq!(target.as_str(), format!("https://h.test/prod/a?{query}"));
        assert!(!format!("{target:?}").contains("id="));
    }

    #[test]
    fn a_url_over_the_limit_is_too_large_and_one_at_the_limit_is_not() {
        let base = base("https://h.test/prod");
        let path = |length: usize| Path::from("a".repeat(length - "https://h.test/prod/".len()));
        assert_eq!(base.target(&path(8_192), &[]).unwrap().as_str().len(), 8_192);
        assert!(base.target(&path(8_193), &[]).unwrap_err().too_large);
        assert!(base.clone().with_longest_url(9_000).target(&path(8_193), &[]).is_ok());
        let query = [("q".to_owned(), "é".repeat(2_000))];
        assert!(base.target(&"a".into(), &query).unwrap_err().too_large);
    }

    proptest! {
        #[test]
        fn no_base_url_panics_or_leaves_its_host(text in "(https://)?[a-z:@/?#\\\\%.\\[\\]é0-9 -]{0,24}") {
            if let Ok(base) = BaseUrl::parse(&text, true) {
                let again = BaseUrl::parse(&base.to_string(), true).unwrap();
                prop_assert_eq!(again, base);
            }
        }

        #[test]
        fn whatever_path_is_taken_is_sent_as_it_was_assembled(text in "\\PC{0,20}", extra in "\\PC{1,12}") {
            let base = base("https://h.test/prod");
            let by_text = base.target(&Path::from(text.as_str()), &[]);
            if let Ok(target) = &by_text {
                prop_assert!(target.path().starts_with("/prod"));
                prop_assert_eq!(target.host(), "h.test");
                prop_assert!(target.as_str().parse::<http::Uri>().is_ok());
            }
            if !text.is_empty() && !text.starts_with('/') {
                let slashed = base.target(&Path::from(format!("/{text}")), &[]);
                prop_assert_eq!(by_text.ok().map(|t| t.url().clone()), slashed.ok().map(|t| t.url().clone()));
            }
            let segment = base.target(&Path::default().segment(extra.as_str()), &[]);
            if extra != "." && extra != ".." {
                let path = segment.unwrap().path().to_owned();
                let encoded = path.strip_prefix("/prod/").unwrap();
                let decoded = percent_encoding::percent_decode_str(encoded).decode_utf8().unwrap().into_owned();
                prop_assert_eq!(decoded, extra);
                prop_assert!(!encoded.contains('/'));
            }
        }
    }
}
