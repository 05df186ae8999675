//! Jobs and reports are text, one `key=value` per line, so that a person can read and write them.

/// The pairs of a job or report, in order. A line without `=` counts as a key with an empty value.
///
/// ```
/// let mut pairs = heapmark_wire::pairs("threads=2\nparam.body=a=b\n");
/// assert_eq!(pairs.next(), Some(("threads", "2")));
/// assert_eq!(pairs.next(), Some(("param.body", "a=b")));
/// assert_eq!(pairs.next(), None);
/// ```
pub fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.split_once('=').unwrap_or((line, "")))
}
