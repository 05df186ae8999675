//! A stored run to damage: made once, copied for each test. Asserts nothing about heapmark itself.

use super::Place;
use heapmark::store::sealed;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A real run: glibc on churn, 3 blocks, memory over time.
pub fn original() -> PathBuf {
    static RUN: OnceLock<Place> = OnceLock::new();
    let made = || {
        let place = Place::new();
        let end = place.run_small("run", &["-a", "glibc", "--blocks", "3", "--series", "1ms"]);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        place
    };
    RUN.get_or_init(made).at("run")
}

/// A place with a copy of it in `run`.
pub fn stored() -> Place {
    let place = Place::new();
    copy(&original(), &place.at("run"));
    place
}

/// A place with the runs of `tests/outputs` in it, by their names.
pub fn unpacked() -> Place {
    let place = Place::new();
    let mut tar = Command::new("tar");
    let status = tar
        .arg("-xzf")
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/outputs/runs.tar.gz"
        ))
        .arg("-C")
        .arg(place.at("."))
        .status();
    assert!(status.unwrap().success());
    place
}

/// A folder and what lies in it, under another name.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// `samples.jsonl` as text.
pub fn lines(run: &Path) -> String {
    fs::read_to_string(run.join("samples.jsonl")).unwrap()
}

/// Changes `run.json` as a heapmark would have written it: with a checksum that fits.
pub fn change_head(run: &Path, change: impl Fn(&mut Value)) {
    let file = run.join("run.json");
    fs::write(&file, changed(&fs::read_to_string(&file).unwrap(), change)).unwrap();
}

/// Takes out of a `run.json` which guest the run had: it goes on with any.
pub fn forget_guest(head: &mut Value) {
    head.as_object_mut().unwrap().shift_remove("guest");
}

/// The same for every line of `samples.jsonl`.
pub fn change_lines(run: &Path, change: impl Fn(&mut Value)) {
    let text: String = lines(run)
        .lines()
        .map(|line| changed(line, &change) + "\n")
        .collect();
    fs::write(run.join("samples.jsonl"), text).unwrap();
}

/// A document of the store with another content.
pub fn changed(document: &str, change: impl Fn(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(document).unwrap();
    value.as_object_mut().unwrap().shift_remove("crc");
    change(&mut value);
    sealed(&value.to_string())
}

/// A run in which `mine` is this library, on a machine of this name.
pub fn measured_on(place: &Place, machine: &str, library: &str) {
    let word = format!("mine={},glibc", place.fake(library).display());
    let end = place.run_small(machine, &["-a", &word, "--blocks", "10"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    change_head(&place.at(machine), |head| {
        head["machine"]["machine_id"] = json!(machine)
    });
}
