//! Facts about a user's command beside its rows: its time in malloc and free, and how much of it an
//! allocator reaches. From the check of its baseline. Must not judge.

use super::group::{CaseGroups, Group};
use super::numbers::Numbers;
use super::role::Role;
use super::row::Row;
use crate::execute::Measurement;
use crate::execute::user_command::{
    ANONYMOUS, BECOMES, BEYOND, CALLS, CALLS_PER_S, END_LIVE, END_OF, END_UNKNOWN, EXIT_CODE,
    MIXED, OTHER_SIZES, PSS_MISSED, REACHED, SAID, SERVED_BY, SHARE, SILENT, UNPROVEN, UNSEARCHED,
    UNTIMED,
};
use crate::metric::Process;
use crate::plan::UserCommand;
use heapmark_stats::median;
use serde::Serialize;

/// Below this, a process is mostly its own start.
const SHORT_NS: f64 = 5e6;

/// A command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommandFacts {
    /// As typed in a shell.
    pub line: String,
    /// Whether it is a real program of the catalogue, and not the user's own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub real: bool,
    /// The client that drives it, if it is a server.
    pub client: Option<String>,
    /// How many programs its tree executed under the baseline.
    pub processes: u64,
    /// The program that its script becomes after it has started most of them.
    pub becomes: Option<String>,
    /// Whether it runs for a fixed time, so that its time says nothing of an allocator.
    pub fixed_time: bool,
    /// The baseline's CPU time in its first blocks and in its last ones, in nanoseconds, if it grows
    /// from process to process.
    pub grows_ns: Option<(f64, f64)>,
    /// The share of the baseline's CPU time that calls of the malloc family take.
    pub malloc_share: Option<f64>,
    /// Such calls for each second of CPU time.
    pub calls_per_cpu_s: Option<f64>,
    /// How many they are.
    pub calls: Option<f64>,
    /// Why that is not known, if something went wrong.
    pub untimed: Option<String>,
    /// The anonymous memory of its processes, and how much of it malloc serves at most; `None` if it
    /// has little.
    pub memory: Option<ReachedMemory>,
    /// What of malloc is live when the process ends that holds the most then; of a server, in all its
    /// processes when its client has ended.
    pub end_live_bytes: Option<f64>,
    /// That process, if there are several.
    pub end_of: Option<String>,
    /// What is not known of the end.
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
    /// All of it.
    pub bytes: f64,
    /// What of them malloc serves, at most.
    pub reached_bytes: f64,
}

impl CommandFacts {
    pub(super) fn new(command: &UserCommand, table: &CaseGroups, rows: &[Row]) -> CommandFacts {
        let baseline = table.baseline();
        let figure = |name: &str| baseline?.check?.figures.get(name).copied();
        let note = |group: &Group, name: &str| group.check?.notes.get(name).cloned();
        let told = |name: &str| note(baseline?, name);
        let noted = |name: &str| -> Vec<(String, String)> {
            table
                .groups
                .iter()
                .filter_map(|group| Some((group.allocator.name.clone(), note(group, name)?)))
                .collect()
        };
        let numbers = rows
            .iter()
            .find(|row| row.role == Role::Baseline)
            .and_then(Row::numbers);
        CommandFacts {
            line: command.line(),
            real: command.real.is_some(),
            client: command.client.as_ref().map(|client| client.line()),
            processes: numbers
                .and_then(|numbers| numbers.median("processes"))
                .map_or(1, |median| median as u64),
            becomes: told(BECOMES),
            fixed_time: table.is_paced(),
            grows_ns: baseline.and_then(|baseline| growth(&baseline.values(cpu_ns))),
            rss_missed: rows
                .iter()
                .filter(|row| row.numbers().is_some_and(is_missed))
                .map(|row| row.allocator.clone())
                .collect(),
            malloc_share: figure(SHARE),
            calls: figure(CALLS),
            memory: figure(ANONYMOUS)
                .zip(figure(REACHED))
                .map(|(bytes, reached_bytes)| ReachedMemory {
                    bytes,
                    reached_bytes,
                }),
            end_live_bytes: figure(END_LIVE),
            end_of: told(END_OF),
            end_unknown: told(END_UNKNOWN),
            beyond: told(BEYOND),
            mixed: told(MIXED),
            other_sizes: figure(OTHER_SIZES),
            exit: told(EXIT_CODE).map(|code| (code, told(SAID).unwrap_or_default())),
            served_by: noted(SERVED_BY),
            pss_missed: noted(PSS_MISSED),
            calls_per_cpu_s: figure(CALLS_PER_S),
            untimed: told(UNTIMED),
            unproven: told(UNPROVEN),
            silent: told(SILENT),
            unsearched: told(UNSEARCHED),
            left_behind: noted("left_behind")
                .into_iter()
                .filter_map(|(name, count)| Some((name, count.parse().ok()?)))
                .collect(),
            short: numbers.is_some_and(|numbers| numbers.time.spread.median < SHORT_NS),
        }
    }

    /// Whether an allocator reaches less than half of its memory, or passes an object of it by.
    pub fn is_reached_in_part(&self) -> bool {
        let is_little = |memory: ReachedMemory| memory.reached_bytes < memory.bytes / 2.0;
        self.beyond.is_some() || self.memory.is_some_and(is_little)
    }
}

/// Whether the check saw more in memory, shared pages divided, than timed processes with all of them.
fn is_missed(numbers: &Numbers) -> bool {
    let pss_bytes = numbers.median("peak_pss_bytes");
    pss_bytes > numbers.median("peak_rss_bytes")
}

/// The least number of times that show a trend.
const LEAST_TIMES: usize = 6;
/// What a normal variable exceeds by chance in 0.6 % of cases.
const SURELY: f64 = 2.5;
/// A smaller growth is not worth a word.
const GROWTH: f64 = 1.2;

/// Less than the wall time, it depends on what else the machine does.
fn cpu_ns(_: &Measurement, process: &Process) -> Option<f64> {
    process.cpu_ns_per_op
}

/// The medians of the first third and of the last, if times grow from process to process: more than
/// that, and by the rank test of Mann and Kendall.
fn growth(ns: &[f64]) -> Option<(f64, f64)> {
    if ns.len() < LEAST_TIMES {
        return None;
    }
    let mut score = 0.0;
    for (place, earlier) in ns.iter().enumerate() {
        let later = ns[place + 1..].iter();
        score += later
            .map(|later| later.total_cmp(earlier) as i32 as f64)
            .sum::<f64>();
    }
    let n = ns.len() as f64;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let third = ns.len() / 3;
    let first = median(&ns[..third])?;
    let last = median(&ns[ns.len() - third..])?;
    ((score - 1.0) / deviation >= SURELY && last >= first * GROWTH).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_grow_are_told_from_those_that_vary() {
        let of = growth;
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), Some((1.5, 5.5)));
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0, 5.0]), None, "too few");
        assert_eq!(of(&[1.0, 1.01, 1.02, 1.03, 1.04, 1.05]), None, "hardly");
        assert_eq!(
            of(&[2.0, 1.0, 3.0, 1.0, 2.0, 3.0, 2.0, 3.0]),
            None,
            "up and down"
        );
        assert_eq!(of(&[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]), None, "they fall");
        assert_eq!(of(&[1.0; 9]), None);
    }
}
