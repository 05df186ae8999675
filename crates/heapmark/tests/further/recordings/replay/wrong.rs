//! Allocators that go wrong or are not there, and a machine without the memory that a trace needs.

use super::{free, malloc, pipeline, replay, write};
use crate::support::{Place, samples, word};
use heapmark_trace::{Event, Variant};
use serde_json::Value;
use std::fs;

#[test]
fn allocators_that_go_wrong_are_caught_with_the_place_in_the_trace() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let outcome = |fake: &str, flags: &[&str]| {
        let allocators = format!("{fake}={}", place.fake(fake).display());
        let name = format!("run-{fake}");
        let fixed = [
            "-a",
            &allocators,
            "--blocks",
            "1",
            "--target-ms",
            "2",
            "--no-floor",
            "-o",
            &name,
        ];
        let end = place.run(&[&["replay", "a.trace"], &fixed[..], flags].concat());
        assert_eq!(end.code, Some(4), "{fake}: {}{}", end.stdout, end.stderr);
        let records = samples(&place.at(&name));
        let own = records
            .iter()
            .find(|record| word(record, "allocator") == fake && record["outcome"]["kind"] != "ok");
        own.unwrap_or_else(|| panic!("{fake}: {}", end.stderr))["outcome"].clone()
    };
    let told = |outcome: &Value| outcome.to_string();
    let starver = told(&outcome("starver", &[]));
    assert!(
        starver.contains("oom") && starver.contains("of thread 0, its allocation"),
        "{starver}"
    );
    assert!(told(&outcome("overlapper", &[])).contains("overlaps a live block"));
    assert!(told(&outcome("misaligner", &[])).contains("not aligned"));
    let crasher = told(&outcome("crasher", &[]));
    assert!(
        crasher.contains("crash") && crasher.contains("at its operation"),
        "{crasher}"
    );
    let hanger = told(&outcome("hanger", &["--timeout", "3"]));
    assert!(
        hanger.contains("hang") && hanger.contains("thread 0 at its operation"),
        "{hanger}"
    );
    assert!(
        hanger.contains("thread 1 at its operation") && hanger.contains(", waits for thread 0"),
        "{hanger}"
    );
    let killed = told(&outcome("killed", &[]));
    assert!(
        killed.contains("SIGKILL") && killed.contains("run (thread 0 at its operation"),
        "{killed}"
    );
}

#[test]
fn an_alignment_that_is_refused_is_told_from_memory_that_is_out() {
    let place = Place::new();
    write(
        &place.at("a.trace"),
        &[
            (
                0,
                Event::Aligned {
                    align: 64,
                    size: 100,
                    variant: Variant::Memalign,
                },
            ),
            (0, free(0, 0)),
        ],
    );
    let allocators = format!("no_aligned={},glibc", place.fake("no_aligned").display());
    let end = replay(&place, &["a.trace", "-a", &allocators, "--blocks", "1"]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let told =
        "wrong-result: posix_memalign(64, 100) returned ENOMEM, though malloc(164) has memory";
    assert!(end.stderr.contains(told), "{}", end.stderr);
}

#[test]
fn null_for_no_bytes_is_no_lack_of_memory() {
    let place = Place::new();
    let events = [
        (0, malloc(0)),
        (0, malloc(8)),
        (0, free(0, 0)),
        (0, free(0, 1)),
    ];
    write(&place.at("a.trace"), &events);
    let allocators = format!("conforming={},glibc", place.fake("null_for_zero").display());
    let end = replay(&place, &["a.trace", "-a", &allocators, "--blocks", "1"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
}

#[test]
fn a_library_that_is_missing_or_made_for_another_machine_is_said_and_the_others_are_measured() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let mut bytes = fs::read(place.fake("honest")).unwrap();
    // The low byte of e_machine: PowerPC.
    bytes[18] = 20;
    fs::write(place.at("libforeign.so"), bytes).unwrap();
    let end = replay(
        &place,
        &[
            "a.trace",
            "-a",
            "glibc,gone=./gone.so,foreign=./libforeign.so",
            "--blocks",
            "1",
        ],
    );
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    for why in [
        "gone.so: there is no such file",
        "made for PowerPc (64 bit)",
    ] {
        assert!(end.says(why), "{}", end.stdout);
    }
    let records = samples(&place.at("run"));
    let is_numbered = |name: &str| {
        records
            .iter()
            .any(|it| it["allocator"] == name && !it["measurement"].is_null())
    };
    assert_eq!(
        ["glibc", "gone", "foreign"].map(is_numbered),
        [true, false, false]
    );
}

#[test]
fn a_trace_that_needs_more_memory_than_there_is_is_not_begun() {
    let place = Place::new();
    write(
        &place.at("a.trace"),
        &[(0, malloc(8)), (0, malloc(1 << 46)), (0, free(0, 1))],
    );
    let end = replay(&place, &["a.trace", "-a", "glibc", "--blocks", "1"]);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    assert!(
        end.stderr
            .contains("glibc: unsupported: needs about 67108864 MiB, "),
        "{}",
        end.stderr
    );
}
