//! A capture as a file: its chunks, and the stream of each. At first only headers are read, so that
//! a file of any length takes the memory of one chunk per stream.

use crate::fault::{Result, foreign};
use crate::reader::fill;
use crate::{Done, Head, open_regular};
use heapmark_wire::capture::{CHUNK_BYTES, Chunk, ChunkKind, HEADER_BYTES, Start, Wrong};
use rustix::fs;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

/// A recorder has at most this many streams.
const MOST_STREAMS: usize = 1 << 16;
/// The most bytes of chunks in memory, with one chunk of each stream at a time: enough for some ten
/// thousand busy threads. No recorder writes more than this.
const MOST_BYTES_AT_ONCE: u64 = 4 << 30;

/// An open capture.
pub struct Capture {
    file: File,
    length: u64,
    /// What the recorder reports about the process.
    pub head: Head,
    /// The number of events that the recorder could not write.
    pub dropped: u64,
    /// The chunks of each stream, in order.
    pub streams: Vec<Vec<Start>>,
    /// Faults of the capture's chunks.
    pub damage: Vec<String>,
    /// The new length of the file, if it has become shorter since it was opened.
    pub shortened: Cell<Option<u64>>,
    /// Counts the bytes that are read from the chunks.
    pub done: Done,
}

impl Capture {
    pub fn open(path: &Path) -> Result<Capture> {
        let file = open_regular(path)?;
        let length = file.metadata()?.len();
        if length == 0 {
            return foreign("the file is empty");
        }
        let mut capture = Capture {
            file,
            length,
            head: Head::default(),
            dropped: 0,
            streams: Vec::new(),
            damage: Vec::new(),
            shortened: Cell::default(),
            done: Done::default(),
        };
        let chunks = capture.read_head()?;
        capture.index(chunks)?;
        let most = |starts: &Vec<Start>| starts.iter().map(|start| u64::from(start.bytes)).max();
        let bytes: u64 = capture.streams.iter().filter_map(most).sum();
        let streams = capture.streams.len();
        if streams > MOST_STREAMS || bytes > MOST_BYTES_AT_ONCE {
            return foreign(format!(
                "{streams} streams, {} GiB to be read at once: no recorder writes that",
                bytes >> 30
            ));
        }
        Ok(capture)
    }

    /// Reads the first chunk; returns how many further chunks the recorder reports.
    fn read_head(&mut self) -> Result<u32> {
        let none = |why: &str| foreign(format!("this is no capture of `heapmark record`: {why}"));
        let mut room = Vec::new();
        self.read(0, &mut room)?;
        let chunk = match Chunk::parse(&room) {
            Ok(Some(chunk)) if chunk.kind == ChunkKind::Text => chunk,
            Ok(_) => return none("it does not begin with what it is of"),
            Err(wrong @ (Wrong::Short | Wrong::Magic | Wrong::Version(_))) => {
                return none(&wrong.to_string());
            }
            // The events are in other chunks, which may still be good.
            Err(wrong) => {
                self.damage.push(format!(
                    "chunk 0: {wrong}: what the recorder says of the process is lost"
                ));
                return Ok(0);
            }
        };
        for (key, value) in chunk.pairs() {
            self.head.set_escaped(key, value);
        }
        self.dropped = chunk.dropped.into();
        if self.head.0.is_empty() && chunk.chunks > 0 {
            self.damage
                .push("chunk 0: what the recorder says of the process is lost".into());
        }
        Ok(chunk.chunks)
    }

    /// Finds the chunks of each stream, reading only their headers.
    fn index(&mut self, expected: u32) -> io::Result<()> {
        let mut starts = Vec::new();
        let mut at = 0;
        while let Some(next) = self.next_used(at + CHUNK_BYTES as u64)? {
            at = next;
            let number = at / CHUNK_BYTES as u64;
            let mut header = [0; HEADER_BYTES];
            let there = self.fill(at, &mut header)?;
            let wrong = match Start::of_header(&header) {
                _ if there < HEADER_BYTES => Wrong::Short.to_string(),
                Ok(Some((ChunkKind::Events, start))) if u64::from(start.place) == number => {
                    starts.push(start);
                    let end = at + u64::from(start.bytes);
                    // A recorder that is still running extends the file before it writes, so the
                    // length is read again.
                    if end <= self.length || end <= self.file.metadata()?.len() {
                        continue;
                    }
                    "the file ends within it".into()
                }
                Ok(Some((_, start))) => format!("it says that it is chunk {}", start.place),
                Ok(None) => continue,
                Err(wrong) => wrong.to_string(),
            };
            self.damage.push(format!("chunk {number}: {wrong}"));
        }
        let missing = u64::from(expected).saturating_sub(starts.len() as u64);
        if missing > 0 {
            self.damage
                .push(format!("{missing} of {expected} chunks are missing"));
        }
        starts.sort_by_key(|start| (start.stream, start.number));
        let streams = starts.chunk_by(|one, other| one.stream == other.stream);
        self.streams = streams.map(<[Start]>::to_vec).collect();
        Ok(())
    }

    /// Returns the place of the first chunk from this one on that is not a hole in the file:
    /// missing chunks take no time, however long the file claims to be.
    fn next_used(&self, from: u64) -> io::Result<Option<u64>> {
        if from >= self.length {
            return Ok(None);
        }
        let data = match fs::seek(&self.file, fs::SeekFrom::Data(from)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => return Ok(None),
            // The file system cannot report holes, so none is skipped.
            Err(_) => from,
        };
        Ok(Some(from.max(data - data % CHUNK_BYTES as u64)))
    }

    /// Reads the valid bytes of the chunk of this number, replacing the content of `room`. The
    /// recorder may still be writing: the bytes that the header counts when it is read are valid.
    pub fn read(&self, number: u32, room: &mut Vec<u8>) -> io::Result<()> {
        let at = u64::from(number) * CHUNK_BYTES as u64;
        let mut header = [0; HEADER_BYTES];
        let there = self.fill(at, &mut header)?;
        let payload = Start::payload_bytes(&header).unwrap_or(0);
        // The bytes of the previous chunk are overwritten: clearing them first would cost as much
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
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        let filled = fill(&mut file, room)?;
        let end = at + filled as u64;
        if filled < room.len() && end < self.length {
            let known = self.shortened.get().unwrap_or(end);
            self.shortened.set(Some(known.min(end)));
        }
        Ok(filled)
    }
}
