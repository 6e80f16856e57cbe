//! Paths as callers give them, and what must be on the wire for them, by code that the client does not share.

use crate::text;
use proptest::prelude::*;

/// A path as text, as segments, or as both.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// URL path text, which may hold escapes.
    pub(crate) text: String,
    /// Data, appended to it.
    pub(crate) segments: Vec<String>,
}

impl Path {
    /// What follows the stage on the wire.
    pub(crate) fn on_the_wire(&self) -> String {
        let mut wire = String::new();
        if !self.text.is_empty() {
            wire.push('/');
            wire.push_str(&encode_text(self.text.strip_prefix('/').unwrap_or(&self.text)));
        }
        for segment in &self.segments {
            if !wire.ends_with('/') {
                wire.push('/');
            }
            encode(&mut wire, segment, "-._~");
        }
        wire
    }
}

pub(crate) fn any_path() -> impl Strategy<Value = Path> {
    prop_oneof![
        // The base itself, and the base with a slash.
        1 => prop::sample::select(&["", "/"][..]).prop_map(|text| Path { text: text.to_owned(), segments: Vec::new() }),
        8 => path_text().prop_map(|text| Path { text, segments: Vec::new() }),
        8 => segments().prop_map(|segments| Path { text: String::new(), segments }),
        4 => (path_text(), segments()).prop_map(|(text, segments)| Path { text, segments }),
    ]
}

fn segments() -> impl Strategy<Value = Vec<String>> {
    let segment = text::some_data(10).prop_filter("dots", |segment| !is_dots(segment));
    prop::collection::vec(segment, 1..5)
}

/// Segments of literal characters and escapes, with or without a slash at either end.
fn path_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => text::some_data(4).prop_map(|data| data.replace(refused_in_text, "")),
        2 => prop::sample::select(ESCAPES).prop_map(str::to_owned),
        1 => any::<u8>().prop_map(|byte| format!("%{byte:02X}")),
        1 => any::<u8>().prop_map(|byte| format!("%{byte:02x}")),
        2 => prop::sample::select(LITERALS).prop_map(str::to_owned),
    ];
    let segment = prop::collection::vec(piece, 1..5)
        .prop_map(|pieces| pieces.concat())
        .prop_filter("empty or dots", |segment| {
            !segment.is_empty() && !is_dots(&segment.replace("%2E", ".").replace("%2e", "."))
        });
    let ends = (any::<bool>(), any::<bool>());
    (prop::collection::vec(segment, 1..5), ends).prop_map(|(segments, (leading, trailing))| {
        let slash = |wanted| if wanted { "/" } else { "" };
        format!("{}{}{}", slash(leading), segments.join("/"), slash(trailing))
    })
}

/// What ends a path, or is an error in its text; a slash is put between segments elsewhere.
fn refused_in_text(c: char) -> bool {
    c.is_control() || matches!(c, '%' | '?' | '#' | '/')
}

fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// Escapes stay, with capital digits; what a path may hold stays; the rest is escaped (RFC 3986, sections 2.1, 3.3).
fn encode_text(text: &str) -> String {
    let mut wire = String::new();
    let mut pieces = text.split('%');
    encode(&mut wire, pieces.next().unwrap_or_default(), PATH_CHARACTERS);
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2).unwrap_or((piece, ""));
        wire.push('%');
        wire.push_str(&digits.to_ascii_uppercase());
        encode(&mut wire, rest, PATH_CHARACTERS);
    }
    wire
}

fn encode(wire: &mut String, data: &str, kept: &str) {
    for byte in data.bytes() {
        if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) {
            wire.push(byte.into());
        } else {
            wire.push_str(&format!("%{byte:02X}"));
        }
    }
}

const PATH_CHARACTERS: &str = "-._~!$&'()*+,;=:@/";
const ESCAPES: &[&str] = &[
    "%2F", "%2f", "%20", "%25", "%2520", "%C3%A9", "%7e", "%3F", "%23", "%2B", "%ff", "%00", "%41",
];
const LITERALS: &[&str] = &[
    "+", ":", "@", "~", "é", " ", "a:b@c+d", "日本", "(1)", "x=1;y=2", "[0]", "\"", "\\", "|",
];
