//! Everything written can be read, and any other content of a file ends in a one-line fault.

mod checked;
mod crafted;
mod cut;
mod random;

use super::*;

fn token(thread: u32, index: u64) -> Token {
    Token { thread, index }
}

/// Each kind of event at least once, over three threads.
fn every_kind() -> Vec<(u32, Event)> {
    vec![
        (0, Event::Inherit { objects: 1 }),
        (
            0,
            Event::Malloc {
                size: 24,
                operator: false,
            },
        ),
        (0, Event::Clock { ns: 1_000 }),
        (0, Event::ThreadStart { child: 1 }),
        (
            1,
            Event::Malloc {
                size: 0,
                operator: true,
            },
        ),
        (
            1,
            Event::Calloc {
                count: 3,
                size: 1 << 40,
            },
        ),
        (1, Event::UsableSize { token: token(1, 1) }),
        (
            0,
            Event::Realloc {
                token: token(0, 0),
                size: 48,
            },
        ),
        (
            0,
            Event::Realloc {
                token: token(1, 1),
                size: 96,
            },
        ),
        (
            2,
            Event::Aligned {
                align: 4096,
                size: 1 << 33,
                variant: Variant::Memalign,
            },
        ),
        (
            2,
            Event::Touch {
                token: token(2, 0),
                resident_pages: 7,
                extent_pages: 9,
                pages: 1 << 21,
            },
        ),
        (
            2,
            Event::FreeAlignedSized {
                token: token(2, 0),
                align: 4096,
                size: 1 << 33,
            },
        ),
        (
            2,
            Event::Aligned {
                align: 64,
                size: 64,
                variant: Variant::Operator,
            },
        ),
        (
            2,
            Event::FreeAligned {
                token: token(2, 1),
                align: 64,
            },
        ),
        (2, Event::FreeNull),
        (
            2,
            Event::Failed {
                call: Call::Calloc,
                size: u64::MAX,
            },
        ),
        (
            0,
            Event::FreeSized {
                token: token(1, 0),
                size: 0,
            },
        ),
        (
            0,
            Event::FreeSized {
                token: token(0, 1),
                size: 48,
            },
        ),
        (1, Event::Free { token: token(0, 2) }),
        (
            1,
            Event::Malloc {
                size: 5,
                operator: false,
            },
        ),
        (1, Event::ReallocFree { token: token(1, 2) }),
        (
            1,
            Event::Malloc {
                size: (1 << 61) - 1,
                operator: false,
            },
        ),
        (1, Event::Free { token: token(1, 3) }),
        (1, Event::ThreadExit),
        (0, Event::Clock { ns: u64::MAX }),
        (0, Event::Fork { pid: u32::MAX }),
        (
            0,
            Event::Mark {
                text: "half way".into(),
            },
        ),
        (1, Event::Main),
        (
            1,
            Event::Mallopt {
                parameter: -8,
                value: i32::MIN,
            },
        ),
        (1, Event::Trim { pad: u64::MAX }),
        (1, Event::Info),
        (0, Event::Dropped { count: 2 }),
        (
            0,
            Event::End {
                peak_rss_bytes: 1 << 30,
            },
        ),
    ]
}

fn written(events: &[(u32, Event)]) -> Vec<u8> {
    let mut head = Head::default();
    head.set("argv", "a b");
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &head).unwrap();
    events
        .iter()
        .for_each(|(thread, event)| writer.write(*thread, event).unwrap());
    writer.finish().unwrap();
    bytes
}

#[test]
fn each_event_comes_back_as_it_was_written() {
    let events = every_kind();
    let bytes = written(&events);
    let reader = Reader::new(&bytes[..]).unwrap();
    assert_eq!(reader.head().get("argv"), Some("a b"));
    assert_eq!(reader.collect::<Result<Vec<_>, _>>().unwrap(), events);
}

/// What a reader returns for these bytes: the events before the fault, and the fault.
fn read(bytes: &[u8]) -> (Vec<(u32, Event)>, Option<Fault>) {
    let mut reader = match Reader::new(bytes) {
        Ok(reader) => reader,
        Err(fault) => return (Vec::new(), Some(fault)),
    };
    let mut events = Vec::new();
    for event in &mut reader {
        match event {
            Ok(event) => events.push(event),
            Err(fault) => return (events, Some(fault)),
        }
    }
    assert!(reader.next().is_none());
    (events, None)
}

#[test]
fn a_trace_that_ends_anywhere_is_read_up_to_there() {
    let events = every_kind();
    let whole = written(&events);
    for length in 0..whole.len() {
        let (found, fault) = read(&whole[..length]);
        assert!(
            fault.is_some_and(|fault| !fault.to_string().contains('\n')),
            "{length}"
        );
        assert!(found.is_empty() || found == events, "{length}");
    }
}

#[test]
fn no_bit_can_change_without_being_seen() {
    let events = every_kind();
    let whole = written(&events);
    for place in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << bit;
            let (found, fault) = read(&bytes);
            assert!(fault.is_some(), "bit {bit} of byte {place}");
            assert!(
                found.is_empty() || found == events,
                "bit {bit} of byte {place}"
            );
        }
    }
}
