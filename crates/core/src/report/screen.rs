//! The screen that a text is for.

use super::text::{is_invisible, plain, wrap};
use std::borrow::Cow;

/// The properties of the output.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns of characters in a line.
    pub width: usize,
    /// Whether escape sequences are allowed.
    pub colour: bool,
}

pub const BOLD: &str = "1";
pub const RED: &str = "31";
pub const GREEN: &str = "32";
pub const YELLOW: &str = "33";

/// Removes from whole lines what a terminal would interpret, except the colours of a [`Screen`].
pub fn plain_lines(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c == '\n' || (!c.is_control() && !is_invisible(c));
    if text.chars().all(is_plain) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find(|c| !is_plain(c)) {
        let (before, found) = rest.split_at(place);
        plain += before;
        let kept = found
            .strip_prefix('\t')
            .map_or_else(|| colour(found), |_| "\t");
        plain += kept;
        rest = match kept {
            "" => {
                found
                    .split_at(found.chars().next().map_or(0, char::len_utf8))
                    .1
            }
            kept => &found[kept.len()..],
        };
    }
    (plain + rest).into()
}

/// The escape sequence at the beginning of a text, if it is one of heapmark's colours; otherwise empty.
fn colour(text: &str) -> &str {
    let end = text.find('m').map_or(0, |end| end + 1);
    let sequence = &text[..end];
    match sequence
        .strip_prefix("\u{1b}[")
        .and_then(|code| code.strip_suffix('m'))
    {
        Some("0" | BOLD | RED | GREEN | YELLOW) => sequence,
        _ => "",
    }
}

impl Screen {
    /// Text in a colour, if the screen has any.
    pub fn paint(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// Makes a paragraph harmless and breaks it into lines that fit, all but the first indented.
    pub fn wrap(&self, text: &str, indent: usize) -> String {
        wrap(&plain(text), self.width, indent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_whole_lines_only_our_colours_survive() {
        let ours = "\u{1b}[31mred\u{1b}[0m\n\tü";
        assert_eq!(plain_lines(ours), ours);
        assert_eq!(
            plain_lines("a\u{1b}[8mb\u{1b}[31\u{1b}]0;t\u{7}m\r\u{9b}c\u{202e}d\n\u{1b}"),
            "a[8mb[31]0;tmcd\n"
        );
    }
}
