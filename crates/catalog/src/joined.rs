//! Joins lists for sentences and for lines of a job.

/// Joins words to one text, with `between` between them.
pub fn joined<T: ToString>(words: impl IntoIterator<Item = T>, between: &str) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    words.join(between)
}
