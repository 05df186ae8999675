//! What a trace holds about the program and the machine it was recorded on: `key=value` lines, with
//! values as in a capture.

use heapmark_wire::capture::text;
use std::str::FromStr;

/// The key that has the value [`UNKNOWN`] if the source of the trace does not identify the main
/// thread.
pub const MAIN: &str = "main";
/// The value of [`MAIN`] if the main thread is not known.
pub const UNKNOWN: &str = "unknown";

/// Pairs of keys and values, in the order of the file. Values are escaped: plain ASCII, whatever
/// the program's name and arguments.
#[derive(Clone, Default)]
pub struct Head(pub(crate) Vec<(String, String)>);

impl Head {
    /// Reads lines; bytes that are not text become replacement characters.
    pub fn parse(bytes: &[u8]) -> Head {
        let text = String::from_utf8_lossy(bytes);
        Head(
            heapmark_wire::pairs(&text)
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }

    /// Returns the value of a key, unescaped; bytes that are not text become replacement
    /// characters.
    pub fn text(&self, key: &str) -> Option<String> {
        let bytes: Vec<u8> = text::unescaped(self.get(key)?).collect();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the value of a key, escaped.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find_map(|(name, value)| (name == key).then_some(value.as_str()))
    }

    /// Returns a key's value, if it is numeric.
    pub fn number<T: FromStr>(&self, key: &str) -> Option<T> {
        self.get(key)?.parse().ok()
    }

    /// Sets a key, or adds it at the end.
    pub fn set(&mut self, key: &str, value: impl ToString) {
        let value = value.to_string();
        let escaped: String = text::escaped(value.as_bytes()).map(char::from).collect();
        self.set_escaped(key, &escaped);
    }

    /// Sets a key as [`set`](Self::set) does, to a value that is already escaped.
    pub fn set_escaped(&mut self, key: &str, value: &str) {
        let value = value.to_owned();
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Returns all pairs except those whose keys begin with `start`.
    pub fn without(mut self, start: &str) -> Head {
        self.0.retain(|(key, _)| !key.starts_with(start));
        self
    }

    /// Returns the pairs as lines.
    pub fn lines(&self) -> String {
        self.0
            .iter()
            .map(|(key, value)| format!("{key}={value}\n"))
            .collect()
    }
}
