//! Lines and directories, written, damaged and read.

use super::directory::number;
use super::read::{LINES_AT_ONCE, records};
use super::*;
use crate::execute::{Iteration, Measurement, Outcome};
use crate::file::PUBLIC;
use crate::plan::Cell;
use std::fs;
use std::path::Path;

fn record(cell: &str, outcome: Outcome) -> Record {
    let cell = Cell {
        id: cell.into(),
        allocator: "glibc".into(),
        ..Cell::default()
    };
    Record::new(Purpose::Sample, &cell, "churn", 1, outcome)
}

fn written(cell: &str, outcome: Outcome) -> String {
    line(&record(cell, outcome)).unwrap()
}

/// Cells of the records in a text, and how many lines are none.
fn cells(text: &str) -> (Vec<String>, usize) {
    let found = records(text.as_bytes(), &|line| serde_json::from_slice(line)).unwrap();
    (
        found
            .kept
            .into_all()
            .into_iter()
            .map(|record| record.cell.to_string())
            .collect(),
        found.unreadable_lines,
    )
}

#[test]
fn the_last_attempt_of_a_cell_counts_and_a_torn_line_is_left_out() {
    let crash = Outcome::Crash {
        signal: "SIGSEGV".into(),
        phase: "run".into(),
    };
    let lines = [
        written("a", crash),
        written("b", Outcome::Ok),
        written("a", Outcome::Ok),
    ]
    .concat();
    let text = format!("{lines}{{\"cell\":\"x");
    let found = records(text.as_bytes(), &|line| serde_json::from_slice(line)).unwrap();
    let kept = found.kept.all();
    assert_eq!(
        kept.iter().map(|r| &*r.cell).collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert!(kept[0].outcome.is_ok());
    assert_eq!(found.unreadable_lines, 1);
    let lines: Vec<&str> = found
        .places
        .iter()
        .filter_map(|place| text[*place as usize..].lines().next())
        .collect();
    assert!(
        lines
            == [
                written("a", Outcome::Ok).trim_end(),
                written("b", Outcome::Ok).trim_end()
            ],
        "{lines:?}"
    );
}

#[test]
fn records_stand_in_the_order_of_their_lines_whichever_cpu_reads_them() {
    const MANY: usize = LINES_AT_ONCE + 1000;
    const TORN: usize = 4000;
    let line = |number: usize| written(&number.to_string(), Outcome::Ok);
    let mut lines: Vec<String> = (0..MANY).map(line).collect();
    lines[TORN] = "torn\n".into();
    // The last attempt of a cell takes the place of its first.
    lines.push(line(7));
    let text = lines.concat();
    let found = records(text.as_bytes(), &|line| serde_json::from_slice(line)).unwrap();
    assert_eq!(found.unreadable_lines, 1);
    let wanted: Vec<usize> = (0..MANY).filter(|number| *number != TORN).collect();
    let kept = found.kept.all();
    assert_eq!(
        (kept.len(), found.places.len()),
        (wanted.len(), wanted.len())
    );
    for ((record, place), number) in kept.iter().zip(&found.places).zip(wanted) {
        assert_eq!(*record.cell, *number.to_string());
        assert!(text[*place as usize..].starts_with(&line(number)));
    }
    assert_eq!(found.places[7], (text.len() - line(7).len()) as u64);
}

#[test]
fn a_torn_line_does_not_swallow_the_next_record() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("samples.jsonl"), "{\"torn").unwrap();
    Store::open(dir.path())
        .unwrap()
        .append(&mut record("a", Outcome::Ok), None)
        .unwrap();
    Store::open(dir.path())
        .unwrap()
        .append(&mut record("b", Outcome::Ok), None)
        .unwrap();
    let text = fs::read_to_string(dir.path().join("samples.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 3, "only a torn line is ended");
    assert_eq!(cells(&text), (vec!["a".into(), "b".into()], 1));
}

#[test]
fn samples_of_no_run_are_refused_and_stay_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("samples.jsonl");
    fs::write(&file, "mine").unwrap();
    assert!(may_begin(dir.path()).is_err());
    // Another one may come between that question and the beginning.
    drop(Store::begin(dir.path(), PUBLIC).unwrap());
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    fs::write(&file, "").unwrap();
    assert!(may_begin(dir.path()).is_ok());
}

#[test]
fn a_changed_digit_is_damage_and_so_is_a_line_without_a_checksum() {
    let text = written("churn@1/b07/glibc", Outcome::Ok);
    let changed = text.replace("b07", "b08");
    assert_eq!(cells(&changed), (vec![], 1));
    let bare = serde_json::to_string(&record("a", Outcome::Ok)).unwrap();
    assert_eq!(cells(&bare), (vec![], 1));
}

#[test]
fn for_tables_a_record_keeps_what_it_measured_and_loses_what_proves_it() {
    let iteration = |cold, wall_ns| Iteration {
        cold,
        wall_ns,
        ..Iteration::default()
    };
    let notes = [("dtlb_misses".to_string(), "not counted here".to_string())];
    let environment = [("LD_PRELOAD".to_string(), "x.so".to_string())];
    let whole = |purpose| Record {
        purpose,
        measurement: Some(Measurement {
            peak_rss_bytes: 7,
            iterations: vec![iteration(true, 9), iteration(false, 1), iteration(false, 2)],
            figures: [("kept".to_string(), 1.0), ("lost".to_string(), 2.0)].into(),
            notes: notes.clone().into_iter().collect(),
            ..Measurement::default()
        }),
        environment: environment.clone().into_iter().collect(),
        usage: Some(Default::default()),
        proof: Some(Default::default()),
        ..record("a", Outcome::Ok)
    };
    let light = |purpose| {
        let later = line(&whole(purpose))
            .unwrap()
            .replacen('{', "{\"sp\\u0061rks\":[{}],", 1);
        light_record::record(later.as_bytes(), |name| name == "kept").unwrap()
    };
    let sample = light(Purpose::Sample);
    assert!(sample.environment.is_empty() && sample.usage.is_none() && sample.proof.is_none());
    let measurement = sample.measurement.as_ref().unwrap();
    assert_eq!((&*sample.cell, measurement.peak_rss_bytes), ("a", 7));
    assert_eq!(
        measurement.iterations,
        [iteration(false, 3)],
        "what is divided is the sum of what counts"
    );
    assert_eq!(measurement.figures, [("kept".to_string(), 1.0)].into());
    let counted = light(Purpose::Count).measurement.unwrap();
    assert_eq!(
        (counted.figures.len(), counted.notes.len()),
        (2, 1),
        "tables of counts show both"
    );
    assert!(light_record::record(b"{\"purpose\":\"sample\"}", |_| true).is_err());
    assert!(
        light_record::record(
            (line(&whole(Purpose::Sample)).unwrap() + "x").as_bytes(),
            |_| true
        )
        .is_err()
    );
}

#[test]
fn a_table_is_read_as_it_was_written_or_not_at_all() {
    const TABLE: &str = "time_ns,phase,rss_bytes\n5,run,30\n";
    let dir = tempfile::tempdir().unwrap();
    let mut kept = record("a/b", Outcome::Ok);
    Store::open(dir.path())
        .unwrap()
        .append(&mut kept, Some(TABLE))
        .unwrap();
    let without = record("a/b", Outcome::Ok);
    let (file, rss) = (dir.path().join("series/a_b.csv"), |record| {
        columns(dir.path(), record)?.column("rss_bytes")
    });
    assert_eq!((rss(&kept), rss(&without)), (Some(vec![30]), None));
    let damaged = || tables::damaged(dir.path(), &[kept.clone(), without.clone()]);
    assert!(damaged().is_empty());
    fs::write(&file, TABLE.replace("30", "80")).unwrap();
    assert_eq!(rss(&kept), None);
    assert_eq!(damaged(), std::slice::from_ref(&file));
    fs::remove_file(&file).unwrap();
    assert_eq!(damaged(), [file]);
}

#[test]
fn two_writers_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let _first = Store::open(dir.path()).unwrap();
    assert!(
        Store::open(dir.path())
            .err()
            .unwrap()
            .to_string()
            .contains("another heapmark")
    );
}

#[test]
fn a_run_that_is_written_to_is_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    fs::create_dir(&run).unwrap();
    fs::write(head_of(&run), "{}").unwrap();
    let writer = Store::open(&run).unwrap();
    assert!(!remove(&run).unwrap());
    assert!(head_of(&run).exists());
    drop(writer);
    assert!(remove(&run).unwrap());
    assert!(!run.exists());
}

#[test]
fn a_newer_schema_is_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("run.json"), "{\"schema\": 99}").unwrap();
    assert!(
        read(dir.path())
            .err()
            .unwrap()
            .to_string()
            .contains("a newer heapmark")
    );
    assert!(
        read(&dir.path().join("nowhere"))
            .err()
            .unwrap()
            .to_string()
            .contains("no run in")
    );
}

#[test]
fn the_tenth_run_of_a_day_is_the_latest() {
    assert!(number(Path::new("r/2026-01-02-10")) > number(Path::new("r/2026-01-02-9")));
    assert!(number(Path::new("r/2026-01-03-1")) > number(Path::new("r/2026-01-02-10")));
}
