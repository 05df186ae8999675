//! The machine: its description, what else it does during a run, and whether it is fit for one.

pub mod cgroup;
mod counters;
mod facts;
pub mod interference;
pub mod preflight;
pub mod root;

pub use cgroup::Groups;
pub use facts::{describe, usable_cpus};
pub use interference::{Counters, Interference};
pub use root::Root;
