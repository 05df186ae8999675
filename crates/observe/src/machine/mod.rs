//! The machine: its description, what else it does during a run, whether it is fit for one, and what
//! its kernel costs.

pub mod cgroup;
mod counters;
mod facts;
pub mod interference;
pub mod preflight;
pub mod prices;
pub mod root;

pub use cgroup::Groups;
pub use facts::{allowed_cpus, cores, describe, usable_cpus};
pub use interference::{Counters, Interference};
pub use prices::Prices;
pub use root::Root;
