//! The metrics of a process, one entry each: tables, exports, comparisons and documents are made from these. What heapmark computes itself
//! is listed here; the figures that a kernel or a program reports are in the file of its workload. Must not compare processes.

mod counts;
mod definition;
mod latency;
mod limit;
mod lists;
mod memory;
mod process;
mod time;
mod whole;

pub use crate::catalog::workload::{Better, FigureMode, FigureRole, MemoryShape, Unit};
pub use definition::{Judged, Metric, Sample, Value};
pub use lists::{
    all, check, figures, figures_of, judged, key_in, named, of_case, of_mode, of_part, with_role,
};
pub use memory::{OVERHEAD_FROM_BYTES, blow_up, overhead_of};
pub use process::Process;
pub use time::{HELD_BEFORE, WALL};
