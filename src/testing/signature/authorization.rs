//! The `authorization` header of SigV4, taken apart.

use crate::testing::signature::canonical::ALGORITHM;
use crate::testing::signature::verdict::Verdict;

/// A well-formed `authorization` header.
#[derive(Clone)]
pub(crate) struct Authorization {
    pub(crate) access_key_id: String,
    pub(crate) scope: Scope,
    pub(crate) signed_headers: Vec<String>,
    pub(crate) signature: String,
}

/// What a signature is good for.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) date: String,
    pub(crate) region: String,
    pub(crate) service: String,
    pub(crate) terminator: String,
}

impl Authorization {
    /// Takes the header's value apart; the error is the verdict on it.
    pub(crate) fn parse(value: &str) -> Result<Self, Verdict> {
        let (algorithm, pairs) = value.trim().split_once(' ').ok_or(Verdict::AuthorizationMalformed)?;
        if algorithm != ALGORITHM {
            return Err(match algorithm.starts_with("AWS4-") {
                true => Verdict::AlgorithmUnsupported(algorithm.to_owned()),
                false => Verdict::AuthorizationMalformed,
            });
        }
        let [mut credential, mut signature, mut signed_headers] = [None; 3];
        for pair in pairs.split(',') {
            let (name, value) = pair.trim().split_once('=').ok_or(Verdict::AuthorizationMalformed)?;
            let slot = match name {
                "Credential" => &mut credential,
                "Signature" => &mut signature,
                "SignedHeaders" => &mut signed_headers,
                _ => return Err(Verdict::AuthorizationMalformed),
            };
            if slot.replace(value).is_some() {
                return Err(Verdict::AuthorizationMalformed);
            }
        }
        let (Some(credential), Some(signature), Some(signed_headers)) =
            (credential, signature, signed_headers)
        else {
            let found = [credential, signature, signed_headers];
            let missing = PARTS.iter().zip(found).filter(|(_, found)| found.is_none()).map(|(name, _)| *name);
            return Err(Verdict::AuthorizationIncomplete(missing.collect()));
        };
        let (access_key_id, scope) = split_credential(credential)?;
        Ok(Authorization {
            access_key_id,
            scope,
            signed_headers: signed_headers.split(';').map(str::to_owned).collect(),
            signature: signature.to_owned(),
        })
    }
}

impl Scope {
    /// The scope as it stands in the string to sign.
    pub(crate) fn to_text(&self) -> String {
        [&*self.date, &*self.region, &*self.service, &*self.terminator].join("/")
    }
}

fn split_credential(credential: &str) -> Result<(String, Scope), Verdict> {
    let elements: Vec<&str> = credential.split('/').collect();
    let [key, date, region, service, terminator] = elements.as_slice() else {
        return Err(Verdict::CredentialMalformed(credential.to_owned()));
    };
    let [date, region, service, terminator] = [date, region, service, terminator].map(|s| (*s).to_owned());
    Ok(((*key).to_owned(), Scope { date, region, service, terminator }))
}

const PARTS: [&str; 3] = ["Credential", "Signature", "SignedHeaders"];

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(value: &str) -> Option<Verdict> {
        Authorization::parse(value).err()
    }

    #[test]
    fn a_well_formed_header_is_taken_apart() {
        let parsed = Authorization::parse(
            "AWS4-HMAC-SHA256 Credential=K/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date,Signature=ab",
        );
        let parsed = parsed.unwrap_or_else(|verdict| panic!("{verdict}"));
        assert_eq!(parsed.access_key_id, "K");
        assert_eq!(parsed.scope.to_text(), "20150830/us-east-1/service/aws4_request");
        assert_eq!(parsed.signed_headers, ["host", "x-amz-date"]);
        assert_eq!(parsed.signature, "ab");
    }

    #[test]
    fn other_schemes_and_broken_pairs_are_told_apart() {
        assert_eq!(verdict("Bearer abc"), Some(Verdict::AuthorizationMalformed));
        assert_eq!(verdict("AWS4-HMAC-SHA256"), Some(Verdict::AuthorizationMalformed));
        assert_eq!(verdict("AWS4-HMAC-SHA256 Credential"), Some(Verdict::AuthorizationMalformed));
        assert_eq!(
            verdict("AWS4-HMAC-SHA256 Signature=a, Signature=a"),
            Some(Verdict::AuthorizationMalformed)
        );
        assert_eq!(
            verdict("AWS4-HMAC-SHA512 Credential=a"),
            Some(Verdict::AlgorithmUnsupported("AWS4-HMAC-SHA512".into()))
        );
        assert_eq!(
            verdict("AWS4-HMAC-SHA256 Signature=a"),
            Some(Verdict::AuthorizationIncomplete(vec!["Credential", "SignedHeaders"]))
        );
        assert_eq!(
            verdict("AWS4-HMAC-SHA256 Credential=a/b/c/d, Signature=a, SignedHeaders=host"),
            Some(Verdict::CredentialMalformed("a/b/c/d".into()))
        );
    }
}
