//! How often a process is sampled from outside: often at first, then at a rate that costs less than
//! half a per cent of a core.

use std::time::Duration;

/// The shortest wait between two looks, and the only one for the first looks, so that short
/// workloads are seen too.
const LEAST_WAIT: Duration = Duration::from_millis(1);
const FIRST_LOOKS: u32 = 50;
/// After those, the wait is this many times the CPU time of a look, including the wake-up.
const LOOKS_APART: u32 = 300;

/// The pace of a sampler.
#[derive(Default)]
pub struct Pace {
    looks: u32,
    /// CPU time of the thread after the last look.
    cpu_ns: u64,
}

impl Pace {
    /// Leaves a part of a look's CPU time out of account, because that part has a pace of its own.
    pub fn leave_out(&mut self, cpu_ns: u64) {
        self.cpu_ns += cpu_ns;
    }

    /// Returns the wait after a look, given the CPU time that the thread has used so far.
    pub fn next(&mut self, cpu_ns: u64) -> Duration {
        let look_ns = cpu_ns.saturating_sub(self.cpu_ns);
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
        pace.leave_out(190_000);
        assert_eq!(
            pace.next(6_200_000),
            Duration::from_millis(3),
            "100 us of the look, 90 of them apart"
        );
    }
}
