//! Traces of other tools. The text of glibc's `mtrace` has all that a replay needs; recordings
//! without threads or without the identity of objects are refused with the reason.

use super::addresses::{Addresses, MemoryPoint, moved};
use super::fault::{Fault, Result, damaged, foreign};
use super::head::{MAIN, UNKNOWN};
use super::{Call, Event, Head, Mended, Token, Totals, Writer};
use std::io::{BufRead, Read, Write};

/// Longest line in bytes; the name of the calling function is the longest part.
const MOST_LINE: u64 = 64 << 10;

/// The result of an import.
pub struct Imported {
    /// What was written.
    pub totals: Totals,
    /// What did not fit and was repaired.
    pub mended: Mended,
    /// Whether the text has the mark that `muntrace` writes at the end.
    pub ended: bool,
    /// Whether the last line is cut off: the text was shortened, and that line is left out.
    pub torn: bool,
}

/// Makes a trace of glibc's `mtrace` text.
pub fn import<R: BufRead, W: Write>(mut from: R, to: W) -> Result<Imported> {
    refuse(from.fill_buf()?)?;
    let mut head = Head::default();
    head.set("imported", "glibc mtrace");
    head.set(MAIN, UNKNOWN);
    let mut import = Import {
        writer: Writer::new(to, &head)?,
        addresses: Addresses::default(),
        moving: None,
    };
    let mut line = Vec::new();
    let mut ended = false;
    let mut torn = false;
    for number in 1u64.. {
        line.clear();
        let mut limited = from.by_ref().take(MOST_LINE);
        if limited.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        // A number that is cut off is a wrong number.
        torn = !line.ends_with(b"\n") && from.fill_buf()?.is_empty();
        if torn {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        ended = text == "= End";
        import
            .line(text)
            .map_err(|fault| Fault::new(fault.kind(), format!("line {number}: {fault}")))?;
    }
    Ok(Imported {
        totals: import.writer.finish()?.1,
        mended: import.addresses.mended,
        ended,
        torn,
    })
}

/// Refuses files that cannot be imported, and names their format.
fn refuse(start: &[u8]) -> Result<()> {
    let lost = "a recording of heaptrack cannot be replayed: it does not say which thread made a call, nor that a realloc is one";
    match start {
        [] => foreign("the file is empty"),
        [b'v', b' ', b'0'..=b'9' | b'a'..=b'f', ..] => {
            foreign(format!("{lost}; use `heapmark record`"))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x1f, 0x8b, ..] => foreign(format!(
            "this file is packed (zstd or gzip): unpack it first, if it is text of glibc's mtrace; {lost}"
        )),
        [b'=' | b'@' | b'+' | b'-' | b'<' | b'>' | b'!', ..] => Ok(()),
        _ => foreign(
            "this is no text of glibc's mtrace, the one format that can be imported: it begins with `= Start`",
        ),
    }
}

struct Import<W> {
    writer: Writer<W>,
    addresses: Addresses,
    /// Between `<`, which frees the old address of a realloc, and `>`, which has the new one.
    moving: Option<Option<Token>>,
}

impl<W: Write> Import<W> {
    /// `@ CALLER + ADDRESS SIZE`; the caller may be missing, and may have spaces in it.
    fn line(&mut self, line: &str) -> Result<()> {
        if line.is_empty() || line.starts_with('=') {
            return Ok(());
        }
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let sign = |word: &&str| matches!(*word, "+" | "-" | "<" | ">" | "!");
        let Some(at) = words
            .iter()
            .rposition(sign)
            .filter(|at| *at == 0 || words[0] == "@")
        else {
            return damaged("neither a call (`+ - < > !`) nor a mark (`=`)");
        };
        let old = self.moving.take();
        let event = match (words[at], &words[at + 1..]) {
            ("+", [address, size]) => {
                let address = number(address)?;
                let size = number(size)?;
                if address != 0 {
                    return self.begin(address, moved(None, size));
                }
                Event::Failed {
                    call: Call::Malloc,
                    size,
                }
            }
            ("-", [address]) => match number(address)? {
                0 => Event::FreeNull,
                address => match self.addresses.free(NOW, address) {
                    Some(token) => Event::Free { token },
                    None => return Ok(()),
                },
            },
            ("<", [address]) => {
                self.moving = Some(self.addresses.free(NOW, number(address)?));
                return Ok(());
            }
            (">", [address, size]) => {
                let address = number(address)?;
                let size = number(size)?;
                let Some(old) = old else {
                    return damaged(
                        "a new address of a realloc (`>`) without its old one (`<`) before it",
                    );
                };
                return self.begin(address, moved(old, size));
            }
            ("!", [_, size]) => Event::Failed {
                call: Call::Realloc,
                size: number(size)?,
            },
            (sign, _) => {
                return damaged(format!("`{sign}` with other words behind it than it has"));
            }
        };
        self.writer.write(0, &event)
    }

    fn begin(&mut self, address: u64, event: Event) -> Result<()> {
        let writer = &mut self.writer;
        let mut written = Ok(());
        self.addresses
            .begin(NOW, address, event, &mut |thread, event| {
                if written.is_ok() {
                    written = writer.write(thread, &event);
                }
            });
        written
    }
}

/// The file has no times; its lines stand in their order.
const NOW: MemoryPoint = MemoryPoint {
    key: 0,
    thread: 0,
    stream: 0,
};

fn number(word: &str) -> Result<u64> {
    if word == "(nil)" {
        return Ok(0);
    }
    let digits = word.strip_prefix("0x").unwrap_or(word);
    u64::from_str_radix(digits, 16)
        .or_else(|_| damaged(format!("`{word}` is no hexadecimal number")))
}
