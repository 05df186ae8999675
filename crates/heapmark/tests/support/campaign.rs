//! Campaigns of small runs.

use super::{End, Place, SMALL};
use serde_json::Value;

pub fn campaign(place: &Place, args: &[&str]) -> End {
    place.run(&[&["campaign"], args].concat())
}

/// A campaign `camp` of so many shards of a second or two.
pub fn planned(place: &Place, shards: &str) {
    planned_with(place, shards, "glibc");
}

pub fn planned_with(place: &Place, shards: &str, allocators: &str) {
    planned_of(place, shards, allocators, "3");
}

pub fn planned_of(place: &Place, shards: &str, allocators: &str, blocks: &str) {
    let plan = [
        "plan",
        "-o",
        "camp",
        "--machines",
        shards,
        "--jobs",
        "1",
        "--",
    ];
    let end = campaign(
        place,
        &[&plan[..], &SMALL, &["-a", allocators, "--blocks", blocks]].concat(),
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

pub fn states(place: &Place) -> Vec<Value> {
    serde_json::from_str(&campaign(place, &["status", "camp", "--format", "json"]).stdout).unwrap()
}
