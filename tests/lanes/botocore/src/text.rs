//! Text of the kinds that encoders trip over.

use proptest::prelude::*;

/// Any text: letters, the reserved, the unsafe, control characters, and all planes of Unicode.
pub(crate) fn data(most: usize) -> BoxedStrategy<String> {
    prop::collection::vec(character(), 0..=most)
        .prop_map(|characters| characters.into_iter().collect())
        .boxed()
}

/// The same, never empty.
pub(crate) fn some_data(most: usize) -> BoxedStrategy<String> {
    data(most).prop_filter("empty", |text| !text.is_empty()).boxed()
}

/// The value of a header: visible ASCII, runs of spaces, now and then what is not ASCII.
pub(crate) fn header_value() -> BoxedStrategy<String> {
    let character = prop_oneof![
        12 => (0x21_u8..=0x7e).prop_map(char::from),
        3 => Just(' '),
        1 => prop::sample::select(&['é', 'ß', '日', '😀'][..]),
    ];
    prop::collection::vec(character, 0..40)
        .prop_map(|characters| characters.into_iter().collect())
        .boxed()
}

/// Visible ASCII, 1 to `most` characters.
pub(crate) fn visible(most: usize) -> BoxedStrategy<String> {
    prop::collection::vec((0x21_u8..=0x7e).prop_map(char::from), 1..=most)
        .prop_map(|characters| characters.into_iter().collect())
        .boxed()
}

fn character() -> impl Strategy<Value = char> {
    let reserved: Vec<char> = " %@:+/?#[]!$&'()*,;=\"<>\\^`{|}-._~".chars().collect();
    let foreign: Vec<char> = "éüßñ日本語жא\u{301}\u{200d}\u{2028}\u{feff}😀𝔘\u{10ffff}"
        .chars()
        .collect();
    prop_oneof![
        8 => prop::char::ranges(vec!['a'..='z', 'A'..='Z', '0'..='9'].into()),
        6 => prop::sample::select(reserved),
        3 => prop::sample::select(foreign),
        1 => prop::sample::select(&['\0', '\t', '\r', '\n', '\u{1b}', '\u{7f}', '\u{85}'][..]),
        1 => any::<char>(),
    ]
}
