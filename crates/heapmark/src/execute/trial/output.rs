//! Whether a process printed what another did.

use anyhow::{Context, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// So much of both is compared at a time.
const PIECE: usize = 1 << 16;
/// So much is shown around a difference.
const SHOWN: usize = 60;

/// Where two outputs differ first, in words; `None` where they are the same.
pub(super) fn difference(said: &File, wanted: &File) -> Result<Option<String>> {
    let (mut ours, mut theirs) = (vec![0; PIECE], vec![0; PIECE]);
    let (mut at, mut line) = (0, 1);
    loop {
        let (ours, theirs) = (piece(said, at, &mut ours)?, piece(wanted, at, &mut theirs)?);
        if ours.is_empty() && theirs.is_empty() {
            return Ok(None);
        }
        let same = ours.iter().zip(theirs).take_while(|(ours, theirs)| ours == theirs).count();
        line += ours[..same].iter().filter(|byte| **byte == b'\n').count();
        if same < ours.len() || same < theirs.len() {
            let start = ours[..same].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let start = start.max(same.saturating_sub(SHOWN / 2));
            let (ours, theirs) = (shown(&ours[start..]), shown(&theirs[start..]));
            return Ok(Some(format!("line {line} of the output: {ours}, but {theirs}")));
        }
        at += same as u64;
    }
}

/// A piece of a file from there, short only at its end.
fn piece<'b>(file: &File, at: u64, buffer: &'b mut [u8]) -> Result<&'b [u8]> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64).context("reading a command's output")? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(&buffer[..filled])
}

fn shown(text: &[u8]) -> String {
    let line = text.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    match line {
        [] => "nothing more".into(),
        line => format!("{:?}", String::from_utf8_lossy(&line[..line.len().min(SHOWN)])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn of(said: &[u8], wanted: &[u8]) -> Option<String> {
        let file = |text: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text).unwrap();
            file
        };
        difference(&file(said), &file(wanted)).unwrap()
    }

    #[test]
    fn the_first_difference_is_shown_with_its_line() {
        assert_eq!(of(b"a\nb\n", b"a\nb\n"), None);
        assert_eq!(of(b"", b""), None);
        assert_eq!(of(b"a\nbc\nd\n", b"a\nbx\nd\n").unwrap(), "line 2 of the output: \"bc\\n\", but \"bx\\n\"");
        assert_eq!(of(b"a\n", b"a\nb\n").unwrap(), "line 2 of the output: nothing more, but \"b\\n\"");
        assert_eq!(of(b"a", b"a\n").unwrap(), "line 1 of the output: \"a\", but \"a\\n\"");
    }

    #[test]
    fn a_difference_behind_the_first_piece_is_found() {
        let (mut said, mut wanted) = (b"0123456\n".repeat(PIECE / 4), b"0123456\n".repeat(PIECE / 4));
        assert_eq!(of(&said, &wanted), None);
        said.extend(b"x");
        wanted.extend(b"\xff");
        assert_eq!(
            of(&said, &wanted).unwrap(),
            format!("line {} of the output: \"x\", but \"\u{fffd}\"", PIECE / 4 + 1)
        );
    }
}
