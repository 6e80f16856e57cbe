//! A file of letters, read line by line: letters, acknowledgements, and whatever else it may hold.

use crate::dead_letter::letter::DeadLetter;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, BufRead, Read};

/// The letters of a file that are not acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// In the order in which they were first stored; of several with one id the last.
    pub letters: Vec<DeadLetter>,
    /// How many lines are neither letter nor acknowledgement: lines that a crash tore, or of another hand. A last line
    /// without its end that cannot be read does not count: it may still be being written.
    pub skipped_lines: usize,
}

/// The line that takes a letter off the list.
#[derive(Serialize, Deserialize)]
pub(super) struct Tombstone {
    pub(super) acknowledged: String,
}

/// Reads all lines, and keeps of each letter what `keep` makes of it.
pub(super) fn read<T>(reader: impl BufRead, keep: impl Fn(DeadLetter) -> T) -> io::Result<(Vec<T>, usize)> {
    let mut reader = reader;
    let (mut open, mut kept, mut skipped) = (HashMap::new(), Vec::<Option<T>>::new(), 0);
    let mut line = Vec::new();
    while let Some(ended) = next_line(&mut reader, &mut line, LONGEST_LINE)? {
        match parsed(&line) {
            Parsed::Acknowledged(id) => {
                if let Some(slot) = open.remove(&id).and_then(|at: usize| kept.get_mut(at)) {
                    *slot = None;
                }
            }
            Parsed::Empty => {}
            Parsed::Letter(letter) => {
                let at = *open.entry(letter.id.clone()).or_insert(kept.len());
                match kept.get_mut(at) {
                    Some(slot) => *slot = Some(keep(*letter)),
                    None => kept.push(Some(keep(*letter))),
                }
            }
            Parsed::Unknown => skipped += usize::from(ended),
        }
    }
    Ok((kept.into_iter().flatten().collect(), skipped))
}

enum Parsed {
    Acknowledged(String),
    Empty,
    Letter(Box<DeadLetter>),
    Unknown,
}

fn parsed(line: &[u8]) -> Parsed {
    if line.trim_ascii().is_empty() {
        return Parsed::Empty;
    }
    if let Ok(letter) = serde_json::from_slice(line) {
        return Parsed::Letter(Box::new(letter));
    }
    match serde_json::from_slice::<Tombstone>(line) {
        Ok(tombstone) => Parsed::Acknowledged(tombstone.acknowledged),
        Err(_) => Parsed::Unknown,
    }
}

/// Reads the next line, without what is over `longest` bytes of it. None at the end of the file; else, whether the line has
/// an end.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>, longest: u64) -> io::Result<Option<bool>> {
    line.clear();
    reader.take(longest).read_until(b'\n', line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.ends_with(b"\n") {
        return Ok(Some(true));
    }
    // The rest of a line that is too long, which is none of ours, so that it is not taken for a line of its own.
    loop {
        let (passed, ended) = {
            let rest = reader.fill_buf()?;
            match rest.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at.saturating_add(1), true),
                None => (rest.len(), false),
            }
        };
        reader.consume(passed);
        if ended || passed == 0 {
            return Ok(Some(ended));
        }
    }
}

/// Refuses a line that would be passed over when the file is read.
pub(super) fn check_length(bytes: usize) -> io::Result<()> {
    match u64::try_from(bytes) {
        Ok(length) if length < LONGEST_LINE => Ok(()),
        _ => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "the letter is longer than a line that is read"))
        }
    }
}

/// A body of the gateway's 10 MiB is 14 MiB as base64; headers, query and message are small beside it.
const LONGEST_LINE: u64 = 64 * 1_024 * 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_letter::letter::tests::letter;
    use proptest::prelude::*;

    fn ids(text: &[u8]) -> (Vec<String>, usize) {
        read(text, |letter| letter.id).unwrap()
    }

    fn line(id: &str) -> String {
        serde_json::to_string(&letter(id)).unwrap() + "\n"
    }

    fn tombstone(id: &str) -> String {
        format!("{{\"acknowledged\":\"{id}\"}}\n")
    }

    fn listed(ids: &[&str], skipped: usize) -> (Vec<String>, usize) {
        (ids.iter().map(|id| (*id).to_owned()).collect(), skipped)
    }

    #[test]
    fn an_acknowledged_letter_is_off_the_list_until_it_is_stored_again() {
        let text = line("a") + &line("b") + &tombstone("a") + &tombstone("nobody");
        assert_eq!(ids(text.as_bytes()), listed(&["b"], 0));
        assert_eq!(ids((text + &line("a")).as_bytes()), listed(&["b", "a"], 0));
    }

    #[test]
    fn of_several_letters_of_one_id_the_last_holds_in_the_place_of_the_first() {
        let mut later = letter("a");
        later.may_have_committed = true;
        let text = line("a") + &line("b") + &serde_json::to_string(&later).unwrap();
        let (letters, _) = read(text.as_bytes(), |letter| letter).unwrap();
        assert_eq!(letters, [later, letter("b")]);
    }

    #[test]
    fn what_would_not_be_listed_is_not_stored() {
        let most = usize::try_from(LONGEST_LINE).unwrap() - 1;
        assert!(check_length(most).is_ok());
        assert!(check_length(most + 1).is_err());
    }

    #[test]
    fn a_torn_last_line_is_passed_over_wherever_it_is_torn() {
        let (whole, torn) = (line("a"), line("b"));
        for cut in 0..torn.len() - 1 {
            let text = [whole.as_bytes(), &torn.as_bytes()[..cut]].concat();
            assert_eq!(ids(&text), listed(&["a"], 0), "{cut}");
        }
        // All but the newline is a letter.
        assert_eq!(ids((whole + torn.trim_end()).as_bytes()), listed(&["a", "b"], 0));
    }

    #[test]
    fn lines_of_another_hand_are_counted_and_harm_none_beside_them() {
        let mut text = line("a").into_bytes();
        text.extend(b"not json\n\xff\xfe\n\n{\"acknowledged\":7}\n[]\n");
        text.extend(line("b").into_bytes());
        assert_eq!(ids(&text), listed(&["a", "b"], 4));
    }

    #[test]
    fn a_line_without_end_is_not_held_in_memory() {
        let (mut reader, mut line) = (&b"aaaaaaaaaa\nbb\ncccccc"[..], Vec::new());
        assert_eq!(next_line(&mut reader, &mut line, 4).unwrap(), Some(true));
        assert_eq!(line, b"aaaa");
        assert_eq!(next_line(&mut reader, &mut line, 4).unwrap(), Some(true));
        assert_eq!(line, b"bb\n");
        assert_eq!(next_line(&mut reader, &mut line, 4).unwrap(), Some(false));
        assert_eq!(next_line(&mut reader, &mut line, 4).unwrap(), None);
    }

    proptest! {
        #[test]
        fn no_file_makes_reading_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = ids(&bytes);
        }

        #[test]
        fn no_damage_to_a_file_of_letters_makes_reading_it_panic(at in 0_usize..2_000, byte in any::<u8>(), cut in 0_usize..2_000) {
            let mut text = (line("a") + &tombstone("a") + &line("b")).into_bytes();
            let length = text.len();
            text[at % length] = byte;
            text.truncate(length - cut % length);
            let (letters, _) = ids(&text);
            prop_assert!(letters.len() <= 2);
        }
    }
}
