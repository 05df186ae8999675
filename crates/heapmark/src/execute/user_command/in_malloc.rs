//! How much of a command's CPU time is malloc and free: an allocator cannot save more than that.

use crate::execute::handed::Handed;
use crate::execute::memory_file::numbers;
use anyhow::{Context, Result};

/// The share of CPU time that calls of the malloc family take.
pub const SHARE: &str = "malloc_share";
/// Calls of the malloc family for each second of CPU time.
pub const CALLS_PER_S: &str = "malloc_calls_per_cpu_s";

/// Calls of a process in which each took longer, and its wall time, over those of one in which none did.
pub const SLOWER_CALLS: &str = "slower_calls_ratio";
/// As [`SLOWER_CALLS`].
pub const SLOWER_WALL: &str = "slower_wall_ratio";
/// The CPU time that all calls together would then take more, over that of the process without.
const SLOWER: f64 = 9.0;
/// A command that spends less of its time in these calls is not asked.
const LEAST_SHARE: f64 = 0.01;

/// The least number of timed calls that is taken as a sample of all calls.
const LEAST_TIMED: u64 = 30;

/// The file whose totals the processes of a tree add to.
pub struct Times(Handed);

/// The totals at one moment, or between two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calls {
    calls: u64,
    timed: u64,
    timed_ns: u64,
}

impl Times {
    const TOTALS: u64 = 3;

    pub fn new() -> Result<Times> {
        let handed = Handed::new(0o666)?;
        handed
            .file()
            .set_len(8 * Times::TOTALS)
            .context("cannot size a file for times")?;
        Ok(Times(handed))
    }

    pub fn variable(&self) -> (String, String) {
        ("HEAPMARK_TIMES".into(), self.0.path())
    }

    pub fn read(&self) -> Result<Calls> {
        let [calls, timed, timed_ns] = numbers(self.0.file()).context("reading times")?;
        Ok(Calls {
            calls,
            timed,
            timed_ns,
        })
    }
}

impl Calls {
    /// What was added since then.
    pub fn since(self, earlier: Calls) -> Calls {
        Calls {
            calls: self.calls - earlier.calls,
            timed: self.timed - earlier.timed,
            timed_ns: self.timed_ns - earlier.timed_ns,
        }
    }

    /// How much longer each call must take for that, if the answer could matter; the process took this
    /// much CPU time.
    pub fn slower_ns(self, cpu_ns: u64) -> Option<u64> {
        let (_, share) = self
            .figures(cpu_ns)
            .pop()
            .filter(|(name, _)| name == SHARE)?;
        let slower_ns = SLOWER * cpu_ns as f64 / self.calls as f64;
        (share >= LEAST_SHARE).then_some(slower_ns.ceil() as u64)
    }

    /// These calls over those of another process.
    pub fn over(self, other: Calls) -> f64 {
        self.calls as f64 / other.calls as f64
    }

    /// The figures for a command that takes this much CPU time when its calls are not timed.
    pub fn figures(self, cpu_ns: u64) -> Vec<(String, f64)> {
        if cpu_ns == 0 {
            return Vec::new();
        }
        let rate = self.calls as f64 / (cpu_ns as f64 / 1e9);
        let mut figures = vec![(CALLS_PER_S.to_string(), rate)];
        if self.timed >= LEAST_TIMED {
            let all_ns = self.timed_ns as f64 * self.calls as f64 / self.timed as f64;
            figures.push((SHARE.to_string(), (all_ns / cpu_ns as f64).min(1.0)));
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timed_calls_speak_for_all() {
        let figures = |calls, timed, timed_ns, cpu_ns| {
            Calls {
                calls,
                timed,
                timed_ns,
            }
            .figures(cpu_ns)
        };
        let found = figures(64_000, 1000, 50_000, 32_000_000);
        assert_eq!(
            found,
            [(CALLS_PER_S.to_string(), 2e6), (SHARE.to_string(), 0.1)]
        );
        assert_eq!(
            figures(640, 10, 500, 1_000_000).len(),
            1,
            "ten timed calls are too few for a share"
        );
        assert_eq!(figures(0, 0, 0, 0), []);
    }

    #[test]
    fn calls_are_slowed_so_that_they_add_nine_times_the_cpu_time_if_they_matter_at_all() {
        let of = |timed_ns| Calls {
            calls: 64_000,
            timed: 1000,
            timed_ns,
        };
        assert_eq!(of(50_000).slower_ns(32_000_000), Some(4500));
        assert_eq!(of(4000).slower_ns(32_000_000), None, "less than 1 %");
        assert_eq!(Calls::default().slower_ns(1000), None);
    }

    #[test]
    fn what_was_added_before_does_not_count() {
        let at = |calls, timed, timed_ns| Calls {
            calls,
            timed,
            timed_ns,
        };
        assert_eq!(
            at(6400, 100, 5000).since(at(640, 10, 4000)),
            at(5760, 90, 1000)
        );
    }
}
