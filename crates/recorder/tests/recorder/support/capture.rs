//! A parsed recording: its text, and the events of all its streams.

use heapmark_wire::capture::{CHUNK_BYTES, Chunk, ChunkKind, Event, text};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// An event without its text.
#[derive(Clone, Copy, Debug)]
pub struct Noted {
    pub thread: u32,
    /// Its own, or the last one of its stream.
    pub stamp: u64,
    pub clocked: bool,
    pub event: Event<'static>,
}

#[derive(Debug)]
pub struct Capture {
    text: BTreeMap<String, String>,
    pub dropped: u64,
    /// By stream, each in its own order.
    pub streams: Vec<Vec<Noted>>,
    pub marks: Vec<String>,
    pub chunks: usize,
    pub unsealed: usize,
}

impl Capture {
    /// Reads a whole file; any error in it fails the test.
    pub fn read(path: &Path) -> Capture {
        let bytes = std::fs::read(path).unwrap();
        let mut capture = Capture {
            text: BTreeMap::new(),
            dropped: 0,
            streams: Vec::new(),
            marks: Vec::new(),
            chunks: 0,
            unsealed: 0,
        };
        let mut streams: HashMap<u32, Vec<Chunk>> = HashMap::new();
        for bytes in bytes.chunks(CHUNK_BYTES) {
            match Chunk::parse(bytes).unwrap() {
                Some(chunk) if chunk.kind == ChunkKind::Text => {
                    capture.dropped = chunk.dropped.into();
                    let unescaped =
                        |value| String::from_utf8(text::unescaped(value).collect()).unwrap();
                    capture.text = chunk
                        .pairs()
                        .map(|(key, value)| (key.to_string(), unescaped(value)))
                        .collect();
                }
                Some(chunk) => streams.entry(chunk.start.stream).or_default().push(chunk),
                None => {}
            }
        }
        for (_, mut chunks) in streams {
            chunks.sort_by_key(|chunk| chunk.start.number);
            capture.chunks += chunks.len();
            capture.unsealed += chunks.iter().filter(|chunk| !chunk.sealed).count();
            let stream = capture.stream(&chunks);
            capture.streams.push(stream);
        }
        capture
    }

    fn stream(&mut self, chunks: &[Chunk]) -> Vec<Noted> {
        let mut noted = Vec::new();
        for (number, chunk) in chunks.iter().enumerate() {
            assert_eq!(
                chunk.start.number as usize, number,
                "a chunk of the stream is missing"
            );
            assert_eq!(
                chunk.start.first_event as usize,
                noted.len(),
                "events between chunks are missing"
            );
            let mut last = chunk.start.stamp;
            for record in chunk.records() {
                let record = record.unwrap();
                last = record.stamp.unwrap_or(last);
                let event = match record.event {
                    Event::Mark { text } => {
                        self.marks.push(String::from_utf8(text.to_vec()).unwrap());
                        Event::Mark { text: b"" }
                    }
                    event => without_text(event),
                };
                noted.push(Noted {
                    thread: record.thread,
                    stamp: last,
                    clocked: record.stamp.is_some(),
                    event,
                });
            }
        }
        noted
    }

    /// A value of the text.
    pub fn text(&self, key: &str) -> &str {
        self.text.get(key).map_or("", String::as_str)
    }

    pub fn events(&self) -> impl Iterator<Item = &Noted> {
        self.streams.iter().flatten()
    }

    /// How many events are of a kind.
    pub fn count(&self, of: impl Fn(&Event) -> bool) -> usize {
        self.events().filter(|noted| of(&noted.event)).count()
    }

    /// Calls of malloc with this size: programs under test use sizes that no other code uses.
    pub fn mallocs(&self, size: u64) -> usize {
        self.count(|event| matches!(event, Event::Malloc { size: found, .. } if *found == size))
    }
}

/// The lifetime is that of a mark's text, which is dropped.
fn without_text(event: Event<'_>) -> Event<'static> {
    macro_rules! copy {
        ($($name:ident { $($field:ident),* }),* $(,)?; $($plain:ident),*) => {
            match event {
                $(Event::$name { $($field),* } => Event::$name { $($field),* },)*
                $(Event::$plain => Event::$plain,)*
                Event::Mark { .. } => Event::Mark { text: b"" },
            }
        };
    }
    copy!(
        Malloc { address, size, operator },
        Calloc { address, count, size },
        Realloc { old, new, size, entered },
        Aligned { address, align, size, variant },
        Free { address, operator },
        FreeSized { address, size, operator },
        FreeAlignedSized { address, align, size, operator },
        FreeAligned { address, align },
        UsableSize { address },
        Failed { call, size },
        Begin { thread },
        ThreadStart { child },
        Forking { moment },
        Fork { pid },
        Time { ns },
        Touch { address, resident, extent, pages },
        Mallopt { parameter, value },
        Trim { pad };
        FreeNull, ThreadExit, Clock, ClockedOn, Main, Info
    )
}
