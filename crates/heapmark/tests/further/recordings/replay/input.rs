//! Traces that are not there or are none, and flags that make no sense.

use super::{free, malloc, pipeline, write};
use crate::support::Place;
use heapmark_trace::Event;
use std::fs;

#[test]
fn traces_that_are_missing_damaged_or_empty_are_one_line() {
    let place = Place::new();
    write(&place.at("empty.trace"), &[]);
    write(&place.at("good.trace"), &pipeline());
    let mut bytes = fs::read(place.at("good.trace")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(place.at("flipped.trace"), &bytes).unwrap();
    fs::write(place.at("short.trace"), &bytes[..middle]).unwrap();
    fs::write(place.at("other.trace"), "no trace").unwrap();
    fs::create_dir(place.at("folder.trace")).unwrap();
    let dead = [(0, malloc(1)), (0, free(0, 0)), (0, free(0, 0))];
    write(&place.at("dead.trace"), &dead);
    let inherits = Event::Inherit { objects: 1 << 29 };
    write(
        &place.at("inherits.trace"),
        &[(0, inherits), (0, malloc(1)), (0, free(0, 0))],
    );
    let cases = [
        ("gone.trace", "No such file"),
        ("empty.trace", "no call that could be replayed"),
        ("flipped.trace", "checksum"),
        ("short.trace", "ends"),
        ("other.trace", "no heapmark trace"),
        ("folder.trace", "cannot be read"),
        ("dead.trace", "event 2"),
        ("inherits.trace", "event 2: 536870911 more objects"),
    ];
    for (name, what) in cases {
        for args in [
            vec!["replay", name],
            vec!["run", "-w", &format!("trace:{name}")],
        ] {
            let end =
                place.run_with_own_cache(&[&args[..], &["-a", "glibc", "-o", "no-run"]].concat());
            let stats = place.run(&["trace", "stats", name]);
            let check = place.run(&["trace", "check", name]);
            assert_eq!(check.code, stats.code, "{name}");
            // A trace without a call is whole.
            let code = if name == "empty.trace" {
                Some(2)
            } else {
                stats.code
            };
            assert_eq!(
                end.code, code,
                "the same fault, {name}: {} and {}",
                end.stderr, stats.stderr
            );
            assert!(
                end.stderr.contains(what) && end.stderr.contains(name),
                "{name}: {}",
                end.stderr
            );
            assert_eq!(end.stderr.lines().count(), 1, "{name}: {}", end.stderr);
        }
    }
    let left_over = fs::read_dir(place.at("cache/compiled-traces"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert!(
        left_over.into_iter().eq(["CACHEDIR.TAG"]),
        "nothing half compiled stays"
    );
}

#[test]
fn flags_that_make_no_sense_are_usage() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let error = |flags: &[&str]| {
        let end = place.run(&[&["run", "-w", "trace:a.trace", "-a", "glibc"], flags].concat());
        assert_eq!(end.code, Some(2), "{flags:?}: {}", end.stderr);
        end.stderr
    };
    assert!(error(&["--set", "trace:a.mode=memory"]).contains("add --retained"));
    assert!(error(&["--set", "trace:a.mode=fast"]).contains("speed or memory or paced"));
    assert!(error(&["--set", "trace:a.skew=1"]).contains("4096 at least"));
    assert!(error(&["--set", "trace:a.reads=1"]).contains("programs of one thread"));
    assert!(error(&["--set", "trace:a.mode=paced"]).contains("tells no times"));
    assert!(error(&["--set", "trace:a.sha256=x"]).contains("expected"));
    assert_eq!(place.run(&["replay"]).code, Some(2));
    assert_eq!(
        place.run(&["replay", "a.trace", "--mode", "quick"]).code,
        Some(2)
    );
}
