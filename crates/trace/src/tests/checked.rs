//! Traces whose bytes are whole: impossible events are found, and unusual ones are noted.

use super::*;
use crate::check;

fn checked(events: &[Event]) -> Checked {
    let events: Vec<_> = events.iter().map(|event| (0, event.clone())).collect();
    check(Reader::new(&written(&events)[..]).unwrap())
}

/// The only fault.
fn fault(events: &[Event]) -> String {
    let found = checked(events);
    assert_eq!(
        (found.impossible, found.faults.len(), found.worst()),
        (1, 1, Some(FaultKind::Impossible)),
        "{found:?}"
    );
    found.faults[0].to_string()
}

/// The only note.
fn note(events: &[Event]) -> &'static str {
    let found = checked(events);
    assert_eq!((found.impossible, found.notes.len()), (0, 1), "{found:?}");
    found.notes.keys().next().unwrap()
}

const NEW: Event = Event::Malloc {
    size: 16,
    operator: false,
};

fn first() -> Token {
    token(0, 0)
}

#[test]
fn what_cannot_have_happened_is_told_by_chunk_and_event() {
    let free = Event::Free { token: first() };
    let twice = fault(&[NEW, free.clone(), free.clone()]);
    assert_eq!(
        twice,
        "chunk 1, event 2: object 0 of thread 0 is not alive any more"
    );
    let realloc = Event::Realloc {
        token: first(),
        size: 3,
    };
    assert!(fault(&[NEW, free.clone(), realloc]).contains("not alive any more"));
    assert!(
        fault(&[NEW, free.clone(), Event::UsableSize { token: first() }])
            .contains("not alive any more")
    );
    let aligned = |align, variant| Event::Aligned {
        align,
        size: 8,
        variant,
    };
    for align in [0, 3, 4, 1 << 63 | 1] {
        let words = format!("posix_memalign with an alignment of {align} did not fail");
        assert!(fault(&[aligned(align, Variant::PosixMemalign)]).contains(&words));
    }
    assert!(
        fault(&[Event::Calloc {
            count: 1 << 40,
            size: 1 << 40
        }])
        .contains("more than 64 bits")
    );
    assert!(
        fault(&[Event::Calloc {
            count: 1 << 40,
            size: 1 << 10
        }])
        .contains("1125899906842624 bytes did not fail")
    );
    assert!(
        fault(&[Event::Malloc {
            size: (1 << 47) + 1,
            operator: true
        }])
        .contains("more than a process has")
    );
    let touch = Event::Touch {
        token: first(),
        resident_pages: 2,
        extent_pages: 2,
        pages: 1,
    };
    assert!(fault(&[NEW, touch]).contains("2 of 1 pages"));
    assert!(fault(&[NEW, Event::Inherit { objects: 1 }, NEW]).contains("after event 0"));
    assert!(
        fault(&[Event::Inherit { objects: 2 }, NEW, Event::FreeNull]).contains("1 more objects")
    );
    assert!(fault(&[Event::Inherit { objects: 2 }, NEW]).contains("1 more objects"));
}

#[test]
fn what_is_strange_and_possible_is_noted() {
    let aligned = |align| Event::Aligned {
        align,
        size: 8,
        variant: Variant::Memalign,
    };
    assert_eq!(
        note(&[Event::Malloc {
            size: 0,
            operator: false
        }]),
        "allocations of 0 bytes"
    );
    assert_eq!(
        note(&[NEW, Event::ReallocFree { token: first() }]),
        "realloc(object, 0) that freed"
    );
    assert_eq!(note(&[aligned(0)]), "alignments that are no power of two");
    assert_eq!(note(&[aligned(24)]), "alignments that are no power of two");
    assert_eq!(note(&[aligned(1 << 31)]), "alignments above 1 GiB");
    let sized = Event::FreeSized {
        token: first(),
        size: 17,
    };
    assert_eq!(
        note(&[NEW, sized]),
        "frees with another size than the allocation had"
    );
    let failed = Event::Failed {
        call: Call::Calloc,
        size: u64::MAX,
    };
    assert_eq!(note(&[failed]), "allocations that failed");
    assert_eq!(
        note(&[Event::Dropped { count: 3 }]),
        "places where the recorder lost events"
    );
}

#[test]
fn what_programs_do_is_fine() {
    for events in [
        &[][..],
        &[NEW, NEW],
        &[Event::FreeNull],
        &[Event::Clock { ns: 5 }, Event::Clock { ns: 5 }],
    ] {
        let found = checked(events);
        assert_eq!(
            (found.events, found.worst(), found.notes.len()),
            (events.len() as u64, None, 0)
        );
    }
    // A thread that only frees, and objects that are never freed.
    let events = [(0, NEW), (0, NEW), (9, Event::Free { token: token(0, 1) })];
    let found = check(Reader::new(&written(&events)[..]).unwrap());
    assert_eq!((found.worst(), found.alive), (None, 1));
}

#[test]
fn faults_are_told_up_to_a_number_and_counted_beyond() {
    let free = Event::Free { token: first() };
    let found = checked(&[&[NEW][..], &vec![free; 1001]].concat());
    assert_eq!((found.impossible, found.faults.len()), (1000, 20));
}

#[test]
fn a_writer_refuses_what_a_trace_cannot_say() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &Head::default()).unwrap();
    let mut refused =
        |thread: u32, event: Event| writer.write(thread, &event).unwrap_err().to_string();
    assert!(refused(65_535, NEW).contains("65535 threads at most"));
    assert!(refused(0, Event::Free { token: first() }).contains("not allocated yet"));
    assert!(
        refused(
            0,
            Event::Malloc {
                size: 1 << 61,
                operator: false
            }
        )
        .contains("did not fail")
    );
    writer.write(0, &Event::Clock { ns: 7 }).unwrap();
    let back = writer.write(0, &Event::Clock { ns: 6 }).unwrap_err();
    assert!(
        back.to_string()
            .contains("the clock goes back from 7 to 6 ns"),
        "{back}"
    );
}
