//! Escapes strings from outside (names, paths, stderr), and wraps paragraphs.

use crate::analyse::distinct;
pub use crate::catalog::joined as join;
use serde::Serialize;
use std::io::{self, Write};

/// Removes everything that moves a cursor, changes a colour or turns the direction of the text;
/// line breaks become spaces.
pub fn plain(text: &str) -> String {
    text.replace(['\n', '\t'], " ")
        .chars()
        .filter(|c| !c.is_control() && !is_invisible(*c))
        .collect()
}

/// Whether a character is invisible, and changes how its neighbours are shown.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A JSON document in which each character that [`plain`] removes is an escape: the same for a
/// program, harmless for a terminal.
pub fn json(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    serde_json::to_writer_pretty(Escaping(&mut out), value)
        .expect("all keys are strings, and memory takes them");
    out.push(b'\n');
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// A writer that makes JSON harmless for a terminal. Takes whole characters only, as `serde_json`
/// writes them.
pub struct Escaping<W>(pub W);

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Control characters below 0x20 are escapes already: `serde_json` has written these.
        if bytes.iter().all(|byte| *byte < 0x7f) {
            self.0.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let text = str::from_utf8(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        for c in text.chars() {
            if c != '\n' && (c.is_control() || is_invisible(c)) {
                write!(self.0, "\\u{:04x}", u32::from(c))?;
            } else {
                write!(self.0, "{c}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Each text once, with the names of all entries that have it.
pub fn together(all: &[(String, String)]) -> Vec<(String, String)> {
    let with = |text: &String| {
        let names = all.iter().filter(|(_, other)| other == text);
        let names = list(distinct(names.map(|(name, _)| name)));
        (text.clone(), names)
    };
    distinct(all.iter().map(|(_, text)| text))
        .into_iter()
        .map(with)
        .collect()
}

/// Returns a command line as it is typed in a shell.
pub fn typed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    // A command line has no zero byte, which is all that cannot be quoted.
    shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "))
}

/// Breaks at spaces into lines of at most `width` characters, all but the first indented. A longer
/// word gets its own line.
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    let words = text.trim_start_matches(' ');
    let mut out = " ".repeat(text.len() - words.len());
    let mut used = out.len();
    for (place, word) in words.split(' ').enumerate() {
        let length = word.chars().count();
        if place > 0 && used + 1 + length > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
        } else if place > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(names: impl IntoIterator<Item = impl ToString>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    match names.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        one_or_none => one_or_none.concat(),
    }
}

/// Texts longer than this many characters are cut if they must fit into one line.
const MOST_LETTERS: usize = 100;

/// The text in one short line.
pub fn short(text: &str) -> String {
    cut(text, MOST_LETTERS)
}

/// The text in one line, cut after so many characters.
pub fn cut(text: &str, most: usize) -> String {
    let mut short = join(text.split_whitespace(), " ");
    if let Some((end, _)) = short.char_indices().nth(most) {
        short.truncate(end);
        short.push_str(" ...");
    }
    short
}

/// The text between two others; empty if the text is empty.
pub fn enclosed(before: &str, text: &str, after: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("{before}{text}{after}")
    }
}

/// `1 block`, `2 blocks`, `2 processes`.
pub fn count(n: impl ToString, noun: &str) -> String {
    let n = n.to_string();
    let ending = match n.as_str() {
        "1" => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{n} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_do_not_survive() {
        assert_eq!(
            plain("a\u{1b}[31mb\u{7}\r\u{9b}c\u{202e}d\ne"),
            "a[31mbcd e"
        );
    }

    #[test]
    fn in_json_they_are_escapes_of_the_same_characters() {
        let text = "a\u{1b}[31m\u{9b}b\u{202e}\u{feff}ü";
        let document = json(&[text]);
        assert!(
            document
                .chars()
                .all(|c| c == '\n' || (!c.is_control() && !is_invisible(c))),
            "{document}"
        );
        assert_eq!(
            serde_json::from_str::<Vec<String>>(&document).unwrap(),
            [text]
        );
    }

    #[test]
    fn wraps_at_spaces_and_keeps_indentation() {
        assert_eq!(wrap("one two three four", 9, 2), "one two\n  three\n  four");
        assert_eq!(
            wrap("  one averylongword x", 8, 0),
            "  one\naverylongword\nx"
        );
    }

    #[test]
    fn names_read_as_a_sentence() {
        let names = ["a", "b", "c"].map(String::from);
        assert_eq!(
            (list(&names), list(&names[..2]), list(&names[..1])),
            ("a, b and c".into(), "a and b".into(), "a".into())
        );
        assert_eq!(
            (count(1, "block"), count(2, "block")),
            ("1 block".into(), "2 blocks".into())
        );
        assert_eq!(count(2, "process"), "2 processes");
    }
}
