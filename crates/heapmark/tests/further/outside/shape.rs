//! A small preset is the same workload: it makes the rounds that the document's program makes, and touches what it touches.

use crate::support::{CATALOG, Place};
use heapmark::catalog::Iterations;
use heapmark::catalog::workload::{Preset, Rounds};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Rounds that are measured; as many as fill a time are more than any number.
fn measured(preset: &Preset) -> u32 {
    match preset.iterations {
        Iterations::Fixed(count) => count,
        Iterations::Calibrated(_) => u32::MAX,
    }
}

#[test]
fn no_quick_preset_throws_away_or_repeats_what_the_paper_preset_does_once() {
    let catalog = &*CATALOG;
    assert!(catalog.workloads.len() >= 60, "{}", catalog.workloads.len());
    for workload in &catalog.workloads {
        let (quick, paper) = (&workload.presets["quick"], &workload.presets["paper"]);
        let same = quick.cold <= paper.cold && measured(quick) <= measured(paper);
        // Said in the data: the next round goes on where this one ended.
        assert!(
            same || workload.rounds == Rounds::Continued,
            "{}: {quick:?} {paper:?}",
            workload.name
        );
        // Memory that was used before is measured under a name that says so, or beside nothing that a document has.
        let reuses = paper.cold > 0 || measured(paper) > 1;
        assert!(
            !reuses || workload.variant_of.is_some(),
            "{}",
            workload.name
        );
    }
}

#[test]
fn same_thread_at_quick_size_makes_one_round_on_fresh_memory() {
    let place = Place::new();
    let (library, counts) = (place.text("libcount.so"), place.at("counts"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/count-mallocs/count.c");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-shared", "-fPIC", "-fno-builtin", "-o", &library])
        .arg(source);
    assert!(compiler.status().unwrap().success());
    let folder = place.at("config/heapmark/allocators");
    fs::create_dir_all(&folder).unwrap();
    let entry = format!(
        "name = \"count\"\nfamily = \"count\"\nabout = \"x\"\ntier = \"user\"\n\
         source = {{ kind = \"path\", files = [\"{library}\"] }}\nenvironment = {{ COUNTS = \"{}\" }}\n",
        counts.display()
    );
    fs::write(folder.join("count.toml"), entry).unwrap();
    // One block wakes the allocator. 1,000,000 / (500 / 2) = 4000 blocks and two arrays; after the clock 512 + 256 are looked at.
    for (workload, rounds) in [("same-thread", Some(1)), ("same-thread-reuse", None)] {
        fs::write(&counts, [0; 40]).unwrap();
        let (set, cell) = (
            format!("{workload}.volume=1000000"),
            format!("{workload}@1/b00/count"),
        );
        let flags = [
            "-a",
            "glibc,count",
            "-t",
            "1",
            "--blocks",
            "1",
            "--no-repeat",
        ];
        // What makes one round has no target.
        let target: &[&str] = if rounds.is_some() {
            &[]
        } else {
            &["--target-ms", "5"]
        };
        let end = place.run(
            &[
                &["run", "-w", workload, "--set", &set, "--cell", &cell],
                &flags[..],
                target,
            ]
            .concat(),
        );
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
        let of = |key: &str| {
            end.stdout
                .lines()
                .filter(|line| line.starts_with(key))
                .count() as u64
        };
        let all = of("cold=") + of("iteration=");
        let counted = u64::from_ne_bytes(fs::read(&counts).unwrap()[..8].try_into().unwrap());
        assert_eq!(counted, 1 + all * 4002 + 512 + 256, "{}", end.stdout);
        match rounds {
            Some(rounds) => assert_eq!(
                (of("cold="), of("iteration=")),
                (0, rounds),
                "{}",
                end.stdout
            ),
            // And the variant of this name does throw its first round away.
            None => assert_eq!(of("cold="), 1, "{}", end.stdout),
        }
    }
}

#[test]
fn a_library_that_overwrites_the_first_word_of_live_blocks_is_found_by_scatter() {
    let place = Place::new();
    let library = place.fake("clobberer");
    let folder = place.at("config/heapmark/allocators");
    fs::create_dir_all(&folder).unwrap();
    let faults = [
        ("slots", 1, "the size in front of a live block of"),
        ("batches", 2, "a size in front of one of"),
    ];
    for (clobbers, threads, says) in faults {
        let entry = format!(
            "name = \"{clobbers}\"\nfamily = \"x\"\nabout = \"x\"\ntier = \"user\"\n\
             source = {{ kind = \"path\", files = [\"{}\"] }}\nenvironment = {{ CLOBBERS = \"{clobbers}\" }}\n",
            library.display()
        );
        fs::write(folder.join(format!("{clobbers}.toml")), entry).unwrap();
        let set = [
            "loops=20",
            "blocks=2000",
            "ops=400",
            "min-size=100",
            "cross-rate=1",
        ];
        let set: Vec<String> = set.iter().map(|one| format!("scatter-1.{one}")).collect();
        let (threads, cell) = (
            threads.to_string(),
            format!("scatter-1@{threads}/b00/{clobbers}"),
        );
        let mut flags = vec![
            "run",
            "-a",
            clobbers,
            "-w",
            "scatter-1",
            "-t",
            &threads,
            "--blocks",
            "1",
            "--cell",
            &cell,
        ];
        set.iter().for_each(|one| flags.extend(["--set", one]));
        let end = place.run(&flags);
        assert_eq!(
            end.code,
            Some(4),
            "{clobbers}: {}{}",
            end.stdout,
            end.stderr
        );
        let outcome = end.stdout.lines().last().unwrap();
        assert!(
            outcome.starts_with("outcome: wrong-result: ") && outcome.contains(says),
            "{outcome}"
        );
    }
}

/// An export of one case with these times.
fn rows(place: &Place, name: &str, times: &[(&str, f64)]) -> String {
    let lines: String = times
        .iter()
        .map(|(allocator, ns)| format!("same-thread,1,{allocator},{ns}\n"))
        .collect();
    fs::write(
        place.at(name),
        format!("workload,threads,allocator,ns_per_op\n{lines}"),
    )
    .unwrap();
    place.text(name)
}

#[test]
fn a_small_preset_that_ranks_otherwise_than_the_paper_preset_is_found() {
    let place = Place::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/shape.py");
    let shape = |quick: &[f64; 6], paper: &[f64; 6]| {
        let names = [
            "glibc",
            "jemalloc",
            "mimalloc3",
            "snmalloc",
            "rpmalloc",
            "tcmalloc",
        ];
        let of = |name, times: &[f64; 6]| {
            rows(
                &place,
                name,
                &names.into_iter().zip(*times).collect::<Vec<_>>(),
            )
        };
        let (quick, paper) = (of("quick.csv", quick), of("paper.csv", paper));
        let end = Command::new("python3")
            .arg(&script)
            .args(["--rows", &quick, &paper])
            .output()
            .unwrap();
        (end.status.code(), String::from_utf8(end.stdout).unwrap())
    };
    let paper = [243.0, 122.0, 292.0, 83.0, 85.0, 146.0];
    assert_eq!(shape(&paper, &paper).0, Some(0));
    // What was same-thread's quick preset: its first round thrown away, so that mimalloc3 went from slowest to fastest.
    let (code, told) = shape(&[187.0, 118.0, 22.6, 49.9, 23.7, 151.0], &paper);
    assert!(code == Some(1) && told.contains("BELOW 0.8"), "{told}");
    // That first round itself, which places snmalloc and rpmalloc otherwise: within 15 % at paper size.
    let (code, told) = shape(&[250.0, 120.0, 281.0, 110.0, 82.0, 143.0], &paper);
    assert!(code == Some(0) && told.contains("1.00 over"), "{told}");
    // Where all are alike there is no order; where one has no time, it is not passed over.
    let (code, told) = shape(&[1.0, 1.1, 1.0, 1.1, 1.0, 1.1], &paper);
    assert!(
        code == Some(0) && told.contains("no two allocators are 15 % apart"),
        "{told}"
    );
    let names = ["glibc", "jemalloc", "mimalloc3", "snmalloc"];
    let four = rows(
        &place,
        "four.csv",
        &names.into_iter().zip(paper).collect::<Vec<_>>(),
    );
    let end = Command::new("python3")
        .arg(&script)
        .args(["--rows", &four, &four])
        .output()
        .unwrap();
    assert_eq!(end.status.code(), Some(1));
}

/// A program, the share of malloc in its CPU time, and its time over glibc's by allocator.
type Program<'a> = (&'a str, f64, &'a [(&'a str, f64)]);

/// What `validity.py --values` says of programs with these times over glibc's in twelve blocks. The
/// allocator `odd` takes 2 % less in each odd block and 2 % more in each even one, `even` the reverse.
fn validity(programs: &[Program], answers: &Value) -> String {
    let place = Place::new();
    let log = |allocator: &str, ratio: f64, block: usize| {
        let wave = match (allocator, block % 2) {
            ("odd", 1) | ("even", 0) => -0.02,
            ("odd" | "even", _) => 0.02,
            _ => 0.0,
        };
        json!(ratio.ln() + wave)
    };
    let of_program = |(name, in_malloc, ratios): &Program| {
        let logs = ratios.iter().map(|(allocator, ratio)| {
            let blocks = (0..12).map(|block| (block.to_string(), log(allocator, *ratio, block)));
            ((*allocator).to_owned(), Value::Object(blocks.collect()))
        });
        let bytes = ratios
            .iter()
            .map(|(allocator, _)| ((*allocator).to_owned(), json!(1e6)));
        json!({
            "name": name,
            "about": "",
            "in_pack": false,
            "in_malloc": in_malloc,
            "logs": Value::Object(logs.collect()),
            "bytes": Value::Object(bytes.collect()),
        })
    };
    let programs: Vec<Value> = programs.iter().map(of_program).collect();
    let values = json!({ "programs": programs, "answers": answers });
    fs::write(place.at("values.json"), values.to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/validity.py");
    let end = Command::new("python3")
        .arg(script)
        .args(["--values", &place.text("values.json")])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&end.stderr);
    assert!(end.status.success(), "{errors}");
    String::from_utf8(end.stdout).unwrap()
}

/// The line of a table that begins with this cell.
fn line<'t>(told: &'t str, cell: &str) -> &'t str {
    let begin = format!("| {cell} |");
    let mut lines = told.lines();
    lines
        .find(|line| line.starts_with(&begin))
        .unwrap_or_else(|| panic!("{cell}: {told}"))
}

#[test]
fn a_recommendation_that_costs_time_has_that_regret_and_one_that_does_not_has_none() {
    let ratios: &[(&str, f64)] = &[("glibc", 1.0), ("quick", 0.8), ("slow", 1.2)];
    let order = json!({ "glibc": 1.0, "quick": 0.5, "slow": 2.0 });
    let reversed = json!({ "glibc": 1.0, "quick": 2.0, "slow": 0.5 });
    let answers = json!({ "right": ["quick", order], "wrong": ["slow", reversed] });
    let told = validity(&[("one", 0.2, ratios), ("two", 0.1, ratios)], &answers);
    for (cell, expected) in [
        ("right", "| quick | +0.0 %"),
        ("wrong", "| slow | +50.0 %"),
        ("staying with glibc", "| glibc | +25.0 %"),
        ("one", "+1.00 (3) | -1.00 (3)"),
    ] {
        assert!(line(&told, cell).contains(expected), "{cell}: {told}");
    }
}

#[test]
fn the_best_one_is_not_compared_on_the_blocks_that_it_was_chosen_on() {
    let equals: &[(&str, f64)] = &[("glibc", 1.0), ("odd", 1.0), ("even", 1.0)];
    let told = validity(&[("one", 0.2, equals)], &json!({}));
    // Chosen on the odd blocks, `odd` is worse on the even ones; on its own it would look 2 % better.
    assert!(
        line(&told, "staying with glibc").contains("| glibc | -2.0 %"),
        "{told}"
    );
    // However little of its time is malloc's, a program counts.
    let little = validity(&[("one", 0.01, equals)], &json!({}));
    assert!(
        line(&little, "one").starts_with("| one | yes | 1.0 % |"),
        "{little}"
    );
}
