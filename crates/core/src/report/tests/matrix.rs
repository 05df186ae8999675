//! The matrix of all cases, which a run prints first.

use super::*;
use crate::analyse::fake_run::noise;
use crate::analyse::{Conclusion, Held, Overall, Verdict};
use crate::report::matrix::matrix;

fn first_on(screen: Screen, lab: &FakeRun) -> String {
    first(screen, &lab.run, &analyse(&lab.run, &lab.records))
}

/// Allocators that win, lose, cannot be told apart, fail, and are hidden by the harness.
fn several() -> FakeRun {
    let names = ["glibc", "rpmalloc", "hoard", "jemalloc", "copy", "null"];
    let cases = ["trace:perl-hash", "larson-server", "tiny"];
    let mut lab = FakeRun::new(&names, &cases, 12).fill(|workload, name, block| {
        let ns = match (workload, name) {
            ("tiny", "null") => 9.0,
            ("tiny", "rpmalloc") => 10.0,
            ("larson-server", "jemalloc") => 21.0,
            (_, "null") => 1.0,
            (_, "rpmalloc") => 12.0,
            (_, "hoard") => 250.0,
            _ => 20.0,
        };
        let name = if name == "copy" { "glibc" } else { name };
        ns * noise(&format!("{workload}{name}"), block)
    });
    lab.allocator("null").tier = "floor".into();
    lab.allocator("copy").tier = "aa-copy".into();
    lab.run.plan.aa_copy = Some("copy".into());
    on_a_machine(&mut lab);
    lab.fail("tiny@2/b03/hoard", crash())
}

/// Gives the run a machine to name.
fn on_a_machine(lab: &mut FakeRun) {
    let facts = [
        ("cpu_model", "AMD EPYC"),
        ("usable_cpus", "2"),
        ("kernel", "6.1.0"),
    ];
    lab.run.machine = facts.map(|(key, value)| (key.into(), value.into())).into();
}

#[test]
fn golden_matrix_at_100_columns() {
    let golden = "\
heapmark 0.1.0, suite quick, 12 blocks on AMD EPYC (2 CPUs), Linux 6.1.0
  rpmalloc is the fastest here, over 3 cases: 0.56 of glibc's time [0.56, 0.57]; its memory overhead
    is 1.00x glibc's. Left out: hoard (not ok in 1 of 3 cases).

               time / glibc  memory   perl  larson   tiny
             3 cases [95 %]   / its  2 thr   2 thr  2 thr
rpmalloc  0.56 [0.56, 0.57]    1.00   0.60    0.60   0.50
glibc          1 (baseline)       1      1       1      1
jemalloc  1.02 [1.01, 1.02]    1.00   1.00    1.05  ~0.99
hoard                     -       -   12.5    12.5   fail
Below 1 is faster; ~ not told apart from glibc. Trust: a copy of glibc took 1.00 to 1.00; another
  run may differ by 10 %.

Not ok
  tiny@2/b03/hoard: crash: SIGSEGV in phase run (stderr: last words)
";
    let text = first_on(WIDE, &several());
    assert_eq!(text, golden, "\n{text}");
    let coloured = Screen {
        colour: true,
        ..WIDE
    };
    let stripped = ["1", "31", "32", "33", "0"]
        .iter()
        .fold(first_on(coloured, &several()), |text, code| {
            text.replace(&format!("\u{1b}[{code}m"), "")
        });
    assert_eq!(stripped, golden, "colour changes no word");
}

#[test]
fn of_cases_that_do_not_fit_those_stay_in_which_allocators_differ_most() {
    let at = |width: usize| {
        let text = first_on(Screen { width, ..WIDE }, &several());
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        text
    };
    for word in ["perl", "larson", "tiny", "0.50", "~", "fail", "12.5"] {
        assert!(at(60).contains(word), "{word} is missing in\n{}", at(60));
    }
    // Of the three cases, `larson` has the slowest row.
    let narrow = at(40);
    assert!(
        narrow.contains("2 more columns on a wider screen."),
        "{narrow}"
    );
    assert!(
        narrow.contains("larson\n") && !narrow.contains("perl"),
        "{narrow}"
    );
}

#[test]
fn of_many_allocators_the_fastest_are_shown_and_the_baseline_wherever_it_is() {
    let names: Vec<String> = (10..30).map(|n| format!("a{n}")).collect();
    let all: Vec<&str> = ["glibc"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .collect();
    let lab = FakeRun::new(&all, &["one", "two"], 12).fill(|workload, name, block| {
        let ns = name[1..].parse().unwrap_or(99.0);
        ns * noise(&format!("{workload}{name}"), block)
    });
    let text = first_on(WIDE, &lab);
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.contains('[') && line.starts_with('a'))
        .collect();
    assert_eq!(rows.len(), 12, "{text}");
    assert!(
        text.contains("\nglibc ") && text.contains("\na21 ") && !text.contains("\na22 "),
        "{text}"
    );
    assert!(text.contains("8 more rows below these."), "{text}");
}

#[test]
fn the_smallest_is_named_with_its_price_unless_it_is_the_fastest() {
    let lab = several();
    let mut analysis = analyse(&lab.run, &lab.records);
    let text = |analysis: &Analysis| first(WIDE, &lab.run, analysis).replace("\n    ", " ");
    let memory = |one: &mut Overall, ratio: f64| one.memory.as_mut().unwrap().ratio = ratio;
    memory(&mut analysis.overall[0], 0.7);
    assert!(!text(&analysis).contains("Smallest"));
    memory(&mut analysis.overall[0], 1.4);
    let jemalloc = analysis
        .overall
        .iter()
        .position(|one| one.allocator == "jemalloc");
    memory(&mut analysis.overall[jemalloc.unwrap()], 0.8);
    let told = "Smallest: jemalloc (1.02, 0.800x glibc's memory).";
    assert!(text(&analysis).contains(told), "{}", text(&analysis));
    analysis.conclusion = Conclusion::NothingOk;
    assert!(!text(&analysis).contains("Smallest"), "nothing is claimed");
}

/// The memory of four allocators at the peak, and their times over glibc's.
fn with_memory(peaks: [f64; 4]) -> String {
    let names = ["glibc", "quick", "small", "slow"];
    let cases = ["trace:one", "trace:two"];
    let lab = FakeRun::new(&names, &cases, 12).fill(|workload, name, block| {
        let ns = match name {
            "quick" => 10.0,
            "slow" => 32.0,
            _ => 20.0,
        };
        ns * noise(&format!("{workload}{name}"), block)
    });
    let mut analysis = analyse(&lab.run, &lab.records);
    let peaks = names.into_iter().zip(peaks);
    analysis.held = Vec::from_iter(peaks.map(|(name, peak)| Held {
        peak: Some(peak),
        ..held(name, false)
    }));
    conclusion(&analysis)
}

#[test]
fn a_slower_allocator_that_is_hardly_smaller_is_not_recommended_for_its_memory() {
    let told = with_memory([1.1017, 1.63, 1.4, 1.0982]);
    assert!(
        told.contains("Smallest: glibc (1.10x; slow as well)."),
        "{told}"
    );
    let apart = with_memory([1.2, 1.63, 1.4, 1.1]);
    assert!(
        apart.contains("Smallest: slow (1.6") && apart.contains(", 1.10x)."),
        "{apart}"
    );
    let leads = with_memory([1.5, 1.12, 1.4, 1.1]);
    assert!(
        !leads.contains("mallest"),
        "the fastest is as small as any: {leads}"
    );
}

#[test]
fn the_answer_names_those_that_had_huge_pages_if_not_all_had() {
    let lab = several();
    let mut analysis = analyse(&lab.run, &lab.records);
    analysis.transparent_huge_pages = "madvise".into();
    let mut told = |of: &[(&str, f64)]| {
        let owned = of.iter().map(|(name, share)| (name.to_string(), *share));
        analysis.huge_shares = owned.collect();
        conclusion(&analysis)
    };
    let some = told(&[
        ("glibc", 0.0),
        ("rpmalloc", 0.8),
        ("hoard", 0.0),
        ("jemalloc", 0.1),
    ]);
    assert!(
        some.contains(" Only rpmalloc and jemalloc had huge pages here (THP madvise)."),
        "{some}"
    );
    let most = told(&[("glibc", 0.0), ("rpmalloc", 0.8), ("jemalloc", 0.1)]);
    assert!(
        most.contains(" All but glibc had huge pages here (THP madvise)."),
        "{most}"
    );
    for same in [
        told(&[("glibc", 0.0), ("rpmalloc", 0.0)]),
        told(&[("glibc", 0.5), ("rpmalloc", 0.4)]),
        told(&[]),
    ] {
        assert!(!same.contains("huge pages"), "{same}");
    }
}

#[test]
fn too_few_blocks_and_not_told_apart_are_two_signs() {
    let lab = FakeRun::new(&["glibc", "a"], &["one", "two"], 5)
        .fill(|_, name, block| if name == "a" { 5.0 } else { 20.0 } * noise(name, block));
    let text = first_on(WIDE, &lab);
    assert!(
        text.contains("…0.25")
            && text.contains("… too few blocks yet to tell")
            && !text.contains('~'),
        "{text}"
    );
    let level = FakeRun::new(&["glibc", "a"], &["one", "two"], 12)
        .fill(|_, name, block| 20.0 * noise(name, block).powi(5));
    let text = first_on(WIDE, &level);
    assert!(
        text.contains('~') && text.contains("~ not told apart from glibc") && !text.contains('…'),
        "{text}"
    );
}

#[test]
fn a_single_case_has_no_matrix() {
    let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 10).fill(|_, _, _| 20.0);
    assert!(matrix(&analyse(&lab.run, &lab.records)).is_none());
}

/// What an allocator holds; a hoarder never reuses and never returns.
fn held(allocator: &str, hoards: bool) -> Held {
    let number = |fair, hoarded| Some(if hoards { hoarded } else { fair });
    Held {
        allocator: allocator.into(),
        peak: number(1.25, 2.5),
        replays: 5,
        pool: number(1.5, 12.0),
        fan_in: number(1.2, 1.4),
        returned: number(0.9, 0.85),
    }
}

#[test]
fn a_default_run_answers_on_a_screen_of_24_lines() {
    let names = [
        "glibc",
        "dlmalloc",
        "gperftools",
        "hoard",
        "jemalloc",
        "mimalloc2",
        "mimalloc3",
        "rpmalloc",
        "scudo",
        "snmalloc",
        "tbbmalloc",
        "tcmalloc",
        "tcmalloc-percpu",
    ];
    let cases = [
        "trace:cc1plus-templates",
        "trace:jq-group",
        "trace:python-json",
        "trace:lua-tables-reuse",
        "trace:sqlite-report-reuse",
        "larson-mimalloc-bench",
        "scatter-2",
    ];
    let mut lab = FakeRun::new(&names, &cases, 12).fill(|workload, name, block| {
        let ns = if name == "mimalloc2" { 10.0 } else { 20.0 };
        ns * noise(&format!("{workload}{name}"), block)
    });
    on_a_machine(&mut lab);
    let mut analysis = analyse(&lab.run, &lab.records);
    for case in &mut analysis.cases[3..5] {
        case.caution = Some("Later rounds, in a used heap, as a server's.".into());
    }
    analysis.interference.repeated = 63;
    analysis.machine_warnings = Some(vec!["load".into()]);
    analysis.transparent_huge_pages = "madvise".into();
    let huge = |name: &&str| {
        (
            name.to_string(),
            f64::from(u8::from(name.starts_with("mi"))),
        )
    };
    analysis.huge_shares = names.iter().map(huge).collect();
    analysis.held = names
        .iter()
        .map(|name| held(name, *name == "mimalloc2"))
        .collect();
    for (width, most) in [(100, 23), (80, 26)] {
        let text = first(Screen { width, ..WIDE }, &lab.run, &analysis);
        let answer: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        assert!(answer.len() <= 7, "{text}");
        let answer = answer
            .join(" ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        for told in [
            "is the fastest here",
            "2.50x",
            "For pools of threads:",
            "Smallest: glibc (1.25x",
        ] {
            assert!(answer.contains(told), "{told} is missing in\n{text}");
        }
        let one_table = text
            .lines()
            .filter(|line| line.starts_with("scudo"))
            .count();
        assert_eq!(one_table, 1, "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= width),
            "{text}"
        );
        // The line that says where the report lies follows.
        assert!(
            text.lines().count() <= most,
            "{}\n{text}",
            text.lines().count()
        );
    }
}

#[test]
fn a_case_in_which_the_copy_differs_has_a_mark_of_its_own() {
    let lab = several();
    let mut analysis = analyse(&lab.run, &lab.records);
    let text = |analysis: &Analysis| first(WIDE, &lab.run, analysis);
    let legend = "? no further apart than glibc and its copy";
    let flat = |analysis: &Analysis| text(analysis).replace("\n  ", " ");
    assert!(!flat(&analysis).contains(legend));
    for row in &mut analysis.cases[1].rows {
        row.cells[0].verdict = Some(Verdict::AaCopyDiffers);
    }
    let flat = flat(&analysis);
    assert!(flat.contains("?0.60") && flat.contains(legend), "{flat}");
}
