//! Progress on stderr: a bar on a terminal, a plain line per block otherwise.

use crate::analyse::Analysis;
use crate::cmd::say;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Instant;

/// Where a run stands.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    began: Instant,
    total: usize,
    done: usize,
}

impl Progress {
    /// Starts with nothing done of `total` processes.
    pub(super) fn new(total: usize) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total as u64);
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}  {eta} left  {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Progress { bar, began: Instant::now(), total, done: 0 }
    }

    /// A process begins.
    pub(super) fn begin(&self, cell: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(cell.to_string());
        }
    }

    /// It has ended (or was left out).
    pub(super) fn step(&mut self) {
        self.done += 1;
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Says a line that stays.
    pub(super) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(line)),
            None => say(line),
        }
    }

    /// A block is over: how far, how sure, how long still.
    pub(super) fn block(&self, block: u32, of: u32, analysis: &Analysis) {
        let left = self.began.elapsed().as_secs_f64() / self.done.max(1) as f64 * (self.total - self.done) as f64;
        let widest = widest(analysis)
            .map_or(String::new(), |(row, width)| format!(", widest interval ±{:.1} % ({row})", width * 100.0));
        let line = format!("block {} of {of}{widest}, {} left", block + 1, clock(left));
        match &self.bar {
            Some(bar) => bar.set_message(line),
            None => say(&line),
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The row whose ratio is least certain, and half the width of its interval.
fn widest(analysis: &Analysis) -> Option<(String, f64)> {
    let rows = analysis.cases.iter().flat_map(|case| case.rows.iter().map(move |row| (case, row)));
    rows.filter_map(|(case, row)| {
        let (low, high) = row.numbers()?.ratio.as_ref()?.interval?;
        Some((format!("{} on {}@{}", row.allocator, case.workload, case.threads), (high / low).ln() / 2.0))
    })
    .max_by(|a, b| a.1.total_cmp(&b.1))
}

fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    if seconds >= 60 { format!("{} min {:02} s", seconds / 60, seconds % 60) } else { format!("{seconds} s") }
}
