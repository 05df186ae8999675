//! Damaged run directories: nothing panics, and every sample, curve and look that is read is one that was written.

use crate::support::stored::{original, stored};
use heapmark::analyse::analyse;
use heapmark::report::{Format, PageRun, Screen, export, page, terminal};
use heapmark::store::{self, Paths, Record, Run, Series};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;

const SEED: u64 = 6;

/// Files of a run directory; samples first, as they matter most.
const FILES: [&str; 8] = [
    "samples.jsonl",
    "samples.jsonl",
    "samples.jsonl",
    "samples.jsonl",
    "samples.jsonl",
    "run.json",
    "machine/before.json",
    "series/churn@1_b00_glibc.csv",
];

fn text(record: &Record) -> String {
    serde_json::to_string(record).unwrap()
}

/// One change of any kind. Digits first: they are what turns a number into another one.
pub(super) fn damage(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    if bytes.is_empty() {
        return;
    }
    let at = random.random_range(0..bytes.len());
    let digits = || {
        bytes
            .iter()
            .enumerate()
            .filter(|(_, byte)| byte.is_ascii_digit())
            .map(|(place, _)| place)
    };
    match random.random_range(0..9) {
        0 | 1 => {
            if let Some(place) = digits().collect::<Vec<_>>().choose(random) {
                bytes[*place] = random.random_range(b'0'..=b'9');
            }
        }
        2 => bytes[at] = random.random(),
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at..(at + random.random_range(1..200)).min(bytes.len()))),
        5 => bytes.insert(at, *b"\n\n0\"},{ \xff".choose(random).unwrap()),
        kind => {
            let mut lines: Vec<Vec<u8>> = bytes
                .split_inclusive(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect();
            let (one, other) = (
                random.random_range(0..lines.len()),
                random.random_range(0..lines.len()),
            );
            match kind {
                6 => lines.swap(one, other),
                7 => lines.insert(one, lines[other].clone()),
                _ => lines.shuffle(random),
            }
            *bytes = lines.concat();
        }
    }
}

/// All that is made of a run.
fn show(dir: &Path, run: &Run) {
    let analysis = analyse(&run.head, &run.records);
    terminal(
        &analysis,
        Screen {
            width: 80,
            colour: true,
        },
    );
    Format::all().for_each(|format| drop(export(format, &run.head, &run.records)));
    let again: Vec<String> = run
        .lines
        .records()
        .map(|record| text(&record.unwrap()))
        .collect();
    assert_eq!(
        again,
        run.records.iter().map(text).collect::<Vec<_>>(),
        "one after the other they are the same"
    );
    let reads = heapmark::analyse::reads_figure;
    let light = store::read_for_tables(dir, Paths::Stored, reads).unwrap();
    assert_eq!(light.unreadable_lines, run.unreadable_lines);
    let series = store::series(dir, &light.records);
    page(
        &[PageRun {
            name: "run".into(),
            head: &light.head,
            records: &light.records,
            series,
        }],
        None,
        Vec::new(),
    );
}

#[test]
fn a_hundred_damages_invent_no_sample() {
    damages_invent_no_sample(100);
}

#[test]
#[ignore = "make test-all"]
fn a_thousand_damages_invent_no_sample() {
    damages_invent_no_sample(1000);
}

fn damages_invent_no_sample(rounds: usize) {
    let whole = store::read(&original()).unwrap();
    let (place, written) = (
        stored(),
        fs::read(original().join("samples.jsonl")).unwrap(),
    );
    let lines: HashSet<&[u8]> = written
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    let records: HashSet<String> = whole.records.iter().map(text).collect();
    let head = serde_json::to_string(&whole.head).unwrap();
    let alone = |record: &Record| store::series(&original(), std::slice::from_ref(record));
    let curves: Vec<Series> = whole.records.iter().flat_map(alone).collect();
    let cell = |line: &[u8]| {
        serde_json::from_slice::<Record>(line)
            .unwrap()
            .cell
            .to_string()
    };
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let (mut refused, mut shortened, mut would_be_invented) = (0, 0, 0);
    for round in 0..rounds {
        let file = FILES.choose(&mut random).unwrap();
        let good = fs::read(original().join(file)).unwrap();
        let mut bytes = good.clone();
        (0..random.random_range(1..4)).for_each(|_| damage(&mut bytes, &mut random));
        fs::write(place.at("run").join(file), &bytes).unwrap();
        let seen = format!("seed {SEED}, round {round}, {file}");
        match store::read(&place.at("run")) {
            Err(_) => {
                assert_ne!(*file, "samples.jsonl", "{seen}");
                refused += 1;
            }
            Ok(run) => {
                assert_eq!(serde_json::to_string(&run.head).unwrap(), head, "{seen}");
                assert!(
                    run.records
                        .iter()
                        .all(|record| records.contains(&text(record))),
                    "{seen}"
                );
                let stored = fs::read(place.at("run/samples.jsonl")).unwrap();
                let stored = stored
                    .split(|byte| *byte == b'\n')
                    .map(<[u8]>::trim_ascii_end);
                let (intact, rest): (Vec<_>, Vec<_>) =
                    stored.partition(|line| lines.contains(line));
                let cells: BTreeSet<String> = run
                    .records
                    .iter()
                    .map(|record| record.cell.to_string())
                    .collect();
                assert_eq!(cells, intact.into_iter().map(cell).collect(), "{seen}");
                let damaged = rest
                    .into_iter()
                    .filter(|line| !line.trim_ascii().is_empty());
                let damaged: Vec<&[u8]> = damaged.collect();
                assert_eq!(run.unreadable_lines, damaged.len(), "{seen}");
                let series = store::series(&place.at("run"), &run.records);
                assert!(series.iter().all(|one| curves.contains(one)), "{seen}");
                assert_eq!(run.head.preflights, whole.head.preflights, "{seen}");
                shortened += usize::from(run.records.len() < whole.records.len());
                let looks_real = |line: &&&[u8]| serde_json::from_slice::<Record>(line).is_ok();
                would_be_invented += damaged.iter().filter(looks_real).count();
                show(&place.at("run"), &run);
            }
        }
        fs::write(place.at("run").join(file), good).unwrap();
    }
    println!(
        "{refused} refused, {shortened} with fewer records, {would_be_invented} lines that looked like records"
    );
    assert!(
        refused > rounds / 20 && shortened > rounds / 5 && would_be_invented > rounds / 20,
        "the damage is too tame"
    );
}
