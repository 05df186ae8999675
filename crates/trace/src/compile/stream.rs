//! The file of a compiled trace and the streams that grow side by side in it, each in chunks that
//! double up to a limit: ten thousand short threads take little space, and a long one is read in
//! long runs.

use anyhow::{Context, Result};
use heapmark_wire::compiled::Rare;
use std::fs::File;
use std::os::unix::fs::FileExt;

const FIRST_ROOM: usize = 64;
const MOST_ROOM: usize = 8192;
/// The number of words in a jump.
const JUMP: usize = 2;

/// A file of words that is handed out in ranges.
pub struct WordWriter {
    pub file: File,
    /// The number of words that have been handed out so far.
    pub words: u64,
}

impl WordWriter {
    /// Hands out a range of this many words.
    pub fn reserve(&mut self, words: usize) -> u64 {
        let at = self.words;
        self.words += words as u64;
        at
    }

    /// Writes words at a place that has been handed out.
    pub fn write(&self, at: u64, words: &[u64]) -> Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.file
            .write_all_at(&bytes, at * 8)
            .context("cannot write the compiled trace")
    }

    /// Writes words behind all ranges handed out so far; returns their place.
    pub fn append(&mut self, words: &[u64]) -> Result<u64> {
        let at = self.reserve(words.len());
        self.write(at, words).map(|()| at)
    }
}

/// The stream of a thread's ops; the default is the stream of a thread that plays none.
#[derive(Default)]
pub struct Stream {
    pub first: u64,
    at: u64,
    room: usize,
    words: Vec<u64>,
}

impl Stream {
    pub fn new(writer: &mut WordWriter) -> Stream {
        let first = writer.reserve(FIRST_ROOM);
        Stream {
            first,
            at: first,
            room: FIRST_ROOM,
            words: Vec::with_capacity(FIRST_ROOM),
        }
    }

    /// Appends words that must stay together; returns the place of the first.
    pub fn push(&mut self, writer: &mut WordWriter, words: &[u64]) -> Result<u64> {
        if self.words.len() + words.len() + JUMP > self.room {
            let room = (2 * self.room).min(MOST_ROOM);
            let next = writer.reserve(room);
            self.words.extend([Rare::Jump.word(0), next]);
            writer.write(self.at, &self.words)?;
            self.words.clear();
            (self.at, self.room) = (next, room);
        }
        let place = self.at + self.words.len() as u64;
        self.words.extend_from_slice(words);
        Ok(place)
    }

    /// Replaces the first words at a place that `push` returned.
    pub fn mend(&mut self, writer: &WordWriter, place: u64, words: &[u64]) -> Result<()> {
        let here = place.checked_sub(self.at).and_then(|offset| {
            self.words
                .get_mut(offset as usize..)?
                .get_mut(..words.len())
        });
        match here {
            Some(old) => old.copy_from_slice(words),
            None => writer.write(place, words)?,
        }
        Ok(())
    }

    /// Appends the last word, and writes all words that are still in memory.
    pub fn end(&mut self, writer: &mut WordWriter, last: u64) -> Result<()> {
        self.push(writer, &[last])?;
        writer.write(self.at, &std::mem::take(&mut self.words))
    }
}
