//! The lines of a report, by key. No line is trusted.

/// `key=value` lines.
pub(super) struct ReportLines<'a>(Vec<(&'a str, &'a str)>);

impl<'a> ReportLines<'a> {
    pub(super) fn parse(text: &'a str) -> ReportLines<'a> {
        ReportLines(heapmark_wire::pairs(text).collect())
    }

    /// The values of a key, in the order of the lines.
    pub(super) fn values(&self, key: &str) -> impl Iterator<Item = &'a str> {
        self.all()
            .filter(move |(name, _)| *name == key)
            .map(|(_, value)| value)
    }

    /// All keys and values.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().copied()
    }
}
