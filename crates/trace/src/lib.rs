//! Allocation traces: the calls that a program made to its allocator, in the order in which they
//! happened, without addresses.
//!
//! A recording becomes a trace, and other modules use only the trace of a recorded program.
//! docs/FORMAT.md defines the format.

mod addresses;
mod check;
mod codec;
pub mod compile;
mod cut;
mod ended;
mod event;
mod fault;
pub mod finish;
mod grown;
mod head;
mod import;
mod joint;
mod layout;
mod live;
mod near;
pub mod packing;
mod reader;
mod regular;
mod room;
pub mod stats;
mod watched;
mod writer;

#[cfg(test)]
mod tests;

pub use addresses::Mended;
pub use check::{Checked, check};
pub use cut::{Stretch, Stretched, cut};
pub use ended::{ended, ended_early};
pub use event::{Event, Token};
pub use fault::{Fault, FaultKind};
pub use head::Head;
pub use heapmark_wire::capture::{Call, Variant};
pub use import::{Imported, import};
pub use joint::{JointRow, joint};
pub use layout::MOST_THREADS;
use live::Live;
pub use reader::{Reader, events_of};
pub use regular::open_regular;
pub use watched::{Done, Watched};
pub use writer::{Totals, Writer};
