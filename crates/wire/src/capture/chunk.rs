//! A chunk's header: its writer, its place in a stream, and how much of it is valid.

use super::crc::{continued, crc32c};
use super::text;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

/// The distance of chunks in a file, and the size of the largest one: a power of two, and a
/// multiple of every page size in use.
pub const CHUNK_BYTES: usize = 256 << 10;
/// The size of a stream's first chunk. The events of a short process fit into it, and the rest of its place in the file
/// takes no disk space.
pub const FIRST_BYTES: usize = 32 << 10;
/// The size of the chunk with the text.
pub const TEXT_BYTES: usize = 24 << 10;
/// Bytes of a chunk's header.
pub const HEADER_BYTES: usize = 128;
/// The most bytes that a writer leaves unsealed.
pub const MOST_OPEN_BYTES: usize = 4608;

const MAGIC: [u8; 8] = *b"heapcapt";
const VERSION: u16 = 5;
const CLOCKED: u8 = 1;
/// Bytes of the header that do not change; its checksum covers these.
const FIXED_BYTES: usize = 56;
/// Adds one to both copies of a number that is stored twice, so that damage is detected.
const ONE_TWICE: u64 = 1 << 32 | 1;

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChunkKind {
    /// Text about the process
    Text = 1,
    /// Events
    Events = 2,
}

/// The first bytes of a chunk in the mapped file; little-endian, like everything in it. If all of them are zero, the
/// chunk is unused.
#[repr(C)]
pub struct Header {
    magic: AtomicU64,
    version: u16,
    kind: u8,
    flags: u8,
    thread: u32,
    stream: u32,
    number: u32,
    first_event: u64,
    stamp: u64,
    ns: u64,
    place: u32,
    bytes: u32,
    crc: u32,
    _none: u32,
    /// How many bytes of the payload are sealed, and above that their checksum; all bits inverted if nothing will
    /// follow them. Both are in one word, so that a reader never finds one without the other.
    sealed: AtomicU64,
    chunks: AtomicU64,
    dropped: AtomicU64,
    _rest: [u64; 5],
}

const _: () = assert!(
    size_of::<Header>() == HEADER_BYTES && core::mem::offset_of!(Header, crc) == FIXED_BYTES
);

/// What a writer stores in a chunk's header when it begins the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Start {
    /// The thread of the first events.
    pub thread: u32,
    /// The stream that the chunk belongs to.
    pub stream: u32,
    /// The chunk's number in the stream, from 0.
    pub number: u32,
    /// The number of the chunk's first event in the stream, from 0.
    pub first_event: u64,
    /// The present time; no event in the chunk has an earlier stamp.
    pub stamp: u64,
    /// The time of `stamp`, in nanoseconds since the recording began.
    pub ns: u64,
    /// Whether the events have stamps from the first one on.
    pub clocked: bool,
    /// The chunk's number in the file, from 0.
    pub place: u32,
    /// Bytes of the chunk that are reserved on the disk, including the header.
    pub bytes: u32,
}

impl Header {
    /// Begins a chunk of this kind. The magic is written last, so that a torn header does not count.
    ///
    /// # Safety
    /// `header` must point to `start.bytes` of zeros that the caller may write.
    pub unsafe fn begin(header: *mut Header, kind: ChunkKind, start: &Start) {
        // SAFETY: as the caller guarantees.
        unsafe {
            (*header).version = VERSION;
            (*header).kind = kind as u8;
            (*header).flags = if start.clocked { CLOCKED } else { 0 };
            (*header).thread = start.thread;
            (*header).stream = start.stream;
            (*header).number = start.number;
            (*header).first_event = start.first_event;
            (*header).stamp = start.stamp;
            (*header).ns = start.ns;
            (*header).place = start.place;
            (*header).bytes = start.bytes;
            let behind_magic = core::slice::from_raw_parts(
                header.cast::<u8>().add(MAGIC.len()),
                FIXED_BYTES - MAGIC.len(),
            );
            (*header).crc = continued(crc32c(&MAGIC), behind_magic);
            (*header)
                .magic
                .store(u64::from_le_bytes(MAGIC), Ordering::Release);
        }
    }

    /// Bytes of the chunk, including its header.
    pub fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// How many bytes of the payload are sealed.
    pub fn sealed_bytes(&self) -> usize {
        self.sealed.load(Ordering::Acquire) as u32 as usize
    }

    /// Seals the payload so far; what was sealed before stays as it is. Without `end`, more may
    /// follow.
    pub fn seal(&self, payload: &[u8], end: bool) {
        let before = self.sealed.load(Ordering::Relaxed);
        let (done, crc) = (
            (before as u32 as usize).min(payload.len()),
            (before >> 32) as u32,
        );
        let crc = continued(crc, &payload[done..]);
        let sealed_crc = if end { !crc } else { crc };
        self.sealed.store(
            u64::from(sealed_crc) << 32 | payload.len() as u64,
            Ordering::Release,
        );
    }

    /// Counts another chunk; used only in the first chunk of a file.
    pub fn count_chunk(&self) {
        self.chunks.fetch_add(ONE_TWICE, Ordering::Relaxed);
    }

    /// Counts events that could not be written; used only in the first chunk of a file.
    pub fn count_dropped(&self, count: u32) {
        self.dropped
            .fetch_add(ONE_TWICE * u64::from(count), Ordering::Relaxed);
    }
}

/// A chunk that was read.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// What the chunk holds.
    pub kind: ChunkKind,
    /// What the writer stored when it began the chunk.
    pub start: Start,
    /// Whether the writer had finished the chunk and the checksum is right.
    pub sealed: bool,
    /// The number of chunks of events that were begun; only in the first chunk of a file.
    pub chunks: u32,
    /// The number of events that could not be written; only in the first chunk of a file.
    pub dropped: u32,
    /// The payload. If its writer could not seal it, the last event may be torn.
    pub payload: &'a [u8],
}

/// The reason why bytes are not a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The bytes are fewer than those of a header, or of the payload.
    Short,
    /// The file is of another kind.
    Magic,
    /// The file was written by another version of the recorder.
    Version(u16),
    /// The header's checksum is wrong.
    Header,
    /// The chunk is of an unknown kind.
    Kind(u8),
    /// The payload is larger than the chunk.
    Committed(u32),
    /// The payload's checksum is wrong.
    Checksum,
    /// The two copies of a number differ.
    Count,
    /// More bytes are unsealed than a writer may leave.
    Open,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Short => f.write_str("the chunk is cut off"),
            Wrong::Magic => f.write_str("this is no chunk of a capture"),
            Wrong::Version(found) => write!(
                f,
                "the capture has version {found}, this program reads version {VERSION}: finish it with the heapmark that recorded it"
            ),
            Wrong::Header => f.write_str("the checksum of the chunk's header is wrong"),
            Wrong::Kind(found) => write!(f, "a chunk of unknown kind {found}"),
            Wrong::Committed(found) => write!(f, "{found} bytes in a chunk that holds fewer"),
            Wrong::Checksum => f.write_str("the chunk's checksum is wrong"),
            Wrong::Count => f.write_str("the number of chunks is damaged"),
            Wrong::Open => f.write_str("more is written than its writer can have left unsealed"),
        }
    }
}

impl core::error::Error for Wrong {}

/// Header fields that do not come from the writer.
struct Rest {
    kind: ChunkKind,
    sealed: u32,
    crc: u32,
    chunks: u64,
    dropped: u64,
}

fn read(header: &[u8; HEADER_BYTES]) -> Result<Option<(Start, Rest)>, Wrong> {
    let half = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
    // The header is zero: the chunk was never used, or its writer died while it wrote the header.
    if word(0) == 0 {
        return Ok(None);
    }
    if header[..8] != MAGIC {
        return Err(Wrong::Magic);
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version != VERSION {
        return Err(Wrong::Version(version));
    }
    if crc32c(&header[..FIXED_BYTES]) != half(FIXED_BYTES) {
        return Err(Wrong::Header);
    }
    let kind = match header[10] {
        1 => ChunkKind::Text,
        2 => ChunkKind::Events,
        other => return Err(Wrong::Kind(other)),
    };
    let start = Start {
        thread: half(12),
        stream: half(16),
        number: half(20),
        first_event: word(24),
        stamp: word(32),
        ns: word(40),
        clocked: header[11] & CLOCKED != 0,
        place: half(48),
        bytes: half(52),
    };
    let rest = Rest {
        kind,
        sealed: half(64),
        crc: half(68),
        chunks: word(72),
        dropped: word(80),
    };
    if !(HEADER_BYTES..=CHUNK_BYTES).contains(&(start.bytes as usize)) {
        return Err(Wrong::Header);
    }
    if rest.sealed as usize > start.bytes as usize - HEADER_BYTES {
        return Err(Wrong::Committed(rest.sealed));
    }
    Ok(Some((start, rest)))
}

/// Returns a number that is stored twice, if both copies are equal.
fn once(twice: u64) -> Result<u32, Wrong> {
    if twice >> 32 == twice & u64::from(u32::MAX) {
        Ok(twice as u32)
    } else {
        Err(Wrong::Count)
    }
}

impl Start {
    /// The fields of a header alone, for a search for the chunks of a stream; `None` if the chunk
    /// was never used.
    pub fn of_header(header: &[u8; HEADER_BYTES]) -> Result<Option<(ChunkKind, Start)>, Wrong> {
        Ok(read(header)?.map(|(start, rest)| (rest.kind, start)))
    }

    /// Returns how many bytes after a chunk's header [`Chunk::parse`] needs; if the file ends earlier, zeros may
    /// replace the rest.
    pub fn payload_bytes(header: &[u8; HEADER_BYTES]) -> Result<usize, Wrong> {
        let Some((start, rest)) = read(header)? else {
            return Ok(0);
        };
        let room = start.bytes as usize - HEADER_BYTES;
        let open = match rest.kind {
            ChunkKind::Text => 0,
            // A chunk that was just begun, or whose seal is missing.
            ChunkKind::Events if rest.sealed == 0 => room,
            // One byte more than is allowed, to detect an excess.
            ChunkKind::Events => MOST_OPEN_BYTES + 1,
        };
        Ok((rest.sealed as usize + open).min(room))
    }
}

impl<'a> Chunk<'a> {
    /// The chunk that `bytes` begin with; `None` if it was never used. The end of a file may be
    /// shorter than a chunk.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Chunk<'a>>, Wrong> {
        let (header, behind) = bytes
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or(Wrong::Short)?;
        let Some((start, rest)) = read(header)? else {
            return Ok(None);
        };
        let Rest {
            kind,
            sealed,
            crc,
            chunks,
            dropped,
        } = rest;
        let (held, open) = behind
            .split_at_checked(sealed as usize)
            .ok_or(Wrong::Short)?;
        let found = crc32c(held);
        let ended = crc == !found;
        if !ended && crc != found {
            return Err(Wrong::Checksum);
        }
        // An unsealed part ends where zeros begin, wherever that is.
        let open = &open[..open.len().min(Start::payload_bytes(header)? - held.len())];
        let written = if ended {
            None
        } else {
            open.iter()
                .rposition(|byte| *byte != 0)
                .map(|last| last + 1)
        };
        if written.is_some_and(|bytes| bytes > MOST_OPEN_BYTES) {
            return Err(Wrong::Open);
        }
        let payload = &behind[..held.len() + written.unwrap_or(0)];
        let (chunks, dropped) = (once(chunks)?, once(dropped)?);
        Ok(Some(Chunk {
            kind,
            start,
            sealed: ended,
            chunks,
            dropped,
            payload,
        }))
    }

    /// The chunk's text, as pairs of a key and an escaped value.
    pub fn pairs(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        text::pairs(self.payload)
    }
}
