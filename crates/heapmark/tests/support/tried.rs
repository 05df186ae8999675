//! Commands and servers that are tried under glibc and another library: two processes of each, nothing beside them.

use super::home::record;
use super::{End, Place, samples};
use serde_json::Value;
use std::fs;

/// `heapmark try`, as small as it gets.
pub const SMALL: [&str; 7] = [
    "try",
    "-o",
    "run",
    "--blocks",
    "2",
    "--no-aa-copy",
    "--no-repeat",
];

/// One process of the smallest program.
pub const TRUE: [&str; 9] = [
    "try",
    "-o",
    "tried",
    "-a",
    "glibc",
    "--blocks",
    "1",
    "--",
    "/bin/true",
];

/// Tries it in place of an earlier run.
pub fn run(place: &Place, arguments: &[&str]) -> (End, Vec<Value>) {
    let _ = fs::remove_dir_all(place.at("run"));
    let end = place.run(&[&SMALL, arguments].concat());
    let records = if place.at("run/samples.jsonl").exists() {
        samples(&place.at("run"))
    } else {
        Vec::new()
    };
    (end, records)
}

/// What the check of an allocator found, in words; empty where it found nothing.
pub fn note<'a>(records: &'a [Value], allocator: &str, name: &str) -> &'a str {
    record(records, "check", allocator)["measurement"]["notes"][name]
        .as_str()
        .unwrap_or_default()
}
