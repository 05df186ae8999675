//! The destination of `-o`: a file that is either complete or absent, stdout, or a device. Written
//! piece by piece, because the whole may not fit into memory.

use super::surroundings::stdout;
use super::{screen, usage};
use crate::file::{self, Draft, Existing};
use crate::report::document::Block;
use crate::report::render::{markdown, terminal};
use crate::store;
use anyhow::{Error, Result, anyhow};
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Whether an existing file may be replaced.
#[derive(Clone, Copy, clap::Args)]
pub struct Force {
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

impl Force {
    /// How the writer of a file treats an existing one.
    pub fn existing(self) -> Existing {
        if self.force {
            Existing::Goes
        } else {
            Existing::Stays
        }
    }
}

/// The flags of a command that writes to stdout unless a file is named.
#[derive(clap::Args)]
pub struct Destination {
    /// File to write; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    #[command(flatten)]
    pub force: Force,
}

impl Destination {
    /// The destination as an output, for content made from these runs, and from other files.
    pub fn made_of(&self, dirs: &[PathBuf], others: &[PathBuf]) -> Result<Output> {
        let files = dirs
            .iter()
            .flat_map(|dir| [store::head_of(dir), store::samples_of(dir)]);
        let files = files.chain(others.iter().cloned());
        Output::new(&self.output, self.force, files)
    }
}

/// What a command prints.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub enum AnswerFormat {
    /// For a reader
    Text,
    /// Everything, for a program
    Json,
}

/// Formats of a table, other than the one for the terminal.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum TableFormat {
    /// Markdown
    Md,
    /// Everything, with all numbers
    Json,
}

/// A document as Markdown or for the terminal. JSON is not made from documents, since it contains more.
pub fn written(format: Option<TableFormat>, blocks: &[Block]) -> String {
    match format {
        Some(_) => markdown(blocks),
        None => terminal(blocks, screen()),
    }
}

/// The destination of a command's output.
pub struct Output {
    path: PathBuf,
    existing: Existing,
    mode: u32,
}

/// The writer of an output.
pub type Out = BufWriter<Sink>;

/// A file, or stdout; its errors name the destination.
pub struct Sink {
    to: Box<dyn Write + Send>,
    name: String,
    /// Whether the reader has stopped reading, as `| head` does.
    is_unread: bool,
}

impl Output {
    /// Refuses at once what would otherwise be refused at the end, and, even with `force`, to replace what the output is made from. Output
    /// made from private files is private.
    pub fn new<P: AsRef<Path>>(
        path: &Path,
        force: Force,
        sources: impl IntoIterator<Item = P>,
    ) -> Result<Output> {
        let sources: Vec<P> = sources.into_iter().collect();
        let output = Output::instead(path, force, &sources)?;
        // A link is replaced itself, and not what it leads to.
        let replaced = path.symlink_metadata().ok();
        let replaced = replaced.filter(|_| output.is_file());
        let is_source = |source: &P| {
            let (Some(replaced), Ok(source)) = (&replaced, fs::metadata(source)) else {
                return false;
            };
            (replaced.dev(), replaced.ino()) == (source.dev(), source.ino())
        };
        if sources.iter().any(is_source) {
            refuse!(
                "-o {}: that is what the output is made from, and is never replaced: name another file",
                path.display()
            );
        }
        Ok(output)
    }

    /// Like [`new`](Self::new), for what may stand in place of its source: a part of it, in the same format.
    pub fn instead<P: AsRef<Path>>(
        path: &Path,
        force: Force,
        sources: impl IntoIterator<Item = P>,
    ) -> Result<Output> {
        let output = Output {
            path: path.to_owned(),
            existing: force.existing(),
            mode: file::mode_of(sources),
        };
        if output.is_file() {
            may_be_written(path, output.existing)?;
        }
        Ok(output)
    }

    /// Stdout, for output that is never written to a file.
    pub fn stdout() -> Output {
        Output {
            path: "-".into(),
            existing: Existing::Stays,
            mode: file::PUBLIC,
        }
    }

    /// The path of the file; `-` for stdout.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this is stdout.
    pub fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Distinguishes files from devices and pipes, which are written directly; a folder is neither.
    fn is_file(&self) -> bool {
        // A path that stands for a descriptor was already opened by the parent process.
        let is_open = || {
            ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc"]
                .iter()
                .any(|prefix| self.path.starts_with(prefix))
        };
        let is_special =
            || fs::metadata(&self.path).is_ok_and(|known| !known.is_file() && !known.is_dir());
        !self.is_stdout() && !is_open() && !is_special()
    }

    /// Like [`write`](Self::write), for content that exists already.
    pub fn put(&self, content: impl AsRef<[u8]>) -> Result<()> {
        self.write(|out| Ok(out.write_all(content.as_ref())?))
            .map(drop)
    }

    /// Writes the output. `None` if the reader of stdout has stopped, which is not a failure.
    pub fn write<T>(&self, write: impl FnOnce(&mut Out) -> Result<T>) -> Result<Option<T>> {
        let cannot = |error| self.cannot(error);
        if self.is_stdout() {
            return self.write_to(Box::new(stdout()?), write);
        }
        if !self.is_file() {
            let device = File::create(&self.path).map_err(cannot)?;
            return self.write_to(Box::new(device), write);
        }
        let (draft, file) = Draft::file(&self.path, self.mode).map_err(cannot)?;
        let to = file.try_clone().map_err(cannot)?;
        let written = self.write_to(Box::new(to), write)?;
        file.sync_all()
            .and_then(|()| draft.keep(&self.path, self.existing))
            .map(|()| written)
            .map_err(cannot)
    }

    fn write_to<T>(
        &self,
        to: Box<dyn Write + Send>,
        write: impl FnOnce(&mut Out) -> Result<T>,
    ) -> Result<Option<T>> {
        let name = if self.is_stdout() {
            "to stdout".into()
        } else {
            self.path.display().to_string()
        };
        let sink = Sink {
            to,
            name,
            is_unread: false,
        };
        let mut out = BufWriter::with_capacity(1 << 16, sink);
        let written = write(&mut out).and_then(|value| Ok(out.flush().map(|()| value)?));
        // Buffered bytes of a failed write must not be written again.
        let (sink, _) = out.into_parts();
        match written {
            Err(_) if self.is_stdout() && sink.is_unread => Ok(None),
            written => written.map(Some),
        }
    }

    fn cannot(&self, error: io::Error) -> Error {
        match error.kind() {
            ErrorKind::AlreadyExists => refused(&self.path),
            _ => Error::new(error).context(format!("cannot write {}", self.path.display())),
        }
    }
}

/// Refuses a folder, and a file that must not be replaced.
pub fn may_be_written(path: &Path, existing: Existing) -> Result<()> {
    if path.is_dir() || path.file_name().is_none() {
        refuse!("-o {}: that is a folder; name a file in it", path.display());
    }
    if existing == Existing::Stays && file::is_there(path) {
        Err(refused(path))
    } else {
        Ok(())
    }
}

/// The error for a file that exists.
pub fn refused(path: &Path) -> Error {
    usage(anyhow!(
        "{} is there already: name another file with -o, or replace it with --force",
        path.display()
    ))
}

/// The first unused name, for output that the user has not named.
pub fn fresh(name: &str, force: Force) -> PathBuf {
    match force.existing() {
        Existing::Goes => PathBuf::from(name),
        Existing::Stays => file::numbered(PathBuf::from(name), file::is_there),
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
