//! Other code that affects the memory of a process: allocators and operators in the program,
//! libraries that come before the recorder or bypass it. The program behaves as without the
//! recorder, and calls that bypass it are not mistaken for others.

use crate::support::{Ledger, Scenario, compile, good};
use heapmark_wire::capture::{Event, Variant};
use std::process::Command;

/// What a program prints without the recorder.
fn plain(scenario: &Scenario) -> String {
    good(Command::new(scenario.program()).output().unwrap())
}

#[test]
fn operators_that_a_program_replaces_get_the_calls_of_all_others() {
    let scenario = Scenario::new("replaced.cpp");
    let (printed, capture) = scenario.recorded(&[]);
    assert_eq!(
        (printed.as_str(), plain(&scenario).as_str()),
        ("30 30\n", "30 30\n")
    );
    // Blocks of the program's pool are not the allocator's; those that the C++ library makes for
    // aligned operators are.
    assert_eq!(
        (3101..=3103)
            .map(|size| capture.mallocs(size))
            .sum::<usize>(),
        0
    );
    let aligned = |e: &Event| {
        matches!(
            e,
            Event::Aligned {
                align: 64,
                variant: Variant::AlignedAlloc,
                ..
            }
        )
    };
    assert_eq!((capture.count(aligned), capture.text("before")), (1, ""));
}

#[test]
fn a_program_with_a_malloc_of_its_own_is_served_by_that() {
    let scenario = Scenario::new("own_malloc.cpp");
    let (printed, capture) = scenario.recorded(&[]);
    assert_eq!(
        (printed.as_str(), plain(&scenario).as_str()),
        ("11\n", "11\n")
    );
    assert_eq!(
        (capture.mallocs(3201), capture.text("before")),
        (0, scenario.program().to_str().unwrap())
    );
}

#[test]
fn a_stub_in_a_program_is_no_malloc_of_its_own() {
    let scenario = Scenario::new("pointer.c");
    let fixed = scenario.dir.path().join("fixed");
    compile("pointer.c", &fixed, &["-fno-pie", "-no-pie"]);
    for program in [scenario.program(), &fixed] {
        good(scenario.command(program).output().unwrap());
    }
    let captures = scenario.captures();
    assert_eq!(captures.len(), 2);
    captures
        .iter()
        .for_each(|capture| assert_eq!((capture.mallocs(9201), capture.text("before")), (1, "")));
}

#[test]
fn an_allocator_that_is_preloaded_before_the_recorder_is_named() {
    let scenario = Scenario::new("pointer.c");
    let library = scenario.dir.path().join("selfish.so");
    compile("selfish.c", &library, &["-shared", "-fPIC"]);
    let preload = format!(
        "{}:{}",
        library.display(),
        crate::support::recorder().display()
    );
    good(
        scenario
            .command(scenario.program())
            .env("LD_PRELOAD", preload)
            .output()
            .unwrap(),
    );
    let capture = scenario.capture();
    assert_eq!(
        (capture.mallocs(9201), capture.text("before")),
        (0, library.to_str().unwrap())
    );
}

#[test]
fn a_realloc_whose_event_begins_a_chunk_has_the_moment_of_its_entry() {
    let scenario = Scenario::new("resizing.c");
    scenario.run_with("slow_realloc.c", &[]);
    let capture = scenario.capture();
    let took: Vec<u64> = capture
        .events()
        .filter_map(|noted| match noted.event {
            Event::Realloc {
                entered: Some(entered),
                ..
            } => Some(noted.stamp - entered),
            _ => None,
        })
        .collect();
    let of_threads = capture.streams.iter().filter(|events| events.len() > 6000);
    assert_eq!((took.len(), of_threads.count()), (4 * 6000, 4));
    assert!(capture.chunks >= 8, "each thread has several");
    // Each takes 200 us; without a clock of the CPU stamps are no times.
    let per_second: u64 = capture.text("stamps-per-second").parse().unwrap();
    let least = per_second / 10_000;
    let short = took.iter().filter(|stamps| **stamps < least).count();
    assert_eq!(short, 0, "of {}", took.len());
}

#[test]
fn what_was_allocated_before_the_allocator_was_found_is_never_given_to_it() {
    let scenario = Scenario::new("early.c");
    assert_eq!(scenario.run_with("early_library.c", &[]), "freed\n");
    let capture = scenario.capture();
    assert!(
        capture.text("allocator").ends_with("/libc.so.6"),
        "{}",
        capture.text("allocator")
    );
    assert_eq!(
        capture.count(|e| matches!(e, Event::FreeSized { .. } | Event::FreeAlignedSized { .. })),
        0
    );
}

#[test]
fn a_library_that_goes_past_the_recorder_leaves_halves_of_lives() {
    let scenario = Scenario::new("deep.c");
    compile(
        "deep_library.c",
        &scenario.dir.path().join("deep.so"),
        &["-shared", "-fPIC"],
    );
    scenario.run(&[]);
    let capture = scenario.capture();
    assert_eq!(
        (
            capture.mallocs(9101),
            capture.mallocs(9102),
            capture.text("end")
        ),
        (0, 1000, "exit")
    );
    let ledger = Ledger::of(&capture);
    assert_eq!((ledger.unknown.len(), ledger.born_twice.len()), (1000, 999));
}

#[test]
fn where_the_cpus_counter_is_not_wanted_a_counter_in_memory_orders_threads() {
    let scenario = Scenario::new("storm.c").with("HEAPMARK_RECORD_CLOCK", "counter");
    let (_, capture) = scenario.recorded(&[]);
    assert_eq!(
        (capture.text("clock"), capture.text("stamps-per-second")),
        ("counter", "0")
    );
    assert_eq!(
        (7001..7009)
            .map(|size| capture.mallocs(size))
            .sum::<usize>(),
        8 * 30_000
    );
    let mut stamps: Vec<u64> = capture
        .events()
        .filter(|n| n.thread > 0 && n.clocked)
        .map(|n| n.stamp)
        .collect();
    let count = stamps.len();
    stamps.sort_unstable();
    stamps.dedup();
    assert!(
        count > 8 * 60_000 && stamps.len() == count,
        "no two events have one stamp"
    );
}
