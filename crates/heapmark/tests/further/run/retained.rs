//! Runs that follow memory, through the built binary: what an allocator holds shows, and what it holds for ever shows for ever.

use crate::support::{Place, of_purpose, samples, word};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// Enough blocks that a sample sees them live.
const JOB: [&str; 6] = [
    "-w",
    "same-thread-reuse",
    "-t",
    "2",
    "--set",
    "same-thread-reuse.volume=40000000",
];

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// Growth of the resident set at each moment after everything was freed: milliseconds and bytes.
fn retained(footprint: &Value) -> Vec<(u64, u64)> {
    let grown = |resident: &Value| {
        let heap = |at: &Value| number(&at["rss_bytes"]) - number(&at["harness_bytes"]);
        heap(resident).saturating_sub(heap(&footprint["begin"]))
    };
    let moments = footprint["retained"].as_array().unwrap().iter();
    moments
        .map(|kept| (number(&kept["after_ms"]), grown(&kept["resident"])))
        .collect()
}

#[test]
fn what_is_never_given_back_is_still_there_after_5_seconds_and_in_every_overhead() {
    let place = Place::new();
    let allocators = format!("holder={},glibc", place.fake("holder").display());
    let end = place.run(
        &[
            &[
                "run",
                "-o",
                "run",
                "--retained",
                "--blocks",
                "1",
                "-a",
                &allocators,
            ],
            &JOB[..],
        ]
        .concat(),
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    for said in [
        "At the peak glibc holds least: 1.",
        "None gives back as much as 5 %",
    ] {
        assert!(end.says(said), "{said}: {}", end.stdout);
    }
    let records = samples(&place.at("run"));
    let followed = of_purpose(&records, "memory");
    assert_eq!(
        followed.len(),
        2,
        "one process each, without copy and floor"
    );
    for record in followed {
        let (name, footprint) = (
            word(record, "allocator"),
            &record["measurement"]["footprint"],
        );
        let course = &record["memory"];
        let at = |moment: &str, what: &str| number(&course[moment][what]);
        let (live, occupied, heap) = (
            at("peak_demand", "live_bytes"),
            at("peak_demand", "occupied_bytes"),
            at("peak_demand", "heap_bytes"),
        );
        // Blocks of no bytes are told as 8.
        let requested = number(&record["measurement"]["requested_peak_bytes"]);
        // Beside load a look may come late, and then it sees less than there was.
        assert!(
            0 < live && live <= requested + requested / 1000 && 38 * MIB < requested,
            "{name}: {live} of {requested}"
        );
        // Every block is touched, so its pages are resident; a look a little later than another may see a little more.
        assert!(
            live <= occupied && occupied <= heap + heap / 10,
            "{name}: {live} {occupied} {heap}"
        );
        let kept = retained(footprint);
        assert_eq!(
            kept.iter()
                .map(|(after_ms, _)| *after_ms)
                .collect::<Vec<_>>(),
            [0, 100, 1000, 5000],
            "{name}"
        );
        let rounds = record["measurement"]["iterations"]
            .as_array()
            .unwrap()
            .len() as u64;
        // Each round asks for 40 MB once more of an allocator that has nothing to give again.
        let all = rounds * 38 * MIB;
        assert!(rounds >= 2, "{name}: {rounds}");
        for (after_ms, bytes) in kept {
            assert_eq!(
                bytes >= all,
                name == "holder",
                "{name} after {after_ms} ms: {bytes} of {all}"
            );
        }
        // The last look at the running workload may be from the round before the last. Of two rounds that leaves one, which every
        // allocator holds.
        let seen = if name == "holder" {
            all - 38 * MIB
        } else {
            all
        };
        assert_eq!(
            at("peak_footprint", "heap_bytes") >= seen,
            name == "holder",
            "{name}: {course}"
        );
        let series = std::fs::read_to_string(
            place
                .at("run")
                .join(format!("series/same-thread-reuse@2_b00_{name}.csv")),
        );
        let series = series.unwrap();
        let head: Vec<&str> = series.lines().next().unwrap().split(',').collect();
        assert!(
            ["requested_live_bytes", "pss_bytes", "anon_huge_bytes"]
                .iter()
                .all(|it| head.contains(it)),
            "{head:?}"
        );
        let walked = |line: &&str| line.split(',').nth(6).is_some_and(|pss| !pss.is_empty());
        assert!(
            series.lines().skip(1).any(|line| walked(&line)),
            "{name}: PSS at one moment at least"
        );
    }
    let times = place.run(&["export", "run", "--to", "csv-rows"]);
    assert_eq!(
        (times.code, times.stdout.as_str()),
        (Some(2), ""),
        "no time of such a run is a result"
    );
}
