//! `heapmark trace` from captures to dumps: what a recorder wrote is what a trace tells, in an order that can have been, and every
//! file that is none ends in one line.

mod damage;
mod exchange;
mod process_tree;
use crate::support::captured::Captured;
use crate::support::{End, Place};
use heapmark_wire::capture::Event;

fn malloc(address: u64, size: u64) -> Event<'static> {
    Event::Malloc {
        address,
        size,
        operator: false,
    }
}

fn free(address: u64) -> Event<'static> {
    Event::Free {
        address,
        operator: false,
    }
}

/// Writes a capture of `(stream, event, stamp)`.
fn capture(place: &Place, name: &str, pairs: &[(&str, &str)], events: &[(u32, Event, u64)]) {
    let streams = events
        .iter()
        .map(|(stream, ..)| stream + 1)
        .max()
        .unwrap_or(0);
    let mut captured = Captured::new(&place.at(name), streams, pairs);
    events
        .iter()
        .for_each(|(stream, event, stamp)| captured.put(*stream, event, *stamp));
    captured.end();
}

/// Finishes `a.cap`.
fn finish(place: &Place) -> End {
    place.run(&["trace", "finish", "a.cap", "--force"])
}

/// The lines of a trace without the times.
fn dump(place: &Place, name: &str) -> Vec<String> {
    let end = place.run(&["trace", "dump", name]);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    let lines = end
        .stdout
        .lines()
        .map(|line| line.split_once(' ').unwrap().1.to_owned());
    lines.filter(|line| !line.contains("clock")).collect()
}

fn check(place: &Place, name: &str) {
    let end = place.run(&["trace", "check", name]);
    assert_eq!(
        (end.code, end.stderr.as_str()),
        (Some(0), ""),
        "{}",
        end.stdout
    );
}

#[test]
fn a_capture_of_one_thread_becomes_a_trace_without_addresses() {
    let place = Place::new();
    let events = [
        (0, malloc(0x1000, 24), 0),
        (
            0,
            Event::Calloc {
                address: 0x2000,
                count: 3,
                size: 8,
            },
            0,
        ),
        (
            0,
            Event::Realloc {
                old: 0x1000,
                new: 0x3000,
                size: 48,
                entered: None,
            },
            0,
        ),
        (0, malloc(0x1000, 0), 0),
        (0, Event::UsableSize { address: 0x1000 }, 0),
        (
            0,
            Event::FreeSized {
                address: 0x3000,
                size: 48,
                operator: true,
            },
            0,
        ),
        (
            0,
            Event::Realloc {
                old: 0x2000,
                new: 0,
                size: 0,
                entered: None,
            },
            0,
        ),
        (0, Event::FreeNull, 0),
        (0, free(0x1000), 0),
    ];
    capture(&place, "a.cap", &[("argv", "x y")], &events);
    let end = finish(&place);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    assert!(
        end.stdout
            .starts_with("a.trace: 9 events, 4 allocations, threads: 1; "),
        "{}",
        end.stdout
    );
    let expected = [
        "t0 malloc size=24 -> t0#0",
        "t0 calloc count=3 size=8 -> t0#1",
        "t0 realloc object=t0#0 size=48 -> t0#2",
        "t0 malloc size=0 -> t0#3",
        "t0 malloc_usable_size object=t0#3",
        "t0 free_sized object=t0#2 size=48",
        "t0 realloc object=t0#1 size=0 freed=true",
        "t0 free object=null",
        "t0 free object=t0#3",
    ];
    assert_eq!(dump(&place, "a.trace"), expected);
    check(&place, "a.trace");
}

#[test]
fn threads_are_merged_by_their_stamps_and_a_realloc_has_two_of_them() {
    let place = Place::new();
    let events = [
        (0, malloc(0x1000, 1), 100),
        // Another thread gets the old address before this call returns.
        (
            0,
            Event::Realloc {
                old: 0x1000,
                new: 0x2000,
                size: 2,
                entered: Some(200),
            },
            400,
        ),
        (0, free(0x1000), 600),
        (1, malloc(0x1000, 3), 300),
        (1, free(0x2000), 500),
        // At the same stamp, what ends comes first.
        (1, malloc(0x1000, 4), 600),
    ];
    capture(&place, "a.cap", &[], &events);
    assert_eq!(finish(&place).stderr, "");
    let expected = [
        "t0 malloc size=1 -> t0#0",
        "t0 thread_start child=1",
        "t1 malloc size=3 -> t1#0",
        "t0 realloc object=t0#0 size=2 -> t0#1",
        "t1 free object=t0#1",
        "t0 free object=t1#0",
        "t1 malloc size=4 -> t1#1",
    ];
    assert_eq!(dump(&place, "a.trace"), expected);
}

#[test]
fn a_thread_whose_start_is_not_on_record_is_started_where_its_events_begin() {
    let place = Place::new();
    let events = [
        (0, malloc(0x1000, 1), 100),
        // The main thread need not be the first.
        (1, Event::Main, 200),
        (1, malloc(0x2000, 2), 210),
        (1, Event::ThreadStart { child: 2 }, 300),
        (2, malloc(0x3000, 3), 310),
        (3, malloc(0x4000, 4), 400),
        (3, free(0x4000), 410),
    ];
    capture(&place, "a.cap", &[], &events);
    assert_eq!(finish(&place).stderr, "");
    let expected = [
        "t0 malloc size=1 -> t0#0",
        "t1 main",
        "t1 malloc size=2 -> t1#0",
        "t1 thread_start child=2",
        "t2 malloc size=3 -> t2#0",
        "t1 thread_start child=3",
        "t3 malloc size=4 -> t3#0",
        "t3 free object=t3#0",
    ];
    assert_eq!(dump(&place, "a.trace"), expected);
}

#[test]
fn time_goes_on_between_two_calls_and_after_the_last() {
    let place = Place::new();
    let clocks = |pairs: &[(&str, &str)], events: &[(u32, Event, u64)]| -> Vec<u64> {
        capture(&place, "a.cap", pairs, events);
        assert_eq!(finish(&place).code, Some(0));
        let text = place.run(&["trace", "dump", "a.trace"]).stdout;
        let times = text.lines().filter_map(|line| line.split_once("clock ns="));
        times.map(|(_, ns)| ns.parse().unwrap()).collect()
    };
    let two = [
        (0, malloc(0x1000, 1), 1000),
        (1, malloc(0x2000, 2), 2000),
        (1, free(0x2000), 60_000_002_000),
        (0, free(0x1000), 60_000_003_000),
    ];
    assert_eq!(clocks(&[], &two), [1000, 60_000_002_000]);
    // Another thread has events while a realloc takes a minute.
    let slow = Event::Realloc {
        old: 0x1000,
        new: 0x3000,
        size: 2,
        entered: Some(200_000),
    };
    let during = [
        (0, malloc(0x1000, 1), 1000),
        (0, slow, 60_000_000_000),
        (1, malloc(0x2000, 2), 300_000),
    ];
    assert_eq!(
        clocks(&[], &during),
        [1000, 200_000, 300_000, 60_000_000_000]
    );
    // Without stamps, only the end tells of a time.
    let one = [(0, malloc(0x1000, 1), 0), (0, free(0x1000), 0)];
    let ended = [("end.ns", "60000000000")];
    assert_eq!(clocks(&ended, &one), [60_000_000_000]);
}

#[test]
fn an_order_that_cannot_have_been_is_put_right_and_counted_and_warned_of() {
    let place = Place::new();
    let events = [
        (0, malloc(0x1000, 1), 100),
        (0, free(0x1000), 250),
        (1, malloc(0x1000, 2), 200),
        (1, free(0x1000), 9000),
        // Ends before it begins, a little.
        (0, free(0x2000), 300),
        (1, malloc(0x2000, 5), 9100),
        (0, free(0x3000), 9200),
        (1, malloc(0x3000, 6), 9300),
    ];
    capture(&place, "a.cap", &[], &events);
    let end = finish(&place);
    assert_eq!(end.code, Some(0));
    let lines: Vec<&str> = end.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{}", end.stderr);
    assert_eq!(
        lines[0],
        "a.cap: 1 objects ended that had begun before the recording, or unseen by it; they are left out"
    );
    assert_eq!(
        lines[1],
        "a.cap: 2 events stood in an order that cannot have been, and were put right"
    );
    assert!(
        lines[2].contains("WARNING") && lines[2].contains("not to be trusted"),
        "{}",
        lines[2]
    );
    let expected = [
        "t0 malloc size=1 -> t0#0",
        "t0 thread_start child=1",
        "t1 free object=t0#0",
        "t1 malloc size=2 -> t1#0",
        "t1 free object=t1#0",
        "t1 malloc size=5 -> t1#1",
        "t1 malloc size=6 -> t1#2",
        "t0 free object=t1#2",
    ];
    assert_eq!(dump(&place, "a.trace"), expected);
    check(&place, "a.trace");
}

#[test]
fn an_address_that_is_given_out_again_without_an_end_is_no_wrong_order_where_one_thread_is_all() {
    let place = Place::new();
    let unseen = |stream: u32| {
        let events = [
            (0, malloc(0x1000, 1), 100),
            // Something else has freed it.
            (0, malloc(0x1000, 2), 200),
            (0, free(0x1000), 300),
            (stream, malloc(0x2000, 3), 900_000),
        ];
        capture(&place, "a.cap", &[], &events);
        let end = finish(&place);
        assert_eq!(end.code, Some(0));
        check(&place, "a.trace");
        end.stderr
    };
    let said = "a.cap: 1 objects ended unseen (something frees past the recorder: RTLD_DEEPBIND?); they end where their \
                address is used again\n";
    assert_eq!(unseen(0), said);
    let expected = [
        "t0 malloc size=1 -> t0#0",
        "t0 free object=t0#0",
        "t0 malloc size=2 -> t0#1",
        "t0 free object=t0#1",
    ];
    assert_eq!(dump(&place, "a.trace")[..4], expected);
    // Where there are two, stamps may be wrong as well.
    let two = unseen(1);
    assert!(
        two.starts_with(said) && two.contains("WARNING") && two.lines().count() == 2,
        "{two}"
    );
}

#[test]
fn a_cut_begins_with_what_was_alive_and_tells_the_rest_as_it_was() {
    let place = Place::new();
    let events = [
        (0, malloc(0x1000, 1), 1_000_000_000),
        (0, malloc(0x2000, 2), 1_100_000_000),
        (1, malloc(0x3000, 3), 1_200_000_000),
        (1, free(0x1000), 1_300_000_000),
        (0, malloc(0x4000, 4), 1_400_000_000),
        (0, free(0x3000), 1_500_000_000),
        (1, free(0x2000), 1_600_000_000),
    ];
    capture(&place, "a.cap", &[], &events);
    assert_eq!(finish(&place).code, Some(0));
    let all = dump(&place, "a.trace");
    let end = place.run(&[
        "trace", "cut", "a.trace", "--events", "5..8", "-o", "b.trace",
    ]);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    assert_eq!(all.len(), 8, "{all:?}");
    let cut = dump(&place, "b.trace");
    check(&place, "b.trace");
    assert!(cut[0].starts_with("t0 inherit objects="), "{cut:?}");
    // Whatever it is cut into, each part is a trace that holds together, and nothing of it is lost.
    for from in 0..9 {
        let range = format!("{from}..");
        assert_eq!(
            place
                .run(&[
                    "trace", "cut", "a.trace", "--events", &range, "-o", "c.trace", "--force"
                ])
                .code,
            Some(0)
        );
        check(&place, "c.trace");
        let again = place.run(&[
            "trace", "cut", "c.trace", "--events", "0..", "-o", "d.trace", "--force",
        ]);
        assert_eq!(again.code, Some(0));
        assert_eq!(dump(&place, "c.trace"), dump(&place, "d.trace"));
    }
    for wrong in ["5", "7..3", "x.."] {
        let end = place.run(&[
            "trace", "cut", "a.trace", "--events", wrong, "-o", "c.trace",
        ]);
        end.is_one_line(2);
    }
}
