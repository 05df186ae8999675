//! The tables of a run that timed single calls: one per function, with one line per allocator, and
//! one of the longest calls.

use super::document::{Cell, Note, Sheet};
use super::heading::heading_of;
use super::sheet::{self, SheetOf, missing};
use super::text;
use crate::analyse::{Analysis, LongestCall, Role, Table, TableRow, Timing, distinct};
use crate::metric::Unit;

/// The tables of latencies.
pub fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    analysis
        .latency
        .iter()
        .flat_map(|case| of_case(case, analysis.planned_blocks))
        .collect()
}

fn of_case(case: &Table, planned_blocks: u32) -> Vec<Sheet> {
    let mut sheets: Vec<Sheet> = functions(case)
        .into_iter()
        .map(|name| percentiles(case, name))
        .collect();
    let mut sheet = longest(case);
    sheet.remark(case.caution.clone());
    sheet.remark(case.timing.as_ref().and_then(timer_line));
    let rows = case.rows.iter();
    let numberless = rows.filter_map(|row| numberless(row, planned_blocks));
    sheet.notes.extend(numberless);
    sheets.push(sheet);
    sheets
}

/// The functions that some row called, in the order of their first occurrence.
pub fn functions(case: &Table) -> Vec<&str> {
    let cells = case.rows.iter().flat_map(|row| &row.cells);
    distinct(cells.map(|cell| cell.label.as_str()))
}

/// The time that the clock adds to every figure.
fn timer_line(timing: &Timing) -> Option<String> {
    let every = timing.every;
    let timer = timing.timer.as_ref()?;
    Some(format!(
        "1 of {every} calls timed. The clock ({}) shows {} ns with no call at all, {} ns at least: in every figure, not \
         subtracted.",
        text::list(&timer.clocks),
        timer.median_ns,
        timer.least_ns
    ))
}

/// The percentiles of single calls: the title of a column, the place in a chart, the metric.
pub const PERCENTILES: [(&str, &str, &str); 6] = [
    ("p50", "50 %", "p50_ns"),
    ("p90", "90 %", "p90_ns"),
    ("p99", "99 %", "p99_ns"),
    ("p99.9", "99.9 %", "p99_9_ns"),
    ("p99.99", "99.99 %", "p99_99_ns"),
    ("max", "longest", "max_ns"),
];

/// The rows from the shortest tail to the longest, by the highest percentile that all of them have; the harness's own row is last.
fn ranked<'a>(case: &'a Table, function: &str) -> Vec<&'a TableRow> {
    let mut rows: Vec<&TableRow> = case.rows.iter().collect();
    rows.retain(|row| row.of_function(function, "max_ns").is_some());
    // Excludes the median, which is the first, and the longest call, which is the last.
    let all_have = PERCENTILES[1..5].iter().rev().find(|(_, _, key)| {
        rows.iter()
            .all(|row| row.of_function(function, key).is_some())
    });
    rows.sort_by_key(|row| {
        (
            row.role == Role::Floor,
            all_have.and_then(|(_, _, key)| row.call_ns(function, key)),
        )
    });
    rows
}

fn percentiles(case: &Table, function: &str) -> Sheet {
    let heading = format!("{}: {function}", heading_of(case));
    let mut table = SheetOf::new(heading, ranked(case, function));
    table.add("allocator", name);
    table.add("timed", |row| Some(row.of_function(function, "max_ns")?.n));
    for (title, _, key) in PERCENTILES {
        table.add(title, |row| {
            let cell = row.of_function(function, key);
            cell.map_or("n/a".into(), Cell::from)
        });
    }
    table.sheet
}

/// The longest call of each allocator, one per line.
fn longest(case: &Table) -> Sheet {
    let of_row = |row| {
        let calls: &TableRow = row;
        let longest = calls.calls.iter().flat_map(|calls| &calls.longest);
        Some((calls, longest.max_by_key(|longest| longest.call.ns)?))
    };
    let mut lines: Vec<(&TableRow, &LongestCall)> = case.rows.iter().filter_map(of_row).collect();
    lines.sort_by_key(|(row, longest)| (row.role == Role::Floor, longest.call.ns));
    let what = if lines.is_empty() {
        ""
    } else {
        ": longest call"
    };
    let mut table = SheetOf::new(format!("{}{what}", heading_of(case)), &lines);
    let ns = |ns: u64| (ns as f64, Unit::Ns);
    table.add("allocator", |(row, _)| name(row));
    table.add("took", |(_, longest)| ns(longest.call.ns));
    table.add("function", |(_, longest)| &longest.function);
    table.add("bytes", |(_, longest)| longest.call.bytes);
    table.add("after", |(_, longest)| ns(longest.call.at_ns));
    table.add("in", |(_, longest)| longest.cell.to_string());
    table.sheet
}

fn name(row: &TableRow) -> String {
    let mark = if row.role == Role::Floor {
        " (floor)"
    } else {
        ""
    };
    format!("{}{mark}", row.allocator)
}

fn numberless(row: &TableRow, planned_blocks: u32) -> Option<Note> {
    let calls = row.calls.as_ref()?;
    let failed = row.failed.as_ref();
    let otherwise = match (calls.processes, calls.unusable) {
        (0, 0) => missing(planned_blocks),
        (0, unusable) => format!("missing: the counts of {unusable} that ended ok"),
        (_, 0) if failed.is_none() => return None,
        (_, unusable) => format!(
            "the counts of {} are missing",
            text::count(unusable, "process")
        ),
    };
    Some(sheet::numberless(&row.allocator, failed, || otherwise))
}

/// The meaning of the columns.
pub fn legend(analysis: &Analysis) -> Vec<String> {
    let mut rows = analysis.latency.iter().flat_map(|case| &case.rows);
    if rows.clone().all(|row| row.cells.is_empty()) {
        return Vec::new();
    }
    let copy = "(copy): the same library once more. Its difference from the original is chance.";
    let copy = rows.any(|row| row.role == Role::AaCopy).then_some(copy);
    [
        "p99: 99 of 100 timed calls of all processes took at most this (to 1.6 %); n/a where fewer than 10 calls lie beyond. \
         max: the longest that was timed, exact; rare calls may have gone untimed.",
        "timed: how many calls, those of warm-up and clean-up too. bytes: asked for; free is not told. after: since just before the \
         workload began.",
        "A call in which the thread lost its CPU is as long as it was gone: compare with the floor (null), whose calls do \
         nothing.",
    ]
    .into_iter()
    .chain(copy)
    .map(String::from)
    .collect()
}

#[cfg(test)]
mod tests {
    use crate::analyse::analyse;
    use crate::analyse::fake_run::{FakeRun, crash};
    use crate::report::tests::exported;
    use crate::report::{Format, Screen, terminal};

    fn lab() -> FakeRun {
        let lab = FakeRun::new(&["glibc", "rpmalloc", "hoard", "null"], &["larson"], 10)
            .fill(|_, _, _| 20.0);
        let mut lab = lab.timing_calls(16, |name| match name {
            "glibc" => vec![(30, 9_000), (260, 999), (5_200_000, 1)],
            "rpmalloc" => vec![(25, 9_900), (130, 100)],
            _ => vec![(20, 10_000)],
        });
        lab.allocator("null").tier = "floor".into();
        lab.fail("larson@2/b03/hoard", crash())
    }

    #[test]
    fn golden_tables_of_a_run_that_timed_calls() {
        let golden = "\
No verdict: this run timed single calls, and none of its times is one of throughput.

larson, 2 threads: malloc
  allocator      timed    p50    p90     p99   p99.9  p99.99      max
  rpmalloc      100000  25 ns  25 ns   25 ns  130 ns  130 ns   130 ns
  glibc         100000  30 ns  30 ns  263 ns  263 ns  263 ns  5.20 ms
  null (floor)  100000  20 ns  20 ns   20 ns   20 ns   20 ns    20 ns

larson, 2 threads: longest call
  allocator        took  function  bytes    after  in
  rpmalloc       130 ns  malloc       64  2.00 ms  larson@2/b00/rpmalloc
  glibc         5.20 ms  malloc       64  2.00 ms  larson@2/b00/glibc
  null (floor)    20 ns  malloc       64  2.00 ms  larson@2/b00/null
  1 of 16 calls timed. The clock (rdtsc) shows 20 ns with no call at all, 18 ns at least: in every
    figure, not subtracted.
  hoard: crash 1 of 11: SIGSEGV in phase run

Not ok
  larson@2/b03/hoard: crash: SIGSEGV in phase run (stderr: last words)

Legend
  p99: 99 of 100 timed calls of all processes took at most this (to 1.6 %); n/a where fewer than 10
    calls lie beyond. max: the longest that was timed, exact; rare calls may have gone untimed.
  timed: how many calls, those of warm-up and clean-up too. bytes: asked for; free is not told.
    after: since just before the workload began.
  A call in which the thread lost its CPU is as long as it was gone: compare with the floor (null),
    whose calls do nothing.
";
        let lab = lab();
        let text = terminal(
            &analyse(&lab.run, &lab.records),
            Screen {
                width: 100,
                colour: false,
            },
        );
        assert_eq!(text, golden, "\n{text}");
    }

    #[test]
    fn a_disturbed_run_is_told_to_be_one_and_no_verdict_is_spoken_of() {
        let mut lab = lab();
        lab.cell("larson@2/b00/glibc").interference =
            serde_json::from_str(r#"{"wall_ns": 10000000000, "foreign_cpu_share": 0.9}"#).unwrap();
        let page = exported(Format::Markdown, &lab);
        assert!(
            page.contains(
                "1 of 10 parts disturbed each time, by other programs (1), and kept: take only"
            ),
            "{page}"
        );
        assert!(!page.contains("trust the verdicts"), "{page}");
    }

    #[test]
    fn the_export_has_a_line_per_function_and_one_without_numbers_per_failed_row() {
        let lab = lab();
        let text = exported(Format::Latency, &lab);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 4, "{text}");
        let start =
            "larson,2,false,glibc,main,ok,,16,rdtsc,18,20.0,10,malloc,100000,30,30,263,263,";
        assert!(lines[1].starts_with(start), "{}", lines[1]);
        assert!(
            lines[1].ends_with(",5200000,64,2000000,larson@2/b00/glibc"),
            "{}",
            lines[1]
        );
        assert_eq!(
            lines[3],
            "larson,2,false,hoard,main,crash,crash 1 of 11: SIGSEGV in phase run,16,,,,,,,,,,,,,,,"
        );
    }
}
