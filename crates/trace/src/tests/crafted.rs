//! Crafted files: false lengths, counts and claims, each with a correct checksum.

use super::*;
use crate::layout::{CHUNK_HEADER, ChunkHeader, Codec, Content, FILE_HEADER, file_header};

/// The only fault of a file, as text; its kind must be this.
fn refused(bytes: &[u8], kind: FaultKind) -> String {
    let fault = read(bytes).1.expect("it must be refused");
    assert_eq!(fault.kind(), kind, "{fault}");
    let words = fault.to_string();
    assert!(!words.contains('\n') && words.len() < 200, "{words}");
    words
}

/// A file header with changed bytes and the checksum of these.
fn header(changes: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = file_header().to_vec();
    changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
    let crc = crc32fast::hash(&bytes[..36]);
    bytes[36..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn with_header(changes: &[(usize, u8)]) -> Vec<u8> {
    let whole = written(&every_kind());
    [&header(changes), &whole[FILE_HEADER..]].concat()
}

#[test]
fn other_versions_and_other_machines_are_named() {
    for version in [0, 3] {
        let refused = refused(&with_header(&[(8, version)]), FaultKind::Foreign);
        assert!(refused.contains(&format!("a trace of version {version}")));
    }
    assert!(refused(&with_header(&[(18, 4)]), FaultKind::Foreign).contains("bits 0x40000"));
    let swapped = [(12, 1), (13, 2), (14, 3), (15, 4)];
    assert!(refused(&with_header(&swapped), FaultKind::Foreign).contains("big-endian"));
    assert_eq!(refused(b"", FaultKind::Foreign), "the file is empty");
    assert!(refused(&[0x89], FaultKind::Damaged).contains("ends after 1 bytes"));
    assert!(
        refused(
            b"\x7fELF and so on, and so on, and so on, and so on",
            FaultKind::Foreign
        )
        .contains("no heapmark trace")
    );
    // A newer minor version and features that may be ignored change nothing.
    assert_eq!(
        read(&with_header(&[(10, 7), (24, 255)])),
        (every_kind(), None)
    );
}

fn chunk(number: u64, first_event: u64, events: u32, payload: &[u8]) -> (ChunkHeader, Vec<u8>) {
    let length = payload.len() as u32;
    let header = ChunkHeader {
        content: Content::Events,
        codec: Codec::Plain,
        number,
        first_event,
        events,
        raw_bytes: length,
        stored_bytes: length,
        stored_crc: crc32fast::hash(payload),
    };
    (header, payload.to_vec())
}

/// A file of the metadata and this chunk, changed afterwards.
pub(super) fn crafted(
    events: u32,
    payload: &[u8],
    change: impl FnOnce(&mut ChunkHeader),
) -> Vec<u8> {
    let (head, text) = chunk(0, 0, 0, b"\n");
    let (mut header, payload) = chunk(1, 0, events, payload);
    change(&mut header);
    let head = ChunkHeader {
        content: Content::Head,
        ..head
    };
    [
        &file_header()[..],
        &head.bytes(),
        &text,
        &header.bytes(),
        &payload,
    ]
    .concat()
}

/// Numbers as a payload, each of one to nine bytes.
fn numbers(numbers: &[u64]) -> Vec<u8> {
    let mut payload = Vec::new();
    for number in numbers {
        crate::codec::put_number(&mut payload, *number);
    }
    payload
}

#[test]
fn lengths_and_counts_that_are_not_true_are_refused_before_memory_is_taken() {
    let payload = numbers(&[2, 24 << 3]);
    assert_eq!(
        read(&crafted(1, &payload, |_| ())).0,
        [(
            0,
            Event::Malloc {
                size: 24,
                operator: false
            }
        )]
    );
    let words =
        |change: fn(&mut ChunkHeader)| refused(&crafted(1, &payload, change), FaultKind::Damaged);
    assert!(words(|header| header.stored_bytes = 0).contains("a chunk of 0 bytes stored"));
    assert!(words(|header| header.raw_bytes = 0).contains("a chunk of 0 bytes unpacked"));
    assert!(
        words(|header| header.stored_bytes = u32::MAX)
            .contains("a chunk of 4294967295 bytes stored")
    );
    assert!(
        words(|header| header.raw_bytes = (1 << 20) + 1)
            .contains("a chunk of 1048577 bytes unpacked")
    );
    assert!(words(|header| header.raw_bytes += 1).contains("not packed has"));
    assert!(words(|header| header.events = 0).contains("says that it has 0 events"));
    assert!(words(|header| header.events = 1000).contains("says that it has 1000 events"));
    assert!(words(|header| header.events = 2).contains("ends within an event"));
    assert!(words(|header| header.number = 2).contains("chunk 2 stands where chunk 1 must"));
    assert!(
        words(|header| header.first_event = 9).contains("begins with event 9, but 0 came before")
    );
    assert!(
        words(|header| header.content = Content::Head)
            .contains("a chunk of 3 bytes says that it has 1 events")
    );
    assert!(words(|header| header.codec = Codec::Zstd).contains("does not unpack"));
    assert!(
        refused(
            &crafted(1, &[&payload[..], &[1]].concat(), |_| ()),
            FaultKind::Damaged
        )
        .contains("1 bytes are left")
    );
}

#[test]
fn what_unpacks_to_more_than_it_says_is_refused() {
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 19).unwrap();
    assert!(bomb.len() < 10_000);
    for says in [1 << 20, 100] {
        let file = crafted(1, &bomb, |header| {
            (header.codec, header.raw_bytes) = (Codec::Zstd, says)
        });
        assert!(
            refused(&file, FaultKind::Damaged)
                .contains(&format!("does not unpack to {says} bytes"))
        );
    }
    let small = zstd::bulk::compress(&[5; 50], 3).unwrap();
    let file = crafted(1, &small, |header| {
        (header.codec, header.raw_bytes) = (Codec::Zstd, 100)
    });
    assert!(refused(&file, FaultKind::Damaged).contains("unpacks to 50 bytes and says 100"));
}

#[test]
fn claims_of_an_event_that_cannot_be_are_refused() {
    let rare = |number: u64| number << 3 | 7;
    let of = |numbers_: &[u64]| crafted(1, &numbers(numbers_), |_| ());
    for (payload, kind, words) in [
        (
            vec![65_535 << 3 | 2, 0],
            FaultKind::Impossible,
            "thread 65535: a trace has 65535 threads at most",
        ),
        (
            vec![u64::MAX << 3 | 2, 0],
            FaultKind::Impossible,
            "a trace has 65535 threads at most",
        ),
        (
            vec![2, rare(10), 1 << 40],
            FaultKind::Impossible,
            "a trace has 65535 threads at most",
        ),
        (
            vec![2, rare(15), (1 << 29) + 1],
            FaultKind::Impossible,
            "more than 2^29 objects that live at once",
        ),
        (
            vec![2, 1],
            FaultKind::Impossible,
            "object 0 of thread 0, which has allocated 0 so far",
        ),
        (
            vec![2, 6, 7],
            FaultKind::Impossible,
            "an object of thread 7, which has allocated nothing so far",
        ),
        (
            vec![2, 6, u64::MAX],
            FaultKind::Impossible,
            "which has allocated nothing so far",
        ),
        (
            vec![2, rare(12), 1 << 32],
            FaultKind::Impossible,
            "a process id of more than 32 bits",
        ),
        (vec![0], FaultKind::Damaged, "an event of no thread"),
        (
            vec![2, 2, 0],
            FaultKind::Damaged,
            "two switches of threads in a row",
        ),
        (
            vec![2, rare(99)],
            FaultKind::Damaged,
            "operation 99, which there is not",
        ),
        (
            vec![2, rare(9), 99, 0],
            FaultKind::Damaged,
            "a function with number 99, which there is not",
        ),
        (
            vec![2, rare(14), 4097],
            FaultKind::Damaged,
            "a mark of 4097 bytes",
        ),
        (
            vec![2, rare(14), 5, 0],
            FaultKind::Damaged,
            "a mark of 5 bytes in a chunk that has 1 left",
        ),
    ] {
        let found = refused(&of(&payload), kind);
        assert!(
            found.starts_with("chunk 1, event 0: ") && found.contains(words),
            "{payload:?}: {found}"
        );
    }
    let twice = crafted(2, &numbers(&[2, rare(2), u64::MAX, rare(2), 1]), |_| ());
    assert!(refused(&twice, FaultKind::Impossible).contains("584 years"));
    // A number that never ends: nine bytes are the most, and the chunk has fewer.
    assert!(
        refused(&crafted(1, &[0, 255, 255], |_| ()), FaultKind::Damaged)
            .contains("ends within an event")
    );
}

/// The bytes of each chunk of a file.
fn chunks(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut rest, mut chunks) = (&bytes[FILE_HEADER..], Vec::new());
    while let Some(header) = rest.first_chunk::<CHUNK_HEADER>() {
        let length = CHUNK_HEADER + ChunkHeader::parse(header).unwrap().stored_bytes as usize;
        chunks.push(&rest[..length]);
        rest = &rest[length..];
    }
    chunks
}

#[test]
fn chunks_that_are_missing_or_twice_there_or_at_the_wrong_place_are_seen() {
    let events: Vec<_> = (0..800_000)
        .map(|n| {
            (
                0,
                Event::Malloc {
                    size: n * 977 % 5000,
                    operator: false,
                },
            )
        })
        .collect();
    let whole = written(&events);
    let all = chunks(&whole);
    assert!(all.len() >= 4, "{}", all.len());
    let of = |places: &[usize]| {
        let parts: Vec<&[u8]> = places.iter().map(|place| all[*place]).collect();
        [&whole[..FILE_HEADER], &parts.concat()].concat()
    };
    let last = all.len() - 1;
    let in_order: Vec<usize> = (0..all.len()).collect();
    assert_eq!(read(&of(&in_order)).1, None);
    assert!(
        refused(&of(&[0, 2, last]), FaultKind::Damaged)
            .contains("chunk 2 stands where chunk 1 must")
    );
    assert!(
        refused(&of(&[0, 1, 1]), FaultKind::Damaged).contains("chunk 1 stands where chunk 2 must")
    );
    assert!(
        refused(&of(&[1, 0]), FaultKind::Damaged).contains("chunk 1 stands where chunk 0 must")
    );
    assert!(refused(&of(&[0, 1, last]), FaultKind::Damaged).contains("one is missing"));
    assert!(refused(&of(&[0, 1]), FaultKind::Damaged).contains("cut short"));
    // Everything before the damage is good.
    let (before, _) = read(&of(&[0, 1]));
    assert!(before.len() > 100_000 && before[..] == events[..before.len()]);
    let behind = [&whole[..], b"more"].concat();
    assert!(refused(&behind, FaultKind::Damaged).contains("something stands behind its end"));
}
