//! docs/CI.md and action.yml: linted, and the action's steps done here, with a library that got worse and one that did not.

use crate::support::{Place, node, repository};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// What a linter says of a page with a workflow and of an action, and the action's steps.
fn looked_at(page: &Path, action: &Path) -> Value {
    let output = node("workflow.mjs").arg(page).arg(action).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|why| panic!("{why}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

fn ours() -> &'static Value {
    static OURS: OnceLock<Value> = OnceLock::new();
    OURS.get_or_init(|| {
        looked_at(
            &repository().join("docs/CI.md"),
            &repository().join("action.yml"),
        )
    })
}

#[test]
fn the_workflow_and_the_action_have_no_fault() {
    assert_eq!(ours()["faults"].as_array().unwrap(), &[] as &[Value]);
}

#[test]
fn faults_of_a_workflow_and_of_an_action_are_found() {
    let place = Place::new();
    let page = fs::read_to_string(repository().join("docs/CI.md")).unwrap();
    let action = fs::read_to_string(repository().join("action.yml")).unwrap();
    fs::write(
        place.at("CI.md"),
        page.replace("threshold: 1%", "treshold: 1%")
            .replacen("runs-on: ubuntu-latest", "", 1)
            .replacen("persist-credentials: false", "fetch-depth: 1", 1)
            .replacen(
                "actions/upload-artifact@",
                "actions/upload-artifact@v4 #",
                1,
            ),
    )
    .unwrap();
    fs::write(
        place.at("action.yml"),
        action.replace("inputs.new", "inputs.newer"),
    )
    .unwrap();
    let found = looked_at(&place.at("CI.md"), &place.at("action.yml"));
    let faults: Vec<&str> = found["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect();
    for part in [
        "no input treshold",
        "runs-on",
        "newer",
        "keeps its credentials",
        "upload-artifact@v4 is not pinned",
    ] {
        assert!(
            faults.iter().any(|fault| fault.contains(part)),
            "{part}: {faults:#?}"
        );
    }
}

/// How the action's steps end, one after the other until one fails, and what they leave in the places that the service reads.
fn action(place: &Place, old: &Path, new: &Path) -> (Option<i32>, String) {
    action_of(place, [old, new], "")
}

/// The same of builds of an application.
fn action_of(place: &Place, [old, new]: [&Path; 2], variants: &str) -> (Option<i32>, String) {
    let folder = Path::new(env!("CARGO_BIN_EXE_heapmark")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let input = |value: &str| {
        value
            .replace("${{ inputs.old }}", old.to_str().unwrap())
            .replace("${{ inputs.new }}", new.to_str().unwrap())
            .replace("${{ inputs.workloads }}", "larson-mimalloc-bench")
            .replace("${{ inputs.threshold }}", "1%")
            .replace("${{ inputs.budget }}", "10min")
            .replace("${{ inputs.variants }}", variants)
            .replace("${{ inputs.command }}", "")
            .replace("${{ inputs.allocators }}", "")
    };
    let mut code = Some(0);
    for step in ours()["steps"].as_array().unwrap() {
        let mut bash = Command::new("bash");
        bash.args([
            "--noprofile",
            "--norc",
            "-eo",
            "pipefail",
            "-c",
            step["run"].as_str().unwrap(),
        ])
        .env("PATH", &path)
        .env("HOME", place.at("."))
        .env("GITHUB_OUTPUT", place.at("output"))
        .env("GITHUB_STEP_SUMMARY", place.at("summary"))
        .env("GITHUB_ACTION_PATH", repository())
        .current_dir(place.at("."));
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            bash.env(name, input(value.as_str().unwrap()));
        }
        let output = bash.output().unwrap();
        code = output.status.code();
        if code != Some(0) {
            break;
        }
    }
    let read = |name| fs::read_to_string(place.at(name)).unwrap_or_default();
    let output = read("output");
    let comment = output.trim().strip_prefix("comment=").unwrap_or_default();
    assert_eq!(
        fs::read_to_string(comment).unwrap_or_default(),
        read("summary")
    );
    (code, read("summary"))
}

#[test]
fn the_action_passes_a_library_that_did_not_change() {
    let place = Place::new();
    let honest = place.fake("honest");
    // What an earlier job has left in the same workspace.
    for run in ["heapmark-instructions", "heapmark-memory"] {
        fs::create_dir(place.at(run)).unwrap();
        fs::write(place.at(run).join("run.json"), "{}").unwrap();
    }
    fs::write(place.at("heapmark.md"), "of an earlier job").unwrap();
    let (code, summary) = action(&place, &honest, &honest);
    assert_eq!(code, Some(0), "{summary}");
    assert!(!summary.contains("earlier"), "{summary}");
    for part in ["## instructions beside old", "## mean overhead beside old"] {
        assert!(summary.contains(part), "{summary}");
    }
}

#[test]
fn the_action_fails_a_library_that_takes_more_instructions() {
    let place = Place::new();
    let (code, summary) = action(&place, &place.fake("honest"), &place.fake("wordy"));
    assert_eq!(code, Some(3), "{summary}");
    assert!(summary.contains("more"), "{summary}");
}

#[test]
fn the_action_fails_an_application_that_got_slower() {
    let place = Place::new();
    let none = Path::new("");
    // Four times the work, and so long that both take turns: alone beside other tests, a copy of the old one may seem to differ.
    let count =
        |times: u32| format!("sh -c 'i=0; while [ $i -lt {times}0000 ]; do i=$((i+1)); done'");
    let variants = format!("old={}\nnew={}\n", count(10), count(40));
    let (code, summary) = action_of(&place, [none; 2], &variants);
    assert_eq!(code, Some(3), "{summary}");
    let again = "Again: `heapmark try ";
    assert!(
        summary.contains("| slower |") && summary.contains(again),
        "{summary}"
    );
}

#[test]
fn a_library_that_takes_more_instructions_fails_the_job_whatever_the_machine_does() {
    let place = Place::new();
    let counted = |run: &str, library: &str| {
        let word = format!("mine={},glibc", place.fake(library).display());
        let small = [
            "-w",
            "churn",
            "-t",
            "1",
            "--set",
            "churn.objects=20000",
            "--no-floor",
            "--counter",
            "callgrind",
        ];
        let end = place.run(&[&["run", "-o", run, "-a", &word], &small[..]].concat());
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    };
    counted("old", "honest");
    counted("new", "wordy");
    let by = |args: &[&str]| {
        let by = ["compare", "--by", "instructions", "--fail-on", "slower"];
        place.run(&[&by[..], args].concat())
    };
    for runs in [&["new"][..], &["old", "new"]] {
        let end = by(runs);
        assert_eq!(end.code, Some(3), "{runs:?}: {}{}", end.stdout, end.stderr);
        assert!(
            end.stderr
                .contains("--fail-on: churn@1/mine takes more instructions"),
            "{}",
            end.stderr
        );
        assert!(
            end.stdout.contains("instructions / ") && !end.stdout.contains("drift"),
            "{}",
            end.stdout
        );
    }
    counted("copy", "honest");
    for runs in [["new", "old"], ["old", "copy"]] {
        let end = by(&runs);
        assert_eq!(end.code, Some(0), "{runs:?}: {}{}", end.stdout, end.stderr);
    }
    let by_time = place.run(&["compare", "new"]);
    assert_eq!(by_time.code, Some(2), "{}", by_time.stdout);
    assert!(
        by_time
            .stderr
            .contains("it can be compared by instructions"),
        "{}",
        by_time.stderr
    );
}
