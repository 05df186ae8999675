//! Compares what a process prints with what the reference printed. The output is read from a pipe
//! as it comes, compared and discarded, however fast it comes. The process may have to wait for the
//! reader, so the output of timed processes is not read.

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::OpenOptions;
use std::io::{self, PipeReader, Read};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of both outputs that are compared at a time.
const PIECE: usize = 1 << 16;
/// Bytes that are shown around a difference.
const SHOWN: usize = 60;
/// Bytes of the reference's output that are kept, to show them beside a difference. Output after
/// that is compared by length and checksum.
const KEPT_BYTES: usize = 64 << 20;
/// How long a reader may take to notice that all writers are gone.
const SHORT_WAIT: Duration = Duration::from_millis(50);

/// Returns a stdout that is discarded. It is not `/dev/null`, because programs such as grep stop
/// early if they detect that; here, they do all their work.
pub fn nowhere() -> Result<Stdio> {
    const SINK: &str = "/dev/zero";
    Ok(OpenOptions::new()
        .write(true)
        .open(SINK)
        .with_context(|| format!("cannot write to {SINK}"))?
        .into())
}

/// All that a process printed: the beginning as text, the whole as length and checksum.
#[derive(Default)]
pub struct Printed {
    beginning: Vec<u8>,
    bytes: u64,
    sum: u32,
}

impl Printed {
    /// Describes the output in a few words.
    pub fn digest(&self) -> String {
        format!("crc32 {:08x} of {} bytes printed", self.sum, self.bytes)
    }
}

/// A separate thread that reads what a process prints.
pub struct OutputReader {
    ended: Arc<AtomicBool>,
    reader: JoinHandle<Result<(Printed, Option<String>)>>,
}

impl OutputReader {
    /// Starts to read, and also returns the stdout to give to the process. Without `wanted`, the
    /// process becomes the reference.
    pub fn new(wanted: Option<Arc<Printed>>) -> Result<(OutputReader, Stdio)> {
        let (pipe, stdout) = io::pipe().context("cannot create a pipe")?;
        let ended = Arc::new(AtomicBool::new(false));
        let pipe = Pipe {
            pipe,
            ended: ended.clone(),
        };
        let reader = std::thread::Builder::new()
            .spawn(move || read(pipe, wanted.as_deref()))
            .context("cannot start a thread")?;
        Ok((OutputReader { ended, reader }, stdout.into()))
    }

    /// Returns what an ended process printed, and its first difference from the wanted output, in words.
    pub fn end(self) -> Result<(Printed, Option<String>)> {
        self.ended.store(true, Ordering::Relaxed);
        self.reader
            .join()
            .expect("a thread that panics ends heapmark")
    }
}

/// A pipe that ends with the process, even if other processes still hold its write end.
struct Pipe {
    pipe: PipeReader,
    ended: Arc<AtomicBool>,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wait = SHORT_WAIT.try_into().map_err(io::Error::other)?;
        loop {
            // What was written before the end is still read, in either order of events.
            let ended = self.ended.load(Ordering::Relaxed);
            match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&wait)) {
                Ok(0) if ended => return Ok(0),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return self.pipe.read(buffer),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Reads the next piece, which is shorter than `PIECE` only at the end.
fn piece<'b>(pipe: &mut Pipe, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
    buffer.clear();
    pipe.take(PIECE as u64)
        .read_to_end(buffer)
        .context("reading a command's output")?;
    Ok(buffer)
}

/// Reads what is printed, and finds its first difference from the wanted output. The beginning is
/// kept only for the reference, for which nothing is wanted.
fn read(mut pipe: Pipe, wanted: Option<&Printed>) -> Result<(Printed, Option<String>)> {
    let mut printed = Printed::default();
    let mut sum = crc32fast::Hasher::new();
    let mut buffer = Vec::new();
    let mut found = None;
    loop {
        let ours = piece(&mut pipe, &mut buffer)?;
        let before = printed.bytes as usize;
        match wanted {
            _ if before >= KEPT_BYTES => {}
            None => printed.beginning.extend(ours),
            Some(wanted) if found.is_none() => {
                let kept = wanted.beginning.len();
                let (before, theirs) = wanted.beginning.split_at(kept.min(before));
                let theirs = &theirs[..theirs.len().min(PIECE)];
                found = (ours != theirs).then(|| difference(ours, theirs, newlines(before)));
            }
            Some(_) => {}
        }
        // Output is read to its end even after a difference, so that the process runs to its end.
        if ours.is_empty() {
            break;
        }
        printed.bytes += ours.len() as u64;
        sum.update(ours);
    }
    printed.sum = sum.finalize();
    if let (None, Some(wanted)) = (&found, wanted)
        && (printed.bytes, printed.sum) != (wanted.bytes, wanted.sum)
    {
        let how = if printed.bytes == wanted.bytes {
            "not the same text as".into()
        } else {
            format!("{} bytes in all, but {}", printed.bytes, wanted.bytes)
        };
        let place = format!("the output behind its first {} MiB", KEPT_BYTES >> 20);
        found = Some(format!("{place}: {how}"));
    }
    Ok((printed, found))
}

/// Describes where two pieces differ that start at the same offset, after `lines` lines.
fn difference(ours: &[u8], theirs: &[u8], lines: usize) -> String {
    let same = ours
        .iter()
        .zip(theirs)
        .take_while(|(ours, theirs)| ours == theirs)
        .count();
    let start = ours[..same]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1)
        .max(same.saturating_sub(SHOWN / 2));
    let line = lines + newlines(&ours[..same]) + 1;
    let ours = shown(&ours[start..]);
    let theirs = shown(&theirs[start..]);
    format!("line {line} of the output: {ours}, but {theirs}")
}

fn newlines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

fn shown(text: &[u8]) -> String {
    let line = text
        .split_inclusive(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    match line {
        [] => "nothing more".into(),
        line => format!(
            "{:?}",
            String::from_utf8_lossy(&line[..line.len().min(SHOWN)])
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A pipe into which a thread writes this text while it is read.
    fn pipe(text: &[u8]) -> Pipe {
        let (pipe, mut writer) = io::pipe().unwrap();
        let text = text.to_vec();
        std::thread::spawn(move || writer.write_all(&text).unwrap());
        Pipe {
            pipe,
            ended: Arc::default(),
        }
    }

    fn record(pipe: Pipe) -> Result<Printed> {
        read(pipe, None).map(|(printed, _)| printed)
    }

    fn compare(pipe: Pipe, wanted: &Printed) -> Result<Option<String>> {
        read(pipe, Some(wanted)).map(|(_, difference)| difference)
    }

    fn of(output: &[u8], wanted: &[u8]) -> Option<String> {
        compare(pipe(output), &record(pipe(wanted)).unwrap()).unwrap()
    }

    #[test]
    fn the_first_difference_is_shown_with_its_line() {
        assert_eq!(of(b"a\nb\n", b"a\nb\n"), None);
        assert_eq!(of(b"", b""), None);
        assert_eq!(
            of(b"a\nbc\nd\n", b"a\nbx\nd\n").unwrap(),
            "line 2 of the output: \"bc\\n\", but \"bx\\n\""
        );
        assert_eq!(
            of(b"a\n", b"a\nb\n").unwrap(),
            "line 2 of the output: nothing more, but \"b\\n\""
        );
        assert_eq!(
            of(b"a\nb\n", b"a\n").unwrap(),
            "line 2 of the output: \"b\\n\", but nothing more"
        );
        assert_eq!(
            of(b"a", b"a\n").unwrap(),
            "line 1 of the output: \"a\", but \"a\\n\""
        );
        assert_eq!(
            of(b"", b"a\n").unwrap(),
            "line 1 of the output: nothing more, but \"a\\n\""
        );
    }

    #[test]
    fn lines_are_counted_through_all_pieces_and_only_the_first_difference_counts() {
        let lines = 3 * PIECE / 8;
        let (mut output, mut wanted) = (b"0123456\n".repeat(lines), b"0123456\n".repeat(lines));
        assert_eq!(of(&output, &wanted), None);
        output.extend(b"x");
        wanted.extend(b"\xff");
        assert_eq!(
            of(&output, &wanted).unwrap(),
            format!("line {} of the output: \"x\", but \"\u{fffd}\"", lines + 1)
        );
        output[8] = b'y';
        assert!(
            of(&output, &wanted)
                .unwrap()
                .starts_with("line 2 of the output: \"y123456")
        );
    }

    #[test]
    fn much_output_is_compared_to_its_end_and_only_its_beginning_is_kept() {
        let mut much = b"0123456\n".repeat(KEPT_BYTES / 8 + (1 << 20));
        let wanted = record(pipe(&much)).unwrap();
        assert_eq!(
            (wanted.beginning.len(), wanted.bytes),
            (KEPT_BYTES, much.len() as u64)
        );
        assert_eq!(compare(pipe(&much), &wanted).unwrap(), None);
        *much.last_mut().unwrap() = b'x';
        let other = compare(pipe(&much), &wanted).unwrap().unwrap();
        assert!(
            other.contains("behind its first 64 MiB: not the same text"),
            "{other}"
        );
        much.push(b'x');
        let longer = compare(pipe(&much), &wanted).unwrap().unwrap();
        assert!(
            longer.ends_with(&format!(
                "{} bytes in all, but {}",
                much.len(),
                much.len() - 1
            )),
            "{longer}"
        );
    }

    #[test]
    fn a_process_that_still_holds_the_pipe_is_not_waited_for_once_the_process_has_ended() {
        let (pipe, mut held) = io::pipe().unwrap();
        held.write_all(b"all of it").unwrap();
        let printed = record(Pipe {
            pipe,
            ended: Arc::new(AtomicBool::new(true)),
        })
        .unwrap();
        assert_eq!(printed.beginning, b"all of it");
        drop(held);
    }
}
