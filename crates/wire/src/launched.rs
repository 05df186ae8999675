//! The report of a launcher about the process that it ran.

use crate::pairs;
use core::fmt;

/// The kernel's account of a process, from start to end. The process began as a child of the small
/// launcher, so its peak resident set is its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launched {
    /// The `errno` with which the command could not be started; 0 if it was started. The process
    /// that tried writes this in the same format before the launcher writes the rest: the first
    /// line counts.
    pub errno: i32,
    /// The status as `wait4` returns it.
    pub status: i32,
    /// Wall time from before the fork to after the wait.
    pub wall_ns: u64,
    /// User CPU time, including that of children that the process waited for.
    pub user_ns: u64,
    /// System CPU time, including that of children that the process waited for.
    pub sys_ns: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// How often the process gave up the CPU itself.
    pub voluntary_switches: u64,
    /// How often the process was preempted.
    pub involuntary_switches: u64,
    /// Peak resident set.
    pub max_rss_bytes: u64,
    /// Number of processes that the process started, that outlived it, and that the launcher
    /// killed.
    pub left_behind: u64,
}

impl fmt::Display for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "errno={}\nstatus={}", self.errno, self.status)?;
        self.counters()
            .into_iter()
            .try_for_each(|(name, value)| writeln!(f, "{name}={value}"))
    }
}

impl Launched {
    fn counters(&self) -> [(&'static str, u64); 9] {
        [
            ("wall_ns", self.wall_ns),
            ("user_ns", self.user_ns),
            ("sys_ns", self.sys_ns),
            ("minor_faults", self.minor_faults),
            ("major_faults", self.major_faults),
            ("voluntary_switches", self.voluntary_switches),
            ("involuntary_switches", self.involuntary_switches),
            ("max_rss_bytes", self.max_rss_bytes),
            ("left_behind", self.left_behind),
        ]
    }

    /// Parses a launcher's text; `None` if the launcher did not finish it.
    pub fn parse(text: &str) -> Option<Launched> {
        let find = |key: &str| {
            pairs(text)
                .find(|(name, _)| *name == key)
                .map(|(_, value)| value)
        };
        let number = |key: &str| find(key)?.parse().ok();
        Some(Launched {
            errno: find("errno")?.parse().ok()?,
            status: find("status")?.parse().ok()?,
            wall_ns: number("wall_ns")?,
            user_ns: number("user_ns")?,
            sys_ns: number("sys_ns")?,
            minor_faults: number("minor_faults")?,
            major_faults: number("major_faults")?,
            voluntary_switches: number("voluntary_switches")?,
            involuntary_switches: number("involuntary_switches")?,
            max_rss_bytes: number("max_rss_bytes")?,
            left_behind: number("left_behind")?,
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    #[test]
    fn what_is_written_is_read_and_a_torn_text_is_not() {
        let launched = Launched {
            status: 9,
            wall_ns: 1,
            max_rss_bytes: 8,
            ..Launched::default()
        };
        let text = launched.to_string();
        assert_eq!(Launched::parse(&text), Some(launched));
        assert_eq!(Launched::parse(&text[..text.len() / 2]), None);
        assert_eq!(
            Launched::parse(&std::format!("errno=2\n{text}")),
            Some(Launched {
                errno: 2,
                ..launched
            })
        );
    }
}
