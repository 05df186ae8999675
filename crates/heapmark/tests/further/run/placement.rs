//! `traverse` through the built binary: counts of addresses that lie between those of two copies and repeat, and who
//! spreads its blocks is last.

use crate::support::{Place, of_purpose, samples, word, words};
use std::collections::{BTreeMap, BTreeSet};

const SMALL: [&str; 6] = [
    "--set",
    "traverse*.nodes=3000",
    "--set",
    "traverse*.litter=4194304",
    "-t",
    "1",
];

fn run(place: &Place, name: &str, flags: &[&str]) -> String {
    let end = place.run(&[&["run", "-o", name], flags, &SMALL].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    end.stdout
}

#[test]
fn nodes_lie_between_two_copies_and_where_each_has_a_page_is_last() {
    let place = Place::new();
    let sparse = format!("glibc,sparse={}", place.fake("sparse").display());
    let chosen = [
        "-w",
        "traverse,traverse-fresh,traverse-tree,traverse-hash,traverse-records",
        "-a",
        &sparse,
        "--retained",
        "--blocks",
        "1",
        "--seed",
        "7",
    ];
    for name in ["one", "two"] {
        run(&place, name, &chosen);
        let printed = place.run(&["show", "--full", name]).stdout;
        assert!(printed.contains("pages: of 4 KiB"), "{printed}");
    }
    let records = ["one", "two"].map(|name| samples(&place.at(name))).concat();
    let mut seen: BTreeMap<[&str; 2], BTreeSet<String>> = BTreeMap::new();
    for record in of_purpose(&records, "memory") {
        let [workload, allocator] = ["workload", "allocator"].map(|key| word(record, key));
        let figures = &record["measurement"]["figures"];
        let figure = |name: &str| {
            figures[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name} of {record}"))
        };
        let pages = figure("pages_per_1000_nodes");
        let [packed, scattered] =
            ["packed", "scattered"].map(|copy| figure(&format!("{copy}_pages_per_1000_nodes")));
        if allocator == "glibc" {
            assert!(
                packed <= pages && pages <= scattered,
                "{workload}: {packed}, {pages}, {scattered}"
            );
        } else {
            // A record's string has another page.
            let of_node = if workload == "traverse-records" {
                2.0
            } else {
                1.0
            };
            assert!(
                (990.0..=1000.0).contains(&(pages / of_node)),
                "{workload}: {pages}"
            );
        }
        // How many regions of 2 MiB it is depends on where the heap begins.
        let counted = [
            "pages_per_1000_nodes",
            "lines_per_node",
            "tlb_64_misses_per_node",
        ]
        .map(|name| figure(name).to_string());
        seen.entry([workload, allocator])
            .or_default()
            .insert(counted.join(" "));
    }
    assert_eq!(seen.len(), 10, "{seen:?}");
    for (row, counts) in seen {
        assert_eq!(counts.len(), 1, "{row:?}: {counts:?}");
    }
}

#[test]
fn times_are_told_as_places_between_the_copies_and_have_no_floor() {
    let place = Place::new();
    let chosen = [
        "-w",
        "traverse",
        "-a",
        "glibc,null",
        "--blocks",
        "2",
        "--no-repeat",
    ];
    let printed = words(&run(&place, "run", &chosen));
    assert!(
        printed.contains("placement, from 0 % (the time of a packed copy) to 100 %"),
        "{printed}"
    );
    assert!(!printed.contains("floor: null"), "{printed}");
    let records = samples(&place.at("run"));
    let timed = of_purpose(&records, "sample");
    assert_eq!(timed.len(), 2);
    for record in timed {
        assert_eq!(word(record, "allocator"), "glibc");
        let figures = &record["measurement"]["figures"];
        for name in [
            "packed_ns_per_node",
            "scattered_ns_per_node",
            "build_ns_per_node",
        ] {
            assert!(
                figures[name].as_f64().is_some_and(|ns| ns > 0.0),
                "{name}: {figures}"
            );
        }
    }
}

/// The peak is that of the workload: without the copies that `traverse` makes after its clock, and the tables from which `steady`
/// draws what it will do.
#[test]
fn what_the_harness_takes_before_and_after_the_work_is_no_growth() {
    let place = Place::new();
    let growth = |workload: &str, set: &str| {
        let flags = ["-w", workload, "-a", "glibc", "-t", "1", "--blocks", "1"];
        let quick = ["--set", set, "--no-repeat", "-o", workload];
        let end = place.run(&[&["run"], &flags[..], &quick].concat());
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
        let records = samples(&place.at(workload));
        // The floor's is another.
        let mut timed = of_purpose(&records, "sample").into_iter();
        let measured = &timed.find(|it| it["allocator"] == "glibc").unwrap()["measurement"];
        let bytes = |key: &str| measured[key].as_f64().unwrap();
        (bytes("peak_rss_bytes") - bytes("baseline_rss_bytes")) / bytes("requested_peak_bytes")
    };
    let traversed = growth("traverse-fresh", "traverse-fresh.passes=1");
    assert!((0.9..3.0).contains(&traversed), "{traversed}");
    let steady = growth("steady", "steady.operations=1000000");
    assert!((0.9..1.7).contains(&steady), "{steady}");
}
