//! A trace made ready to be replayed: tokens become slots, and the recorded order becomes what threads wait for.
//!
//! Events go through once, in recorded order; memory grows with what is live, not with the length of the trace. How a score is
//! laid out says [`heapmark_wire::score`].

mod compiler;
mod object;
mod slots;
mod stream;
mod window;

#[cfg(test)]
mod tests;

pub use compiler::{Order, checksum, compile};
