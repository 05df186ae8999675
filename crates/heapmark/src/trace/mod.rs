//! Allocation traces: what a program asked of its allocator, in the order in which it happened, without an address in it.
//!
//! A recording becomes a trace, and a trace is all that the other rooms see of a recorded program. docs/TRACE.md is the format.

mod check;
mod codec;
mod cut;
mod event;
mod fault;
pub mod finish;
mod head;
mod layout;
mod live;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

pub use check::{Checked, check};
pub use cut::{Stretch, cut};
pub use event::{Event, Token};
pub use fault::{Fault, Kind};
pub use head::Head;
pub use heapmark_wire::capture::{Call, Variant};
pub use layout::{MOST_LIVE, MOST_RAW_BYTES, MOST_THREADS};
pub use live::Live;
pub use reader::Reader;
pub use writer::{Totals, Writer};
