//! What the processes of a case run.

use serde::{Deserialize, Serialize};

/// What runs under every allocator of a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A kernel of the guest.
    Kernel(String),
    /// A program of the catalogue.
    Program(String),
    /// The user's own command.
    Command(Box<super::UserCommand>),
    /// Nothing: the case has only rows of programs with memory management of their own.
    Rows,
}
