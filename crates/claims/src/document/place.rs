//! The places of a check, and the words that define them: thread counts, divisors, shapes, and how
//! many comparisons have to agree.

use super::Measure;
use serde::{Deserialize, Serialize};

/// The places of a check, if they differ from the claim's places.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Place {
    /// The workloads, if they are not the claim's.
    pub workloads: Option<Vec<String>>,
    /// The thread counts, if they are not the claim's.
    pub threads: Option<Threads>,
    /// The measure, if it is not the claim's.
    pub measure: Option<Measure>,
}

/// The divisor of a value: the same row at the same place, except for the keys set here.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Over {
    /// Another row's name.
    pub who: Option<String>,
    /// Other workloads, in the order of the check's workloads.
    pub workloads: Option<Vec<String>>,
    /// Another thread count.
    pub threads: Option<u32>,
    /// Whether the quotient is also divided by that of the thread counts, so that 1 means linear
    /// growth.
    #[serde(default)]
    pub per_thread: bool,
    /// A parameter that must be larger by one at the value's place than at the divisor's.
    pub one_more: Option<String>,
}

/// The thread counts of a check.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(try_from = "toml::Value", rename_all = "kebab-case")]
pub enum Threads {
    /// The largest count that does not exceed the usable cores.
    #[default]
    Most,
    /// Each count that does not exceed the usable cores.
    Each,
    /// Each count that was run, even beyond the cores: for measures other than time.
    Any,
    /// This count alone.
    Count(u32),
}

impl TryFrom<toml::Value> for Threads {
    type Error = String;
    fn try_from(value: toml::Value) -> Result<Threads, String> {
        let count = value.as_integer().map(u32::try_from);
        match (value.as_str(), count) {
            (Some("most"), _) => Ok(Threads::Most),
            (Some("each"), _) => Ok(Threads::Each),
            (Some("any"), _) => Ok(Threads::Any),
            (_, Some(Ok(count))) if count > 0 => Ok(Threads::Count(count)),
            _ => Err(format!(
                "threads = {value}: expected most, each, any or a number"
            )),
        }
    }
}

/// How many of several comparisons have to agree.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Every comparison.
    #[default]
    All,
    /// More than half of the comparisons.
    Most,
}

/// Which of several values is compared with the bounds.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// Each of the values.
    #[default]
    Each,
    /// The value with the largest median.
    Largest,
    /// The value with the middle median.
    Middle,
}

/// Shapes of a value over thread counts.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// More at the end than at the start, and no decrease at any step.
    Rises,
    /// Highest with the fewest threads.
    HighestFirst,
    /// Highest with one of these thread counts (both included), and lower at the end.
    Peaks(u32, u32),
    /// Up at one step and down at another.
    Wavers,
}
