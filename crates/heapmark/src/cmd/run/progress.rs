//! Progress on stderr: a bar on a terminal, a plain line per block otherwise.

use crate::cmd::say;
use crate::plan::Plan;
use crate::session::Progress;
use heapmark_stats::{Next, Stop};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Instant;

/// The progress of a run.
pub struct TerminalProgress {
    bar: Option<ProgressBar>,
    began: Instant,
    total: usize,
    done: usize,
    /// How many of them ran in this session, and how many had when the last line was printed.
    run: usize,
    said: usize,
}

impl TerminalProgress {
    /// Starts with none of `total` processes done.
    pub fn new(total: usize) -> TerminalProgress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total as u64);
            if let Ok(style) =
                ProgressStyle::with_template("{bar:30} {pos}/{len}  {eta} left  {msg}")
            {
                bar.set_style(style);
            }
            bar
        });
        TerminalProgress {
            bar,
            began: Instant::now(),
            total,
            done: 0,
            run: 0,
            said: 0,
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Progress for TerminalProgress {
    fn begin(&self, cell: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(cell.to_owned());
        }
    }

    fn step(&mut self, run: bool) {
        self.done += 1;
        self.run += usize::from(run);
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(line)),
            None => say(line),
        }
    }

    fn block(&mut self, block: u32, plan: &Plan, widths: &[(String, Option<f64>)], next: Next) {
        let (done, least, most) = (block + 1, plan.blocks, plan.most_blocks());
        let of = if most > least {
            format!("{least} to {most}")
        } else {
            least.to_string()
        };
        let precise = widths
            .iter()
            .filter_map(|(row, width)| Some((row, (*width)?)));
        let widest = precise.max_by(|(_, a), (_, b)| a.total_cmp(b));
        let widest = widest.map_or(String::new(), |(row, width)| {
            format!(", widest interval ±{:.1} % ({row})", width * 100.0)
        });
        let rest: String = match next {
            Next::Stop(Stop::Precision) if !widths.is_empty() => "precise enough".into(),
            Next::Stop(Stop::Precision) if most > least => "nothing left to compare".into(),
            Next::Stop(Stop::Precision | Stop::MaxBlocks) => "done".into(),
            Next::Stop(Stop::Budget) => "the budget is used up".into(),
            Next::GoOn => {
                if done >= least {
                    self.more(plan.block(done).iter().map(Vec::len).sum());
                }
                let each = self.began.elapsed().as_secs_f64() / self.run.max(1) as f64;
                let seconds = each * self.total.saturating_sub(self.done) as f64;
                match seconds.round() as u64 {
                    seconds @ ..60 => format!("{seconds} s left"),
                    seconds => format!("{} min {:02} s left", seconds / 60, seconds % 60),
                }
            }
        };
        // Blocks that an earlier session measured are not reported again.
        if self.run == self.said && next == Next::GoOn {
            return;
        }
        self.said = self.run;
        let line = format!("block {done} of {of}{widest}, {rest}");
        match &self.bar {
            Some(bar) => bar.set_message(line),
            None => say(line),
        }
    }

    fn more(&mut self, processes: usize) {
        self.total += processes;
        self.bar
            .iter()
            .for_each(|bar| bar.set_length(self.total as u64));
    }
}
