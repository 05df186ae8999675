//! What programs ask of their allocators: `heapmark record` and `heapmark trace`.

#[macro_use]
extern crate heapmark_core;

pub mod record;
pub mod recording;
mod report;
pub mod trace;
mod unrecorded;
