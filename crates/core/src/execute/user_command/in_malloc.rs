//! How much of a command's CPU time is spent in malloc and free. An allocator can change more than
//! this share: the places of its blocks decide how fast the program reads them.

use crate::execute::handed::Handed;
use crate::execute::memory_file::numbers;
use anyhow::{Context, Result};

/// The share of CPU time that calls of the malloc family take.
pub const SHARE: &str = "malloc_share";
/// Calls of the malloc family for each second of CPU time.
pub const CALLS_PER_S: &str = "malloc_calls_per_cpu_s";

/// Figure: the number of calls in a process in which each call took longer, divided by that in a process in which none did.
pub const SLOWER_CALLS: &str = "slower_calls_ratio";
/// Figure: like [`SLOWER_CALLS`], but for the wall time.
pub const SLOWER_WALL: &str = "slower_wall_ratio";
/// How much more CPU time all slowed calls together take, divided by the CPU time of a process in which none is slowed.
const SLOWER: f64 = 9.0;
/// A command that spends a smaller share of its CPU time in these calls is not slowed down.
const LEAST_SHARE: f64 = 0.01;

/// The file whose totals the processes of a tree add to.
pub struct Times(Handed);

/// The totals of a tree at one moment, or between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calls {
    calls: u64,
    /// The time that the calls took, estimated from those that were timed.
    took_ns: u64,
}

impl Times {
    const TOTALS: u64 = 2;

    pub fn new() -> Result<Times> {
        let handed = Handed::new()?;
        handed
            .file()
            .set_len(8 * Times::TOTALS)
            .context("cannot size a file for times")?;
        Ok(Times(handed))
    }

    pub fn variable(&self) -> (String, String) {
        ("HEAPMARK_TIMES".into(), self.0.told())
    }

    pub fn read(&self) -> Result<Calls> {
        let [calls, took_ns] = numbers(self.0.file()).context("reading times")?;
        Ok(Calls { calls, took_ns })
    }
}

impl Calls {
    /// Returns the calls that were added since an earlier moment.
    pub fn since(self, earlier: Calls) -> Calls {
        Calls {
            calls: self.calls - earlier.calls,
            took_ns: self.took_ns - earlier.took_ns,
        }
    }

    /// Returns how much longer each call must take to reach `SLOWER`, if the answer could matter; `cpu_ns` is the CPU
    /// time of the process.
    pub fn slower_ns(self, cpu_ns: u64) -> Option<u64> {
        let matters = self.took_ns as f64 >= LEAST_SHARE * cpu_ns as f64;
        let slower_ns = SLOWER * cpu_ns as f64 / self.calls as f64;
        (matters && self.calls > 0).then_some(slower_ns.ceil() as u64)
    }

    /// Returns the ratio of the number of these calls to that of another process.
    pub fn over(self, other: Calls) -> f64 {
        self.calls as f64 / other.calls as f64
    }

    /// Returns the figures for a command that takes this much CPU time when its calls are not timed.
    pub fn figures(self, cpu_ns: u64) -> Vec<(String, f64)> {
        if cpu_ns == 0 {
            return Vec::new();
        }
        let rate = self.calls as f64 / (cpu_ns as f64 / 1e9);
        let share = (self.took_ns as f64 / cpu_ns as f64).min(1.0);
        vec![(CALLS_PER_S.to_string(), rate), (SHARE.to_string(), share)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_calls_and_none_have_a_share_too() {
        let figures = |calls, took_ns, cpu_ns| Calls { calls, took_ns }.figures(cpu_ns);
        let both = |rate, share| [(CALLS_PER_S.to_string(), rate), (SHARE.to_string(), share)];
        let found = figures(64_000, 3_200_000, 32_000_000);
        assert_eq!(found, both(2e6, 0.1));
        assert_eq!(figures(2, 500, 1_000_000), both(2000.0, 0.0005));
        assert_eq!(figures(0, 0, 1_000_000), both(0.0, 0.0));
        assert_eq!(figures(0, 0, 0), []);
    }

    #[test]
    fn calls_are_slowed_so_that_they_add_nine_times_the_cpu_time_if_they_matter_at_all() {
        let of = |took_ns| Calls {
            calls: 64_000,
            took_ns,
        };
        assert_eq!(of(3_200_000).slower_ns(32_000_000), Some(4500));
        assert_eq!(of(256_000).slower_ns(32_000_000), None, "less than 1 %");
        assert_eq!(Calls::default().slower_ns(1000), None);
    }

    #[test]
    fn what_was_added_before_does_not_count() {
        let at = |calls, took_ns| Calls { calls, took_ns };
        assert_eq!(at(6400, 5000).since(at(640, 4000)), at(5760, 1000));
    }
}
