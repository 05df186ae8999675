//! Programs as measured things, through the built binary: what a program does decides its outcome, and a row of a program
//! stands beside the allocators without entering their verdict.

use crate::support::home::{Home, outcomes, record};
use crate::support::of_purpose;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Reads its job and then does what `param.mode` says.
const SCRIPT: &str = r#"
while IFS= read -r line; do
    case "$line" in
        param.mode=*) mode=${line#*=} ;;
        iterations=*) iterations=${line#*=} ;;
        cold=*) cold=${line#*=} ;;
    esac
done
echo phase=run
expected="10 10 0 0 7"
case $mode in
    crashes) kill -SEGV $$ ;;
    # The shell's child must go, too.
    hangs) "$NAP" 86400 & wait ;;
    says-nothing) exit 0 ;;
    leaves) exit 3 ;;
    gives-up) echo "fail=oom no room for the tree"; exit 86 ;;
    refuses) echo "fail=unsupported no device"; exit 86 ;;
    lies) expected="10 11 0 0 7" ;;
    says-less) expected="10 10 0 0 7 8" ;;
    measures-nothing) iterations=0 cold=1 ;;
    repeats) iterations=$((iterations + 1)) ;;
    prints-its-environment) env >&2; exit 3 ;;
esac
while [ "$cold" -gt 0 ]; do echo "cold=3000000 0 1000 0 1 20"; cold=$((cold - 1)); done
while [ "$iterations" -gt 0 ]; do echo "iteration=2000000 0 1000 0 1 20"; iterations=$((iterations - 1)); done
echo "done=10 10 0 0 7"
echo "expected=$expected"
echo "peak_rss_bytes=4096"
echo "figure=trees 5"
"#;

const PROGRAM: &str = "about = \"a test\"\nallocator = \"none\"\nrun = [\"sh\", \"program.sh\"]\n";

/// `workload` with churn's parameters, so that a kernel can stand beside programs.
fn workload(name: &str, runs: &str, rows: &str) -> String {
    let churn = include_str!("../../../../../workloads/llheap/churn.toml");
    let alone = &churn[..churn.find("[[variants]]").unwrap()];
    let named = alone.replace("name = \"churn\"\n", &format!("name = \"{name}\"\n"));
    named
        .replace("kernel = \"churn\"\n", runs)
        .replace("[parameters.spots]", &format!("{rows}\n[parameters.spots]"))
        .replace("iterations = \"calibrated\"", "iterations = 2")
        .replace("100_000", "1000")
}

/// The script as a program, and a workload with one row for each of these modes.
fn home_with_modes(runs: &str, modes: &[&str]) -> Home {
    let home = Home::new();
    let row = |mode: &&str| {
        format!(
            "[[rows]]\nname = \"Test:{mode}\"\nprogram = \"test\"\nparameters = {{ mode = \"{mode}\" }}\n"
        )
    };
    let rows: String = modes.iter().map(row).collect();
    let workload = workload("w", runs, &rows);
    home.program("test", PROGRAM, "program.sh", &home.with_nap(SCRIPT))
        .write("workloads/w.toml", &workload);
    home
}

fn checks(records: &[Value]) -> BTreeMap<String, String> {
    outcomes(records, "check")
}

#[test]
fn what_a_program_does_decides_its_outcome() {
    let home = home_with_modes(
        "",
        &[
            "good",
            "crashes",
            "hangs",
            "says-nothing",
            "leaves",
            "gives-up",
            "refuses",
            "lies",
            "says-less",
            "measures-nothing",
            "repeats",
        ],
    );
    let (_, samples) = home.run(2, &["-w", "w", "-t", "1", "-a", "glibc", "--timeout", "10"]);
    let outcomes = checks(&samples);
    let outcome = |mode: &str| outcomes[&format!("Test:{mode}")].as_str();
    assert_eq!(outcome("good"), "ok");
    assert_eq!(outcome("crashes"), "crash SIGSEGV run");
    assert_eq!(outcome("hangs"), "hang 10.0 run");
    assert_eq!(outcome("says-nothing"), "exit 0 run");
    assert_eq!(outcome("leaves"), "exit 3 run");
    assert_eq!(outcome("gives-up"), "oom no room for the tree in phase run");
    assert_eq!(outcome("refuses"), "unsupported no device");
    assert_eq!(outcome("lies"), "wrong-result free 10, expected 11");
    assert_eq!(
        outcome("says-less"),
        "wrong-result `10 10 0 0 7`, expected `10 10 0 0 7 8`"
    );
    assert_eq!(
        outcome("measures-nothing"),
        "wrong-result no operation was measured"
    );
    assert_eq!(
        outcome("repeats"),
        "wrong-result 0 cold and 2 measured iterations, expected 0 and 1"
    );
    // Only who passed the check is measured.
    let measured = of_purpose(&samples, "sample");
    assert!(
        !measured.is_empty()
            && measured
                .iter()
                .all(|record| record["allocator"] == "Test:good"),
        "{measured:?}"
    );
    for record in measured {
        let measurement = &record["measurement"];
        assert_eq!(
            measurement["iterations"].as_array().unwrap().len(),
            3,
            "{record}"
        );
        assert_eq!(measurement["iterations"][1]["wall_ns"], 2_000_000);
        assert_eq!(measurement["figures"]["trees"], 5.0);
    }
    assert!(
        !home.naps(),
        "a child of the program that hung is still there"
    );
}

#[test]
fn a_programs_row_stands_beside_the_allocators_and_never_in_their_verdict() {
    let home = home_with_modes("kernel = \"churn\"\n", &["good", "crashes"]);
    let (out, samples) = home.run(2, &["-w", "w", "-t", "1", "-a", "glibc"]);
    assert!(
        out.contains("Test:crashes: crash 1 of 1: SIGSEGV in phase run")
            && out.contains("time / glibc"),
        "{out}"
    );
    let json = home.heapmark(&["export", "run", "--to", "json"]);
    let analysis = &serde_json::from_str::<Value>(&json.stdout).unwrap()["analysis"];
    let rows = analysis["cases"][0]["rows"].as_array().unwrap();
    let row = rows
        .iter()
        .find(|row| row["allocator"] == "Test:good")
        .unwrap();
    let numbers = &row["state"];
    // 2 ms for 20 operations of one thread.
    assert_eq!(numbers["time"]["spread"]["median"], 100_000.0, "{row}");
    assert_eq!(
        (&row["role"], &numbers["time"]["ratio"]["pairs"]),
        (&"program".into(), &2.into()),
        "{row}"
    );
    assert_eq!(
        (
            &analysis["conclusion"]["kind"],
            &analysis["conclusion"]["allocator"]
        ),
        (&"only-one".into(), &"glibc".into())
    );
    assert_eq!(
        (&analysis["unplanned"], &analysis["left_out"]),
        (&0.into(), &Value::Array(Vec::new()))
    );
    // In each block every row ran once.
    let block = |number: u64| {
        let of_block = |record: &&Value| record["purpose"] == "sample" && record["block"] == number;
        samples
            .iter()
            .filter(of_block)
            .filter_map(|record| record["allocator"].as_str())
            .collect::<Vec<_>>()
    };
    for number in [0, 1] {
        let mut names = block(number);
        names.sort_unstable();
        assert_eq!(names, ["Test:good", "glibc"]);
    }
}

/// Two figures of the script.
const FIGURES: &str = r#"
[[figures]]
key = "trees"
noun = "trees"
unit = "count"
better = "higher"
mode = "time"
judged = true
about = "trees that a process plants"
column = "planted"
legend = "planted: trees of a process."

[[figures]]
key = "tree_ns"
noun = "time of a tree"
unit = "ns"
about = "time that a tree takes"
"#;

#[test]
fn the_figures_of_a_users_workload_have_columns_legends_and_lines_in_files() {
    let mut text = workload("w", "", "");
    for mode in ["good", "better"] {
        text += &format!(
            "\n[[rows]]\nname = \"Test:{mode}\"\nprogram = \"test\"\nparameters = {{ mode = \"{mode}\" }}\n"
        );
    }
    let script = SCRIPT.replace(
        "figure=trees 5\"",
        "figure=tree_ns 1500\"\ncase $mode in better) echo \"figure=trees 8\" ;; *) echo \"figure=trees 5\" ;; esac",
    );
    let home = Home::new();
    home.program("test", PROGRAM, "program.sh", &script)
        .write("workloads/w.toml", &(text.clone() + FIGURES));
    let (out, _) = home.run(3, &["-w", "w", "-t", "1", "-a", "glibc"]);
    let all = home.heapmark(&["show", "--full", "run"]).stdout;
    for told in ["planted", "by planted", "planted: trees of a process."] {
        assert!(all.contains(told), "{told}: {all}");
    }
    assert!(!out.contains("time of a tree"), "{out}");

    let csv = home.heapmark(&["export", "run", "--to", "csv"]).stdout;
    let line = |metric: &str| {
        csv.lines()
            .find(|line| line.contains("Test:better") && line.contains(metric))
            .unwrap_or_else(|| panic!("{metric}: {csv}"))
    };
    assert!(line(",trees,").contains(",count,8.0,"), "{csv}");
    assert!(line(",tree_ns,").contains(",ns,1500.0,"), "{csv}");
    // Of the two only the judged one can decide.
    let judged = home.heapmark(&["compare", "run", "--by", "x"]).stderr;
    assert!(
        judged.contains(", trees,") && !judged.contains("tree_ns"),
        "{judged}"
    );
    let listed = home.heapmark(&["list", "metrics"]).stdout;
    assert!(listed.contains("trees that a process plants"), "{listed}");

    // The run is shown by another heapmark, which does not know them; a taken name is refused.
    home.write("workloads/w.toml", &text);
    let shown = home.heapmark(&["show", "run"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(!shown.stdout.contains("planted"), "{}", shown.stdout);
    let taken = FIGURES.replace("\"tree_ns\"", "\"wall_ns\"");
    home.write("workloads/w.toml", &(text + &taken));
    let refused = home.heapmark(&["list", "metrics"]);
    assert!(
        refused
            .stderr
            .contains("w.toml: w: figures.wall_ns: there is another metric"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_program_gets_its_own_environment_and_its_rows_and_nothing_else() {
    let home = Home::new();
    let row = "[[rows]]\nname = \"Test:env\"\nprogram = \"test\"\nparameters = { mode = \"prints-its-environment\" }\n\
        environment = { OF_THE_ROW = \"1\" }\n";
    home.program(
        "test",
        &format!("{PROGRAM}environment = {{ OF_THE_PROGRAM = \"2\" }}\n"),
        "program.sh",
        SCRIPT,
    );
    home.write("workloads/w.toml", &workload("w", "", row));
    let (_, samples) = home.run(2, &["-w", "w", "-t", "1", "-a", "glibc"]);
    let record = record(&samples, "check", "Test:env");
    let environment: Vec<&String> = record["environment"].as_object().unwrap().keys().collect();
    assert_eq!(
        environment,
        ["HEAPMARK_PADDING", "OF_THE_PROGRAM", "OF_THE_ROW"]
    );
    let said = record["stderr"].as_str().unwrap();
    assert!(
        said.contains("OF_THE_ROW=1")
            && said.contains("OF_THE_PROGRAM=2")
            && !said.contains("HOME="),
        "{said}"
    );
}

#[test]
fn what_a_program_needs_and_is_not_there_is_named_with_the_line_that_brings_it() {
    let home = Home::new();
    let need =
        "[[needs]]\nwhat = \"libnowhere\"\nprobe = [\"false\"]\npackage = \"libnowhere-dev\"\n";
    home.program("lacking", &format!("{PROGRAM}{need}"), "program.sh", SCRIPT);
    home.program(
        "broken",
        &format!("{PROGRAM}build = [[\"sh\", \"-c\", \"echo no such thing >&2; exit 1\"]]\n"),
        "x",
        "",
    );
    let row = "[[rows]]\nname = \"Test:lacking\"\nprogram = \"lacking\"\n";
    home.write("workloads/w.toml", &workload("w", "", row));

    let states = home.programs();
    assert_eq!(states["lacking"], "absent");
    assert_eq!(states["broken"], "not built");

    let built = home.heapmark(&["build", "broken"]);
    assert_eq!(built.code, Some(1));
    assert!(built.stderr.contains("no such thing"), "{}", built.stderr);

    let (_, samples) = home.run(2, &["-w", "w", "-t", "1", "-a", "glibc"]);
    let outcome = &checks(&samples)["Test:lacking"];
    assert_eq!(
        outcome,
        "absent libnowhere is not there; apt-get install libnowhere-dev"
    );
}

#[test]
fn a_program_is_built_once_and_again_when_a_file_of_it_changes() {
    let home = home_with_modes("", &["good"]);
    let said = |home: &Home| home.heapmark(&["build", "test"]).stderr;
    assert!(said(&home).contains("built in"));
    assert!(said(&home).contains("ready"));
    home.write(
        "programs/test/program.sh",
        &SCRIPT.replace("phase=run", "phase=cold"),
    );
    assert!(said(&home).contains("built in"));
}

/// Takes and returns memory, and says so.
const MALLOC: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    for (int i = 0; i < 10; i++) free(*(void *volatile[]){malloc(100)});
    char line[256];
    int cold = 0, iterations = 0;
    while (fgets(line, sizeof line, stdin)) sscanf(line, "cold=%d", &cold), sscanf(line, "iterations=%d", &iterations);
    while (cold-- > 0) printf("cold=1000 0 1000 0 0 20\n");
    while (iterations-- > 0) printf("iteration=1000 0 1000 0 0 20\n");
    printf("done=10 10 0 0 0\nexpected=10 10 0 0 0\n");
}
"#;

fn counting_library(folder: &Path) -> PathBuf {
    let library = folder.join("libcount.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/count-mallocs/count.c");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-shared", "-fPIC", "-fno-builtin", "-o"])
        .arg(&library)
        .arg(source);
    assert!(compiler.status().unwrap().success());
    library
}

#[test]
fn a_program_that_takes_its_memory_from_malloc_is_proved_under_each_allocator() {
    let home = Home::new();
    let toml = |flag: &str| {
        format!(
            "about = \"a test\"\nallocator = \"any\"\nrun = [\"./a.out\"]\nbuild = [[\"cc\", \"-O1\", \"-fno-builtin\"{flag}, \"a.c\"]]\n"
        )
    };
    home.program("shared", &toml(""), "a.c", MALLOC).program(
        "static",
        &toml(", \"-static\""),
        "a.c",
        MALLOC,
    );
    for name in ["shared", "static"] {
        let runs = format!("program = \"{name}\"\n");
        home.write(
            &format!("workloads/{name}.toml"),
            &workload(name, &runs, ""),
        );
    }
    let library = counting_library(&home.at(""));
    let library = format!("count={}", library.display());
    let (_, samples) = home.run(
        2,
        &["-w", "shared", "-t", "1", "-a", &format!("glibc,{library}")],
    );
    assert_eq!(
        checks(&samples),
        BTreeMap::from([("count".into(), "ok".into()), ("glibc".into(), "ok".into())])
    );
    let owner = |name: &str| {
        let record = record(&samples, "check", name);
        let place = record["proof"]["owners"]["malloc"].as_u64().unwrap() as usize;
        record["proof"]["objects"][place]["path"]
            .as_str()
            .unwrap()
            .to_string()
    };
    assert!(owner("count").ends_with("libcount.so") && owner("glibc").ends_with("libc.so.6"));
    // The proof costs time, so measured processes go without.
    assert!(
        samples
            .iter()
            .all(|record| record["purpose"] == "check"
                || record["environment"]["LD_DEBUG"].is_null())
    );

    let (_, samples) = home.run(
        2,
        &["-w", "static", "-t", "1", "-a", &format!("glibc,{library}")],
    );
    assert!(
        checks(&samples)["count"].starts_with("not-loaded"),
        "{:?}",
        checks(&samples)
    );
    assert!(
        samples
            .iter()
            .all(|record| record["purpose"] != "sample" || record["allocator"] != "count")
    );
}

#[test]
fn a_workload_that_names_an_unknown_program_says_which_one_was_meant() {
    let home = Home::new();
    let row = "[[rows]]\nname = \"x\"\nprogram = \"zalloc-pmkd\"\n";
    home.write(
        "workloads/w.toml",
        &workload(
            "w",
            "program = \"zalloc-pmdk\"\n",
            &row.replace("\"x\"", "\"X\""),
        ),
    );
    let said = home.heapmark(&["list", "workloads"]).stderr;
    assert!(
        said.contains("did you mean `zalloc-pmdk`?") && said.contains("make it a row"),
        "{said}"
    );
    home.write("workloads/w.toml", &workload("w", "", row));
    let said = home.heapmark(&["list", "workloads"]).stderr;
    assert!(said.contains("`x` could be an allocator's name"), "{said}");
}
