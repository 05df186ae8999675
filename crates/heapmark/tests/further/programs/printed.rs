//! Programs that only print, through the built binary: what one prints and how it ends decide its outcome, a timed process
//! is the plain program, and what a recipe or a row says wrong is said back.

use crate::support::home::{Home, outcomes, record};
use crate::support::{Place, of_purpose, word};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Prints the text of binary-trees for N without any tree. What `MODE` says goes wrong only at the size that is asked for,
/// not in the small runs for start-up and counts.
const SCRIPT: &str = r#"
n=$1 mode=$2 probe=${3:-plain}
[ -z "$LOG" ] || echo "$n $probe $LD_DEBUG" >> "$LOG"
[ "$n" = 8 ] || mode=good
nodes() { echo $(((2 << $1) - 1)); }
max=$((n < 6 ? 6 : n))
printf 'stretch tree of depth %d\t check: %d\n' $((max + 1)) $(nodes $((max + 1)))
case $mode-$probe in
    crashes-*) kill -SEGV $$ ;;
    # The shell's child must go, too.
    hangs-*) "$NAP" 86400 & wait ;;
    leaves-* | fails-when-timed-plain) exit 3 ;;
esac
for depth in 4 6 8 10 12; do
    [ $depth -le $max ] || continue
    trees=$((1 << (max - depth + 4)))
    [ $mode-$depth != lies-6 ] || trees=$((trees + 1))
    printf '%d\t trees of depth %d\t check: %d\n' $trees $depth $((trees * $(nodes $depth)))
done
[ $mode != stops-early ] || exit 0
printf 'long lived tree of depth %d\t check: %d' $max $(nodes $max)
[ $mode = does-not-end-its-line ] || echo
[ $mode != goes-on ] || echo more
[ $probe = plain ] || echo "figure=probes 1" >&2
"#;

/// A program of that script.
const PROGRAM: &str = "about = \"a test\"\nallocator = \"none\"\nexpects-stdout = \"binary-trees\"\n\
    run = [\"sh\", \"program.sh\", \"{n}\", \"{mode}\"]\nprobe = [\"--probe\"]\n";

/// A workload of size 8 with these keys and rows.
fn workload(keys: &str, rows: &str) -> String {
    let preset = |name: &str| {
        format!("[presets.{name}]\ncold = 0\niterations = 1\nparameters = {{ n = 8 }}\n")
    };
    format!(
        "name = \"w\"\ndocument = \"BT\"\nabout = \"x\"\nshows = \"x\"\nhides = \"x\"\noperation = \"node\"\n\
        {keys}\n[parameters.n]\nabout = \"x\"\nkind = \"count\"\n{}{}{rows}",
        preset("quick"),
        preset("paper")
    )
}

fn row(name: &str, program: &str, more: &str) -> String {
    format!("[[rows]]\nname = \"Test:{name}\"\nprogram = \"{program}\"\n{more}\n")
}

/// The script, and a row for each of these modes.
fn home_with_modes(modes: &[&str]) -> Home {
    let rows: String = modes
        .iter()
        .map(|mode| {
            row(
                mode,
                "test",
                &format!("parameters = {{ mode = \"{mode}\" }}"),
            )
        })
        .collect();
    let home = Home::new();
    home.program("test", PROGRAM, "program.sh", &home.with_nap(SCRIPT))
        .write("workloads/w.toml", &workload("", &rows));
    home
}

const ONLY: [&str; 6] = ["-w", "w", "-t", "1", "-a", "glibc"];

fn run(home: &Home, more: &[&str]) -> Vec<Value> {
    home.run(1, &[&ONLY, more].concat()).1
}

/// What a catalogue says that cannot be used.
fn fault(home: &Home) -> String {
    let end = home.heapmark(&["list", "workloads"]);
    assert_eq!(end.code, Some(1), "{}", end.stdout);
    end.stderr
}

#[test]
fn what_a_process_prints_and_how_it_ends_decide_its_outcome() {
    let modes = [
        "good",
        "crashes",
        "hangs",
        "leaves",
        "lies",
        "stops-early",
        "does-not-end-its-line",
        "goes-on",
    ];
    let home = home_with_modes(&modes);
    let samples = run(&home, &["--timeout", "10"]);
    let outcomes = outcomes(&samples, "check");
    let outcome = |mode: &str| outcomes[&format!("Test:{mode}")].as_str();
    let last = "long lived tree of depth 8\\t check: 511";
    assert_eq!(outcome("good"), "ok");
    assert_eq!(outcome("crashes"), "crash SIGSEGV run");
    assert_eq!(outcome("hangs"), "hang 10.0 run");
    assert_eq!(outcome("leaves"), "exit 3 run");
    let lie = "printed \"65\\t trees of depth 6\\t check: 8255\\n\", expected \"64\\t trees of depth 6\\t check: 8128\\n\"";
    assert_eq!(outcome("lies"), format!("wrong-result {lie}"));
    assert_eq!(
        outcome("stops-early"),
        format!("wrong-result printed nothing more, expected \"{last}\\n\"")
    );
    let unended = format!("wrong-result printed \"{last}\", expected \"{last}\\n\"");
    assert_eq!(outcome("does-not-end-its-line"), unended);
    assert_eq!(
        outcome("goes-on"),
        "wrong-result printed \"more\\n\", expected nothing more"
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
    // By hand for n = 8.
    let (stretch, long_lived, trees) = (1023, 511, 256 * 31 + 64 * 127 + 16 * 511);
    let measurement = &measured[0]["measurement"];
    assert_eq!(
        measurement["iterations"][0]["ops"],
        stretch + long_lived + trees
    );
    assert!(measurement["figures"]["startup_ns"].as_f64().unwrap() > 0.0);
    // Of a hang one wants to know what the program did, not what its launcher did.
    let hang = &record(&samples, "check", "Test:hangs")["outcome"]["threads"];
    assert_eq!(hang.as_array().unwrap().len(), 2, "shell, sleep: {hang}");
    assert!(
        !home.naps(),
        "a child of the program that hung is still there"
    );
}

#[test]
fn a_program_in_the_cache_that_was_changed_is_built_again() {
    let home = home_with_modes(&["good"]);
    let build = || {
        let end = home.heapmark(&["build", "test"]);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        end.stderr
    };
    assert!(build().contains(" built in "));
    let shelf = fs::read_dir(home.at("cache/programs")).unwrap();
    let mut folders = shelf.map(|entry| entry.unwrap().path());
    let built = folders.find(|path| path.join("program.sh").is_file());
    let file = built.unwrap().join("program.sh");
    let whole = fs::read(&file).unwrap();
    assert!(build().contains(" ready "));
    fs::write(&file, "").unwrap();
    let said = build();
    assert!(
        said.contains("is not as it was built: it is built again"),
        "{said}"
    );
    assert_eq!(fs::read(&file).unwrap(), whole);
    // What it writes beside its files changes none of them.
    fs::write(file.with_file_name("written"), "").unwrap();
    assert!(build().contains(" ready "));
}

#[test]
fn what_goes_wrong_in_a_timed_process_only_is_seen_there() {
    let samples = run(&home_with_modes(&["good", "fails-when-timed"]), &[]);
    assert_eq!(outcomes(&samples, "check")["Test:fails-when-timed"], "ok");
    assert_eq!(
        outcomes(&samples, "sample")["Test:fails-when-timed"],
        "exit 3 run"
    );
    assert!(
        record(&samples, "sample", "Test:fails-when-timed")
            .get("measurement")
            .is_none()
    );
}

#[test]
fn a_smallest_run_that_fails_leaves_no_time() {
    let home = home_with_modes(&["good"]);
    home.write(
        "programs/test/program.sh",
        &SCRIPT.replace("[ \"$n\" = 8 ] || mode=good", "[ $n != 6 ] || exit 5"),
    );
    let samples = run(&home, &[]);
    assert_eq!(outcomes(&samples, "sample")["Test:good"], "exit 5 load");
    // Nor a count: it is the difference to that run.
    assert!(record(&samples, "check", "Test:good")["measurement"]["figures"]["malloc_calls_per_operation"].is_null());
}

#[test]
fn a_timed_process_is_the_plain_program_and_only_the_check_watches() {
    let home = home_with_modes(&["good"]);
    let log = home.at("log").display().to_string();
    home.write(
        "programs/test/program.toml",
        &format!("name = \"test\"\n{PROGRAM}environment = {{ LOG = \"{log}\" }}\n"),
    );
    let samples = run(&home, &[]);
    let lines = fs::read_to_string(&log).unwrap();
    let times = |line: &str| {
        lines
            .lines()
            .filter(|known| known.trim_end() == line)
            .count()
    };
    // Sample: the smallest run and the timed one. Check: two counted runs and the one that watches itself.
    assert_eq!(
        (
            times("6 plain"),
            times("8 plain"),
            times("12 plain"),
            times("8 --probe")
        ),
        (2, 1, 1, 1),
        "{lines}"
    );
    let figures =
        |purpose| record(&samples, purpose, "Test:good")["measurement"]["figures"].clone();
    assert_eq!(
        (&figures("check")["probes"], &figures("sample")["probes"]),
        (&1.0.into(), &Value::Null)
    );
}

#[test]
fn a_command_that_cannot_be_started_is_said_with_its_name_and_reason() {
    let home = home_with_modes(&["good"]);
    let gone = PROGRAM.replace("\"sh\", \"program.sh\"", "\"./trees-{mode}\"");
    home.program("gone", &gone, "program.sh", SCRIPT);
    home.program(
        "script",
        &PROGRAM.replace("{n}", "x"),
        "program.sh",
        "exit 127",
    );
    let rows = ["gone", "script"]
        .map(|name| row(name, name, "parameters = { mode = \"fast\" }"))
        .concat();
    let good = row("good", "test", "parameters = { mode = \"good\" }");
    home.write("workloads/w.toml", &workload("", &format!("{good}{rows}")));
    let samples = run(&home, &[]);
    let outcomes = outcomes(&samples, "check");
    let said = &outcomes["Test:gone"];
    assert!(
        said.starts_with("unsupported cannot start /")
            && said.contains("/trees-fast: No such file"),
        "{said}"
    );
    // As a shell says it of a command inside of the program: that is the program's own end.
    assert_eq!(
        (
            outcomes["Test:script"].as_str(),
            outcomes["Test:good"].as_str()
        ),
        ("exit 127 load", "ok")
    );
}

#[test]
fn what_a_recipe_or_a_row_says_wrong_is_said_with_the_way_to_mend_it() {
    let home = home_with_modes(&["good"]);
    home.write("workloads/w.toml", &workload("", &row("x", "test", "")));
    let said = fault(&home);
    assert!(
        said.contains(
            "rows.program: `test` needs the parameter `mode`; give the row `parameters = { mode"
        ),
        "{said}"
    );

    home.write(
        "workloads/w.toml",
        &workload(
            "",
            &row(
                "x",
                "test",
                "parameters = { mode = \"good\" }\nallocator = \"dlmaloc\"",
            ),
        ),
    );
    let said = fault(&home);
    assert!(
        said.contains("rows.allocator: there is no allocator `dlmaloc`; did you mean `dlmalloc`?"),
        "{said}"
    );
    assert!(
        said.contains(
            "`test` has memory of its own: no allocator changes it; remove it from row Test:x"
        ),
        "{said}"
    );

    home.write("workloads/w.toml", &workload("", &row("x", "other", "")));
    let with = |line: &str, file: &str| {
        home.program(
            "other",
            &format!("{PROGRAM}{line}\n").replace("{mode}", "good"),
            file,
            "",
        );
        home.heapmark(&["list", "workloads"])
    };
    assert_eq!(with("", "other.sh").code, Some(0));
    let said = with("probe-run = [\"sh\", \"{mood}\"]", "other.sh").stderr;
    assert!(
        said.contains("`other` needs the parameter `mood`"),
        "{said}"
    );
    let said = with("shares = [\"tset\"]", "other.sh").stderr;
    assert!(
        said.contains("shares: there is no program `tset`; see `heapmark list languages`"),
        "{said}"
    );
    assert_eq!(with("shares = [\"test\"]", "other.sh").code, Some(0));
    let said = with("shares = [\"test\"]", "program.sh").stderr;
    assert!(
        said.contains("`test` and this program both have a file program.sh; rename one"),
        "{said}"
    );

    let silent = PROGRAM
        .replace("expects-stdout = \"binary-trees\"\n", "")
        .replace("{mode}", "good");
    home.program("other", &silent, "other.sh", "");
    let said = fault(&home);
    assert!(
        said.contains("probe: a program that reads a job is told by `check=1`; remove it, or say"),
        "{said}"
    );
}

/// An allocator of the user's own, with these further keys.
fn allocator(home: &Home, name: &str, library: &Path, keys: &str) {
    let source = format!(
        "source = {{ kind = \"path\", files = [\"{}\"] }}",
        library.display()
    );
    let text = format!(
        "name = \"{name}\"\nfamily = \"{name}\"\nabout = \"x\"\ntier = \"user\"\n{source}\n{keys}\n"
    );
    home.write(&format!("allocators/{name}.toml"), &text);
}

#[test]
fn a_row_is_proved_under_the_allocator_that_it_names() {
    let (home, place) = (home_with_modes(&["good"]), Place::new());
    allocator(&home, "mine", &place.fake("honest"), "");
    allocator(&home, "nowhere", &place.at("libnowhere.so"), "");
    let under = |name: &str| row(name, "binary-trees-c", &format!("allocator = \"{name}\""));
    home.write(
        "workloads/w.toml",
        &workload(
            "program = \"binary-trees-c\"",
            &(under("mine") + &under("nowhere")),
        ),
    );
    let samples = run(&home, &[]);
    let outcomes = outcomes(&samples, "check");
    assert_eq!(
        (outcomes["glibc"].as_str(), outcomes["Test:mine"].as_str()),
        ("ok", "ok")
    );
    let said = &outcomes["Test:nowhere"];
    assert!(
        said.starts_with("not-loaded") && said.contains("there is no such file"),
        "{said}"
    );
    let owner = |row: &str| {
        let proof = &record(&samples, "check", row)["proof"];
        word(
            &proof["objects"][proof["owners"]["malloc"].as_u64().unwrap() as usize],
            "path",
        )
        .to_string()
    };
    assert!(
        owner("Test:mine").ends_with("libhonest.so") && owner("glibc").contains("libc"),
        "{}",
        owner("glibc")
    );
    // It serves the row, and is no row itself.
    assert_eq!(crate::support::plan(&home.at("run")).allocators, ["glibc"]);
    assert_eq!(
        crate::support::head(&home.at("run"))["pinned"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn an_allocator_without_locks_serves_programs_and_no_kernel() {
    let (home, place) = (home_with_modes(&["good"]), Place::new());
    allocator(
        &home,
        "lockless",
        &place.fake("honest"),
        "single-threaded = true",
    );
    home.write(
        "workloads/w.toml",
        &workload("program = \"binary-trees-c\"", ""),
    );
    let samples = home
        .run(
            1,
            &[
                "-w",
                "w,churn",
                "-t",
                "1",
                "-a",
                "glibc,lockless",
                "--target-ms",
                "1",
            ],
        )
        .1;
    let outcome = |workload: &str| {
        let of =
            |record: &&Value| record["workload"] == workload && record["allocator"] == "lockless";
        samples
            .iter()
            .find(of)
            .map(|record| record["outcome"].clone())
            .unwrap()
    };
    assert_eq!(outcome("w")["kind"], "ok");
    assert_eq!(outcome("churn")["kind"], "unsupported");
    assert_eq!(
        outcome("churn")["why"],
        "built without locks, for programs of one thread"
    );
}

/// Says how large heapmark itself is, two processes above it.
const MEASURES_HEAPMARK: &str = r#"
parent() { while read -r key value _; do [ "$key" != PPid: ] || echo "$value"; done < /proc/$1/status; }
resident() { while read -r key value _; do [ "$key" != VmRSS: ] || echo "$value"; done < /proc/$1/status; }
[ -z "$3" ] || echo "figure=heapmark_rss_bytes $(($(resident $(parent $PPID)) * 1024))" >&2
"#;

/// Lets the script print, and is large itself.
const TAKES_24_MIB: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
    char *block = malloc(24 << 20), command[100];
    memset(block, 1, 24 << 20);
    snprintf(command, sizeof command, "sh program.sh %s good", words[1]);
    return block[count] != 1 || system(command) != 0;
}
"#;

#[test]
fn peak_memory_is_the_processs_own_and_not_that_of_heapmark() {
    const LARGE: usize = 12 << 20;
    let home = home_with_modes(&["good"]);
    home.write(
        "programs/test/program.sh",
        &format!("{MEASURES_HEAPMARK}{SCRIPT}"),
    );
    let toml = "about = \"a test\"\nallocator = \"none\"\nexpects-stdout = \"binary-trees\"\nshares = [\"test\"]\n\
        build = [[\"cc\", \"takes.c\", \"-o\", \"takes\"]]\nrun = [\"./takes\", \"{n}\"]\n";
    home.program("takes", toml, "takes.c", TAKES_24_MIB);
    // A row whose description keeps heapmark large as long as it runs.
    let about = "x".repeat(LARGE);
    let rows = row(
        "good",
        "test",
        &format!("parameters = {{ mode = \"good\" }}\nabout = \"{about}\""),
    );
    home.write(
        "workloads/w.toml",
        &workload("", &(rows + &row("takes", "takes", ""))),
    );
    let samples = run(&home, &[]);
    let peak = |row| {
        record(&samples, "sample", row)["measurement"]["peak_rss_bytes"]
            .as_f64()
            .unwrap()
    };
    let heapmark =
        record(&samples, "check", "Test:good")["measurement"]["figures"]["heapmark_rss_bytes"]
            .as_f64()
            .unwrap();
    assert!(
        heapmark > LARGE as f64,
        "the plant is not there: {heapmark}"
    );
    let script = peak("Test:good");
    assert!(
        0.0 < script && script < LARGE as f64 / 2.0,
        "{script} of a script below {heapmark}"
    );
    let mib = peak("Test:takes") / f64::from(1 << 20);
    assert!(
        (24.0..36.0).contains(&mib),
        "{mib} MiB of a program that takes 24"
    );
}
