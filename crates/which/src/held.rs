//! The memory that a process holds, and how near it is to the kernel's limit on mappings.

use crate::process::Process;
use anyhow::{Context, Result};
use heapmark_core::execute::resident::ResidentByKind;
use serde::Serialize;
use std::fs;

/// The memory of a process.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HeldMemory {
    /// The resident memory by kind.
    #[serde(flatten)]
    pub resident: ResidentByKind,
    /// How many mappings the kernel allows.
    pub most_mappings: u64,
}

impl HeldMemory {
    /// The memory that a process holds now.
    pub fn by(process: &Process) -> Result<HeldMemory> {
        let smaps = process.text("smaps")?;
        let most = fs::read_to_string("/proc/sys/vm/max_map_count").context("max_map_count")?;
        Ok(HeldMemory {
            resident: ResidentByKind::of(process.pid, &smaps),
            most_mappings: most.trim().parse().context("max_map_count")?,
        })
    }
}
