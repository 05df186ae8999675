//! Orders other than that of speed: strict, for memory, and at the recorded times.

use super::{Told, free, malloc, pipeline, replay, write};
use crate::support::{Place, of_purpose, samples};
use heapmark_trace::Event;
use serde_json::Value;
use std::fs;

#[test]
fn what_memory_cannot_be_measured_with_is_refused() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    for flag in [["--limit", "data"], ["--budget", "1s"]] {
        let end = replay(
            &place,
            &[&["a.trace", "--mode", "memory"], &flag[..]].concat(),
        );
        assert_eq!(end.code, Some(2), "{}", end.stderr);
        assert!(
            end.stderr.contains("leave out --limit and --budget"),
            "{}",
            end.stderr
        );
    }
}

#[test]
fn in_strict_order_memory_repeats_within_a_page_for_each_thread() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let end = replay(
        &place,
        &[
            "a.trace", "-a", "glibc", "--mode", "memory", "--blocks", "5",
        ],
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(
        end.stdout.contains("internal") && end.stdout.contains("external"),
        "{}",
        end.stdout
    );
    let records = samples(&place.at("run"));
    let (followed, alone): (Vec<&Value>, Vec<&Value>) = of_purpose(&records, "memory")
        .into_iter()
        .partition(|record| record["threads"] == 2);
    assert_eq!((followed.len(), alone.len()), (5, 5));
    let course =
        |record: &Value, moment: &str, what: &str| record["memory"][moment][what].as_u64().unwrap();
    for moment in ["peak_demand", "peak_footprint"] {
        let held: Vec<u64> = followed
            .iter()
            .map(|record| course(record, moment, "heap_bytes"))
            .collect();
        let (least, most) = (held.iter().min().unwrap(), held.iter().max().unwrap());
        assert!(
            *least > 3 << 20 && most - least <= 2 * 4096,
            "{moment}: {held:?}"
        );
    }
    let live: Vec<u64> = followed
        .iter()
        .map(|record| course(record, "peak_demand", "live_bytes"))
        .collect();
    let by_one: Vec<u64> = alone
        .iter()
        .map(|record| course(record, "peak_demand", "live_bytes"))
        .collect();
    assert_eq!(
        by_one, live,
        "one thread makes the same calls in the same order"
    );
    // The largest sum of sizes over any 3000 or 3001 blocks in a row, as threads took turns.
    assert!(
        live.iter()
            .all(|bytes| *bytes == live[0] && (4_000_000..5_000_000).contains(bytes)),
        "{live:?}"
    );
    for record in followed {
        let usable = course(record, "at_peak", "usable_bytes");
        assert!(
            live[0] < usable && usable < live[0] + live[0] / 20,
            "{usable}"
        );
        let series = fs::read_to_string(place.at("run/series/trace:a@2_b00_glibc.csv")).unwrap();
        assert!(
            series.lines().next().unwrap().ends_with(",allocated_bytes"),
            "{series}"
        );
        assert!(
            series.lines().count() > 15,
            "one point for each MiB: {series}"
        );
    }
    let times = place.run(&["export", "run", "--to", "csv-rows"]);
    assert_eq!(
        (times.code, times.stdout.as_str()),
        (Some(2), ""),
        "no time of such a run is a result"
    );
    assert!(
        times.stderr.contains("no table of times"),
        "{}",
        times.stderr
    );
}

/// Each of four threads takes 4 MiB, frees all but the last block, and looks on while the next one does.
fn in_turn() -> Vec<Told> {
    let mut events: Vec<Told> = (1..4)
        .map(|child| (0, Event::ThreadStart { child }))
        .collect();
    for thread in 0..4 {
        events.extend((0..4096).map(|_| (thread, malloc(1016))));
        events.extend((0..4095).map(|index| (thread, free(thread, index))));
    }
    events
}

#[test]
fn a_packing_that_exists_stands_beside_what_allocators_hold() {
    let place = Place::new();
    write(&place.at("a.trace"), &in_turn());
    let end = replay(
        &place,
        &[
            "a.trace",
            "-a",
            "glibc",
            "--retained",
            "--packing",
            "--blocks",
            "1",
        ],
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(
        place
            .full("run")
            .contains("packing: peak/peak of a packing"),
        "{}",
        end.stdout
    );
    let exported = place.run(&["export", "run", "--to", "csv", "-o", "-"]);
    let packings: Vec<f64> = (exported.stdout.lines())
        .filter(|line| line.contains(",packing_ratio,"))
        .map(|line| line.split(',').nth(6).unwrap().parse().unwrap())
        .collect();
    // 4096 blocks at a time and the last one of each thread before, at multiples of 16 bytes. What one
    // thread has freed, the next one uses.
    let both = [1024.0 / 1016.0; 2];
    assert!(
        packings.len() == 2
            && packings
                .iter()
                .zip(both)
                .all(|(is, due)| (is / due - 1.0).abs() < 1e-9),
        "{packings:?}"
    );
    let page = fs::read_to_string(place.at("run/report.html")).unwrap();
    assert!(page.contains("id=\"shapes\""));
}

#[test]
fn what_heaps_of_several_threads_keep_from_each_other_is_blow_up() {
    let place = Place::new();
    write(&place.at("a.trace"), &in_turn());
    let end = replay(
        &place,
        &["a.trace", "-a", "glibc", "--retained", "--blocks", "2"],
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(
        end.says("trace:a, 4 threads") && end.says("trace:a, 1 thread"),
        "{}",
        end.stdout
    );
    assert!(
        end.says("One thread makes the calls of all 4"),
        "{}",
        end.stdout
    );
    let exported = place.run(&["export", "run", "--to", "json", "-o", "-"]);
    let json: Value = serde_json::from_str(&exported.stdout).unwrap();
    let blow_up = |case: usize| {
        let cells = json["analysis"]["footprints"][case]["rows"][0]["cells"]
            .as_array()
            .unwrap();
        assert!(
            cells
                .iter()
                .any(|cell| cell["metric"] == "peak_demand_bytes")
        );
        cells.iter().find(|cell| cell["metric"] == "blow_up")
    };
    // Each of glibc's threads has an arena, and gives nothing back before its last block.
    let several = blow_up(0).unwrap()["spread"]["median"].as_f64().unwrap();
    assert!((2.5..4.5).contains(&several), "{several}");
    assert_eq!(blow_up(1), None, "one thread has none");
    let records = samples(&place.at("run"));
    assert_eq!(
        of_purpose(&records, "check").len(),
        2,
        "both are checked, and proven: {records:?}"
    );
    // A run that is taken up again knows which case is which.
    let again = place.run(&["run", "--resume", "run"]);
    assert_eq!(again.code, Some(0), "{}{}", again.stdout, again.stderr);
    assert_eq!(samples(&place.at("run")).len(), records.len());
}

#[test]
fn paced_replays_take_as_long_as_they_were_recorded() {
    let place = Place::new();
    let mut events: Vec<Told> = vec![(0, Event::Clock { ns: 1_000 }), (0, malloc(10))];
    events.extend([(0, Event::Clock { ns: 4_000_000_000 }), (0, free(0, 0))]);
    write(&place.at("a.trace"), &events);
    let paced = |name: &str, pace: &str| -> u64 {
        let flags = [
            "replay", "a.trace", "-a", "glibc", "--mode", "paced", "--pace", pace, "--blocks", "1",
            "-o", name,
        ];
        let end = place.run(&[&flags[..], &["--no-floor"]].concat());
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
        assert!(
            end.says("Threads sleep until the recorded times"),
            "{}",
            end.stdout
        );
        let records = samples(&place.at(name));
        of_purpose(&records, "sample")[0]["measurement"]["iterations"][0]["wall_ns"]
            .as_u64()
            .unwrap()
    };
    // No heap changes recorded times.
    let aged = place.run(&["replay", "a.trace", "--mode", "paced", "--age", "50"]);
    assert_eq!(aged.code, Some(2), "{}", aged.stdout);
    assert!(
        aged.stderr.contains("--age: not for trace:a (played at"),
        "{}",
        aged.stderr
    );
    // A replay never comes too early.
    assert!(paced("one", "1") >= 4_000_000_000);
    // And seconds too late on no machine.
    assert!((100_000_000..4_000_000_000).contains(&paced("fast", "40")));
}

#[test]
fn what_is_held_for_half_of_the_time_is_half_of_the_mean_footprint() {
    let place = Place::new();
    let at = |ms: u64| (0, Event::Clock { ns: ms * 1_000_000 });
    let events = [
        at(1),
        (0, malloc(64 << 20)),
        at(1000),
        (0, free(0, 0)),
        (0, malloc(8)),
        at(2000),
        (0, free(0, 1)),
    ];
    write(&place.at("a.trace"), &events);
    let flags = [
        "a.trace",
        "-a",
        "glibc",
        "--mode",
        "paced",
        "--series",
        "1ms",
        "--blocks",
        "1",
        "--no-floor",
    ];
    let end = replay(&place, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(
        end.says("mean footprint") && end.stdout.contains("GiB*s"),
        "{}",
        end.stdout
    );
    let row = &place.rows("run")[0];
    let number = |name: &str| row[name].parse::<f64>().unwrap();
    let mib = number("mean_footprint_bytes") / f64::from(1 << 20);
    // Off by as much as a busy machine comes late with the free, of what is held or of the rest.
    assert!((20.0..44.0).contains(&mib), "{mib}");
    let records = samples(&place.at("run"));
    let sample = of_purpose(&records, "sample")[0];
    let wall_ns = sample["measurement"]["iterations"][0]["wall_ns"]
        .as_u64()
        .unwrap();
    assert!(wall_ns >= 2_000_000_000);
    let gib_seconds = mib / 1024.0 * wall_ns as f64 / 1e9;
    assert!(
        (number("gib_seconds") / gib_seconds - 1.0).abs() < 1e-9,
        "{row:?}"
    );
    assert!(
        sample["mean_heap"]["looks"].as_u64().unwrap() > 100,
        "{sample}"
    );
}
