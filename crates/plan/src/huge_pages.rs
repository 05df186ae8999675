//! Which memory of measured processes may be in transparent huge pages.

use serde::{Deserialize, Serialize};

/// A rule for measured processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum HugePages {
    /// None, even if a program asks for them
    Never,
    /// If a program asks for them (madvise), even if the machine gives more; beside never
    Advised,
    /// As this machine is set; beside never
    #[default]
    Machine,
}

impl HugePages {
    /// Returns the rule's name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            HugePages::Never => "never",
            HugePages::Advised => "advised",
            HugePages::Machine => "machine",
        }
    }

    /// Returns whether the rule is to leave the machine's setting as it is.
    pub fn is_machines(&self) -> bool {
        *self == HugePages::Machine
    }

    /// Returns what a reader must know about the rule, if it is not the usual one.
    pub fn remark(self) -> Option<&'static str> {
        (self == HugePages::Never).then_some(
            "transparent huge pages: never, by --thp, in each case whose name does not end in another rule; not comparable with runs without \
             --thp",
        )
    }
}
