//! Facts about a user's command beside its rows: its time in malloc and free, and how much of the
//! command an allocator reaches.

use super::drained::Drained;
use super::interaction::Interaction;
use crate::plan::OwnValue;
use serde::Serialize;

/// The facts about a command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommandFacts {
    /// The command as typed in a shell.
    pub line: String,
    /// Whether the command is a real program from the catalogue, and not the user's own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub real: bool,
    /// The client that drives the command, if the command is a server.
    pub client: Option<String>,
    /// The command's own number by which rows are judged in place of time, and the numbers that are only shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<OwnValue>,
    /// How many programs the command's process tree executed under the baseline.
    pub processes: u64,
    /// The program that the command's script becomes after it has started most of its processes.
    pub becomes: Option<String>,
    /// Whether the command runs for a fixed time, so that its time says nothing about an allocator.
    pub fixed_time: bool,
    /// The baseline's CPU time in its first blocks and in its last ones, in nanoseconds, if it grows
    /// from process to process.
    pub grows_ns: Option<(f64, f64)>,
    /// Whether earlier runs ended in time under every allocator, the baseline too, and later ones did not.
    pub hangs_later: bool,
    /// The share of the baseline's CPU time that calls of the malloc family take.
    pub malloc_share: Option<f64>,
    /// Calls of the malloc family per second of CPU time.
    pub calls_per_cpu_s: Option<f64>,
    /// How often the processes call the malloc family.
    pub calls: Option<f64>,
    /// Why the time in malloc is not known, if something went wrong.
    pub untimed: Option<String>,
    /// The anonymous memory of the command's processes, and how much of it malloc serves at most;
    /// `None` if they have little anonymous memory.
    pub memory: Option<ReachedMemory>,
    /// Bytes of malloc that are still live at the end of the process that holds the most at its
    /// end; for a server, in all its processes when its client has ended.
    pub end_live_bytes: Option<f64>,
    /// The process that holds the live bytes at its end, if there are several processes.
    pub end_of: Option<String>,
    /// What the server of each row held after its load, if the servers were watched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drained: Vec<Drained>,
    /// What is not known about the end of the processes.
    pub end_unknown: Option<String>,
    /// Loaded objects that obtain memory without any preloaded allocator, and how they do it.
    pub beyond: Option<String>,
    /// The loaded objects that exchange blocks of another heap with the rest of the program; empty
    /// if blocks cross from one heap to another, but the objects are unknown.
    pub mixed: Option<String>,
    /// How often the command deletes a block with a size that is not the block's.
    pub other_sizes: Option<f64>,
    /// The code with which the command exits each time, if that is not 0, and the last line that it
    /// then wrote to stderr.
    pub exit: Option<(String, String)>,
    /// Rows that run the command just as the user starts it, with the allocator that serves each.
    pub served_by: Vec<(String, String)>,
    /// The command's builds or settings that are rows, each as typed in a shell; the baseline's first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<(String, String)>,
    /// For each build or setting, if known: the share of its CPU time that calls of the malloc family take.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<(String, f64)>,
    /// For builds under several allocators: how the build and the allocator affect each other's gain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<Interaction>,
    /// Programs in the command's process tree that no preloaded allocator reaches, and why.
    pub unproven: Option<String>,
    /// Programs that an allocator may serve, although they could not report the allocator, and why they could not.
    pub silent: Option<String>,
    /// Why the search for programs that no allocator reaches was not completed.
    pub unsearched: Option<String>,
    /// Rows whose peak of PSS was not measured, and why.
    pub pss_missed: Vec<(String, String)>,
    /// Rows of several processes whose timed processes were seen to hold less memory than the
    /// check: too few samples were taken.
    pub rss_missed: Vec<String>,
    /// Rows whose command left processes behind, and the number of these processes.
    pub left_behind: Vec<(String, u64)>,
    /// Whether the baseline takes so little time that a process's start is most of it.
    pub short: bool,
}

/// Bytes of anonymous memory under glibc, each process at its peak.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReachedMemory {
    /// All anonymous bytes.
    pub bytes: f64,
    /// The anonymous bytes that malloc serves, at most.
    pub reached_bytes: f64,
}

impl CommandFacts {
    /// Returns the noun for what a row represents.
    pub fn noun(&self) -> &'static str {
        match self.variants.is_empty() {
            true => "allocator",
            false => "variant",
        }
    }

    /// Returns whether an allocator reaches less than half of the command's memory, or some loaded object obtains
    /// memory without it.
    pub fn is_reached_in_part(&self) -> bool {
        let is_little = |memory: ReachedMemory| memory.reached_bytes < memory.bytes / 2.0;
        self.beyond.is_some() || self.memory.is_some_and(is_little)
    }
}
