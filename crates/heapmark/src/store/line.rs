//! The lines of `samples.jsonl`.

use std::io::{self, BufRead, Read};

/// No line that heapmark writes is as long.
const MOST_LINE: usize = 64 << 20;

/// Reads the next line and returns its length; of a line too long to be a record only the beginning
/// is kept.
pub fn next_line(samples: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let kept = samples
        .by_ref()
        .take(MOST_LINE as u64)
        .read_until(b'\n', line)?;
    let is_cut = kept == MOST_LINE && line.last() != Some(&b'\n');
    let rest = if is_cut {
        samples.skip_until(b'\n')?
    } else {
        0
    };
    Ok((kept + rest) as u64)
}
