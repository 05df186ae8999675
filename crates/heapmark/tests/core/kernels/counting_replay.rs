//! `replay` makes exactly the calls of its compiled trace, as a preloaded library counts them; and a compiled trace that is wrong is never a result.

use crate::kernels::counter::Counter;
use heapmark::catalog::Iterations;
use heapmark::execute::Outcome;
use heapmark::plan::{Case, Target};
use heapmark_trace::compile::{Order, Recorded, compile};
use heapmark_trace::{Event, Token, Variant};
use heapmark_wire::compiled::{
    CompiledHead, CompiledThread, HEAD_WORDS, Op, Rare, THREAD_WORDS, wait,
};
use std::fs::File;
use std::path::{Path, PathBuf};

type Told = (u32, Event);

fn malloc(size: u64) -> Event {
    Event::Malloc {
        size,
        operator: false,
    }
}

fn free(thread: u32, index: u64) -> Event {
    Event::Free {
        token: Token { thread, index },
    }
}

fn case(compiled: &Path, threads: u32, mode: &str) -> Case {
    let parameters = [
        ("compiled", compiled.to_str().unwrap()),
        ("mode", mode),
        ("touch", "recorded"),
        ("reads", "0"),
        ("skew", "4096"),
        ("pace", "1"),
        ("packed_bytes", "0"),
        ("thread", "recorded"),
    ];
    Case {
        workload: "trace:test".into(),
        target: Target::Kernel("replay".into()),
        rows: Vec::new(),
        operation: String::new(),
        threads,
        oversubscribed: false,
        parameters: parameters
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        cold: 0,
        iterations: Iterations::Fixed(1),
        counts_purge: false,
        whole_process: false,
        caution: None,
        series_ns: None,
        factor: None,
        at_once: None,
        beside: false,
        turns: None,
    }
}

/// A folder of compiled traces, and the counting library.
struct FakeRun {
    dir: tempfile::TempDir,
    counter: Counter,
}

impl FakeRun {
    fn new() -> FakeRun {
        FakeRun {
            dir: tempfile::tempdir().unwrap(),
            counter: Counter::new(),
        }
    }

    fn compiled(&self, events: &[Told], order: Order) -> (PathBuf, CompiledHead) {
        let path = self.dir.path().join("compiled");
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        let head = compile(
            &mut events.iter().cloned().map(Ok),
            order,
            Recorded::default(),
            file,
        )
        .unwrap();
        (path, head)
    }

    /// Replays a compiled trace in each way, twice in a process, and holds what was called against this.
    /// The main thread plays one of them, then not.
    fn expect(&self, events: &[Told], calls: [u64; 5]) {
        let told = [&[(0, Event::Main)], events].concat();
        for (order, mode) in [
            (Order::Dependent, "speed"),
            (Order::Strict, "memory"),
            (Order::Timed, "paced"),
        ] {
            let (path, head) = self.compiled(&told, order);
            assert_eq!(head.main, 1);
            let on_main = case(&path, head.threads_at_a_time as u32, mode);
            let mut beside = on_main.clone();
            beside.parameters.insert("thread".into(), "worker".into());
            let mut cases = vec![on_main, beside];
            if head.threads == 1 {
                let mut walk = cases[0].clone();
                walk.parameters.insert("reads".into(), "3".into());
                cases.push(walk);
            }
            for case in &cases {
                let (counted, attempt) = self.counter.attempt_of(case, 1, 1, false);
                assert_eq!(attempt.outcome, Outcome::Ok, "{mode}: {}", attempt.report);
                assert_eq!(counted, calls.map(|count| 2 * count), "{mode}");
                let ops = attempt.measurement.unwrap().iterations[0].ops;
                assert_eq!(ops, head.events, "{mode}");
            }
        }
    }

    /// How the replay of these words ends.
    fn outcome(&self, words: &[u64], threads: u32) -> Outcome {
        let path = self.dir.path().join("words");
        std::fs::write(
            &path,
            words
                .iter()
                .flat_map(|word| word.to_ne_bytes())
                .collect::<Vec<u8>>(),
        )
        .unwrap();
        self.counter
            .attempt_of(&case(&path, threads, "speed"), 0, 1, false)
            .1
            .outcome
    }
}

fn words(path: &Path) -> Vec<u64> {
    let bytes = std::fs::read(path).unwrap();
    bytes
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
        .collect()
}

#[test]
fn each_kind_of_call_is_made_as_often_as_it_was_recorded() {
    let token = |index| Token { thread: 0, index };
    let events = [
        (0, malloc(24)),
        (
            0,
            Event::Malloc {
                size: 100,
                operator: true,
            },
        ),
        (
            0,
            Event::Calloc {
                count: 1,
                size: 100,
            },
        ),
        (
            0,
            Event::Calloc {
                count: 7,
                size: 100_000,
            },
        ),
        (
            0,
            Event::Aligned {
                align: 4096,
                size: 10,
                variant: Variant::Memalign,
            },
        ),
        (
            0,
            Event::Aligned {
                align: 1,
                size: 70_000,
                variant: Variant::AlignedAlloc,
            },
        ),
        (0, malloc(0)),
        (0, malloc(5 << 30)),
        (
            0,
            Event::Touch {
                token: token(7),
                resident_pages: 2,
                extent_pages: 9,
                pages: 5 << 18,
            },
        ),
        (0, Event::UsableSize { token: token(0) }),
        (
            0,
            Event::Mallopt {
                parameter: -1,
                value: 1 << 20,
            },
        ),
        (0, Event::Trim { pad: 0 }),
        (0, Event::Info),
        (0, Event::FreeNull),
        (
            0,
            Event::Failed {
                call: heapmark_trace::Call::Malloc,
                size: u64::MAX,
            },
        ),
        (
            0,
            Event::FreeSized {
                token: token(1),
                size: 100,
            },
        ),
        (
            0,
            Event::FreeAlignedSized {
                token: token(4),
                align: 4096,
                size: 10,
            },
        ),
        (
            0,
            Event::Realloc {
                token: token(0),
                size: 200_000,
            },
        ),
        (
            0,
            Event::Realloc {
                token: token(8),
                size: 0,
            },
        ),
        (
            0,
            Event::Realloc {
                token: token(9),
                size: 3,
            },
        ),
        (0, Event::ReallocFree { token: token(10) }),
        (0, free(0, 7)),
    ];
    // Five objects end; the four that are left are freed after the clock.
    FakeRun::new().expect(&events, [4, 8, 2, 3, 2]);
}

#[test]
fn what_one_thread_frees_of_another_and_threads_that_only_free() {
    let mut events = vec![
        (0, Event::ThreadStart { child: 1 }),
        (0, Event::ThreadStart { child: 2 }),
    ];
    for index in 0..50_000 {
        events.push((0, malloc(16 + index % 512)));
        events.push((1 + index as u32 % 2, free(0, index)));
    }
    events.extend([(1, Event::ThreadExit), (2, Event::ThreadExit)]);
    FakeRun::new().expect(&events, [50_000, 50_000, 0, 0, 0]);
}

#[test]
fn ladders_of_reallocs_over_threads() {
    let mut events = vec![(0, malloc(8)), (0, Event::ThreadStart { child: 1 })];
    let mut token = Token {
        thread: 0,
        index: 0,
    };
    let mut made = [1, 0];
    for step in 0..1000 {
        let thread = step % 2;
        events.push((
            thread,
            Event::Realloc {
                token,
                size: 8 + 3 * u64::from(step),
            },
        ));
        token = Token {
            thread,
            index: made[thread as usize],
        };
        made[thread as usize] += 1;
    }
    FakeRun::new().expect(&events, [1, 1, 0, 1000, 0]);
}

#[test]
fn threads_come_and_go_and_more_of_them_than_cpus_play_at_a_time() {
    let mut events = Vec::new();
    for storm in 0..8 {
        let children = 1 + storm * 24..1 + (storm + 1) * 24;
        events.extend(
            children
                .clone()
                .map(|child| (0, Event::ThreadStart { child })),
        );
        for index in 0..50 {
            events.extend(children.clone().map(|child| (child, malloc(64 + index))));
            events.extend(children.clone().map(|child| (child, free(child, index))));
        }
        events.extend(children.map(|child| (child, Event::ThreadExit)));
    }
    FakeRun::new().expect(&events, [8 * 24 * 50, 8 * 24 * 50, 0, 0, 0]);
}

#[test]
fn a_compiled_trace_that_expects_other_work_is_a_wrong_result() {
    let lab = FakeRun::new();
    let (path, head) = lab.compiled(&[(0, malloc(1)), (0, free(0, 0))], Order::Dependent);
    let mut words = words(&path);
    assert_eq!(lab.outcome(&words, 1), Outcome::Ok);
    words[..HEAD_WORDS].copy_from_slice(&CompiledHead { malloc: 2, ..head }.encode());
    let Outcome::WrongResult { what } = lab.outcome(&words, 1) else {
        panic!()
    };
    assert_eq!(what, "malloc 1, expected 2");
    words[..HEAD_WORDS].copy_from_slice(&CompiledHead { bytes: 7, ..head }.encode());
    assert!(matches!(
        lab.outcome(&words, 1),
        Outcome::WrongResult { .. }
    ));
}

#[test]
fn a_compiled_trace_without_a_wait_or_an_end_or_with_a_wrong_slot_is_an_error_that_says_where() {
    let lab = FakeRun::new();
    let end = Rare::End.word(0);
    // Two threads that are there from the start: the second frees before the first allocates.
    let two = |first: &[u64], second: &[u64]| {
        let mut words = vec![0; HEAD_WORDS];
        words.extend(first);
        words.extend(second);
        let table = words.len() as u64;
        words.extend(
            CompiledThread {
                first: HEAD_WORDS as u64,
                is_started: false,
            }
            .encode(),
        );
        words.extend(
            CompiledThread {
                first: (HEAD_WORDS + first.len()) as u64,
                is_started: false,
            }
            .encode(),
        );
        let head = CompiledHead {
            words: table + 2 * THREAD_WORDS as u64,
            table,
            threads: 2,
            slots: 4,
            ..CompiledHead::default()
        };
        words[..HEAD_WORDS].copy_from_slice(&head.encode());
        words
    };
    let why = |words: &[u64]| match lab.outcome(words, 2) {
        Outcome::Error { what } => what,
        other => panic!("{other}"),
    };
    let wait = Op::wait(1, 1);
    let frees_early = two(
        &[wait, Op::Malloc.word(0, 8), end],
        &[Op::Free.word(0, 0), end],
    );
    assert!(
        why(&frees_early).contains("operation 0 of thread 1: its slot is empty"),
        "{}",
        why(&frees_early)
    );
    let fills_twice = two(&[Op::Malloc.word(3, 8), Op::Malloc.word(3, 8), end], &[end]);
    assert!(why(&fills_twice).contains("fills a slot that is full"));
    assert!(why(&two(&[Op::Malloc.word(9, 8), end], &[end])).contains("operation 0 of thread 0"));
    assert!(why(&two(&[Op::Rare.word(99, 0), end], &[end])).contains("unknown number"));
    assert!(why(&two(&[Op::wait(7, 1), end], &[end])).contains("no thread 7"));
    assert!(why(&two(&[Rare::Start.word(1), end], &[end])).contains("starts thread 1 twice"));
    assert!(why(&two(&[Rare::Jump.word(0), 1 << 40], &[end])).contains("behind its end"));
    let good = two(&[end], &[end]);
    assert!(why(&good[..good.len() - 1]).contains("not as long as it says"));
    assert!(why(&[7; 100]).contains("is none"));
}

#[test]
fn the_compiler_leaves_no_wait_out() {
    let events: Vec<Told> = (0..100)
        .flat_map(|index| [(0, malloc(8)), (1, free(0, index))])
        .collect();
    let lab = FakeRun::new();
    let (path, head) = lab.compiled(&events, Order::Dependent);
    let mut words = words(&path);
    let waits = |word: &&mut u64| Op::of(**word) == Op::Wait && wait(**word).0 == 0;
    let table = head.table as usize;
    // Waiting for no op at all instead.
    let left_out = words[HEAD_WORDS..table]
        .iter_mut()
        .filter(waits)
        .map(|word| *word = Op::wait(0, 0))
        .count();
    assert_eq!(left_out, 100);
    // Thread 0 comes late, so that no thread can be lucky.
    let first = CompiledThread::of(&words, &head, 0).unwrap().first as usize;
    assert_eq!(Op::of(words[first]), Op::Position);
    words[first] = Op::wait(1, 1);
    assert!(
        matches!(lab.outcome(&words, 2), Outcome::Error { what } if what.contains("its slot is empty"))
    );
}
