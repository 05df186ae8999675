//! The lines of a report, by key. No line is trusted.

/// The `key=value` lines of a report.
pub struct ReportLines<'a>(Vec<(&'a str, &'a str)>);

impl<'a> ReportLines<'a> {
    pub fn parse(text: &'a str) -> ReportLines<'a> {
        ReportLines(heapmark_wire::pairs(text).collect())
    }

    /// Returns the values of a key, in the order of the lines.
    pub fn values(&self, key: &str) -> impl Iterator<Item = &'a str> {
        self.all()
            .filter(move |(name, _)| *name == key)
            .map(|(_, value)| value)
    }

    /// Returns the first value of a key.
    pub fn value(&self, key: &str) -> Option<&'a str> {
        self.values(key).next()
    }

    /// Returns the values of a key that begin with a name, each split into that name and the rest.
    pub fn named(&self, key: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.values(key).filter_map(|value| value.split_once(' '))
    }

    /// Returns all keys and values.
    pub fn all(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().copied()
    }
}
