//! What a run measures: one thing, never two at once. Whatever differs between modes is here; their
//! metrics are in stage `metric`, their tables in `analyse`.

use super::{Counter, LimitKind, Purpose};
use serde::{Deserialize, Serialize};

/// What the processes of a run measure. Modes cannot be compared with `==`: use [`Mode::spec`], which must cover each new mode.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The time of whole measured phases, and the memory of their processes.
    #[default]
    Time,
    /// The time of single calls.
    Latency {
        /// In each thread, one call in this many is timed.
        every: u32,
    },
    /// The number of events; the times of such a process mean nothing.
    Count(Counter),
    /// How much memory is resident for the live blocks; the times of such a process mean nothing.
    Memory,
    /// The smallest limit on memory that suffices, and how much time a process takes near that limit.
    Limit(LimitKind),
}

/// How a mode measures.
pub struct ModeSpec {
    /// What the processes of a block are for.
    pub purpose: Purpose,
    /// Whether a process runs as it would without heapmark: then programs of the catalogue can be
    /// measured, too, pairs take turns, heaps are aged, and requests come at a share of what the
    /// baseline can serve.
    pub plain: bool,
    /// Whether calls are watched one by one, which is possible in kernels only.
    pub watches_calls: bool,
    /// Whether times are compared, which other programs disturb: parts are repeated, and an A/A copy
    /// shows what this run would call a difference. Counts and memory hardly change on a busy
    /// machine, and nothing is judged by times near a limit.
    pub compares_times: bool,
    /// Whether memory is compared. It does not depend on what ran just before, and under limits a row
    /// is compared with itself, so a block needs no parts. The null allocator has no place here: its
    /// blocks overlap, and it never has memory to give back.
    pub compares_memory: bool,
    /// Whether memory is followed: in one round, with the same requests in each run, and, since no clock runs, in several
    /// processes side by side.
    pub follows_memory: bool,
    /// Whether a simulated processor counts: its counts are the same each time, whatever pages memory has.
    pub simulated: bool,
    /// Whether iterations before the measured ones are left out. They are not left out if calls are
    /// timed, since the growth of the heap is a part of the tail.
    pub warms_up: bool,
    /// Measured iterations of a process, at most.
    pub most_iterations: u32,
    /// The blocks of a run if nothing else decides how many; `None`: as many as a verdict needs.
    pub blocks: Option<u32>,
}

/// Iterations of a process in which each call, of the kernel or of the allocator, is traced, and
/// takes many times longer.
const SLOW_ITERATIONS: u32 = 3;

/// The specification of modes that count events beside the work.
const COUNTED: ModeSpec = ModeSpec {
    purpose: Purpose::Count,
    plain: false,
    watches_calls: true,
    compares_times: false,
    compares_memory: false,
    follows_memory: false,
    simulated: false,
    warms_up: true,
    most_iterations: u32::MAX,
    blocks: Some(5),
};

impl Mode {
    /// Returns how the mode measures.
    pub fn spec(self) -> ModeSpec {
        match self {
            Mode::Time => ModeSpec {
                purpose: Purpose::Sample,
                plain: true,
                watches_calls: false,
                compares_times: true,
                blocks: None,
                ..COUNTED
            },
            Mode::Latency { .. } => ModeSpec {
                purpose: Purpose::Latency,
                compares_times: true,
                warms_up: false,
                blocks: None,
                ..COUNTED
            },
            Mode::Count(Counter::Callgrind) => ModeSpec {
                simulated: true,
                warms_up: false,
                most_iterations: 1,
                blocks: Some(1),
                ..COUNTED
            },
            Mode::Count(Counter::Perf) => COUNTED,
            Mode::Count(Counter::Kernel) => ModeSpec {
                most_iterations: SLOW_ITERATIONS,
                ..COUNTED
            },
            Mode::Memory => ModeSpec {
                purpose: Purpose::Memory,
                compares_memory: true,
                follows_memory: true,
                most_iterations: SLOW_ITERATIONS,
                blocks: Some(3),
                ..COUNTED
            },
            Mode::Limit(_) => ModeSpec {
                purpose: Purpose::Limited,
                watches_calls: false,
                compares_memory: true,
                blocks: Some(3),
                ..COUNTED
            },
        }
    }

    /// Returns the kind of limit, if this mode sets one.
    pub fn limit(self) -> Option<LimitKind> {
        match self {
            Mode::Limit(kind) => Some(kind),
            _ => None,
        }
    }

    /// Returns the counter, if the mode counts events.
    pub fn counter(self) -> Option<Counter> {
        match self {
            Mode::Count(counter) => Some(counter),
            _ => None,
        }
    }

    /// Returns the lines of a job that ask for this mode; `idles` is set if processes idle at their end.
    pub fn job_lines(self, idles: bool) -> String {
        match self {
            Mode::Time | Mode::Limit(_) => String::new(),
            Mode::Latency { every } => format!("latency={every}\n"),
            Mode::Count(counter) => format!("counter={}\n", counter.word()),
            Mode::Memory => format!("memory=1\nidles={}\n", u8::from(idles)),
        }
    }

    /// Returns what is measured, in words.
    pub fn measures(self) -> String {
        match self {
            Mode::Time => "time and memory".into(),
            Mode::Latency { every } => format!("single calls, 1 of {every}"),
            Mode::Count(counter) => format!("events, counted by {}", counter.word()),
            Mode::Memory => "memory for what is live".into(),
            Mode::Limit(kind) => format!("the smallest limit that does, on {}", kind.counts()),
        }
    }

    /// Returns the processes of this mode, in words.
    pub fn processes(self) -> String {
        match self {
            Mode::Time => "measured ones".into(),
            Mode::Latency { every } => format!("that time 1 of {every} calls"),
            Mode::Count(_) => "in which events are counted".into(),
            Mode::Memory => "whose memory is followed".into(),
            Mode::Limit(_) => "without a limit, beside those that look for one".into(),
        }
    }
}
