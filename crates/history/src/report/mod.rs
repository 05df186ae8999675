//! A history as tables: its changes first.

mod museum;
mod page;

pub use museum::{museum, museum_json, museum_page};
pub use page::page;

use crate::folder::{History, SeriesVersion};
use crate::series::{LevelChange, Series, Told, VersionPoint};
use heapmark_core::analyse::{Ratio, Role, Verdict, c_libraries, counting, distinct, grid};
use heapmark_core::metric::{Better, Metric};
use heapmark_core::report::document::{Block, Cell, Mark, Sheet};
use heapmark_core::report::doubts;
use heapmark_core::report::machine::machine_name;
use heapmark_core::report::sheet::SheetOf;
use heapmark_core::report::text;
use heapmark_core::report::units::{self, bounds};
use heapmark_core::store::Run;
use serde::Serialize;

/// With more cases than this, the tables of metrics are on the page only.
const MOST_COLUMNS: usize = 4;

/// The conclusion, the tables and their notes.
pub fn told(history: &History, told: &Told, runs: &[Run]) -> Vec<Block> {
    let mut blocks = vec![Block::text(conclusion(history, told))];
    blocks.push(Block::Sheet(changes(told)));
    let cases = distinct(told.series.iter().map(|series| series.case.as_str()));
    if cases.len() <= MOST_COLUMNS {
        blocks.extend(by_metric(history, told).into_iter().map(Block::Sheet));
    }
    blocks.push(Block::notes(notes(told, runs)));
    blocks
}

/// The history as JSON, for programs.
pub fn json(history: &History, told: &Told) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        family: &'a str,
        work: &'a [String],
        command: &'a [String],
        reference: &'a str,
        versions: Vec<&'a str>,
        #[serde(flatten)]
        told: &'a Told,
    }
    text::json(&Document {
        family: &history.family,
        work: &history.work,
        command: &history.command,
        reference: &history.reference,
        versions: history
            .versions
            .iter()
            .map(|version| version.name.as_str())
            .collect(),
        told,
    })
}

/// A pair of neighbouring versions, and all that changes between them in a case.
struct Change<'a> {
    case: &'a str,
    from: &'a str,
    to: &'a str,
    of: Vec<(&'static Metric, &'a LevelChange)>,
}

impl Change<'_> {
    /// The metric that changes most.
    fn most(&self) -> (&'static Metric, &LevelChange) {
        let size = |step: &LevelChange| step.ratio.ratio.ln().abs();
        let largest =
            |a: &&(_, &LevelChange), b: &&(_, &LevelChange)| size(a.1).total_cmp(&size(b.1));
        *self.of.iter().max_by(largest).expect("one at least")
    }

    fn size(&self) -> f64 {
        self.most().1.ratio.ratio.ln().abs()
    }

    /// Whether the change is for the better, if all its metrics agree.
    fn direction(&self) -> &'static str {
        let words = self.of.iter().map(|(metric, step)| direction(step, metric));
        match distinct(words)[..] {
            [word] => word,
            _ => "both",
        }
    }

    /// The change in words: `from mimalloc@3.1.5 to mimalloc@3.2.8, fan-in@9: mean overhead 4.42 times, worse`.
    fn said(&self, results: &Told) -> String {
        let (metric, step) = self.most();
        let size = match step.ratio.ratio {
            ratio if ratio.is_finite() => format!("{} times", units::ratio(ratio)),
            _ => "where there was none".into(),
        };
        format!(
            "from {} to {}, {}: {} {size}, {}",
            self.from,
            self.to,
            self.case,
            title(metric, results),
            direction(step, metric)
        )
    }
}

fn all_changes(results: &Told) -> Vec<Change<'_>> {
    let mut all: Vec<Change> = Vec::new();
    for series in &results.series {
        for step in series.changes() {
            let (case, from, to) = (&*series.case, &*step.from, &*step.to);
            let mut known = all.iter_mut();
            match known.find(|change| (change.case, change.from, change.to) == (case, from, to)) {
                Some(change) => change.of.push((series.metric, step)),
                None => all.push(Change {
                    case,
                    from,
                    to,
                    of: vec![(series.metric, step)],
                }),
            }
        }
    }
    all
}

/// The answer in one sentence.
fn conclusion(history: &History, results: &Told) -> String {
    let has_numbers = |version: &&SeriesVersion| {
        let mut points = results.series.iter().flat_map(|series| &series.points);
        points.any(|point| point.version == version.name)
    };
    let measured: Vec<&SeriesVersion> = history.versions.iter().filter(has_numbers).collect();
    let [first, .., last] = measured[..] else {
        return nothing_compared(history, results);
    };
    let versions = text::count(history.versions.len(), "version");
    let of = match measured.len() == history.versions.len() {
        true => String::new(),
        false => format!("{} of ", measured.len()),
    };
    let over = format!("{of}{versions}, {} to {}", first.name, last.name);
    let all = all_changes(results);
    match &all[..] {
        [] => format!("{over}: {}.", no_change(results)),
        [one] => format!("{over}: one change, {}.", one.said(results)),
        all => {
            let largest = all.iter().max_by(|a, b| a.size().total_cmp(&b.size()));
            let largest = largest.map(|change| change.said(results));
            let largest = largest.unwrap_or_default();
            format!("{over}: {} changes; the largest {largest}.", all.len())
        }
    }
}

/// Why there is no comparison at all.
fn nothing_compared(history: &History, results: &Told) -> String {
    let reference = &history.reference;
    let why = match results.failed.iter().any(|(name, _)| name == reference) {
        true => format!("the reference {reference} has no numbers"),
        false => "fewer than two versions have numbers".into(),
    };
    format!("Nothing could be compared: {why}.")
}

/// What follows if no step is a change: it may be unknown whether there are any.
fn no_change(results: &Told) -> String {
    let verdicts = results.series.iter().flat_map(|series| &series.steps);
    let verdicts: Vec<Verdict> = verdicts.map(|step| step.verdict).collect();
    let is_too_few = |verdict: &Verdict| matches!(verdict, Verdict::TooFew { .. });
    if verdicts.iter().all(is_too_few) {
        return "too few blocks for any verdict: measure with more --blocks in another directory (-o)"
            .into();
    }
    let is_decided = |verdict: &&Verdict| matches!(verdict, Verdict::Same | Verdict::Small);
    match verdicts.len() - verdicts.iter().filter(is_decided).count() {
        0 => "no change is seen".into(),
        unclear => format!(
            "no change is seen; {unclear} of {} are unclear",
            text::count(verdicts.len(), "step")
        ),
    }
}

/// Whether a change is for the better.
fn direction(step: &LevelChange, by: &Metric) -> &'static str {
    let is_less = step.verdict == Verdict::Faster;
    match by.better {
        Better::Lower if is_less => "better",
        Better::Higher if !is_less => "better",
        Better::Lower | Better::Higher => "worse",
        _ if is_less => "less",
        _ => "more",
    }
}

/// A ratio as a cell; if the earlier value was 0, there is no ratio.
fn cell_of(ratio: Ratio) -> Cell {
    match ratio.interval {
        _ if !ratio.ratio.is_finite() => "none before".into(),
        Some(_) => ratio.into(),
        None => Cell::ratio(ratio.ratio),
    }
}

/// The title of a metric: its noun, or its key if another metric shown here has the same noun.
fn title(metric: &Metric, results: &Told) -> String {
    let mut others = results.series.iter().map(|series| series.metric);
    let is_shared = |other: &Metric| other.noun == metric.noun && other.key != metric.key;
    match others.any(is_shared) {
        true => metric.key.replace('_', " "),
        false => metric.noun.to_owned(),
    }
}

/// The table of changes, each with the pair of versions between which it lies.
fn changes(results: &Told) -> Sheet {
    let all = all_changes(results);
    let mut table = SheetOf::new("changes, the later over the earlier", &all);
    table.sheet.heads = 3;
    table.add("case", |change| change.case);
    table.add("from", |change| change.from);
    table.add("to", |change| change.to);
    let metrics = all.iter().flat_map(|change| &change.of);
    for metric in distinct(metrics.map(|(metric, _)| metric.key)) {
        let step = |change: &Change| {
            let entry = change.of.iter().find(|(other, _)| other.key == metric);
            entry.map(|(metric, step)| (*metric, step.ratio))
        };
        let named = all.iter().find_map(step);
        let title = named.map(|(metric, _)| title(metric, results));
        table.add(title.unwrap_or_default(), |change| {
            step(change)
                .map(|(_, ratio)| cell_of(ratio))
                .unwrap_or_default()
        });
    }
    table.add("", |change| {
        let word = change.direction();
        Cell {
            mark: match word {
                "better" => Mark::Faster,
                "worse" => Mark::Slower,
                _ => Mark::None,
            },
            ..word.into()
        }
    });
    table.sheet
}

/// A table for each metric: a row for each version, a column for each case.
fn by_metric(history: &History, results: &Told) -> Vec<Sheet> {
    let keys = distinct(results.series.iter().map(|series| series.metric.key));
    let of = |key: &str| {
        let of_metric: Vec<&Series> = results
            .series
            .iter()
            .filter(|series| series.metric.key == key)
            .collect();
        let first = of_metric[0];
        let heading = match first.is_relative() {
            true => format!("{} / {}", title(first.metric, results), history.reference),
            false => title(first.metric, results),
        };
        let mut table = SheetOf::new(heading, &history.versions);
        table.add("version", |version| version.name.as_str());
        for series in of_metric {
            table.add(&series.case, |version| {
                let found = series
                    .points
                    .iter()
                    .find(|point| point.version == version.name);
                let Some(point) = found else {
                    return Cell::default();
                };
                let mut changes = series.changes();
                let change = changes.find(|step| step.to == version.name);
                Cell {
                    sign: match change {
                        Some(step) if step.verdict == Verdict::Slower => "▲ ",
                        Some(_) => "▼ ",
                        None => "",
                    },
                    ..value_of(series, point, history)
                }
            });
        }
        table.sheet
    };
    keys.into_iter().map(of).collect()
}

fn value_of(series: &Series, point: &VersionPoint, history: &History) -> Cell {
    match point.ratio {
        _ if !series.is_relative() => (point.value, series.metric.unit).into(),
        _ if point.version == history.reference => "1 (reference)".into(),
        Some(ratio) => ratio.into(),
        None => Cell::ratio(1.0),
    }
}

/// Returns what differs between whole C libraries if nothing is allocated, by case.
fn without_allocations(run: &Run) -> Vec<String> {
    let names = c_libraries(&run.head);
    let mut lines: Vec<String> =
        doubts::c_libraries(&names, !run.head.plan.floors_elsewhere.is_empty())
            .into_iter()
            .map(|doubt| doubt + ".")
            .collect();
    for table in grid(&run.head, &counting(&run.records)) {
        let floors = table.of(Role::Floor).filter_map(|group| {
            let ns = units::time(group.median_ns_per_op()?);
            Some(format!(
                "{} {}",
                group.allocator.name,
                ns.text(group.median_ns_per_op()?)
            ))
        });
        let floors: Vec<String> = floors.collect();
        if !floors.is_empty() && !names.is_empty() {
            let case = table.case.label();
            lines.push(format!(
                "{case} without an allocation: {}.",
                text::join(floors, ", ")
            ));
        }
    }
    lines
}

/// Returns the notes without which the tables must not be read.
fn notes(results: &Told, runs: &[Run]) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(
        results
            .failed
            .iter()
            .map(|(version, why)| format!("{version}: {why}.")),
    );
    let withheld = |series: &Series| {
        let mut steps = series.steps.iter();
        let is_withheld = |step: &&LevelChange| {
            step.verdict == Verdict::AaCopyDiffers
                && (results.drifts.is_empty() || step.is_of_one_run)
        };
        steps.find(is_withheld).map(|step| {
            format!(
                "{}, {}: no change is named from {} to {}: the reference beside its own copy came out different.",
                series.case, title(series.metric, results), step.from, step.to
            )
        })
    };
    notes.extend(results.series.iter().filter_map(withheld));
    for drift in &results.drifts {
        notes.push(format!(
            "{}, {}: {} came out {} times as before when it was measured again{}: this machine does not say the same any more.",
            drift.case,
            title(drift.metric, results),
            drift.version,
            units::ratio(drift.ratio.ratio),
            text::enclosed(" ", &drift.ratio.interval.map(bounds).unwrap_or_default(), "")
        ));
    }
    if !results.drifts.is_empty() {
        notes.push("No change is named between versions of different runs.".into());
    } else if runs.len() > 1 {
        let same = match results.compared_again {
            0 => {
                "nothing that was measured again can be compared, so whether this machine says the same is unknown"
            }
            _ => "what was measured again says the same",
        };
        notes.push(format!("{}; {same}.", text::count(runs.len(), "run")));
    }
    for run in runs {
        notes.extend(without_allocations(run));
    }
    let machines = distinct(runs.iter().map(|run| machine_name(&run.head.machine)));
    notes.push(format!("Machine: {}.", text::join(machines, "; ")));
    notes.push(
        "A change is named between two neighbours only, if it is beyond the threshold and beyond chance among all pairs; several small \
         ones in one direction are none."
            .into(),
    );
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_run::FakeRun;
    use crate::series;
    use heapmark_core::analyse::compare::Side;
    use heapmark_core::execute::Outcome;

    fn history(names: &[&str]) -> History {
        let version = |name: &&str| SeriesVersion {
            name: name.to_string(),
            word: name.to_string(),
        };
        let mut history = History::new(String::new(), Vec::new(), Vec::new());
        history.versions = names.iter().map(version).collect();
        history.reference = names.last().unwrap().to_string();
        history
    }

    fn told_of(history: &History, run: &FakeRun) -> Told {
        let side = Side {
            head: &run.run,
            records: &run.records,
        };
        let names: Vec<String> = history
            .versions
            .iter()
            .map(|one| one.name.clone())
            .collect();
        series::told(&[side], &names, 0.01)
    }

    /// A run of three versions, the last of which is the reference, where one has crashed.
    fn concluded(blocks: u32, crashed: &str) -> String {
        let run = FakeRun::new(&["v3", "v1", "v2"], &["larson"], blocks);
        let mut run = run.fill(|_, _, block| 50.0 + 0.01 * f64::from(block % 3));
        let records = run.records.iter_mut();
        for record in records.filter(|record| record.allocator == crashed) {
            record.outcome = Outcome::Crash {
                signal: "SIGABRT".into(),
                phase: "run".into(),
            };
            record.measurement = None;
        }
        let history = history(&["v1", "v2", "v3"]);
        conclusion(&history, &told_of(&history, &run))
    }

    #[test]
    fn only_what_was_compared_is_without_a_change() {
        assert_eq!(
            concluded(12, ""),
            "3 versions, v1 to v3: no change is seen."
        );
        assert_eq!(
            concluded(12, "v1"),
            "2 of 3 versions, v2 to v3: no change is seen."
        );
        assert_eq!(
            concluded(12, "v3"),
            "Nothing could be compared: the reference v3 has no numbers."
        );
        let few = concluded(5, "");
        assert!(
            few.contains("v3: too few blocks for any verdict: "),
            "{few}"
        );
    }

    #[test]
    fn each_metric_has_a_title_of_its_own_in_the_table_of_changes() {
        let metrics = heapmark_core::metric::judged();
        let retained = metrics.filter(|metric| metric.noun == "retained memory");
        let series = retained.map(|metric| Series {
            case: "larson@2".into(),
            metric,
            points: Vec::new(),
            steps: vec![LevelChange {
                from: "v1".into(),
                to: "v2".into(),
                ratio: Ratio {
                    ratio: 2.0,
                    interval: None,
                    pairs: 3,
                },
                verdict: Verdict::Slower,
                is_of_one_run: true,
            }],
        });
        let results = Told {
            series: series.collect(),
            ..Told::default()
        };
        let titles = changes(&results).columns;
        assert!(results.series.len() > 1);
        assert_eq!(distinct(&titles).len(), titles.len(), "{titles:?}");
    }
}
