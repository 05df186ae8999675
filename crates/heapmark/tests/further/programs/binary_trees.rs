//! The programs of binary-trees as they are: every row whose language is here prints the exact text, calls malloc as often as
//! its nodes say, and tells of pauses where it can. The first run builds some twenty executables, later ones use the cache.

use crate::support::home::{Home, outcomes, record};
use crate::support::{head, of_purpose, word};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// Rows whose languages `scripts/setup.sh test` brings.
const MUST_BE_HERE: [&str; 9] = [
    "Boehm:4-markers",
    "Boehm:free",
    "C++:unique_ptr",
    "Rust:Box",
    "tiny-gc (own)",
    "OCaml",
    "Nim:ORC",
    "Nim:Boehm",
    "D:class",
];

/// One run of all rows, and what it was made of.
struct Run {
    states: BTreeMap<String, String>,
    head: Value,
    records: Vec<Value>,
}

impl Run {
    fn of(n: u32) -> Run {
        let home = Home::with_the_shared_cache();
        let size = format!("binary-trees.n={n}");
        let (_, records) = home.run(
            1,
            &[
                "-w",
                "binary-trees",
                "-t",
                "1",
                "-a",
                "glibc",
                "--set",
                &size,
            ],
        );
        Run {
            states: home.programs(),
            head: head(&home.at("run")),
            records,
        }
    }

    /// Row and program, for all rows but the allocators'.
    fn rows(&self) -> impl Iterator<Item = (&str, &str)> {
        let rows = self.head["plan"]["cases"][0]["rows"].as_array().unwrap();
        rows.iter()
            .map(|row| (word(row, "name"), word(row, "program")))
    }

    fn is_absent(&self, program: &str) -> bool {
        self.states[program].starts_with("absent")
    }

    /// The rows that can be here, by what their checks told.
    fn told(&self) -> BTreeMap<&str, &Value> {
        let here = self
            .rows()
            .filter(|(_, program)| !self.is_absent(program))
            .map(|(row, _)| row);
        here.chain(["glibc"])
            .map(|row| {
                (
                    row,
                    &record(&self.records, "check", row)["measurement"]["figures"],
                )
            })
            .collect()
    }

    fn program(&self, name: &str) -> &Value {
        self.head["programs"]
            .as_array()
            .unwrap()
            .iter()
            .find(|program| program["name"] == *name)
            .unwrap()
    }

    /// Every process ended `ok`, except where a toolchain is not here: then there is no process, and the reason is said.
    fn is_whole(&self) {
        let (checks, samples) = (
            outcomes(&self.records, "check"),
            outcomes(&self.records, "sample"),
        );
        assert_eq!(
            (checks["glibc"].as_str(), samples["glibc"].as_str()),
            ("ok", "ok")
        );
        for (row, program) in self.rows() {
            if self.is_absent(program) {
                assert!(
                    !MUST_BE_HERE.contains(&row),
                    "{row} is not here: run scripts/setup.sh test"
                );
                assert!(checks[row].starts_with("absent "), "{row}: {}", checks[row]);
                assert!(!samples.contains_key(row), "{row} was measured");
            } else {
                assert_eq!(
                    (checks[row].as_str(), samples.get(row).map(String::as_str)),
                    ("ok", Some("ok")),
                    "{row}"
                );
            }
        }
        assert!(
            MUST_BE_HERE
                .iter()
                .all(|name| self.rows().any(|(row, _)| row == *name))
        );
    }
}

static TEN: LazyLock<Run> = LazyLock::new(|| Run::of(10));

/// Nodes of a complete tree.
fn nodes(depth: u32) -> u64 {
    (1 << (depth + 1)) - 1
}

/// Number and depth of the trees that come and go beside the long-lived one, as in BT.
fn trees(n: u32) -> impl Iterator<Item = (u64, u32)> {
    (4..=n)
        .step_by(2)
        .map(move |depth| (1 << (n - depth + 4), depth))
}

fn released(n: u32) -> u64 {
    nodes(n + 1)
        + trees(n)
            .map(|(count, depth)| count * nodes(depth))
            .sum::<u64>()
}

fn text(n: u32) -> String {
    let line = |(count, depth)| {
        format!(
            "{count}\t trees of depth {depth}\t check: {}\n",
            count * nodes(depth)
        )
    };
    let stretch = format!(
        "stretch tree of depth {}\t check: {}\n",
        n + 1,
        nodes(n + 1)
    );
    let long_lived = format!("long lived tree of depth {n}\t check: {}\n", nodes(n));
    stretch + &trees(n).map(line).collect::<String>() + &long_lived
}

#[test]
fn every_row_whose_language_is_here_does_its_work() {
    TEN.is_whole();
    let sample = record(&TEN.records, "sample", "glibc");
    assert_eq!(
        sample["measurement"]["iterations"][0]["ops"],
        released(10) + nodes(10)
    );
}

#[test]
#[ignore = "make test-all"]
fn and_so_it_does_at_the_size_of_the_quick_preset() {
    let run = Run::of(16);
    run.is_whole();
    let sample = record(&run.records, "sample", "OCaml");
    assert_eq!(
        sample["measurement"]["iterations"][0]["ops"],
        released(16) + nodes(16)
    );
    // A row may have a size of its own, and then counts its own nodes.
    if !run.is_absent("binary-trees-python") {
        let sample = record(&run.records, "sample", "Python");
        assert_eq!(
            sample["measurement"]["iterations"][0]["ops"],
            released(12) + nodes(12)
        );
    }
}

#[test]
fn nodes_come_from_malloc_where_a_row_says_so_and_nowhere_else() {
    let calls = |row: &str| {
        TEN.told()[row]["malloc_calls_per_operation"]
            .as_f64()
            .unwrap_or_else(|| panic!("{row}"))
    };
    let from_malloc = |row: &str| {
        row == "glibc"
            || ["C:", "C++:", "Rust:", "tiny-gc"]
                .iter()
                .any(|start| row.starts_with(start))
            || row.ends_with("-malloc")
    };
    for row in TEN.told().into_keys() {
        let calls = calls(row);
        let expected = if from_malloc(row) {
            0.99..1.01
        } else {
            -0.01..0.01
        };
        assert!(
            expected.contains(&calls),
            "{row}: {calls} calls for each node"
        );
    }
}

#[test]
fn the_rows_of_2019_build_a_long_lived_tree_of_one_level_more() {
    let home = Home::with_the_shared_cache();
    let java = &home.programs()["binary-trees-java"];
    if java.starts_with("absent") {
        println!("{java}");
        return;
    }
    let arguments = [
        "-w",
        "binary-trees-2019",
        "-t",
        "1",
        "-a",
        "glibc",
        "--set",
        "binary-trees-2019.n=10",
    ];
    let (_, records) = home.run(1, &arguments);
    let nodes_of = |row| {
        record(&records, "sample", row)["measurement"]["iterations"][0]["ops"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(nodes_of("glibc"), released(10) + nodes(10));
    assert_eq!(nodes_of("Java:G1-2019"), released(10) + nodes(11));
}

/// What a process calls, in the order of the counting library: malloc, free, calloc, realloc, aligned.
fn counts(program: &Value, mode: &str, n: u32, of: &str) -> [u64; 5] {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("counts");
    fs::write(&file, [0; 40]).unwrap();
    let words = program["executable"]["command"].as_array().unwrap().iter();
    let words: Vec<String> = words
        .map(|word| {
            word.as_str()
                .unwrap()
                .replace("{n}", &n.to_string())
                .replace("{mode}", mode)
        })
        .collect();
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env("LD_PRELOAD", word(program, "counter"))
        .env("COUNTS", &file)
        .env("COUNTS_OF", of);
    let output = command.output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        text(n),
        "{words:?}"
    );
    let bytes = fs::read(file).unwrap();
    std::array::from_fn(|i| u64::from_ne_bytes(bytes[i * 8..i * 8 + 8].try_into().unwrap()))
}

#[test]
fn c_calls_malloc_once_for_each_node_and_free_for_all_but_the_long_lived_tree() {
    for n in [6, 10, 13] {
        let counted = counts(TEN.program("binary-trees-c"), "", n, "program");
        assert_eq!(
            counted,
            [released(n) + nodes(n), released(n), 0, 0, 0],
            "n = {n}"
        );
    }
}

/// Their libraries call malloc for them, and at the start for themselves: that is the same at every size.
#[test]
fn cpp_and_rust_call_malloc_and_free_as_often_as_c() {
    let modes =
        ["unique", "shared-value", "shared-reference"].map(|mode| ("binary-trees-cpp", mode));
    for (program, mode) in modes.into_iter().chain([("binary-trees-rust", "")]) {
        let of = |n| counts(TEN.program(program), mode, n, "all");
        let (small, large) = (of(6), of(10));
        let more: Vec<u64> = large
            .iter()
            .zip(small)
            .map(|(large, small)| large - small)
            .collect();
        let released = released(10) - released(6);
        assert_eq!(
            more,
            [released + nodes(10) - nodes(6), released, 0, 0, 0],
            "{program} {mode}"
        );
    }
}

#[test]
fn pauses_and_releases_are_told_where_a_runtime_can_tell() {
    const RELEASE: [&str; 12] = [
        "glibc",
        "C:dlmalloc-nolock",
        "C++:unique_ptr",
        "C++:shared_ptr-by-value",
        "C++:shared_ptr-by-reference",
        "Rust:Box",
        "Boehm:free",
        "Nim:ARC",
        "Nim:ORC",
        "Nim:ARC-malloc",
        "Nim:ORC-malloc",
        "Python",
    ];
    const TELL_NOTHING: [&str; 2] = ["Nim:refc", "Nim:mark-sweep"];
    for (row, figures) in TEN.told() {
        let figure = |name: &str| figures[name].as_f64();
        assert_eq!(
            figure("releases").is_some(),
            RELEASE.contains(&row),
            "{row}"
        );
        assert_eq!(
            figure("release_max_ns").is_some(),
            RELEASE.contains(&row),
            "{row}"
        );
        let pauses = !TELL_NOTHING.contains(&row) && (row == "Python" || !RELEASE.contains(&row));
        assert_eq!(figure("pauses").is_some(), pauses, "{row}");
        if figure("pauses").is_some_and(|pauses| pauses > 0.0) {
            assert!(figure("pause_max_ns").unwrap() > 0.0, "{row}");
        }
        assert!(
            figure("depth_4_longest_build_ns").is_some_and(|ns| ns > 0.0),
            "{row}"
        );
    }
    // Every tree but the long-lived one is released, and each release is timed.
    let releases = 1 + trees(10).map(|(count, _)| count).sum::<u64>();
    assert_eq!(
        TEN.told()["glibc"]["releases"].as_f64(),
        Some(releases as f64)
    );
    // These three collect even at this size.
    for row in ["Boehm:4-markers", "tiny-gc (own)", "Nim:Boehm"] {
        assert!(TEN.told()[row]["pauses"].as_f64().unwrap() > 0.0, "{row}");
    }
    let watched = of_purpose(&TEN.records, "sample");
    assert!(
        watched
            .iter()
            .all(|record| record["measurement"]["figures"].as_object().unwrap().len() == 1),
        "startup_ns only"
    );
}

#[test]
fn a_row_whose_collector_is_not_what_its_name_says_has_no_number() {
    let markers = &TEN.told()["Boehm:4-markers"]["markers"];
    assert_eq!(markers, 4.0);
    let home = Home::with_the_shared_cache();
    let ours = include_str!("../../../../../workloads/binary-trees/binary-trees.toml");
    let top = &ours[..ours.find("[[rows]]").unwrap()];
    let top = top.replace(
        "name = \"binary-trees\"\nprogram = \"binary-trees-c\"\n",
        "name = \"w\"\n",
    );
    let row = |markers: u32| {
        format!(
            "[[rows]]\nname = \"{markers} markers\"\nprogram = \"binary-trees-boehm\"\nparameters = {{ mode = \"collect\" }}\n\
            environment = {{ GC_MARKERS = \"4\" }}\nexpects = {{ markers = {markers} }}\n"
        )
    };
    home.write("workloads/w.toml", &format!("{top}{}{}", row(4), row(5)));
    let (out, records) = home.run(1, &["-w", "w", "-t", "1", "-a", "glibc", "--set", "w.n=10"]);
    let outcomes = outcomes(&records, "check");
    assert_eq!(outcomes["4 markers"], "ok");
    assert_eq!(
        outcomes["5 markers"],
        "unsupported markers is 4 here, and this row stands for 5"
    );
    assert!(
        out.contains("5 markers: unsupported 1 of 1: markers is 4 here"),
        "{out}"
    );
    let measured: BTreeSet<&str> = of_purpose(&records, "sample")
        .into_iter()
        .map(|one| word(one, "allocator"))
        .collect();
    assert_eq!(measured, BTreeSet::from(["4 markers"]));
}

#[test]
fn tiny_gc_loses_nothing_and_keeps_no_garbage() {
    let folder = Path::new(word(
        &TEN.program("binary-trees-tiny-gc")["executable"],
        "folder",
    ))
    .to_path_buf();
    let output = Command::new(folder.join("stress")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.starts_with("stress: all well after"),
        "{said}"
    );
}
