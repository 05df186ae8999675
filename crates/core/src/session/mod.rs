//! Runs a plan: the negative control, a calibration per case, a checked process per case and
//! allocator, then the blocks, or a search for limits. Every process is stored before the next one starts.
//! `check` runs the checks of `heapmark check`, which have no plan.
//!
//! Processes are started through the trait `Runner`; the order, the repeats and the end of a run
//! are decided here, and tested with a runner that follows a script.

mod blocks;
mod calibrate;
mod cpus;
mod duets;
mod factor;
mod failures;
#[doc(hidden)]
pub mod lanes;
mod limits;
mod passed;
mod placement;
mod preloaded;
#[doc(hidden)]
pub mod present;
mod processes;
mod progress;
mod run;
mod runner;
mod selection;
mod shadow_checks;
#[cfg(test)]
mod tests;
mod trials;
mod user_command;

pub use crate::execute::Interrupted;
pub use calibrate::FIRST_TIMEOUT;
pub use processes::Processes;
pub use progress::Progress;
pub use run::{Ended, Session};
pub use selection::Selection;
pub use user_command::DoesNotRun;
