//! How a check of `heapmark check` ended.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a check ended, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckVerdict {
    /// It ran to its end, and all held.
    Pass,
    /// It cannot apply to this allocator or here.
    Unsupported,
    /// It ran to its end, and something did not hold.
    Fail,
    /// It did not end within its time.
    Hang,
    /// A signal or an exit of the allocator's ended it.
    Crash,
    /// The check itself went wrong, or another library served: nothing is known of the allocator.
    Error,
}

impl CheckVerdict {
    /// Whether a program cannot rely on what was checked. An error says nothing of the allocator.
    pub fn is_finding(self) -> bool {
        use CheckVerdict::{Crash, Fail, Hang};
        matches!(self, Fail | Hang | Crash)
    }
}

impl fmt::Display for CheckVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}
