//! Faults of a file, each as one line.

use std::fmt;
use std::io;

/// What a fault means for the reader of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// The file cannot be read: it is another kind of file, of another version, or the disk reports
    /// an error.
    Foreign,
    /// The file is damaged, or ends too early; everything before that place is good.
    Damaged,
    /// The bytes are intact, but the events cannot have happened.
    Impossible,
    /// The file cannot be written.
    Unwritten,
}

/// A fault and where it is.
#[derive(Clone, PartialEq)]
pub struct Fault(Box<Inner>);

#[derive(Clone, PartialEq)]
struct Inner {
    kind: FaultKind,
    place: Option<(u64, u64)>,
    what: String,
}

impl Fault {
    /// Makes a fault of the file as a whole.
    pub fn new(kind: FaultKind, what: impl Into<String>) -> Fault {
        Fault(Box::new(Inner {
            kind,
            place: None,
            what: what.into(),
        }))
    }

    /// Adds the chunk and the event at which the fault is, unless it already has a place.
    pub fn at(mut self, chunk: u64, event: u64) -> Fault {
        self.0.place.get_or_insert((chunk, event));
        self
    }

    /// Returns the kind of this fault.
    pub fn kind(&self) -> FaultKind {
        self.0.kind
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.place {
            Some((chunk, event)) => write!(f, "chunk {chunk}, event {event}: {}", self.0.what),
            None => f.write_str(&self.0.what),
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Fault {}

/// Every I/O error that becomes a fault is one of reading: code that writes reports its own errors.
impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::new(FaultKind::Foreign, format!("cannot be read: {error}"))
    }
}

/// The result of most functions in this crate.
pub type Result<T> = std::result::Result<T, Fault>;

/// Returns an error of the kind `Foreign`; each kind of what is read has such a function.
pub fn foreign<T>(what: impl Into<String>) -> Result<T> {
    Err(Fault::new(FaultKind::Foreign, what))
}

#[cold]
pub fn damaged<T>(what: impl Into<String>) -> Result<T> {
    Err(Fault::new(FaultKind::Damaged, what))
}

#[cold]
pub fn impossible<T>(what: impl Into<String>) -> Result<T> {
    Err(Fault::new(FaultKind::Impossible, what))
}
