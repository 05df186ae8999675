//! What memory a server holds: before its load, at the load's end, and 1, 10 and 60 s later, for as long as it is left
//! alone.

use crate::execute::resident::ResidentByKind;
use crate::execute::tree::{field, resident_bytes};
use std::fs::read_to_string;
use std::time::{Duration, Instant};

/// Moments after the end of the load, in seconds.
const MOMENTS_S: [u64; 4] = [0, 1, 10, 60];
/// Time between two looks at what is resident or live.
const PACE: Duration = Duration::from_millis(100);
/// The growth in bytes below which it is not worth mentioning.
pub const LITTLE_BYTES: f64 = (4 << 20) as f64;
/// Figure: the most threads while the client ran.
pub const MOST_THREADS: &str = "drain_most_threads";
/// The name of the moment before the load, as in figures.
pub const BEFORE: &str = "before";
/// The name of the middle of the load, as in figures.
pub const HALF: &str = "half";
/// Figure: resident memory, summed over the time of the drain.
pub const AREA: &str = "drain_rss_byte_s";

/// What is noted at each moment, in figures with names like `drain_MOMENT_KIND`.
pub const KINDS: [&str; 8] = [
    "rss_bytes",
    "pss_bytes",
    "heap_bytes",
    "arena_bytes",
    "file_bytes",
    "huge_bytes",
    "threads",
    "live_bytes",
];

/// Returns the name of a figure.
pub fn figure(moment: &str, kind: &str) -> String {
    format!("drain_{moment}_{kind}")
}

/// Returns the moments of a drain of this length, by their names in figures.
pub fn moments(length: Duration) -> Vec<(String, Duration)> {
    let all = MOMENTS_S.map(Duration::from_secs);
    let mut all: Vec<Duration> = all.into_iter().filter(|moment| *moment < length).collect();
    all.push(length);
    all.into_iter()
        .map(|moment| (moment.as_millis().to_string(), moment))
        .collect()
}

/// The observation of one server's memory.
pub struct Drain {
    counts: bool,
    moments: Vec<(String, Duration)>,
    /// How many of the moments have passed.
    passed: usize,
    figures: Vec<(String, f64)>,
    /// Live bytes while the client ran, each with the time since the client was started.
    live: Vec<(Duration, u64)>,
    /// The most threads that were seen while the client ran.
    most_threads: u64,
    started: Instant,
    next: Instant,
    /// The last look at resident memory: its time, and the bytes.
    last: Option<(Instant, u64)>,
    area_byte_s: f64,
}

impl Drain {
    /// Makes a drain of this length. `counts` is set if live bytes are counted in the process, whose memory is then
    /// not the row's.
    pub fn new(length: Duration, counts: bool) -> Drain {
        Drain {
            counts,
            moments: moments(length),
            passed: 0,
            figures: Vec::new(),
            live: Vec::new(),
            most_threads: 0,
            started: Instant::now(),
            next: Instant::now(),
            last: None,
            area_byte_s: 0.0,
        }
    }

    /// Notes the memory just before the load. `live` is what is live, if that is counted.
    pub fn before(&mut self, tree: &[i32], live: Option<u64>) {
        self.started = Instant::now();
        self.moment(BEFORE, tree, live);
    }

    /// Returns whether it is time for a look. Must be called while the load lasts.
    pub fn is_due(&mut self) -> bool {
        let is_due = self.next <= Instant::now();
        if is_due {
            self.next = Instant::now() + PACE;
        }
        is_due
    }

    /// Notes what is live during the load, and how many threads there are.
    pub fn loaded(&mut self, tree: &[i32], live: Option<u64>) {
        self.most_threads = self.most_threads.max(all_threads(tree));
        let at = self.started.elapsed();
        self.live.extend(live.map(|bytes| (at, bytes)));
    }

    /// Looks at the server this long after the end of its load; returns whether that was the last look.
    pub fn after(&mut self, since: Duration, tree: &[i32], live: impl Fn() -> Option<u64>) -> bool {
        if self.is_due() || self.last.is_none() {
            let bytes: u64 = tree.iter().map(|pid| resident_bytes(*pid)).sum();
            let now = Instant::now();
            if let Some((then, before)) = self.last {
                let seconds = now.duration_since(then).as_secs_f64();
                self.area_byte_s += seconds * (bytes as f64 + before as f64) / 2.0;
            }
            self.last = Some((now, bytes));
        }
        while let Some((name, at)) = self.moments.get(self.passed).cloned()
            && at <= since
        {
            self.moment(&name, tree, live());
            self.passed += 1;
        }
        self.passed == self.moments.len()
    }

    fn moment(&mut self, name: &str, tree: &[i32], live: Option<u64>) {
        let held = ResidentByKind::of_all(tree);
        let threads = all_threads(tree);
        let values = [
            held.rss_bytes,
            held.pss_bytes,
            held.heap_bytes,
            held.arena_bytes,
            held.file_bytes + held.shared_bytes,
            held.huge_bytes,
            threads,
        ];
        let named = KINDS.into_iter().zip(values.into_iter().chain(live));
        let named = named.map(|(kind, value)| (figure(name, kind), value as f64));
        self.figures.extend(named);
    }

    /// Returns all figures. For a process whose live bytes are counted, only those: the rest of its memory is not the
    /// row's.
    pub fn figures(mut self) -> Vec<(String, f64)> {
        let half = self.live.last().map(|(end, _)| *end / 2);
        let middle = half.and_then(|half| self.live.iter().rev().find(|(at, _)| *at <= half));
        if self.counts {
            self.figures
                .retain(|(name, _)| name.ends_with("live_bytes"));
            let name = figure(HALF, "live_bytes");
            let middle = middle.or(self.live.first());
            self.figures
                .extend(middle.map(|(_, bytes)| (name, *bytes as f64)));
        } else if self.passed > 0 {
            self.figures.push((AREA.into(), self.area_byte_s));
            self.figures
                .push((MOST_THREADS.into(), self.most_threads as f64));
        }
        self.figures
    }
}

fn all_threads(tree: &[i32]) -> u64 {
    tree.iter().map(|pid| threads(*pid)).sum()
}

fn threads(pid: i32) -> u64 {
    let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let count = field(&status, "Threads:").and_then(|words| words.trim().parse().ok());
    count.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_moment_is_the_end_of_the_drain() {
        let of = |seconds| {
            let all = moments(Duration::from_secs(seconds)).into_iter();
            all.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(of(60), ["0", "1000", "10000", "60000"]);
        assert_eq!(of(2), ["0", "1000", "2000"]);
        assert_eq!(of(300), ["0", "1000", "10000", "60000", "300000"]);
    }

    #[test]
    fn this_very_process_is_seen_to_rest() {
        let tree = [std::process::id() as i32];
        let mut drain = Drain::new(Duration::from_secs(1), false);
        drain.before(&tree, None);
        assert!(!drain.after(Duration::ZERO, &tree, || None));
        std::thread::sleep(PACE);
        assert!(drain.after(Duration::from_secs(1), &tree, || None));
        let figures: std::collections::BTreeMap<_, _> = drain.figures().into_iter().collect();
        assert!(figures["drain_1000_rss_bytes"] > 0.0 && figures["drain_0_threads"] > 0.0);
        assert!(figures[AREA] > 0.0 && !figures.contains_key("drain_0_live_bytes"));
    }
}
