//! IAM's own reading of a resource, for tests: `*` any characters, `?` one, `${*}`, `${?}` and `${$}` themselves.

/// Whether a resource of a policy matches the ARN of a request.
pub(super) fn matches(resource: &str, arn: &str) -> bool {
    let mut pattern = Vec::new();
    let mut rest = resource;
    while let Some(letter) = rest.chars().next() {
        let mut escapes = ["${*}", "${?}", "${$}"].iter().filter(|_| letter == '$');
        let escaped = escapes.find(|escape| rest.starts_with(**escape));
        let (token, length) = match (escaped, letter) {
            (Some(escape), _) => (Token::Exactly(escape.chars().nth(2).unwrap()), 4),
            (None, '*') => (Token::Any, 1),
            (None, '?') => (Token::One, 1),
            (None, letter) => {
                assert!(!rest.starts_with("${"), "a policy variable: {rest}");
                (Token::Exactly(letter), letter.len_utf8())
            }
        };
        pattern.push(token);
        rest = &rest[length..];
    }
    let arn: Vec<char> = arn.chars().collect();
    let (mut at, mut here) = (0, 0);
    // The last star, and the first letter that it does not stand for yet.
    let mut star: Option<(usize, usize)> = None;
    while here < arn.len() {
        match pattern.get(at) {
            Some(Token::Any) => {
                star = Some((at, here));
                at += 1;
            }
            Some(Token::One) => (at, here) = (at + 1, here + 1),
            Some(Token::Exactly(letter)) if *letter == arn[here] => (at, here) = (at + 1, here + 1),
            _ => match star {
                // One letter more is the star's.
                Some((star_at, end)) => {
                    star = Some((star_at, end + 1));
                    (at, here) = (star_at + 1, end + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|token| *token == Token::Any)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Any,
    Exactly(char),
    One,
}

#[test]
fn the_matcher_reads_wildcards_as_iam_does() {
    for (resource, arn, is_match) in [
        ("a/*", "a/", true),
        ("a/*", "a/b/c", true),
        ("a/*", "a", false),
        ("a/*/c", "a/b/x/c", true),
        ("a/*/c", "a/c", false),
        ("a?c", "abc", true),
        ("a${?}c", "abc", false),
        ("a${?}c", "a?c", true),
        ("a${*}", "a*", true),
        ("a${*}", "abc", false),
        ("a${$}b", "a$b", true),
        ("$default", "$default", true),
    ] {
        assert_eq!(matches(resource, arn), is_match, "{resource} {arn}");
    }
}
