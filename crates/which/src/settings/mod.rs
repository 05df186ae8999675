//! The settings that allocators read, as their own parsers judge them: one file per grammar. Text
//! in, judgements out: nothing here looks at a process. What an allocator drops silently is
//! reported here, too.

pub mod glibc;
pub mod gperftools;
pub mod jemalloc;
pub mod mimalloc;
mod number;

use serde::Serialize;

/// A setting, and what the allocator's parser makes of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// The setting's name: `narenas`, `glibc.malloc.arena_max`, `MIMALLOC_PURGE_DELAY`; empty for
    /// text that is no setting.
    pub name: String,
    /// The value as it was given.
    pub value: String,
    /// The parser's judgement.
    pub judged: Judged,
}

/// What becomes of a setting, judged by its text alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    /// The parser accepts the setting with this value: a number in decimals, `true`, a word.
    Accepted(String),
    /// The parser rejects the setting, with the allocator's own words if it has some.
    Refused(String),
    /// No parser reads the setting, and nothing reports that, for this reason.
    Ignored(String),
    /// What this version makes of the setting is not known, for this reason.
    NotKnown(String),
}

impl Setting {
    fn new(name: &str, value: &str, judged: Judged) -> Setting {
        Setting {
            name: name.into(),
            value: value.into(),
            judged,
        }
    }
}

/// The numbers of a version: `5.3.1` is (5, 3, 1).
pub fn version(text: &str) -> (u32, u32, u32) {
    let mut numbers = text.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next())
}
