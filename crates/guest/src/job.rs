//! The job of this process: `key=value` lines that the host wrote.

use core::ffi::CStr;
use heapmark_wire::pairs;

/// The job's text, looked up by key. Jobs are short and read once, so nothing is indexed.
#[derive(Clone, Copy)]
pub struct Job<'a>(&'a str);

impl<'a> Job<'a> {
    /// A job from its text.
    pub fn new(text: &'a str) -> Job<'a> {
        Job(text)
    }

    /// The whole text.
    pub fn text(&self) -> &'a str {
        self.0
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        pairs(self.0)
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    }

    /// Whether the job has `key` with this value.
    pub fn is(&self, key: &str, value: &str) -> bool {
        self.get(key) == Some(value)
    }

    /// The value of a required key. The host writes complete jobs; defaults are only in the
    /// workload files.
    pub fn word(&self, key: &str) -> &'a str {
        self.get(key)
            .unwrap_or_else(|| fail!("error", "the job lacks `{key}`"))
    }

    /// [`Job::word`] as a number.
    pub fn number(&self, key: &str) -> u64 {
        let word = self.word(key);
        word.parse()
            .unwrap_or_else(|_| fail!("error", "`{key}={word}` is no number"))
    }

    /// The value of `key` as a C string in `room`.
    pub fn c_str<'r>(&self, key: &str, room: &'r mut [u8]) -> Option<&'r CStr> {
        c_str(self.get(key)?, room)
    }
}

/// A text as a C string in `room`; `None` if it does not fit.
pub fn c_str<'r>(text: &str, room: &'r mut [u8]) -> Option<&'r CStr> {
    room.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
    *room.get_mut(text.len())? = 0;
    CStr::from_bytes_until_nul(room).ok()
}
