//! What can be measured, as data: reads and validates `allocators/`, `workloads/` and `suites/`, embedded in the
//! binary with the user's folders on top. Starts no process and measures nothing.

pub mod allocator;
mod problems;
pub mod suite;
pub mod workload;

pub use allocator::{Allocator, Source, Tier};
pub use problems::{Problems, did_you_mean};
pub use suite::Suite;
pub use workload::{Iterations, Workload};

use anyhow::{Context, Result, anyhow};
use include_dir::{Dir, include_dir};
use std::path::{Path, PathBuf};

static WORKLOADS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../workloads");
static SUITES: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../suites");

/// Everything that can be measured.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Allocators, sorted by name.
    pub allocators: Vec<Allocator>,
    /// Workloads and their variants, in the order of their files.
    pub workloads: Vec<Workload>,
    /// Suites, sorted by name.
    pub suites: Vec<Suite>,
}

impl Catalog {
    /// What the binary carries, with the user's folders on top: a file of the same name replaces ours.
    pub fn load() -> Result<Catalog> {
        let mut problems = Problems::default();
        let allocators = Vec::new();
        let workloads: Vec<Workload> = texts(&WORKLOADS, "workloads")?
            .iter()
            .flat_map(|(path, text)| workload::parse(path, text, &mut problems))
            .collect();
        let suites = texts(&SUITES, "suites")?
            .iter()
            .filter_map(|(path, text)| suite::parse(path, text, &mut problems))
            .collect();
        problems.into_result()?;
        Ok(Catalog { allocators, workloads, suites })
    }

    /// The allocator of this name.
    pub fn allocator(&self, name: &str) -> Result<&Allocator> {
        self.allocators.iter().find(|allocator| allocator.name == name).ok_or_else(|| {
            let hint = did_you_mean(name, self.allocators.iter().map(|allocator| allocator.name.as_str()));
            anyhow!("no allocator `{name}`{hint}: `heapmark list allocators` shows them, a library is given as ./lib.so or NAME=/path/lib.so")
        })
    }

    /// The suite of this name.
    pub fn suite(&self, name: &str) -> Result<&Suite> {
        self.suites.iter().find(|suite| suite.name == name).ok_or_else(|| {
            let hint = did_you_mean(name, self.suites.iter().map(|suite| suite.name.as_str()));
            anyhow!("no suite `{name}`{hint}: `heapmark list suites` shows them")
        })
    }

    /// The workloads that a pattern names, in catalogue order.
    pub fn workloads(&self, pattern: &str) -> Result<Vec<&Workload>> {
        let glob = globset::Glob::new(pattern)
            .with_context(|| format!("`{pattern}` is no pattern of workload names"))?
            .compile_matcher();
        let found: Vec<_> = self.workloads.iter().filter(|workload| glob.is_match(&workload.name)).collect();
        if found.is_empty() {
            let hint = did_you_mean(pattern, self.workloads.iter().map(|workload| workload.name.as_str()));
            return Err(anyhow!("no workload `{pattern}`{hint}: `heapmark list workloads` shows them"));
        }
        Ok(found)
    }
}

/// The TOML files of an embedded folder and of the user's folder of the same name, sorted by path. A user's file replaces
/// an embedded one of the same name.
fn texts(embedded: &Dir<'static>, folder: &str) -> Result<Vec<(PathBuf, String)>> {
    let mut all = Vec::new();
    collect(embedded, Path::new(folder), &mut all);
    let user = user_folder().map(|home| home.join(folder)).filter(|home| home.is_dir());
    if let Some(home) = user {
        let entries = std::fs::read_dir(&home).with_context(|| format!("cannot read {}", home.display()))?;
        for entry in entries {
            let path = entry.with_context(|| format!("cannot read {}", home.display()))?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                all.retain(|(ours, _)| ours.file_name() != path.file_name());
                all.push((path, text));
            }
        }
    }
    all.sort();
    Ok(all)
}

fn collect(dir: &Dir<'static>, folder: &Path, all: &mut Vec<(PathBuf, String)>) {
    for file in dir.files().filter(|file| file.path().extension().is_some_and(|extension| extension == "toml")) {
        all.push((folder.join(file.path()), file.contents_utf8().unwrap_or_default().to_string()));
    }
    dir.dirs().for_each(|inner| collect(inner, folder, all));
}

/// `$XDG_CONFIG_HOME/heapmark` or `~/.config/heapmark`.
pub fn user_folder() -> Option<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    config
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))
        .map(|config| config.join("heapmark"))
}
