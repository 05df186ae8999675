//! What programs ask of their allocators: `heapmark record` and `heapmark trace`.

pub(crate) mod record;
pub mod recording;
mod report;
pub(crate) mod trace;
mod unrecorded;
