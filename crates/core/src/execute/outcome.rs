//! How one process ended. Only [`Outcome::Ok`] becomes a number; every other outcome is reported as
//! what it is.

use heapmark_wire::ReplayProgress;
use serde::{Deserialize, Serialize};

/// The typed end of one measured process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// The allocator was proved, the work was done and verified.
    Ok,
    /// The process ended normally, but its work was not what its parameters imply.
    WrongResult {
        /// What differed from the expected work.
        what: String,
    },
    /// The library that was asked for did not serve the process.
    NotLoaded {
        /// Why, and which library served instead.
        why: String,
    },
    /// The process exited before its work was done.
    Exit {
        /// The exit code.
        code: i32,
        /// The phase that the process was in.
        phase: String,
    },
    /// A signal ended the process.
    Crash {
        /// Name of the signal.
        signal: String,
        /// The phase that the process was in.
        phase: String,
    },
    /// The process did not end within its time.
    Hang {
        /// The time limit, in seconds.
        after_s: f64,
        /// The phase that the process was in.
        phase: String,
        /// One line per thread: its state and what it waited for.
        threads: Vec<String>,
    },
    /// Memory ran out: the allocator returned NULL to a workload that needs memory, or the kernel killed the process.
    Oom {
        /// What the memory was needed for, or how the kernel ended the process.
        what: String,
    },
    /// The cell cannot be measured, for a known reason.
    Unsupported {
        /// Why the cell cannot be measured.
        why: String,
    },
    /// The cell needs something that this machine does not have, such as a device or a language
    /// runtime. This is not a failure.
    Absent {
        /// What is missing, and how to install it.
        why: String,
    },
    /// An error of heapmark itself.
    Error {
        /// What went wrong.
        what: String,
    },
}

impl Outcome {
    /// Returns whether the process may enter statistics.
    pub fn is_ok(&self) -> bool {
        matches!(self, Outcome::Ok)
    }

    /// Returns whether the cell was not run because the machine lacks something.
    pub fn is_absent(&self) -> bool {
        matches!(self, Outcome::Absent { .. })
    }

    /// Adds what the threads of a replay were doing, if the process did not run to its end.
    pub(super) fn at(mut self, steps: &[ReplayProgress]) -> Outcome {
        if let Outcome::Crash { phase: words, .. }
        | Outcome::Hang { phase: words, .. }
        | Outcome::Oom { what: words } = &mut self
            && let Some(place) = place(steps)
        {
            *words += &format!(" ({place})");
        }
        self
    }

    /// Returns one word for tables: `ok`, `wrong-result`, `not-loaded`, …
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::WrongResult { .. } => "wrong-result",
            Outcome::NotLoaded { .. } => "not-loaded",
            Outcome::Exit { .. } => "exit",
            Outcome::Crash { .. } => "crash",
            Outcome::Hang { .. } => "hang",
            Outcome::Oom { .. } => "oom",
            Outcome::Unsupported { .. } => "unsupported",
            Outcome::Absent { .. } => "absent",
            Outcome::Error { .. } => "error",
        }
    }
}

/// Returns what the threads of a replay are doing; `None` if nothing is replayed.
fn place(steps: &[ReplayProgress]) -> Option<String> {
    const MOST: usize = 8;
    let at_work = steps
        .iter()
        .enumerate()
        .filter(|(_, step)| step.is_at_work());
    let places = at_work.map(|(thread, step)| {
        let waits = step.waits_for();
        let waits = waits.map_or(String::new(), |other| format!(", waits for thread {other}"));
        format!("thread {thread} at its operation {}{waits}", step.done())
    });
    let mut places: Vec<String> = places.collect();
    if places.len() > MOST {
        let more = places.split_off(MOST).len();
        places.push(format!("and {more} more"));
    }
    (!places.is_empty()).then(|| places.join("; "))
}

impl Outcome {
    /// Describes how the process ended, without the phase.
    pub fn in_words(&self) -> String {
        match self {
            Outcome::Crash { signal, .. } => format!("crash, {signal}"),
            Outcome::Exit { code, .. } => format!("exit with code {code}"),
            Outcome::Hang { after_s, .. } => format!("no end after {after_s} s"),
            other => other.to_string(),
        }
    }

    /// Describes the end like [`Outcome::in_words`], but without the outcome's word if the reason is enough.
    pub fn reason(&self) -> String {
        match self {
            Outcome::NotLoaded { why } | Outcome::Unsupported { why } => why.clone(),
            other => other.in_words(),
        }
    }
}

/// An error of heapmark itself.
impl From<anyhow::Error> for Outcome {
    fn from(error: anyhow::Error) -> Outcome {
        let what = format!("{error:#}");
        Outcome::Error { what }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = self.word();
        match self {
            Outcome::Ok => f.write_str(word),
            Outcome::WrongResult { what: reason }
            | Outcome::Oom { what: reason }
            | Outcome::Error { what: reason }
            | Outcome::NotLoaded { why: reason }
            | Outcome::Unsupported { why: reason }
            | Outcome::Absent { why: reason } => write!(f, "{word}: {reason}"),
            Outcome::Exit { code, phase } => write!(f, "{word}: code {code} in phase {phase}"),
            Outcome::Crash { signal, phase } => write!(f, "{word}: {signal} in phase {phase}"),
            Outcome::Hang { after_s, phase, .. } => {
                write!(f, "{word}: no end after {after_s} s in phase {phase}")
            }
        }
    }
}
