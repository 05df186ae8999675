//! Reads a trace: chunks in, events out. Any bytes give events or one fault; memory is one chunk
//! and the state of each thread.

use super::codec::{Bytes, CodecState};
use super::fault::{Fault, damaged, foreign};
use super::layout::{
    CHUNK_HEADER, ChunkHeader, Codec, Content, FILE_HEADER, MOST_RAW_BYTES, check_file_header,
};
use super::{Done, Event, Head, Watched};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use zstd::bulk::Decompressor;

/// An iterator over events and their threads, in the order in which they happened. It ends after a
/// fault.
pub struct Reader<R> {
    from: R,
    head: Head,
    state: CodecState,
    unpacker: Decompressor<'static>,
    stored: Vec<u8>,
    payload: Vec<u8>,
    at: usize,
    /// Chunks that were started.
    chunks: u64,
    /// Events that were returned.
    events: u64,
    events_left: u32,
    ended: bool,
}

impl Reader<File> {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Reader<File>, Fault> {
        Reader::new(File::open(path).map_err(unread)?)
    }
}

impl Reader<Watched<File>> {
    /// Opens a file, and counts in `done` how much of it has been read.
    pub fn watched(path: &Path, done: Done) -> Result<Reader<Watched<File>>, Fault> {
        Reader::new(Watched::new(File::open(path).map_err(unread)?, done))
    }
}

impl<R: Read> Reader<R> {
    /// Reads the header and the metadata.
    pub fn new(mut from: R) -> Result<Reader<R>, Fault> {
        let mut header = [0; FILE_HEADER];
        match fill(&mut from, &mut header)? {
            0 => return Err(foreign("the file is empty")),
            // For any other file its first bytes explain more than its length.
            FILE_HEADER => {}
            short if header[0] == super::layout::file_header()[0] => {
                return Err(damaged(format!(
                    "the file ends after {short} bytes, within its header"
                )));
            }
            _ => {}
        }
        check_file_header(&header)?;
        let unpacker = Decompressor::new().map_err(unread)?;
        let (stored, payload) = (Vec::new(), Vec::with_capacity(MOST_RAW_BYTES));
        let mut reader = Reader {
            from,
            head: Head::default(),
            state: CodecState::default(),
            unpacker,
            stored,
            payload,
            at: 0,
            chunks: 0,
            events: 0,
            events_left: 0,
            ended: false,
        };
        match reader.chunk().map_err(|fault| fault.at(0, 0))?.content {
            Content::Head => reader.head = Head::parse(&reader.payload),
            _ => return Err(damaged("the first chunk is not that of the metadata").at(0, 0)),
        }
        Ok(reader)
    }

    /// The trace's metadata on its program.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Events that were returned so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The chunk of the last event.
    pub fn chunk_number(&self) -> u64 {
        self.chunks.saturating_sub(1)
    }

    fn chunk(&mut self) -> Result<ChunkHeader, Fault> {
        let mut header = [0; CHUNK_HEADER];
        match fill(&mut self.from, &mut header)? {
            CHUNK_HEADER => {}
            0 => {
                return Err(damaged(
                    "the trace ends here without its last chunk: it was cut short",
                ));
            }
            _ => return Err(damaged("the file ends within the header of a chunk")),
        }
        let header = ChunkHeader::parse(&header)?;
        if header.number != self.chunks {
            let wanted = self.chunks;
            return Err(damaged(format!(
                "chunk {} stands where chunk {wanted} must: one is missing, or twice there",
                header.number
            )));
        }
        if header.first_event != self.events {
            return Err(damaged(format!(
                "it begins with event {}, but {} came before",
                header.first_event, self.events
            )));
        }
        self.chunks += 1;
        // `parse` limits both lengths.
        self.stored.resize(header.stored_bytes as usize, 0);
        if fill(&mut self.from, &mut self.stored)? != self.stored.len() {
            return Err(damaged("the file ends within a chunk"));
        }
        if crc32fast::hash(&self.stored) != header.stored_crc {
            return Err(damaged("the chunk is damaged: its checksum is another"));
        }
        let raw = header.raw_bytes as usize;
        match header.codec {
            Codec::Plain => std::mem::swap(&mut self.stored, &mut self.payload),
            Codec::Zstd => {
                self.payload.resize(raw, 0);
                let unpacked = self
                    .unpacker
                    .decompress_to_buffer(&self.stored, &mut self.payload[..]);
                match unpacked {
                    Ok(length) if length == raw => {}
                    Ok(length) => {
                        return Err(damaged(format!(
                            "it unpacks to {length} bytes and says {raw}"
                        )));
                    }
                    Err(error) => {
                        return Err(damaged(format!(
                            "it does not unpack to {raw} bytes: {error}"
                        )));
                    }
                }
            }
        }
        self.at = 0;
        Ok(header)
    }

    /// Opens the next chunk with events; `false` at the end.
    fn advance(&mut self) -> Result<bool, Fault> {
        if self.at != self.payload.len() && self.chunks > 1 {
            let rest = self.payload.len() - self.at;
            return Err(damaged(format!(
                "{rest} bytes are left behind the last event of the chunk"
            )));
        }
        let header = self.chunk()?;
        match header.content {
            Content::Head => Err(damaged("a second chunk of metadata")),
            Content::Events => {
                self.events_left = header.events;
                Ok(true)
            }
            Content::Totals => self.check_totals().map(|()| false),
        }
    }

    fn check_totals(&mut self) -> Result<(), Fault> {
        let mut bytes = Bytes {
            all: &self.payload,
            at: 0,
        };
        let found = [
            self.chunks - 1,
            self.events,
            self.state.threads(),
            self.state.allocations(),
        ]
        .map(|count| count.to_string());
        let mut told = Vec::new();
        for _ in &found {
            told.push(bytes.number()?.to_string());
        }
        if told != found || bytes.at != self.payload.len() {
            let (told, found) = (told.join(", "), found.join(", "));
            return Err(damaged(format!(
                "its end tells of {told} chunks, events, threads and allocations; there are {found}"
            )));
        }
        match fill(&mut self.from, &mut [0])? {
            0 => Ok(()),
            _ => Err(damaged("something stands behind its end")),
        }
    }

    fn step(&mut self) -> Result<Option<(u32, Event)>, Fault> {
        while self.events_left == 0 {
            if !self.advance()? {
                return Ok(None);
            }
        }
        let mut bytes = Bytes {
            all: &self.payload,
            at: self.at,
        };
        let event = self.state.read(&mut bytes)?;
        self.at = bytes.at;
        self.events_left -= 1;
        self.events += 1;
        Ok(Some(event))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<(u32, Event), Fault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        match self.step() {
            Ok(Some(event)) => Some(Ok(event)),
            Ok(None) => {
                self.ended = true;
                None
            }
            Err(fault) => {
                self.ended = true;
                Some(Err(fault.at(self.chunk_number(), self.events)))
            }
        }
    }
}

/// The number of events of a trace, from its chunk headers; the events are not read. Of a damaged
/// trace, the events before the damage.
pub fn events_of(trace: &Path) -> Result<u64, Fault> {
    let mut file = File::open(trace).map_err(unread)?;
    let (mut at, mut events, mut header) = (FILE_HEADER as u64, 0, [0; CHUNK_HEADER]);
    loop {
        file.seek(SeekFrom::Start(at)).map_err(unread)?;
        if fill(&mut file, &mut header)? < CHUNK_HEADER {
            return Ok(events);
        }
        let Ok(chunk) = ChunkHeader::parse(&header) else {
            return Ok(events);
        };
        events += u64::from(chunk.events);
        at += CHUNK_HEADER as u64 + u64::from(chunk.stored_bytes);
    }
}

/// Reads until the buffer is full or the file ends; returns the number of bytes.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> Result<usize, Fault> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(unread(error)),
        }
    }
    Ok(filled)
}

fn unread(error: io::Error) -> Fault {
    foreign(format!("cannot be read: {error}"))
}
