//! `heapmark try --age`: a library ages the heap of the command's program, with the sizes that this program requests.

use crate::support::home::record;
use crate::support::tried::{note, run};
use crate::support::{Place, of_purpose, word};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

/// 8000 pairs of malloc and free, in two sizes, while 1000 blocks of 500 bytes live.
const PAIRS: &str = r#"
#include <stdlib.h>
int main(void) {
    static void *volatile kept[1000], *volatile block;
    for (int i = 0; i < 1000; i++) kept[i] = malloc(500);
    for (int i = 0; i < 8000; i++) {
        block = malloc(i % 4 ? 40 : 72);
        free(block);
    }
    for (int i = 0; i < 1000; i++) free(kept[i]);
    return 0;
}
"#;

fn pairs(place: &Place) -> PathBuf {
    let (source, program) = (place.at("pairs.c"), place.at("pairs"));
    fs::write(&source, PAIRS).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-fno-builtin", "-o"])
        .args([&program, &source]);
    assert!(compiler.status().unwrap().success());
    program
}

fn timed<'a>(records: &'a [Value], workload: &str, allocator: &str) -> Vec<&'a Value> {
    let all = of_purpose(records, "sample").into_iter();
    let own = all.filter(|record| {
        [word(record, "workload"), word(record, "allocator")] == [workload, allocator]
    });
    let found: Vec<&Value> = own.map(|record| &record["measurement"]).collect();
    assert_eq!(found.len(), 2, "{workload} {allocator}");
    found
}

fn faults(measurements: &[&Value]) -> u64 {
    let faults = |one: &&Value| one["iterations"][0]["minor_faults"].as_u64().unwrap();
    measurements.iter().map(faults).sum()
}

#[test]
fn a_program_is_aged_with_its_own_sizes_and_a_library_whose_calls_take_longer_with_age_shows() {
    let place = Place::new();
    let program = pairs(&place);
    let walker = format!("glibc,walker={}", place.fake("list_walker").display());
    let command = program.display().to_string();
    let (end, records) = run(&place, &["--age", "50", "-a", &walker, "--", &command]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    for words in [
        "heap aged to 50 %",
        "aged / fresh",
        "MiB live, and holds: glibc",
        "at the end of the process",
    ] {
        assert!(end.says(words), "{words}: {}", end.stdout);
    }

    let [device, inode] = fs::metadata(&program)
        .map(|it| [it.dev(), it.ino()])
        .unwrap();
    assert_eq!(
        note(&records, "glibc", "aged_program"),
        format!(
            "{device} {inode} {}",
            fs::canonicalize(&program).unwrap().display()
        )
    );
    let sizes = note(&records, "glibc", "sizes");
    for class in ["40:6000", "72:2000"] {
        assert!(sizes.split(',').any(|found| found == class), "{sizes}");
    }
    let check = &record(&records, "check", "glibc")["measurement"]["figures"];
    let most_live = check["most_live_bytes"].as_f64().unwrap();
    assert!((500e3..600e3).contains(&most_live), "{most_live}");
    assert_eq!(check["allocating_threads"], 1.0);

    for allocator in ["glibc", "walker"] {
        for (workload, aged) in [("pairs", false), ("pairs-aged", true)] {
            for one in timed(&records, workload, allocator) {
                let live = one["figures"]["litter_live_bytes"].as_f64();
                assert_eq!(live.is_some(), aged, "{workload}");
                assert!(
                    live.is_none_or(|live| (15e6..18e6).contains(&live)),
                    "{live:?}"
                );
            }
        }
    }
    // Each pair's free walks eight steps, which are a page fault; those of the litter do not count. In a fresh heap the last
    // frees walk as far, and the thousand blocks before them, which take 1 KiB each, are on new pages.
    let [fresh, aged] =
        ["pairs", "pairs-aged"].map(|name| faults(&timed(&records, name, "walker")));
    let new_pages = 1000 / 4;
    let more = aged.saturating_sub(fresh) / 2 + new_pages;
    assert!(
        (7_800..8_200).contains(&more),
        "{aged} faults with age, {fresh} without"
    );
}

#[test]
fn what_cannot_be_aged_is_said_and_has_no_numbers() {
    let place = Place::new();
    let program = pairs(&place);
    // An allocator that has nothing left for the litter.
    let starver = format!("glibc,starver={}", place.fake("starver").display());
    let command = program.display().to_string();
    let (end, records) = run(&place, &["--age", "50", "-a", &starver, "--", &command]);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    let of_starver = of_purpose(&records, "check").into_iter().find(|record| {
        [word(record, "workload"), word(record, "allocator")] == ["pairs-aged", "starver"]
    });
    let outcome = of_starver.unwrap()["outcome"].to_string();
    assert!(
        outcome.contains("could not be aged: malloc returned nothing"),
        "{outcome}"
    );

    // A command that fails while its sizes are counted.
    let line = ["--", "/bin/sh", "-c", "test -z \"$HEAPMARK_SIZES\""];
    let (end, records) = run(
        &place,
        &[&["--age", "50", "-a", "glibc"], &line[..]].concat(),
    );
    assert_ne!(end.code, Some(0), "{}", end.stdout);
    let checks = of_purpose(&records, "check").into_iter();
    let outcomes: String = checks.map(|check| check["outcome"].to_string()).collect();
    assert!(
        outcomes.contains("the process that counts them ended exit: code 1"),
        "{outcomes}{}",
        end.stderr
    );

    // A command that executes another program each time: the one whose sizes were counted is not there.
    let line = format!(
        "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; cp {command} {command}$n; {command}$n; true"
    );
    let line = ["--", "/bin/sh", "-c", &line];
    let (end, _) = run(
        &place,
        &[
            &["--age", "50", "-a", "glibc", "--tree-may-differ"],
            &line[..],
        ]
        .concat(),
    );
    assert_ne!(end.code, Some(0), "{}", end.stdout);
    assert!(
        end.stderr.contains("no process executed")
            && end.stderr.contains("whose heap was to be aged"),
        "{}",
        end.stderr
    );
}
