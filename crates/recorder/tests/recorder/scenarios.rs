//! Small programs that are hard to record. Each recording is compared with what its program did:
//! exact counts of calls, identified by sizes that no other code uses, and no address that is born
//! while it lives.

use crate::support::{Capture, Ledger, Scenario, compile, good};
use heapmark_wire::capture::{Call, Event, Variant};

/// The requested sizes of events of one kind.
fn sizes(scenario: &Scenario, of: impl Fn(&Event) -> Option<u64>) -> Vec<u64> {
    scenario
        .capture()
        .events()
        .filter_map(|noted| of(&noted.event))
        .collect()
}

#[test]
fn each_function_of_c_is_recorded_with_its_arguments() {
    let scenario = Scenario::new("family.c");
    let (_, capture) = scenario.recorded(&[]);
    let ours = |size: u64| (5000..5200).contains(&size) || size == 701;
    assert_eq!(
        sizes(&scenario, |e| if let Event::Malloc { size, .. } = e {
            Some(*size)
        } else {
            None
        }
        .filter(|s| ours(*s))),
        [5001, 5004, 5009]
    );
    assert_eq!(
        capture.count(|e| matches!(
            e,
            Event::Calloc {
                count: 7,
                size: 701,
                ..
            }
        )),
        1
    );
    let reallocs: Vec<_> = capture
        .events()
        .filter_map(|noted| match noted.event {
            Event::Realloc { old, new, size, .. } => Some((old != 0, new != 0, size)),
            _ => None,
        })
        .collect();
    assert_eq!(
        reallocs,
        [
            (true, true, 5002),
            (true, true, 5103),
            (false, true, 5003),
            (true, false, 0)
        ]
    );
    let aligned: Vec<_> = capture
        .events()
        .filter_map(|noted| match noted.event {
            Event::Aligned {
                align,
                size,
                variant,
                ..
            } => Some((variant, align, size)),
            _ => None,
        })
        .collect();
    let page = capture.text("page-bytes").parse().unwrap();
    let expected = [
        (Variant::PosixMemalign, 64, 5005),
        (Variant::AlignedAlloc, 128, 5120),
        (Variant::Memalign, 256, 5006),
        (Variant::Valloc, page, 5007),
        (Variant::Pvalloc, page, 5008),
    ];
    assert_eq!(aligned, expected);
    let failed: Vec<_> = capture
        .events()
        .filter_map(|noted| {
            if let Event::Failed { call, size } = noted.event {
                Some((call, size))
            } else {
                None
            }
        })
        .collect();
    let most = u64::MAX;
    assert_eq!(
        failed,
        [
            (Call::Malloc, 1 << 60),
            (Call::Calloc, most),
            (Call::Realloc, most),
            (Call::Aligned, 10)
        ]
    );
    assert_eq!(capture.count(|e| matches!(e, Event::UsableSize { .. })), 1);
    let set = Event::Mallopt {
        parameter: libc::M_TOP_PAD,
        value: 5010,
    };
    for once in [
        Event::FreeNull,
        Event::Main,
        set,
        Event::Trim { pad: 5011 },
        Event::Info,
    ] {
        assert_eq!(capture.count(|e| *e == once), 1, "{once:?}");
    }
    assert_eq!(
        (capture.text("begin"), capture.text("end")),
        ("start", "exit")
    );
    assert!(capture.text("end.peak-rss-bytes").parse::<u64>().unwrap() > 1 << 20);
    assert!(
        capture
            .events()
            .all(|noted| noted.thread == 0 && (!noted.clocked || noted.event == Event::Clock))
    );
}

#[test]
fn each_operator_of_cpp_is_recorded_once_and_exceptions_find_their_handlers() {
    let scenario = Scenario::new("operators.cpp");
    let (printed, capture) = scenario.recorded(&[]);
    assert_eq!(printed, "3 3\n");
    for size in 3001..=3006 {
        assert_eq!(
            capture.count(
                |e| matches!(e, Event::Malloc { size: s, operator: true, .. } if *s == size)
            ),
            1,
            "{size}"
        );
        assert_eq!(
            capture.count(
                |e| matches!(e, Event::Malloc { size: s, operator: false, .. } if *s == size)
            ),
            0,
            "{size}"
        );
    }
    let aligned = |size: u64| {
        let of = |e: &Event| matches!(e, Event::Aligned { size: s, align: 64, variant: Variant::Operator, .. } if *s == size);
        capture.count(of)
    };
    assert!((3007..=3012).all(|size| aligned(size) == 1));
    let sized = |size: u64| {
        capture
            .count(|e| matches!(e, Event::FreeSized { size: s, operator: true, .. } if *s == size))
    };
    assert_eq!((sized(3005), sized(3006)), (1, 1));
    let both = |size: u64| {
        let of = |e: &Event| matches!(e, Event::FreeAlignedSized { size: s, align: 64, operator: true, .. } if *s == size);
        capture.count(of)
    };
    assert_eq!((both(3011), both(3012), both(64)), (1, 1, 1));
    assert_eq!(
        capture.count(|e| matches!(e, Event::FreeAligned { align: 64, .. })),
        4
    );
    // Three throw, two return NULL, and three of those go through a second operator of the C++
    // library. new(0) is recorded with size 0.
    assert_eq!(
        capture.count(|e| matches!(
            e,
            Event::Failed {
                call: Call::Operator,
                ..
            }
        )),
        8
    );
    // The C++ library allocates before the recorder's own constructor has run: the thread still has
    // one stream, and no stamps, which cost more than all else.
    assert!(
        capture
            .events()
            .all(|noted| !noted.clocked || noted.event == Event::Clock)
    );
    assert_eq!(
        capture.count(|e| matches!(
            e,
            Event::Malloc {
                size: 0,
                operator: true,
                ..
            }
        )),
        1
    );
}

#[test]
fn threads_that_free_each_others_blocks_are_ordered_by_their_stamps() {
    let (_, capture) = Scenario::new("storm.c").recorded(&[]);
    for thread in 0..8 {
        assert_eq!(capture.mallocs(7001 + thread), 30_000);
    }
    assert_eq!(
        capture.count(|e| matches!(e, Event::Realloc { size: 7101, .. })),
        8 * 30_000 / 8
    );
    assert_eq!(capture.count(|e| matches!(e, Event::ThreadStart { .. })), 8);
    assert_eq!(capture.count(|e| *e == Event::ThreadExit), 8);
    let ledger = Ledger::of(&capture);
    assert!(
        (7001..=7101).all(|size| ledger.alive(size) == 0),
        "all is freed"
    );
    assert!(
        capture
            .events()
            .filter(|noted| noted.thread > 0)
            .all(|noted| noted.clocked)
    );
}

#[test]
fn a_recording_with_an_event_missing_or_another_kind_is_found_out() {
    let (_, capture) = Scenario::new("storm.c").recorded(&[]);
    let is_free = |noted: &crate::support::Noted| matches!(noted.event, Event::Free { .. });
    let mut streams = capture.streams.clone();
    let (stream, place) = (0..streams.len())
        .find_map(|stream| {
            streams[stream]
                .iter()
                .position(is_free)
                .map(|place| (stream, place))
        })
        .unwrap();
    let Event::Free { address, .. } = streams[stream].remove(place).event else {
        unreachable!()
    };
    // Its address is used again, or lives at the end: this program allows neither.
    let ledger = Ledger::of_events(&streams);
    assert!(ledger.born_twice.contains(&address) || ledger.alive.contains_key(&address));
    let mut streams = capture.streams.clone();
    let birth = streams
        .iter_mut()
        .flatten()
        .find(|n| matches!(n.event, Event::Malloc { size: 7001, .. }))
        .unwrap();
    let Event::Malloc { address, .. } = birth.event else {
        unreachable!()
    };
    birth.event = Event::UsableSize { address };
    assert!(Ledger::of_events(&streams).unknown.contains(&address));
}

#[test]
fn ten_thousand_short_threads_need_no_more_chunks_than_two() {
    let (_, capture) = Scenario::new("short_threads.c").recorded(&["10000"]);
    assert_eq!(capture.mallocs(7001), 10_000);
    assert_eq!(
        capture.count(|e| matches!(e, Event::ThreadStart { .. })),
        10_000
    );
    assert_eq!(capture.count(|e| *e == Event::ThreadExit), 10_000);
    let threads: std::collections::HashSet<u32> =
        capture.events().map(|noted| noted.thread).collect();
    assert_eq!(threads.len(), 10_001);
    // The main thread's stream, and one or two that the others pass on: a thread may start before
    // the last has left.
    assert!(
        capture.streams.len() <= 4,
        "{} streams",
        capture.streams.len()
    );
}

#[test]
fn threads_that_cannot_be_started_are_none() {
    let (_, capture) = Scenario::new("failing_threads.c").recorded(&[]);
    let threads: std::collections::BTreeSet<u32> =
        capture.events().map(|noted| noted.thread).collect();
    assert_eq!((capture.mallocs(7201), threads), (1, [0, 1].into()));
    let starts: Vec<_> = capture
        .events()
        .filter(|noted| matches!(noted.event, Event::ThreadStart { child: 1 }))
        .collect();
    // The thread itself notes its start, in its creator's name, before anything else.
    assert!(
        matches!(starts[..], [start] if start.thread == 0),
        "{starts:?}"
    );
    assert_eq!(capture.count(|e| matches!(e, Event::ThreadStart { .. })), 1);
    let first = capture
        .events()
        .filter(|noted| noted.thread == 1)
        .map(|noted| noted.stamp)
        .min()
        .unwrap();
    assert!(starts[0].stamp <= first);
}

#[test]
fn a_child_that_begins_with_a_thread_tells_of_its_start() {
    let scenario = Scenario::new("thread_in_child.c");
    scenario.run(&[]);
    let captures = scenario.captures();
    assert_forked(&captures);
    let child = &captures[1];
    let starts = |thread: u32| {
        let is_start =
            |noted: &&crate::support::Noted| matches!(noted.event, Event::ThreadStart { child: 1 });
        child
            .events()
            .filter(is_start)
            .filter(|noted| noted.thread == thread)
            .count()
    };
    assert_eq!(
        (captures.len(), child.mallocs(7211), starts(0), starts(1)),
        (2, 1, 1, 0)
    );
}

#[test]
fn threads_that_end_by_the_kernels_own_exit_leave_their_streams_to_others() {
    let (_, capture) = Scenario::new("raw_exit.c").recorded(&[]);
    assert_eq!((capture.mallocs(7301), capture.dropped), (2000, 0));
    // The ends of the last threads are not known.
    let exits = capture.count(|e| *e == Event::ThreadExit);
    assert!((1990..=2000).contains(&exits), "{exits} ends");
    assert!(
        capture.streams.len() <= 10,
        "{} streams",
        capture.streams.len()
    );
}

#[test]
fn threads_that_the_c_library_does_not_know_of_have_no_stream_to_leave() {
    let (_, capture) = Scenario::new("raw_clone.c").recorded(&[]);
    assert_eq!(
        (
            capture.mallocs(7311),
            capture.streams.len(),
            capture.dropped
        ),
        (2000, 1, 0)
    );
}

/// Each of these processes but the first names the fork that made it, and its parent's recording
/// has that fork.
fn assert_forked(captures: &[Capture]) {
    for child in &captures[1..] {
        let parent = captures
            .iter()
            .find(|parent| parent.text("pid") == child.text("parent"))
            .unwrap();
        let moment = child.text("forked-ns").parse::<u64>().unwrap();
        assert_eq!(parent.count(|e| *e == Event::Forking { moment }), 1);
    }
}

#[test]
fn a_daemon_finds_the_parent_that_is_gone_before_its_first_call() {
    for words in [&[][..], &["twice"], &["daemon"]] {
        let scenario = Scenario::new("daemon.c");
        // Until its output is closed everywhere, that is, until the daemon has ended.
        scenario.run(words);
        let captures = scenario.captures();
        assert_eq!(
            captures.len(),
            if words == ["twice"] { 3 } else { 2 },
            "{words:?}"
        );
        assert_forked(&captures);
        let daemon = captures.last().unwrap();
        assert_eq!((daemon.text("begin"), daemon.mallocs(6302)), ("fork", 1));
        assert_eq!(captures[0].mallocs(6301), 1000);
    }
}

#[test]
fn what_a_parent_frees_while_it_forks_is_the_childs() {
    let scenario = Scenario::new("fork_moment.c");
    scenario.run(&[]);
    let captures = scenario.captures();
    assert_forked(&captures);
    let [stream] = &captures[0].streams[..] else {
        panic!("one thread, one stream")
    };
    let place =
        |of: &dyn Fn(&Event) -> bool| stream.iter().position(|noted| of(&noted.event)).unwrap();
    let birth = place(&|e| matches!(e, Event::Malloc { size: 6401, .. }));
    let Event::Malloc { address: born, .. } = stream[birth].event else {
        unreachable!()
    };
    let death = place(&|e| matches!(e, Event::Free { address, .. } if *address == born));
    let forking = place(&|e| matches!(e, Event::Forking { .. }));
    assert!(
        birth < forking && forking < death && death < place(&|e| matches!(e, Event::Fork { .. }))
    );
    assert!(Ledger::of(&captures[1]).unknown.contains(&born));
}

#[test]
fn where_the_kernel_does_not_tell_of_pages_free_leaves_errno_alone() {
    let (_, capture) = Scenario::new("kept_errno.c").recorded(&[]);
    assert_eq!(capture.count(|e| matches!(e, Event::Touch { .. })), 0);
}

#[test]
fn a_child_has_a_recording_of_its_own_whether_it_executes_or_not() {
    let scenario = Scenario::new("fork.c");
    scenario.run(&[]);
    let captures = scenario.captures();
    assert_eq!(
        captures.len(),
        5,
        "parent, child, grandchild, twice /bin/true"
    );
    let [parent, child, grandchild, ..] = &captures[..] else {
        unreachable!()
    };
    assert_eq!(
        (
            parent.mallocs(6001),
            parent.mallocs(6002),
            parent.mallocs(6004)
        ),
        (10, 0, 100)
    );
    let has_main = |capture: &Capture| capture.count(|e| *e == Event::Main) == 1;
    assert!(
        captures.iter().all(has_main),
        "the thread that forked is the child's main one"
    );
    Ledger::of(parent).assert_consistent();
    assert_eq!(
        Ledger::of(parent).alive(6001),
        10,
        "what the child freed is the child's"
    );
    assert_eq!(parent.count(|e| matches!(e, Event::Fork { .. })), 2);
    assert!(
        parent.count(|e| matches!(e, Event::Fork { pid } if pid.to_string() == child.text("pid")))
            == 1
    );
    assert_eq!(
        (child.text("begin"), child.text("parent")),
        ("fork", parent.text("pid"))
    );
    let ledger = Ledger::of(child);
    assert_eq!(
        (
            child.mallocs(6002),
            ledger.unknown.len(),
            ledger.born_twice.len()
        ),
        (100, 10, 0)
    );
    assert_eq!(
        (grandchild.mallocs(6003), grandchild.text("parent")),
        (1, child.text("pid"))
    );
    for executed in &captures[3..] {
        assert_eq!(
            (executed.text("begin"), executed.text("end")),
            ("start", "exit")
        );
        assert!(executed.text("exe").ends_with("/true"));
    }
}

#[test]
fn a_thread_that_forks_while_others_allocate_leaves_its_child_a_clean_start() {
    let scenario = Scenario::new("fork_in_thread.c");
    scenario.run(&[]);
    let captures = scenario.captures();
    assert_eq!(captures.len(), 11);
    Ledger::of(&captures[0]).assert_consistent();
    for child in &captures[1..] {
        assert_eq!(
            (
                child.mallocs(6006),
                child.mallocs(6005),
                child.text("begin")
            ),
            (1000, 0, "fork")
        );
        assert!(Ledger::of(child).born_twice.is_empty());
    }
}

#[test]
fn a_handler_that_jumps_away_from_an_event_leaves_the_stream_whole() {
    let (_, capture) = Scenario::new("longjmp.c").recorded(&[]);
    assert_eq!((capture.mallocs(8001), capture.dropped), (300, 0));
}

#[test]
fn a_handler_that_allocates_within_an_event_is_recorded_elsewhere() {
    let (printed, capture) = Scenario::new("signal.c").recorded(&[]);
    let (handled, nulls) = printed.trim().split_once(' ').unwrap();
    let nulls: usize = nulls.parse().unwrap();
    assert_eq!(
        (capture.mallocs(8101), capture.dropped),
        (handled.parse().unwrap(), 0)
    );
    // The first block that the handler frees was NULL, too.
    assert_eq!(capture.count(|e| *e == Event::FreeNull), nulls + 1);
}

#[test]
fn destructors_of_threads_are_on_record_until_the_last() {
    let (_, capture) = Scenario::new("destructors.cpp").recorded(&[]);
    assert_eq!(
        (
            capture.mallocs(8201),
            capture.mallocs(8202),
            capture.mallocs(8203)
        ),
        (10, 10, 40)
    );
    let ledger = Ledger::of(&capture);
    assert_eq!(
        (8201..=8203).map(|size| ledger.alive(size)).sum::<usize>(),
        0
    );
}

#[test]
fn threads_that_end_by_unwinding_do() {
    let (_, capture) = Scenario::new("unwinding.c").recorded(&[]);
    let ledger = Ledger::of(&capture);
    assert_eq!(
        (
            capture.mallocs(8301),
            ledger.alive(8301),
            ledger.alive(8302)
        ),
        (1, 0, 0)
    );
    assert_eq!(capture.count(|e| *e == Event::ThreadExit), 2);
}

#[test]
fn a_block_grows_in_another_threads_hands() {
    let (_, capture) = Scenario::new("foreign_realloc.c").recorded(&[]);
    assert_eq!(capture.mallocs(8401), 50);
    let grown = |e: &Event| matches!(e, Event::Realloc { size, .. } if size % 16 == 0 && (8402..8502).contains(&(size / 16)));
    assert_eq!(capture.count(grown), 50 * 100);
}

#[test]
fn a_program_that_closes_everything_closes_nothing_of_ours() {
    let (_, capture) = Scenario::new("closefrom.c").recorded(&[]);
    assert_eq!(
        (
            capture.mallocs(8501),
            capture.mallocs(8502),
            capture.text("end")
        ),
        (1, 200_000, "exit")
    );
    assert!(
        capture.chunks > 3,
        "it had to open its file again: {} chunks",
        capture.chunks
    );
}

#[test]
fn large_blocks_say_how_much_of_them_was_touched() {
    let (_, capture) = Scenario::new("large.c").recorded(&[]);
    let touched: Vec<(u64, u64, u64)> = capture
        .events()
        .filter_map(|n| {
            if let Event::Touch {
                resident,
                extent,
                pages,
                ..
            } = n.event
            {
                Some((resident, extent, pages))
            } else {
                None
            }
        })
        .collect();
    // In pages of 4 KiB. The allocator's own word lies in the first of them, outside or inside the
    // block.
    let mib = (1 << 20) / capture.text("page-bytes").parse::<u64>().unwrap();
    let near = |found: u64, pages: u64| found.abs_diff(pages) <= 2;
    // A block that realloc could not grow is told of again when it is freed.
    let expected = [
        (4, 4, 8),
        (0, 0, 4),
        (2, 2, 2),
        (2, 2, 3),
        (2, 2, 3),
        (3, 5, 40),
        (1, 1, 16),
    ];
    assert_eq!(touched.len(), expected.len(), "{touched:?}");
    for (found, expected) in touched.into_iter().zip(expected) {
        let (resident, extent, pages) = expected;
        assert!(
            near(found.0, resident * mib)
                && near(found.1, extent * mib)
                && near(found.2, pages * mib),
            "{found:?}, not {expected:?} MiB"
        );
    }
}

#[test]
fn a_library_that_is_loaded_late_is_on_record_and_a_mark_stands_between() {
    let scenario = Scenario::new("late.c");
    compile(
        "plugin.c",
        &scenario.dir.path().join("plugin.so"),
        &["-shared", "-fPIC"],
    );
    let (_, capture) = scenario.recorded(&[]);
    assert_eq!(
        (
            capture.mallocs(8701),
            capture.mallocs(8702),
            &capture.marks[..]
        ),
        (1, 10, &["half way".to_string()][..])
    );
    assert_eq!(Ledger::of(&capture).alive(8701), 0);
    let place =
        |of: fn(&Event) -> bool| capture.events().position(|noted| of(&noted.event)).unwrap();
    let mark = place(|e| matches!(e, Event::Mark { .. }));
    assert!(place(|e| matches!(e, Event::Malloc { size: 8701, .. })) < mark);
    assert!(place(|e| matches!(e, Event::Malloc { size: 8702, .. })) > mark);
}

#[test]
fn calls_that_an_allocator_makes_of_itself_are_not_the_programs() {
    let scenario = Scenario::new("family.c");
    compile(
        "selfish.c",
        &scenario.dir.path().join("selfish.so"),
        &["-shared", "-fPIC"],
    );
    let preload = format!(
        "{}:{}",
        crate::support::recorder().display(),
        scenario.dir.path().join("selfish.so").display()
    );
    let mut command = scenario.command(scenario.program());
    // It has no malloc_usable_size of its own and reports this early; until then each call counts
    // once.
    let _ = command.env("LD_PRELOAD", preload).output().unwrap();
    let capture = scenario.capture();
    Ledger::of(&capture).assert_consistent();
    assert!(capture.text("allocator").ends_with("selfish.so"));
    assert_eq!(
        (capture.mallocs(5001), capture.mallocs(5002)),
        (1, 0),
        "realloc is not malloc, copy and free"
    );
}

#[test]
fn a_storm_of_programs_leaves_a_recording_of_each() {
    let scenario = Scenario::new("family.c");
    let mut shell = scenario.command("/bin/sh");
    shell.args([
        "-c",
        "i=0; while [ $i -lt 100 ]; do /bin/true & i=$((i+1)); done; wait",
    ]);
    good(shell.output().unwrap());
    let captures = scenario.captures();
    let of = |name: &str| {
        captures
            .iter()
            .filter(|capture| capture.text("exe").ends_with(name))
            .count()
    };
    assert_eq!(of("/true"), 100);
    captures
        .iter()
        .for_each(|capture| assert!(Ledger::of(capture).born_twice.is_empty()));
}
