//! Random programs, compiled, and played by threads in random turns.

mod stage;

use super::*;
use crate::{Event, Token, Variant};
use heapmark_wire::compiled::{self, CompiledHead, CompiledThread, Op, Rare};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stage::Stage;
use std::io::Read;

type ThreadEvent = (u32, Event);

const ALONE_IS_MAIN: Recorded = Recorded {
    one_is_main: true,
    thp_disabled: false,
};

fn malloc() -> Event {
    Event::Malloc {
        size: 8,
        operator: false,
    }
}

fn compiled(events: &[ThreadEvent], order: Order) -> (Vec<u64>, CompiledHead) {
    let mut file = tempfile::tempfile().unwrap();
    let head = compile(
        &mut events.iter().cloned().map(Ok),
        order,
        ALONE_IS_MAIN,
        file.try_clone().unwrap(),
    )
    .unwrap();
    let mut bytes = Vec::new();
    std::io::Seek::rewind(&mut file).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
        .collect();
    assert_eq!(CompiledHead::decode(&words).unwrap(), head);
    (words, head)
}

/// A program of some threads that start and end, use each other's objects, and leave some.
fn program(seed: u64, length: usize, most_threads: u32) -> Vec<ThreadEvent> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut events, mut live, mut made) =
        (Vec::new(), Vec::new(), vec![0u64; most_threads as usize]);
    let (mut alive, mut next) = (vec![0u32], 1);
    while events.len() < length {
        let thread = alive[random.random_range(0..alive.len())];
        let born = |made: &mut Vec<u64>, live: &mut Vec<Token>| {
            live.push(Token {
                thread,
                index: made[thread as usize],
            });
            made[thread as usize] += 1;
        };
        let old = |random: &mut ChaCha8Rng, live: &mut Vec<Token>| {
            let place = random.random_range(0..live.len());
            live.swap_remove(place)
        };
        let size = if random.random_range(0..20) == 0 {
            70_000
        } else {
            random.random_range(0..500)
        };
        let event = match random.random_range(0..100) {
            0 if next < most_threads => {
                alive.push(next);
                next += 1;
                Event::ThreadStart { child: next - 1 }
            }
            1 if alive.len() > 1 && thread != 0 => {
                alive.retain(|other| *other != thread);
                Event::ThreadExit
            }
            2 => Event::FreeNull,
            3..10 if !live.is_empty() => Event::UsableSize {
                token: live[random.random_range(0..live.len())],
            },
            10..20 if !live.is_empty() => {
                let token = old(&mut random, &mut live);
                born(&mut made, &mut live);
                Event::Realloc { token, size }
            }
            20..55 if !live.is_empty() => Event::Free {
                token: old(&mut random, &mut live),
            },
            55..60 => {
                born(&mut made, &mut live);
                Event::Calloc {
                    count: random.random_range(1..3),
                    size,
                }
            }
            60..62 => {
                born(&mut made, &mut live);
                Event::Aligned {
                    align: 64,
                    size,
                    variant: Variant::Memalign,
                }
            }
            _ => {
                born(&mut made, &mut live);
                Event::Malloc {
                    size,
                    operator: false,
                }
            }
        };
        events.push((thread, event));
    }
    events
}

#[test]
fn whatever_the_threads_turns_are_each_object_is_made_before_it_is_used_and_used_before_it_ends() {
    for seed in 0..40 {
        let events = program(seed, 3000, 12);
        for order in [Order::Dependent, Order::Timed, Order::Strict, Order::Alone] {
            let (words, head) = compiled(&events, order);
            assert_eq!(head.strays, 0);
            for turns in 0..4 {
                let end = Stage::new(&words).play(turns);
                let end = end.unwrap_or_else(|why| {
                    panic!("program {seed}, {order:?}, turns {turns}: {why}")
                });
                assert_eq!(
                    end.calls - end.starts,
                    head.events,
                    "program {seed}, {order:?}"
                );
                let left = end.slots.iter().filter(|full| **full).count() as u64;
                assert_eq!(
                    head.malloc + head.calloc + head.aligned,
                    head.free,
                    "program {seed}"
                );
                let ends = events
                    .iter()
                    .filter(|(_, event)| matches!(event, Event::Free { .. }))
                    .count() as u64;
                assert_eq!(left, head.free - ends, "program {seed}");
            }
        }
    }
}

#[test]
fn objects_that_others_free_find_slots_again_and_a_missing_wait_is_seen() {
    let mut events = vec![(0, Event::ThreadStart { child: 1 })];
    for index in 0..200_000 {
        events.push((
            0,
            Event::Malloc {
                size: 64,
                operator: false,
            },
        ));
        events.push((
            1,
            Event::Free {
                token: Token { thread: 0, index },
            },
        ));
    }
    let (mut words, head) = compiled(&events, Order::Dependent);
    assert!(head.slots < 70_000, "{}", head.slots);
    assert!((1..10).all(|turns| Stage::new(&words).play(turns).is_ok()));
    words
        .iter_mut()
        .filter(|word| Op::of(**word) == Op::Wait)
        .for_each(|word| *word = Op::position(0));
    assert!((1..10).any(|turns| Stage::new(&words).play(turns).is_err()));
}

#[test]
fn in_strict_order_threads_change_seldom_and_every_run_is_the_same() {
    let events = program(3, 20_000, 5);
    let recorded = events
        .windows(2)
        .filter(|pair| pair[0].0 != pair[1].0)
        .count() as u64;
    let (words, _) = compiled(&events, Order::Strict);
    let ends: Vec<_> = (0..3)
        .map(|turns| Stage::new(&words).play(turns).unwrap())
        .collect();
    assert!(
        ends[0].changes * 2 < recorded,
        "{} of {recorded}",
        ends[0].changes
    );
    assert!(!ends[0].live_bytes_at_strict_points.is_empty());
    assert!(
        ends.iter()
            .all(|end| end.live_bytes_at_strict_points == ends[0].live_bytes_at_strict_points)
    );
    assert_eq!(compiled(&events, Order::Strict).0, words);
}

#[test]
fn alone_one_thread_makes_all_calls_in_the_order_that_several_would() {
    let events = program(4, 20_000, 5);
    let ((several, of_several), (one, of_one)) = (
        compiled(&events, Order::Strict),
        compiled(&events, Order::Alone),
    );
    let (several, one) = (
        Stage::new(&several).play(1).unwrap(),
        Stage::new(&one).play(1).unwrap(),
    );
    assert_eq!(
        (
            of_several.threads_at_a_time > 1,
            of_one.threads,
            of_one.threads_at_a_time
        ),
        (true, 1, 1)
    );
    assert_eq!((of_one.strays, one.starts, one.changes), (0, 0, 1));
    assert!(!one.live_bytes_at_strict_points.is_empty());
    assert_eq!(
        one.live_bytes_at_strict_points,
        several.live_bytes_at_strict_points
    );
    assert_eq!((one.calls, one.slots), (of_several.events, several.slots));
    let work = |head: CompiledHead| {
        (
            head.malloc,
            head.calloc,
            head.realloc,
            head.aligned,
            head.free,
            head.requested_peak_bytes,
        )
    };
    assert_eq!(work(of_one), work(of_several));
}

#[test]
fn at_a_memory_point_before_a_realloc_the_old_block_is_alive() {
    let token = Token {
        thread: 0,
        index: 0,
    };
    let block = Event::Malloc {
        size: 4 << 20,
        operator: false,
    };
    let larger = Event::Realloc {
        token,
        size: 5 << 20,
    };
    let events = [(0, block), (0, larger)];
    for order in [Order::Strict, Order::Alone] {
        let (words, _) = compiled(&events, order);
        let end = Stage::new(&words).play(1).unwrap();
        assert_eq!(end.live_bytes_at_strict_points, [4u64 << 20], "{order:?}");
    }
}

#[test]
fn a_thread_publishes_its_position_before_it_waits_for_the_ends_of_others() {
    let calls = compiled::POSITION_EVERY;
    let mut events = vec![(0, Event::ThreadStart { child: 1 })];
    events.extend((0..calls).map(|_| (1, Event::FreeNull)));
    events.extend([
        (1, Event::ThreadExit),
        (0, Event::ThreadStart { child: 2 }),
        (2, malloc()),
    ]);
    let (words, head) = compiled(&events, Order::Dependent);
    let first = CompiledThread::of(&words, &head, 0).unwrap().first as usize;
    let expected = [
        Op::position(0),
        Rare::Start.word(1),
        Op::position(calls + 2),
        Op::wait(1, calls + 1),
        Rare::Start.word(2),
        Rare::End.word(0),
    ];
    assert_eq!(words[first..first + 6], expected);
}

#[test]
fn touched_pages_are_known_before_the_block_is_made() {
    let of = |thread| {
        let token = Token { thread, index: 0 };
        let mut events = vec![(
            thread,
            Event::Malloc {
                size: 1 << 20,
                operator: false,
            },
        )];
        // Enough events that the first chunk is written before the object ends.
        events.extend((0..500).map(|_| (thread, Event::FreeNull)));
        events.push((
            thread,
            Event::Touch {
                token,
                resident_pages: 7,
                extent_pages: 9,
                pages: 256,
            },
        ));
        events.push((thread, Event::Free { token }));
        events.push((
            thread,
            Event::Malloc {
                size: 1 << 33,
                operator: false,
            },
        ));
        events
    };
    let (words, head) = compiled(&of(0), Order::Dependent);
    let first = CompiledThread::of(&words, &head, 0).unwrap().first as usize;
    let known = [Rare::Pages.word(7), 9, Op::Malloc.word(0, 1 << 20)];
    assert_eq!(words[first + 1..first + 4], known);
    assert!(words.windows(4).any(|it| it
        == [
            Rare::Pages.word(compiled::ALL_PAGES),
            0,
            Rare::Malloc.word(0),
            1 << 33
        ]));
    assert_eq!((head.requested_peak_bytes, head.peak), (1 << 33, (0, 503)));
    // And if another thread plays than the one that made it.
    let (words, head) = compiled(&of(3), Order::Alone);
    assert!(words.windows(3).any(|it| it == known));
    assert_eq!(head.peak, (0, 503));
}

#[test]
fn touched_pages_are_known_if_a_third_thread_uses_what_another_made_for_an_ended_one() {
    let token = Token {
        thread: 1,
        index: 0,
    };
    let mut events = vec![
        (0, Event::ThreadStart { child: 1 }),
        (0, Event::ThreadStart { child: 2 }),
        (1, Event::ThreadExit),
    ];
    // The block is made in a later window than the thread's end.
    events.extend((0..2000).map(|_| (0, Event::FreeNull)));
    let block = Event::Malloc {
        size: 1 << 20,
        operator: false,
    };
    let touch = Event::Touch {
        token,
        resident_pages: 7,
        extent_pages: 9,
        pages: 256,
    };
    events.extend([
        (1, block),
        (2, Event::UsableSize { token }),
        (0, touch),
        (0, Event::Free { token }),
    ]);
    let (words, head) = compiled(&events, Order::Dependent);
    assert_eq!(head.strays, 1);
    let known = [Rare::Pages.word(7), 9, Op::Malloc.word(0, 1 << 20)];
    assert!(words.windows(3).any(|it| it == known));
}

#[test]
fn a_block_whose_whole_pages_are_all_in_memory_is_touched_up_to_its_ends() {
    let of = |resident_pages| {
        let token = Token {
            thread: 0,
            index: 0,
        };
        let block = Event::Malloc {
            size: 1 << 16,
            operator: false,
        };
        let touch = Event::Touch {
            token,
            resident_pages,
            extent_pages: resident_pages,
            pages: 15,
        };
        let events = [(0, block), (0, touch), (0, Event::Free { token })];
        let (words, head) = compiled(&events, Order::Dependent);
        let first = CompiledThread::of(&words, &head, 0).unwrap().first as usize;
        words[first + 1..first + 3].to_vec()
    };
    assert_eq!(of(15), [Rare::Pages.word(compiled::ALL_PAGES), 0]);
    assert_eq!(of(14), [Rare::Pages.word(14), 14]);
}

#[test]
fn at_recorded_times_a_replay_lasts_until_the_program_ended() {
    let end = Event::Clock { ns: 60_000_000_000 };
    let events = [(0, Event::Clock { ns: 1 }), (0, malloc()), (0, end)];
    let (words, head) = compiled(&events, Order::Timed);
    let last = [Rare::Clock.word(0), 60_000_000_000, Rare::End.word(0)];
    assert!(words.windows(3).any(|it| it == last));
    assert_eq!(head.recorded_ns, 60_000_000_000);
}

#[test]
fn what_a_thread_does_after_its_end_is_done_by_another() {
    let token = |index| Token { thread: 1, index };
    let mut events = vec![
        (0, Event::ThreadStart { child: 1 }),
        (1, malloc()),
        (1, Event::ThreadExit),
    ];
    events.extend((0..2000).map(|_| (0, Event::FreeNull)));
    events.extend([
        (1, malloc()),
        (1, Event::Free { token: token(0) }),
        (0, Event::Free { token: token(1) }),
    ]);
    let (words, head) = compiled(&events, Order::Dependent);
    assert_eq!((head.strays, head.threads_at_a_time), (2, 2));
    assert!(Stage::new(&words).play(1).is_ok());
}

#[test]
fn the_main_thread_plays_what_it_played_if_the_trace_tells_or_it_can_be_no_other() {
    let main = |events: &[ThreadEvent], order| compiled(events, order).1.main;
    for order in [Order::Dependent, Order::Strict] {
        assert_eq!(main(&[(3, malloc())], order), 4, "the only one");
        assert_eq!(main(&[(0, malloc()), (1, malloc())], order), 0);
        let second = [(0, malloc()), (1, Event::Main), (1, malloc())];
        assert_eq!(main(&second, order), 2);
        let started = [
            (0, malloc()),
            (0, Event::ThreadStart { child: 1 }),
            (1, Event::Main),
            (1, malloc()),
        ];
        assert_eq!(main(&started, order), 0, "no thread starts the main one");
        assert_eq!(
            main(&[(0, malloc()), (1, Event::Main)], order),
            0,
            "it plays nothing"
        );
    }
    assert_eq!(main(&[(0, malloc()), (1, malloc())], Order::Alone), 1);
}

/// A process that ends with its last thread runs destructors after that thread's end.
#[test]
fn what_comes_after_the_end_of_all_threads_is_done_by_a_further_one() {
    let token = |thread| Token { thread, index: 0 };
    let mut events = vec![
        (0, Event::ThreadStart { child: 1 }),
        (0, malloc()),
        (1, malloc()),
        (0, Event::ThreadExit),
        (1, Event::ThreadExit),
    ];
    events.extend((0..2000).map(|_| (1, Event::FreeNull)));
    events.extend([0, 1].map(|thread| {
        let token = token(thread);
        (thread, Event::Free { token })
    }));
    for order in [Order::Dependent, Order::Timed, Order::Strict] {
        let (words, head) = compiled(&events, order);
        assert_eq!((head.threads, head.threads_at_a_time), (3, 2), "{order:?}");
        assert!(Stage::new(&words).play(1).is_ok(), "{order:?}");
    }
}

#[test]
fn a_thread_of_the_last_number_makes_no_threads_that_never_play() {
    let last = crate::MOST_THREADS - 1;
    let events = [
        (7, malloc()),
        (last, malloc()),
        (7, Event::ThreadExit),
        (last, Event::ThreadStart { child: 9 }),
    ];
    for order in [Order::Dependent, Order::Timed, Order::Strict] {
        let (words, head) = compiled(&events, order);
        let plays = |number: &usize| CompiledThread::of(&words, &head, *number).unwrap().plays();
        assert_eq!(
            (0..head.threads as usize).filter(plays).collect::<Vec<_>>(),
            [7, 9, last as usize],
            "{order:?}"
        );
        assert_eq!(head.threads_at_a_time, 2, "{order:?}");
        // Two words of the table for each number, and what three threads play.
        assert!(
            head.words < 2 * u64::from(last) + 1000,
            "{order:?}: {}",
            head.words
        );
        Stage::new(&words).play(1).unwrap();
    }
}

#[test]
fn sums_of_sizes_that_no_64_bits_hold_are_refused_and_not_wrapped() {
    let error = |events: &mut dyn Iterator<Item = ThreadEvent>| {
        let file = tempfile::tempfile().unwrap();
        format!(
            "{:#}",
            compile(&mut events.map(Ok), Order::Dependent, ALONE_IS_MAIN, file).unwrap_err()
        )
    };
    let large = || {
        (
            0,
            Event::Malloc {
                size: (1 << 47) - 1,
                operator: false,
            },
        )
    };
    let free = |index| {
        (
            0,
            Event::Free {
                token: Token { thread: 0, index },
            },
        )
    };
    // All alive: the 2^17th would be one too many for the sum.
    let said = error(&mut (0..1 << 17).map(|_| large()));
    assert_eq!(
        said,
        "event 1, thread 0: objects of 281474976710654 bytes live at once: a process has addresses for 140737488355328"
    );
    // One at a time.
    let said = error(&mut (0..1 << 18).flat_map(|index| [large(), free(index)]));
    assert!(
        said.ends_with("more than 2^64 bytes are allocated in all"),
        "{said}"
    );
    let (_, head) = compiled(
        &[
            (0, Event::Dropped { count: u64::MAX }),
            (0, Event::Dropped { count: 2 }),
            large(),
        ],
        Order::Dependent,
    );
    assert_eq!(head.dropped, u64::MAX);
}

#[test]
fn what_cannot_be_replayed_is_said_with_its_place() {
    let error = |events: &[ThreadEvent]| {
        let file = tempfile::tempfile().unwrap();
        let error = compile(
            &mut events.iter().cloned().map(Ok),
            Order::Dependent,
            ALONE_IS_MAIN,
            file,
        )
        .unwrap_err();
        format!("{error:#}")
    };
    let token = Token {
        thread: 0,
        index: 0,
    };
    assert!(error(&[]).contains("no call that could be replayed"));
    assert!(error(&[(0, Event::Clock { ns: 5 })]).contains("no call"));
    let twice = [
        (
            0,
            Event::Malloc {
                size: 1,
                operator: false,
            },
        ),
        (0, Event::Free { token }),
        (0, Event::Free { token }),
    ];
    assert_eq!(
        error(&twice),
        "event 2, thread 0: object 0 of thread 0 is not alive any more"
    );
    assert!(
        error(&[(
            0,
            Event::Calloc {
                count: u64::MAX,
                size: 2
            }
        )])
        .contains("overflows")
    );
    assert!(
        error(&[(
            0,
            Event::Malloc {
                size: 1 << 50,
                operator: false
            }
        )])
        .contains("did not fail")
    );
    assert!(error(&[(70_000, Event::FreeNull)]).contains("threads at most"));
}

#[test]
fn threads_that_start_one_another_wait_for_no_end_twice() {
    let words_of = |threads: u32| {
        let events = (0..threads).flat_map(|thread| {
            let start = Event::ThreadStart { child: thread + 1 };
            [
                (thread, malloc()),
                (thread, start),
                (thread, Event::ThreadExit),
            ]
        });
        compiled(&events.collect::<Vec<_>>(), Order::Dependent)
            .0
            .len()
    };
    let [some, twice] = [400, 800].map(words_of);
    assert!(
        twice < 3 * some,
        "{some} words, {twice} of twice as many threads"
    );
}
