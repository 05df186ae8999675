//! `heapmark build`: libraries from pinned sources, and measured programs.

use super::long::{Long, time_left};
use super::{Exit, catalog, is_quiet, note, usage};
use crate::build::{self, Built, State};
use crate::catalog::{Allocator, Catalog, Program, Source, Tier, joined};
use anyhow::Result;
use indicatif::{MultiProgress, ProgressDrawTarget};
use std::time::Duration;

/// Build allocators from the sources that heapmark pins, and programs; what is already built is
/// kept
#[derive(clap::Args)]
pub struct BuildArgs {
    /// Names of allocators and programs [default: all allocators built from sources or taken from
    /// wheels, except experimental ones, and all programs that can be built here]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only the measured programs of other languages, with a line for each one that cannot be built here
    #[arg(long, conflicts_with = "names")]
    languages: bool,
    /// Number of build commands to run at a time for allocators; programs are built one by one
    /// [default: one per usable CPU]
    #[arg(short, long, value_name = "N", conflicts_with = "languages", value_parser = positive)]
    jobs: Option<usize>,
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..) => Ok(number),
        _ => Err("expected a whole number, 1 or more".into()),
    }
}

/// Number of parallel commands: one per usable CPU.
pub fn jobs() -> usize {
    crate::observe::machine::usable_cpus() as usize
}

/// Runs `heapmark build`.
pub fn run(args: BuildArgs) -> Result<Exit> {
    let catalog = catalog()?;
    let mut selected: Vec<&Allocator> = Vec::new();
    let mut programs: Vec<&Program> = Vec::new();
    if args.names.is_empty() {
        let all = catalog.allocators.iter().filter(|one| {
            !args.languages && one.tier != Tier::Experimental && one.source.is_built()
        });
        selected.extend(all);
        let all = catalog.programs.iter();
        programs.extend(all.filter(|program| can_be_built(program, args.languages)));
    }
    for name in &args.names {
        let mut all = catalog.programs.iter();
        match all.find(|program| program.name == *name) {
            Some(program) => programs.push(program),
            None => selected.extend(catalog.meant(name).map_err(usage)?),
        }
    }
    if args.jobs.is_some() && selected.is_empty() {
        refuse!("--jobs: only allocators are built by several commands, and none is named");
    }
    let built = build_all(&selected, catalog, args.jobs.unwrap_or_else(jobs));
    let unbuilt = programs.iter().filter(|program| !build_program(program));
    // A wheel that is not available is no failure, unless the user named it: without pip or a network, a run uses the distribution's build.
    let may_fail =
        |one: &Allocator| args.names.is_empty() && matches!(one.source, Source::Wheel { .. });
    let failed = selected.iter().zip(&built);
    let failed = failed.filter(|(one, built)| built.result.is_err() && !may_fail(one));
    let failed = failed.count() + unbuilt.count();
    if failed > 0 {
        let all = selected.len() + programs.len();
        say!("{failed} of {all} could not be built; the others are ready");
    }
    Ok(Exit::Failed.when(failed > 0))
}

/// Whether everything that the program needs is installed; prints what is missing if `say` is set.
fn can_be_built(program: &Program, say: bool) -> bool {
    let State::Absent { why, line } = build::program::state(program) else {
        return true;
    };
    if say {
        say!("{:24} absent, {why}: {line}", program.name);
    }
    false
}

/// Builds a program and prints the result; returns whether the program is ready.
pub fn build_program(program: &Program) -> bool {
    let began = std::time::Instant::now();
    let long = Long::new(format!("building {}", program.name), 0);
    let built = build::program::build(program);
    drop(long);
    let words = match &built {
        Ok((executable, true)) => format!("ready     {}", executable.folder.display()),
        Ok((_, false)) => format!("built in {:.0} s", began.elapsed().as_secs_f64()),
        Err(error) => format!("failed: {error:#}"),
    };
    say!("{:24} {words}", program.name);
    built.is_ok()
}

/// Whether the library of an allocator must be built first.
pub fn is_unbuilt(allocator: &Allocator, catalog: &Catalog) -> bool {
    let is_built = build::original(allocator, &catalog.allocators)
        .source
        .is_built();
    is_built
        && matches!(
            build::state(allocator, &catalog.allocators),
            State::NotBuilt { .. }
        )
}

/// Builds with a progress bar and prints the result of each build.
pub fn build_all(selected: &[&Allocator], catalog: &Catalog, jobs: usize) -> Vec<Built> {
    let pending = selected.iter().any(|one| is_unbuilt(one, catalog));
    if pending {
        note(
            "building allocators from their sources: some minutes on 2 CPUs, once; tcmalloc and jemalloc take most of the time",
        );
        let not_taken = build::not_taken();
        if !not_taken.is_empty() {
            say!(
                "{}: not taken, libraries are compiled with their authors' flags",
                not_taken.join(", ")
            );
        }
    }
    let progress = if is_quiet() {
        MultiProgress::with_draw_target(ProgressDrawTarget::hidden())
    } else {
        MultiProgress::new()
    };
    let reporter = |one: &Built, left: Option<Duration>| {
        if one.result.is_ok() && !one.cached {
            let left = left.map(|left| format!(", {}", time_left("about", left.as_secs_f64())));
            let left = left.unwrap_or_default();
            let line = format!("{:24} built in {:.0} s{left}", one.name, one.seconds);
            progress.suspend(|| note(line));
        }
    };
    let built = build::build_telling(selected, &catalog.allocators, jobs, &progress, &reporter);
    for one in &built {
        match &one.result {
            Ok(library) if one.cached && !pending => {
                let files = library.files.iter().map(|file| file.display());
                note(format!("{:24} ready     {}", one.name, joined(files, " ")));
            }
            Ok(_) => {}
            Err(error) => say!("{:24} failed: {error:#}", one.name),
        }
    }
    built
}
