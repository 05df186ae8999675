//! What a trace says of the program and the machine it was recorded on: `key=value` lines.

/// Pairs in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head(Vec<(String, String)>);

impl Head {
    /// Reads lines; bytes that are no text become marks that say so.
    pub fn parse(bytes: &[u8]) -> Head {
        let text = String::from_utf8_lossy(bytes);
        Head(heapmark_wire::pairs(&text).map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// The value of a key; the first, where there are several.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Sets a key, or adds it at the end.
    pub fn set(&mut self, key: &str, value: impl ToString) {
        // A line break would be the end of the value and the start of another key.
        let value = value.to_string().replace(['\n', '\r'], " ");
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// All of them.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// As lines.
    pub fn text(&self) -> String {
        self.pairs().map(|(key, value)| format!("{key}={value}\n")).collect()
    }
}
