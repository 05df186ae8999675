//! The append-only run directory: `run.json`, `samples.jsonl`, `series/`, `latency/` and
//! `machine/`. Raw samples only; everything else is derived when it is read. A process killed at
//! any moment leaves a directory that every reader accepts.

mod append;
mod checked;
mod checksum;
mod directory;
mod files;
mod latency;
mod light_record;
mod line;
pub mod preflights;
mod published;
mod read;
pub mod record;
mod record_index;
mod records;
pub mod run;
pub mod series;
mod tables;

pub use crate::plan::{Case, Purpose};
pub use append::{Store, line};
pub use checked::{CheckVerdict, Checked, CheckedShelf, Detection, KnownFault, Standing};
pub use checksum::sealed;
pub use directory::{
    find, fresh, is_being_written, may_begin, open_samples, refuse_of_others, remove, runs,
};
pub use files::{HEAD, head_of, keep, samples_of};
pub use preflights::Preflights;
pub use published::{Paths, published};
pub use read::{Run, head, read, read_for_tables, read_published};
pub use record::{Passed, Record};
pub use record_index::Lines;
pub use records::{Records, seconds_of_processes};
pub use run::{AllocatorInfo, HEAPMARK, OLDEST_SCHEMA, RunFile, SCHEMA};
pub use series::{Columns, Point, Series, columns, series};

#[cfg(test)]
mod tests;
