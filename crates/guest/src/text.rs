//! Text that is written without heap memory, into the caller's buffer.

use core::ffi::CStr;
use core::fmt;
use core::str::FromStr;

/// Parses a word as a number; `None` if it is not a number.
pub fn number<N: FromStr>(word: &CStr) -> Option<N> {
    word.to_str().ok()?.parse().ok()
}

/// A formatted text as a C string in a zeroed buffer; `None` if it does not fit.
pub fn c_str_in<'r>(room: &'r mut [u8], text: fmt::Arguments<'_>) -> Option<&'r CStr> {
    fmt::Write::write_fmt(&mut TextIn::new(room), text).ok()?;
    CStr::from_bytes_until_nul(room).ok()
}

/// Text in a zeroed buffer. Text that does not fit is an error.
pub struct TextIn<'a> {
    room: &'a mut [u8],
    len: usize,
}

impl<'a> TextIn<'a> {
    /// An empty text in a buffer of zeros.
    pub fn new(room: &'a mut [u8]) -> TextIn<'a> {
        TextIn { room, len: 0 }
    }

    /// The text that has been written.
    pub fn text(&self) -> &str {
        core::str::from_utf8(&self.room[..self.len]).unwrap_or_default()
    }

    /// The text as a C string; `None` if there is no room for the terminating zero.
    pub fn c_str(&self) -> Option<&CStr> {
        CStr::from_bytes_until_nul(self.room).ok()
    }
}

impl fmt::Write for TextIn<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.room.get_mut(self.len..self.len + part.len());
        room.ok_or(fmt::Error)?.copy_from_slice(part.as_bytes());
        self.len += part.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write;

    #[test]
    fn a_text_that_fills_its_buffer_is_no_c_string_and_takes_no_more() {
        let mut room = [0; 4];
        let mut text = TextIn::new(&mut room);
        assert!(write!(text, "{}", 123).is_ok());
        assert_eq!(text.c_str(), Some(c"123"));
        assert!(write!(text, "45").is_err());
        assert!(write!(text, "4").is_ok());
        assert_eq!((text.text(), text.c_str()), ("1234", None));
    }
}
