//! Whether a process that takes long hangs. On a machine that does other work it may only wait for a
//! processor.

use super::tree::{descendants, threads};
use crate::observe::memory::stat_words;
use std::time::{Duration, Instant};

/// The number of looks in a row at which all threads of a process must sleep until it counts as waiting in vain.
const LOOKS_ASLEEP: u32 = 10;

/// How long a process may take.
pub struct Patience {
    /// A limit on wall time if the process sleeps then, otherwise on processor time.
    limit: Duration,
    began: Instant,
    looks_asleep: u32,
}

impl Patience {
    /// Starts the clock now.
    pub fn new(limit: Duration) -> Patience {
        Patience {
            limit,
            began: Instant::now(),
            looks_asleep: 0,
        }
    }

    /// Returns whether the processes below a launcher hang. Must be called repeatedly, because it counts looks in a
    /// row.
    pub fn is_over(&mut self, launcher: i32) -> bool {
        if self.began.elapsed() < self.limit {
            return false;
        }
        // The first thread is the launcher's.
        let works = threads(launcher)
            .iter()
            .skip(1)
            .any(|line| is_at_work(line));
        self.looks_asleep = if works { 0 } else { self.looks_asleep + 1 };
        self.looks_asleep >= LOOKS_ASLEEP || processor_time(launcher) >= self.limit
    }
}

/// Returns whether the thread that a line describes runs, or waits for a processor or a disk.
fn is_at_work(line: &str) -> bool {
    line.contains(": R (") || line.contains(": D (")
}

/// Returns the processor time of all processes below a launcher, and of their children that have ended.
fn processor_time(launcher: i32) -> Duration {
    let ticks: u64 = descendants(launcher).into_iter().map(ticks).sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

fn ticks(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat_words(&stat).skip(11).take(4);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::super::child::end_tree;
    use super::*;
    use rustix::process::Pid;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// Whether the processes below a shell with this command are ever found to hang.
    fn hangs(command: &str, limit: Duration) -> bool {
        let both = format!("{command} & wait");
        let mut shell = Command::new("sh");
        shell.args(["-c", &both]).process_group(0);
        let mut shell = shell.spawn().unwrap();
        let mut patience = Patience::new(limit);
        let hangs = (0..300).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            patience.is_over(shell.id() as i32)
        });
        end_tree(Pid::from_child(&shell));
        shell.wait().unwrap();
        hangs
    }

    #[test]
    fn what_sleeps_hangs_and_what_waits_for_a_processor_does_not() {
        assert!(hangs("sleep 60", Duration::ZERO));
        assert!(hangs(
            "sh -c 'while :; do :; done'",
            Duration::from_millis(30)
        ));
        assert!(!hangs("sleep 60", Duration::from_secs(3600)));
        assert!(is_at_work("thread 7: R (running) in user code"));
        assert!(!is_at_work("thread 7: S (sleeping) in futex_do_wait"));
    }
}
