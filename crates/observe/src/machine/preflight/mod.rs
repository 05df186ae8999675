//! Checks the machine before anything is measured: its settings, its limits, and its current load.
//! Judges each item by itself, and changes nothing.

mod activity;
mod background;
mod item;
mod limits;
mod memory;
mod preload;
mod processor;
mod profiling;
mod swap;

pub use item::{ItemState, PreflightItem};
pub use preload::preloaded_everywhere;
pub use processor::count as listed_cpus;

use super::root::Root;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// When the machine is checked.
#[derive(Clone, Copy)]
pub enum When {
    /// Before the first process of a run: all load comes from other programs.
    Before,
    /// After the last process of a run: the run's own processes are still in load and pressure, so those give no warning.
    After,
}

/// A check of the machine before a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preflight {
    /// When the machine was checked: UTC, RFC 3339.
    pub looked: String,
    /// The folder that the files were read from, if not this machine's root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    /// In the order of this list: processor, memory, preloaded libraries, limits, activity, profiling.
    pub items: Vec<PreflightItem>,
}

impl Preflight {
    /// Checks the machine.
    pub fn look(root: &Root, when: When) -> Preflight {
        Preflight {
            looked: jiff::Timestamp::now().to_string(),
            root: root.planted().map(PathBuf::from),
            items: [
                processor::items(root),
                memory::items(root),
                swap::items(root),
                background::items(root),
                preload::items(root),
                limits::items(root),
                activity::items(root, when),
                profiling::items(root),
            ]
            .concat(),
        }
    }

    /// Returns the names of the items that make numbers vary.
    pub fn warnings(&self) -> Vec<String> {
        self.in_state(ItemState::Warning)
            .map(|item| item.name.clone())
            .collect()
    }

    /// Returns the items in a state.
    pub fn in_state(&self, state: ItemState) -> impl Iterator<Item = &PreflightItem> {
        self.items.iter().filter(move |item| item.state == state)
    }
}
