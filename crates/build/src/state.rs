//! Whether something can be measured now, and if not, why.

use super::Library;
use anyhow::Result;

/// Whether an allocator (or a program) can be measured now.
#[derive(Debug)]
pub enum State<T = Library> {
    /// Ready to be measured.
    Ready(T),
    /// Not built yet.
    NotBuilt {
        /// The command that builds it.
        line: String,
    },
    /// Not installed on this system.
    Absent {
        /// What is missing.
        why: String,
        /// The command that installs it.
        line: String,
    },
    /// Known to fail on the kernel that runs here.
    Unsupported {
        /// Which kernels, and what happens there.
        why: String,
    },
    /// Installed, but it cannot be used.
    Refused {
        /// What is wrong, where, and how to fix it.
        why: String,
    },
}

impl<T> State<T> {
    /// Returns the state that was found; [`State::Refused`] if there was an error.
    pub(super) fn of(found: Result<State<T>>) -> State<T> {
        found.unwrap_or_else(|error| State::Refused {
            why: format!("{error:#}"),
        })
    }
}
