//! How a command's processes are scheduled: a library that raises their priority would look fast,
//! and one that pins them slow. Changes that the command makes itself are the same under every
//! allocator.

use std::fmt;

/// How one process is scheduled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scheduling {
    policy: i32,
    nice: i32,
    priority: u32,
    /// The CPUs that the process may use, in words of 64.
    cpus: Vec<u64>,
}

impl Scheduling {
    /// Parses what the witness wrote: `0 -5 0 3`.
    pub fn parse(text: &str) -> Option<Scheduling> {
        let mut words = text.split(' ');
        Some(Scheduling {
            policy: words.next()?.parse().ok()?,
            nice: words.next()?.parse().ok()?,
            priority: words.next()?.parse().ok()?,
            cpus: words.map(|word| word.parse().ok()).collect::<Option<_>>()?,
        })
    }
}

impl Scheduling {
    /// Returns how many CPUs the process may use, as reported to it.
    pub fn cpus(&self) -> u32 {
        self.cpus.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns the scheduling as it would be without a duet: the duet's one CPU becomes all CPUs that heapmark may
    /// use. What still differs is the process's own doing.
    pub fn outside_of_duet(mut self, cpu: usize, allowed: &[usize]) -> Scheduling {
        let only = |cpus: &[usize], words: usize| {
            let mut set = vec![0; words];
            for cpu in cpus {
                if let Some(word) = set.get_mut(cpu / 64) {
                    *word |= 1 << (cpu % 64);
                }
            }
            set
        };
        if self.cpus == only(&[cpu], self.cpus.len()) {
            self.cpus = only(allowed, self.cpus.len());
        }
        self
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.policy {
            libc::SCHED_OTHER => f.write_str("SCHED_OTHER")?,
            libc::SCHED_FIFO => f.write_str("SCHED_FIFO")?,
            libc::SCHED_RR => f.write_str("SCHED_RR")?,
            libc::SCHED_BATCH => f.write_str("SCHED_BATCH")?,
            libc::SCHED_IDLE => f.write_str("SCHED_IDLE")?,
            policy => write!(f, "policy {policy}")?,
        }
        match self.priority {
            0 => write!(f, " at nice {}", self.nice)?,
            priority => write!(f, " at priority {priority}")?,
        }
        let cpus = self.cpus();
        let noun = if cpus == 1 { "CPU" } else { "CPUs" };
        write!(f, " on {cpus} {noun}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_witness_wrote_is_said_in_words() {
        let words = |text: &str| Scheduling::parse(text).map(|scheduling| scheduling.to_string());
        let text = words("0 -5 0 3 18446744073709551615");
        assert_eq!(text.unwrap(), "SCHED_OTHER at nice -5 on 66 CPUs");
        let text = words("1 0 10 2").unwrap();
        assert_eq!(text, "SCHED_FIFO at priority 10 on 1 CPU");
        assert_eq!(words("77 0 0 1").unwrap(), "policy 77 at nice 0 on 1 CPU");
        for torn in ["", "0", "0 -5", "0 -5 x 3"] {
            assert_eq!(words(torn), None, "{torn}");
        }
    }
}
