//! A program of the catalogue, and its files on this machine.

use crate::build::Executable;
use crate::catalog::program::{Prints, Serves};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A program and its files on this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    /// The program's name in the catalogue.
    pub name: String,
    /// Which allocator serves the program's memory.
    pub allocator: Serves,
    /// Variables that are set in the program's process.
    pub environment: BTreeMap<String, String>,
    /// The command that is started.
    pub executable: Executable,
    /// What the program must print, if it does not speak the job protocol.
    pub expects_stdout: Option<Prints>,
    /// For a program without the job protocol: a library that counts calls of the malloc family.
    pub counter: Option<PathBuf>,
    /// Why the program cannot be started: its cells end `unsupported`.
    pub refused: Option<String>,
    /// What the program needs but this machine does not have: its cells end `absent`.
    pub absent: Option<String>,
}

/// Fills one word of a command: `{n}` becomes the value of parameter `n`; other braces stay.
pub fn fill(word: &str, parameters: &BTreeMap<String, String>) -> String {
    parameters
        .iter()
        .fold(word.to_string(), |word, (name, value)| {
            word.replace(&format!("{{{name}}}"), value)
        })
}
