//! The words in which a failure is reported.

use crate::execute::last_useful_line;

/// Returns what went wrong, with the last useful line of the process's output, if there is any.
pub fn with_words(what: &str, said: &str) -> String {
    match last_useful_line(said) {
        None => what.to_owned(),
        Some(words) => format!("{what}: {words}"),
    }
}
