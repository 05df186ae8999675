//! Facts about a user's command beside its rows: its time in malloc and free, and how much of it an
//! allocator reaches.

use super::drained::Drained;
use super::interaction::Interaction;
use crate::plan::OwnValue;
use serde::Serialize;

/// A command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommandFacts {
    /// The command as typed in a shell.
    pub line: String,
    /// Whether it is a real program of the catalogue, and not the user's own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub real: bool,
    /// The client that drives it, if it is a server.
    pub client: Option<String>,
    /// The number of its own that rows are judged by, in place of time, and those that are only shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<OwnValue>,
    /// How many programs its tree executed under the baseline.
    pub processes: u64,
    /// The program that its script becomes after it has started most of them.
    pub becomes: Option<String>,
    /// Whether it runs for a fixed time, so that its time says nothing of an allocator.
    pub fixed_time: bool,
    /// The baseline's CPU time in its first blocks and in its last ones, in nanoseconds, if it grows
    /// from process to process.
    pub grows_ns: Option<(f64, f64)>,
    /// Whether earlier runs ended in time under every allocator, the baseline too, and later ones did not.
    pub hangs_later: bool,
    /// The share of the baseline's CPU time that calls of the malloc family take.
    pub malloc_share: Option<f64>,
    /// Such calls for each second of CPU time.
    pub calls_per_cpu_s: Option<f64>,
    /// How many they are.
    pub calls: Option<f64>,
    /// Why the time in malloc is not known, if something went wrong.
    pub untimed: Option<String>,
    /// The anonymous memory of its processes, and how much of it malloc serves at most; `None` if it
    /// has little.
    pub memory: Option<ReachedMemory>,
    /// What of malloc is live when the process ends that holds the most then; of a server, in all its
    /// processes when its client has ended.
    pub end_live_bytes: Option<f64>,
    /// The process that ended so, if there are several.
    pub end_of: Option<String>,
    /// What each row's server held after its load, if it was watched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drained: Vec<Drained>,
    /// What is unknown about the end.
    pub end_unknown: Option<String>,
    /// Objects that take memory past any preloaded allocator, and how.
    pub beyond: Option<String>,
    /// The objects between which and the rest of the program blocks cross from one heap to another;
    /// empty if blocks do, and which objects is unknown.
    pub mixed: Option<String>,
    /// How often it deletes a block with another size than the block has.
    pub other_sizes: Option<f64>,
    /// The code that it exits with each time, if that is not 0, and the last line that it then
    /// wrote to stderr.
    pub exit: Option<(String, String)>,
    /// Rows that run as the user starts the command, with the allocator that serves them.
    pub served_by: Vec<(String, String)>,
    /// Its builds or settings that are rows, each as typed in a shell; the baseline's first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<(String, String)>,
    /// The share of each one's CPU time that calls of the malloc family take, if that is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<(String, f64)>,
    /// Of builds under several allocators: what they do to each other's gain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<Interaction>,
    /// Programs of its tree that no preloaded allocator reaches, and why.
    pub unproven: Option<String>,
    /// Programs that an allocator may serve without proof, and why they could not report it.
    pub silent: Option<String>,
    /// Why the search for these programs was not completed.
    pub unsearched: Option<String>,
    /// Rows whose peak of PSS was not measured, and why.
    pub pss_missed: Vec<(String, String)>,
    /// Rows of several processes whose timed processes were seen to hold less than the check: too few
    /// samples.
    pub rss_missed: Vec<String>,
    /// Rows whose command left processes behind, with how many.
    pub left_behind: Vec<(String, u64)>,
    /// Whether the baseline takes so little time that a process's start is most of it.
    pub short: bool,
}

/// Bytes of anonymous memory, each process at its most, under glibc.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReachedMemory {
    /// All of these bytes.
    pub bytes: f64,
    /// What of them malloc serves, at most.
    pub reached_bytes: f64,
}

impl CommandFacts {
    /// What a row is, in a word.
    pub fn noun(&self) -> &'static str {
        match self.variants.is_empty() {
            true => "allocator",
            false => "variant",
        }
    }

    /// Whether an allocator reaches less than half of its memory, or passes an object of it by.
    pub fn is_reached_in_part(&self) -> bool {
        let is_little = |memory: ReachedMemory| memory.reached_bytes < memory.bytes / 2.0;
        self.beyond.is_some() || self.memory.is_some_and(is_little)
    }
}
