//! A capture as a file: its chunks, and the stream of each. At first only headers are read, so that
//! a file of any length takes the memory of one chunk per stream.

use crate::fault::{Fault, foreign};
use crate::{Done, Head};
use heapmark_wire::capture::{CHUNK_BYTES, Chunk, ChunkKind, HEADER_BYTES, Start, Wrong};
use rustix::fs::{SeekFrom, seek};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A recorder has at most this many streams.
const MOST_STREAMS: usize = 1 << 16;
/// A chunk of each stream is in memory at once: some ten thousand threads that all do much. No
/// recorder writes more than this.
const MOST_BYTES_AT_ONCE: u64 = 4 << 30;

/// An open capture.
pub(super) struct Capture {
    file: File,
    length: u64,
    /// What its recorder reports of the process.
    pub head: Head,
    /// Events that the recorder could not write down.
    pub dropped: u64,
    /// Places of the chunks of each stream, in order.
    pub streams: Vec<Vec<ChunkPlace>>,
    /// What is wrong with its chunks.
    pub damage: Vec<String>,
    /// Where the file ends, if it has become shorter since it was opened.
    pub shortened: Cell<Option<u64>>,
    /// Counts the bytes read of its chunks.
    pub done: Done,
}

/// Where a chunk is, and its header.
#[derive(Clone, Copy)]
pub(super) struct ChunkPlace {
    pub at: u64,
    pub start: Start,
}

impl Capture {
    pub(super) fn open(path: &Path) -> Result<Capture, Fault> {
        let cannot = |error: io::Error| foreign(format!("cannot be read: {error}"));
        let file = File::open(path).map_err(cannot)?;
        let length = file.metadata().map_err(cannot)?.len();
        if length == 0 {
            return Err(foreign("the file is empty"));
        }
        let (head, streams, damage, shortened) =
            (Head::default(), Vec::new(), Vec::new(), Cell::default());
        let done = Done::default();
        let mut capture = Capture {
            file,
            length,
            head,
            dropped: 0,
            streams,
            damage,
            shortened,
            done,
        };
        let chunks = capture.read_head(cannot)?;
        capture.index(chunks).map_err(cannot)?;
        capture.check_memory()?;
        Ok(capture)
    }

    /// Returns how many further chunks the recorder reports.
    fn read_head(&mut self, cannot: impl Fn(io::Error) -> Fault) -> Result<u32, Fault> {
        let none = |why: String| foreign(format!("this is no capture of `heapmark record`: {why}"));
        let mut room = Vec::new();
        self.read(0, &mut room).map_err(cannot)?;
        let chunk = match Chunk::parse(&room) {
            Ok(chunk) => chunk,
            Err(wrong @ (Wrong::Short | Wrong::Magic | Wrong::Version(_))) => {
                return Err(none(wrong.to_string()));
            }
            // Events have chunks of their own.
            Err(wrong) => {
                self.damage.push(format!(
                    "chunk 0: {wrong}: what the recorder says of the process is lost"
                ));
                return Ok(0);
            }
        };
        let Some(chunk) = chunk.filter(|chunk| chunk.kind == ChunkKind::Text) else {
            return Err(none("it does not begin with what it is of".into()));
        };
        chunk
            .pairs()
            .for_each(|(key, value)| self.head.set_escaped(key, value));
        self.dropped = chunk.dropped.into();
        if self.head.pairs().next().is_none() && chunk.chunks > 0 {
            self.damage
                .push("chunk 0: what the recorder says of the process is lost".into());
        }
        Ok(chunk.chunks)
    }

    /// Reads only the headers.
    fn index(&mut self, told: u32) -> io::Result<()> {
        let mut places: Vec<ChunkPlace> = Vec::new();
        let mut at = 0;
        while let Some(next) = self.next_used(at + CHUNK_BYTES as u64)? {
            at = next;
            let number = at / CHUNK_BYTES as u64;
            let mut header = [0; HEADER_BYTES];
            let there = self.fill(at, &mut header)?;
            match Start::of_header(&header) {
                _ if there < HEADER_BYTES => self
                    .damage
                    .push(format!("chunk {number}: {}", Wrong::Short)),
                Ok(Some((ChunkKind::Events, start))) if u64::from(start.place) == number => {
                    places.push(ChunkPlace { at, start });
                    let end = at + u64::from(start.bytes);
                    // A recorder at work extends the file first.
                    if end > self.length && end > self.file.metadata()?.len() {
                        self.damage
                            .push(format!("chunk {number}: the file ends within it"));
                    }
                }
                Ok(Some((_, start))) => {
                    self.damage.push(format!(
                        "chunk {number}: it says that it is chunk {}",
                        start.place
                    ));
                }
                Ok(None) => {}
                Err(wrong) => self.damage.push(format!("chunk {number}: {wrong}")),
            }
        }
        let missing = u64::from(told).saturating_sub(places.len() as u64);
        if missing > 0 {
            self.damage
                .push(format!("{missing} of {told} chunks are missing"));
        }
        places.sort_by_key(|place| (place.start.stream, place.start.number));
        let streams = places.chunk_by(|one, other| one.start.stream == other.start.stream);
        self.streams = streams.map(<[ChunkPlace]>::to_vec).collect();
        Ok(())
    }

    /// The first chunk from this one on that is not a hole in the file: missing chunks take no
    /// time, however long the file claims to be.
    fn next_used(&self, from: u64) -> io::Result<Option<u64>> {
        if from >= self.length {
            return Ok(None);
        }
        let data = match seek(&self.file, SeekFrom::Data(from)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => return Ok(None),
            // The file system does not support that.
            Err(_) => from,
        };
        Ok(Some(from.max(data - data % CHUNK_BYTES as u64)))
    }

    /// Refuses a capture that needs too much memory at once.
    fn check_memory(&self) -> Result<(), Fault> {
        let most = |places: &Vec<ChunkPlace>| {
            places
                .iter()
                .map(|place| u64::from(place.start.bytes))
                .max()
                .unwrap_or(0)
        };
        let bytes: u64 = self.streams.iter().map(most).sum();
        let streams = self.streams.len();
        if streams > MOST_STREAMS || bytes > MOST_BYTES_AT_ONCE {
            let gib = bytes >> 30;
            return Err(foreign(format!(
                "{streams} streams, {gib} GiB to be read at once: no recorder writes that"
            )));
        }
        Ok(())
    }

    /// Reads the valid bytes of a chunk, replacing the content of `room`. The recorder may still be
    /// writing: the bytes that the header counts when it is read are valid.
    pub(super) fn read(&self, at: u64, room: &mut Vec<u8>) -> io::Result<()> {
        let mut header = [0; HEADER_BYTES];
        let there = self.fill(at, &mut header)?;
        let payload = Start::payload_bytes(&header).unwrap_or(0);
        // The bytes of the previous chunk are overwritten: to clear them first would cost as much
        // as the copy.
        room.resize(there + payload, 0);
        room[..there].copy_from_slice(&header[..there]);
        let read = self.fill(at + there as u64, &mut room[there..])?;
        room.truncate(there + read);
        self.done
            .add(self.length.saturating_sub(at).min(CHUNK_BYTES as u64));
        Ok(())
    }

    /// Reads to the end of the buffer or of the file; returns the number of bytes.
    fn fill(&self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < room.len() {
            match self.file.read_at(&mut room[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let end = at + filled as u64;
        if filled < room.len() && end < self.length {
            self.shortened.set(Some(
                self.shortened.get().map_or(end, |known| known.min(end)),
            ));
        }
        Ok(filled)
    }
}
