//! Output that is written as it is made, because all of it at once may be more than there is memory for.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

/// Where it goes.
pub(super) type Out = BufWriter<Sink>;

/// A file or stdout, whose failures say so.
pub(super) struct Sink {
    to: Box<dyn Write + Send>,
    name: String,
    /// Whoever read it has stopped, as `| head` does.
    is_unread: bool,
}

/// As [`put`](super::put), of what `write` writes.
pub(super) fn put(output: &Path, write: impl FnOnce(&mut Out) -> Result<()>) -> Result<()> {
    let is_stdout = output.as_os_str() == "-";
    let name = if is_stdout { "to stdout".into() } else { output.display().to_string() };
    let to: Box<dyn Write + Send> = match is_stdout {
        true => Box::new(io::stdout()),
        false => Box::new(File::create(output).with_context(|| format!("cannot write {name}"))?),
    };
    let mut out = BufWriter::with_capacity(1 << 16, Sink { to, name, is_unread: false });
    let written = write(&mut out).and_then(|()| Ok(out.flush()?));
    // What is left of a failed one must not be tried again.
    let (sink, _) = out.into_parts();
    match written {
        Err(_) if is_stdout && sink.is_unread => Ok(()),
        written => written,
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes);
        self.told(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.to.flush();
        self.told(flushed)
    }
}

impl Sink {
    fn told<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            self.is_unread |= error.kind() == ErrorKind::BrokenPipe;
            io::Error::new(error.kind(), format!("cannot write {}: {error}", self.name))
        })
    }
}
