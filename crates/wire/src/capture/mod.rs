//! The capture: the file that the recorder writes while a program runs, one per process. The format
//! is designed for the writer: no lock, no allocation, a few bytes and nanoseconds per event, and
//! every event whose last byte was stored can be read after `kill -9`.
//!
//! A file is an array of chunks, [`CHUNK_BYTES`] apart. The first holds text about the process
//! ([`text`]). Each other one belongs to a *stream*: a recorder's state, which one thread at a time
//! owns. When a thread ends, another takes over its stream with [`Event::Begin`], so that ten
//! thousand short threads do not need ten thousand chunks. A chunk that is all zeros was allocated
//! and never used. The text and a stream's first chunk are smaller than the others; the file has a
//! hole after them.
//!
//! Written data is sealed continuously, at most some kilobytes later: a checksum of the payload so
//! far, in one word with its length. Each header has a checksum of its own and contains its place
//! in the file, and the first one counts the others, so that sealed data cannot be damaged, lost or
//! duplicated undetected.
//!
//! Each chunk is read independently: [`Chunk::parse`], then [`Chunk::records`]. Events are ordered
//! by number within a stream, and by stamp between streams. While a process has one stream, events
//! carry no stamps.

mod chunk;
mod crc;
mod event;
mod read;
pub mod text;
mod write;

pub use chunk::{
    CHUNK_BYTES, Chunk, ChunkKind, FIRST_BYTES, HEADER_BYTES, Header, MOST_OPEN_BYTES, Start,
    TEXT_BYTES, Wrong,
};
pub use crc::crc32c;
pub use event::{Call, Event, MOST_EVENT_BYTES, MOST_MARK_BYTES, Variant};
pub use read::{Damage, Record, Records};
pub use write::Writer;
