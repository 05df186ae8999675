//! The choice of the CPUs on which duets run.

use crate::execute::held;
use crate::observe::machine::{allowed_cpus, cores};
use anyhow::{Context, Result};
use std::sync::Mutex;

/// The CPUs on which duets run, one for each duet.
pub(super) struct Cpus {
    /// How many duets run at a time.
    pub(super) lanes: u32,
    free: Mutex<Vec<usize>>,
}

impl Cpus {
    /// CPUs for this many duets at a time; if there are several, one CPU of each core.
    pub(super) fn new(lanes: usize) -> Cpus {
        let cpus = match lanes {
            1 => allowed_cpus(),
            _ => cores(),
        };
        Cpus {
            lanes: lanes as u32,
            free: Mutex::new(cpus),
        }
    }

    /// Takes a free CPU, chosen by a random number.
    pub(super) fn take(&self, choice: u64) -> Result<usize> {
        let mut free = held(&self.free);
        let place = choice.checked_rem(free.len() as u64);
        Ok(free.swap_remove(place.context("no CPU may be used")? as usize))
    }

    pub(super) fn give_back(&self, cpu: usize) {
        held(&self.free).push(cpu);
    }
}
