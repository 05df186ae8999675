//! One workload as data: the keys of `workloads/*/*.toml`. Defaults live in these files only;
//! kernels and programs have none.

mod faults;
mod figure;
mod file;

#[cfg(test)]
mod tests;

pub use figure::{Better, Figure, FigureMode, FigureRole, MemoryShape, Unit};
pub use file::parse;

use super::formula;
use heapmark_guest::kernels;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The workload that replays a trace, without what differs from trace to trace.
pub static REPLAY: LazyLock<Workload> = LazyLock::new(|| {
    toml::from_str(include_str!("replay.toml")).expect("a test reads our own file")
});

/// A workload or a variant of one, with everything written out.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Workload {
    /// Name on the command line and in every table.
    pub name: String,
    /// The workload of which this is a variant.
    #[serde(skip)]
    pub variant_of: Option<String>,
    /// The kernel that every allocator runs, if it is not a program.
    pub kernel: Option<String>,
    /// The program that every allocator runs, if it is not a kernel.
    pub program: Option<String>,
    /// Further rows of the workload's tables, which do not depend on the preloaded allocator.
    #[serde(default)]
    pub rows: Vec<ProgramRow>,
    /// The reference document: BT, MM, RP, ZA or LL; HM if the workload is heapmark's own.
    pub document: String,
    /// What the workload does, in a line.
    pub about: String,
    /// What the workload's numbers show.
    pub shows: String,
    /// What the workload's numbers do not show.
    pub hides: String,
    /// What one operation is.
    pub operation: String,
    /// The number of worker threads, if the parameters imply it: a sum of products. `-t` then has
    /// no effect on the workload.
    pub threads: Option<String>,
    /// How many of these threads work at a time, if not all: also a formula.
    pub at_once: Option<String>,
    /// Which thread does the work of one thread in the document's program, and how that is known.
    pub one_thread: Option<String>,
    /// The interval at which memory over time is recorded, if it always is.
    pub series: Option<String>,
    /// A caution without which the workload's table must not be read.
    pub caution: Option<String>,
    /// The rounds of a process that the workload measures.
    #[serde(default)]
    pub rounds: Rounds,
    /// Parameters by name.
    pub parameters: BTreeMap<String, super::parameter::Parameter>,
    /// Presets by name.
    pub presets: BTreeMap<String, Preset>,
    /// The numbers that the workload's kernel or program reports about itself. Empty in a variant.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// The variants in the workload's file. Empty once the file is read: then each is a workload of
    /// its own.
    #[serde(default)]
    pub variants: Vec<Variant>,
}

/// A variant of a workload: other values for some parameters, with a name of its own.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Variant {
    name: String,
    about: String,
    kernel: Option<String>,
    operation: Option<String>,
    rounds: Option<Rounds>,
    rows: Option<Vec<ProgramRow>>,
    #[serde(default)]
    presets: BTreeMap<String, BTreeMap<String, toml::Value>>,
}

/// A row of a table that stands for no allocator: a program with its own memory management, run
/// once per block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProgramRow {
    /// The row's name in tables and cells: `PMDK:zalloc`.
    pub name: String,
    /// The program that the row shows.
    pub program: String,
    /// What the row is, in a line, if the name does not show it.
    #[serde(default)]
    pub about: String,
    /// The allocator under which the program always runs; without it, nothing is preloaded.
    pub allocator: Option<String>,
    /// The program's parameters that the workload does not have, or has with other values.
    #[serde(default, deserialize_with = "plain_values")]
    pub parameters: BTreeMap<String, String>,
    /// Environment variables of the measured process, besides the program's own.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Figures that must have these values; otherwise the row does not match its name, and has no
    /// number.
    #[serde(default)]
    pub expects: BTreeMap<String, f64>,
}

/// The rounds of a process that a workload measures. The first round works on fresh memory, later
/// ones on memory that earlier ones left: different workloads, which no preset may swap.
#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounds {
    /// Only the first round, in every preset: work that the program does once.
    #[default]
    First,
    /// Each round continues where the one before it ended: many rounds are a longer run of the
    /// program's own loop.
    Continued,
    /// Later rounds, on memory that the first round has freed; no preset measures the first round.
    Reuse,
}

/// Values for all parameters, and the number of iterations of a process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Preset {
    /// The number of warm-up iterations before the measured ones.
    pub cold: u32,
    /// The number of measured iterations of one process.
    pub iterations: Iterations,
    /// The value of every parameter.
    #[serde(deserialize_with = "plain_values")]
    pub parameters: BTreeMap<String, String>,
}

/// The number of measured iterations of one process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Iterations {
    /// As many iterations as take the target time on the baseline.
    Calibrated(Calibrated),
    /// This many iterations, as in the reference document.
    Fixed(u32),
}

/// The word `calibrated`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calibrated {
    /// A pilot process finds the number.
    Calibrated,
}

impl Workload {
    /// Checks whether `value` is allowed for the parameter `name`.
    pub fn value(&self, name: &str, value: &str) -> Result<(), String> {
        let parameter = self.parameters.get(name).ok_or_else(|| {
            let hint = super::did_you_mean(name, self.parameters.keys().map(String::as_str));
            format!("workload {} has no parameter `{name}`{hint}", self.name)
        })?;
        parameter
            .accepts(value)
            .map_err(|expected| format!("`{name}` = `{value}`: expected {expected}"))
    }

    /// Returns the thread count that these parameters imply; `None` if any count is possible.
    pub fn threads(&self, values: &BTreeMap<String, String>) -> Option<Result<u32, String>> {
        Some(count(self.threads.as_deref()?, values))
    }

    /// Returns how many threads work at a time with these parameters; `None` if all do.
    pub fn at_once(&self, values: &BTreeMap<String, String>) -> Option<Result<u32, String>> {
        Some(count(self.at_once.as_deref()?, values))
    }

    /// Returns whether the workload is for memory alone, so that its times have no meaning.
    pub fn is_for_memory(&self) -> bool {
        let kernel = self.kernel.as_deref().and_then(kernels::find);
        kernel.is_some_and(|kernel| kernel.memory.only())
    }

    /// Returns the parameters of a preset, written out.
    pub fn values(&self, preset: &str) -> Option<BTreeMap<String, String>> {
        Some(self.presets.get(preset)?.parameters.clone())
    }
}

/// Returns a number of threads, computed by a formula over parameters.
fn count(formula: &str, values: &BTreeMap<String, String>) -> Result<u32, String> {
    let threads = formula::evaluate(formula, |name| values.get(name)?.parse().ok())?;
    match u32::try_from(threads) {
        Ok(threads @ 1..=4096) => Ok(threads),
        _ => Err(format!("{threads} threads: from 1 to 4096 are possible")),
    }
}

/// Deserialises values that may be written without quotes.
fn plain_values<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    BTreeMap::deserialize(from).map(plain)
}

/// Converts TOML values to text without quotes, as kernels and command lines write them.
fn plain(values: BTreeMap<String, toml::Value>) -> BTreeMap<String, String> {
    let plain = |value| match value {
        toml::Value::String(text) => text,
        other => other.to_string(),
    };
    values
        .into_iter()
        .map(|(name, value)| (name, plain(value)))
        .collect()
}
