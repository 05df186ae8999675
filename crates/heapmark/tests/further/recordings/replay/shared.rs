//! Heaps that lie in shared mappings of files: what they hold is counted, or no figure of theirs is shown.

use super::{pipeline, replay, write};
use crate::support::{Place, of_purpose, samples, word};
use serde_json::Value;

fn moment(record: &Value, moment: &str, what: &str) -> u64 {
    record["memory"][moment][what]
        .as_u64()
        .unwrap_or_else(|| panic!("no {moment}.{what}: {record}"))
}

/// What is resident holds all that is live, at both moments that tables tell of.
fn holds_what_is_live(record: &Value) {
    for at in ["peak_demand", "peak_footprint"] {
        let (live, heap) = (
            moment(record, at, "live_bytes"),
            moment(record, at, "heap_bytes"),
        );
        assert!(
            live > 1 << 20 && live <= heap,
            "{at}: {live} live, {heap} resident: {record}"
        );
    }
}

#[test]
fn a_heap_in_a_memory_file_is_no_smaller_than_what_is_live_in_replays_and_kernels() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let allocators = format!("shared={},glibc", place.fake("in_memory_file").display());
    let end = replay(
        &place,
        &["a.trace", "-a", &allocators, "--retained", "--blocks", "1"],
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let shared = |record: &&&Value| word(record, "allocator") == "shared";
    let followed = of_purpose(&records, "memory");
    assert_eq!(
        followed.iter().filter(shared).count(),
        2,
        "by its threads and by one"
    );
    followed
        .iter()
        .filter(shared)
        .for_each(|record| holds_what_is_live(record));
    let series = std::fs::read_to_string(place.at("run/series/trace:a@2_b00_shared.csv")).unwrap();
    let resident = |line: &str| line.split(',').nth(4).unwrap().parse::<u64>().unwrap();
    let (first, last) = (
        series.lines().nth(1).unwrap(),
        series.lines().last().unwrap(),
    );
    assert!(
        resident(last) > resident(first) + (3 << 20),
        "the series counts it, too: {series}"
    );
    let kernel = [
        "-w",
        "same-thread",
        "-t",
        "2",
        "--set",
        "same-thread.volume=40000000",
        "--retained",
        "-o",
        "kernel",
    ];
    let end = place.run(&[&["run", "--blocks", "1", "-a", &allocators], &kernel[..]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("kernel"));
    of_purpose(&records, "memory")
        .iter()
        .filter(shared)
        .for_each(|record| holds_what_is_live(record));
}

#[test]
fn a_heap_that_is_not_counted_is_an_error_and_no_low_figure() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let disk = format!("disk={}", place.fake("in_disk_file").display());
    let end = replay(
        &place,
        &["a.trace", "-a", &disk, "--retained", "--blocks", "1"],
    );
    let records = samples(&place.at("run"));
    match of_purpose(&records, "memory")
        .iter()
        .find(|record| word(record, "allocator") == "disk")
        .unwrap()
    {
        // Where the folder of temporary files is itself in memory, such files are counted.
        record if record["outcome"]["kind"] == "ok" => holds_what_is_live(record),
        record => {
            let what = word(&record["outcome"], "what");
            assert!(what.starts_with("memory is measured wrongly"), "{what}");
            assert!(what.contains("a heap in a file of a disk"), "{what}");
            assert_eq!(end.code, Some(4), "{}", end.stdout);
            let exported = place.run(&["export", "run", "--to", "json", "-o", "-"]);
            let json: Value = serde_json::from_str(&exported.stdout).unwrap();
            let rows = json["analysis"]["footprints"][0]["rows"]
                .as_array()
                .unwrap();
            let row = rows.iter().find(|row| row["allocator"] == "disk").unwrap();
            assert_eq!(row["cells"], Value::Array(Vec::new()), "{row}");
        }
    }
}
