//! The run directory: one writer, one plan, one set of libraries, and a torn line is no loss but of itself.

use crate::support::live::{complete_lines, finish, hanging, lines, many, send, tables_are_whole};
use crate::support::stored::{change_head, forget_guest, stored};
use crate::support::{End, Place, SMALL};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

#[test]
fn a_torn_last_line_costs_its_own_cell_only() {
    let place = Place::new();
    assert_eq!(place.run(&many("4")).code, Some(0));
    let (run, file) = (place.at("run"), place.at("run/samples.jsonl"));
    let bytes = fs::read(&file).unwrap();
    let last = bytes[..bytes.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    fs::write(&file, &bytes[..(last + bytes.len()) / 2]).unwrap();
    let end = place.run(&["run", "--resume", "run"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let text = fs::read(&file).unwrap();
    assert!(text.starts_with(&bytes[..last]));
    let records = text
        .split(|byte| *byte == b'\n')
        .filter(|line| serde_json::from_slice::<Value>(line).is_ok());
    assert_eq!(records.count(), lines(&run) - 1, "all but the torn line");
    tables_are_whole(&place, "run");
}

#[test]
fn a_second_heapmark_on_the_same_run_is_refused() {
    let place = Place::new();
    let child = hanging(&place);
    let before = (
        fs::read(place.at("run/run.json")).unwrap(),
        complete_lines(&place.at("run")),
    );
    let second = place.run(&["run", "--resume", "run"]);
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    assert!(
        second
            .stderr
            .contains("being written to by another heapmark"),
        "{}",
        second.stderr
    );
    let third = place.run(&many("4"));
    assert_eq!(third.code, Some(2), "{}", third.stderr);
    assert_eq!(
        (
            fs::read(place.at("run/run.json")).unwrap(),
            complete_lines(&place.at("run"))
        ),
        before
    );
    send(&child, Signal::INT);
    finish(child);
}

#[test]
fn a_directory_that_holds_a_run_is_not_written_over() {
    let place = Place::new();
    assert_eq!(place.run(&many("1")).code, Some(0));
    let before = (
        fs::read(place.at("run/run.json")).unwrap(),
        complete_lines(&place.at("run")),
    );
    let end = place.run(&many("1"));
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(
        end.stderr.contains("already holds a run") && end.stderr.contains("--resume run"),
        "{}",
        end.stderr
    );
    assert_eq!(
        (
            fs::read(place.at("run/run.json")).unwrap(),
            complete_lines(&place.at("run"))
        ),
        before
    );

    // Samples without a head belong to no plan that anybody knows.
    fs::remove_file(place.at("run/run.json")).unwrap();
    let end = place.run(&many("1"));
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert_eq!(complete_lines(&place.at("run")), before.1);

    // That is said before anything is built.
    let words = ["run", "-o", "run", "-a", "rpmalloc"];
    let end = place.run_with_own_cache(&[&words[..], &SMALL[..]].concat());
    end.is_one_line(2);
    assert!(!place.at("cache/libraries").exists());
}

#[test]
fn a_run_does_not_go_on_with_another_guest() {
    let place = stored();
    change_head(&place.at("run"), |head| {
        head["guest"] = "another".into();
    });
    let end = place.run(&["run", "--resume", "run"]);
    end.is_one_line(1);
    let told = "is not the file that this run began with: start a new run";
    assert!(end.stderr.contains(told), "{}", end.stderr);
    // A run of an older heapmark does not say which guest it had.
    change_head(&place.at("run"), forget_guest);
    let end = place.run(&["run", "--resume", "run"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

#[test]
fn a_run_does_not_go_on_with_another_library() {
    let place = Place::new();
    let core = place.fake("lender");
    let library = place.needing("honest", &core);
    let word = format!("mine={}", library.display());
    assert_eq!(
        place.run_small("run", &["-a", &word, "--blocks", "2"]).code,
        Some(0)
    );
    // heapmark starts its processes without this variable.
    fs::create_dir(place.at("elsewhere")).unwrap();
    fs::copy(&core, place.at("elsewhere/liblender.so")).unwrap();
    let flags = ["run", "-o", "other", "-a", &word, "--blocks", "1"];
    let mut command = place.heapmark(&[&flags[..], &SMALL].concat());
    let end = End::of(
        command
            .env("LD_LIBRARY_PATH", place.at("elsewhere"))
            .output()
            .unwrap(),
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let head: Value =
        serde_json::from_slice(&fs::read(place.at("other/run.json")).unwrap()).unwrap();
    let mut rows = head["allocators"].as_array().unwrap().iter();
    let mine = rows.find(|info| info["name"] == "mine").unwrap();
    let needs = Vec::from_iter(mine["needs"].as_object().unwrap().keys());
    assert_eq!(needs, [&core.display().to_string()]);
    let before = complete_lines(&place.at("run"));
    for file in [&library, &core] {
        let bytes = fs::read(file).unwrap();
        fs::write(file, [&bytes[..], b"0"].concat()).unwrap();
        let end = place.run(&["run", "--resume", "run"]);
        end.is_one_line(1);
        let told = format!(
            "{} is not the file that this run began with: start a new run",
            file.display()
        );
        assert!(end.stderr.contains(&told), "{}", end.stderr);
        assert_eq!(complete_lines(&place.at("run")), before);
        fs::write(file, bytes).unwrap();
    }
}
