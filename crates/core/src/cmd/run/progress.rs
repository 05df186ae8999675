//! Progress on stderr: a bar on a terminal, a plain line per block otherwise.

use super::outline::number_of_blocks;
use crate::analyse::{Standing, analyse, standings};
use crate::cmd::long::{styled, time_left};
use crate::cmd::{is_quiet, note, say, screen_of};
use crate::plan::Plan;
use crate::report::{self, render};
use crate::session::Progress;
use crate::store::{Record, RunFile};
use heapmark_stats::{Next, Shift, Stop, half_width};
use indicatif::ProgressBar;
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// The progress of a run.
pub struct TerminalProgress {
    /// Counts finished processes; draws nothing if stderr is not a terminal.
    bar: ProgressBar,
    began: Instant,
    /// How many processes ran in this session, and how many of them had run when the last line was printed.
    run: usize,
    said: usize,
    blocks: Option<Blocks>,
}

/// The state of a run's blocks, for counting and timing them.
struct Blocks {
    plan: Plan,
    began: Instant,
    /// Processes of this session that ran before the blocks.
    run_before: usize,
    /// No line with provisional results is computed before this time.
    rests_until: Instant,
}

/// After computing a line with provisional results, the progress computes no other for this many times as long.
const MOST_LOOKING: u32 = 50;

impl TerminalProgress {
    /// Starts with none of `total` processes done.
    pub fn new(total: usize) -> TerminalProgress {
        let bar = if is_quiet() {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(total as u64)
        };
        TerminalProgress {
            bar: styled(bar, "{bar:20} {pos}/{len}  {msg}"),
            began: Instant::now(),
            run: 0,
            said: 0,
            blocks: None,
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// The most time that is left, in words: for all blocks that may follow, limited by the budget or by the least number of blocks.
    fn left(&self, used_s: f64) -> String {
        let of_bar = self
            .bar
            .length()
            .unwrap_or_default()
            .saturating_sub(self.bar.position());
        let (began, run_before) = match &self.blocks {
            Some(blocks) => (blocks.began, blocks.run_before),
            None => (self.began, 0),
        };
        let each_s = began.elapsed().as_secs_f64() / (self.run - run_before).max(1) as f64;
        let mut seconds = each_s * of_bar as f64;
        if let Some(Blocks { plan, .. }) = &self.blocks
            && let Some(budget_s) = plan.budget_s
        {
            let left_s = (budget_s - used_s).max(0.0);
            let least_blocks = if plan.budget_of_suite { plan.blocks } else { 0 };
            let of_block: usize = plan.block(0).iter().map(Vec::len).sum();
            let least = (of_block * least_blocks as usize).saturating_sub(self.run - run_before);
            let least_s = each_s * least as f64;
            seconds = seconds.min(left_s.max(least_s));
        }
        time_left("at most", seconds)
    }

    /// A line of progress: `block 3 of 10 to 40: best so far mimalloc3 0.831 ± 0.6 %, at most 1 min 20 s left`.
    fn line(&self, block: u32, standings: &[Standing], rest: &str) -> Option<String> {
        let plan = &self.blocks.as_ref()?.plan;
        let of = number_of_blocks(plan);
        let parts = [
            best(standings, &plan.baseline),
            noise(standings),
            widest(standings),
        ];
        let so_far: String = parts
            .into_iter()
            .flatten()
            .map(|part| part + ", ")
            .collect();
        Some(format!("block {} of {of}: {so_far}{rest}", block + 1))
    }
}

/// The allocator with the least time over all cases, among those with an estimate for every case.
fn best(standings: &[Standing], baseline: &str) -> Option<String> {
    let compared = || standings.iter().filter(|standing| !standing.is_copy);
    let mut names: Vec<&str> = compared().map(|standing| &*standing.allocator).collect();
    names.sort_unstable();
    names.dedup();
    let over_all = names.into_iter().filter_map(|name| {
        let of = compared().filter(|standing| standing.allocator == name);
        let shifts = of
            .map(|standing| standing.shift)
            .collect::<Option<Vec<Shift>>>()?;
        let count = shifts.len() as f64;
        let mean = shifts.iter().map(|shift| shift.estimate).sum::<f64>() / count;
        let squares = shifts.iter().map(|shift| Some(half_width(shift)?.powi(2)));
        let half = squares.sum::<Option<f64>>().map(|sum| sum.sqrt() / count);
        Some((name, mean, half))
    });
    let (name, mean, half) = over_all.min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(match mean < 0.0 {
        true => format!("best so far {name} {}", ratio(mean, half)),
        false => format!("best so far {baseline}"),
    })
}

/// How the copy of the baseline compares with the baseline.
fn noise(standings: &[Standing]) -> Option<String> {
    let mut copies = standings.iter().filter(|standing| standing.is_copy);
    let (Some(copy), None) = (copies.next(), copies.next()) else {
        return None;
    };
    let shift = copy.shift?;
    let ratio = ratio(shift.estimate, half_width(&shift));
    Some(format!("{} {ratio}", copy.allocator))
}

fn widest(standings: &[Standing]) -> Option<String> {
    let compared = standings.iter().filter(|standing| !standing.is_copy);
    let widths = compared.filter_map(|standing| Some((standing, half_width(&standing.shift?)?)));
    let (widest, width) = widths.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let Standing {
        allocator, case, ..
    } = widest;
    Some(format!(
        "widest interval ±{:.1} % ({allocator} on {case})",
        width * 100.0
    ))
}

/// Formats a ratio and its half-width, both given as logarithms: `0.831 ± 0.6 %`.
fn ratio(log: f64, half_width: Option<f64>) -> String {
    let reach = half_width.map_or(String::new(), |half| format!(" ± {:.1} %", half * 100.0));
    format!("{:.3}{reach}", log.exp())
}

impl Progress for TerminalProgress {
    fn begin(&self, cell: &str) {
        let has_numbers = self
            .blocks
            .as_ref()
            .is_some_and(|blocks| blocks.rests_until > blocks.began);
        if !has_numbers {
            self.bar.set_message(cell.to_owned());
        }
    }

    fn step(&mut self, run: bool) {
        self.run += usize::from(run);
        self.bar.inc(1);
    }

    fn say(&self, line: &str) {
        self.bar.suspend(|| say(line));
    }

    fn plan(&mut self, plan: &Plan) {
        // The bar counts all blocks that may follow, so that it never shows less than is left.
        let may_follow = plan.most_blocks() - plan.blocks;
        let of_block: usize = plan.block(0).iter().map(Vec::len).sum();
        self.more(may_follow as usize * of_block);
        let now = Instant::now();
        self.blocks = Some(Blocks {
            plan: plan.clone(),
            began: now,
            run_before: self.run,
            rests_until: now,
        });
    }

    fn part(&mut self, block: u32, head: &RunFile, records: &[Record], used_s: f64) {
        let now = Instant::now();
        let rests = self
            .blocks
            .as_ref()
            .is_none_or(|blocks| now < blocks.rests_until);
        if rests || is_quiet() || !std::io::stderr().is_terminal() {
            return;
        }
        let standings = standings(head, records);
        let left = self.left(used_s);
        let line = self.line(block, &standings, &left);
        self.bar.set_message(line.unwrap_or_default());
        if let Some(blocks) = &mut self.blocks {
            blocks.rests_until = Instant::now() + now.elapsed() * MOST_LOOKING;
        }
    }

    fn block(&mut self, block: u32, standings: &[Standing], used_s: f64, next: Next) {
        let has_ratios = standings.iter().any(|standing| !standing.is_copy);
        let can_grow = self
            .blocks
            .as_ref()
            .is_some_and(|blocks| blocks.plan.most_blocks() > blocks.plan.blocks);
        let rest = match next {
            Next::Stop(Stop::Precision) if has_ratios => "precise enough".into(),
            Next::Stop(Stop::Precision) if can_grow => "nothing left to compare".into(),
            Next::Stop(Stop::Precision | Stop::MaxBlocks) => "done".into(),
            Next::Stop(Stop::Budget) => "the budget leaves no time for another block".into(),
            Next::GoOn => self.left(used_s),
        };
        // Blocks that an earlier session measured are not reported again.
        if self.run == self.said && next == Next::GoOn {
            return;
        }
        self.said = self.run;
        let Some(line) = self.line(block, standings, &rest) else {
            return;
        };
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
        if let Some(table) = report::provisional(&analyse(head, records), done, &of) {
            let table = render::terminal(&[table], screen);
            self.bar
                .suspend(|| drop(writeln!(std::io::stderr(), "\n{table}")));
        }
    }

    fn more(&mut self, processes: usize) {
        self.bar.inc_length(processes as u64);
    }
}
