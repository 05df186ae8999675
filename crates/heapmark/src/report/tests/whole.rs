//! Tables of whole processes, and notes that several rows share.

use super::*;

/// Everything that such a table can hold: a runtime that ignores malloc, one that pauses, one that never did, one that is
/// not told, a size of its own, a caution.
fn trees() -> Lab {
    let lab = Lab::new(&["glibc"], &["trees"], 10).whole(&["OCaml", "Go", "Nim:refc", "Python", "tiny-gc (own)"]);
    let mut lab = lab.fill(|_, name, _| match name {
        "OCaml" => 10.0,
        "Python" => 400.0,
        _ => 20.0,
    });
    lab.run.plan.cases[0].caution = Some("Real programs do other things, too.".into());
    lab.run.plan.cases[0].rows[3].parameters = [("n".to_string(), "12".to_string())].into();
    for record in lab.records.iter_mut().filter_map(|record| record.measurement.as_mut()) {
        (record.requested_peak_bytes, record.baseline_rss_bytes) = (0, 0);
        record.figures.insert("startup_ns".into(), 1_500_000.0);
    }
    let calls = |calls| ("malloc_calls_per_operation", calls);
    let step = ("depth_4_longest_build_ns", 20_000.0);
    lab.told("trees@2/check/glibc", &[calls(1.0), ("release_max_ns", 25e6), step])
        .told("trees@2/check/OCaml", &[calls(0.0), ("pauses", 0.0)])
        .told("trees@2/check/Go", &[calls(0.0), ("pauses", 2.0), ("pause_max_ns", 90e3)])
        .told("trees@2/check/Nim:refc", &[calls(0.0)])
        .told("trees@2/check/Python", &[calls(0.0), ("pauses", 1.0), ("pause_max_ns", 4e6)])
        .told("trees@2/check/tiny-gc (own)", &[calls(1.0), ("pauses", 9.0), ("pause_max_ns", 8e6)])
}

#[test]
fn golden_table_of_whole_processes() {
    let golden = "\
trees, 2 threads
  row            wall s   CPU s  CPU / wall  time / glibc [95 %]   CPU time  peak RSS  longest pause  longest step  start-up
  OCaml          0.0100  0.0125        1.25  0.500 [0.500, 0.500]     0.500  14.0 MiB           none           n/a   1.50 ms
  glibc          0.0200  0.0250        1.25  1 (baseline)                 1  14.0 MiB        25.0 ms       20.0 us   1.50 ms
  Go             0.0200  0.0250        1.25  1.000 [1.000, 1.000]     1.000  14.0 MiB        90.0 us           n/a   1.50 ms
  Nim:refc       0.0200  0.0250        1.25  1.000 [1.000, 1.000]     1.000  14.0 MiB            n/a           n/a   1.50 ms
  tiny-gc (own)  0.0200  0.0250        1.25  1.000 [1.000, 1.000]     1.000  14.0 MiB        8.00 ms           n/a   1.50 ms
  Python          0.400   0.500        1.25  20.0 [20.0, 20.0]         20.0  14.0 MiB        4.00 ms           n/a   1.50 ms
  OCaml, Go, Nim:refc: not touched by malloc choice
  Python: not touched by malloc choice, n = 12
  Real programs do other things, too.
";
    let screen = Screen { width: 150, colour: false };
    let text = on(screen, &trees());
    assert!(text.starts_with(golden), "{text}");
}

#[test]
fn rows_that_have_the_same_to_say_share_a_line() {
    let text = on(NARROW, &trees());
    let shared =
        "\n  OCaml, Go, Nim:refc: not touched by malloc choice\n  Python: not touched by malloc choice, n = 12\n";
    assert!(text.contains(shared), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= NARROW.width), "{text}");
    // The order of the table, and nobody twice.
    assert_eq!(text.matches("not touched").count(), 2, "{text}");
    assert!(!text.contains("\n  glibc: ") && !text.contains("tiny-gc (own): "), "{text}");
    assert!(text.contains("Too narrow for: CPU / wall"), "{text}");
}

#[test]
fn files_have_every_column_and_the_caution() {
    let lab = trees();
    let text = export(Format::Markdown, &lab.run, &lab.records);
    for title in [
        "| row |",
        " wall s ",
        " CPU s ",
        " CPU / wall ",
        " longest pause ",
        " longest step ",
        " start-up ",
        " notes |",
    ] {
        assert!(text.contains(title), "{title}: {text}");
    }
    assert!(text.contains("Real programs do other things, too.\n"), "{text}");
    assert!(!text.contains("ns/op: wall time"), "no operation is shown: {text}");
    // A case of kernels beside it has its own columns and no caution.
    let mixed = Lab::new(&["glibc"], &["trees", "larson"], 3).whole(&["Go"]).fill(|_, _, _| 20.0);
    let text = on(WIDE, &mixed);
    assert!(text.contains("\n  row    wall s") && text.contains("\n  allocator  ns/op"), "{text}");
    assert!(text.contains("ns/op: wall time") && text.contains("wall, CPU: of the whole process"), "{text}");
}
