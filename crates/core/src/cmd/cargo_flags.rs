//! `heapmark try --cargo`: the program of a Rust project, built once for each global allocator.

use super::run::comparison::listed;
use super::say;
use crate::build::{CargoBuild, CargoProgram, build_with};
use anyhow::Result;
use std::path::Path;

/// Flags that cannot be combined with `--cargo`. Each flag of a build lists them itself: clap does not enforce `requires` beside a flag
/// that conflicts with the required one.
const ELSEWHERE: [&str; 4] = ["variants", "server", "age", "limit"];

/// What cargo is to build, and with which allocators.
#[derive(clap::Args)]
pub struct CargoFlags {
    /// Build the program of the Rust project here once with each allocator as its `#[global_allocator]`, from copies of the workspace,
    /// and compare the builds; the arguments stand behind `--`
    #[arg(long, conflicts_with_all = ELSEWHERE, help_heading = "Builds and settings")]
    cargo: bool,
    /// The package of the program, if there are several
    #[arg(
        short,
        long,
        value_name = "NAME",
        requires = "cargo", conflicts_with_all = ELSEWHERE,
        hide_short_help = true,
        help_heading = "Builds and settings"
    )]
    package: Option<String>,
    /// The binary, if the package has several
    #[arg(
        long,
        value_name = "NAME",
        requires = "cargo", conflicts_with_all = ELSEWHERE,
        hide_short_help = true,
        help_heading = "Builds and settings"
    )]
    bin: Option<String>,
    /// Features of it, as cargo takes them
    #[arg(
        long,
        value_name = "F,...",
        requires = "cargo", conflicts_with_all = ELSEWHERE,
        hide_short_help = true,
        help_heading = "Builds and settings"
    )]
    features: Option<String>,
    /// The target, as cargo takes it: x86_64-unknown-linux-musl
    #[arg(
        long,
        value_name = "T",
        requires = "cargo", conflicts_with_all = ELSEWHERE,
        hide_short_help = true,
        help_heading = "Builds and settings"
    )]
    target: Option<String>,
    /// The allocators; the first is the baseline
    #[arg(long, value_name = "A,...", value_delimiter = ',', value_parser = listed, default_value = "system,mimalloc,jemalloc,snmalloc", requires = "cargo", conflicts_with_all = ELSEWHERE, help_heading = "Builds and settings")]
    global_allocators: Vec<String>,
}

impl CargoFlags {
    /// Whether a build by cargo is asked for.
    pub fn is_given(&self) -> bool {
        self.cargo
    }

    /// Builds the program with each allocator, in order; returns nothing without `--cargo`.
    pub fn builds(&self, folder: &Path) -> Result<Vec<CargoBuild>> {
        if !self.cargo {
            return Ok(Vec::new());
        }
        let program = CargoProgram {
            package: self.package.clone(),
            bin: self.bin.clone(),
            features: self.features.clone(),
            target: self.target.clone(),
        };
        build_with(folder, &program, &self.global_allocators, &|words| {
            say(words)
        })
    }
}
