//! Stacks that are small, or not the thread's own, or that something jumps away from: a program
//! runs on them as without the recorder, and all of its calls are recorded.

use crate::support::{Capture, Ledger, Scenario, compile, good};
use heapmark_wire::capture::Event;
use std::process::Command;

/// The most that any hook may take of the program's stack.
const MOST_BYTES: usize = 1024;

/// The stack use of functions that start from the library's own code: hooks, and functions of ours
/// that the C library calls.
#[cfg(target_arch = "x86_64")]
#[test]
fn no_hook_takes_more_than_a_kilobyte_of_the_programs_stack() {
    let own = |name: &str| {
        name.contains("heapmark_recorder") || !name.starts_with('_') || name.starts_with("_Z")
    };
    let found = crate::support::deepest(&crate::support::recorder());
    assert!(
        ["malloc", "free", "_Znwm", "fork", "pthread_create"]
            .iter()
            .all(|hook| found.contains_key(*hook))
    );
    let deep: Vec<_> = found
        .iter()
        .filter(|(name, bytes)| own(name) && bytes.is_none_or(|b| b > MOST_BYTES))
        .collect();
    assert!(deep.is_empty(), "{deep:?}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_function_that_takes_two_kilobytes_is_found() {
    let home = tempfile::tempdir().unwrap();
    let library = home.path().join("greedy.so");
    compile("greedy.c", &library, &["-shared", "-fPIC"]);
    let found = crate::support::deepest(&library);
    assert!(
        found["malloc"].is_some_and(|bytes| (2000..2100).contains(&bytes)),
        "{found:?}"
    );
    assert!(found["free"].is_some_and(|bytes| bytes < 100), "{found:?}");
}

#[test]
fn a_child_of_a_thread_with_the_least_stack_is_on_record() {
    let scenario = Scenario::new("small_stack.c");
    scenario.run(&[]);
    let captures = scenario.captures();
    assert_eq!((captures.len(), captures[1].mallocs(6101)), (2, 1));
}

#[test]
fn calls_on_a_fibre_go_no_more_than_a_kilobyte_deeper_than_without_the_recorder() {
    let scenario = Scenario::new("fibre_fork.c");
    let numbers = |text: String| {
        text.split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect::<Vec<usize>>()
    };
    let plain = numbers(good(Command::new(scenario.program()).output().unwrap()));
    let recorded = numbers(scenario.run(&[]));
    assert_eq!((plain.len(), recorded.len()), (6, 6));
    let deeper = plain
        .iter()
        .zip(&recorded)
        .all(|(plain, recorded)| *recorded <= plain + MOST_BYTES);
    assert!(
        deeper,
        "usual, resized, aligned, large, failing, a child's first: {plain:?}, recorded {recorded:?}"
    );
    let captures = scenario.captures();
    assert_eq!(
        (captures[0].mallocs(6202), captures[1].mallocs(6205)),
        (100_000, 1)
    );
}

/// Interrupted events are whole, and the interrupting ones are recorded as well.
fn assert_interrupted(file: &str, size: u64) {
    let (printed, capture) = Scenario::new(file).recorded(&[]);
    let (handled, nulls) = printed.trim().split_once(' ').unwrap();
    assert_eq!(
        (capture.mallocs(size), capture.dropped),
        (handled.parse().unwrap(), 0)
    );
    let found = capture.count(|e| *e == Event::FreeNull);
    let nulls: usize = nulls.parse().unwrap();
    // The first block that a handler frees may have been NULL, too.
    assert!(
        found == nulls || found == nulls + 1,
        "{found} and not {nulls}"
    );
}

#[test]
fn a_handler_on_a_stack_above_that_the_kernel_forgets_leaves_the_stream_whole() {
    assert_interrupted("autodisarm.c", 8211);
}

#[test]
fn what_a_handler_allocates_while_the_allocator_is_interrupted_is_on_record() {
    for stack in ["forgotten", "known", "same"] {
        let scenario = Scenario::new("handler_inside.c");
        let printed = scenario.run_with("signal_safe.c", &[stack]);
        let capture = scenario.capture();
        let handled = printed.trim().parse::<usize>().unwrap();
        assert_eq!(
            (capture.mallocs(8231), capture.dropped),
            (handled, 0),
            "{stack}"
        );
        // By which the allocator's malloc gets its blocks.
        let inner = capture.count(|e| matches!(e, Event::Aligned { .. }));
        assert_eq!(inner, 0, "{stack}");
    }
}

#[test]
fn a_handler_that_goes_over_to_another_stack_and_comes_back_leaves_the_stream_whole() {
    assert_interrupted("switched.c", 8221);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_that_is_left_after_any_instruction_for_another_that_is_left_after_any_leaves_the_stream_whole()
 {
    let (printed, capture) = Scenario::new("stepped.c").recorded(&[]);
    assert_eq!(
        capture.count(|e| *e == Event::FreeNull),
        printed.trim().parse::<usize>().unwrap() + 1
    );
    assert_eq!(capture.dropped, 0);
}

/// With an allocator that a handler can jump out of.
fn jumped_out(words: &[&str]) -> Capture {
    let scenario = Scenario::new("jump_out.c");
    scenario.run_with("jumping.c", words);
    let capture = scenario.capture();
    assert!(Ledger::of(&capture).born_twice.is_empty());
    capture
}

#[test]
fn after_a_jump_out_of_malloc_calls_that_seem_to_be_within_it_are_on_record_or_counted() {
    let capture = jumped_out(&[]);
    let frees = capture.count(|e| matches!(e, Event::Free { .. }));
    assert!(capture.dropped <= 1000, "{} events lost", capture.dropped);
    assert_eq!(
        capture.mallocs(9402) + frees + capture.dropped as usize,
        200_000
    );
}

#[test]
fn after_a_jump_out_of_malloc_whose_frame_is_overwritten_every_call_is_on_record() {
    let capture = jumped_out(&["overwrite"]);
    assert_eq!((capture.mallocs(9402), capture.dropped), (100_000, 0));
}

#[test]
fn fibres_of_the_c_library_are_recorded_to_the_call() {
    let (_, capture) = Scenario::new("fibres.c").recorded(&[]);
    let realloc = |e: &Event| matches!(e, Event::Realloc { size: 6502, .. });
    assert_eq!(
        (
            capture.mallocs(6501),
            capture.count(realloc),
            capture.dropped
        ),
        (100_000, 100_000, 0)
    );
    let ledger = Ledger::of(&capture);
    assert_eq!((ledger.alive(6501), ledger.alive(6502)), (0, 0));
}

#[test]
fn fibres_of_boost_are_recorded_to_the_call() {
    if !std::path::Path::new("/usr/include/boost/context/fiber.hpp").exists() {
        eprintln!("not tested: apt-get install libboost-context-dev");
        return;
    }
    let (_, capture) = Scenario::with_flags("fibres.cpp", &["-lboost_context"]).recorded(&[]);
    let news = |e: &Event| {
        matches!(
            e,
            Event::Malloc {
                size: 4,
                operator: true,
                ..
            }
        )
    };
    // The first fibre is unwound at its end, which its last number does not include.
    assert_eq!(
        (capture.mallocs(6511), capture.count(news)),
        (50, 49 * 2000 + 2001)
    );
    let ledger = Ledger::of(&capture);
    assert_eq!((ledger.alive(6511), ledger.alive(4)), (0, 1));
}
