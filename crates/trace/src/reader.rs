//! Reads a trace: chunks in, events out. Any sequence of bytes yields events or one fault. Takes
//! memory for one chunk and the state of each thread.

use super::codec::{CodecState, take_number};
use super::fault::{Result, damaged, foreign, impossible};
use super::head::{MAIN, UNKNOWN};
use super::layout::{
    CHUNK_HEADER, ChunkHeader, Codec, Content, FILE_HEADER, MOST_RAW_BYTES, check_file_header,
    file_header,
};
use super::{Done, Event, Head, Watched, open_regular};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use zstd::bulk::Decompressor;

/// An iterator over events and their threads, in the order in which they happened. It ends after a
/// fault.
pub struct Reader<'f> {
    from: Box<dyn Read + 'f>,
    head: Head,
    tells_main: bool,
    state: CodecState,
    unpacker: Decompressor<'static>,
    stored: Vec<u8>,
    payload: Vec<u8>,
    at: usize,
    /// The number of chunks that were started.
    chunks: u64,
    /// The number of events that were returned.
    events: u64,
    events_left: u32,
    /// The number of objects from before the trace that must still follow at this place.
    inherited_left: u64,
    is_inherited: bool,
    ended: bool,
}

impl<'f> Reader<'f> {
    /// Opens a regular file, which can be opened again.
    pub fn open(path: &Path) -> Result<Reader<'f>> {
        Reader::new(open_regular(path)?)
    }

    /// Opens a file or a pipe, and counts in `done` how much of it has been read.
    pub fn watched(path: &Path, done: Done) -> Result<Reader<'f>> {
        Reader::new(Watched::new(File::open(path)?, done))
    }

    /// Begins to read a trace with its header and its metadata.
    pub fn new(from: impl Read + 'f) -> Result<Reader<'f>> {
        Reader::begin(Box::new(from))
    }

    fn begin(mut from: Box<dyn Read + 'f>) -> Result<Reader<'f>> {
        let mut header = [0; FILE_HEADER];
        let length = fill(&mut from, &mut header)?;
        if length == 0 {
            return foreign("the file is empty");
        }
        // For any other file, the first bytes explain more than the length.
        if length < FILE_HEADER && header[0] == file_header()[0] {
            return damaged(format!(
                "the file ends after {length} bytes, within its header"
            ));
        }
        let tells_main = check_file_header(&header)?;
        let mut reader = Reader {
            from,
            head: Head::default(),
            tells_main,
            state: CodecState::default(),
            unpacker: Decompressor::new()?,
            stored: Vec::new(),
            payload: Vec::with_capacity(MOST_RAW_BYTES),
            at: 0,
            chunks: 0,
            events: 0,
            events_left: 0,
            inherited_left: 0,
            is_inherited: false,
            ended: false,
        };
        reader.read_head().map_err(|fault| fault.at(0, 0))?;
        Ok(reader)
    }

    fn read_head(&mut self) -> Result<()> {
        if self.chunk()?.content != Content::Head {
            return damaged("the first chunk is not that of the metadata");
        }
        self.head = Head::parse(&self.payload);
        Ok(())
    }

    /// Returns the trace's metadata about the recorded program.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns whether the trace identifies the main thread, if that thread has any event.
    pub fn tells_main(&self) -> bool {
        self.tells_main && self.head.get(MAIN) != Some(UNKNOWN)
    }

    /// Returns the number of the last event's chunk.
    pub fn chunk_number(&self) -> u64 {
        self.chunks.saturating_sub(1)
    }

    /// Returns whether the last event begins an object from before the trace.
    pub fn is_inherited(&self) -> bool {
        self.is_inherited
    }

    /// Checks that the objects from before the trace stand at its beginning, and together.
    #[cold]
    fn inherit(&mut self, event: &Event) -> Result<()> {
        let left = std::mem::take(&mut self.inherited_left);
        self.is_inherited = left > 0;
        match *event {
            _ if left > 0 && (event.begins().is_none() || event.ends().is_some()) => {
                return missing(left);
            }
            _ if left > 0 => self.inherited_left = left - 1,
            Event::Inherit { objects } if self.events > 0 => {
                return impossible(format!(
                    "{objects} objects from before the trace, after event 0"
                ));
            }
            Event::Inherit { objects } => self.inherited_left = objects,
            _ => {}
        }
        Ok(())
    }

    fn chunk(&mut self) -> Result<ChunkHeader> {
        let mut header = [0; CHUNK_HEADER];
        match fill(&mut self.from, &mut header)? {
            CHUNK_HEADER => {}
            0 => {
                return damaged("the trace ends here without its last chunk: it was cut short");
            }
            _ => return damaged("the file ends within the header of a chunk"),
        }
        let header = ChunkHeader::parse(&header)?;
        if header.number != self.chunks {
            return damaged(format!(
                "chunk {} stands where chunk {} must: one is missing, or twice there",
                header.number, self.chunks
            ));
        }
        if header.first_event != self.events {
            return damaged(format!(
                "it begins with event {}, but {} came before",
                header.first_event, self.events
            ));
        }
        self.chunks += 1;
        // `parse` has limited both lengths.
        self.stored.resize(header.stored_bytes as usize, 0);
        if fill(&mut self.from, &mut self.stored)? != self.stored.len() {
            return damaged("the file ends within a chunk");
        }
        if crc32fast::hash(&self.stored) != header.stored_crc {
            return damaged("the chunk is damaged: its checksum is another");
        }
        let raw = header.raw_bytes as usize;
        match header.codec {
            Codec::Plain => std::mem::swap(&mut self.stored, &mut self.payload),
            Codec::Zstd => {
                self.payload.resize(raw, 0);
                let length = self
                    .unpacker
                    .decompress_to_buffer(&self.stored, &mut self.payload[..])
                    .or_else(|error| {
                        damaged(format!("it does not unpack to {raw} bytes: {error}"))
                    })?;
                if length != raw {
                    return damaged(format!("it unpacks to {length} bytes and says {raw}"));
                }
            }
        }
        self.at = 0;
        Ok(header)
    }

    fn check_totals(&mut self) -> Result<()> {
        let found = [
            self.chunks - 1,
            self.events,
            self.state.threads(),
            self.state.allocations(),
        ];
        let mut totals = found;
        let mut rest = &*self.payload;
        for count in &mut totals {
            *count = take_number(&mut rest)?;
        }
        if totals != found || !rest.is_empty() {
            let [totals, found] =
                [totals, found].map(|counts| counts.map(|count| count.to_string()).join(", "));
            return damaged(format!(
                "its end tells of {totals} chunks, events, threads and allocations; there are {found}"
            ));
        }
        if fill(&mut self.from, &mut [0])? > 0 {
            return damaged("something stands behind its end");
        }
        if self.inherited_left > 0 {
            return missing(self.inherited_left);
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Option<(u32, Event)>> {
        while self.events_left == 0 {
            let rest = self.payload.len() - self.at;
            if rest > 0 && self.chunks > 1 {
                return damaged(format!(
                    "{rest} bytes are left behind the last event of the chunk"
                ));
            }
            let header = self.chunk()?;
            match header.content {
                Content::Head => return damaged("a second chunk of metadata"),
                Content::Events => self.events_left = header.events,
                Content::Totals => return self.check_totals().map(|()| None),
            }
        }
        let mut rest = &self.payload[self.at..];
        let event = self.state.read(&mut rest)?;
        self.at = self.payload.len() - rest.len();
        if self.is_inherited || self.inherited_left > 0 || matches!(event.1, Event::Inherit { .. })
        {
            self.inherit(&event.1)?;
        }
        self.events_left -= 1;
        self.events += 1;
        Ok(Some(event))
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<(u32, Event)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        // `transpose` and `map_err` would copy each event.
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

fn missing(left: u64) -> Result<()> {
    impossible(format!(
        "{left} more objects from before the trace must stand here"
    ))
}

/// Returns the number of events of a trace from its chunk headers, without reading the events; for
/// a damaged trace, the number of events before the damage.
pub fn events_of(trace: &Path) -> Result<u64> {
    let mut file = open_regular(trace)?;
    file.seek(SeekFrom::Start(FILE_HEADER as u64))?;
    let mut events = 0;
    let mut header = [0; CHUNK_HEADER];
    while fill(&mut file, &mut header)? == CHUNK_HEADER
        && let Ok(chunk) = ChunkHeader::parse(&header)
    {
        events += u64::from(chunk.events);
        file.seek(SeekFrom::Current(chunk.stored_bytes.into()))?;
    }
    Ok(events)
}

/// Reads until the buffer is full or the file ends; returns the number of bytes.
pub fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
