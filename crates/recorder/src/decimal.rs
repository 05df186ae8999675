//! Numbers as text, without an allocation.

/// Writes a number as text at the end of `digits`; returns the text.
pub fn decimal(value: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut first = digits.len();
    let mut rest = value;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &digits[first..];
        }
    }
}
