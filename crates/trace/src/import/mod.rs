//! Imports traces of other tools that have all that a replay needs; recordings without the identity
//! of objects are refused with the reason.

mod memory_replay;
mod mtrace;
mod rep;

use super::addresses::{Addresses, MemoryPoint, moved};
use super::fault::{Fault, Result, damaged, foreign};
use super::head::{MAIN, UNKNOWN};
use super::{Call, Event, Head, Mended, Token, Totals, Writer};
use std::io::{BufRead, Read, Write};

/// The longest line in bytes; in text of mtrace, the calling function's name is the longest part.
const MOST_LINE: u64 = 64 << 10;

/// The result of an import.
pub struct Imported {
    /// The totals of the trace that was written.
    pub totals: Totals,
    /// The inconsistencies that were repaired.
    pub mended: Mended,
    /// What the format does not record, so that the trace does not contain it either.
    pub lost: &'static str,
    /// Whether the text has the mark of its end; true if the format has no such mark.
    pub ended: bool,
    /// Whether the last line is cut off: the text was shortened, and that line is left out.
    pub torn: bool,
}

/// A text format: reads lines.
trait Format {
    /// Writes the events of a line.
    fn line(&mut self, line: &str, to: &mut Import) -> Result<()>;
    /// Returns whether the text has reached the mark of its end; true if the format has no such
    /// mark.
    fn ended(&self) -> bool {
        true
    }
}

/// A format's name, what it does not record, and its reader.
type Known = (&'static str, &'static str, Box<dyn Format>);

/// Makes a trace from another tool's text.
pub fn import(from: &mut dyn BufRead, to: &mut dyn Write) -> Result<Imported> {
    let (name, lost, mut format) = format(from.fill_buf()?)?;
    let mut head = Head::default();
    head.set("imported", name);
    head.set(MAIN, UNKNOWN);
    let mut import = Import {
        writer: Writer::new(to, &head)?,
        addresses: Addresses::default(),
    };
    let mut line = Vec::new();
    let mut torn = false;
    for number in 1u64.. {
        line.clear();
        let mut limited = (&mut *from).take(MOST_LINE);
        if limited.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        // A line that is cut off may end in a shortened, and so wrong, number.
        torn = !line.ends_with(b"\n") && from.fill_buf()?.is_empty();
        if torn {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        format
            .line(text.trim_end(), &mut import)
            .map_err(|fault| Fault::new(fault.kind(), format!("line {number}: {fault}")))?;
    }
    Ok(Imported {
        totals: import.writer.finish()?,
        mended: import.addresses.mended,
        lost,
        ended: format.ended(),
        torn,
    })
}

/// Returns the format of a file that begins like this; refuses a format that cannot be imported,
/// and names it.
fn format(start: &[u8]) -> Result<Known> {
    let lost = "a recording of heaptrack cannot be replayed: it does not say which thread made a call, nor that a realloc is one";
    match start {
        [] => foreign("the file is empty"),
        [b'v', b' ', b'0'..=b'9' | b'a'..=b'f', ..] => {
            foreign(format!("{lost}; use `heapmark record`"))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x1f, 0x8b, ..] | [b'P', b'K', ..] => foreign(format!(
            "this file is packed (zstd, gzip or zip): unpack it first, if it is a text that can be imported; {lost}"
        )),
        [b'=' | b'@' | b'+' | b'-' | b'<' | b'>' | b'!', ..] => {
            Ok((mtrace::NAME, mtrace::LOST, Box::<mtrace::Mtrace>::default()))
        }
        _ if memory_replay::is(start) => Ok((
            memory_replay::NAME,
            "",
            Box::<memory_replay::MemoryReplay>::default(),
        )),
        _ if rep::is(start) => Ok((rep::NAME, "", Box::<rep::Rep>::default())),
        _ => foreign(
            "this is no text that can be imported: glibc's mtrace begins with `= Start`, a .rep file of malloclab with numbers, \
             a text for Android's memory_replay with `THREAD: malloc ADDRESS BYTES`",
        ),
    }
}

/// Returns the first line of a file.
fn first_line(start: &[u8]) -> &str {
    let line = start
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    std::str::from_utf8(line).unwrap_or_default().trim()
}

/// The trace that formats write to.
struct Import<'t> {
    writer: Writer<'t>,
    addresses: Addresses,
}

impl Import<'_> {
    fn write(&mut self, thread: u32, event: &Event) -> Result<()> {
        self.writer.write(thread, event)
    }

    /// Begins an object at an address.
    fn begin(&mut self, thread: u32, address: u64, event: Event) -> Result<()> {
        let writer = &mut self.writer;
        let mut written = Ok(());
        self.addresses
            .begin(now(thread), address, event, &mut |thread, event| {
                if written.is_ok() {
                    written = writer.write(thread, &event);
                }
            });
        written
    }

    /// Ends the object at an address; `None` if there is none, which is counted.
    fn end(&mut self, thread: u32, address: u64) -> Option<Token> {
        self.addresses.free(now(thread), address)
    }

    /// Writes a `free` of an address, which may be 0.
    fn free(&mut self, thread: u32, address: u64) -> Result<()> {
        match address {
            0 => self.write(thread, &Event::FreeNull),
            _ => match self.end(thread, address) {
                Some(token) => self.write(thread, &Event::Free { token }),
                None => Ok(()),
            },
        }
    }

    /// Writes a `realloc` of an address to another one; if the new one is 0, the call failed, or
    /// freed the object.
    fn realloc(&mut self, thread: u32, old: u64, new: u64, size: u64) -> Result<()> {
        if new == 0 && size > 0 {
            let call = Call::Realloc;
            return self.write(thread, &Event::Failed { call, size });
        }
        let ended = match old {
            0 => None,
            _ => self.end(thread, old),
        };
        match (new, ended) {
            (0, Some(token)) => self.write(thread, &Event::ReallocFree { token }),
            (0, None) => Ok(()),
            _ => self.begin(thread, new, moved(ended, size)),
        }
    }
}

/// Returns the moment of a line: such a file has one order of lines, and no times that would matter
/// for it.
fn now(thread: u32) -> MemoryPoint {
    MemoryPoint {
        key: 0,
        thread,
        stream: 0,
    }
}

/// Parses a hexadecimal number, with or without `0x`.
fn hexadecimal(word: &str) -> Result<u64> {
    if word == "(nil)" {
        return Ok(0);
    }
    let digits = word.strip_prefix("0x").unwrap_or(word);
    u64::from_str_radix(digits, 16)
        .or_else(|_| damaged(format!("`{word}` is no hexadecimal number")))
}

fn decimal(word: &str) -> Result<u64> {
    word.parse()
        .or_else(|_| damaged(format!("`{word}` is no number")))
}
