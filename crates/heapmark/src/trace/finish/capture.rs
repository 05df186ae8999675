//! A capture as a file: which chunks it has, and which stream each belongs to. Only headers are read before their turn comes, and a
//! chunk's memory is given back after it, so that a file of any length takes the memory of one chunk per stream.

use crate::trace::Head;
use crate::trace::fault::{Fault, foreign};
use heapmark_wire::capture::{CHUNK_BYTES, Chunk, HEADER_BYTES, Kind, Start};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A capture that is open.
pub(super) struct Capture {
    map: *mut std::ffi::c_void,
    length: usize,
    /// What its recorder says of the process.
    pub head: Head,
    /// Events that the recorder could not write down.
    pub dropped: u64,
    /// Places of the chunks of each stream, in their order.
    pub streams: Vec<Vec<Place>>,
    /// What is wrong with its chunks.
    pub damage: Vec<String>,
}

/// Where a chunk is, and what it begins with.
#[derive(Clone, Copy)]
pub(super) struct Place {
    at: usize,
    pub start: Start,
}

impl Capture {
    pub(super) fn open(path: &Path) -> Result<Capture, Fault> {
        let cannot = |error: std::io::Error| foreign(format!("cannot be read: {error}"));
        let file = File::open(path).map_err(cannot)?;
        let length = file.metadata().map_err(cannot)?.len() as usize;
        if length == 0 {
            return Err(foreign("the file is empty"));
        }
        let flags = MapFlags::PRIVATE;
        // SAFETY: a new mapping anywhere touches no memory of ours. Who shortens the file while it is read ends this process, as
        // nobody does with a recording that is over.
        let map = unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, flags, &file, 0) }
            .map_err(|error| cannot(error.into()))?;
        let (head, streams) = (Head::default(), Vec::new());
        let mut capture = Capture { map, length, head, dropped: 0, streams, damage: Vec::new() };
        capture.read_head()?;
        capture.index(&file).map_err(cannot)?;
        Ok(capture)
    }

    fn read_head(&mut self) -> Result<(), Fault> {
        let none = |why: String| foreign(format!("this is no capture of `heapmark record`: {why}"));
        let chunk = Chunk::parse(self.bytes(0)).map_err(|wrong| none(wrong.to_string()))?;
        let Some(chunk) = chunk.filter(|chunk| chunk.kind == Kind::Text) else {
            return Err(none("it does not begin with what it is of".into()));
        };
        let mut head = Head::default();
        chunk.pairs().for_each(|(key, value)| head.set_escaped(key, value));
        let dropped = chunk.dropped;
        (self.head, self.dropped) = (head, dropped);
        Ok(())
    }

    /// Reads the headers and nothing else: what is mapped would bring its neighbours with it.
    fn index(&mut self, file: &File) -> std::io::Result<()> {
        let mut places: Vec<Place> = Vec::new();
        for at in (CHUNK_BYTES..self.length).step_by(CHUNK_BYTES) {
            let mut header = [0; HEADER_BYTES];
            let there = HEADER_BYTES.min(self.length - at);
            file.read_exact_at(&mut header[..there], at as u64)?;
            match Start::of_header(&header) {
                Ok(Some((Kind::Events, start))) => places.push(Place { at, start }),
                Ok(Some((Kind::Text, _))) | Ok(None) => {}
                Err(wrong) => self.damage.push(format!("chunk {}: {wrong}", at / CHUNK_BYTES)),
            }
        }
        places.sort_by_key(|place| (place.start.stream, place.start.number));
        let streams = places.chunk_by(|one, other| one.start.stream == other.start.stream);
        self.streams = streams.map(<[Place]>::to_vec).collect();
        Ok(())
    }

    fn bytes(&self, at: usize) -> &[u8] {
        let length = CHUNK_BYTES.min(self.length - at);
        // SAFETY: the mapping is as long as the file, `at` lies in it, and it goes with this value.
        unsafe { std::slice::from_raw_parts(self.map.cast::<u8>().add(at), length) }
    }

    /// A chunk, in words where it is none.
    pub(super) fn chunk(&self, place: Place) -> Result<Chunk<'_>, String> {
        let number = place.at / CHUNK_BYTES;
        let chunk = Chunk::parse(self.bytes(place.at)).map_err(|wrong| format!("chunk {number}: {wrong}"))?;
        chunk.ok_or_else(|| format!("chunk {number}: it was there, and is not any more"))
    }

    /// Gives the memory of a chunk back.
    pub(super) fn leave(&self, place: Place) {
        let length = CHUNK_BYTES.min(self.length - place.at);
        // SAFETY: whoever looks there again reads the same bytes of the file anew, since nothing writes into the mapping.
        let _ = unsafe { madvise(self.map.cast::<u8>().add(place.at).cast(), length, Advice::LinuxDontNeed) };
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and what was borrowed from it is gone.
        let _ = unsafe { munmap(self.map, self.length) };
    }
}
