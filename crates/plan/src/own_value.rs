//! A number that a command reports of itself, and where it stands: what `heapmark try --value` judges instead of time.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A number that the command reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnValue {
    /// The value's name in tables.
    pub name: String,
    /// Whether more of it is better.
    pub higher: bool,
    /// What it is measured in; may be empty.
    pub unit: String,
    /// How the value is read.
    pub read: ReadValue,
    /// Where it stands.
    pub from: ValueFrom,
}

/// How a number is read out of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadValue {
    /// What the only group of this expression captures.
    Regex(String),
    /// What stands at this path of a JSON document: `results[0].times`.
    Json(String),
    /// The format of a known tool; of several benchmarks the one of this name.
    Tool {
        /// The tool.
        tool: String,
        /// The benchmark.
        benchmark: Option<String>,
    },
}

/// The text that has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueFrom {
    /// What the command prints; of a server, what its client prints.
    #[default]
    Stdout,
    /// What the command writes to stderr.
    Stderr,
    /// A file that each process writes, relative to its folder.
    File(PathBuf),
}

impl std::fmt::Display for ValueFrom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ValueFrom::Stdout => f.write_str("stdout"),
            ValueFrom::Stderr => f.write_str("stderr"),
            ValueFrom::File(file) => write!(f, "{}", file.display()),
        }
    }
}

impl OwnValue {
    /// How the names of their figures begin.
    pub const FIGURES: &str = "value.";

    /// `ops, 1/s`.
    pub fn title(&self) -> String {
        match self.unit.as_str() {
            "" => self.name.clone(),
            unit => format!("{}, {unit}", self.name),
        }
    }

    /// `ops, 1/s, the higher the better, from stdout`.
    pub fn described(&self) -> String {
        let better = if self.higher { "higher" } else { "lower" };
        format!(
            "{}, the {better} the better, from {}",
            self.title(),
            self.from
        )
    }

    /// The name of its figure.
    pub fn figure(&self) -> String {
        format!("{}{}", Self::FIGURES, self.name)
    }

    /// The name of the figure that says of how many repetitions in one text it is the median, if of several.
    pub fn repetitions(&self) -> String {
        format!("{}.repetitions", self.figure())
    }
}
