//! Two processes that take turns on one CPU, so that both meet the same conditions: the measured process, and the one
//! that it is compared with.
//!
//! heapmark stops and continues them; or, if the plan asks for that, the scheduler gives them turns of the length that
//! they request.

use super::held::held;
use super::tree::{cpu_ns, descendants, held_descendants};
use crate::plan::{Case, Plan, Turn, Turns};
use anyhow::{Context, Result, ensure};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::write;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Two streams of processes: each side starts its process again and again until both have used about as much CPU time,
/// so that even processes of different lengths have the other side beside them from start to end.
pub struct Duet {
    turn: Turn,
    /// The CPUs that heapmark may use, and the one of them on which the duet takes place.
    allowed: Vec<usize>,
    cpu: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// A descriptor that is readable once the duet is over.
    over: OwnedFd,
}

#[derive(Clone, Copy, Default)]
struct State {
    sides: [Progress; 2],
    /// Whether the duet is over, so that nothing more is needed from either side.
    is_over: bool,
}

/// How far a side has come.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// The launcher of the side's process, while the process runs.
    launcher: Option<i32>,
    /// How many processes have ended by themselves, and their CPU time.
    runs: u32,
    cpu_ns: u64,
    /// The number of the side's turns in which it had a process.
    turns: u64,
}

/// The share of the other side's CPU time that each side needs, so that both did about as much work.
const ALIKE: f64 = 0.9;
/// The fewest turns of a side with which it meets enough of the conditions that the other side meets.
const LEAST_TURNS: u32 = 3;

/// A turn takes at most this many times its length, if its side waits or others use the CPU.
const MOST_STRETCHED: u32 = 5;
/// The shortest slice that the scheduler grants.
const GIVER_SLICE_NS: u64 = 100_000;
/// The shortest remainder of a turn that is worth a wait.
const NO_TIME: Duration = Duration::from_micros(500);

/// A side of a duet.
#[derive(Clone)]
pub struct Side {
    duet: Arc<Duet>,
    index: usize,
}

/// The error for a duet whose other side has done enough: a process that still runs is ended, and does not count.
#[derive(Debug)]
pub struct Over;

impl std::fmt::Display for Over {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("the duet is over")
    }
}

impl std::error::Error for Over {}

/// The turns that a process took, stored as they were observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnsTaken {
    /// How the turns were made.
    pub by: Turns,
    /// The CPU on which the turns took place.
    pub cpu: usize,
    /// How many duets ran at a time, each on a CPU of its own.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub at_once: u32,
    /// How many processes took the turns, one after the other.
    pub runs: u32,
    /// The length of a turn that was asked for.
    pub slice_ns: u64,
    /// The mean length of a turn: the CPU time while both sides ran, divided by the number of turns; absent if there
    /// were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_ns: Option<u64>,
}

fn one() -> u32 {
    1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

impl Duet {
    /// Makes a duet of two processes on this CPU.
    pub fn new(turn: Turn, allowed: Vec<usize>, cpu: usize) -> Result<Arc<Duet>> {
        let over = eventfd(0, EventfdFlags::CLOEXEC).context("cannot watch a duet")?;
        Ok(Arc::new(Duet {
            turn,
            cpu,
            allowed,
            state: Mutex::default(),
            changed: Condvar::new(),
            over,
        }))
    }

    /// Returns the side with this index: 0 or 1.
    pub fn side(self: &Arc<Duet>, index: usize) -> Side {
        Side {
            duet: self.clone(),
            index,
        }
    }

    /// Gives turns until the duet is over; returns at once if the scheduler gives them.
    pub fn conduct(&self) {
        if self.turn.by == Turns::Slices {
            return;
        }
        // Requests the shortest slice that is granted, so that this thread is woken in time even if others use all
        // CPUs: a late turn of one side is a long turn of the other.
        heapmark_guest::launch::set_slice(GIVER_SLICE_NS);
        let has_both = |state: &State| state.sides.iter().all(|side| side.launcher.is_some());
        let mut state = held(&self.state);
        while !has_both(&state) && !state.is_over {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        for turn in 0.. {
            if state.is_over {
                break;
            }
            let [runs, waits] = [turn % 2, 1 - turn % 2];
            signal(&state.sides[waits], Signal::STOP);
            signal(&state.sides[runs], Signal::CONT);
            let mut has_run = state.sides[runs].launcher.is_some();
            let mut turn = Used::by(&state.sides[runs]);
            let end = Instant::now() + self.turn.length * MOST_STRETCHED;
            loop {
                let left = self
                    .turn
                    .length
                    .saturating_sub(turn.look(&state.sides[runs]));
                if state.is_over || left < NO_TIME || Instant::now() > end {
                    break;
                }
                let waited = self.changed.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                has_run |= state.sides[runs].launcher.is_some();
            }
            state.sides[runs].turns += u64::from(has_run);
        }
    }

    /// Ends the duet, because nothing more is needed from either side.
    pub fn end(&self) {
        held(&self.state).is_over = true;
        self.changed.notify_all();
        // The write never blocks: a duet ends a few times at most.
        let _ = write(&self.over, &1u64.to_ne_bytes());
    }

    /// Returns the turns of both sides, from the CPU time of their processes and how often these were preempted;
    /// `at_once` duets ran at a time.
    pub fn taken(&self, usages: [(u64, u64); 2], at_once: u32) -> [TurnsTaken; 2] {
        // While both sides run, each gets half of the CPU.
        let both_ns = usages[0].0.min(usages[1].0);
        let sides = held(&self.state).sides;
        [0, 1].map(|side| {
            let turns = match self.turn.by {
                // The end of a process also ends its turn.
                Turns::Slices => usages[side].1 + u64::from(sides[side].runs),
                Turns::Stop => sides[side].turns,
            };
            TurnsTaken {
                by: self.turn.by,
                cpu: self.cpu,
                at_once,
                runs: sides[side].runs,
                slice_ns: self.turn.length.as_nanos() as u64,
                turn_ns: both_ns.checked_div(turns),
            }
        })
    }
}

/// The CPU time of a side since its turn began. Time that other processes use on its CPU does not count against its
/// turn.
struct Used {
    /// The CPU time of each process when it was first seen, and when it was last seen.
    seen_ns: BTreeMap<i32, (u64, u64)>,
}

impl Used {
    fn by(side: &Progress) -> Used {
        let processes = side.launcher.map(descendants).unwrap_or_default();
        let at = |pid: i32| (pid, (cpu_ns(pid), 0));
        Used {
            seen_ns: processes.into_iter().map(at).collect(),
        }
    }

    /// Returns the CPU time that the side has used in this turn so far.
    fn look(&mut self, side: &Progress) -> Duration {
        for pid in side.launcher.map(descendants).unwrap_or_default() {
            // A process that was started since then has used all of its CPU time in this turn.
            let (first, last) = self.seen_ns.entry(pid).or_insert((0, 0));
            *last = (*last).max(cpu_ns(pid)).max(*first);
        }
        let used = self
            .seen_ns
            .values()
            .map(|(first, last)| last.saturating_sub(*first));
        Duration::from_nanos(used.sum())
    }
}

/// Returns the CPU time of all processes that heapmark has started and that still run.
pub fn running_ns() -> u64 {
    let pid = std::process::id() as i32;
    descendants(pid).into_iter().map(cpu_ns).sum()
}

/// Sends a signal to all processes of a side except its launcher, which must notice when heapmark ends.
fn signal(side: &Progress, signal: Signal) {
    let processes = side.launcher.map(held_descendants).unwrap_or_default();
    for process in processes {
        let _ = pidfd_send_signal(process, signal);
    }
}

impl Side {
    /// Returns the launcher's arguments for this side.
    pub(super) fn words(&self) -> [String; 3] {
        let slice = match self.duet.turn.by {
            Turns::Slices => self.duet.turn.length,
            Turns::Stop => Duration::ZERO,
        };
        let cpu = self.duet.cpu.to_string();
        ["turns".into(), cpu, slice.as_nanos().to_string()]
    }

    /// Returns the side's index in its duet: 0 or 1.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the CPU that the side's process may use.
    pub(super) fn cpu(&self) -> usize {
        self.duet.cpu
    }

    /// Returns the CPUs that the side's process may use when it is in no duet.
    pub(super) fn allowed(&self) -> &[usize] {
        &self.duet.allowed
    }

    /// Lets the process of this side take turns until the result is dropped.
    pub(super) fn runs(&self, launcher: Pid) -> Running<'_> {
        self.change(|side| side.launcher = Some(launcher.as_raw_nonzero().get()));
        Running(self)
    }

    /// Returns a descriptor that is readable once the duet is over.
    pub(super) fn over(&self) -> BorrowedFd<'_> {
        self.duet.over.as_fd()
    }

    /// Returns whether the duet is over.
    pub(super) fn is_over(&self) -> bool {
        held(&self.duet.state).is_over
    }

    /// Notes that a process of this side has ended by itself. Returns whether the duet is over.
    pub fn has_done(&self, cpu_ns: u64) -> bool {
        self.change(|side| {
            side.runs += 1;
            side.cpu_ns += cpu_ns;
        });
        let [one, other] = held(&self.duet.state).sides;
        let (less, more) = (one.cpu_ns.min(other.cpu_ns), one.cpu_ns.max(other.cpu_ns));
        let alike = one.runs.min(other.runs) > 0 && less as f64 >= ALIKE * more as f64;
        let turn = &self.duet.turn;
        let is_enough =
            one.runs.min(other.runs) > 0 && u128::from(less + more) >= turn.enough.as_nanos();
        let least = turn.length * LEAST_TURNS;
        if u128::from(less) >= least.as_nanos() && (alike || is_enough) {
            self.duet.end();
        }
        self.is_over()
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut held(&self.duet.state).sides[self.index]);
        self.duet.changed.notify_all();
    }
}

/// A side whose process runs.
pub(super) struct Running<'a>(&'a Side);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.change(|side| side.launcher = None);
    }
}

/// Refuses a plan with turns that this kernel's scheduler cannot give.
pub fn knows_turns(plan: &Plan) -> Result<()> {
    let asks = |case: &Case| case.turns == Some(Turns::Slices);
    ensure!(
        !plan.cases.iter().any(asks) || gives_slices(),
        "--turns slices: this kernel's scheduler gives none (Linux 6.12 and newer do): take --turns stop"
    );
    Ok(())
}

fn gives_slices() -> bool {
    const ASKED_NS: u64 = 1_000_000;
    // On a thread of its own: the setting ends with the thread.
    let asked = std::thread::spawn(|| heapmark_guest::launch::set_slice(ASKED_NS)).join();
    asked.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::thread;

    #[test]
    fn turns_in_which_a_side_has_no_process_do_not_count() {
        let length = Duration::from_millis(1);
        let turn = Turn {
            by: Turns::Stop,
            length,
            enough: length,
        };
        let duet = Duet::new(turn, vec![0], 0).unwrap();
        let mut sleep = Command::new("sleep").arg("600").spawn().unwrap();
        let launcher = Pid::from_child(&sleep);
        let [one, other] = [0, 1].map(|index| duet.side(index));
        let turns = |side: usize| held(&duet.state).sides[side].turns;
        let until = |side: usize, count: u64| {
            while turns(side) < count {
                thread::sleep(length);
            }
        };
        let counted = thread::scope(|scope| {
            let _one = one.runs(launcher);
            let runs = other.runs(launcher);
            scope.spawn(|| duet.conduct());
            until(1, 1);
            drop(runs);
            let before = turns(1);
            until(0, before + 10);
            duet.end();
            turns(1) - before
        });
        sleep.kill().and_then(|()| sleep.wait()).unwrap();
        assert!(counted <= 1, "{counted}: more than the one that had begun");
    }
}
