//! A trace -> a score that the guest can map, cached by what went into it. Two heapmarks at once do not disturb each other: a score
//! takes its name when it is whole.

mod shelf;

pub use shelf::Shelf;

use super::cache;
use crate::file::mode_of;
use crate::trace::Reader;
use crate::trace::score::{Order, checksum, compile};
use anyhow::{Context, Result, anyhow};
use heapmark_wire::score::{HEAD_WORDS, Head, MAGIC};
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Changes with what the compiler makes of the same trace.
const COMPILER: &str = "2";

/// A score that is ready, and stays so as long as this is there.
#[derive(Debug)]
pub struct Score {
    /// Its file.
    pub path: PathBuf,
    /// What stands at its start.
    pub head: Head,
    _in_use: File,
}

/// The score of a trace whose hash is known.
pub fn score(trace: &Path, sha256: &str, order: Order) -> Result<Score> {
    let shelf = Shelf::find()?;
    let key = cache::short_hash([sha256, &format!("{order:?}"), &format!("{MAGIC:x}"), COMPILER]);
    let path = shelf.path(&key);
    if let Some((_in_use, head)) = shelf.take(&key) {
        return Ok(Score { path, head, _in_use });
    }
    let unfinished = shelf.begin(&key, mode_of([trace]))?;
    let file = unfinished.file.try_clone().context("cannot open a score twice")?;
    let compiled = open(trace).and_then(|reader| compile(reader, order, file));
    let head = compiled.with_context(|| format!("{} cannot be replayed", trace.display()))?;
    let _in_use = shelf.keep(&key, unfinished)?;
    Ok(Score { path, head, _in_use })
}

fn open(trace: &Path) -> Result<Reader<BufReader<File>>> {
    Reader::new(BufReader::with_capacity(1 << 20, File::open(trace)?)).map_err(|fault| anyhow!(fault))
}

/// The head of a score that nobody has damaged.
fn whole(file: &File) -> Option<Head> {
    let mut bytes = [0; HEAD_WORDS * 8];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let mut words = [0; HEAD_WORDS];
    let numbers = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
    words.iter_mut().zip(numbers).for_each(|(word, number)| *word = number);
    let head = Head::of_words(&words).ok()?;
    let is_whole = file.metadata().is_ok_and(|data| data.len() == head.words * 8)
        && checksum(file).is_ok_and(|found| u64::from(found) == head.checksum);
    is_whole.then_some(head)
}
