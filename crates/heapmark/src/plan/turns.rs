//! Duets: two processes that take turns on one CPU.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Who gives two processes their turns on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// The scheduler, which is asked for slices of this length (Linux 6.12 and newer)
    Slices,
    /// heapmark, which stops one process and continues the other (any kernel)
    Stop,
}

impl Turns {
    /// How long a turn is. Short against what changes a machine; long against what a process loses when the other's data
    /// have taken its place in the caches.
    pub const LENGTH: Duration = Duration::from_millis(20);

    /// How turns are taken.
    pub fn words(self) -> &'static str {
        match self {
            Turns::Slices => "in slices of the scheduler",
            Turns::Stop => "stopped and continued",
        }
    }
}
