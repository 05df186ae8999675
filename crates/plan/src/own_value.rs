//! A number that a command reports about itself, and where it is found: what `heapmark try --value` judges instead of time.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A number that the command reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnValue {
    /// The value's name in tables.
    pub name: String,
    /// Whether a higher value is better.
    pub higher: bool,
    /// The value's unit; may be empty.
    pub unit: String,
    /// How the value is read.
    pub read: ReadValue,
    /// Where the value is found.
    pub from: ValueFrom,
}

/// How a number is read out of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadValue {
    /// What the only group of this expression captures.
    Regex(String),
    /// The value at this path of a JSON document: `results[0].times`.
    Json(String),
    /// The output format of a known tool; if there are several benchmarks, the one with this name.
    Tool {
        /// The tool's name.
        tool: String,
        /// The benchmark's name.
        benchmark: Option<String>,
    },
}

/// The text that contains the value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueFrom {
    /// What the command prints; for a server, what its client prints.
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
    /// The prefix of the names of such values' figures.
    pub const FIGURES: &str = "value.";

    /// Returns the value's name and unit: `ops, 1/s`.
    pub fn title(&self) -> String {
        match self.unit.as_str() {
            "" => self.name.clone(),
            unit => format!("{}, {unit}", self.name),
        }
    }

    /// Returns the value in words: `ops, 1/s, the higher the better, from stdout`.
    pub fn described(&self) -> String {
        let better = if self.higher { "higher" } else { "lower" };
        format!(
            "{}, the {better} the better, from {}",
            self.title(),
            self.from
        )
    }

    /// Returns the name of the value's figure.
    pub fn figure(&self) -> String {
        format!("{}{}", Self::FIGURES, self.name)
    }

    /// Returns the name of the figure with the number of repetitions in one text whose median is the value, if there are several.
    pub fn repetitions(&self) -> String {
        format!("{}.repetitions", self.figure())
    }
}
