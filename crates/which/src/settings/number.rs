//! Numbers as C reads them.

/// A number at the start of a text, as `strtoumax` reads it.
pub(super) struct Leading<'a> {
    /// The number's value; a negative number wraps around, as in C.
    pub(super) value: u64,
    /// The text that follows the number.
    pub(super) rest: &'a str,
}

/// Reads a number in this base; 0 derives the base from a prefix `0x` or `0`. `None` if there is no
/// digit or the number is too large.
pub(super) fn leading(text: &str, base: u32) -> Option<Leading<'_>> {
    let blank = |c: char| c.is_ascii_whitespace() || c == '\x0b';
    let unsigned = text.trim_start_matches(blank);
    let is_negative = unsigned.starts_with('-');
    let digits = unsigned.strip_prefix(['-', '+']).unwrap_or(unsigned);
    let hex = digits
        .strip_prefix("0x")
        .or(digits.strip_prefix("0X"))
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (base, digits) = match (base, hex) {
        (0, Some(rest)) => (16, rest),
        (0, None) if digits.starts_with('0') => (8, digits),
        (0, None) => (10, digits),
        (base, _) => (base, digits),
    };
    let end = digits
        .find(|c: char| !c.is_digit(base))
        .unwrap_or(digits.len());
    let value = u64::from_str_radix(&digits[..end], base).ok()?;
    Some(Leading {
        value: if is_negative {
            value.wrapping_neg()
        } else {
            value
        },
        rest: &digits[end..],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_c_reads_it() {
        let read = |text, base| leading(text, base).map(|number| (number.value, number.rest));
        assert_eq!(read("12k", 10), Some((12, "k")));
        assert_eq!(read(" 0x1fz", 0), Some((31, "z")));
        assert_eq!(read("017", 0), Some((15, "")));
        assert_eq!(read("09", 0), Some((0, "9")));
        assert_eq!(read("0", 0), Some((0, "")));
        assert_eq!(read("-1", 0), Some((u64::MAX, "")));
        assert_eq!(read("0x", 0), Some((0, "x")));
        assert_eq!(read("x", 0), None);
        assert_eq!(read("99999999999999999999", 10), None);
    }
}
