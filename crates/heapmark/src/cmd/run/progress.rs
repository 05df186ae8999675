//! Progress on stderr: a bar on a terminal, a plain line per block otherwise.

use super::outline::number_of_blocks;
use crate::analyse::analyse;
use crate::cmd::long::styled;
use crate::cmd::{is_quiet, note, say, screen_of};
use crate::plan::Plan;
use crate::report;
use crate::session::Progress;
use crate::store::{Record, RunFile};
use heapmark_stats::{Next, Stop};
use indicatif::ProgressBar;
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// The progress of a run.
pub struct TerminalProgress {
    /// Counts the processes that are done; it draws nothing if stderr is no terminal.
    bar: ProgressBar,
    began: Instant,
    /// How many of them ran in this session, and how many had when the last line was printed.
    run: usize,
    said: usize,
}

impl TerminalProgress {
    /// Starts with none of `total` processes done.
    pub fn new(total: usize) -> TerminalProgress {
        let bar = if is_quiet() {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(total as u64)
        };
        TerminalProgress {
            bar: styled(bar, "{bar:30} {pos}/{len}  {eta} left  {msg}"),
            began: Instant::now(),
            run: 0,
            said: 0,
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for TerminalProgress {
    fn begin(&self, cell: &str) {
        self.bar.set_message(cell.to_owned());
    }

    fn step(&mut self, run: bool) {
        self.run += usize::from(run);
        self.bar.inc(1);
    }

    fn say(&self, line: &str) {
        self.bar.suspend(|| say(line));
    }

    fn block(&mut self, block: u32, plan: &Plan, widths: &[(String, Option<f64>)], next: Next) {
        let done = block + 1;
        let least = plan.blocks;
        let most = plan.most_blocks();
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
                let all = self.bar.length().unwrap_or_default();
                let seconds = each * all.saturating_sub(self.bar.position()) as f64;
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
        let of = number_of_blocks(plan);
        let line = format!("block {done} of {of}{widest}, {rest}");
        if std::io::stderr().is_terminal() {
            self.bar.set_message(line);
        } else {
            note(line);
        }
    }

    fn provisional(&mut self, done: u32, head: &RunFile, records: &[Record]) {
        if is_quiet() || !std::io::stderr().is_terminal() {
            return;
        }
        let of = number_of_blocks(&head.plan);
        let screen = screen_of(std::io::stderr());
        if let Some(table) = report::provisional(&analyse(head, records), done, &of, screen) {
            self.bar
                .suspend(|| drop(writeln!(std::io::stderr(), "\n{table}")));
        }
    }

    fn more(&mut self, processes: usize) {
        self.bar.inc_length(processes as u64);
    }
}
