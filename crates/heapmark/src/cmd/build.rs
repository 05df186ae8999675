//! `heapmark build`: libraries from pinned sources, and measured programs.

use super::long::Long;
use super::{Exit, usage};
use crate::build::{self, Built, State};
use crate::catalog::{Allocator, Catalog, Program, Source, Tier};
use anyhow::{Result, anyhow};
use indicatif::MultiProgress;

/// Build allocators from the sources that heapmark pins, and programs; what is already built is
/// kept
#[derive(clap::Args)]
pub struct BuildArgs {
    /// Names of allocators and programs [default: all allocators built from sources, except
    /// experimental ones, and all programs that can be built here]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only the programs, with a line for each one that cannot be built here
    #[arg(long, conflicts_with = "names")]
    programs: bool,
    /// Number of build commands to run at a time for allocators; programs are built one by one
    /// [default: one per usable CPU]
    #[arg(short, long, value_name = "N", conflicts_with = "programs", value_parser = positive)]
    jobs: Option<usize>,
}

fn positive(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|jobs| *jobs > 0)
        .ok_or_else(|| "expected a whole number, 1 or more".into())
}

/// One command per usable CPU.
pub(super) fn jobs() -> usize {
    crate::observe::machine::usable_cpus() as usize
}

/// Runs the command.
pub fn run(args: BuildArgs) -> Result<Exit> {
    let catalog = Catalog::load()?;
    let (mut selected, mut programs): (Vec<&Allocator>, Vec<&Program>) = (Vec::new(), Vec::new());
    if args.names.is_empty() {
        let ours = |allocator: &&Allocator| {
            !args.programs && matches!(allocator.source, Source::Crate { .. })
        };
        selected = catalog
            .allocators
            .iter()
            .filter(ours)
            .filter(|one| one.tier != Tier::Experimental)
            .collect();
        programs = catalog
            .programs
            .iter()
            .filter(|program| can_be_built(program, args.programs))
            .collect();
    }
    for name in &args.names {
        match catalog
            .programs
            .iter()
            .find(|program| program.name == *name)
        {
            Some(program) => programs.push(program),
            None => selected.push(catalog.allocator(name).map_err(usage)?),
        }
    }
    if args.jobs.is_some() && selected.is_empty() {
        return Err(usage(anyhow!(
            "--jobs: only allocators are built by several commands, and none is named"
        )));
    }
    let built = build_all(&selected, &catalog, args.jobs.unwrap_or_else(jobs));
    let failed = built.iter().filter(|built| built.result.is_err()).count()
        + programs
            .iter()
            .filter(|program| !build_program(program))
            .count();
    if failed > 0 {
        eprintln!(
            "{failed} of {} could not be built; the others are ready",
            selected.len() + programs.len()
        );
    }
    Ok(if failed == 0 {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// Whether everything that the program needs is installed; prints what is missing if `say` is set.
fn can_be_built(program: &Program, say: bool) -> bool {
    let State::Absent { why, line } = build::program::state(program) else {
        return true;
    };
    if say {
        eprintln!("{:24} absent, {why}: {line}", program.name);
    }
    false
}

/// Builds a program and prints the result; returns whether the program is ready.
pub(super) fn build_program(program: &Program) -> bool {
    let began = std::time::Instant::now();
    let long = Long::new(format!("building {}", program.name), 0);
    let built = build::program::build(program);
    drop(long);
    match built {
        Ok((executable, true)) => eprintln!(
            "{:24} ready     {}",
            program.name,
            executable.folder.display()
        ),
        Ok((_, false)) => eprintln!(
            "{:24} built in {:.0} s",
            program.name,
            began.elapsed().as_secs_f64()
        ),
        Err(ref error) => {
            eprintln!("{:24} failed: {error:#}", program.name);
            return false;
        }
    }
    true
}

/// Builds with a progress bar and prints the result of each build.
pub(super) fn build_all(selected: &[&Allocator], catalog: &Catalog, jobs: usize) -> Vec<Built> {
    let pending = selected.iter().any(|one| {
        matches!(
            build::state(one, &catalog.allocators),
            State::NotBuilt { .. }
        )
    });
    if pending {
        eprintln!(
            "building allocators from their sources (once; tcmalloc and jemalloc take most of the time)"
        );
        let not_taken = build::not_taken();
        if !not_taken.is_empty() {
            eprintln!(
                "{}: not taken, libraries are compiled with their authors' flags",
                not_taken.join(", ")
            );
        }
    }
    let built = build::build(selected, &catalog.allocators, jobs, &MultiProgress::new());
    for one in &built {
        match &one.result {
            Ok(_) if one.cached && pending => {}
            Ok(library) if one.cached => {
                let files: Vec<_> = library
                    .files
                    .iter()
                    .map(|file| file.display().to_string())
                    .collect();
                eprintln!("{:24} ready     {}", one.name, files.join(" "));
            }
            Ok(_) => eprintln!("{:24} built in {:.0} s", one.name, one.seconds),
            Err(error) => eprintln!("{:24} failed: {error:#}", one.name),
        }
    }
    built
}
