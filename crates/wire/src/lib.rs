//! Data exchanged between the host and a measured process: the job, the report and the shared page
//! with both; the files that the recorder writes; and the one search that both sides make. The
//! crate has no dependencies and allocates nothing, since the guest uses it under the allocator
//! being measured.

#![no_std]

mod buckets;
pub mod capture;
pub mod compiled;
mod followed;
mod high_water;
mod launched;
pub mod lent;
pub mod limit_search;
mod page;
mod pairs;
mod phase;
mod ranges;
mod steps;
pub mod varint;
mod watched;

pub use buckets::{BUCKETS, bucket_of, bucket_range};
pub use followed::{HeapPoint, Peak, numbers};
pub use launched::Launched;
pub use page::{JOB_BYTES, Page, REPORT_BYTES, TextFull};
pub use pairs::pairs;
pub use phase::Phase;
pub use ranges::{Known, RangeKind, Ranges};
pub use steps::{ReplayProgress, STEPS};
pub use watched::{Held, Ledger, Watched};

/// Exit code of a guest that wrote a `fail=` line into its report and gave up.
pub const EXIT_FAILED: i32 = 86;
