//! How often a process may be looked at from outside: often while it is young, then as seldom as it must be to cost less than half
//! a per cent of a core.

use std::time::Duration;

/// The least from one look to the next, and all that there is before the first looks: short workloads are seen, too.
const LEAST_WAIT: Duration = Duration::from_millis(1);
const FIRST_LOOKS: u32 = 50;
/// Later so many times the CPU time of a look, waking up for it included, lies between two.
const LOOKS_APART: u32 = 300;

/// The pace of one who looks.
#[derive(Default)]
pub(super) struct Pace {
    looks: u32,
    /// CPU time of the thread after the last look.
    cpu_ns: u64,
}

impl Pace {
    /// After a look, with the CPU time that the thread has used until now: how long to wait.
    pub fn next(&mut self, cpu_ns: u64) -> Duration {
        self.next_without(cpu_ns, 0)
    }

    /// As [`Pace::next`], where a part of the look's CPU time has a pace of its own.
    pub fn next_without(&mut self, cpu_ns: u64, apart_ns: u64) -> Duration {
        let look_ns = cpu_ns.saturating_sub(self.cpu_ns + apart_ns);
        self.cpu_ns = cpu_ns;
        self.looks += 1;
        match self.looks {
            ..=FIRST_LOOKS => LEAST_WAIT,
            _ => LEAST_WAIT.max(Duration::from_nanos(look_ns) * LOOKS_APART),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_first_looks_a_dear_one_is_followed_by_a_long_wait() {
        let mut pace = Pace::default();
        let waits: Vec<Duration> = (1..=60).map(|look| pace.next(look * 100_000)).collect();
        assert_eq!(waits[..50], [LEAST_WAIT; 50]);
        assert_eq!(waits[50], Duration::from_millis(30));
        assert_eq!(
            pace.next_without(6_200_000, 190_000),
            Duration::from_millis(3),
            "100 us of the look, 90 of them apart"
        );
    }
}
