//! Writes a trace: events in, chunks out. Takes memory for one chunk, whatever the length.

use super::codec::{CodecState, MOST_EVENT, put_number};
use super::fault::{Fault, FaultKind, Result, foreign};
use super::layout::{CHUNK_HEADER, ChunkHeader, Codec, Content, MOST_RAW_BYTES, file_header};
use super::{Event, Head};
use std::io::Write;
use zstd::bulk::Compressor;

/// The compression level, which is zstd's default: higher levels cost time and gain little on such
/// data.
const LEVEL: i32 = 3;

/// The totals of a trace.
#[derive(Clone, Copy, Default)]
pub struct Totals {
    /// The number of events, without the switches of threads.
    pub events: u64,
    /// The number of threads that did something or were started.
    pub threads: u64,
    /// The number of objects that were allocated.
    pub allocations: u64,
    /// Bytes of all events before compression.
    pub raw_bytes: u64,
    /// The size of the file in bytes.
    pub file_bytes: u64,
}

/// A writer that takes events as they come.
pub struct Writer<'t> {
    to: &'t mut dyn Write,
    state: CodecState,
    payload: Vec<u8>,
    packer: Compressor<'static>,
    packed: Vec<u8>,
    chunks: u64,
    events_here: u32,
    totals: Totals,
}

impl<'t> Writer<'t> {
    /// Begins a trace with the metadata about the program.
    pub fn new(to: &'t mut dyn Write, head: &Head) -> Result<Writer<'t>> {
        let start = file_header();
        to.write_all(&start).or_else(unwritten)?;
        let mut writer = Writer {
            to,
            state: CodecState::default(),
            payload: Vec::with_capacity(MOST_RAW_BYTES),
            packer: Compressor::new(LEVEL).or_else(unwritten)?,
            packed: Vec::new(),
            chunks: 0,
            events_here: 0,
            totals: Totals {
                file_bytes: start.len() as u64,
                ..Totals::default()
            },
        };
        writer.payload.extend_from_slice(head.lines().as_bytes());
        if writer.payload.is_empty() {
            writer.payload.push(b'\n');
        }
        let length = writer.payload.len();
        if length > MOST_RAW_BYTES {
            return foreign(format!(
                "metadata of {length} bytes: {MOST_RAW_BYTES} at most"
            ));
        }
        writer.chunk(Content::Head)?;
        Ok(writer)
    }

    /// Appends an event of a thread.
    pub fn write(&mut self, thread: u32, event: &Event) -> Result<()> {
        if self.payload.len() + MOST_EVENT > MOST_RAW_BYTES {
            self.flush()?;
        }
        self.state
            .write(&mut self.payload, thread, event)
            .map_err(|fault| fault.at(self.chunks, self.events()))?;
        self.events_here += 1;
        Ok(())
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.totals.events + u64::from(self.events_here)
    }

    /// Ends the trace. A trace that is not ended is read as one that was cut short.
    pub fn finish(mut self) -> Result<Totals> {
        self.flush()?;
        let threads = self.state.threads();
        let allocations = self.state.allocations();
        for number in [self.chunks, self.totals.events, threads, allocations] {
            put_number(&mut self.payload, number);
        }
        self.chunk(Content::Totals)?;
        self.to.flush().or_else(unwritten)?;
        Ok(Totals {
            threads,
            allocations,
            ..self.totals
        })
    }

    fn flush(&mut self) -> Result<()> {
        if self.events_here > 0 {
            self.totals.raw_bytes += self.payload.len() as u64;
            self.chunk(Content::Events)?;
            self.totals.events += u64::from(std::mem::take(&mut self.events_here));
        }
        Ok(())
    }

    /// Writes the payload as a chunk, and empties it.
    fn chunk(&mut self, content: Content) -> Result<()> {
        let raw = &self.payload[..];
        self.packed
            .resize(zstd::zstd_safe::compress_bound(raw.len()), 0);
        let length = self
            .packer
            .compress_to_buffer(raw, &mut self.packed[..])
            .or_else(unwritten)?;
        // Data that does not become smaller is stored as it is.
        let (codec, stored) = if length < raw.len() {
            (Codec::Zstd, &self.packed[..length])
        } else {
            (Codec::Plain, raw)
        };
        let header = ChunkHeader {
            content,
            codec,
            number: self.chunks,
            first_event: self.totals.events,
            // 0 if the chunk has content of another kind.
            events: self.events_here,
            raw_bytes: raw.len() as u32,
            stored_bytes: stored.len() as u32,
            stored_crc: crc32fast::hash(stored),
        };
        self.to
            .write_all(&header.bytes())
            .and_then(|()| self.to.write_all(stored))
            .or_else(unwritten)?;
        self.totals.file_bytes += (CHUNK_HEADER + stored.len()) as u64;
        self.chunks += 1;
        self.payload.clear();
        Ok(())
    }
}

fn unwritten<T>(error: std::io::Error) -> Result<T> {
    let what = format!("cannot write the trace: {error}");
    Err(Fault::new(FaultKind::Unwritten, what))
}
