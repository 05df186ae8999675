//! The command line and the probe. With `--probe` building and releasing of every tree is timed, otherwise no clock is read.

use std::env;
use std::process::exit;
use std::time::{Duration, Instant};

pub const MIN_DEPTH: u32 = 4;
const DEEPEST: u32 = 40;

pub struct Probe {
    /// Depth of the long-lived tree, and of the deepest in the loop.
    pub max_depth: u32,
    on: bool,
    longest_build: Vec<Duration>,
    /// Every release, for the percentile, with the depth of its tree.
    releases: Vec<(Duration, u32)>,
}

impl Probe {
    /// Reads `N [--probe]`; anything else ends the process.
    pub fn from_arguments() -> Self {
        let words: Vec<String> = env::args().skip(1).collect();
        let (word, on) = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [word] => (word, false),
            [word, "--probe"] => (word, true),
            _ => usage(),
        };
        let n = match word.parse::<u32>() {
            Ok(n) if (1..=DEEPEST).contains(&n) => n,
            _ => usage(),
        };
        let max_depth = n.max(MIN_DEPTH + 2);
        Self {
            max_depth,
            on,
            longest_build: vec![Duration::ZERO; max_depth as usize + 2],
            // Capacity for all of them, fewer than 2^(max + 1), so that it does not allocate while trees are built and released.
            releases: Vec::with_capacity(if on { 2 << max_depth } else { 0 }),
        }
    }

    pub fn clock(&self) -> Option<Instant> {
        self.on.then(Instant::now)
    }

    pub fn built(&mut self, depth: u32, start: Option<Instant>) {
        if let Some(start) = start {
            let longest = &mut self.longest_build[depth as usize];
            *longest = start.elapsed().max(*longest);
        }
    }

    pub fn released(&mut self, depth: u32, start: Option<Instant>) {
        if let Some(start) = start {
            self.releases.push((start.elapsed(), depth));
        }
    }

    pub fn report(&mut self) {
        if !self.on {
            return;
        }
        for depth in (MIN_DEPTH..=self.max_depth).step_by(2) {
            let longest = self.longest_build[depth as usize];
            eprintln!("figure=depth_{depth}_longest_build_ns {}", longest.as_nanos());
        }
        self.releases.sort_unstable();
        let count = self.releases.len();
        let total: Duration = self.releases.iter().map(|(took, _)| took).sum();
        let (p99, _) = self.releases[(count * 99).div_ceil(100) - 1];
        let (max, max_depth) = self.releases[count - 1];
        eprintln!("figure=releases {count}");
        eprintln!("figure=release_mean_ns {}", total.as_nanos() / count as u128);
        eprintln!("figure=release_p99_ns {}", p99.as_nanos());
        eprintln!("figure=release_max_ns {}", max.as_nanos());
        eprintln!("figure=release_max_depth {max_depth}");
    }
}

fn usage() -> ! {
    eprintln!("usage: trees N [--probe], N a depth from 1 to {DEEPEST}");
    exit(2)
}
