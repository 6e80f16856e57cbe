//! The parser: what it takes, what it refuses, and that nothing makes it panic.

use crate::testing::wire::body::{BodyReader, Framing};
use crate::testing::wire::http::{RawRequest, head_end};
use bytes::BytesMut;
use proptest::prelude::*;

fn parse(wire: &str) -> RawRequest {
    RawRequest::parse(wire.as_bytes()).unwrap_or_else(|error| panic!("{error}: {wire:?}"))
}

fn refused(wire: &str) -> String {
    match RawRequest::parse(wire.as_bytes()) {
        Ok(request) => panic!("{request:?} from {wire:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_request_is_kept_as_it_came() {
    let request = parse(
        "POST /prod/a%20b//c?q=+&id=2&id=1 HTTP/1.1\r\nHost: h\r\nX-A:  one \r\nx-a: two\r\nContent-Length: 2\r\n\r\n{}rest",
    );
    assert_eq!(request.method(), "POST");
    assert_eq!(request.target(), b"/prod/a%20b//c?q=+&id=2&id=1");
    assert_eq!(request.path(), b"/prod/a%20b//c");
    assert_eq!(request.query(), Some(&b"q=+&id=2&id=1"[..]));
    let lines: Vec<&[u8]> = request.header_lines().collect();
    assert_eq!(lines, [&b"Host: h"[..], b"X-A:  one ", b"x-a: two", b"Content-Length: 2"]);
    assert_eq!(request.header("X-a"), Some("one"));
    assert_eq!(request.header_values("x-a"), ["one", "two"]);
    assert_eq!(&request.body()[..], b"{}");
}

#[test]
fn an_absolute_target_has_the_path_behind_its_authority() {
    assert_eq!(parse("GET http://h:1/a?b HTTP/1.1\r\n\r\n").path(), b"/a");
    assert_eq!(parse("GET http://h HTTP/1.1\r\n\r\n").path(), b"/");
    assert_eq!(parse("GET /a HTTP/1.1\r\n\r\n").query(), None);
}

#[test]
fn chunks_are_put_together_and_extensions_and_trailers_passed_over() {
    let request = parse(
        "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nx-t: 1\r\n\r\n",
    );
    assert_eq!(&request.body()[..], b"abc0123456789");
}

#[test]
fn what_is_no_request_is_refused() {
    for (wire, why) in [
        ("", "does not end"),
        ("GET / HTTP/1.1\r\n", "does not end"),
        ("\r\n\r\n", "no target"),
        ("GET\r\n\r\n", "no target"),
        ("GET /\r\n\r\n", "no version"),
        ("G(T / HTTP/1.1\r\n\r\n", "method"),
        ("GET / HTTP/2.0\r\n\r\n", "version"),
        ("GET  HTTP/1.1\r\n\r\n", "target is empty"),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n", "no colon"),
        ("GET / HTTP/1.1\r\nx a: b\r\n\r\n", "token"),
        ("GET / HTTP/1.1\r\nx : b\r\n\r\n", "token"),
        ("GET / HTTP/1.1\r\nx: a\rb\r\n\r\n", "control"),
        ("GET / HTTP/1.1\r\nx: a\0b\r\n\r\n", "control"),
        ("GET / HTTP/1.1\r\n folded: a\r\n\r\n", "folded"),
        ("GET / HTTP/1.1\r\ncontent-length: 3\r\n\r\nab", "cut off"),
        ("GET / HTTP/1.1\r\ncontent-length: +1\r\n\r\na", "not a number"),
        ("GET / HTTP/1.1\r\ncontent-length: 18446744073709551616\r\n\r\na", "not a number"),
        ("GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab", "differ"),
        ("GET / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\na", "ambiguous"),
        ("GET / HTTP/1.1\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "ambiguous"),
        ("GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", "longer"),
        ("GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n\r\n", "size"),
        ("GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n", "size"),
        ("GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", "cut off"),
    ] {
        let error = refused(wire);
        assert!(error.contains(why), "{wire:?}: {error}");
    }
}

#[test]
fn a_body_over_the_limit_is_read_to_its_end_and_not_kept() {
    let mut reader = BodyReader::new(Framing::Counted(12), 4);
    let mut input = BytesMut::from(&b"0123456789abNEXT"[..]);
    assert_eq!(reader.feed(&mut input), Ok(true));
    assert_eq!(&input[..], b"NEXT");
    let body = reader.finish();
    assert_eq!(&body.kept[..], b"0123");
    assert!(body.over_limit);
}

#[test]
fn a_body_that_does_not_end_is_given_up() {
    let mut reader = BodyReader::new(Framing::Counted(u64::MAX), 4);
    assert_eq!(reader.feed(&mut BytesMut::from(&[b'x'; 32][..])), Ok(false));
    assert!(reader.feed(&mut BytesMut::from(&b"x"[..])).is_err());
}

#[test]
fn a_body_at_the_limit_is_kept() {
    let mut reader = BodyReader::new(Framing::Counted(4), 4);
    assert_eq!(reader.feed(&mut BytesMut::from(&b"0123"[..])), Ok(true));
    let body = reader.finish();
    assert_eq!((&body.kept[..], body.over_limit), (&b"0123"[..], false));
}

/// Bytes that look like a request for long enough to reach every corner.
fn requestish() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("GET /a?b=%zz HTTP/1.1".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("transfer-encoding: chunked\r\n".to_owned()),
        Just("content-length: 3\r\n".to_owned()),
        Just("connection: close\r\n".to_owned()),
        Just("host: h\r\n".to_owned()),
        Just(" folded\r\n".to_owned()),
        "[0-9a-f;]{0,4}\r\n",
        "\\PC{0,8}",
    ];
    let bytes =
        prop_oneof![piece.prop_map(String::into_bytes), proptest::collection::vec(any::<u8>(), 0..6),];
    proptest::collection::vec(bytes, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_bytes_panic_the_parser(wire in requestish()) {
        if let Ok(request) = RawRequest::parse(&wire) {
            let _ = (request.path(), request.query(), request.keeps_alive(), request.has_one_host());
            let _ = (request.target_is_uri(), format!("{request:?}"));
        }
    }

    #[test]
    fn a_chunked_body_is_the_same_whatever_the_pieces_it_comes_in(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 0..5),
        step in 1usize..9,
    ) {
        let mut wire = Vec::new();
        for chunk in &chunks {
            wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            wire.extend_from_slice(chunk);
            wire.extend_from_slice(b"\r\n");
        }
        wire.extend_from_slice(b"0\r\n\r\n");
        let (mut reader, mut input) = (BodyReader::new(Framing::Chunked, 1_000), BytesMut::new());
        let pieces: Vec<&[u8]> = wire.chunks(step).collect();
        for (at, piece) in pieces.iter().enumerate() {
            input.extend_from_slice(piece);
            prop_assert_eq!(reader.feed(&mut input), Ok(at + 1 == pieces.len()));
        }
        prop_assert_eq!(&reader.finish().kept[..], &chunks.concat()[..]);
    }

    #[test]
    fn no_bytes_panic_the_body_reader(pieces in proptest::collection::vec(requestish(), 0..4), counted in any::<Option<u64>>()) {
        let mut reader = BodyReader::new(counted.map_or(Framing::Chunked, Framing::Counted), 8);
        let mut input = BytesMut::new();
        for piece in pieces {
            input.extend_from_slice(&piece);
            if reader.feed(&mut input).is_err() {
                break;
            }
        }
        prop_assert!(reader.finish().kept.len() <= 8);
    }

    #[test]
    fn a_head_ends_where_its_empty_line_does(line in "[a-z]{1,9}", rest in "\\PC{0,9}") {
        let head = format!("{line}\r\n{line}\r\n\r\n");
        prop_assert_eq!(head_end(format!("{head}{rest}").as_bytes()), Some(head.len()));
    }
}
