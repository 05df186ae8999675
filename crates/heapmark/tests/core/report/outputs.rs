//! Every output of six stored runs is as it was: timed, latency, counted, retained, `try` and whole processes. A change that is
//! meant comes with the new outputs and a commit that says why.

use crate::support::stored::unpacked;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const RUNS: [&str; 6] = ["counter", "latency", "retained", "timed", "tried", "whole"];

/// Kept as they are printed.
const KEPT: [&str; 7] = [
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
