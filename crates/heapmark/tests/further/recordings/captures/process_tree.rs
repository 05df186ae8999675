//! Captures of processes that forked each other.

use super::{capture, check, dump, free, malloc};
use crate::support::Place;
use heapmark_wire::capture::Event;

#[test]
fn a_forked_process_begins_with_what_its_parent_had() {
    let place = Place::new();
    let parent = [
        (0, malloc(0x1000, 11), 0),
        (0, malloc(0x2000, 22), 0),
        (0, malloc(0x3000, 33), 0),
        (0, free(0x1000), 0),
        (0, Event::Forking { moment: 1 }, 0),
        (0, free(0x2000), 0),
        (0, Event::Fork { pid: 77 }, 0),
    ];
    capture(&place, "x.5.cap", &[("pid", "5")], &parent);
    let child = [
        (0, free(0x3000), 0),
        (0, malloc(0x3000, 44), 0),
        (0, free(0x2000), 0),
        (0, free(0x9000), 0),
    ];
    capture(
        &place,
        "x.77.cap",
        &[
            ("pid", "77"),
            ("parent", "5"),
            ("begin", "fork"),
            ("forked-ns", "1"),
        ],
        &child,
    );
    let end = place.run(&["trace", "finish", "x.77.cap", "-o", "a.trace"]);
    assert_eq!(end.code, Some(0));
    let expected = "x.77.cap: 2 objects come from the parent process; the trace begins with them\n\
                    x.77.cap: 1 objects ended that had begun before the recording, or unseen by it; they are left out\n";
    assert_eq!(end.stderr, expected);
    let expected = [
        "t0 inherit objects=2",
        "t0 malloc size=22 -> t0#0",
        "t0 malloc size=33 -> t0#1",
        "t0 free object=t0#1",
        "t0 malloc size=44 -> t0#2",
        "t0 free object=t0#0",
    ];
    assert_eq!(dump(&place, "a.trace"), expected);
    check(&place, "a.trace");
}

/// Process 5 makes 77 and 78, 77 makes 79; 80 says it was made by 5, which never told.
fn generations(place: &Place) {
    let fork = |moment| (0, Event::Forking { moment }, 0);
    let made = |name: &str, pid: &str, parent: &str, events: &[(u32, Event, u64)]| {
        // The new child has its number for a moment.
        capture(
            place,
            name,
            &[
                ("pid", pid),
                ("parent", parent),
                ("begin", "fork"),
                ("forked-ns", pid),
            ],
            events,
        );
    };
    let eldest = [
        (0, malloc(0x1000, 11), 0),
        fork(77),
        (0, malloc(0x2000, 22), 0),
        fork(78),
        (0, free(0x1000), 0),
    ];
    capture(place, "x.5.cap", &[("pid", "5")], &eldest);
    made(
        "x.77.cap",
        "77",
        "5",
        &[(0, malloc(0x3000, 33), 0), fork(79), (0, free(0x3000), 0)],
    );
    made("x.78.cap", "78", "5", &[(0, free(0x2000), 0)]);
    made("x.79.cap", "79", "77", &[(0, free(0x1000), 0)]);
    made("x.80.cap", "80", "5", &[(0, malloc(0x1000, 44), 0)]);
}

#[test]
fn a_family_that_is_finished_together_has_the_traces_that_each_has_alone() {
    let place = Place::new();
    generations(&place);
    // Children before their parents: a turn comes with the fork, not with the place in the list.
    let names = ["x.79", "x.80", "x.78", "x.77", "x.5"];
    let captures = names.map(|name| format!("{name}.cap"));
    let end = place.run(
        &[
            &["trace", "finish"][..],
            &captures.each_ref().map(String::as_str),
        ]
        .concat(),
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let told: Vec<&str> = end
        .stdout
        .lines()
        .filter_map(|line| line.split_once(".trace:"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(told, names);
    let together = names.map(|name| dump(&place, &format!("{name}.trace")));
    for (name, together) in names.iter().zip(&together) {
        check(&place, &format!("{name}.trace"));
        let end = place.run(&[
            "trace",
            "finish",
            &format!("{name}.cap"),
            "-o",
            "alone.trace",
            "--force",
        ]);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        assert_eq!(dump(&place, "alone.trace"), *together, "{name}");
    }
    let grandchild = [
        "t0 inherit objects=2",
        "t0 malloc size=11 -> t0#0",
        "t0 malloc size=33 -> t0#1",
        "t0 free object=t0#0",
    ];
    assert_eq!(together[0], grandchild);
    assert_eq!(together[1], ["t0 malloc size=44 -> t0#0"]);
}

#[test]
fn processes_that_are_said_to_be_each_others_children_end() {
    let place = Place::new();
    for (name, pid, parent) in [
        ("x.1.cap", "1", "2"),
        ("x.2.cap", "2", "1"),
        ("x.3.cap", "3", "3"),
    ] {
        let pairs = [
            ("pid", pid),
            ("parent", parent),
            ("begin", "fork"),
            ("forked-ns", "1"),
        ];
        capture(
            &place,
            name,
            &pairs,
            &[
                (0, malloc(0x1000, 11), 0),
                (0, Event::Forking { moment: 1 }, 0),
            ],
        );
    }
    let end = place.run(&["trace", "finish", "x.1.cap", "x.2.cap", "x.3.cap"]);
    assert_eq!(
        (end.code, end.stdout.lines().count()),
        (Some(0), 3),
        "{}",
        end.stderr
    );
}

#[test]
fn a_chain_of_forks_longer_than_are_read_at_once_loses_nothing() {
    const LAST: u64 = 40;
    let place = Place::new();
    let names: Vec<String> = (1..=LAST).map(|pid| format!("x.{pid}.cap")).collect();
    for (name, pid) in names.iter().zip(1u64..) {
        let (own, parent) = (pid.to_string(), (pid - 1).to_string());
        let pairs = [
            ("pid", own.as_str()),
            ("parent", parent.as_str()),
            ("begin", "fork"),
            ("forked-ns", own.as_str()),
        ];
        capture(
            &place,
            name,
            &pairs,
            &[
                (0, malloc(pid * 64, pid), 0),
                (0, Event::Forking { moment: pid + 1 }, 0),
            ],
        );
    }
    let captures: Vec<&str> = names.iter().map(String::as_str).collect();
    let end = place.run(&[&["trace", "finish"][..], &captures].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let last = dump(&place, &format!("x.{LAST}.trace"));
    assert_eq!(last[0], format!("t0 inherit objects={}", LAST - 1));
    assert_eq!(last.len() as u64, LAST + 1);
}

#[test]
fn two_children_of_one_number_have_what_there_was_when_each_was_made() {
    let place = Place::new();
    let fork = |moment| {
        [
            (0, Event::Forking { moment }, 0),
            (0, Event::Fork { pid: 77 }, 0),
        ]
    };
    let parent = [
        &[(0, malloc(0x1000, 11), 0)][..],
        &fork(300),
        &[(0, malloc(0x2000, 22), 0)],
        &fork(400),
    ]
    .concat();
    capture(&place, "x.5.cap", &[("pid", "5")], &parent);
    for (name, moment) in [("x.77.cap", "400"), ("x.77.2.cap", "300")] {
        let pairs = [
            ("pid", "77"),
            ("parent", "5"),
            ("begin", "fork"),
            ("forked-ns", moment),
        ];
        capture(&place, name, &pairs, &[(0, free(0x1000), 0)]);
    }
    let end = place.run(&["trace", "finish", "x.77.cap", "x.77.2.cap"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let second = dump(&place, "x.77.trace");
    assert_eq!(
        second[..3],
        [
            "t0 inherit objects=2",
            "t0 malloc size=11 -> t0#0",
            "t0 malloc size=22 -> t0#1"
        ]
    );
    assert_eq!(
        dump(&place, "x.77.2.trace")[..2],
        ["t0 inherit objects=1", "t0 malloc size=11 -> t0#0"]
    );
}
