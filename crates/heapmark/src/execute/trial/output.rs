//! What a process prints, where everybody must print the same: read while the process writes it, held against what the reference
//! printed, and forgotten, so that a command which prints much does not fill the memory.

use crate::execute::memory_file::{MUCH_BYTES, forget, memory_file};
use anyhow::{Context, Result};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process::Stdio;

/// So much of both is compared at a time.
const PIECE: usize = 1 << 16;
/// So much is shown around a difference.
const SHOWN: usize = 60;
/// So much of the reference's output stays, to be shown where another differs. What comes behind it is known by its length and checksum.
const KEPT_BYTES: u64 = 64 << 20;

/// Swallows what nobody reads. Programs that stop early when they see `/dev/null`, as grep does, do all their work here.
pub(super) fn nowhere() -> Result<Stdio> {
    const SINK: &str = "/dev/zero";
    Ok(OpenOptions::new().write(true).open(SINK).with_context(|| format!("cannot write to {SINK}"))?.into())
}

/// All that a process printed: its beginning word for word.
pub(super) struct Printed {
    beginning: File,
    bytes: u64,
    sum: u32,
}

/// Reads what a process prints.
pub(super) struct Output<'a> {
    file: File,
    /// What it shall be; without, this is the reference.
    wanted: Option<&'a Printed>,
    bytes: u64,
    sum: crc32fast::Hasher,
    difference: Option<String>,
}

impl<'a> Output<'a> {
    pub fn new(wanted: Option<&'a Printed>) -> Result<Output<'a>> {
        let (file, sum) = (memory_file("heapmark-stdout")?, crc32fast::Hasher::new());
        Ok(Output { file, wanted, bytes: 0, sum, difference: None })
    }

    /// Where the process writes.
    pub fn stdout(&self) -> Result<Stdio> {
        Ok(self.file.try_clone().context("cannot hand on a memory file")?.into())
    }

    /// Reads on while the process runs, once much has come: who prints little is not disturbed.
    pub fn look(&mut self) -> Result<()> {
        let length = self.file.metadata().context("cannot tell how much a command printed")?.len();
        // Whole pieces only: what the process writes next may still be a part of the last one.
        let whole = length - length % PIECE as u64;
        if length.saturating_sub(self.bytes) > MUCH_BYTES { self.read(whole) } else { Ok(()) }
    }

    /// Everything that it printed, as what others must print.
    pub fn printed(mut self) -> Result<Printed> {
        self.read(u64::MAX)?;
        Ok(Printed { beginning: self.file, bytes: self.bytes, sum: self.sum.finalize() })
    }

    /// Where it differs first from what it shall be, in words; `None` where it is the same.
    pub fn difference(mut self) -> Result<Option<String>> {
        self.read(u64::MAX)?;
        let (Some(wanted), None) = (self.wanted, &self.difference) else { return Ok(self.difference) };
        let same = (self.bytes, self.sum.finalize()) == (wanted.bytes, wanted.sum);
        let behind = || format!("the output behind its first {} MiB", KEPT_BYTES >> 20);
        Ok((!same).then(|| match self.bytes == wanted.bytes {
            true => format!("{}: not the same text as", behind()),
            false => format!("{}: {} bytes in all, but {}", behind(), self.bytes, wanted.bytes),
        }))
    }

    fn read(&mut self, end: u64) -> Result<()> {
        let (mut ours, mut theirs) = (vec![0; PIECE], vec![0; PIECE]);
        let kept = if self.wanted.is_none() { KEPT_BYTES } else { 0 };
        let mut forgotten = self.bytes.max(kept);
        while self.bytes < end {
            let ours = piece(&self.file, self.bytes, &mut ours)?;
            if let Some(wanted) = self.wanted
                && self.bytes < KEPT_BYTES
                && self.difference.is_none()
            {
                let theirs = piece(&wanted.beginning, self.bytes, &mut theirs)?;
                if ours != theirs {
                    // Until here both are the same, and ours is forgotten.
                    self.difference = Some(difference(ours, theirs, lines(&wanted.beginning, self.bytes)?));
                }
            }
            if ours.is_empty() {
                break;
            }
            self.sum.update(ours);
            self.bytes += ours.len() as u64;
            // At once, and not at the end: the process goes on writing meanwhile.
            if self.bytes > forgotten + MUCH_BYTES {
                forget(&self.file, forgotten, self.bytes)?;
                forgotten = self.bytes;
            }
        }
        forget(&self.file, forgotten, self.bytes)
    }
}

/// Where two pieces differ that begin at the same place, behind so many lines.
fn difference(ours: &[u8], theirs: &[u8], lines: usize) -> String {
    let same = ours.iter().zip(theirs).take_while(|(ours, theirs)| ours == theirs).count();
    let start = ours[..same].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let start = start.max(same.saturating_sub(SHOWN / 2));
    let (line, ours, theirs) = (lines + newlines(&ours[..same]) + 1, shown(&ours[start..]), shown(&theirs[start..]));
    format!("line {line} of the output: {ours}, but {theirs}")
}

/// How many lines end in the first bytes of a file, whole pieces of it.
fn lines(file: &File, bytes: u64) -> Result<usize> {
    let mut buffer = vec![0; PIECE];
    (0..bytes).step_by(PIECE).map(|at| Ok(newlines(piece(file, at, &mut buffer)?))).sum()
}

fn newlines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
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
    use std::os::unix::fs::MetadataExt;

    /// Prints it, with a look after every so many bytes.
    fn print<'a>(mut output: Output<'a>, text: &[u8]) -> Output<'a> {
        for part in text.chunks(MUCH_BYTES as usize + 1000) {
            output.file.write_all(part).unwrap();
            output.look().unwrap();
        }
        output
    }

    fn of(said: &[u8], wanted: &[u8]) -> Option<String> {
        let wanted = print(Output::new(None).unwrap(), wanted).printed().unwrap();
        print(Output::new(Some(&wanted)).unwrap(), said).difference().unwrap()
    }

    #[test]
    fn the_first_difference_is_shown_with_its_line() {
        assert_eq!(of(b"a\nb\n", b"a\nb\n"), None);
        assert_eq!(of(b"", b""), None);
        assert_eq!(of(b"a\nbc\nd\n", b"a\nbx\nd\n").unwrap(), "line 2 of the output: \"bc\\n\", but \"bx\\n\"");
        assert_eq!(of(b"a\n", b"a\nb\n").unwrap(), "line 2 of the output: nothing more, but \"b\\n\"");
        assert_eq!(of(b"a", b"a\n").unwrap(), "line 1 of the output: \"a\", but \"a\\n\"");
        assert_eq!(of(b"", b"a\n").unwrap(), "line 1 of the output: nothing more, but \"a\\n\"");
    }

    #[test]
    fn a_difference_behind_what_was_forgotten_is_found() {
        let lines = 3 * MUCH_BYTES as usize / 8;
        let (mut said, mut wanted) = (b"0123456\n".repeat(lines), b"0123456\n".repeat(lines));
        assert_eq!(of(&said, &wanted), None);
        said.extend(b"x");
        wanted.extend(b"\xff");
        assert_eq!(of(&said, &wanted).unwrap(), format!("line {} of the output: \"x\", but \"\u{fffd}\"", lines + 1));
    }

    #[test]
    fn much_output_takes_little_memory_and_is_compared_to_its_end() {
        let mut much = b"0123456\n".repeat(KEPT_BYTES as usize / 8 + (1 << 20));
        let wanted = print(Output::new(None).unwrap(), &much).printed().unwrap();
        let held = |file: &File| file.metadata().unwrap().blocks() * 512;
        assert!(held(&wanted.beginning) <= KEPT_BYTES, "{}", held(&wanted.beginning));
        let same = print(Output::new(Some(&wanted)).unwrap(), &much);
        assert!(held(&same.file) <= MUCH_BYTES + PIECE as u64, "{}", held(&same.file));
        assert_eq!(same.difference().unwrap(), None);
        *much.last_mut().unwrap() = b'x';
        let other = print(Output::new(Some(&wanted)).unwrap(), &much).difference().unwrap().unwrap();
        assert!(other.contains("behind its first 64 MiB: not the same text"), "{other}");
        much.push(b'x');
        let longer = print(Output::new(Some(&wanted)).unwrap(), &much).difference().unwrap().unwrap();
        assert!(longer.ends_with(&format!("{} bytes in all, but {}", much.len(), much.len() - 1)), "{longer}");
    }
}
