//! Makes a series for each metric of each case from the runs of a history, and finds the pairs of releases between which it
//! changes. Pure.
//!
//! Every run includes the reference, and each version's numbers are those over the reference's in the same block: versions of
//! one run are compared block by block by the differences of these numbers, versions of different runs as two samples. If a
//! test decides, the series is split into stretches of one level; if ranges decide, each version is compared with the next. All
//! pairs of neighbours of a metric are one family.

use heapmark_core::analyse::compare::{Side, no_times};
use heapmark_core::analyse::group::{CaseGroups, Group};
use heapmark_core::analyse::verdict::{Verdict, verdicts};
use heapmark_core::analyse::{
    Failed, Ratio, Role, TableCell, by_range, counting, distinct, grid, tables,
};
use heapmark_core::metric::{self, Judged, Metric, Value, WALL};
use heapmark_core::plan::Case;
use heapmark_core::store::RunFile;
use heapmark_stats::{Rule, Tested, judge_tested, median, paired, shift, unpaired};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::f64::consts::SQRT_2;
use std::{ptr, slice};

/// The metrics that are tested, of those that a test can decide: CPU time shows what the wall time
/// shows, and each family of tests is one more chance of a false alarm.
const TESTED: [&str; 2] = [WALL.key, "grown_bytes"];

/// The results of all runs of a history together.
#[derive(Debug, Default, Serialize)]
pub struct Told {
    /// Series by case and metric, in the order of the first run.
    pub series: Vec<Series>,
    /// Versions that were measured in several runs and came out different: the machine no longer
    /// gives the same numbers.
    pub drifts: Vec<Drift>,
    /// How many comparisons of what was measured again show whether it came out different.
    #[serde(skip)]
    pub compared_again: usize,
    /// Versions without numbers, and why.
    pub failed: Vec<(String, String)>,
}

/// A metric of a case over versions.
#[derive(Debug, Serialize)]
pub struct Series {
    /// The case's name, such as `fan-in@9`.
    pub case: String,
    /// The metric that is measured.
    #[serde(serialize_with = "key")]
    pub metric: &'static Metric,
    /// Versions with numbers, the oldest first.
    pub points: Vec<VersionPoint>,
    /// The steps between neighbours: one fewer than points.
    pub steps: Vec<LevelChange>,
}

fn key<S: Serializer>(metric: &&'static Metric, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(metric.key)
}

/// A version in a series.
#[derive(Clone, Debug, Serialize)]
pub struct VersionPoint {
    /// The version's name.
    pub version: String,
    /// The median of the version's processes, in the metric's unit.
    pub value: f64,
    /// The ratio to the reference in the same blocks; `None` for the reference, and if ranges decide.
    pub ratio: Option<Ratio>,
    /// The place of the run that the point is from.
    pub run: usize,
    #[serde(skip)]
    behind: Behind,
}

/// What a point is made from.
#[derive(Clone, Debug)]
enum Behind {
    /// ln of the version's value over the reference's, by block.
    Logs(BTreeMap<u32, f64>),
    /// Values that hardly vary; `exact` ones are the same each time.
    Range { cell: TableCell, exact: bool },
}

/// The step from a version to the next one.
#[derive(Clone, Debug, Serialize)]
pub struct LevelChange {
    /// The earlier version.
    pub from: String,
    /// The later version.
    pub to: String,
    /// The later value over the earlier one; for a change that a test found, the level after it
    /// over the level before it.
    pub ratio: Ratio,
    /// Whether the step is a change.
    pub verdict: Verdict,
    /// Whether a run measured both versions.
    #[serde(skip)]
    pub is_of_one_run: bool,
}

impl LevelChange {
    /// Whether the metric has changed, by more than the threshold.
    pub fn is_change(&self) -> bool {
        is_change(Some(self.verdict))
    }
}

/// A version that was measured again, and came out different from the first time.
#[derive(Clone, Debug, Serialize)]
pub struct Drift {
    /// The case's name, such as `fan-in@9`.
    pub case: String,
    /// The metric that came out different.
    #[serde(serialize_with = "key")]
    pub metric: &'static Metric,
    /// The version's name.
    pub version: String,
    /// The value in the later run over that in the first one.
    pub ratio: Ratio,
}

/// A version's values in a run.
struct VersionValues {
    run: usize,
    value: f64,
    behind: Behind,
    /// How far apart equals came out beside these values, as a log ratio.
    equals_apart: f64,
    /// How far they scatter from run to run, as a log ratio.
    between_runs: f64,
}

/// A case and a metric, and the rows of all runs by their version.
struct Rows {
    case: String,
    metric: &'static Metric,
    alpha: f64,
    by_version: BTreeMap<String, Vec<VersionValues>>,
}

/// Returns what these runs show about these versions, the oldest first. Differences up to `threshold` are no changes.
pub fn told(runs: &[Side], versions: &[String], threshold: f64) -> Told {
    let mut results = Told::default();
    let mut failed = Vec::new();
    let mut all: Vec<Rows> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        for part in &run.head.parts() {
            let side = Side {
                head: part,
                records: run.records,
            };
            for metric in metric::of_part(&part.plan) {
                let has_test = TESTED.contains(&metric.key);
                match (metric.judged, metric.of) {
                    (Judged::ByTest, Value::Process(of)) if has_test => {
                        by_test(&side, place, metric, of, &mut all);
                    }
                    (Judged::ByRange, _) => ranges(&side, place, metric, &mut all),
                    _ => {}
                }
            }
            failed.extend(failures(&side, versions));
        }
    }
    // What failed once may have numbers from a later run.
    failed.retain(|(version, case, _)| {
        let mut of_case = all.iter().filter(|rows| rows.case == *case);
        !of_case.any(|rows| rows.by_version.contains_key(version))
    });
    let failed = failed.into_iter();
    results.failed =
        distinct(failed.map(|(version, case, why)| (version, format!("{case}: {why}"))));
    let families = distinct(all.iter().map(|rows| rows.metric.key)).into_iter();
    let families = families.map(|metric| {
        let is_of_it = |rows: &&Rows| rows.metric.key == metric && rows.by_version.len() > 1;
        let cases: Vec<&Rows> = all.iter().filter(is_of_it).collect();
        let rule = rule(&cases, versions, threshold);
        (cases, rule)
    });
    let families: Vec<(Vec<&Rows>, Rule)> = families.collect();
    let again = all.iter().map(Rows::measured_again).sum();
    for (cases, rule) in &families {
        let rule = Rule {
            family: again,
            ..*rule
        };
        for rows in cases {
            let again = rows.compared_again(&rule);
            results.compared_again += again.len();
            let drifts = again.into_iter().filter_map(|one| rows.drift(one));
            results.drifts.extend(drifts);
        }
    }
    for (cases, rule) in &families {
        judge(cases, versions, rule, &mut results);
    }
    // Sorted by case, as in tables of runs.
    let order: Vec<&str> = all.iter().map(|rows| &*rows.case).collect();
    let place = |series: &Series| order.iter().position(|case| **case == series.case);
    results.series.sort_by_key(place);
    results
}

fn of_case<'r>(
    all: &'r mut Vec<Rows>,
    case: &Case,
    metric: &'static Metric,
    head: &RunFile,
) -> &'r mut Rows {
    let name = case.label();
    let is_it = |rows: &Rows| rows.case == name && rows.metric.key == metric.key;
    let place = all.iter().position(is_it).unwrap_or_else(|| {
        all.push(Rows {
            case: name,
            metric,
            alpha: head.plan.alpha(),
            by_version: BTreeMap::new(),
        });
        all.len() - 1
    });
    // If one of the runs stopped as soon as it was precise enough, that run's alpha applies.
    all[place].alpha = all[place].alpha.min(head.plan.alpha());
    &mut all[place]
}

/// Rows that are compared block by block with the reference.
fn by_test(
    side: &Side,
    run: usize,
    metric: &'static Metric,
    of: fn(&metric::Process) -> Option<f64>,
    all: &mut Vec<Rows>,
) {
    let groups = grid(side.head, &counting(side.records));
    let judged = verdicts(&groups, side.head.plan.alpha());
    for (table, judged) in groups.iter().zip(judged) {
        let reference = table.baseline();
        let Some(reference) = reference.filter(|_| no_times(table, metric).is_none()) else {
            continue;
        };
        let equals_apart = judged.equals_apart(table, metric);
        let rows = of_case(all, table.case, metric, side.head);
        for group in versions_of(table) {
            // As measured: turns that are too short are found for some versions and runs and not for others.
            let logs = group.measured_ratios(reference, of).into_iter();
            let logs: BTreeMap<u32, f64> = logs.map(|((block, _), log)| (block, log)).collect();
            let Some(value) = median(&group.values(of)) else {
                continue;
            };
            if logs.is_empty() || logs.values().any(|log| !log.is_finite()) {
                continue;
            }
            rows.add(
                &group.allocator.name,
                VersionValues {
                    run,
                    value,
                    behind: Behind::Logs(logs),
                    equals_apart,
                    between_runs: metric.between_runs(),
                },
            );
        }
    }
}

fn versions_of<'g, 'a>(table: &'g CaseGroups<'a>) -> impl Iterator<Item = &'g Group<'a>> {
    let is_version = |role: Role| matches!(role, Role::Baseline | Role::Candidate);
    table
        .groups
        .iter()
        .filter(move |group| is_version(group.role))
}

/// Rows whose ranges are compared.
fn ranges(side: &Side, run: usize, metric: &'static Metric, all: &mut Vec<Rows>) {
    let tables = tables(side.head, side.records);
    for (case, table) in side.head.plan.cases.iter().zip(&tables) {
        for row in &table.rows {
            let Some(cell) = row.cell(metric.key) else {
                continue;
            };
            if !matches!(row.role, Role::Baseline | Role::Candidate) {
                continue;
            }
            of_case(all, case, metric, side.head).add(
                &row.allocator,
                VersionValues {
                    run,
                    value: cell.spread.median,
                    behind: Behind::Range {
                        cell: cell.clone(),
                        exact: side.head.plan.mode.spec().simulated,
                    },
                    equals_apart: match cell.verdict {
                        Some(Verdict::AaCopyDiffers) => f64::INFINITY,
                        _ => 0.0,
                    },
                    between_runs: metric.between_runs(),
                },
            );
        }
    }
}

/// The versions that have no numbers, each with the case and the reason.
fn failures(side: &Side, versions: &[String]) -> Vec<(String, String, String)> {
    let mut failures = Vec::new();
    let is_it = |name: &str| versions.iter().any(|version| version == name);
    let mut add = |case: &Case, name: &str, failed: Option<&Failed>| {
        if let Some(failed) = failed.filter(|_| is_it(name)) {
            failures.push((name.to_owned(), case.label(), failed.summary()));
        }
    };
    if side.head.plan.mode.spec().plain {
        for table in grid(side.head, &counting(side.records)) {
            for group in &table.groups {
                add(table.case, &group.allocator.name, group.failed.as_ref());
            }
        }
        return failures;
    }
    let tables = tables(side.head, side.records);
    for (case, table) in side.head.plan.cases.iter().zip(&tables) {
        for row in &table.rows {
            add(case, &row.allocator, row.failed.as_ref());
        }
    }
    failures
}

impl Rows {
    fn add(&mut self, version: &str, found: VersionValues) {
        let values = self.by_version.entry(version.to_owned()).or_default();
        values.push(found);
    }

    /// The versions that have numbers, each with those from all runs that measured it, the first one first.
    fn points<'a>(&'a self, versions: &'a [String]) -> Vec<(&'a str, RunValues<'a>)> {
        let found = |name: &'a String| Some((name.as_str(), &self.by_version.get(name)?[..]));
        versions.iter().filter_map(found).collect()
    }
}

/// The numbers of a version from each run that measured it.
type RunValues<'a> = &'a [VersionValues];

/// The numbers of two versions from the first run that measured both.
fn together<'a>(
    one: RunValues<'a>,
    other: RunValues<'a>,
) -> Option<(&'a VersionValues, &'a VersionValues)> {
    let beside = |found: &'a VersionValues| other.iter().find(|beside| beside.run == found.run);
    one.iter().find_map(|found| Some((found, beside(found)?)))
}

/// The comparison of one version with another.
struct Compared {
    verdict: Option<Verdict>,
    ratio: Ratio,
}

/// Compares later versions with earlier ones by a test of the mean of either side in each block. If a run measured both neighbours
/// among them, it alone decides, and blocks are paired; else how far two runs differ by themselves counts as well.
fn tested(earlier: &[RunValues], later: &[RunValues], rule: &Rule) -> Option<Tested> {
    let (last, next) = (*earlier.last()?, *later.first()?);
    if let Some((one, _)) = together(last, next) {
        // Others count with their own first numbers, of which drifts are told.
        let counts =
            |all: &RunValues| all[0].run == one.run || ptr::eq(*all, last) || ptr::eq(*all, next);
        let of_run = |side: &[RunValues]| {
            let own = side.iter().copied().filter(counts);
            by_block(own.filter_map(|all| all.iter().find(|found| found.run == one.run)))
        };
        let (before, after) = (of_run(earlier), of_run(later));
        let both = after
            .iter()
            .filter_map(|(block, log)| Some(log - before.get(block)?));
        return paired(&both.collect::<Vec<f64>>(), rule);
    }
    let [before, after] = [earlier, later].map(|side| {
        let first = by_block(side.iter().map(|all| &all[0]));
        first.into_values().collect::<Vec<f64>>()
    });
    let of_runs = SQRT_2 * next[0].between_runs;
    Some(unpaired(&after, &before, rule)?.with_scatter(of_runs, rule))
}

/// The mean of these versions in each block; blocks in which one of the run's versions is missing are left out.
fn by_block<'a>(versions: impl Iterator<Item = &'a VersionValues>) -> BTreeMap<(usize, u32), f64> {
    let mut all: BTreeMap<(usize, u32), Vec<f64>> = BTreeMap::new();
    let mut of_run: BTreeMap<usize, usize> = BTreeMap::new();
    for found in versions {
        if let Behind::Logs(logs) = &found.behind {
            *of_run.entry(found.run).or_default() += 1;
            for (block, log) in logs {
                all.entry((found.run, *block)).or_default().push(*log);
            }
        }
    }
    all.retain(|(run, _), logs| logs.len() == of_run[run]);
    let mean = |logs: Vec<f64>| logs.iter().sum::<f64>() / logs.len() as f64;
    all.into_iter()
        .map(|(block, logs)| (block, mean(logs)))
        .collect()
}

/// Compares two versions, as one question of `rule.family`.
fn compared(earlier: &VersionValues, later: &VersionValues, rule: &Rule) -> Option<Compared> {
    match (&earlier.behind, &later.behind) {
        (
            Behind::Range {
                cell: before,
                exact,
            },
            Behind::Range { cell: after, .. },
        ) => {
            let ratio = Ratio {
                // Two zeros have no quotient: they count as equal.
                ratio: match earlier.value == later.value {
                    true => 1.0,
                    false => later.value / earlier.value,
                },
                interval: None,
                pairs: before.n.min(after.n) as usize,
            };
            Some(Compared {
                verdict: Some(by_values(after, before, *exact, rule)),
                ratio,
            })
        }
        _ => {
            let [earlier, later] = [earlier, later].map(slice::from_ref);
            let tested = tested(&[earlier], &[later], rule)?;
            Some(Compared {
                verdict: one_of(&tested, rule),
                ratio: Ratio::of_shift(tested.shift),
            })
        }
    }
}

/// The verdict on values that hardly vary, as one of `rule.family` questions. By chance, ranges of three values each
/// lie as far apart once in seventy times: among many questions, a test must find the difference, too.
fn by_values(after: &TableCell, before: &TableCell, exact: bool, rule: &Rule) -> Verdict {
    let verdict = by_range(after, before, rule.threshold.exp_m1(), exact);
    if exact || !is_change(Some(verdict)) {
        return verdict;
    }
    let logs = |cell: &TableCell| {
        let positive = cell.values.iter().map(|value| value.max(f64::MIN_POSITIVE));
        positive.map(f64::ln).collect::<Vec<f64>>()
    };
    let tested = unpaired(&logs(after), &logs(before), rule);
    match tested.is_some_and(|tested| tested.p < rule.alpha / rule.family.max(1) as f64) {
        true => verdict,
        false => Verdict::Unclear { blocks_more: None },
    }
}

/// The verdict on one of `rule.family` questions (Bonferroni): which of them are asked depends on the answers.
fn one_of(tested: &Tested, rule: &Rule) -> Option<Verdict> {
    let single = Rule {
        alpha: rule.alpha / rule.family.max(1) as f64,
        ..*rule
    };
    let judged = judge_tested(&[Some(*tested)], &single);
    judged[0].as_ref().map(Verdict::of)
}

/// Splits a series into stretches of one level: binary segmentation. Either side of the split that explains most of the scatter
/// between versions is split first; the split is a change if the stretches beside it differ. So a small change shows in all their
/// versions together before it shows in two neighbours, and so does a version that differs from all others, though no split of the
/// whole series has all that differ on one side. Returns the places of the first versions of new levels.
fn levels(points: &[RunValues], heights: &[f64], rule: &Rule) -> Vec<usize> {
    let place = |at: &usize| {
        let mean = |side: &[f64]| side.iter().sum::<f64>() / side.len() as f64;
        let (left, right) = heights.split_at(*at);
        let weight = (left.len() * right.len()) as f64 / heights.len() as f64;
        weight * (mean(right) - mean(left)).powi(2)
    };
    let Some(at) = (1..points.len()).max_by(|a, b| place(a).total_cmp(&place(b))) else {
        return Vec::new();
    };
    let (left, right) = points.split_at(at);
    let mut all = levels(left, &heights[..at], rule);
    let later = levels(right, &heights[at..], rule);
    let before = &left[all.last().copied().unwrap_or(0)..];
    let after = &right[..later.first().copied().unwrap_or(right.len())];
    let verdict = tested(before, after, rule).and_then(|tested| one_of(&tested, rule));
    if is_change(verdict) {
        all.push(at);
    }
    all.extend(later.into_iter().map(|inside| at + inside));
    all
}

/// The level of each version.
fn by_version(versions: &[RunValues]) -> Vec<f64> {
    let of = |all: &RunValues| match &all[0].behind {
        Behind::Logs(logs) => Some(shift(&logs.values().copied().collect::<Vec<f64>>())?.estimate),
        Behind::Range { .. } => None,
    };
    versions.iter().filter_map(of).collect()
}

/// Whether a verdict is that of a change.
fn is_change(verdict: Option<Verdict>) -> bool {
    matches!(verdict, Some(Verdict::Faster | Verdict::Slower))
}

/// The rule for the cases of one metric, whose pairs of neighbours are one family.
fn rule(cases: &[&Rows], versions: &[String], threshold: f64) -> Rule {
    let pairs = cases
        .iter()
        .map(|rows| rows.points(versions).len().saturating_sub(1));
    let alpha = cases.iter().map(|rows| rows.alpha).fold(1.0, f64::min);
    Rule {
        threshold: threshold.ln_1p(),
        ..Rule::new(pairs.sum(), alpha)
    }
}

/// Judges the cases of one metric. If anything drifted, of whatever case and metric, the machine has changed: two runs are like those of
/// two machines.
fn judge(cases: &[&Rows], versions: &[String], rule: &Rule, results: &mut Told) {
    for rows in cases {
        let points = rows.points(versions);
        let found: Vec<RunValues> = points.iter().map(|(_, found)| *found).collect();
        let changes = match found
            .iter()
            .all(|all| matches!(all[0].behind, Behind::Logs(_)))
        {
            true => levels(&found, &by_version(&found), rule),
            false => Vec::new(),
        };
        let steps = points.windows(2).enumerate().filter_map(|(place, pair)| {
            let [(from, before), (to, after)] = pair else {
                return None;
            };
            let beside = together(before, after);
            let (earlier, later) = beside.unwrap_or((&before[0], &after[0]));
            let mut step = compared(earlier, later, rule)?;
            if matches!(later.behind, Behind::Logs(_)) {
                step = match changes.iter().position(|at| *at == place + 1) {
                    // The change is from the level before it to the level after it.
                    Some(change) => {
                        let start = if change == 0 { 0 } else { changes[change - 1] };
                        let end = changes.get(change + 1).copied().unwrap_or(found.len());
                        let (before, after) = (&found[start..place + 1], &found[place + 1..end]);
                        let tested = tested(before, after, rule)?;
                        Compared {
                            verdict: one_of(&tested, rule),
                            ratio: Ratio::of_shift(tested.shift),
                        }
                    }
                    // A difference that the whole series does not show is chance, or belongs to another pair.
                    None if is_change(step.verdict) => Compared {
                        verdict: Some(Verdict::Unclear { blocks_more: None }),
                        ..step
                    },
                    None => step,
                };
            }
            let apart = match beside.is_none() && !results.drifts.is_empty() {
                true => f64::INFINITY,
                false => earlier.equals_apart + later.equals_apart,
            };
            let verdict = step.verdict?.where_equals_are(apart, &step.ratio);
            Some(LevelChange {
                from: from.to_string(),
                to: to.to_string(),
                ratio: step.ratio,
                verdict,
                is_of_one_run: beside.is_some(),
            })
        });
        let steps = steps.collect();
        results.series.push(Series {
            case: rows.case.clone(),
            metric: rows.metric,
            steps,
            points: points
                .iter()
                .map(|(name, all)| VersionPoint::new(name, &all[0]))
                .collect(),
        });
    }
}

impl Rows {
    /// How often versions were measured again: of all metrics together, a family of its own, since a single drift shows that the
    /// machine has changed.
    fn measured_again(&self) -> usize {
        self.by_version.values().map(|found| found.len() - 1).sum()
    }

    /// What was measured again compared with the first time, for each time, if the two can tell a difference.
    fn compared_again(&self, rule: &Rule) -> Vec<(&str, Compared)> {
        let mut all = Vec::new();
        for (version, found) in &self.by_version {
            let first = &found[0];
            let later = found[1..]
                .iter()
                .filter(|_| !first.behind.is_of_reference());
            let moved = later.filter_map(|later| compared(first, later, rule));
            let can_tell =
                moved.filter(|moved| !matches!(moved.verdict, Some(Verdict::TooFew { .. })));
            all.extend(can_tell.map(|moved| (version.as_str(), moved)));
        }
        all
    }

    /// The drift of a version that came out different from the first time.
    fn drift(&self, (version, moved): (&str, Compared)) -> Option<Drift> {
        is_change(moved.verdict).then(|| Drift {
            case: self.case.clone(),
            metric: self.metric,
            version: version.to_owned(),
            ratio: moved.ratio,
        })
    }
}

impl Behind {
    /// Whether these are numbers of the reference over those of the reference itself.
    fn is_of_reference(&self) -> bool {
        matches!(self, Behind::Logs(logs) if logs.values().all(|log| *log == 0.0))
    }
}

impl VersionPoint {
    fn new(version: &str, found: &VersionValues) -> VersionPoint {
        let ratio = match &found.behind {
            Behind::Logs(logs) if !found.behind.is_of_reference() => {
                Ratio::from_logs(&logs.values().copied().collect::<Vec<f64>>())
            }
            _ => None,
        };
        VersionPoint {
            version: version.to_owned(),
            value: found.value,
            ratio,
            run: found.run,
            behind: found.behind.clone(),
        }
    }

    /// The lowest and the highest value that the version may have: the interval of its ratio, or its range.
    pub fn ends(&self) -> Option<(f64, f64)> {
        match &self.behind {
            Behind::Logs(_) => self.ratio?.interval,
            Behind::Range { cell, .. } => Some((cell.spread.min, cell.spread.max)),
        }
    }

    /// Returns the height in the chart: the ratio to the reference, or the value if ranges decide.
    pub fn height(&self) -> f64 {
        match &self.behind {
            Behind::Logs(_) => self.ratio.map_or(1.0, |ratio| ratio.ratio),
            Behind::Range { .. } => self.value,
        }
    }
}

impl Series {
    /// Whether the values are ratios to the reference.
    pub fn is_relative(&self) -> bool {
        self.metric.judged == Judged::ByTest
    }

    /// The series's changes.
    pub fn changes(&self) -> impl Iterator<Item = &LevelChange> {
        self.steps.iter().filter(|step| step.is_change())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_run::FakeRun;
    use heapmark_core::execute::Outcome;
    use heapmark_core::plan::Target;
    use heapmark_stats::BETWEEN_RUNS;

    const EIGHT: [&str; 8] = ["v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8"];

    /// Noise of 0.3 % that repeats.
    fn noise(name: &str, block: u32) -> f64 {
        let seed = name.bytes().fold(block.wrapping_mul(7919), |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(byte.into())
        });
        let mixed = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        1.0 + 0.003 * (mixed as f64 / f64::from(1 << 24) - 0.5) * 2.0
    }

    /// A run of these versions, the last one as reference, with these times.
    fn run_of(names: &[&str], blocks: u32, time: impl Fn(&str) -> f64) -> FakeRun {
        let mut names = names.to_vec();
        names.rotate_right(1);
        let fake = FakeRun::new(&names, &["larson"], blocks);
        fake.fill(|_, name, block| 50.0 * time(name) * noise(name, block))
    }

    fn told_of(runs: &[FakeRun], versions: &[&str]) -> Told {
        let sides: Vec<Side> = runs
            .iter()
            .map(|run| Side {
                head: &run.run,
                records: &run.records,
            })
            .collect();
        told(&sides, &names(versions), 0.01)
    }

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| name.to_string()).collect()
    }

    fn changes(results: &Told) -> Vec<(&str, &str, &str)> {
        let mut all = Vec::new();
        for series in &results.series {
            let key = series.metric.key;
            all.extend(series.changes().map(|step| (key, &*step.from, &*step.to)));
        }
        all
    }

    /// Slower by 2 % from the fifth version on.
    fn slower_from_five(name: &str) -> f64 {
        if name >= "v5" { 1.02 } else { 1.0 }
    }

    #[test]
    fn a_change_is_named_with_its_pair_and_no_other() {
        let run = run_of(&EIGHT, 12, slower_from_five);
        let results = told_of(&[run], &EIGHT);
        assert_eq!(changes(&results), [(WALL.key, "v4", "v5")]);
        let time = results
            .series
            .iter()
            .find(|series| series.metric.key == WALL.key)
            .unwrap();
        assert_eq!((time.points.len(), time.steps.len()), (8, 7));
        let step = &time.steps[3];
        assert_eq!(step.verdict, Verdict::Slower);
        assert!((step.ratio.ratio - 1.02).abs() < 0.003, "{step:?}");
    }

    #[test]
    fn a_change_shows_in_all_versions_together_before_it_shows_in_two() {
        // A change of 1.6 % in noise of 2 % in each block, and a drop by 30 % at the eighth version.
        let time = |name: &str| match name {
            "v8" => 0.7,
            name => 1.0 + 0.8 * (slower_from_five(name) - 1.0),
        };
        let mut names = EIGHT.to_vec();
        names.rotate_right(1);
        let wide = |name: &str, block: u32| 1.0 + 7.0 * (noise(name, block) - 1.0);
        let fake = FakeRun::new(&names, &["larson"], 15);
        let fake = fake.fill(|_, name, block| 50.0 * time(name) * wide(name, block));
        let results = told_of(&[fake], &EIGHT);
        assert_eq!(
            changes(&results),
            [(WALL.key, "v4", "v5"), (WALL.key, "v7", "v8")]
        );
    }

    #[test]
    fn a_regression_of_one_release_in_the_middle_is_named_with_both_its_ends() {
        // Over all that follows, and over all before, it is less than the threshold.
        let time = |name: &str| if name == "v5" { 1.03 } else { 1.0 };
        let results = told_of(&[run_of(&EIGHT, 12, time)], &EIGHT);
        assert_eq!(
            changes(&results),
            [(WALL.key, "v4", "v5"), (WALL.key, "v5", "v6")]
        );
    }

    #[test]
    fn a_series_without_a_change_has_none() {
        let results = told_of(&[run_of(&EIGHT, 12, |_| 1.0)], &EIGHT);
        assert_eq!(changes(&results), []);
    }

    #[test]
    fn of_a_replay_at_recorded_times_memory_is_compared_and_time_is_not() {
        let mut run = run_of(&EIGHT, 12, |_| 1.0);
        let case = &mut run.run.plan.cases[0];
        case.target = Target::Kernel("replay".into());
        case.parameters.insert("mode".into(), "paced".into());
        let results = told_of(&[run], &EIGHT);
        let series = results.series.iter();
        let keys: Vec<&str> = series.map(|series| series.metric.key).collect();
        assert!(keys.contains(&"grown_bytes"), "{keys:?}");
        assert!(!keys.contains(&WALL.key), "{keys:?}");
    }

    /// Half of the duets have turns of 10 ms, in which the older version pays more for its caches.
    #[test]
    fn ratios_are_compared_as_they_were_measured() {
        let is_short = |block: u32| block.is_multiple_of(2);
        let run = FakeRun::new(&["v2", "v1"], &["larson"], 12).fill(|_, name, block| {
            let ns = match name {
                "v1" if is_short(block) => 14.0,
                "v1" => 11.0,
                _ => 20.0,
            };
            ns * noise(name, block)
        });
        let results = told_of(&[run.in_turns()], &["v1", "v2"]);
        let mut series = results.series.iter();
        let time = series.find(|series| series.metric.key == WALL.key).unwrap();
        let ratio = time.points[0].ratio.unwrap().ratio;
        let expected = (0.7_f64 * 0.55).sqrt();
        // Of turns without end it would be 0.51.
        assert!((ratio / expected - 1.0).abs() < 0.03, "{ratio}");
    }

    #[test]
    fn a_version_that_failed_is_left_out_and_its_neighbours_are_compared() {
        let mut run = run_of(&EIGHT, 12, slower_from_five);
        let of_five = run
            .records
            .iter_mut()
            .filter(|record| record.allocator == "v5");
        for record in of_five {
            record.outcome = Outcome::Crash {
                signal: "SIGSEGV".into(),
                phase: "timed".into(),
            };
            record.measurement = None;
        }
        let results = told_of(&[run], &EIGHT);
        assert_eq!(changes(&results), [(WALL.key, "v4", "v6")]);
        assert_eq!(results.failed.len(), 1, "{:?}", results.failed);
        assert_eq!(results.failed[0].0, "v5");
    }

    #[test]
    fn a_history_grows_by_runs_that_share_the_reference() {
        let first = || run_of(&["v1", "v2", "v8"], 12, slower_from_five);
        let grown = |of: &dyn Fn(&str) -> f64| run_of(&["v1", "v4", "v5", "v8"], 12, of);
        let versions = ["v1", "v2", "v4", "v5", "v8"];
        let results = told_of(&[first(), grown(&slower_from_five)], &versions);
        assert_eq!(changes(&results), [(WALL.key, "v4", "v5")]);
        assert!(results.drifts.is_empty(), "{:?}", results.drifts);
        // On another machine, the bridge tells the difference, and nothing is said across the two runs.
        let other = |name: &str| match name {
            "v1" => 1.2,
            name => slower_from_five(name),
        };
        let results = told_of(&[first(), grown(&other)], &versions);
        assert_eq!(results.drifts.len(), 1, "{:?}", results.drifts);
        assert_eq!(results.drifts[0].version, "v1");
        let time = results
            .series
            .iter()
            .find(|series| series.metric.key == WALL.key)
            .unwrap();
        let verdict = |to: &str| {
            time.steps
                .iter()
                .find(|step| step.to == to)
                .unwrap()
                .verdict
        };
        assert_eq!(verdict("v4"), Verdict::AaCopyDiffers);
        assert_eq!(verdict("v5"), Verdict::Slower);
    }

    /// Though the reference was first measured in another run.
    #[test]
    fn a_new_version_is_compared_with_the_reference_within_its_run() {
        let time = |name: &str| if name == "v9" { 1.05 } else { 1.0 };
        let runs = || {
            let first = run_of(&["v1", "v8"], 12, time);
            [first, run_of(&["v1", "v9", "v8"], 12, time)]
        };
        let results = told_of(&runs(), &["v1", "v8", "v9"]);
        assert_eq!(changes(&results), [(WALL.key, "v8", "v9")]);
        // What failed once, and has numbers now, has not failed.
        let [mut first, second] = runs();
        for record in first
            .records
            .iter_mut()
            .filter(|record| record.allocator == "v1")
        {
            record.outcome = Outcome::NotLoaded { why: "gone".into() };
            record.measurement = None;
        }
        let results = told_of(&[first, second], &["v1", "v8", "v9"]);
        assert!(results.failed.is_empty(), "{:?}", results.failed);
    }

    #[test]
    fn what_cannot_be_compared_again_says_nothing_of_the_machine() {
        let again = |blocks: u32| {
            let run = |names: &[&str]| run_of(names, blocks, |_| 1.0);
            let runs = [run(&["v1", "v8"]), run(&["v1", "v2", "v8"])];
            told_of(&runs, &["v1", "v2", "v8"]).compared_again
        };
        assert_eq!((again(5), again(12)), (0, 1));
    }

    #[test]
    fn a_drift_in_one_case_withholds_changes_across_runs_in_all() {
        let run = |names: &[&str], drift: f64| {
            let fake = FakeRun::new(names, &["larson", "churn"], 12);
            fake.fill(|case, name, block| {
                let time = match (case, name) {
                    ("churn", "v1") => drift,
                    ("larson", "v3") => 1.3,
                    _ => 1.0,
                };
                50.0 * time * noise(name, block)
            })
        };
        let of_second = |drift: f64| {
            let runs = [
                run(&["v8", "v1", "v2"], 1.0),
                run(&["v8", "v1", "v3"], drift),
            ];
            let results = told_of(&runs, &["v1", "v2", "v3", "v8"]);
            (changes(&results).len(), results.drifts.len())
        };
        assert_eq!(of_second(1.0), (2, 0));
        // From v3 to v8 within the second run.
        assert_eq!(of_second(1.3), (1, 1));
    }

    #[test]
    fn a_machine_that_is_slower_for_one_run_is_noticed_though_the_next_says_the_same_again() {
        let run = |added: &str, bridge: f64| {
            let time = |name: &str| if name == "v1" { bridge } else { 1.0 };
            run_of(&["v1", added, "v8"], 12, time)
        };
        let runs = [run("v2", 1.0), run("v4", 1.2), run("v5", 1.0)];
        let results = told_of(&runs, &["v1", "v2", "v4", "v5", "v8"]);
        let [drift] = &results.drifts[..] else {
            panic!("{:?}", results.drifts)
        };
        assert_eq!(drift.version, "v1");
        assert!((drift.ratio.ratio - 1.2).abs() < 0.01, "{drift:?}");
    }

    /// A series of numbers that looks random, and is the same each time.
    struct Scatter(u64);

    impl Scatter {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        /// A factor with nearly normal scatter of 2 %.
        fn factor(&mut self) -> f64 {
            let sum: f64 = (0..12).map(|_| self.uniform()).sum();
            (0.02 * (sum - 6.0)).exp()
        }
    }

    /// Eight metrics of two versions in two runs of three blocks each, the later run's values `moved` times those of
    /// the earlier: how many drifts are named, and how many there would be by ranges alone.
    fn drifts_of_eight_metrics(scatter: &mut Scatter, moved: f64) -> (usize, usize) {
        let by_ranges = metric::judged().filter(|metric| metric.judged == Judged::ByRange);
        let mut all: Vec<Rows> = Vec::new();
        let mut apart = 0;
        for metric in by_ranges.take(8) {
            let mut rows = Rows {
                case: "larson@2".into(),
                metric,
                alpha: heapmark_stats::ALPHA,
                by_version: BTreeMap::new(),
            };
            for version in ["v1", "v8"] {
                let cells = [1.0, moved].map(|level| {
                    let values: Vec<f64> = (0..3).map(|_| level * scatter.factor()).collect();
                    TableCell::new(metric, &values).unwrap()
                });
                let verdict = by_range(&cells[1], &cells[0], 0.01, false);
                apart += usize::from(is_change(Some(verdict)));
                for (run, cell) in cells.into_iter().enumerate() {
                    let value = cell.spread.median;
                    let behind = Behind::Range { cell, exact: false };
                    rows.add(
                        version,
                        VersionValues {
                            run,
                            value,
                            behind,
                            equals_apart: 0.0,
                            between_runs: BETWEEN_RUNS,
                        },
                    );
                }
            }
            all.push(rows);
        }
        let rule = Rule::new(16, heapmark_stats::ALPHA);
        let again = all.iter().flat_map(|rows| rows.compared_again(&rule));
        let drifts = again.filter(|(_, moved)| is_change(moved.verdict));
        (drifts.count(), apart)
    }

    #[test]
    fn a_machine_that_says_the_same_is_not_called_changed_and_one_that_does_not_is() {
        let scatter = &mut Scatter(1);
        let counts: Vec<(usize, usize)> = (0..400)
            .map(|_| drifts_of_eight_metrics(scatter, 1.0))
            .collect();
        let wrong = counts.iter().filter(|(drifts, _)| *drifts > 0).count();
        assert!(wrong <= 20, "{wrong} of 400");
        // This is what the rule is for: ranges alone would be wrong that often.
        let by_ranges = counts.iter().filter(|(_, apart)| *apart > 0).count();
        assert!(by_ranges > 40, "{by_ranges} of 400");
        let found = (0..100).filter(|_| drifts_of_eight_metrics(scatter, 1.3).0 > 0);
        assert_eq!(found.count(), 100);
    }
}
