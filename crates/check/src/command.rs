//! `heapmark check`: what a program may rely on under each allocator, and what becomes of wrong
//! programs.

use crate::definition::{self, Check};
use crate::file::{CHECK_FILE, CheckFile};
use crate::judge::changes;
use crate::processes::CheckProcesses;
use crate::report::{self, page::checked};
use crate::session::CheckSession;
use anyhow::{Result, bail};
use fast_glob::glob_match;
use heapmark_core::build;
use heapmark_core::catalog::{Tier, did_you_mean};
use heapmark_core::cmd::output::{AnswerFormat, Force, Output};
use heapmark_core::cmd::run::comparison::patience;
use heapmark_core::cmd::run::{resolve, select, stop_on_signals, today};
use heapmark_core::cmd::{
    Exit, catalog, described_machine, note, print, print_json, screen, usage,
};
use heapmark_core::execute::child::adopt_orphans;
use heapmark_core::execute::{Guest, Subject};
use heapmark_core::file::{WithPath, is_there, make_folder};
use heapmark_core::plan::Plan;
use heapmark_core::report::render::terminal;
use heapmark_core::report::{Section, again};
use heapmark_core::store::Standing;
use heapmark_core::store::{self, CheckedShelf, published};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Check what a program may rely on, and what becomes of wrong programs: alignment, overflow,
/// contents, threads, fork; double free, overflow, use after free
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
    /// Only the checks, or groups of checks, of these names or patterns; conformance or hardening: that half
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    only: Vec<String>,
    /// End with exit code 3 if some allocator does not pass a check that ISO C or POSIX demands
    /// (std), that programs for Linux rely on as well (gnu), or any (robust)
    #[arg(long, value_name = "STANDING", value_enum)]
    fail_on: Option<Standing>,
    /// A process that runs longer than this counts as hung [default: 10s, 30s for checks that wait, 3s for wrong programs]
    #[arg(long, value_name = "TIME", value_parser = patience)]
    timeout: Option<Duration>,
    /// Directory to create [default: heapmark-results/DATE-check-N]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: AnswerFormat,
    /// Print a check as a C program that needs no heapmark
    #[arg(long, value_name = "CHECK", exclusive = true)]
    program: Option<String>,
}

#[derive(clap::Subcommand)]
enum CheckCommand {
    /// Show which checks ended differently in two results: of one allocator, or of the same ones
    Diff {
        /// Directory or file of the older result
        old: PathBuf,
        /// Directory or file of the newer result
        new: PathBuf,
    },
}

const QUICK: &str = "quick";
const FULL: &str = "full";

/// The names of the two halves of the checks in `--only`: each selects those checks of its half
/// that the preset has.
const CONFORMANCE: &str = "conformance";
const HARDENING: &str = "hardening";

/// A function that makes more sections for the page of a result.
type Sections = fn(&CheckFile) -> Result<Vec<Section>>;

/// Runs the command; the result's page also has these sections.
pub fn run(args: CheckArgs, sections: Sections) -> Result<Exit> {
    if let Some(CheckCommand::Diff { old, new }) = &args.command {
        let (old, new) = (
            CheckFile::read(old).map_err(usage)?,
            CheckFile::read(new).map_err(usage)?,
        );
        let changes = changes(&old, &new);
        if changes.compared.is_empty() {
            refuse!("diff: no allocator has a check in both results");
        }
        print(terminal(&report::check_changes(&changes), screen()))?;
        return Ok(Exit::Done);
    }
    let checks = definition::all()?;
    if let Some(name) = &args.program {
        let Some(check) = checks.iter().find(|check| check.name == *name) else {
            let known = checks.iter().map(|check| check.name.as_str());
            refuse!(
                "--program {name}: no such check{}",
                did_you_mean(name, known)
            );
        };
        print(check.printed())?;
        return Ok(Exit::Done);
    }
    let catalog = catalog()?;
    // The page at the end needs these sections: a fault in their sources is reported here, before
    // hours of checks.
    sections(&CheckFile::new(&args.preset, BTreeMap::new()))?;
    let checks = chosen(checks, &args).map_err(usage)?;
    if let Some(least) = args.fail_on {
        // Wrong programs have no standing.
        let counts = |check: &Check| check.standing.is_some_and(|standing| standing <= least);
        if !checks.iter().any(counts) {
            refuse!(
                "--fail-on: no check that --only names has such a standing, so it can never be met (heapmark list checks has them)"
            );
        }
    }
    if let Some(folder) = &args.output
        && is_there(folder)
    {
        refuse!("{} exists: choose another --output", folder.display());
    }
    let allocators = resolve::named(&args.allocators, &[Tier::Main], None, catalog)?;
    adopt_orphans();
    let stop = stop_on_signals();
    let runner = CheckProcesses {
        guest: Guest::find()?,
        programs: [
            build::CHECKS.find()?,
            build::CHECKS_IN_CXX.find()?,
            build::CHECKS_REPLACING.find()?,
        ],
        timeout: args.timeout,
        stop: &stop,
    };
    let mut subjects = Vec::new();
    resolve::must_take_programs(&allocators)?;
    let resolved = resolve::resolve(allocators, catalog, false)?;
    for subject in resolved {
        let info = select::info(&runner.guest, &subject, &Plan::default())?;
        subjects.push((subject, info));
    }
    let file = CheckFile::new(&args.preset, described_machine());
    let folder = match &args.output {
        Some(folder) => make_folder(folder)
            .map(|_| folder.clone())
            .with_path("cannot make", folder)?,
        None => store::fresh(&format!("{}-check", today()))?,
    };
    let session = CheckSession {
        runner: &runner,
        checks: &checks,
        is_full: args.is_full(),
        is_named: !args.only.is_empty(),
        timeout: args.timeout,
        folder: &folder,
        shelf: CheckedShelf::open()
            .inspect_err(|error| note(format!("runs will not say what is found: {error:#}")))
            .ok(),
        asked,
        say: note,
    };
    let file = session.run(&subjects, file)?;
    if args.format == AnswerFormat::Json {
        print_json(&file)?;
    } else {
        print(terminal(&report::check(&file, &checks), screen()))?;
    }
    let page = page_beside(&folder, &file, sections)?;
    if args.format != AnswerFormat::Json {
        note(format!(
            "Result: {}, {}",
            folder.join(CHECK_FILE).display(),
            page.display()
        ));
    }
    if file.unfinished {
        return Ok(Exit::Interrupted);
    }
    let mut results = file.allocators.iter().flat_map(|one| &one.results);
    let is_met = results.any(|result| {
        result.verdict.is_finding() && args.fail_on.is_some_and(|least| result.standing <= least)
    });
    Ok(match is_met {
        true => Exit::Condition,
        // A check that could not be made is neither a finding nor a success.
        false => Exit::NotAllOk.when(file.has_error()),
    })
}

/// The file name of a result's page in the result's directory.
const PAGE: &str = "check.html";

fn page(file: &CheckFile, sections: Sections) -> Result<String> {
    let file: &CheckFile = &serde_json::from_str(&published(&serde_json::to_string(file)?))?;
    Ok(checked(file, &definition::all()?, sections(file)?))
}

fn page_beside(dir: &Path, file: &CheckFile, sections: Sections) -> Result<PathBuf> {
    store::keep(dir, PAGE, page(file, sections)?)?;
    Ok(dir.join(PAGE))
}

/// Writes the page of the result in `dir`, into that directory or to `output`; returns the page's
/// path.
pub fn write_page(
    dir: &Path,
    output: Option<PathBuf>,
    force: Force,
    sections: Sections,
) -> Result<PathBuf> {
    let file = CheckFile::read(dir).map_err(usage)?;
    let Some(output) = output else {
        return page_beside(dir, &file, sections);
    };
    let output = Output::new(&output, force, [dir.join(CHECK_FILE)])?;
    output.put(page(&file, sections)?)?;
    Ok(output.path().to_owned())
}

/// What `-a` has to have for this allocator in any folder.
fn asked(subject: &Subject) -> String {
    let name = &subject.allocator.name;
    match catalog() {
        Ok(catalog) if catalog.allocator(name).is_ok() => name.clone(),
        _ => again::named(name, subject),
    }
}

/// The checks that the flags name, or all checks of the preset.
fn chosen(mut checks: Vec<Check>, args: &CheckArgs) -> Result<Vec<Check>> {
    let is_in_preset = |check: &Check| args.is_full() || !check.full;
    if args.only.is_empty() {
        checks.retain(is_in_preset);
        return Ok(checks);
    }
    for pattern in &args.only {
        let names = checks.iter().flat_map(|check| [&check.name, &check.group]);
        let names = names.map(String::as_str).chain([CONFORMANCE, HARDENING]);
        if !names.clone().any(|name| glob_match(pattern, name)) {
            let hint = did_you_mean(pattern, names);
            bail!("--only {pattern}: no such check, and no such group{hint}");
        }
    }
    let is_named = |name: &str| args.only.iter().any(|pattern| glob_match(pattern, name));
    checks.retain(|check| {
        let half = match check.is_wrong() {
            true => HARDENING,
            false => CONFORMANCE,
        };
        is_named(&check.name) || is_named(&check.group) || is_named(half) && is_in_preset(check)
    });
    Ok(checks)
}

impl CheckArgs {
    fn is_full(&self) -> bool {
        self.preset == FULL
    }
}
