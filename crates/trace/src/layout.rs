//! The frame of a trace file: its header, and the header of each chunk. docs/FORMAT.md has both as
//! tables.

use super::fault::{Result, damaged, foreign, impossible};

/// The first bytes of a trace. The first one is not text, and a transfer that converts line ends
/// changes the last two.
const MAGIC: [u8; 8] = *b"\x89hmtr\x1a\r\n";
const MAJOR: u16 = 2;
/// The first major version whose traces identify the main thread.
const TELLS_MAIN: u16 = 2;
const MINOR: u16 = 0;
/// All numbers are little-endian; in a file written with the other byte order this number is
/// reversed.
const BYTE_ORDER: u32 = 0x0102_0304;

/// Bytes of the file's header.
pub const FILE_HEADER: usize = 40;
/// Bytes of a chunk's header.
pub const CHUNK_HEADER: usize = 48;
const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"chnk");

/// The most bytes of a chunk, both stored and unpacked, so that no file can make a reader take more
/// memory.
pub const MOST_RAW_BYTES: usize = 1 << 20;
/// The most threads that a trace can have.
pub const MOST_THREADS: u32 = 65_535;
/// The most objects that can live at once.
pub const MOST_LIVE: u64 = 1 << 29;

/// The kind of content of a chunk.
#[derive(Clone, Copy, PartialEq)]
pub enum Content {
    /// `key=value` lines; the first chunk.
    Head = 1,
    /// Events.
    Events = 2,
    /// The numbers of chunks, events, threads and allocations; the last chunk.
    Totals = 3,
}

/// How a chunk is stored.
#[derive(Clone, Copy, PartialEq)]
pub enum Codec {
    /// As written, not compressed.
    Plain = 0,
    /// Compressed by zstd.
    Zstd = 1,
}

/// The header of a chunk.
pub struct ChunkHeader {
    pub content: Content,
    pub codec: Codec,
    /// The chunk's number, counted from 0.
    pub number: u64,
    pub first_event: u64,
    pub events: u32,
    pub raw_bytes: u32,
    pub stored_bytes: u32,
    pub stored_crc: u32,
}

/// Returns a thread's number; a fault if no trace can have that many threads.
#[inline]
pub fn checked_thread(thread: u64) -> Result<u32> {
    if thread < MOST_THREADS.into() {
        Ok(thread as u32)
    } else {
        impossible(format!(
            "thread {thread}: a trace has {MOST_THREADS} threads at most"
        ))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Returns the header that this version writes.
pub fn file_header() -> [u8; FILE_HEADER] {
    let mut bytes = [0; FILE_HEADER];
    let start: [&[u8]; 4] = [
        &MAGIC,
        &MAJOR.to_le_bytes(),
        &MINOR.to_le_bytes(),
        &BYTE_ORDER.to_le_bytes(),
    ];
    bytes[..16].copy_from_slice(&start.concat());
    // Bytes 16..24: features that a reader must support; 24..32: features that it may ignore;
    // 32..36: reserved. None is used so far.
    sealed(bytes)
}

/// Returns the header with the checksum of all other bytes in its last four bytes.
fn sealed<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    let crc = crc32fast::hash(&bytes[..N - 4]);
    bytes[N - 4..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Refuses a file that is not a trace, or one of a kind that this version cannot read. Returns
/// whether the trace identifies the main thread, if that thread has any event.
pub fn check_file_header(bytes: &[u8; FILE_HEADER]) -> Result<bool> {
    if bytes[..8] != MAGIC {
        return foreign(
            "this is no heapmark trace: it does not begin as one (`heapmark record` makes traces)",
        );
    }
    if u32_at(bytes, 12) == BYTE_ORDER.swap_bytes() {
        return foreign(
            "its numbers are big-endian: a trace is little-endian on every machine; record it again",
        );
    }
    if sealed(*bytes) != *bytes || u32_at(bytes, 12) != BYTE_ORDER {
        return damaged("the header of the file is damaged: its checksum is another");
    }
    let major = u16::from_le_bytes([bytes[8], bytes[9]]);
    if !(1..=MAJOR).contains(&major) {
        return foreign(format!(
            "a trace of version {major}: this heapmark reads versions 1 to {MAJOR}; take the heapmark that wrote it, or a newer one"
        ));
    }
    match u64_at(bytes, 16) {
        0 => Ok(major >= TELLS_MAIN),
        features => foreign(format!(
            "it needs features that this heapmark does not have (bits {features:#x}): take a newer heapmark"
        )),
    }
}

impl ChunkHeader {
    /// Returns the header as stored in a file.
    pub fn bytes(&self) -> [u8; CHUNK_HEADER] {
        let mut bytes = [0; CHUNK_HEADER];
        bytes[..4].copy_from_slice(&CHUNK_MAGIC.to_le_bytes());
        bytes[4] = self.content as u8;
        bytes[5] = self.codec as u8;
        let numbers: [&[u8]; 6] = [
            &self.number.to_le_bytes(),
            &self.first_event.to_le_bytes(),
            &self.events.to_le_bytes(),
            &self.raw_bytes.to_le_bytes(),
            &self.stored_bytes.to_le_bytes(),
            &self.stored_crc.to_le_bytes(),
        ];
        bytes[8..40].copy_from_slice(&numbers.concat());
        sealed(bytes)
    }

    /// Reads a header, and refuses lengths that no chunk can have.
    pub fn parse(bytes: &[u8; CHUNK_HEADER]) -> Result<ChunkHeader> {
        if u32_at(bytes, 0) != CHUNK_MAGIC {
            return damaged("no chunk begins where one must");
        }
        if sealed(*bytes) != *bytes {
            return damaged("the header of the chunk is damaged: its checksum is another");
        }
        let content = match bytes[4] {
            1 => Content::Head,
            2 => Content::Events,
            3 => Content::Totals,
            other => {
                return damaged(format!("a chunk of kind {other}, which there is not"));
            }
        };
        let codec = match bytes[5] {
            0 => Codec::Plain,
            1 => Codec::Zstd,
            other => {
                return damaged(format!(
                    "a chunk packed by method {other}, which there is not"
                ));
            }
        };
        let [events, raw, stored, stored_crc] = [24, 28, 32, 36].map(|at| u32_at(bytes, at));
        for (what, bytes) in [("unpacked", raw), ("stored", stored)] {
            if bytes == 0 || bytes as usize > MOST_RAW_BYTES {
                return damaged(format!(
                    "a chunk of {bytes} bytes {what}: it has 1 to {MOST_RAW_BYTES}"
                ));
            }
        }
        if codec == Codec::Plain && raw != stored {
            return damaged(format!(
                "a chunk that is not packed has {raw} and {stored} bytes"
            ));
        }
        // An event has at least one byte.
        if events > raw || (events == 0) == (content == Content::Events) {
            return damaged(format!(
                "a chunk of {raw} bytes says that it has {events} events"
            ));
        }
        Ok(ChunkHeader {
            content,
            codec,
            number: u64_at(bytes, 8),
            first_event: u64_at(bytes, 16),
            events,
            raw_bytes: raw,
            stored_bytes: stored,
            stored_crc,
        })
    }
}
