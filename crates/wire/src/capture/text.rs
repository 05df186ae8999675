//! The text about a process: `key=value` lines. Values come from outside, so all but plain ASCII
//! characters are escaped as `%` and two digits: any bytes fit into a line and come back unchanged.

/// The bytes that stand for a value in its line.
pub fn escaped(value: &[u8]) -> impl Iterator<Item = u8> + '_ {
    value.iter().flat_map(|byte| {
        let (bytes, length) = escape(*byte);
        bytes.into_iter().take(length)
    })
}

/// The escaped form of a byte in a value: an array, and how many of its bytes count.
pub fn escape(byte: u8) -> ([u8; 3], usize) {
    let digit = |value: u8| b"0123456789abcdef"[usize::from(value & 15)];
    match byte {
        b'%' | 0..0x20 | 0x7f.. => ([b'%', digit(byte >> 4), digit(byte)], 3),
        _ => ([byte, 0, 0], 1),
    }
}

/// The bytes that a value encodes. A `%` without two digits is a plain `%`.
pub fn unescaped(value: &str) -> impl Iterator<Item = u8> + '_ {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut rest = value.as_bytes();
    core::iter::from_fn(move || {
        let (first, behind) = rest.split_first()?;
        rest = behind;
        match (*first, digit(behind.first()), digit(behind.get(1))) {
            (b'%', Some(high), Some(low)) => {
                rest = &behind[2..];
                Some((high << 4 | low) as u8)
            }
            (byte, ..) => Some(byte),
        }
    })
}

/// The pairs of a chunk's text. A torn last line, and lines that are not text, are left out.
pub(super) fn pairs(payload: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    let whole = payload
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let lines = payload[..whole].split(|byte| *byte == b'\n');
    lines.filter_map(|line| core::str::from_utf8(line).ok()?.split_once('='))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::String;
    use std::vec::Vec;

    #[test]
    fn any_value_is_one_plain_line_and_comes_back() {
        for value in [
            &b"plain, with = and spaces"[..],
            b"",
            b"50%",
            b"%41",
            b"two\nlines\r\0",
            b"\xff\x1b[31m",
            "\u{202e}".as_bytes(),
        ] {
            let line = String::from_utf8(escaped(value).collect()).unwrap();
            assert!(
                line.bytes().all(|byte| (0x20..0x7f).contains(&byte)),
                "{line}"
            );
            assert_eq!(unescaped(&line).collect::<Vec<u8>>(), value);
        }
    }

    #[test]
    fn a_percent_sign_without_digits_stands_for_itself() {
        for value in ["%", "%%", "%4", "%zz", "a%"] {
            assert_eq!(unescaped(value).collect::<Vec<u8>>(), value.as_bytes());
        }
    }

    #[test]
    fn a_torn_line_and_what_is_no_text_are_left_out() {
        let found: Vec<_> = pairs(b"pid=7\nno pair\nbad=\xff\nargv.0=a=b\nend=ex").collect();
        assert_eq!(found, [("pid", "7"), ("argv.0", "a=b")]);
        assert_eq!(pairs(b"torn=1").count(), 0);
    }
}
