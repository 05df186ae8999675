//! Tables of whole processes, and notes that several rows share.

use super::*;
use std::collections::BTreeMap;

/// All contents of these tables: a runtime that ignores malloc, one that pauses, one that never
/// did, one without a report, a size of its own, a caution.
fn trees() -> FakeRun {
    let lab = FakeRun::new(&["glibc"], &["trees"], 10).whole(&[
        "OCaml",
        "Go",
        "Nim:refc",
        "Python",
        "tiny-gc (own)",
    ]);
    let mut lab = lab.fill(|_, name, _| match name {
        "OCaml" => 10.0,
        "Python" => 400.0,
        _ => 20.0,
    });
    lab.run.plan.cases[0].caution = Some("Real programs do other things, too.".into());
    lab.run.plan.cases[0].rows[3].parameters = [("n".to_string(), "12".to_string())].into();
    for record in lab
        .records
        .iter_mut()
        .filter_map(|record| record.measurement.as_mut())
    {
        (record.requested_peak_bytes, record.baseline_rss_bytes) = (0, 0);
        record.figures.insert("startup_ns".into(), 1_500_000.0);
    }
    let calls = |calls| ("malloc_calls_per_operation", calls);
    let step = ("depth_4_longest_build_ns", 20_000.0);
    lab.told(
        "trees@2/check/glibc",
        &[calls(1.0), ("release_max_ns", 25e6), step],
    )
    .told("trees@2/check/OCaml", &[calls(0.0), ("pauses", 0.0)])
    .told(
        "trees@2/check/Go",
        &[calls(0.0), ("pauses", 2.0), ("pause_max_ns", 90e3)],
    )
    .told("trees@2/check/Nim:refc", &[calls(0.0)])
    .told(
        "trees@2/check/Python",
        &[calls(0.0), ("pauses", 1.0), ("pause_max_ns", 4e6)],
    )
    .told(
        "trees@2/check/tiny-gc (own)",
        &[calls(1.0), ("pauses", 9.0), ("pause_max_ns", 8e6)],
    )
}

/// The cells of a row in a file, by their column titles.
fn cells(markdown: &str, row: &str) -> BTreeMap<String, String> {
    let split = |line: &str| {
        line.split('|')
            .map(|cell| cell.trim().to_string())
            .collect::<Vec<_>>()
    };
    let line = |first: &str| {
        markdown
            .lines()
            .find(|line| line.starts_with(&format!("| {first} |")))
            .map(split)
            .unwrap()
    };
    line("row").into_iter().zip(line(row)).collect()
}

#[test]
fn a_whole_process_shows_its_times_its_memory_and_its_pauses() {
    let lab = trees();
    let text = exported(Format::Markdown, &lab);
    let shown = |row: &str, titles: [&str; 5]| {
        let cells = cells(&text, row);
        titles.map(|title| {
            cells
                .get(title)
                .unwrap_or_else(|| panic!("no {title} in {text}"))
                .clone()
        })
    };
    assert_eq!(
        shown(
            "glibc",
            ["wall s", "CPU s", "CPU / wall", "peak RSS", "start-up"]
        ),
        ["0.0200", "0.0250", "1.25", "14.0 MiB", "1.50 ms"]
    );
    let pauses = [
        "wall s",
        "CPU time",
        "longest pause",
        "longest step",
        "notes",
    ];
    assert_eq!(
        shown("glibc", pauses),
        ["0.0200", "1", "25.0 ms", "20.0 us", ""]
    );
    assert_eq!(
        shown("OCaml", pauses),
        [
            "0.0100",
            "0.500",
            "none",
            "n/a",
            "not touched by malloc choice"
        ]
    );
    assert_eq!(
        shown("Go", pauses),
        [
            "0.0200",
            "1.000",
            "90.0 us",
            "n/a",
            "not touched by malloc choice"
        ]
    );
    assert_eq!(
        shown("Nim:refc", pauses),
        [
            "0.0200",
            "1.000",
            "n/a",
            "n/a",
            "not touched by malloc choice"
        ]
    );
    assert_eq!(
        shown("tiny-gc (own)", pauses),
        ["0.0200", "1.000", "8.00 ms", "n/a", ""]
    );
    assert_eq!(
        shown("Python", pauses),
        [
            "0.400",
            "20.0",
            "4.00 ms",
            "n/a",
            "not touched by malloc choice, n = 12"
        ]
    );
}

#[test]
fn what_there_is_to_say_of_rows_is_said_on_a_narrow_screen() {
    let text = on(NARROW, &trees());
    assert!(
        text.lines()
            .all(|line| line.chars().count() <= NARROW.width),
        "{text}"
    );
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("choice, n = 12"), "{text}");
    // Of three rows and of a fourth, in the last column.
    assert_eq!(text.matches("not touched").count(), 4, "{text}");
}

#[test]
fn the_caution_and_the_legend_are_those_of_such_tables() {
    let lab = trees();
    let text = exported(Format::Markdown, &lab);
    assert!(
        text.contains("Real programs do other things, too.\n"),
        "{text}"
    );
    assert!(
        !text.contains("ns/op: wall time"),
        "no operation is shown: {text}"
    );
    // A case of kernels beside it has its own columns and no caution.
    let mixed = FakeRun::new(&["glibc"], &["trees", "larson"], 3)
        .whole(&["Go"])
        .fill(|_, _, _| 20.0);
    let text = on(WIDE, &mixed);
    assert!(
        text.contains("\n  row    wall s") && text.contains("\n  allocator  ns/op"),
        "{text}"
    );
    assert!(
        text.contains("ns/op: wall time") && text.contains("wall, CPU: of the whole process"),
        "{text}"
    );
}
