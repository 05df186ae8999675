//! Where the time of an operation goes: a library that gives every freed page back to the kernel, beside one that is the
//! same otherwise.

use crate::support::Place;
use serde_json::Value;

/// Each block is three whole pages and more, all written to.
const WORK: [&str; 12] = [
    "run",
    "-w",
    "same-thread-reuse",
    "-t",
    "1",
    "--set",
    "same-thread-reuse.min-size=16000",
    "--set",
    "same-thread-reuse.max-size=16000",
    "--set",
    "same-thread-reuse.volume=8000000",
    "--no-aa-copy",
];

#[test]
fn what_a_library_that_returns_memory_costs_more_is_the_kernels_part() {
    let place = Place::new();
    let library = |name: &str| format!("{name}={}", place.fake(name).display());
    let both = format!("{},{}", library("honest"), library("returner"));
    let choice = [
        "-a",
        &both,
        "--baseline",
        "honest",
        "--blocks",
        "3",
        "--target-ms",
        "10",
        "-o",
        "run",
    ];
    let end = place.run(&[&WORK[..], &choice].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let stored = place.run(&["export", "run", "--to", "json"]).stdout;
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let rows = stored["analysis"]["cases"][0]["rows"].as_array().unwrap();
    let state = |name: &str| &rows.iter().find(|row| row["allocator"] == name).unwrap()["state"];
    let part = |name, part| state(name)["parts"][part].as_f64().unwrap();
    let faults = |name| part(name, "faults");
    let cpu_ns = |name| {
        let mut cells = state(name)["cells"].as_array().unwrap().iter();
        let cell = cells
            .find(|cell| cell["metric"] == "cpu_ns_per_op")
            .unwrap();
        cell["spread"]["median"].as_f64().unwrap()
    };
    // Three or four pages for each pair of malloc and free.
    assert!(
        faults("returner") > 1.4 && faults("honest") < 0.2,
        "{rows:?}"
    );
    // CPU time, since waiting for a CPU of a busy machine is in the wall time.
    let kernel = part("returner", "kernel_ns") - part("honest", "kernel_ns");
    let cpu = cpu_ns("returner") - cpu_ns("honest");
    assert!(
        kernel > cpu / 2.0 && cpu > 0.0,
        "{kernel} of {cpu}: {rows:?}"
    );
    assert!(
        end.stdout.contains("faults/op"),
        "the row says why: {}",
        end.stdout
    );
}
