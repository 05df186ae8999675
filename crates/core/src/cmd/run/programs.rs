//! The programs of a run: their states, their builds, and the information on their rows.

use super::resolve::Chosen;
use crate::build::{self, State};
use crate::catalog::{self, Catalog, joined};
use crate::cmd::build::build_program;
use crate::execute::program::fill;
use crate::execute::{Program, Subject};
use crate::plan::Case;
use crate::store::AllocatorInfo;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The programs of these cases. Builds programs that are not built yet; one that cannot be built stays, and its rows report why.
pub fn resolve(cases: &[Case], catalog: &Catalog, dry_run: bool) -> Result<Vec<Program>> {
    let mut all: Vec<Program> = Vec::new();
    // The calls of all programs that only print are counted with the same library.
    let counter = std::cell::LazyCell::new(|| counter(catalog));
    for name in cases.iter().flat_map(Case::programs) {
        if all.iter().any(|known| known.name == name) {
            continue;
        }
        let program = ready(catalog.program(name)?, dry_run);
        let counter = program
            .expects_stdout
            .filter(|_| !dry_run)
            .and_then(|_| counter.clone());
        all.push(Program { counter, ..program });
    }
    Ok(all)
}

/// A program, which is built if necessary. If that is impossible, the value holds the reason.
pub fn ready(entry: &catalog::Program, dry_run: bool) -> Program {
    let mut state = build::program::state(entry);
    if matches!(state, State::NotBuilt { .. }) && !dry_run && build_program(entry) {
        state = build::program::state(entry);
    }
    let reason = |why: String, word: &str| {
        if !dry_run {
            say!("program {}: {word}{why}", entry.name);
        }
        Some(why)
    };
    let (mut executable, mut refused, mut absent) = Default::default();
    match state {
        State::Ready(ready) => executable = ready,
        State::NotBuilt { line } => refused = reason(format!("could not be built; {line}"), ""),
        State::Absent { why, line } => absent = reason(format!("{why}; {line}"), "absent: "),
        State::Unsupported { why } | State::Refused { why } => refused = reason(why, ""),
    };
    let catalog::Program {
        name,
        allocator,
        environment,
        expects_stdout,
        ..
    } = entry.clone();
    Program {
        name,
        allocator,
        environment,
        executable,
        expects_stdout,
        counter: None,
        refused,
        absent,
    }
}

/// Marks the cases whose rows are whole processes: those of programs that only print.
pub fn mark(cases: &mut [Case], catalog: &Catalog) {
    for case in cases {
        let prints = |name| {
            let program = catalog.program(name);
            program.is_ok_and(|program| program.expects_stdout.is_some())
        };
        case.whole_process = case.kernel().is_none() && case.programs().all(prints);
    }
}

/// The library that counts calls; without a compiler there is no count, and nothing else changes.
fn counter(catalog: &Catalog) -> Option<PathBuf> {
    let (executable, _) = build::program::build(catalog.program("count-mallocs").ok()?).ok()?;
    Some(executable.folder.join("count.so"))
}

/// The allocators that rows name but the run does not compare.
pub fn pinned(cases: &[Case], compared: &[Subject], catalog: &Catalog) -> Result<Chosen> {
    let mut all: Chosen = Vec::new();
    let rows = cases.iter().flat_map(|case| &case.rows);
    for name in rows.filter_map(|row| row.allocator.as_ref()) {
        if !compared.iter().any(|known| known.allocator.name == *name)
            && !all.iter().any(|(known, _)| known.name == *name)
        {
            all.push((catalog.allocator(name)?.clone(), true));
        }
    }
    Ok(all)
}

/// The information about the rows of programs, each name once.
pub fn rows(cases: &[Case], programs: &[Program]) -> Result<Vec<AllocatorInfo>> {
    let mut all: Vec<AllocatorInfo> = Vec::new();
    for row in cases.iter().flat_map(|case| &case.rows) {
        match all.iter().find(|info| info.name == row.name) {
            Some(info) if info.family != row.program => {
                bail!(
                    "row {} stands for {} and for {}: give one another name",
                    row.name,
                    info.family,
                    row.program
                )
            }
            Some(_) => continue,
            None => {}
        }
        let program = programs.iter().find(|program| program.name == row.program);
        let program =
            program.with_context(|| format!("row {}: no program {}", row.name, row.program))?;
        let started = program
            .executable
            .command
            .first()
            .map(|word| fill(word, &row.parameters));
        // If the file is missing, the row's cells report that.
        let started = started.filter(|file| Path::new(file).is_file());
        let versions = program.executable.versions.iter();
        let version = joined(
            versions.map(|(what, version)| format!("{what}: {version}")),
            "; ",
        );
        all.push(AllocatorInfo {
            name: row.name.clone(),
            family: program.name.clone(),
            tier: "program".into(),
            origin: format!("program {}", program.name),
            version: if version.is_empty() {
                "-".into()
            } else {
                version
            },
            sources: String::new(),
            release: String::new(),
            sha256: started
                .iter()
                .map(|file| build::hash_of_file(Path::new(file)))
                .collect::<Result<_>>()?,
            needs: BTreeMap::new(),
            build_ids: Vec::new(),
            files: started.into_iter().collect(),
            environment: BTreeMap::new(),
            left_to_libc: Vec::new(),
            purge: "none".into(),
            purged_as: None,
            checked: None,
        });
    }
    Ok(all)
}
