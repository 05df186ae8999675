//! Which memory of measured processes may be in transparent huge pages.

use serde::{Deserialize, Serialize};

/// The rule for all processes of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum HugePages {
    /// None, even where a program asks for them
    Never,
    /// Where a program asks for them (madvise), even if the machine gives more
    Advised,
    /// As this machine is set
    #[default]
    Machine,
}

impl HugePages {
    /// Whether it is what the machine gives anyhow.
    pub fn is_machines(&self) -> bool {
        *self == HugePages::Machine
    }

    /// What a reader must know, unless it is as everywhere.
    pub fn remark(self) -> Option<&'static str> {
        match self {
            HugePages::Never => Some(
                "transparent huge pages: never, by --thp; not comparable with runs under another rule",
            ),
            HugePages::Advised => Some(
                "transparent huge pages: where a program asks for them, by --thp; not comparable with runs under another rule",
            ),
            HugePages::Machine => None,
        }
    }
}
