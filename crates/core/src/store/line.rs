//! The lines of `samples.jsonl`.

use crate::file::MOST_DOCUMENT;
use std::io::{self, BufRead, Read};

/// Reads the next line and returns its length. Of a line that is too long to be a record, only the
/// beginning is kept.
pub fn next_line(samples: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let kept = samples
        .by_ref()
        .take(MOST_DOCUMENT)
        .read_until(b'\n', line)?;
    let is_cut = line.len() as u64 == MOST_DOCUMENT && line.last() != Some(&b'\n');
    let rest = if is_cut {
        samples.skip_until(b'\n')?
    } else {
        0
    };
    Ok((kept + rest) as u64)
}
