//! Compares `benchres.csv` of mimalloc-bench with a run: the medians in the file and our ratios, for tests of the same role. Only the table
//! in docs/COMPARISON.md states which workload has the role of which test.

use super::document::{Block, Cell, Sheet};
use super::sheet::SheetOf;
use super::text::{self, count};
use super::units;
use crate::analyse::{Analysis, Ratio, Role, Spread, Table, Verdict, distinct};
use crate::metric::WALL;
use anyhow::{Result, bail};
use serde::Serialize;

const ROLES: &str = include_str!("../../../../docs/COMPARISON.md");
const TABLE: &str = "## mimalloc-bench, test by test";
/// The beginning of the line that `time` writes before the numbers of a program that failed.
const FAILED: &str = "Command ";

/// A line of the file: one execution of a test under an allocator.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchLine {
    /// The test, by mimalloc-bench's name.
    pub test: String,
    /// The allocator, by mimalloc-bench's name.
    pub allocator: String,
    /// The elapsed time in seconds; `None` if the program failed.
    pub elapsed_s: Option<f64>,
}

/// Reads the lines of a file: `benchmark allocator elapsed rss user sys page-faults page-reclaims`, separated by spaces.
pub fn read(text: &str) -> Result<Vec<BenchLine>> {
    let mut lines = Vec::new();
    let mut failed = false;
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_heading = line.trim_start().starts_with('#') || words.get(2) == Some(&"elapsed");
        if words.is_empty() || is_heading {
            continue;
        }
        if line.starts_with(FAILED) {
            failed = true;
            continue;
        }
        let [test, allocator, elapsed, _, ..] = words[..] else {
            bail!(
                "line {}: expected `benchmark allocator elapsed rss user sys page-faults page-reclaims`, as mimalloc-bench writes it",
                number + 1
            );
        };
        let Some(seconds) = seconds(elapsed) else {
            bail!(
                "line {}: `{elapsed}` is no time: expected 0:12.34",
                number + 1
            );
        };
        lines.push(BenchLine {
            test: test.into(),
            allocator: allocator.into(),
            elapsed_s: Some(seconds).filter(|seconds| *seconds > 0.0 && !failed),
        });
        failed = false;
    }
    if lines.is_empty() {
        bail!("it has no results");
    }
    Ok(lines)
}

/// Seconds from `1:02:03.45`, `2:03.45` or `3.45`.
fn seconds(text: &str) -> Option<f64> {
    text.split(':').try_fold(0.0, |sum, part| {
        let part: f64 = part.parse().ok()?;
        (part.is_finite() && part >= 0.0).then_some(sum * 60.0 + part)
    })
}

/// What mimalloc-bench means by a name that means a family here.
pub fn meant_by(name: &str) -> Option<&'static [&'static str]> {
    match name {
        "tc" => Some(&["gperftools"]),
        // A mimalloc of version 1, which is older than any of ours.
        "mi" => Some(&[]),
        _ => None,
    }
}

/// A test of mimalloc-bench, and the workloads that have the same role here.
struct TestRole {
    test: &'static str,
    ours: Vec<&'static str>,
}

/// The rows of the table in docs/COMPARISON.md.
fn roles() -> Vec<TestRole> {
    let (_, table) = ROLES.split_once(TABLE).expect("the table of tests");
    let rows = table.lines().take_while(|line| !line.starts_with("## "));
    let of = |line: &'static str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let (test, ours) = (cells.next()?, cells.nth(1)?);
        let quoted = ours.split('`').skip(1).step_by(2);
        let first_words = quoted.filter_map(|words| words.split(' ').next());
        Some(TestRole {
            test,
            ours: first_words.collect(),
        })
    };
    rows.filter_map(of).collect()
}

/// Returns whether a case has a test's number of threads: one if the name ends with `1`, several if it contains `N`.
fn fits(test: &str, threads: u32) -> bool {
    match (test.ends_with('1'), test.contains('N')) {
        (true, _) => threads == 1,
        (_, true) => threads > 1,
        _ => true,
    }
}

/// A row of a run beside a row of mimalloc-bench.
#[derive(Debug, Serialize)]
pub struct BesideRow {
    /// The case, such as `relay@2`.
    pub case: String,
    /// The test that has the case's role.
    pub test: String,
    /// The allocator, by heapmark's name.
    pub allocator: String,
    /// mimalloc-bench's median elapsed time over the baseline's.
    pub theirs: f64,
    /// The number of mimalloc-bench's runs behind that median.
    pub runs: usize,
    /// heapmark's time over the baseline's.
    pub ours: Ratio,
    /// `agree`, `differ`, or why neither can be claimed.
    pub direction: &'static str,
}

/// A run beside a file of mimalloc-bench.
#[derive(Debug, Serialize)]
pub struct Beside {
    /// The baseline of heapmark's and mimalloc-bench's ratios.
    pub baseline: String,
    /// The rows of tests that have the role of a case.
    pub rows: Vec<BesideRow>,
    /// Tests of the file whose role no case of the run has, each with the workloads that have that role.
    pub not_in_run: Vec<String>,
    /// The number of lines of the file without a time.
    pub failed: usize,
    /// The smallest and the largest number of runs of a test under an allocator.
    pub runs: [usize; 2],
    /// The shortest of mimalloc-bench's times that are compared, in seconds.
    pub shortest_s: f64,
}

/// Compares the medians of the file with the ratios of a run. `is_called` tells whether mimalloc-bench's name for an allocator means one of
/// heapmark's; differences up to `threshold` have no direction.
pub fn beside(
    lines: &[BenchLine],
    analysis: &Analysis,
    is_called: impl Fn(&str, &str) -> bool,
    threshold: f64,
) -> Result<Beside> {
    let times = |test: &str, name: &str| -> Vec<f64> {
        let of_test = lines.iter().filter(|line| line.test == test);
        let of_test = of_test.filter(|line| is_called(&line.allocator, name));
        of_test.filter_map(|line| line.elapsed_s).collect()
    };
    let mut rows = Vec::new();
    let mut not_in_run = Vec::new();
    let mut shortest_s = f64::INFINITY;
    let mut runs = [usize::MAX, 0];
    let roles = roles();
    for test in distinct(lines.iter().map(|line| line.test.as_str())) {
        let role = roles.iter().find(|role| role.test == test);
        let ours = role.map(|role| &role.ours[..]).unwrap_or_default();
        let is_of = |case: &&Table| {
            !case.paced && ours.contains(&&*case.workload) && fits(test, case.threads)
        };
        let before = rows.len();
        for case in analysis.cases.iter().filter(is_of) {
            let base = times(test, &case.baseline);
            let Some(base_s) = Spread::of(&base).map(|spread| spread.median) else {
                continue;
            };
            for row in case.rows.iter().filter(|row| row.role == Role::Candidate) {
                let theirs = times(test, &row.allocator);
                let Some((spread, ratio)) = Spread::of(&theirs).zip(row.ratio(WALL.key)) else {
                    continue;
                };
                shortest_s = shortest_s.min(spread.min).min(base_s);
                runs = [runs[0].min(theirs.len()), runs[1].max(theirs.len())];
                let over = spread.median / base_s;
                rows.push(BesideRow {
                    case: case.label(),
                    test: test.to_owned(),
                    allocator: row.allocator.clone(),
                    theirs: over,
                    runs: theirs.len(),
                    ours: ratio,
                    direction: direction(over, row.verdict(WALL.key), threshold),
                });
            }
        }
        if rows.len() == before {
            not_in_run.push(match ours {
                [] => test.to_owned(),
                ours => format!("{test} ({})", text::join(ours.iter().copied(), ", ")),
            });
        }
    }
    if rows.is_empty() {
        bail!(
            "nothing of the file has the role of a case of this run, under its allocators: {}",
            text::join(not_in_run, ", ")
        );
    }
    Ok(Beside {
        baseline: analysis.baseline.clone(),
        rows,
        not_in_run,
        failed: lines.iter().filter(|line| line.elapsed_s.is_none()).count(),
        runs,
        shortest_s,
    })
}

/// Returns whether both ratios have the same direction. mimalloc-bench's ratio has no interval, so a small difference means nothing.
fn direction(theirs: f64, ours: Option<Verdict>, threshold: f64) -> &'static str {
    let theirs = match theirs {
        ratio if ratio > 1.0 + threshold => Verdict::Slower,
        ratio if ratio < 1.0 / (1.0 + threshold) => Verdict::Faster,
        _ => Verdict::Same,
    };
    match ours {
        Some(ours @ (Verdict::Slower | Verdict::Faster)) if ours == theirs => "agree",
        Some(Verdict::Same | Verdict::Small) if theirs == Verdict::Same => "agree",
        Some(Verdict::Slower | Verdict::Faster | Verdict::Same | Verdict::Small) => "differ",
        _ => "ours is unclear",
    }
}

/// Returns the comparison's table, and the notes that must be read with it.
pub fn blocks(beside: &Beside) -> Vec<Block> {
    vec![Block::Sheet(sheet(beside)), Block::notes(notes(beside))]
}

fn sheet(beside: &Beside) -> Sheet {
    let heading = format!("time / {}, mimalloc-bench's beside ours", beside.baseline);
    let mut table = SheetOf::new(heading, &beside.rows);
    table.sheet.heads = 3;
    table.add("test", |row| &row.test);
    table.add("ours", |row| &row.case);
    table.add("allocator", |row| &row.allocator);
    table.add("theirs", |row| Cell::ratio(row.theirs));
    table.add("runs", |row| row.runs as u64);
    table.add("ours [95 %]", |row| row.ours);
    table.add("direction", |row| row.direction);
    table.sheet
}

fn notes(beside: &Beside) -> Vec<String> {
    let [least, most] = beside.runs;
    let behind = match most {
        1 => "a single run each".to_owned(),
        _ if least == most => format!("medians of {} each", count(most, "run")),
        _ => format!("medians of {least} to {}", count(most, "run")),
    };
    let mut notes = vec![
        format!(
            "Theirs are {behind}, one allocator after the other in a fixed order: they have no interval, whatever changed on the machine \
             meanwhile looks like a difference, and nothing proves that each allocator was loaded. The file names neither machine nor versions."
        ),
        format!(
            "Its times have hundredths of a second: the shortest, {}, is known to {}.",
            format_args!("{:.2} s", beside.shortest_s),
            units::percent(0.005 / beside.shortest_s)
        ),
        "A test and a workload of the same role are two programs: docs/COMPARISON.md says in what they differ.".into(),
    ];
    if beside.failed > 0 {
        let lines = count(beside.failed, "line");
        notes.push(format!("Left out: {lines} of tests that failed."));
    }
    if !beside.not_in_run.is_empty() {
        let tests = text::join(&beside.not_in_run, ", ");
        notes.push(format!(
            "Not in this run, or not under its allocators: {tests}."
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::analyse;
    use crate::analyse::fake_run::FakeRun;

    const FILE: &str = "\
# benchmark allocator elapsed rss user sys page-faults page-reclaims
cfrac   sys 0:04.00 3412 3.99 0.00 0 438
cfrac   mi2 0:03.60 4412 3.59 0.00 0 538
cfrac   mi2 0:03.40 4412 3.39 0.00 0 538
cfrac   je  0:04.40 4412 4.39 0.00 0 538
Command terminated by signal 11
cfrac   tbb 0:01.00 4412 0.99 0.00 0 538
barnes  sys 1:00:02.50 4412 0.99 0.00 0 538
sh8benchN sys 0:02.50 4412 0.99 0.00 0 538
";

    fn told(file: &str) -> Beside {
        let names = ["glibc", "mimalloc2", "jemalloc", "tbbmalloc"];
        let run = FakeRun::new(&names, &["bc-digits"], 12).fill(|_, name, block| {
            let level = match name {
                "mimalloc2" => 0.8,
                "jemalloc" => 0.9,
                _ => 1.0,
            };
            100.0 * level * (1.0 + 0.001 * f64::from(block % 3))
        });
        let called = |word: &str, name: &str| {
            [
                ("sys", "glibc"),
                ("mi2", "mimalloc2"),
                ("je", "jemalloc"),
                ("tbb", "tbbmalloc"),
            ]
            .contains(&(word, name))
        };
        beside(
            &read(file).unwrap(),
            &analyse(&run.run, &run.records),
            called,
            0.01,
        )
        .unwrap()
    }

    #[test]
    fn their_medians_stand_beside_our_ratios_of_the_same_role() {
        let comparison = told(FILE);
        let rows: Vec<(&str, &str, usize, &str)> = comparison
            .rows
            .iter()
            .map(|row| (&*row.test, &*row.allocator, row.runs, row.direction))
            .collect();
        assert_eq!(
            rows,
            [
                ("cfrac", "mimalloc2", 2, "agree"),
                ("cfrac", "jemalloc", 1, "differ")
            ]
        );
        assert!((comparison.rows[0].theirs - 0.875).abs() < 1e-9);
        assert_eq!(
            (comparison.failed, comparison.runs, comparison.shortest_s),
            (1, [1, 2], 3.4)
        );
        assert_eq!(
            comparison.not_in_run,
            ["barnes (clustalo-align)", "sh8benchN (batch-order-next)"]
        );
        let sentences = notes(&comparison).join(" ");
        for part in [
            "medians of 1 to 2 runs",
            "3.40 s, is known to 0.1 %",
            "1 line of tests that failed",
        ] {
            assert!(sentences.contains(part), "{part}: {sentences}");
        }
    }

    #[test]
    fn threads_and_times_are_theirs() {
        assert_eq!(seconds("1:00:02.50"), Some(3602.5));
        assert_eq!(seconds("0:-1"), None);
        assert!(fits("alloc-test1", 1) && !fits("alloc-test1", 2));
        assert!(fits("larsonN-sized", 2) && !fits("larsonN-sized", 1));
        assert!(fits("cfrac", 1) && fits("cfrac", 2));
        // Its `tc` is not Google's, and its `mi` none of ours.
        assert_eq!(meant_by("tc"), Some(&["gperftools"][..]));
        assert_eq!((meant_by("mi"), meant_by("mi2")), (Some(&[][..]), None));
        for (wrong, why) in [
            ("", "it has no results"),
            ("cfrac sys\n", "line 1: expected"),
            ("cfrac sys abc 1 2\n", "line 1: `abc` is no time"),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn what_has_a_role_is_a_workload_or_a_program() {
        let catalog = crate::catalog::Catalog::load().unwrap();
        let real = crate::catalog::real_program::load().unwrap();
        let roles = roles();
        assert!(roles.len() > 25, "{}", roles.len());
        for name in roles.iter().flat_map(|role| &role.ours) {
            let is_known = catalog.workloads(name).is_ok()
                || real.iter().any(|one| one.name == *name)
                || [
                    "try",
                    "trace:*",
                    "-t",
                    "--set",
                    "generations",
                    "distribution",
                ]
                .contains(name);
            assert!(is_known, "{name}");
        }
    }
}
