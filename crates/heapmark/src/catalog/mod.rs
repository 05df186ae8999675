//! What can be measured, as data: reads and validates `allocators/`, `workloads/` and `suites/`, embedded in the
//! binary with the user's folders on top. Starts no process and measures nothing.

pub mod allocator;
pub mod allocators;
pub mod family;
pub mod faults;

pub use allocator::Allocator;
