//! A chunk's header: who wrote it, what it continues, how much of it holds.

use super::read::Records;
use super::{crc32c, text};
use core::fmt;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Bytes of a chunk: a power of two, and a multiple of every page size in use.
pub const CHUNK_BYTES: usize = 256 << 10;
/// Bytes of its header.
pub const HEADER_BYTES: usize = 64;
/// Bytes that remain.
pub const PAYLOAD_BYTES: usize = CHUNK_BYTES - HEADER_BYTES;

const MAGIC: [u8; 8] = *b"heapcapt";
const VERSION: u16 = 2;
const SEALED: u8 = 1;
const CLOCKED: u8 = 2;

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Text about the process
    Text = 1,
    /// Events
    Events = 2,
}

/// The first bytes of a chunk, as they lie in the mapped file; little-endian, as all of it. Zeros are a chunk that nobody uses.
#[repr(C)]
pub struct Header {
    magic: AtomicU64,
    version: u16,
    kind: u8,
    flags: AtomicU8,
    thread: u32,
    stream: u32,
    number: u32,
    first_event: u64,
    stamp: u64,
    ns: u64,
    committed: AtomicU32,
    crc: AtomicU32,
    dropped: AtomicU64,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES);

/// What a writer says of a chunk when it begins it, and a reader finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Start {
    /// Whose events come first.
    pub thread: u32,
    /// The stream that the chunk belongs to.
    pub stream: u32,
    /// Its number in the stream, from 0.
    pub number: u32,
    /// The number of its first event in the stream, from 0.
    pub first_event: u64,
    /// What time it is; no event in the chunk has an earlier stamp.
    pub stamp: u64,
    /// The same moment, in nanoseconds since the recording began.
    pub ns: u64,
    /// Its events have stamps from the first on.
    pub clocked: bool,
}

impl Header {
    /// Makes a fresh chunk one of this kind. Its magic comes last: a header that was torn is none.
    ///
    /// # Safety
    /// `header` must point to a chunk of zeros that is the caller's to write.
    pub unsafe fn begin(header: *mut Header, kind: Kind, start: &Start) {
        // SAFETY: the caller's.
        unsafe {
            (*header).version = VERSION;
            (*header).kind = kind as u8;
            (*header).flags = AtomicU8::new(if start.clocked { CLOCKED } else { 0 });
            (*header).thread = start.thread;
            (*header).stream = start.stream;
            (*header).number = start.number;
            (*header).first_event = start.first_event;
            (*header).stamp = start.stamp;
            (*header).ns = start.ns;
            (*header).magic.store(u64::from_le_bytes(MAGIC), Ordering::Release);
        }
    }

    /// So much of the text holds. Events need nobody to say so: see [`Writer`](super::Writer).
    pub fn commit(&self, bytes: u32) {
        self.committed.store(bytes, Ordering::Release);
    }

    /// How much of the text holds.
    pub fn committed(&self) -> u32 {
        self.committed.load(Ordering::Acquire)
    }

    /// In the first chunk of a file: events that nobody could write down.
    pub fn dropped(&self) -> &AtomicU64 {
        &self.dropped
    }

    /// The payload is complete.
    pub fn seal(&self, payload: &[u8]) {
        self.commit(payload.len() as u32);
        self.crc.store(crc32c(payload), Ordering::Relaxed);
        self.flags.fetch_or(SEALED, Ordering::Release);
    }
}

/// A chunk that was read.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// What it holds.
    pub kind: Kind,
    /// Where it belongs.
    pub start: Start,
    /// Its writer had finished with it, and its checksum is right.
    pub sealed: bool,
    /// In the first chunk of a file: events that nobody could write down.
    pub dropped: u64,
    /// What was written. Where its writer did not come to seal it, the last event may be torn.
    pub payload: &'a [u8],
}

/// Why bytes are no chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Shorter than a header, or than what was written.
    Short,
    /// Another kind of file.
    Magic,
    /// Written by another version of the recorder.
    Version(u16),
    /// A kind that there is not.
    Kind(u8),
    /// More was written than fits.
    Committed(u32),
    /// The payload is not what its writer sealed.
    Checksum,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Short => f.write_str("the chunk is cut off"),
            Wrong::Magic => f.write_str("this is no chunk of a capture"),
            Wrong::Version(found) => write!(f, "the capture has version {found}, this program reads version {VERSION}"),
            Wrong::Kind(found) => write!(f, "a chunk of kind {found}, which there is not"),
            Wrong::Committed(found) => write!(f, "{found} bytes in a chunk that holds {PAYLOAD_BYTES}"),
            Wrong::Checksum => f.write_str("the chunk's checksum is wrong"),
        }
    }
}

impl core::error::Error for Wrong {}

/// What a header says that belongs to no writer.
struct Rest {
    kind: Kind,
    flags: u8,
    committed: u32,
    crc: u32,
    dropped: u64,
}

impl Rest {
    fn sealed(&self) -> bool {
        self.flags & SEALED != 0
    }

    /// Events whose writer did not come to seal them end where zeros begin, wherever that is.
    fn payload_bytes(&self) -> usize {
        if self.kind == Kind::Events && !self.sealed() { PAYLOAD_BYTES } else { self.committed as usize }
    }
}

fn read(header: &[u8; HEADER_BYTES]) -> Result<Option<(Start, Rest)>, Wrong> {
    let half = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
    // Zeros: never used, or its writer died within the header.
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
    let kind = match header[10] {
        1 => Kind::Text,
        2 => Kind::Events,
        other => return Err(Wrong::Kind(other)),
    };
    let rest = Rest { kind, flags: header[11], committed: half(48), crc: half(52), dropped: word(56) };
    if rest.committed as usize > PAYLOAD_BYTES {
        return Err(Wrong::Committed(rest.committed));
    }
    let start = Start {
        thread: half(12),
        stream: half(16),
        number: half(20),
        first_event: word(24),
        stamp: word(32),
        ns: word(40),
        clocked: rest.flags & CLOCKED != 0,
    };
    Ok(Some((start, rest)))
}

impl Start {
    /// What a header alone says, for whoever looks for the chunks of a stream; `None` where the chunk was never used.
    pub fn of_header(header: &[u8; HEADER_BYTES]) -> Result<Option<(Kind, Start)>, Wrong> {
        Ok(read(header)?.map(|(start, rest)| (rest.kind, start)))
    }

    /// How many bytes behind its header [`Chunk::parse`] needs of a chunk.
    pub fn payload_bytes(header: &[u8; HEADER_BYTES]) -> Result<usize, Wrong> {
        Ok(read(header)?.map_or(0, |(_, rest)| rest.payload_bytes()))
    }
}

impl<'a> Chunk<'a> {
    /// The chunk that `bytes` begin with; `None` where it was never used. The end of a file may be shorter than a chunk.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Chunk<'a>>, Wrong> {
        let (header, behind) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Wrong::Short)?;
        let Some((start, rest)) = read(header)? else { return Ok(None) };
        let mut payload = behind.get(..rest.payload_bytes()).ok_or(Wrong::Short)?;
        let (kind, sealed, dropped) = (rest.kind, rest.sealed(), rest.dropped);
        if sealed && crc32c(payload) != rest.crc {
            return Err(Wrong::Checksum);
        }
        if kind == Kind::Events && !sealed {
            let last = payload.iter().rposition(|byte| *byte != 0);
            payload = &payload[..last.map_or(0, |last| last + 1)];
        }
        Ok(Some(Chunk { kind, start, sealed, dropped, payload }))
    }

    /// Its events.
    pub fn records(&self) -> Records<'a> {
        Records::new(self.payload, &self.start, self.sealed)
    }

    /// Its text, as pairs of a key and an escaped value.
    pub fn pairs(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        text::pairs(self.payload)
    }
}
