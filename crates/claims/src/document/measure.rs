//! The measure of a claim or of a published figure: one number per process.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What is measured for a claim or a figure: one number per process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Measure {
    /// Wall time x threads / operations, in ns.
    #[default]
    Time,
    /// Operations of all threads per microsecond of wall time.
    Mops,
    /// Wall time of an iteration, in ns.
    Wall,
    /// User CPU time of an iteration, in ns.
    User,
    /// System CPU time of an iteration, in ns.
    Sys,
    /// User and system CPU time together, in ns.
    Cpu,
    /// CPU time over wall time.
    CpuPerWall,
    /// Minor page faults of an iteration.
    MinorFaults,
    /// Growth of the resident set over requested bytes; both without the workload's own tables, if
    /// it reports them.
    Overhead,
    /// Growth of the sbrk area over the process's life, over requested bytes.
    HeapGrowth,
    /// Joint growth of heap, mappings and libraries from the first point to the highest, in bytes.
    TotalGrowth,
    /// The share of the joint growth (`TotalGrowth`) that was given back by the last point.
    TotalFall,
    /// A further figure of the workload: `figure:mops_cpu_ref`.
    Figure(String),
}

const WORDS: [(&str, Measure); 12] = [
    ("time", Measure::Time),
    ("mops", Measure::Mops),
    ("wall", Measure::Wall),
    ("user", Measure::User),
    ("sys", Measure::Sys),
    ("cpu", Measure::Cpu),
    ("cpu-per-wall", Measure::CpuPerWall),
    ("minor-faults", Measure::MinorFaults),
    ("overhead", Measure::Overhead),
    ("heap-growth", Measure::HeapGrowth),
    ("total-growth", Measure::TotalGrowth),
    ("total-fall", Measure::TotalFall),
];

impl Measure {
    /// Whether a higher value is better.
    pub fn more_is_better(&self) -> bool {
        match self {
            Measure::Mops => true,
            Measure::Figure(name) => name.starts_with("mops"),
            _ => false,
        }
    }
}

impl TryFrom<String> for Measure {
    type Error = String;
    fn try_from(word: String) -> Result<Measure, String> {
        if let Some(name) = word.strip_prefix("figure:").filter(|name| !name.is_empty()) {
            return Ok(Measure::Figure(name.into()));
        }
        let known = WORDS.iter().find(|(known, _)| *known == word);
        known.map(|(_, measure)| measure.clone()).ok_or_else(|| {
            let words = WORDS.map(|(word, _)| word).join(", ");
            format!("`{word}` is no measure: use one of {words}, figure:NAME")
        })
    }
}

impl From<Measure> for String {
    fn from(measure: Measure) -> String {
        measure.to_string()
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Measure::Figure(name) = self {
            return write!(f, "figure:{name}");
        }
        let word = WORDS.iter().find(|(_, measure)| measure == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}
