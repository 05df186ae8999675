//! The reports by values: artificial runs in, text out.

#[doc(hidden)]
pub mod checked;
mod conclusion;
mod interference;
mod kinds;
mod matrix;
mod narrow;
mod other_tools;
mod user_command;
mod whole;

use super::*;
use crate::analyse::analyse;
use crate::analyse::fake_run::{FakeRun, crash, measurement};
use crate::execute::Outcome;
use crate::store::{Purpose, RunFile};
use proptest::prelude::*;

const WIDE: Screen = Screen {
    width: 100,
    colour: false,
};
const NARROW: Screen = Screen {
    width: 80,
    colour: false,
};

fn on(screen: Screen, lab: &FakeRun) -> String {
    terminal(&analyse(&lab.run, &lab.records), screen)
}

/// What a run prints first.
fn first(screen: Screen, run: &RunFile, analysis: &Analysis) -> String {
    render::terminal(&first_screen(run, analysis), screen)
}

fn sentence(lab: &FakeRun) -> String {
    conclusion(&analyse(&lab.run, &lab.records))
}

/// A run in a format that can represent it.
pub(crate) fn exported(format: Format, lab: &FakeRun) -> String {
    String::from_utf8(export(format, &lab.run, &lab.records).unwrap().bytes).unwrap()
}

/// A run in every text format.
fn texts(lab: &FakeRun) -> Vec<String> {
    let formats = Format::all();
    let files = formats.filter_map(|format| export(format, &lab.run, &lab.records).ok());
    let files = files.map(|file| String::from_utf8(file.bytes).unwrap());
    [on(WIDE, lab), on(NARROW, lab), sentence(lab)]
        .into_iter()
        .chain(files)
        .collect()
}

/// Everything that a table can hold: a floor, a crash, a purge, a partial allocator, a missing
/// block, more threads than CPUs.
fn rich() -> FakeRun {
    let mut lab = FakeRun::new(
        &["glibc", "rpmalloc", "hoard", "null"],
        &["larson", "xmalloc"],
        10,
    )
    .fill(|_, name, _| match name {
        "null" => 2.0,
        "rpmalloc" => 12.0,
        _ => 20.0,
    });
    lab.allocator("null").tier = "floor".into();
    lab.allocator("rpmalloc").left_to_libc = vec!["posix_memalign".into()];
    lab.allocator("hoard").purge = "none".into();
    lab.run.plan.cases[0].oversubscribed = true;
    lab.run.plan.cases[1].counts_purge = true;
    lab.fail("larson@2/b03/hoard", crash())
        .without(|record| record.cell == "xmalloc@2/b09/hoard")
}

#[test]
fn golden_terminal_at_100_columns() {
    let golden = "\
rpmalloc is the fastest here, over 2 cases: 0.60 of glibc's time [0.60, 0.60]; its memory overhead
is 1.00x glibc's. But rpmalloc is partial. Left out: hoard (not ok in 1 of 2 cases).

larson, 2 threads (oversubscribed)
  allocator  ns/op  Mops/s  time / glibc [95 %]   verdict    CPU  by CPU   user  overhead  floor
  rpmalloc    12.0     167  0.600 [0.600, 0.600]  faster   0.600  faster  0.600     1.20x   17 %
  glibc       20.0     100  1 (baseline)                       1              1     1.20x   10 %

  allocator  floor + kernel + rest  notes
  rpmalloc   2.00 + 1.25 + 8.75     partial
  glibc      2.00 + 2.25 + 15.8
  floor: null 2.00 ns/op
  hoard: crash 1 of 11: SIGSEGV in phase run

xmalloc, 2 threads
  allocator  ns/op  Mops/s  time / glibc [95 %]   verdict    CPU  by CPU   user  overhead  floor
  rpmalloc    12.0     167  0.600 [0.600, 0.600]  faster   0.600  faster  0.600     1.20x   17 %
  glibc       20.0     100  1 (baseline)                       1              1     1.20x   10 %
  hoard       20.0     100  1.000 [1.000, 1.000]  same     1.000  same    1.000     1.20x   10 %

  allocator  floor + kernel + rest  notes
  rpmalloc   2.00 + 1.25 + 8.75     partial
  glibc      2.00 + 2.25 + 15.8
  hoard      2.00 + 2.25 + 15.8     not purged, 9 of 10 blocks
  floor: null 2.00 ns/op

Overall: time / glibc, geometric mean over 2 cases
  allocator  ratio [95 %]          next run [95 %]  malloc alone [95 %]   user time  memory  kernel
  rpmalloc   0.600 [0.600, 0.600]  [0.545, 0.661]   0.556 [0.556, 0.556]      0.600   1.00x    10 %
  glibc      1 (baseline)          -                -                         1.000   1.00x    11 %

Best and worst of 2 cases: time / glibc
  allocator  faster  slower  best      ratio [95 %]          worst      ratio [95 %]
  rpmalloc        2       0  larson@2  0.600 [0.600, 0.600]  xmalloc@2  0.600 [0.600, 0.600]

Not ok
  larson@2/b03/hoard: crash: SIGSEGV in phase run (stderr: last words)

Legend
  ns/op: wall time x threads / operations; ops/s: of all threads. Medians over processes.
  time / glibc: ns/op over glibc's in the same block, below 1 is faster; Hodges-Lehmann estimate and
    95 % interval ([n = 5]: too few pairs for one). CPU, user: the same of CPU time, and of its part
    outside the kernel.
  overhead: (peak RSS - what was resident before the first operation and is not the allocator's) /
    peak of requested bytes. Where less than 1 MiB was requested, pages decide it and the peak RSS
    itself is shown.
  floor: the harness without an allocator; the column is its share of a row's time.
  floor + kernel + rest: the parts of ns/op: the harness, system time above the floor's (page
    faults, system calls), and what the allocator takes.
  partial: rpmalloc leaves posix_memalign to libc.
  not purged: the clock includes giving memory back, and this allocator does not, or is not known
    to.
  purge: its share of the row's time, or configured: without a call. Files have the time without it.
  oversubscribed: more threads than CPUs; the scheduler is measured too.
";
    assert_eq!(on(WIDE, &rich()), golden, "\n{}", on(WIDE, &rich()));
}

#[test]
fn what_the_rows_are_of_stands_below_the_tables() {
    let mut lab = rich();
    assert!(!on(WIDE, &lab).contains("versions: "), "none is known");
    // A release as runs store it today, and two versions from what earlier runs stored.
    lab.allocator("hoard").release = "Hoard, 2017".into();
    lab.allocator("rpmalloc").sources = "2021".into();
    lab.allocator("glibc").version = "2.36".into();
    assert!(
        on(WIDE, &lab).contains("\n  versions: glibc (2.36), hoard (2017) and rpmalloc (2021).\n"),
        "{}",
        on(WIDE, &lab)
    );
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for screen in [WIDE, NARROW] {
        for line in on(screen, &rich()).lines() {
            assert!(line.chars().count() <= screen.width, "{line}");
        }
    }
    let narrow = on(NARROW, &rich());
    assert!(
        narrow.contains("  not purged, 9 of 10 blocks\n"),
        "{narrow}"
    );
    let titles = |text: &str| text.matches("\n  allocator  ").count();
    assert_eq!(
        titles(&narrow),
        2 * 2 + 2 + 2,
        "columns follow below: {narrow}"
    );
    let broad = on(Screen { width: 150, ..WIDE }, &rich());
    assert_eq!(titles(&broad), 2 + 2, "{broad}");
    for width in [0, 1, 20] {
        assert!(
            !on(
                Screen {
                    width,
                    colour: false
                },
                &rich()
            )
            .is_empty()
        );
    }
}

#[test]
fn colour_changes_no_word() {
    let coloured = on(
        Screen {
            colour: true,
            ..WIDE
        },
        &rich(),
    );
    let stripped = [
        "\u{1b}[1m",
        "\u{1b}[31m",
        "\u{1b}[32m",
        "\u{1b}[33m",
        "\u{1b}[0m",
    ]
    .iter()
    .fold(coloured.clone(), |text, code| text.replace(code, ""));
    assert_eq!(stripped, on(WIDE, &rich()));
    assert_ne!(coloured, stripped);
}

#[test]
fn a_failed_cell_yields_no_number_anywhere() {
    let planted = 777.0;
    let mut lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 10)
        .fill(|_, name, _| if name == "hoard" { planted } else { 20.0 });
    // A measurement next to a crash breaks the store's promise; it must still not be printed.
    let crashed = lab.cell("larson@2/b03/hoard");
    crashed.outcome = crash();
    crashed.measurement = Some(measurement(13.0));
    for text in [
        on(WIDE, &lab),
        sentence(&lab),
        exported(Format::Markdown, &lab),
    ] {
        assert!(
            !text.contains("777") && !text.contains("38.8") && !text.contains("13.0"),
            "{text}"
        );
    }
    assert!(on(WIDE, &lab).contains("hoard: crash 1 of 11: SIGSEGV in phase run"));

    let rows = exported(Format::Rows, &lab);
    let row = rows.lines().find(|line| line.contains("hoard")).unwrap();
    assert!(
        row.contains("crash 1 of 11") && row.ends_with(&",".repeat(23)) && !row.contains("777"),
        "{row}"
    );

    let raw = exported(Format::Samples, &lab);
    let row = raw
        .lines()
        .find(|line| line.starts_with("larson@2/b03/hoard"))
        .unwrap();
    assert!(
        row.ends_with(&format!(
            "crash,SIGSEGV in phase run,crash{}",
            ",".repeat(14)
        )),
        "{row}"
    );
    let good = raw
        .lines()
        .find(|line| line.starts_with("larson@2/b04/hoard"))
        .unwrap();
    assert!(good.contains(",ok,,crash,0,true,"), "{good}");

    let json: serde_json::Value = serde_json::from_str(&exported(Format::Json, &lab)).unwrap();
    let row = &json["analysis"]["cases"][0]["rows"][1]["state"];
    assert_eq!(
        (row["kind"].as_str(), row["ns_per_op"].as_f64()),
        (Some("failed"), None)
    );
    let records = json["records"].as_array().unwrap();
    let record = records
        .iter()
        .find(|record| record["cell"] == "larson@2/b03/hoard")
        .unwrap();
    assert!(record.get("measurement").is_none());
}

#[test]
fn every_failure_is_listed_with_its_last_words() {
    let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 3).fill(|_, _, _| 20.0);
    let lab = lab
        .fail("larson@2/b00/hoard", crash())
        .fail("larson@2/b02/hoard", crash());
    let lab = lab.fail(
        "larson@2/b01/hoard",
        Outcome::NotLoaded {
            why: "libc served".into(),
        },
    );
    let text = on(WIDE, &lab);
    assert!(
        text.contains(
            "  larson@2/b00/hoard and 1 more: crash: SIGSEGV in phase run (stderr: last words)\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("  larson@2/b01/hoard: not-loaded: libc served (stderr: last words)\n"),
        "{text}"
    );
    let text = exported(Format::Markdown, &lab);
    assert!(text.contains(
        "- larson@2/b00/hoard and 1 more: crash: SIGSEGV in phase run (stderr: last words)"
    ));
}

#[test]
fn escape_sequences_are_harmless() {
    let name = "evil\u{1b}[2J\u{9b}31m|*\n<b>\u{202e}";
    let mut lab =
        FakeRun::new(&["glibc", name], &["larson", "xmal\u{1b}loc"], 6).fill(|_, _, _| 20.0);
    lab.allocator(name).left_to_libc = vec!["mem\u{1b}]align".into()];
    let why = "\u{1b}[31mred\r\u{7}".to_owned();
    let lab = lab.fail(&format!("larson@2/b00/{name}"), Outcome::NotLoaded { why });
    for text in texts(&lab) {
        let bad = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
        let bad: Vec<char> = text.chars().filter(bad).collect();
        // JSON keeps strings as they are, escaped; C1 and direction marks are legal in it.
        assert!(
            bad.is_empty() || text.starts_with("{\n  \"run\"") && !text.contains('\u{1b}'),
            "{bad:?} in {text}"
        );
    }
    let text = exported(Format::Markdown, &lab);
    assert!(
        !text.contains("<b>") && text.contains("evil\\[2J31m\\|\\* &lt;b&gt;"),
        "{text}"
    );
}

#[test]
fn nothing_to_say_is_said() {
    let lab = FakeRun::new(&["glibc"], &["larson"], 3);
    let missing = " Left out: glibc (samples missing in 1 of 1 case).";
    assert_eq!(
        sentence(&lab),
        format!("No verdict: no allocator has samples in every case that all ended ok.{missing}")
    );
    assert!(on(WIDE, &lab).contains("  glibc: missing: 0 of 3 blocks measured\n"));
    assert_eq!(
        sentence(&FakeRun::new(&["glibc"], &[], 3)),
        "No verdict: the run has no cases."
    );
    let lab = lab.fill(|_, _, _| 20.0);
    assert_eq!(
        sentence(&lab),
        "Only glibc was measured: there is nothing to compare it with."
    );
    for text in texts(&FakeRun::new(&["glibc"], &["larson"], 3)) {
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }
}

#[test]
fn raw_lines_have_every_iteration_and_fixed_units() {
    let lab = FakeRun::new(&["glibc"], &["larson"], 2).fill(|_, _, _| 20.0);
    let text = exported(Format::Samples, &lab);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 2 * 3, "{text}");
    assert!(lines[0].contains(
        ",wall_ns,purge_ns,user_ns,sys_ns,minor_faults,ops,baseline_rss_bytes,held_before_bytes,peak_rss_bytes,"
    ));
    assert!(lines[2].ends_with(
        ",ok,,ok,1,false,10000000,0,10000000,2500000,0,1000000,2097152,0,14680064,10485760,called,false"
    ));
}

#[test]
fn json_carries_the_run_the_verdict_and_every_record() {
    let lab = rich();
    let json: serde_json::Value = serde_json::from_str(&exported(Format::Json, &lab)).unwrap();
    assert_eq!(json["run"]["plan"]["baseline"], "glibc");
    assert_eq!(json["analysis"]["conclusion"]["kind"], "fastest");
    assert_eq!(json["analysis"]["left_out"][0]["allocator"], "hoard");
    assert_eq!(json["records"].as_array().unwrap().len(), lab.records.len());
    let samples = lab
        .records
        .iter()
        .filter(|record| record.purpose == Purpose::Sample)
        .count();
    assert_eq!(samples, 79);
}

/// A number that a correct guest would hardly report.
fn odd() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(u64::MAX / 2),
        0..100_000_000u64
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn odd_data_never_panics_and_never_prints_a_non_number(
        odd in prop::collection::vec((0..40usize, odd(), odd(), odd(), odd()), 0..60),
        blocks in 0..8u32,
        figure in prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(0.0)],
        names in prop::array::uniform2("\\PC{0,8}"),
    ) {
        let mut lab = FakeRun::new(&[&names[0], &names[1]], &["larson", ""], blocks).fill(|_, _, _| 20.0);
        for (place, ops, wall_ns, purge_ns, bytes) in odd {
            let Some(record) = lab.records.get_mut(place) else { continue };
            record.threads = if ops == 1 { 0 } else { record.threads };
            record.block = if ops == 0 { u32::MAX } else { record.block };
            let Some(measurement) = &mut record.measurement else { continue };
            measurement.figures.insert("figure".into(), figure);
            (measurement.peak_rss_bytes, measurement.requested_peak_bytes) = (bytes, purge_ns);
            for iteration in &mut measurement.iterations {
                (iteration.ops, iteration.wall_ns, iteration.purge_ns, iteration.user_ns) = (ops, wall_ns, purge_ns, bytes);
            }
        }
        for text in texts(&lab) {
            prop_assert!(!text.contains("NaN") && !text.contains("inf,") && !text.contains(" inf "), "{}", text);
        }
    }
}
