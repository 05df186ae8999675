//! Derives tables from records. The code is pure: no process, no clock, no file. The `stats` crate
//! contains nothing about allocators.
//!
//! A row, an allocator in a case, has numbers only if every process of it ended `ok`. That is
//! decided in one place, `group`; all later steps treat a failed row as a row without processes.

mod analysis;
mod candidate;
mod clock;
mod command_facts;
pub mod compare;
pub mod conclusion;
mod distinct;
mod drained;
mod factor;
pub mod failure;
mod fixed_time;
pub mod footprint;
mod grid;
#[doc(hidden)]
pub mod group;
mod hardening;
pub mod held;
mod huge_pages;
mod interaction;
pub mod interference;
mod judged_case;
pub mod latency;
mod limit;
mod measured_cell;
pub mod memory;
pub mod noise;
mod overall;
pub mod pairwise;
mod purge;
pub mod ratio;
mod releases;
pub mod role;
mod sample;
mod slices;
pub mod spread;
mod standings;
mod table;
mod table_cell;
mod tables;
mod timed_document;
mod timed_row;
mod timed_tables;
mod times;
mod user_command;
pub mod verdict;

#[cfg(test)]
pub(crate) mod fake_run;
#[cfg(test)]
mod tests;

pub use analysis::{Analysis, LaterRounds, analyse};
pub use candidate::LeftOut;
pub use clock::Clock;
pub use command_facts::{CommandFacts, ReachedMemory};
pub use conclusion::{Conclusion, Ranking, Withheld};
pub use distinct::distinct;
pub use drained::{DrainMoment, Drained, GrowthKind, GrowthShape, GrowthWay};
pub use factor::FactorRatio;
pub use failure::{Failed, Failure};
pub use footprint::Sampling;
pub use grid::{counting, grid, processes};
pub use hardening::HardeningCost;
pub use held::{Held, MemoryShape};
pub use interaction::Interaction;
pub use interference::InterferenceSummary;
pub use latency::{LongestCall, TimedCalls, Timer, Timing};
pub use memory::{Memory, MemoryMeasure, MemoryRatio};
pub use overall::Overall;
pub use pairwise::{Doubt, PairwiseTest};
pub use purge::Purge;
pub use ratio::Ratio;
pub use releases::{c_libraries, releases, with_release};
pub use role::Role;
pub use spread::{Spread, TwoModes};
pub use standings::{Standing, standings};
pub use table::{Table, TableRow, TriedLimit};
pub use table_cell::{THRESHOLD, TableCell, by_range};
pub use tables::tables;
pub use timed_row::reads_figure;
pub use times::{Stalled, Timed};
pub use verdict::Verdict;
