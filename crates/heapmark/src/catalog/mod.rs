//! Everything that can be measured, as data: reads and validates `allocators/`, `programs/`,
//! `workloads/`, `suites/` and `claims/`, embedded in the binary with the user's folders on top.
//! Starts no process and measures nothing.

pub mod allocator;
pub mod allocators;
pub mod claim;
pub mod faults;
pub mod folder;
pub mod formula;
pub mod malloc_api;
mod names;
pub mod parameter;
pub mod program;
pub mod settings;
pub mod suite;
pub mod time;
pub mod workload;

pub use allocator::{Allocator, Source, Tier};
pub use faults::did_you_mean;
pub use program::Program;
pub use settings::Settings;
pub use suite::Suite;
pub use workload::{Iterations, Workload};

use anyhow::{Context, Result, anyhow};
use faults::Faults;
use include_dir::{Dir, include_dir};

static WORKLOADS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../workloads");
static SUITES: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../suites");

/// Everything that can be measured.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Allocators, sorted by tier and name.
    pub allocators: Vec<Allocator>,
    /// Programs that run workloads in processes of their own, sorted by name.
    pub programs: Vec<Program>,
    /// Workloads and their variants, in the order of their files.
    pub workloads: Vec<Workload>,
    /// Suites, sorted by name.
    pub suites: Vec<Suite>,
}

impl Catalog {
    /// Reads the embedded data with the user's folders on top. Reports all faults together.
    pub fn load() -> Result<Catalog> {
        let mut faults = Vec::new();
        let allocators = allocators::load().unwrap_or_else(|Faults(found)| {
            faults.extend(found);
            Vec::new()
        });
        let programs = program::load(&mut faults);
        let workloads: Vec<Workload> = folder::texts(&WORKLOADS, "workloads", &mut faults)
            .iter()
            .flat_map(|(file, text)| workload::parse(file, text, &mut faults))
            .collect();
        let suites: Vec<Suite> = folder::texts(&SUITES, "suites", &mut faults)
            .iter()
            .filter_map(|(file, text)| suite::parse(file, text, &mut faults))
            .collect();
        // If entries could not be read, every name would be missing.
        if !allocators.is_empty() {
            workloads
                .iter()
                .for_each(|workload| workload.check_names(&programs, &allocators, &mut faults));
        }
        if faults.is_empty() {
            Ok(Catalog {
                allocators,
                programs,
                workloads,
                suites,
            })
        } else {
            Err(Faults(faults).into())
        }
    }

    /// The allocator of this name.
    pub fn allocator(&self, name: &str) -> Result<&Allocator> {
        self.allocators.iter().find(|allocator| allocator.name == name).ok_or_else(|| {
            let near = self.newest(name).map(|newest| format!(" (did you mean `{newest}`?)"));
            let names = self.allocators.iter().map(|allocator| allocator.name.as_str());
            let hint = near.unwrap_or_else(|| did_you_mean(name, names));
            anyhow!(
                "no allocator `{name}`{hint}: see `heapmark list allocators`; a library is given as ./lib.so or NAME=/path/lib.so"
            )
        })
    }

    /// The newest allocator of the best tier whose name begins with this: `mimalloc` is
    /// `mimalloc3`.
    fn newest(&self, beginning: &str) -> Option<&str> {
        let begins =
            |allocator: &&Allocator| !beginning.is_empty() && allocator.name.starts_with(beginning);
        let tier = self.allocators.iter().find(begins)?.tier;
        let mut all = self
            .allocators
            .iter()
            .filter(begins)
            .filter(|allocator| allocator.tier == tier);
        // The bare beginning does not mean a variant.
        let newest = all.clone().rfind(|allocator| !allocator.name.contains('-'));
        newest
            .or_else(|| all.next_back())
            .map(|allocator| allocator.name.as_str())
    }

    /// The program of this name.
    pub fn program(&self, name: &str) -> Result<&Program> {
        self.programs
            .iter()
            .find(|program| program.name == name)
            .ok_or_else(|| {
                let hint = did_you_mean(
                    name,
                    self.programs.iter().map(|program| program.name.as_str()),
                );
                anyhow!("no program `{name}`{hint}: see `heapmark list programs`")
            })
    }

    /// The suite of this name.
    pub fn suite(&self, name: &str) -> Result<&Suite> {
        self.suites
            .iter()
            .find(|suite| suite.name == name)
            .ok_or_else(|| {
                let hint = did_you_mean(name, self.suites.iter().map(|suite| suite.name.as_str()));
                anyhow!("no suite `{name}`{hint}: see `heapmark list suites`")
            })
    }

    /// The workloads that a pattern names, in catalogue order.
    pub fn workloads(&self, pattern: &str) -> Result<Vec<&Workload>> {
        let glob = globset::Glob::new(pattern)
            .with_context(|| format!("`{pattern}` is no pattern of workload names"))?;
        let glob = glob.compile_matcher();
        let found: Vec<_> = self
            .workloads
            .iter()
            .filter(|workload| glob.is_match(&workload.name))
            .collect();
        if found.is_empty() {
            let hint = did_you_mean(
                pattern,
                self.workloads.iter().map(|workload| workload.name.as_str()),
            );
            return Err(anyhow!(
                "no workload `{pattern}`{hint}: see `heapmark list workloads`"
            ));
        }
        Ok(found)
    }
}
