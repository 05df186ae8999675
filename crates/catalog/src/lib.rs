//! Everything that can be measured, as data: reads and validates `allocators/`, `programs/`,
//! `workloads/` and `suites/`, embedded in the binary with the user's folders on top.
//! Starts no process and measures nothing.

pub mod allocator;
pub mod allocators;
pub mod faults;
pub mod file;
pub mod folder;
pub mod formula;
mod joined;
pub mod knob;
mod linux;
pub mod malloc_api;
mod names;
pub mod parameter;
pub mod program;
pub mod real_program;
mod release;
pub mod releases;
pub mod settings;
pub mod suite;
pub mod time;
pub mod trace_pack;
pub mod workload;

pub use allocator::{Allocator, Source, Tier};
pub use faults::did_you_mean;
pub use joined::joined;
pub use knob::{Knob, KnobKind, Moved};
pub use linux::NotOnLinux;
pub use program::Program;
pub use real_program::RealProgram;
pub use release::{Sources, number_in};
pub use releases::Release;
pub use settings::Settings;
pub use suite::Suite;
pub use workload::{Iterations, Workload};

use anyhow::{Result, anyhow, bail};
use fast_glob::glob_match;
use faults::{Fault, Faults};
use include_dir::{Dir, include_dir};

static WORKLOADS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../workloads");
static SUITES: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../suites");

/// Returns the workloads and their variants, embedded and the user's, in the order of their files.
pub fn workloads(faults: &mut Vec<Fault>) -> Vec<Workload> {
    folder::texts(&WORKLOADS, "workloads", faults)
        .iter()
        .flat_map(|(file, text)| workload::parse(file, text, faults))
        .collect()
}

/// Everything that can be measured.
pub struct Catalog {
    /// Allocators, sorted by tier and name.
    pub allocators: Vec<Allocator>,
    /// Other releases of the allocators, `FAMILY@VERSION`: only measured if they are named. By
    /// family, the oldest first.
    pub releases: Vec<Release>,
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
        // If entries could not be read, every name would be missing.
        let is_read = !allocators.is_empty();
        let releases = match is_read {
            true => releases::load(&allocators, &mut faults),
            false => Vec::new(),
        };
        let programs = program::load(&mut faults);
        let workloads = workloads(&mut faults);
        let suites = folder::texts(&SUITES, "suites", &mut faults)
            .iter()
            .filter_map(|(file, text)| suite::parse(file, text, &mut faults))
            .collect();
        if is_read {
            workloads
                .iter()
                .for_each(|workload| workload.check_names(&programs, &allocators, &mut faults));
        }
        faults::none(faults)?;
        Ok(Catalog {
            allocators,
            releases,
            programs,
            workloads,
            suites,
        })
    }

    /// Returns the allocator with this name.
    pub fn allocator(&self, name: &str) -> Result<&Allocator> {
        let mut releases = self
            .releases
            .iter()
            .filter_map(|release| release.found.as_ref().ok());
        if let Some(release) = releases.find(|release| release.name == name) {
            return Ok(release);
        }
        self.allocators.iter().find(|allocator| allocator.name == name).ok_or_else(|| {
            let all = self.allocators.iter();
            let hint = did_you_mean(name, all.map(|allocator| allocator.name.as_str()));
            anyhow!(
                "no allocator `{name}`{hint}: see `heapmark list allocators`; a library is given as ./lib.so or NAME=/path/lib.so"
            )
        })
    }

    /// Returns the allocators that a word means: the one with this name, or those with this alias,
    /// or the best tier of the family with this name; or, for `FAMILY@VERSIONS`, releases of a
    /// family.
    pub fn meant(&self, word: &str) -> Result<Vec<&Allocator>> {
        if let Some((family, versions)) = word.split_once('@') {
            let releases = releases::named(&self.releases, family, versions)?;
            return Ok(releases
                .iter()
                .filter_map(|release| release.found.as_ref().ok())
                .collect());
        }
        let all = || self.allocators.iter();
        let exact = self.allocator(word);
        if exact.is_ok() {
            return exact.map(|one| vec![one]);
        }
        let with_alias: Vec<_> = all()
            .filter(|one| one.aliases.iter().any(|alias| alias == word))
            .collect();
        if !with_alias.is_empty() {
            return Ok(with_alias);
        }
        let family = all().filter(|one| one.family == word);
        let Some(best) = family.clone().map(|one| one.tier).min() else {
            return exact.map(|one| vec![one]);
        };
        Ok(family.filter(|one| one.tier == best).collect())
    }

    /// Returns the one allocator that a word means.
    pub fn only(&self, word: &str) -> Result<&Allocator> {
        match self.meant(word)?[..] {
            [one] => Ok(one),
            ref several => {
                let names = joined(several.iter().map(|one| &one.name), " and ");
                bail!("`{word}` means {names}: name one of them")
            }
        }
    }

    /// Returns the program with this name.
    pub fn program(&self, name: &str) -> Result<&Program> {
        let all = &self.programs;
        named("program", "languages", all, |program| &program.name, name)
    }

    /// Returns the suite with this name.
    pub fn suite(&self, name: &str) -> Result<&Suite> {
        named("suite", "suites", &self.suites, |suite| &suite.name, name)
    }

    /// Returns the workloads that a pattern names, in catalogue order.
    pub fn workloads(&self, pattern: &str) -> Result<Vec<&Workload>> {
        let all = self.workloads.iter();
        let found: Vec<_> = all
            .filter(|workload| glob_match(pattern, &workload.name))
            .collect();
        if found.is_empty() {
            // The pattern may be a name that contains pattern characters; otherwise the error
            // suggests a name.
            return named(
                "workload",
                "workloads",
                &self.workloads,
                |workload| &workload.name,
                pattern,
            )
            .map(|workload| vec![workload]);
        }
        Ok(found)
    }
}

/// Returns the item with this name; the error suggests a similar name.
fn named<'a, T>(
    kind: &str,
    list: &str,
    all: &'a [T],
    name_of: fn(&T) -> &str,
    name: &str,
) -> Result<&'a T> {
    let mut items = all.iter();
    items.find(|item| name_of(item) == name).ok_or_else(|| {
        let hint = did_you_mean(name, all.iter().map(name_of));
        anyhow!("no {kind} `{name}`{hint}: see `heapmark list {list}`")
    })
}
