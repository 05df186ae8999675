//! `heapmark check`: what a program may rely on, of each allocator.

use super::report::check_beside;
use super::run::comparison::patience;
use super::run::{resolve, select, stop_on_signals, today};
use super::{Exit, note, print, print_json, screen, usage};
use crate::analyse::check::{changes, of_trials};
use crate::build;
use crate::catalog::check::{self, Check, Standing};
use crate::catalog::{Catalog, Tier, did_you_mean};
use crate::execute::check::{CheckRunner, Trial};
use crate::execute::child::Interrupted;
use crate::execute::{Guest, Subject};
use crate::file::{is_there, make_folder};
use crate::observe::machine;
use crate::plan::Plan;
use crate::report;
use crate::store;
use crate::store::check::{CHECK_FILE, CheckFile, CheckVerdict, CheckedAllocator};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::time::Duration;

/// Check what a program may rely on: alignment, overflow, contents, threads, fork, exhausted memory
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CheckArgs {
    #[command(subcommand)]
    command: Option<CheckCommand>,
    /// Allocators: names, families, patterns, or NAME=/path/lib.so [default: the main ones]
    #[arg(short, long, value_name = "A,...", value_delimiter = ',')]
    allocators: Vec<String>,
    /// Which checks: all that take less than a second, or all
    #[arg(long, value_parser = [QUICK, FULL], default_value = QUICK, hide_default_value = true)]
    preset: String,
    /// Only the checks, or groups of checks, of these names or patterns
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    only: Vec<String>,
    /// End with exit code 3 if some allocator does not pass a check that ISO C or POSIX demands
    /// (std), that programs for Linux rely on as well (gnu), or any (robust)
    #[arg(long, value_name = "STANDING", value_enum)]
    fail_on: Option<Standing>,
    /// A process that runs longer than this counts as hung [default: 10s, 30s for checks that wait]
    #[arg(long, value_name = "TIME", value_parser = patience)]
    timeout: Option<Duration>,
    /// Directory to create [default: heapmark-results/DATE-check-N]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print a check as a C program that needs no heapmark
    #[arg(long, value_name = "CHECK", exclusive = true)]
    program: Option<String>,
}

#[derive(clap::Subcommand)]
enum CheckCommand {
    /// Show which checks ended otherwise: two results of one allocator, or of the same ones
    Diff {
        /// Directory or file of the older result
        old: PathBuf,
        /// Of the newer one
        new: PathBuf,
    },
}

const QUICK: &str = "quick";
const FULL: &str = "full";

/// Runs the command.
pub fn run(args: CheckArgs) -> Result<Exit> {
    if let Some(CheckCommand::Diff { old, new }) = &args.command {
        let (old, new) = (
            CheckFile::read(old).map_err(usage)?,
            CheckFile::read(new).map_err(usage)?,
        );
        print(report::check_changes(&changes(&old, &new), screen()))?;
        return Ok(Exit::Done);
    }
    let checks = check::all()?;
    if let Some(name) = &args.program {
        let known = checks.iter().map(|check| check.name.as_str());
        let Some(check) = checks.iter().find(|check| check.name == *name) else {
            refuse!(
                "--program {name}: no such check{}",
                did_you_mean(name, known)
            );
        };
        print(check.program())?;
        return Ok(Exit::Done);
    }
    let checks = chosen(checks, &args).map_err(usage)?;
    if let Some(folder) = &args.output
        && is_there(folder)
    {
        refuse!("{} exists: choose another --output", folder.display());
    }
    let catalog = Catalog::load()?;
    let allocators = resolve::named(&args.allocators, &[Tier::Main], false, &catalog)?;
    let subjects = resolve::resolve(allocators, &catalog, false)?;
    let stop = stop_on_signals();
    let runner = CheckRunner {
        guest: Guest::find()?,
        program: build::CHECKS.find()?,
        program_in_cxx: build::CHECKS_IN_CXX.find()?,
        timeout: args.timeout,
        stop: &stop,
    };
    let mut machine = machine::describe();
    machine.insert("c_library".into(), build::libc_version());
    let mut file = CheckFile::new(&args.preset, machine);
    for subject in &subjects {
        match checked(&runner, subject, &checks) {
            Ok(checked) => file.allocators.push(checked),
            Err(error) if error.is::<Interrupted>() => return Ok(Exit::Interrupted),
            Err(error) => return Err(error),
        }
    }
    let folder = match args.output {
        Some(folder) => make_folder(&folder).map(|_| folder)?,
        None => store::fresh(&format!("{}-check", today()))?,
    };
    store::keep(&folder, CHECK_FILE, serde_json::to_vec_pretty(&file)?)?;
    let page = check_beside(&folder, &file)?;
    if args.json {
        print_json(&file)?;
    } else {
        print(report::check(&file, &checks, screen()))?;
        note(format!(
            "Result: {}, {}",
            folder.join(CHECK_FILE).display(),
            page.display()
        ));
    }
    let results = || file.allocators.iter().flat_map(|one| &one.results);
    let is_met = results().any(|result| {
        result.verdict.is_finding() && args.fail_on.is_some_and(|least| result.standing <= least)
    });
    Ok(match is_met {
        true => Exit::Condition,
        // What could not be checked is no finding, and no success either.
        false => Exit::NotAllOk.when(results().any(|it| it.verdict == CheckVerdict::Error)),
    })
}

/// The checks that flags name, or all of the preset.
fn chosen(mut checks: Vec<Check>, args: &CheckArgs) -> Result<Vec<Check>> {
    if args.only.is_empty() {
        checks.retain(|check| !check.full || args.preset == FULL);
        return Ok(checks);
    }
    let mut patterns = Vec::new();
    for pattern in &args.only {
        let glob = globset::Glob::new(pattern)?.compile_matcher();
        let names = || checks.iter().flat_map(|check| [&check.name, &check.group]);
        if !names().any(|name| glob.is_match(name)) {
            let hint = did_you_mean(pattern, names().map(String::as_str));
            bail!("--only {pattern}: no such check, and no such group{hint}");
        }
        patterns.push(glob);
    }
    checks.retain(|check| {
        let mut all = patterns.iter();
        all.any(|glob| glob.is_match(&check.name) || glob.is_match(&check.group))
    });
    Ok(checks)
}

fn checked(runner: &CheckRunner, subject: &Subject, checks: &[Check]) -> Result<CheckedAllocator> {
    let name = &subject.allocator.name;
    note(format!("{name}: {} checks", checks.len()));
    let mut results = Vec::new();
    for check in checks {
        let trials = (0..check.trials).map(|_| runner.trial(subject, check));
        let trials: Vec<Trial> = trials.collect::<Result<_>>()?;
        results.push(of_trials(check, name, &trials));
    }
    Ok(CheckedAllocator {
        info: select::info(&runner.guest, subject, &Plan::default())?,
        results,
    })
}
