//! A path template, taken apart: what is literal, what is a variable, and what becomes of each in an ARN.

use crate::iam::error::IamError;

/// One part of a path, or the method before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// `{proxy+}`: one part or more, and the last.
    Greedy(String),
    /// Itself. The root has one part, the empty one.
    Literal(String),
    /// `{id}`: exactly one part.
    Variable(String),
}

/// One part of a resource between its slashes, the method being the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// `*`: any characters, slashes among them, so one part or more.
    Any,
    /// Itself, not yet escaped.
    Exactly(String),
}

impl Part {
    pub(super) fn piece(&self) -> Piece {
        match self {
            Part::Greedy(_) | Part::Variable(_) => Piece::Any,
            Part::Literal(text) => Piece::Exactly(text.clone()),
        }
    }

    /// A REST API has one variable in a place, whatever its name; so all names of it are one.
    pub(super) fn place(&self) -> &str {
        match self {
            Part::Greedy(_) => "{+}",
            Part::Literal(text) => text,
            Part::Variable(_) => "{}",
        }
    }
}

impl Piece {
    /// As IAM reads it: what would be a wildcard or a variable is escaped (*IAM policy elements: Variables and tags*).
    pub(super) fn escaped(&self) -> String {
        match self {
            Piece::Any => "*".to_owned(),
            Piece::Exactly(text) => {
                let mut escaped = String::with_capacity(text.len());
                for letter in text.chars() {
                    match letter {
                        '$' | '*' | '?' => escaped.extend(["${", letter.encode_utf8(&mut [0; 4]), "}"]),
                        _ => escaped.push(letter),
                    }
                }
                escaped
            }
        }
    }
}

/// Takes a template apart.
pub(super) fn parts(template: &str) -> Result<Vec<Part>, IamError> {
    let refuse = |reason| IamError::invalid("template", template, reason);
    let path = template.strip_prefix('/').ok_or_else(|| refuse("a template begins with a slash"))?;
    if path.is_empty() {
        return Ok(vec![Part::Literal(String::new())]);
    }
    let words: Vec<&str> = path.split('/').collect();
    let last = words.len().saturating_sub(1);
    let of_word = |(at, word): (usize, &&str)| {
        let part = part(word).map_err(refuse)?;
        match part {
            Part::Greedy(_) if at != last => {
                Err(refuse("a variable with a plus takes all the rest, so it is last"))
            }
            part => Ok(part),
        }
    };
    words.iter().enumerate().map(of_word).collect()
}

fn part(word: &str) -> Result<Part, &'static str> {
    if word.is_empty() {
        return Err("there is nothing between two slashes, or after the last");
    }
    if word == "." || word == ".." {
        return Err("a part of dots would be taken away on the way");
    }
    if let Some(name) = word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) {
        let (name, greedy) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
        if name.is_empty() || !name.bytes().all(of_rest_part) {
            return Err("a variable's name is of letters, digits, dots, colons, hyphens and underscores");
        }
        let name = name.to_owned();
        return Ok(if greedy { Part::Greedy(name) } else { Part::Variable(name) });
    }
    if word.contains(['{', '}']) {
        return Err("a variable is a whole part, between two slashes");
    }
    if !word.is_ascii() {
        return Err("percent-encode what is not ASCII");
    }
    if !word.bytes().all(|byte| byte.is_ascii_graphic() && !br##""#<>?[\]^`|"##.contains(&byte)) {
        return Err("percent-encode what no path can have");
    }
    let mut escapes = word.split('%');
    escapes.next();
    let is_hex =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte));
    if !escapes.all(|rest| is_hex(rest.as_bytes().first()) && is_hex(rest.as_bytes().get(1))) {
        return Err(
            "two hexadecimal digits follow a percent sign, letters in upper case as clients send them",
        );
    }
    Ok(Part::Literal(word.to_owned()))
}

/// Whether a REST API takes this character in a part of its paths; it refuses all others, in its own words *Resource's
/// path part only allow a-zA-Z0-9._-: or a valid greedy path variable*.
pub(super) fn of_rest_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-:".contains(&byte)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_taken_apart_at_its_slashes() {
        let [literal, variable, greedy] = [Part::Literal, Part::Variable, Part::Greedy];
        assert_eq!(parts("/").unwrap(), [literal("".into())]);
        assert_eq!(
            parts("/v1/orders:batch/{order.id}/{proxy+}").unwrap(),
            [
                literal("v1".into()),
                literal("orders:batch".into()),
                variable("order.id".into()),
                greedy("proxy".into())
            ]
        );
    }

    #[test]
    fn what_is_no_template_is_refused_and_named() {
        for template in [
            "",
            "orders",
            "//",
            "/orders/",
            "/orders//lines",
            "/orders/..",
            "/./orders",
            "/v{n}",
            "/{}",
            "/{+}",
            "/{id",
            "/id}",
            "/{i d}",
            "/{{id}}",
            "/{proxy+}/lines",
            "/a b",
            "/a\tb",
            "/a\"b",
            "/a\\b",
            "/a#b",
            "/größe",
            "/50%",
            "/a%2",
            "/a%zz",
            "/a%2fb",
            "/a[1]",
            "/orders?x=1",
        ] {
            let error = parts(template).unwrap_err();
            assert_eq!(error.field(), Some("template"), "{template}");
            assert!(error.to_string().starts_with(&format!("template `{template}`: ")), "{error}");
        }
    }

    #[test]
    fn literal_wildcards_and_dollars_are_escaped_the_iam_way() {
        let piece = Piece::Exactly("a*b?c$d".to_owned());
        assert_eq!(piece.escaped(), "a${*}b${?}c${$}d");
        assert_eq!(Piece::Any.escaped(), "*");
    }
}
