//! A trace -> a score that the guest can map, cached by what went into it. Two heapmarks at once do not disturb each other: a score
//! takes its name when it is whole.

use super::cache;
use crate::trace::Reader;
use crate::trace::score::{Order, checksum, compile};
use anyhow::{Context, Result, anyhow};
use heapmark_wire::score::{HEAD_WORDS, Head, MAGIC};
use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Changes with what the compiler makes of the same trace.
const COMPILER: &str = "1";

/// A score that is ready.
#[derive(Clone, Debug)]
pub struct Score {
    /// Its file.
    pub path: PathBuf,
    /// What stands at its start.
    pub head: Head,
}

/// The score of a trace whose hash is known.
pub fn score(trace: &Path, sha256: &str, order: Order) -> Result<Score> {
    let shelf = cache::root()?.join("scores");
    let key = cache::short_hash([sha256, &format!("{order:?}"), &format!("{MAGIC:x}"), COMPILER]);
    let path = shelf.join(format!("{key}.score"));
    if let Some(head) = File::open(&path).ok().and_then(|file| whole(&file)) {
        return Ok(Score { path, head });
    }
    let context = || format!("cannot write into {}: choose another place with HEAPMARK_CACHE", shelf.display());
    fs::create_dir_all(&shelf).with_context(context)?;
    let unfinished = shelf.join(format!(".{key}.{}", std::process::id()));
    let file =
        File::options().read(true).write(true).create(true).truncate(true).open(&unfinished).with_context(context)?;
    let compiled = open(trace).and_then(|reader| compile(reader, order, file));
    let named = compiled.and_then(|head| fs::rename(&unfinished, &path).with_context(context).map(|()| head));
    if named.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    let head = named.with_context(|| format!("{} cannot be replayed", trace.display()))?;
    Ok(Score { path, head })
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
