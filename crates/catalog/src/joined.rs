//! Lists in sentences and in lines of a job.

/// The words as one text, with `between` between them.
pub fn joined<T: ToString>(words: impl IntoIterator<Item = T>, between: &str) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    words.join(between)
}
