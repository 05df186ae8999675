//! Every output of six stored runs is as it was: timed, latency, counted, retained, `try` and whole processes. A change that is
//! meant comes with the new outputs and a commit that says why.

use crate::support::Place;
use crate::support::stored::{change_head, unpacked};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const RUNS: [&str; 6] = ["counter", "latency", "retained", "timed", "tried", "whole"];

/// Kept as they are printed.
const KEPT: [&str; 9] = [
    "show RUN",
    "show --full RUN",
    "export RUN --to md",
    "export RUN --to csv-rows",
    "export RUN --to csv-latency",
    "export RUN --to bmf",
    "export RUN --to gha-smaller",
    "export RUN --to gha-bigger",
    "compare RUN",
];
/// Too long for that: a digest of each is kept.
const LONG: [&str; 6] = [
    "export RUN --to csv",
    "export RUN --to csv-samples",
    "export RUN --to json",
    "export RUN --to google-benchmark",
    "export RUN --to hyperfine",
    "report RUN -o -",
];

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outputs")
}

#[test]
fn what_is_published_of_a_run_names_no_home() {
    let place = Place::new();
    let library = place.fake("honest");
    let mine = format!("mine={},glibc", library.display());
    let end = place.run_small("run", &["-a", &mine, "--blocks", "3"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let home = place.at("");
    let home = home.to_str().unwrap().trim_end_matches('/');
    // The run itself can go on with it.
    let stored = fs::read_to_string(place.at("run/run.json")).unwrap();
    assert!(stored.contains(library.to_str().unwrap()));
    change_head(&place.at("run"), |head| {
        head["allocators"][1]["files"] = json!(["/home/bob/libtheirs.so"])
    });
    for command in KEPT
        .iter()
        .chain(&LONG)
        .filter(|it| it.starts_with("export"))
    {
        let command = command.replace("RUN", "run");
        let end = place.run(&command.split(' ').collect::<Vec<_>>());
        assert!(!end.stdout.contains(home), "{command}: {}", end.stdout);
        assert!(!end.stdout.contains("/bob"), "{command}: {}", end.stdout);
        if command.ends_with(" json") {
            let told = ["\"~/libhonest.so\"", "\"~/libtheirs.so\""];
            assert!(
                told.iter().all(|it| end.stdout.contains(it)),
                "{}",
                end.stdout
            );
        }
    }
    assert_eq!(
        place.run(&["report", "run", "-o", "page.html"]).code,
        Some(0)
    );
    for file in ["page.html", "run/report.html", "run/report.md"] {
        let text = fs::read_to_string(place.at(file)).unwrap();
        assert!(!text.contains(home) && !text.contains("/bob"), "{file}");
    }
}

#[test]
fn every_output_of_the_stored_runs_is_as_it_was() {
    let place = unpacked();
    let new =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("outputs-{}", std::process::id()));
    fs::create_dir_all(&new).unwrap();
    for run in RUNS {
        let run_it = |command: &&str| {
            let command = command.replace("RUN", run);
            let end = place.run(&command.split(' ').collect::<Vec<_>>());
            (
                command,
                format!(
                    "{}{}exit code {:?}\n",
                    end.stdout,
                    end.stderr,
                    end.code.unwrap()
                ),
            )
        };
        let mut text = String::new();
        for (command, printed) in KEPT.iter().map(run_it) {
            let _ = writeln!(text, "$ heapmark {command}\n{printed}");
        }
        for (command, printed) in LONG.iter().map(run_it) {
            let digest: String = Sha256::digest(&printed)
                .iter()
                .take(8)
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let _ = writeln!(
                text,
                "$ heapmark {command}\n{} bytes, {digest}",
                printed.len()
            );
        }
        fs::write(new.join(run), text).unwrap();
    }

    let expected = here().join("expected");
    let same = |run: &&str| fs::read(new.join(run)).ok() == fs::read(expected.join(run)).ok();
    let changed: Vec<&str> = RUNS.into_iter().filter(|run| !same(run)).collect();
    let mend = format!(
        "if that is meant: cp {}/* {}",
        new.display(),
        expected.display()
    );
    assert!(
        changed.is_empty(),
        "these differ: {}; {mend}",
        changed.join(", ")
    );
    fs::remove_dir_all(new).unwrap();
}
