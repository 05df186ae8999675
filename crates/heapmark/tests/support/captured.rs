//! Captures as a recorder writes them, made of whatever a test or a bench says happened.

use heapmark_wire::capture::{
    CHUNK_BYTES, ChunkKind, Event, HEADER_BYTES, Header, Start, Writer, text,
};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Stamps of these captures are nanoseconds.
const STAMPS_PER_SECOND: u64 = 1_000_000_000;

/// A chunk in memory; its words keep it aligned.
struct Room(Box<[u64]>);

impl Room {
    fn new() -> Room {
        Room(vec![0; CHUNK_BYTES / 8].into())
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: whole words, of which every byte is set.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), CHUNK_BYTES) }
    }
}

struct Stream {
    room: Room,
    writer: Writer,
    chunks: u32,
    /// That of its chunk in the file.
    place: u32,
    clocked: bool,
}

impl Stream {
    /// Writes the chunk into the file.
    fn keep(&self, to: &File) {
        // SAFETY: the writer has a chunk, and is between events.
        unsafe { self.writer.seal(true) };
        to.write_all_at(
            self.room.bytes(),
            u64::from(self.place) * CHUNK_BYTES as u64,
        )
        .unwrap();
    }
}

/// A capture that is being written.
pub struct Captured {
    to: File,
    text: Room,
    /// Chunks of events so far.
    places: u32,
    streams: Vec<Stream>,
}

impl Captured {
    /// Begins a file of so many streams, each of the thread with its number. One stream has no clock, several have.
    pub fn new(path: &Path, streams: u32, pairs: &[(&str, &str)]) -> Captured {
        let to = File::create(path).unwrap();
        let mut lines = format!("stamps-per-second={STAMPS_PER_SECOND}\n").into_bytes();
        for (key, value) in pairs {
            lines.extend(
                key.bytes()
                    .chain([b'='])
                    .chain(text::escaped(value.as_bytes()))
                    .chain([b'\n']),
            );
        }
        let mut room = Room::new();
        let first = room.0.as_mut_ptr();
        // SAFETY: a chunk of zeros that no other thread writes, and lines that are shorter than it.
        unsafe {
            let header = first.cast::<Header>();
            Header::begin(
                header,
                ChunkKind::Text,
                &Start {
                    bytes: CHUNK_BYTES as u32,
                    ..Start::default()
                },
            );
            first
                .cast::<u8>()
                .add(HEADER_BYTES)
                .copy_from_nonoverlapping(lines.as_ptr(), lines.len());
            (*header).seal(&lines, false);
        }
        let clocked = streams > 1;
        let stream = |_| Stream {
            room: Room::new(),
            writer: Writer::nowhere(),
            chunks: 0,
            place: 0,
            clocked,
        };
        Captured {
            to,
            text: room,
            places: 0,
            streams: (0..streams).map(stream).collect(),
        }
    }

    /// An event of a stream.
    pub fn put(&mut self, stream: u32, event: &Event<'_>, stamp: u64) {
        let own = &mut self.streams[stream as usize];
        // SAFETY: the writer has a chunk.
        if own.chunks == 0 || own.writer.at() > unsafe { own.writer.last_place() } {
            if own.chunks > 0 {
                own.keep(&self.to);
            }
            self.places += 1;
            own.place = self.places;
            own.room.0.fill(0);
            let earliest = match event {
                Event::Realloc {
                    entered: Some(entered),
                    ..
                } => *entered,
                _ => stamp,
            };
            let start = Start {
                thread: stream,
                stream,
                number: own.chunks,
                stamp: earliest,
                ns: earliest,
                clocked: own.clocked,
                first_event: 0,
                place: own.place,
                bytes: CHUNK_BYTES as u32,
            };
            // SAFETY: the chunk is zeros, and the writer leaves it before it goes.
            unsafe { own.writer.begin(own.room.0.as_mut_ptr().cast(), &start) };
            own.chunks += 1;
        }
        let timed = own.clocked || matches!(event, Event::Clock | Event::ClockedOn);
        // SAFETY: the writer has a chunk with room for an event.
        unsafe { own.writer.put(event, timed.then_some(stamp)) };
    }

    /// Ends the file.
    pub fn end(mut self) {
        self.streams
            .iter()
            .filter(|own| own.chunks > 0)
            .for_each(|own| own.keep(&self.to));
        let header = self.text.0.as_mut_ptr().cast::<Header>();
        // SAFETY: the text's own header.
        (0..self.places).for_each(|_| unsafe { (*header).count_chunk() });
        self.to.write_all_at(self.text.bytes(), 0).unwrap();
    }
}
