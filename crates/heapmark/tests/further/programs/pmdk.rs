//! PMDK's libpmemobj as a measured program, through the built binary; nothing to test where it is not there.

use crate::support::home::{Home, outcomes};
use crate::support::of_purpose;
use serde_json::Value;
use std::collections::BTreeMap;

fn checks(records: &[Value]) -> BTreeMap<String, String> {
    outcomes(records, "check")
}

#[test]
fn pmdk_obtains_the_blocks_that_its_parameters_imply() {
    let home = Home::new();
    let pmdk = home.programs().remove("zalloc-pmdk").unwrap();
    if pmdk.starts_with("absent") {
        println!("{pmdk}");
        return;
    }
    let run = |set: &[&str]| {
        let set: Vec<String> = set
            .iter()
            .flat_map(|one| ["--set".into(), format!("zalloc-pmdk.{one}")])
            .collect();
        let mut arguments = vec![
            "-w",
            "zalloc-pmdk",
            "-t",
            "1,3",
            "-a",
            "glibc",
            "--set",
            "zalloc-pmdk.pool-bytes=33554432",
        ];
        arguments.extend(set.iter().map(String::as_str));
        home.run(2, &arguments).1
    };
    for (set, ops) in [
        (["blocks=17", "size=100", "free=keep"], 17),
        (["blocks=5", "size=4096", "free=immediate"], 10),
    ] {
        let blocks = if ops == 17 { 17 } else { 5 };
        let samples = run(&set);
        let measured = of_purpose(&samples, "sample");
        assert_eq!(measured.len(), 2 * 2 * 3, "{:?}", checks(&samples));
        for record in measured {
            let (measurement, threads) =
                (&record["measurement"], record["threads"].as_u64().unwrap());
            assert_eq!(
                measurement["iterations"][0]["ops"],
                ops * threads,
                "{record}"
            );
            let zeroing = record["allocator"] == "PMDK:zalloc";
            let calls = &measurement["calls"];
            assert_eq!(
                calls[if zeroing { "calloc" } else { "malloc" }],
                blocks * threads,
                "{record}"
            );
            assert_eq!(calls["free"], blocks * threads, "{record}");
            let wall = measurement["iterations"][0]["wall_ns"].as_u64().unwrap() as f64;
            let threads_ns = measurement["threads"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["wall_ns"].as_f64().unwrap());
            assert_eq!(
                wall,
                threads_ns.fold(0.0, f64::max),
                "the headline is the last thread's end"
            );
            let mean = measurement["figures"]["mean_thread_ns"].as_f64().unwrap();
            assert!(mean > 0.0 && mean <= wall);
        }
    }
    // More than the pool holds, and blocks that it does not have.
    assert!(
        checks(&run(&["blocks=20000", "size=4096"]))
            .values()
            .all(|outcome| outcome.starts_with("oom the pool is full"))
    );
    assert!(
        checks(&run(&["size=0"]))
            .values()
            .all(|outcome| outcome.starts_with("unsupported"))
    );
    // A folder that is no persistent memory is no device, whatever it is called.
    for (set, says) in [
        ("zalloc-optane.blocks=3", "absent no device"),
        ("zalloc-optane.pool=/tmp", "unsupported no device"),
    ] {
        let (_, samples) = home.run(
            2,
            &[
                "-w",
                "zalloc-optane",
                "-t",
                "1",
                "-a",
                "glibc",
                "--set",
                set,
            ],
        );
        let outcomes = checks(&samples);
        assert_eq!(outcomes.len(), 3);
        assert!(
            outcomes.values().all(|outcome| outcome.starts_with(says)),
            "{outcomes:?}"
        );
    }
}
