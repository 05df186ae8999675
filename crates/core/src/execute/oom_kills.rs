//! Whether the kernel killed a process for lack of memory, from its count of such kills. SIGKILL
//! alone does not show its sender.

/// The kernel's count of kills for lack of memory at one moment; `None` if the kernel shows none.
#[derive(Clone, Copy)]
pub struct OomKills(Option<u64>);

impl OomKills {
    /// Reads the current count, which includes kills at limits of control groups.
    pub fn now() -> OomKills {
        OomKills(
            std::fs::read_to_string("/proc/vmstat")
                .ok()
                .and_then(|text| count(&text)),
        )
    }

    /// Returns whether the kernel killed a process for lack of memory between the two counts.
    pub fn since(self, earlier: OomKills) -> bool {
        self.0.zip(earlier.0).is_some_and(|(now, then)| now > then)
    }
}

/// Returns the count of kills for lack of memory in the text of `/proc/vmstat`, or of a control group's
/// `memory.events`.
pub fn count(events: &str) -> Option<u64> {
    let mut counts = events
        .lines()
        .filter_map(|line| line.strip_prefix("oom_kill "));
    counts.next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_counted_is_one() {
        let at = |text: &str| OomKills(count(text));
        let none = at("nr_free_pages 5\noom_kill 3\ndrop_pagecache 0\n");
        assert!(at("oom_kill 4\n").since(none));
        assert!(!none.since(none));
        assert!(
            !at("nr_free_pages 5\n").since(none),
            "a kernel that does not count"
        );
    }
}
