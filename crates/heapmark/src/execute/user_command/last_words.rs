//! The words in which a failure is reported.

/// What went wrong, with the last line of its output, if there is any.
pub fn with_words(what: &str, said: &str) -> String {
    match said.trim_end().lines().last() {
        None => what.to_owned(),
        Some(words) => format!("{what}: {words}"),
    }
}
