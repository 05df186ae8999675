//! Every allocator of a run on one line, the fastest first: over all cases, or in the only case. Two tables with bars that need no script:
//! one of time and memory, and one of how certain the times are.

use super::axes;
use super::series_legend::SeriesLegend;
use crate::analyse::{Analysis, CommandFacts, Conclusion, Overall, Role, Table, TableRow, Verdict};
use crate::report::known_faults;
use crate::report::text::count;
use crate::report::{heading, sheet, units};
use crate::store::RunFile;
use serde::Serialize;

/// Beyond these ratios a bar is cut: one slow allocator must not shrink all other bars to dots.
const ENDS: (f64, f64) = (1.0 / 16.0, 16.0);

/// The ranking of a run, as the template reads it.
#[derive(Serialize)]
pub struct RankingBlock {
    caption: String,
    /// What rows are ranked by: `time`, or the number that a command reports.
    what: String,
    /// What a row is, in a word.
    noun: &'static str,
    baseline: String,
    /// The times that the A/A copies took: as a band of the scale, and in words.
    copies: Option<Bar>,
    copies_shown: String,
    scale: Scale,
    rows: Vec<Ranked>,
    /// The heading of the memory column.
    memory: &'static str,
    /// Whether some row has a share of kernel time.
    kernel: bool,
    /// Whether rows count the cases that went each way, as over several cases; in a single case, rows have its verdict.
    counts: bool,
}

/// A line of the ranking.
#[derive(Default, Serialize)]
struct Ranked {
    /// The allocator's place in the legend of the charts.
    entry: Option<usize>,
    name: String,
    version: String,
    ratio: f64,
    interval: Option<(f64, f64)>,
    /// `faster`, `slower`, or empty if that is not clear; decides the colour of the row's bar.
    way: &'static str,
    bar: Option<Bar>,
    /// The ratio as text.
    shown: String,
    shown_interval: String,
    next_run: String,
    #[serde(skip)]
    next: Option<(f64, f64)>,
    next_bar: Option<Bar>,
    memory: Option<String>,
    /// The allocator's memory, and its share of the largest memory in the ranking, in percent.
    #[serde(skip)]
    holds: Option<f64>,
    memory_width: Option<f64>,
    kernel: Option<String>,
    verdict: String,
    faster: usize,
    slower: usize,
    neither: usize,
    /// Why the row has no numbers; empty if it has some.
    without: String,
    /// `fails 3 checks`, and the sentence about these checks; empty if the allocator is not known to fail any.
    fails: String,
    failed: String,
}

/// A bar from 1 to the estimate, and the line of the interval, in percent of the scale's width.
#[derive(Serialize)]
struct Bar {
    estimate: f64,
    from: f64,
    width: f64,
    low: f64,
    reach: f64,
}

/// The ranking of each run, all on one scale; `None` for a run that has nothing that ranks.
pub fn blocks(legend: &SeriesLegend) -> Vec<Option<RankingBlock>> {
    let runs = 0..legend.runs.len();
    let mut blocks: Vec<Option<RankingBlock>> = runs.map(|run| block(legend, run)).collect();
    let rows = blocks.iter().flatten().flat_map(|block| &block.rows);
    let scale = Scale::new(rows);
    for (block, run) in blocks.iter_mut().zip(&legend.runs) {
        let Some(block) = block else { continue };
        let copies = copies(&run.analysis);
        block.copies = copies.map(|(least, most)| scale.bar(1.0, (least, most)));
        block.copies_shown = copies.map(ends).unwrap_or_default();
        for row in block.rows.iter_mut().filter(|row| row.without.is_empty()) {
            row.bar = Some(scale.bar(row.ratio, row.ends()));
            row.next_bar = row.next.map(|next| scale.bar(row.ratio, next));
        }
        block.scale = scale.clone();
    }
    blocks
}

/// The times that the A/A copies took: over several cases, the lowest and the highest estimate; in a single case, the interval.
fn copies(analysis: &Analysis) -> Option<(f64, f64)> {
    if !analysis.overall.is_empty() {
        return analysis.copies();
    }
    analysis.only_case()?.aa_copy?.interval
}

fn block(legend: &SeriesLegend, run: usize) -> Option<RankingBlock> {
    let legend_run = &legend.runs[run];
    let analysis = &legend_run.analysis;
    let (caption, what, mut rows) = match analysis.overall.as_slice() {
        [] => {
            let case = analysis.only_case()?;
            let heading = heading::heading_of(case);
            let command = case.command.as_ref();
            let first_value = command.and_then(|command| command.values.first());
            let what = match first_value {
                None => "time".to_owned(),
                Some(value) if value.higher => format!("1 / {}", value.name),
                Some(value) => value.name.clone(),
            };
            let caption = format!("{heading}: {what} / {}", case.baseline);
            (caption, what, of_case(case))
        }
        overall => (
            sheet::overall_heading(analysis),
            "time".to_owned(),
            of_all(overall, analysis),
        ),
    };
    // The baseline alone has nothing to be compared with.
    if rows.len() < 2 {
        return None;
    }
    let most = rows.iter().filter_map(|row| row.holds).fold(0.0, f64::max);
    for row in &mut rows {
        row.memory = row.holds.map(units::times);
        row.next_run = row.next.map(ends).unwrap_or_default();
        row.memory_width = row.holds.map(|holds| (holds / most * 1e4).round() / 100.0);
        row.version = version(legend_run.run.head, &row.name);
        row.entry = legend.entry(&row.name);
        let findings = analysis.failed_by(&row.name);
        if let Some(failed) = known_faults::failed(&row.name, findings) {
            row.fails = known_faults::fails(findings);
            row.failed = failed;
        }
    }
    let command = analysis.only_case().and_then(|case| case.command.as_ref());
    Some(RankingBlock {
        caption,
        what,
        noun: command.map_or("allocator", CommandFacts::noun),
        baseline: analysis.baseline.clone(),
        copies: None,
        copies_shown: String::new(),
        scale: Scale::default(),
        memory: if analysis.held.is_empty() {
            "memory"
        } else {
            "peak / live"
        },
        counts: !analysis.overall.is_empty(),
        kernel: rows.iter().any(|row| row.kernel.is_some()),
        rows,
    })
}

fn version(head: &RunFile, name: &str) -> String {
    head.allocators
        .iter()
        .chain(&head.rows)
        .find(|info| info.name == name)
        .map_or_else(String::new, |info| match info.released() {
            none if none.is_empty() => info.version.clone(),
            release => release,
        })
}

fn of_all(overall: &[Overall], analysis: &Analysis) -> Vec<Ranked> {
    let memory = |one: &Overall| {
        if analysis.held.is_empty() {
            Some(one.memory?.ratio)
        } else {
            analysis.held_by(&one.allocator)?.peak
        }
    };
    let is_withheld = matches!(analysis.conclusion, Conclusion::Withheld(_));
    overall
        .iter()
        .map(|one| {
            let new = Ranked::new(&one.allocator, one.ratio, one.interval);
            Ranked {
                holds: memory(one),
                kernel: one.kernel_share.map(units::percent),
                way: if is_withheld { "" } else { new.way },
                faster: one.faster,
                slower: one.slower,
                neither: one.cases - one.faster - one.slower,
                next: one.run_to_run,
                ..new
            }
        })
        .chain(analysis.left_out.iter().map(|left| Ranked {
            name: left.allocator.clone(),
            without: format!(
                "no numbers in {}",
                count(left.failed + left.missing, "case")
            ),
            ..Ranked::default()
        }))
        .collect()
}

fn of_case(case: &Table) -> Vec<Ranked> {
    let mut rows: Vec<Ranked> = case.rows.iter().filter_map(of_row).collect();
    rows.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    rows
}

fn of_row(row: &TableRow) -> Option<Ranked> {
    let time = row.ranked();
    let ratio = time.ratio.filter(|_| !row.role.is_companion())?;
    let verdict = match row.role {
        Role::Baseline => "baseline".into(),
        _ => sheet::verdict(row, time.metric.key).to_string(),
    };
    let new = Ranked::new(&row.allocator, ratio.ratio, ratio.interval);
    let is_clear = matches!(
        time.verdict,
        Some(Verdict::Faster | Verdict::Slower | Verdict::Small)
    );
    Some(Ranked {
        holds: row.ratio("grown_bytes").map(|memory| memory.ratio),
        kernel: row
            .parts
            .map(|parts| units::percent(parts.kernel_ns / row.time().spread.median)),
        verdict,
        way: if is_clear { new.way } else { "" },
        shown: format!("{}{}", sheet::bound(row), new.shown),
        ..new
    })
}

/// Returns the ends of an interval as text.
fn ends((low, high): (f64, f64)) -> String {
    format!("{} \u{2013} {}", units::ratio(low), units::ratio(high))
}

impl Ranked {
    fn new(name: &str, ratio: f64, interval: Option<(f64, f64)>) -> Ranked {
        Ranked {
            name: name.to_owned(),
            ratio,
            interval,
            way: match interval {
                Some((_, high)) if high < 1.0 => "faster",
                Some((low, _)) if low > 1.0 => "slower",
                _ => "",
            },
            shown: units::ratio(ratio),
            shown_interval: interval.map(ends).unwrap_or_default(),
            ..Ranked::default()
        }
    }

    /// Both ends of the interval, or the estimate twice.
    fn ends(&self) -> (f64, f64) {
        self.interval.unwrap_or((self.ratio, self.ratio))
    }
}

/// The logarithmic scale of the bars.
#[derive(Clone, Default, Serialize)]
struct Scale {
    /// The natural logarithms of the scale's ends.
    #[serde(skip)]
    low: f64,
    #[serde(skip)]
    high: f64,
    /// The place of 1, in percent of the scale's width.
    one: f64,
    /// The places of round numbers, with the numbers in words.
    marks: Vec<(f64, String)>,
}

impl Scale {
    fn new<'a>(rows: impl Iterator<Item = &'a Ranked>) -> Scale {
        let (least, most) = rows
            .filter(|row| row.without.is_empty())
            .flat_map(|row| [Some(row.ends()), row.next])
            .flatten()
            .fold((1.0_f64, 1.0_f64), |(least, most), (low, high)| {
                (least.min(low), most.max(high))
            });
        let least = least.max(ENDS.0);
        let most = most.min(ENDS.1);
        // Room for a mark at each end.
        let room = ((most / least).ln() * 0.06).max(0.01);
        let mut scale = Scale {
            low: least.ln() - room,
            high: most.ln() + room,
            one: 0.0,
            marks: Vec::new(),
        };
        scale.one = scale.place(1.0);
        let marks = axes::round_marks(least, most)
            .into_iter()
            .map(|(mark, words)| (scale.place(mark), words));
        scale.marks = marks
            .filter(|(place, _)| (2.0..=98.0).contains(place))
            .collect();
        scale
    }

    /// The place of a ratio, in percent of the scale's width.
    fn place(&self, ratio: f64) -> f64 {
        let share = (ratio.ln() - self.low) / (self.high - self.low);
        (share.clamp(0.0, 1.0) * 1e4).round() / 100.0
    }

    fn bar(&self, ratio: f64, (low, high): (f64, f64)) -> Bar {
        let [estimate, low, high] = [ratio, low, high].map(|ratio| self.place(ratio));
        Bar {
            estimate,
            from: estimate.min(self.one),
            width: (estimate - self.one).abs(),
            low,
            reach: high - low,
        }
    }
}
