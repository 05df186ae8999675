//! Turns a catalog and flags into ordered, seeded, interleaved cells. Deterministic and pure: the
//! same plan always has the same cells, so a run can be resumed from the plan alone.

mod case;
mod cell;
mod counter;
mod cpus_seen;
mod distribution;
mod factor;
mod huge_pages;
mod lifetimes;
pub mod limit;
mod litter;
mod mode;
mod own_value;
mod plan;
mod purpose;
mod target;
#[cfg(test)]
mod tests;
mod turns;
mod user_command;

pub use case::{Case, Override, case_name, cases, row_name};
pub use cell::{Cell, CellId, Part};
pub use counter::Counter;
pub use cpus_seen::CpusSeen;
pub use factor::Factor;
pub use huge_pages::HugePages;
pub use limit::{Limit, LimitKind};
pub use litter::{LITTER, Litter, OTHER_SIZES};
pub use mode::Mode;
pub use own_value::{OwnValue, ReadValue, ValueFrom};
pub use plan::{CAPACITY, Plan, SEED_OF_MEMORY, comparisons, pairs};
pub use purpose::Purpose;
pub use target::Target;
pub use turns::{Asked as AskedTurns, Turn, Turns};
pub use user_command::{Client, CommandVariant, PipedInput, Ready, RealCommand, UserCommand};
