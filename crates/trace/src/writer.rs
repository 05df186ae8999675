//! Writes a trace: events in, chunks out. Memory is one chunk, whatever the length.

use super::codec::{CodecState, MOST_EVENT, Pen};
use super::fault::{Fault, foreign};
use super::layout::{ChunkHeader, Codec, Content, MOST_RAW_BYTES, file_header};
use super::{Event, Head};
use std::io::Write;
use zstd::bulk::Compressor;

/// zstd's own default: higher levels cost time and gain little on such data.
const LEVEL: i32 = 3;

/// The totals of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Events, without the changes of threads.
    pub events: u64,
    /// Threads that did something or were started.
    pub threads: u64,
    /// Objects.
    pub allocations: u64,
    /// Bytes of all events before zstd.
    pub raw_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

/// Writes events as they come.
pub struct Writer<W> {
    to: W,
    state: CodecState,
    pen: Pen,
    packer: Compressor<'static>,
    packed: Vec<u8>,
    chunks: u64,
    events_here: u32,
    totals: Totals,
}

impl<W: Write> Writer<W> {
    /// Begins a trace with what is known of the program.
    pub fn new(mut to: W, head: &Head) -> Result<Writer<W>, Fault> {
        let start = file_header();
        to.write_all(&start).map_err(unwritten)?;
        let totals = Totals {
            file_bytes: start.len() as u64,
            ..Totals::default()
        };
        let packer = Compressor::new(LEVEL).map_err(unwritten)?;
        let (state, pen) = (CodecState::default(), Pen::new(MOST_RAW_BYTES));
        let mut writer = Writer {
            to,
            state,
            pen,
            packer,
            packed: Vec::new(),
            chunks: 0,
            events_here: 0,
            totals,
        };
        let mut text = head.lines();
        if text.is_empty() {
            text.push('\n');
        }
        if text.len() > MOST_RAW_BYTES {
            return Err(foreign(format!(
                "metadata of {} bytes: {MOST_RAW_BYTES} at most",
                text.len()
            )));
        }
        writer.chunk(Content::Head, text.as_bytes())?;
        Ok(writer)
    }

    /// Appends an event of a thread.
    #[inline]
    pub fn write(&mut self, thread: u32, event: &Event) -> Result<(), Fault> {
        if self.pen.left() < MOST_EVENT {
            self.flush()?;
        }
        self.state
            .write(&mut self.pen, thread, event)
            .map_err(|fault| fault.at(self.chunks, self.events()))?;
        self.events_here += 1;
        Ok(())
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.totals.events + u64::from(self.events_here)
    }

    /// Ends the trace. A trace that is not ended is read as one that was cut short.
    pub fn finish(mut self) -> Result<(W, Totals), Fault> {
        self.flush()?;
        (self.totals.threads, self.totals.allocations) =
            (self.state.threads(), self.state.allocations());
        let mut pen = Pen::new(64);
        let Totals {
            events,
            threads,
            allocations,
            ..
        } = self.totals;
        [self.chunks, events, threads, allocations]
            .into_iter()
            .for_each(|number| pen.number(number));
        self.chunk(Content::Totals, pen.written())?;
        self.to.flush().map_err(unwritten)?;
        Ok((self.to, self.totals))
    }

    fn flush(&mut self) -> Result<(), Fault> {
        if self.events_here > 0 {
            let pen = std::mem::replace(&mut self.pen, Pen::new(0));
            self.totals.raw_bytes += pen.written().len() as u64;
            self.chunk(Content::Events, pen.written())?;
            self.totals.events += u64::from(std::mem::take(&mut self.events_here));
            self.pen = pen;
            self.pen.clear();
        }
        Ok(())
    }

    fn chunk(&mut self, content: Content, raw: &[u8]) -> Result<(), Fault> {
        self.packed
            .resize(zstd::zstd_safe::compress_bound(raw.len()), 0);
        let length = self
            .packer
            .compress_to_buffer(raw, &mut self.packed[..])
            .map_err(unwritten)?;
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
            events: if content == Content::Events {
                self.events_here
            } else {
                0
            },
            raw_bytes: raw.len() as u32,
            stored_bytes: stored.len() as u32,
            stored_crc: crc32fast::hash(stored),
        };
        let head = header.bytes();
        self.to
            .write_all(&head)
            .and_then(|()| self.to.write_all(stored))
            .map_err(unwritten)?;
        self.totals.file_bytes += (head.len() + stored.len()) as u64;
        self.chunks += 1;
        Ok(())
    }
}

fn unwritten(error: std::io::Error) -> Fault {
    foreign(format!("cannot write the trace: {error}"))
}
