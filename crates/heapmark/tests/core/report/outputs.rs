//! Every output of six stored runs (timed, latency, counted, retained, `try` and whole processes), a check, a pool and a trace's
//! statistics is as it was. A change that is meant comes with the new outputs and a commit that says why.

use crate::support::stored::{change_head, change_lines, copy, unpacked};
use crate::support::{Place, repository};
use heapmark_check::definition;
use heapmark_check::file::CheckFile;
use heapmark_check::report::page::{checked, names_of_checks};
use heapmark_core::report::Screen;
use heapmark_core::report::render::terminal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
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
/// Too long for that: a digest of each part is kept, so that a difference has a name.
const LONG: [&str; 6] = [
    "export RUN --to csv",
    "export RUN --to csv-samples",
    "export RUN --to json",
    "export RUN --to google-benchmark",
    "export RUN --to hyperfine",
    "report RUN -o -",
];

/// Of other results than runs: the name, the command, the formats that are kept, and those that are too long.
const FURTHER: [(&str, &str, &[&str], &[&str]); 2] = [
    (
        "pool",
        "campaign pool timed second third",
        &["md"],
        &["json", "page"],
    ),
    (
        "trace",
        "trace stats a.trace",
        &[],
        &["json", "csv", "page"],
    ),
];

/// The part that is all bytes.
const WHOLE: &str = "(whole)";

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
        assert!(!end.says(home), "{command}: {}", end.stdout);
        assert!(!end.stdout.contains("/bob"), "{command}: {}", end.stdout);
        if command.ends_with(" json") {
            let told = ["\"~/libhonest.so\"", "\"~/libtheirs.so\""];
            assert!(told.iter().all(|it| end.says(it)), "{}", end.stdout);
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

/// The start of a hash.
fn digest(content: &str) -> String {
    let hash = Sha256::digest(content);
    hash.iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The parts of an output, each with how many values it has, and all of them: the keys of JSON, the columns of CSV, the sections of a page.
fn parts(printed: &str) -> BTreeMap<String, (usize, String)> {
    let mut parts: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut add = |part: &str, value: &str| {
        let (count, content) = parts.entry(part.to_owned()).or_default();
        *count += 1;
        *content += value;
        *content += "\n";
    };
    add(WHOLE, printed);
    if let Ok(value) = serde_json::from_str(printed) {
        add_keys("", &value, &mut add);
    } else if printed.starts_with("<!") {
        for section in printed.split("<section") {
            let id = section
                .split('"')
                .nth(1)
                .filter(|_| !section.starts_with("<!"));
            add(id.unwrap_or("head"), section);
        }
    } else {
        let mut lines = csv::Reader::from_reader(printed.as_bytes());
        let columns = lines.headers().unwrap().clone();
        for line in lines.records() {
            let line = line.unwrap();
            columns
                .iter()
                .zip(&line)
                .for_each(|(column, value)| add(column, value));
        }
    }
    parts
}

/// `analysis.cases[].rows[].ratio` for each of these values.
fn add_keys(place: &str, value: &Value, add: &mut impl FnMut(&str, &str)) {
    match value {
        Value::Object(values) if !values.is_empty() => {
            for (key, value) in values {
                let place = if place.is_empty() {
                    key.clone()
                } else {
                    format!("{place}.{key}")
                };
                add_keys(&place, value, add);
            }
        }
        Value::Array(values) if !values.is_empty() => {
            values
                .iter()
                .for_each(|value| add_keys(&format!("{place}[]"), value, add));
        }
        value => add(place, &value.to_string()),
    }
}

#[test]
fn a_difference_in_a_long_output_has_a_name() {
    let json = |ratio: f64| format!("{{\"rows\": [{{\"name\": \"a\", \"ratio\": {ratio}}}]}}");
    let csv = |ratio: f64| format!("name,ratio\na,{ratio}\nb,2\n");
    let page = |ratio: f64| {
        format!("<!doctype html><section id=\"one\">1<section id=\"two\">{ratio}</html>")
    };
    let changed = |old: &str, new: &str| -> Vec<String> {
        let new = parts(new);
        let differs = |(part, it): &(String, (usize, String))| new[part] != *it;
        let old = parts(old).into_iter().filter(differs);
        old.map(|(part, _)| part)
            .filter(|part| part != WHOLE)
            .collect()
    };
    assert_eq!(changed(&json(1.0), &json(2.0)), ["rows[].ratio"]);
    assert_eq!(changed(&csv(1.0), &csv(3.0)), ["ratio"]);
    assert_eq!(changed(&page(1.0), &page(2.0)), ["two"]);
    assert!(changed(&csv(1.0), &csv(1.0)).is_empty());
}

/// What these commands print, and of long outputs what [`parts`] says of them.
fn printed(place: &Place, kept: &[String], long: &[String]) -> String {
    let run_it = |command: &String| {
        let end = place.run(&command.split(' ').collect::<Vec<_>>());
        let last = format!("{}exit code {:?}", end.stderr, end.code.unwrap());
        (end.stdout, last)
    };
    let mut text = String::new();
    for command in kept {
        let (stdout, last) = run_it(command);
        let _ = writeln!(text, "$ heapmark {command}\n{stdout}{last}\n");
    }
    for command in long {
        let (stdout, last) = run_it(command);
        let _ = writeln!(text, "$ heapmark {command}\n{}{last}\n", named(&stdout));
    }
    text
}

/// A line for each part of a long output.
fn named(printed: &str) -> String {
    let parts = parts(printed).into_iter();
    parts
        .map(|(part, (count, content))| format!("{part}: {count}, {}\n", digest(&content)))
        .collect()
}

/// The result of a check of two allocators, on a terminal and as a page.
fn of_check(place: &Place) -> String {
    let file = CheckFile::read(&place.at("check-of-two")).unwrap();
    let mut checks = definition::all().unwrap();
    let names = names_of_checks(&file);
    checks.retain(|check| names.contains(&check.name.as_str()));
    let screen = Screen {
        width: 100,
        colour: false,
    };
    let table = terminal(&heapmark_check::report::check(&file, &checks), screen);
    table + "\n" + &named(&checked(&file, &checks, Vec::new()))
}

/// The stored run `timed` as another machine would have measured it.
fn elsewhere(place: &Place, machine: &str, slower: f64) {
    let run = place.at(machine);
    copy(&place.at("timed"), &run);
    change_head(&run, |head| head["machine"]["machine_id"] = json!(machine));
    change_lines(&run, |line| {
        let slower = match line["allocator"] == "mimalloc3" {
            true => slower,
            false => 1.1,
        };
        let iterations = line.pointer_mut("/measurement/iterations");
        for iteration in iterations
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            for key in ["wall_ns", "user_ns"] {
                let ns = iteration[key].as_u64().unwrap() as f64;
                iteration[key] = json!((ns * slower) as u64);
            }
        }
    });
}

#[test]
fn every_output_is_as_it_was() {
    let place = unpacked();
    let new =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("outputs-{}", std::process::id()));
    fs::create_dir_all(&new).unwrap();
    for run in RUNS {
        let of_run = |commands: &[&str]| -> Vec<String> {
            let named = commands.iter().map(|command| command.replace("RUN", run));
            named.collect()
        };
        let text = printed(&place, &of_run(&KEPT), &of_run(&LONG));
        fs::write(new.join(run), text).unwrap();
    }
    elsewhere(&place, "second", 1.2);
    elsewhere(&place, "third", 1.05);
    let trace = repository().join("traces/clustalo-align.trace");
    fs::copy(trace, place.at("a.trace")).unwrap();
    for (name, command, kept, long) in FURTHER {
        let to = |formats: &[&str]| -> Vec<String> {
            let lines = formats
                .iter()
                .map(|format| format!("{command} --to {format}"));
            lines.collect()
        };
        let kept = [vec![command.to_owned()], to(kept)].concat();
        fs::write(new.join(name), printed(&place, &kept, &to(long))).unwrap();
    }
    fs::write(new.join("check"), of_check(&place)).unwrap();

    let expected = here().join("expected");
    let same = |name: &&str| fs::read(new.join(name)).ok() == fs::read(expected.join(name)).ok();
    let further = FURTHER.map(|(name, ..)| name);
    let all = RUNS.into_iter().chain(further).chain(["check"]);
    let changed: Vec<&str> = all.filter(|name| !same(name)).collect();
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
