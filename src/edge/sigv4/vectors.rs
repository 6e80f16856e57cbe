//! AWS's published vectors, signed here with every header covered, as they were made.

use super::*;
use crate::edge::base_url::BaseUrl;
use crate::edge::path::Path as UrlPath;
use percent_encoding::percent_decode_str;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One directory of the published suite.
struct Vector {
    name: String,
    directory: PathBuf,
}

/// The request of a vector, and the signature that was published for it.
struct Request {
    method: Method,
    target: String,
    headers: HeaderMap,
    body: String,
    authorization: String,
}

impl Vector {
    fn all() -> Vec<Vector> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sigv4-vectors");
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
        let directories = entries.filter(|entry| entry.path().is_dir());
        directories
            .map(|entry| Vector { name: entry.file_name().into_string().unwrap(), directory: entry.path() })
            .collect()
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.directory.join(file)).unwrap()
    }

    fn request(&self) -> Request {
        let text = self.text("header-signed-request.txt");
        let (head, body) = text.split_once("\n\n").unwrap();
        // A folded line goes on with white space.
        let head = head.replace("\n ", " ");
        let mut lines = head.lines();
        let mut request_line = lines.next().unwrap().splitn(2, ' ');
        let method = request_line.next().unwrap().parse().unwrap();
        let target = request_line.next().unwrap().strip_suffix(" HTTP/1.1").unwrap().to_owned();
        let (mut headers, mut authorization) = (HeaderMap::new(), String::new());
        for line in lines {
            let (name, value) = line.split_once(':').unwrap();
            let name: HeaderName = name.parse().unwrap();
            if name == AUTHORIZATION {
                authorization = value.to_owned();
            } else if name == CONTENT_SHA256 || ![HOST, DATE, SECURITY_TOKEN].contains(&name) {
                headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
        }
        Request { method, target, headers, body: body.to_owned(), authorization }
    }

    fn credentials(&self) -> Credentials {
        let context: serde_json::Value = serde_json::from_str(&self.text("context.json")).unwrap();
        let part = |name: &str| context["credentials"][name].as_str().map(str::to_owned);
        Credentials::from_keys(
            part("access_key_id").unwrap(),
            part("secret_access_key").unwrap(),
            part("token"),
        )
    }
}

impl Request {
    /// The target as this client would build it; none for a path that it refuses, or spells in another way.
    fn target(&self) -> Option<Target> {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let decoded = |text: &str| percent_decode_str(text).decode_utf8().unwrap().into_owned();
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        let base = BaseUrl::parse("https://example.amazonaws.com", false).unwrap();
        let target = base.target(&UrlPath::from(path), &pairs.collect::<Vec<_>>()).ok()?;
        (target.path() == path).then_some(target)
    }
}

#[test]
fn the_published_vectors_come_out_as_published_byte_for_byte() {
    let (mut signed_so_far, mut left_out) = (0, Vec::new());
    for vector in Vector::all() {
        let request = vector.request();
        let Some(target) = request.target() else {
            left_out.push(vector.name);
            continue;
        };
        // In one the token was added after signing, which this client always signs; two say the body's hash in a header,
        // which it says only where the body is not signed.
        if vector.name == "post-sts-header-after" || request.headers.contains_key(CONTENT_SHA256) {
            left_out.push(vector.name);
            continue;
        }
        let mut signer = Signer::new("us-east-1", "service").unwrap();
        signer.coverage.all = true;
        let hash = signer.body_hash(request.body.as_bytes());
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160);
        let credentials = vector.credentials();
        let signed =
            signer.sign(&request.method, &target, request.headers.clone(), &hash, &credentials, at).unwrap();
        assert_eq!(
            signed.headers()[AUTHORIZATION].to_str().unwrap(),
            request.authorization,
            "{}",
            vector.name
        );
        signed_so_far += 1;
    }
    left_out.sort_unstable();
    assert!(signed_so_far >= 20, "{signed_so_far} signed, left out: {left_out:?}");
}
