//! Programs in C++: what their operators made goes back by the operators that belong to it.

use super::{Told, free, malloc, replay, write};
use crate::support::{Place, glibc_again, of_purpose, samples, word};
use heapmark_trace::{Event, Token, Variant};
use std::process::Command;

fn new(size: u64) -> Event {
    Event::Malloc {
        size,
        operator: true,
    }
}

fn token(index: u64) -> Token {
    Token { thread: 0, index }
}

/// Each maker with each end that a program, a correct one or not, may have had for it; and some that are left.
fn every_pair() -> Vec<Told> {
    let makers = || {
        let aligned = |variant| Event::Aligned {
            align: 64,
            size: 8,
            variant,
        };
        [
            malloc(8),
            new(8),
            new(0),
            aligned(Variant::Operator),
            aligned(Variant::PosixMemalign),
        ]
    };
    let mut events = Vec::new();
    let mut made = 0;
    for maker in makers() {
        for end in 0..5 {
            events.push((0, maker.clone()));
            let (token, size, align) = (token(made), 8, 64);
            events.push(match end {
                0 => (0, free(0, made)),
                1 => (0, Event::FreeSized { token, size }),
                2 => (0, Event::FreeSized { token, size: 7 }),
                3 => (0, Event::FreeAligned { token, align }),
                _ => (0, Event::FreeAlignedSized { token, align, size }),
            });
            made += 1;
        }
        events.push((0, maker));
        made += 1;
    }
    events
}

#[test]
fn an_allocator_that_tells_new_from_malloc_gets_each_block_back_by_what_belongs_to_it() {
    let place = Place::new();
    write(&place.at("a.trace"), &every_pair());
    let separate = format!("separate={}", place.fake("separate").display());
    let flags = ["--no-floor", "--blocks", "1", "--check-again"];
    let short = ["--target-ms", "2"];
    let single = ["--latency", "--target-ms", "2"];
    // What its timed processes call, its checks, those that time single calls, and those that are followed for their memory.
    for (run, more) in [
        ("speed", &short[..]),
        ("single", &single),
        ("memory", &["--retained"]),
    ] {
        let end = place.run(
            &[
                &["replay", "a.trace", "-a", &separate, "-o", run],
                &flags[..],
                more,
            ]
            .concat(),
        );
        assert_eq!(end.code, Some(0), "{run}: {}{}", end.stdout, end.stderr);
    }
    let records = samples(&place.at("speed"));
    let calls = &of_purpose(&records, "check")[0]["measurement"]["calls"];
    let calls = ["malloc", "free", "posix_memalign"].map(|name| calls[name].as_u64().unwrap());
    assert_eq!(
        calls,
        [18, 30, 12],
        "operators count as what they stand for: {records:?}"
    );
}

#[test]
fn an_operator_without_memory_is_no_crash_of_the_allocator() {
    let place = Place::new();
    write(&place.at("a.trace"), &[(0, new(77_777)), (0, free(0, 0))]);
    let separate = format!("separate={}", place.fake("separate").display());
    let end = replay(
        &place,
        &["a.trace", "-a", &separate, "--no-floor", "--blocks", "1"],
    );
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    assert!(
        end.says("oom: operator new has found no memory"),
        "{}{}",
        end.stdout,
        end.stderr
    );
}

#[test]
fn small_objects_of_cpp_are_replayed_under_allocators_with_classes_of_their_own_for_new() {
    let place = Place::new();
    place.ready(&["gperftools"]);
    small_objects_are_replayed(&place, "gperftools");
}

#[test]
#[ignore = "make test-all"]
fn small_objects_of_cpp_are_replayed_under_tcmalloc() {
    let place = Place::new();
    place.ready(&["tcmalloc"]);
    small_objects_are_replayed(&place, "tcmalloc");
}

#[test]
#[should_panic(expected = "libc served 100 %")]
fn small_objects_that_one_library_replays_under_two_names_are_noticed() {
    small_objects_are_replayed(&Place::new(), &glibc_again());
}

fn small_objects_are_replayed(place: &Place, allocator: &str) {
    std::fs::write(
        place.at("s.cpp"),
        "#include <vector>\nint main() {\n  std::vector<int *> v;\n  for (int r = 0; r < 40; r++) {\n\
         for (int i = 0; i < 5000; i++) v.push_back(new int(i));\n    for (int *p : v) delete p;\n    v.clear();\n  }\n}\n",
    )
    .unwrap();
    let built = Command::new("c++")
        .args(["-std=c++17", "-O1", "-o"])
        .arg(place.at("s"))
        .arg(place.at("s.cpp"))
        .status();
    assert!(built.unwrap().success());
    let recorded = place.run(&["record", "-o", "s.trace", "--", "./s"]);
    assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
    let separate = format!("separate={}", place.fake("separate").display());
    let allocators = ["glibc", allocator, &separate];
    let end = replay(
        place,
        &[
            "s.trace",
            "-a",
            &allocators.join(","),
            "--baseline",
            "glibc",
            "--blocks",
            "4",
        ],
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    assert!(
        records
            .iter()
            .all(|record| record["outcome"]["kind"] == "ok"),
        "{records:?}"
    );
    let measured = of_purpose(&records, "sample");
    for name in ["separate", allocator] {
        let mut all = measured.iter();
        assert!(
            all.any(|record| word(record, "allocator") == name),
            "{name}"
        );
    }
}
