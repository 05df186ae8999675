//! A reader finds exactly what a writer puts into chunks; any other bytes are events or damage,
//! never a panic.

use heapmark_wire::capture::{
    CHUNK_BYTES, Call, Chunk, ChunkKind, Event, HEADER_BYTES, Header, MOST_EVENT_BYTES,
    MOST_OPEN_BYTES, Record, Start, Variant, Writer, Wrong, crc32c,
};
use proptest::prelude::*;

const BYTES: u32 = CHUNK_BYTES as u32;

/// A chunk in memory; its words keep it aligned.
struct Room(Vec<u64>);

impl Room {
    fn new() -> Room {
        Room(vec![0; CHUNK_BYTES / 8])
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Writes each event with its stamp, as a stream that is clocked from the first event on, or never.
fn write(events: &[(Event<'_>, u64)], clocked: bool, seal: bool) -> Vec<u8> {
    let mut room = Room::new();
    let (mut writer, mut open) = (Writer::nowhere(), 0);
    let start = Start {
        thread: 3,
        stream: 5,
        number: 7,
        stamp: 1000,
        ns: 9,
        clocked,
        place: 1,
        bytes: BYTES,
        first_event: 0,
    };
    // SAFETY: the chunk is zeros, and no test writes more than fits.
    unsafe {
        writer.begin(room.0.as_mut_ptr().cast(), &start);
        for (event, stamp) in events {
            assert!(writer.at() <= writer.last_place());
            let before = writer.at() as usize;
            let timed = clocked || matches!(event, Event::Clock | Event::ClockedOn);
            writer.put(event, timed.then_some(*stamp));
            assert!(writer.at() as usize - before <= MOST_EVENT_BYTES);
            open += writer.at() as usize - before;
            // As a recorder does from time to time.
            if open > MOST_OPEN_BYTES - MOST_EVENT_BYTES {
                writer.seal(false);
                open = 0;
            }
        }
        if seal {
            writer.seal(true);
        }
    }
    room.bytes()
}

fn read(bytes: &[u8]) -> Vec<Record<'_>> {
    let chunk = Chunk::parse(bytes).unwrap().unwrap();
    assert_eq!(
        (chunk.kind, chunk.start.stream, chunk.start.number),
        (ChunkKind::Events, 5, 7)
    );
    chunk.records().collect::<Result<_, _>>().unwrap()
}

fn events(clocked: bool) -> impl Strategy<Value = Vec<(Event<'static>, u64)>> {
    let address =
        prop_oneof![0..1u64 << 20, 0..1u64 << 47, 0..1u64 << 62].prop_map(|address| address.max(1));
    let number = prop_oneof![0..2000u64, any::<u64>()];
    let call = (
        0..22usize,
        address.clone(),
        address,
        number.clone(),
        number,
        any::<bool>(),
        any::<u32>(),
    );
    let event = call.prop_map(
        move |(kind, address, other, size, align, operator, thread)| match kind {
            0 | 1 => Event::Malloc {
                address,
                size,
                operator,
            },
            2 => Event::Calloc {
                address,
                count: align,
                size,
            },
            3 => Event::Realloc {
                old: address,
                new: other,
                size,
                entered: None,
            },
            4 => Event::Realloc {
                old: 0,
                new: other,
                size,
                entered: None,
            },
            5 => Event::Realloc {
                old: address,
                new: 0,
                size: 0,
                entered: None,
            },
            6 => Event::Aligned {
                address,
                align,
                size,
                variant: Variant::ALL[size as usize % Variant::ALL.len()],
            },
            7 | 8 => Event::Free { address, operator },
            9 => Event::FreeSized {
                address,
                size,
                operator,
            },
            10 => Event::FreeAlignedSized {
                address,
                align,
                size,
                operator,
            },
            11 => Event::FreeAligned { address, align },
            12 => Event::UsableSize { address },
            13 => Event::Failed {
                call: Call::ALL[size as usize % Call::ALL.len()],
                size,
            },
            14 => Event::Touch {
                address,
                resident: size,
                extent: size,
                pages: align,
            },
            15 => Event::Begin { thread },
            16 => Event::ThreadStart { child: thread },
            17 => Event::Fork { pid: thread },
            18 => Event::Forking { moment: size },
            19 => [
                Event::Clock,
                Event::FreeNull,
                Event::ThreadExit,
                Event::Main,
                Event::Info,
            ][size as usize % 5],
            20 => [
                Event::Trim { pad: size },
                Event::Mallopt {
                    parameter: align as i32,
                    value: thread as i32,
                },
            ][operator as usize],
            _ => [Event::Time { ns: size }, Event::Mark { text: b"half way" }][operator as usize],
        },
    );
    // Increasing stamps; a realloc is entered a little before it returns.
    prop::collection::vec((event, 0..100_000u64, 0..50u64), 0..300).prop_map(move |events| {
        let mut now = 1000;
        let timed = |(event, passed, within)| {
            now += passed + within;
            match event {
                Event::Realloc { old, new, size, .. } if clocked => (
                    Event::Realloc {
                        old,
                        new,
                        size,
                        entered: Some(now - within),
                    },
                    now,
                ),
                event => (event, now),
            }
        };
        events.into_iter().map(timed).collect()
    })
}

proptest! {
    #[test]
    fn events_come_back_as_they_were_put((clocked, seal, events) in any::<(bool, bool)>()
        .prop_flat_map(|(clocked, seal)| (Just(clocked), Just(seal), events(clocked))))
    {
        let bytes = write(&events, clocked, seal);
        let found = read(&bytes);
        prop_assert_eq!(found.len(), events.len());
        let mut thread = 3;
        for (at, ((event, stamp), record)) in events.iter().zip(found).enumerate() {
            if let Event::Begin { thread: other } = event {
                thread = *other;
            }
            let timed = clocked || *event == Event::Clock;
            prop_assert_eq!(record, Record { number: at as u64, thread, stamp: timed.then_some(*stamp), event: *event });
        }
    }

    #[test]
    fn any_payload_is_events_or_damage(payload in prop::collection::vec(any::<u8>(), 0..400), clocked: bool) {
        let mut bytes = write(&[], clocked, false);
        bytes[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(&payload);
        let chunk = Chunk::parse(&bytes).unwrap().unwrap();
        let found: Vec<_> = chunk.records().collect();
        prop_assert!(found.len() <= payload.len());
        // Damage comes last.
        prop_assert!(found.iter().rev().skip(1).all(|record| record.is_ok()));
    }

    #[test]
    fn any_header_is_a_chunk_or_wrong(header in prop::collection::vec(any::<u8>(), 0..200), magic: bool) {
        let mut header = header;
        if magic && header.len() >= 12 {
            header[..11].copy_from_slice(b"heapcapt\x03\0\x02");
        }
        if magic && header.len() >= HEADER_BYTES {
            let crc = crc32c(&header[..56]);
            header[56..60].copy_from_slice(&crc.to_le_bytes());
        }
        if let Ok(Some(chunk)) = Chunk::parse(&header) {
            chunk.records().for_each(drop);
            chunk.pairs().for_each(drop);
        }
    }
}

const MALLOC: Event<'static> = Event::Malloc {
    address: 0x7000_0010,
    size: 24,
    operator: false,
};
const FREE: Event<'static> = Event::Free {
    address: 0x7000_0010,
    operator: false,
};

#[test]
fn a_stream_can_be_clocked_from_an_event_on() {
    let mut room = Room::new();
    let mut writer = Writer::nowhere();
    // SAFETY: three events fit.
    unsafe {
        let start = Start {
            stream: 5,
            number: 7,
            bytes: BYTES,
            ..Start::default()
        };
        writer.begin(room.0.as_mut_ptr().cast(), &start);
        writer.put(&MALLOC, None);
        writer.put(&Event::ClockedOn, Some(50));
        writer.put(&FREE, Some(60));
    }
    let bytes = room.bytes();
    let stamps: Vec<_> = read(&bytes)
        .into_iter()
        .map(|record| record.stamp)
        .collect();
    assert_eq!(stamps, [None, Some(50), Some(60)]);
}

#[test]
fn a_writer_that_was_left_in_the_middle_goes_on_where_it_stood() {
    for clocked in [false, true] {
        let mut room = Room::new();
        let mut writer = Writer::nowhere();
        let stamp = |stamp: u64| clocked.then_some(stamp);
        // SAFETY: a few events fit.
        unsafe {
            let start = Start {
                stream: 5,
                number: 7,
                clocked,
                bytes: BYTES,
                ..Start::default()
            };
            writer.begin(room.0.as_mut_ptr().cast(), &start);
            writer.put(&MALLOC, stamp(10));
            // Far away, and late; its last number was never stored.
            let from = writer.at();
            writer.put(
                &Event::Malloc {
                    address: 1 << 40,
                    size: 1 << 40,
                    operator: false,
                },
                stamp(99),
            );
            let last = if clocked { 1 } else { 6 };
            assert!(last < writer.at().offset_from_unsigned(from));
            writer.at().sub(last).write_bytes(0, last);
            assert_eq!(writer.recover(), clocked);
            assert_eq!(writer.at(), from);
            writer.put(&FREE, stamp(20));
        }
        let bytes = room.bytes();
        let found: Vec<_> = read(&bytes)
            .into_iter()
            .map(|r| (r.number, r.event, r.stamp))
            .collect();
        assert_eq!(found, [(0, MALLOC, stamp(10)), (1, FREE, stamp(20))]);
    }
}

#[test]
fn a_pair_of_calls_close_by_takes_five_bytes() {
    let far = write(&[(MALLOC, 0)], false, false);
    let pair = write(
        &[(MALLOC, 0), (FREE, 0), (MALLOC, 0), (FREE, 0)],
        false,
        false,
    );
    let length = |bytes: &[u8]| Chunk::parse(bytes).unwrap().unwrap().payload.len();
    // The distance from the start address 0, once; then one byte for the address and one for the
    // size.
    assert_eq!((length(&far), length(&pair) - length(&far)), (6, 1 + 2 + 1));
}

#[test]
fn an_event_holds_when_its_last_byte_is_stored() {
    let mark = Event::Mark { text: b"here" };
    for clocked in [false, true] {
        let events = [
            (MALLOC, 1010),
            (FREE, 1020),
            (mark, 1030),
            (MALLOC, 1 << 60),
        ];
        let whole = write(&events, clocked, false);
        let ends = (0..=events.len()).map(|count| {
            let written = write(&events[..count], clocked, false);
            Chunk::parse(&written).unwrap().unwrap().payload.len()
        });
        let ends: Vec<usize> = ends.collect();
        for written in 0..=ends[events.len()] {
            let mut bytes = whole.clone();
            bytes[HEADER_BYTES + written..].fill(0);
            let held = ends.iter().filter(|end| **end <= written).count() - 1;
            assert_eq!(read(&bytes).len(), held, "after {written} bytes");
        }
    }
}

#[test]
fn an_event_that_is_cut_off_in_a_sealed_chunk_is_damage() {
    let mut bytes = write(&[(MALLOC, 0)], false, true);
    let whole = u32::from_le_bytes(bytes[64..68].try_into().unwrap());
    bytes[64..68].copy_from_slice(&(whole - 1).to_le_bytes());
    let sum = !crc32c(&bytes[HEADER_BYTES..][..whole as usize - 1]);
    bytes[68..72].copy_from_slice(&sum.to_le_bytes());
    let damage = Chunk::parse(&bytes)
        .unwrap()
        .unwrap()
        .records()
        .last()
        .unwrap()
        .unwrap_err();
    assert_eq!(
        (damage.offset, damage.to_string().as_str()),
        (0, "an event is cut off at byte 0 of the chunk")
    );
}

#[test]
fn a_chunk_that_is_none_says_why() {
    let good = write(&[(MALLOC, 0), (FREE, 0)], false, true);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Chunk::parse(&bytes).err()
    };
    assert_eq!(with(0, b'H'), Some(Wrong::Magic));
    assert_eq!(with(8, 2), Some(Wrong::Version(2)));
    assert!((10..60).all(|at| with(at, !good[at]) == Some(Wrong::Header)));
    assert_eq!(with(67, 1), Some(Wrong::Committed(1 << 24 | 7)));
    assert_eq!(with(64, !good[64]), Some(Wrong::Checksum));
    assert_eq!(with(72, 1), Some(Wrong::Count));
    assert_eq!(
        with(HEADER_BYTES, !good[HEADER_BYTES]),
        Some(Wrong::Checksum)
    );
    assert_eq!(
        Chunk::parse(&good[..HEADER_BYTES + 3]).err(),
        Some(Wrong::Short)
    );
    assert_eq!(Chunk::parse(&good[..20]).err(), Some(Wrong::Short));
    assert!(Chunk::parse(&[0; CHUNK_BYTES]).unwrap().is_none());
    // Bytes after a sealed payload are ignored.
    assert_eq!(with(HEADER_BYTES + 100, 1), None);
}

#[test]
fn text_is_read_from_its_chunk() {
    let mut room = Room::new();
    let text = b"pid=7\nexe=/bin/true\n";
    let header = room.0.as_mut_ptr().cast::<Header>();
    // SAFETY: a chunk of zeros.
    unsafe {
        Header::begin(
            header,
            ChunkKind::Text,
            &Start {
                bytes: BYTES,
                ..Start::default()
            },
        );
        header
            .cast::<u8>()
            .add(HEADER_BYTES)
            .copy_from(text.as_ptr(), text.len());
        (*header).seal(&text[..7], false);
        (*header).seal(text, false);
        (*header).count_dropped(1);
        (*header).count_dropped(3);
        (0..3).for_each(|_| (*header).count_chunk());
    }
    let bytes = room.bytes();
    let chunk = Chunk::parse(&bytes).unwrap().unwrap();
    assert_eq!(
        (chunk.kind, chunk.dropped, chunk.chunks),
        (ChunkKind::Text, 4, 3)
    );
    assert_eq!(
        chunk.pairs().collect::<Vec<_>>(),
        [("pid", "7"), ("exe", "/bin/true")]
    );
}

#[test]
fn what_is_sealed_as_it_comes_is_guarded_and_what_came_behind_it_is_read() {
    let mut room = Room::new();
    let mut writer = Writer::nowhere();
    let at = room.0.as_mut_ptr().cast::<u8>();
    // SAFETY: a few events fit, and the header is the room's own.
    unsafe {
        writer.begin(
            at,
            &Start {
                stream: 5,
                number: 7,
                bytes: BYTES,
                ..Start::default()
            },
        );
        writer.put(&MALLOC, None);
        writer.seal(false);
        writer.put(&FREE, None);
    }
    fn events(bytes: &[u8]) -> Vec<Event<'_>> {
        read(bytes).into_iter().map(|record| record.event).collect()
    }
    let open = room.bytes();
    assert_eq!(events(&open), [MALLOC, FREE]);
    let mut damaged = open.clone();
    damaged[HEADER_BYTES + 2] ^= 1;
    assert_eq!(Chunk::parse(&damaged).err(), Some(Wrong::Checksum));
    // Written where a writer leaves nothing.
    let mut damaged = open.clone();
    let sealed = u32::from_le_bytes(open[64..68].try_into().unwrap()) as usize;
    damaged[HEADER_BYTES + sealed + MOST_OPEN_BYTES] = 1;
    assert_eq!(Chunk::parse(&damaged).err(), Some(Wrong::Open));
    // Zeros within the unsealed part are no events.
    let mut damaged = open;
    damaged[HEADER_BYTES + 40] = 1;
    assert!(
        Chunk::parse(&damaged)
            .unwrap()
            .unwrap()
            .records()
            .any(|record| record.is_err())
    );
    // SAFETY: as above.
    unsafe { writer.seal(true) };
    let ended = room.bytes();
    assert!(Chunk::parse(&ended).unwrap().unwrap().sealed && events(&ended) == [MALLOC, FREE]);
}
