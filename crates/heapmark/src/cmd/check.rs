//! `heapmark check`: what a program may rely on, of each allocator, and what becomes of wrong ones.

use super::report::check_beside;
use super::run::comparison::patience;
use super::run::{resolve, select, stop_on_signals, today};
use super::{Exit, described_machine, note, print, print_json, screen, usage};
use crate::analyse::check::{changed_cells, changes, has_failed, kept, of_trials};
use crate::analyse::misuse::{no_cells, of_attempts, why_not_well};
use crate::build;
use crate::catalog::check::{self, Check, Standing};
use crate::catalog::claim::HardeningDocument;
use crate::catalog::misuse::{self, Misuse};
use crate::catalog::{Catalog, Tier, did_you_mean};
use crate::execute::check::{CheckRunner, Ended, Trial};
use crate::execute::child::{Interrupted, adopt_orphans};
use crate::execute::lanes::side_by_side;
use crate::execute::misuse::Attempt;
use crate::execute::{Guest, Subject};
use crate::file::{WithPath, is_there, make_folder};
use crate::observe::Root;
use crate::plan::Plan;
use crate::report;
use crate::session::{lanes, memory_left};
use crate::store::check::{CHECK_FILE, CheckFile, CheckResult, CheckVerdict, CheckedAllocator};
use crate::store::misuse::{MisuseCell, MisuseResult};
use crate::store::{self, AllocatorInfo, CheckedShelf};
use anyhow::{Result, bail};
use fast_glob::glob_match;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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

/// Processes of a check of which one has failed.
const TRIALS_OF_A_FAILURE: u32 = 3;
/// After so many processes of a check that hang no more are started: each takes its whole time.
const MOST_HANGS: u32 = 4;
/// The free memory that a process needs to run beside others.
const ROOM_BYTES: u64 = 1 << 30;
/// Either half, in `--only`: what the preset has of it.
const CONFORMANCE: &str = "conformance";
const HARDENING: &str = "hardening";

/// Runs the command.
pub fn run(args: CheckArgs) -> Result<Exit> {
    if let Some(CheckCommand::Diff { old, new }) = &args.command {
        let (old, new) = (
            CheckFile::read(old).map_err(usage)?,
            CheckFile::read(new).map_err(usage)?,
        );
        let (checks, cells) = (changes(&old, &new), changed_cells(&old, &new));
        print(report::check_changes(&checks, &cells, screen()))?;
        return Ok(Exit::Done);
    }
    let (checks, misuses) = (check::all()?, misuse::all()?);
    if let Some(name) = &args.program {
        let known = checks.iter().map(|check| &check.name);
        let known = known.chain(misuses.iter().map(|misuse| &misuse.name));
        let check = checks.iter().find(|check| check.name == *name);
        let misuse = misuses.iter().find(|misuse| misuse.name == *name);
        let program = check.map(Check::program).or(misuse.map(Misuse::program));
        let Some(program) = program else {
            refuse!(
                "--program {name}: no such check{}",
                did_you_mean(name, known.map(String::as_str))
            );
        };
        print(program)?;
        return Ok(Exit::Done);
    }
    let catalog = Catalog::load()?;
    // The page at the end needs them: a fault in one is said before hours of checks.
    HardeningDocument::load(&catalog, &misuses)?;
    let (checks, misuses) = chosen(checks, misuses, &args).map_err(usage)?;
    if let Some(folder) = &args.output
        && is_there(folder)
    {
        refuse!("{} exists: choose another --output", folder.display());
    }
    let allocators = resolve::named(&args.allocators, &[Tier::Main], false, &catalog)?;
    let subjects = resolve::resolve(allocators, &catalog, false)?;
    adopt_orphans();
    let stop = stop_on_signals();
    let runner = CheckRunner {
        guest: Guest::find()?,
        program: build::CHECKS.find()?,
        program_in_cxx: build::CHECKS_IN_CXX.find()?,
        program_replacing: build::CHECKS_REPLACING.find()?,
        timeout: args.timeout,
        stop: &stop,
    };
    let file = CheckFile::new(&args.preset, described_machine());
    let usual = checks.iter().map(|it| (it.name.as_str(), it.usual_time()));
    let usual = usual.chain(misuses.iter().map(|it| (it.name.as_str(), it.usual_time())));
    let is_hasty = |usual: Duration| args.timeout.is_some_and(|timeout| timeout < usual);
    let hasty = usual.filter(|(_, usual)| is_hasty(*usual));
    let hasty: Vec<&str> = hasty.map(|(name, _)| name).collect();
    let shelf = CheckedShelf::open()
        .inspect_err(|error| note(format!("runs will not say what is found: {error:#}")))
        .ok();
    let folder = match &args.output {
        Some(folder) => make_folder(folder)
            .map(|_| folder.clone())
            .with_path("cannot make", folder)?,
        None => store::fresh(&format!("{}-check", today()))?,
    };
    let mut kept = Kept::new(&folder, file)?;
    let mut stopped = false;
    for subject in &subjects {
        let done = check_all(&runner, subject, &checks, &misuses, &args, &mut kept);
        match done {
            Err(error) if error.is::<Interrupted>() => stopped = true,
            done => done?,
        }
        if let (Some(shelf), Some(checked)) = (&shelf, kept.file.allocators.last()) {
            keep_for_runs(shelf, subject, &kept.file, checked, &hasty);
        }
        if stopped {
            break;
        }
    }
    let file = kept.end(stopped)?;
    if args.json {
        print_json(&file)?;
    } else {
        print(report::check(&file, &checks, &misuses, screen()))?;
    }
    let page = check_beside(&folder, &file)?;
    if !args.json {
        note(format!(
            "Result: {}, {}",
            folder.join(CHECK_FILE).display(),
            page.display()
        ));
    }
    if stopped {
        return Ok(Exit::Interrupted);
    }
    let results = || file.allocators.iter().flat_map(|one| &one.results);
    let is_met = results().any(|result| {
        result.verdict.is_finding() && args.fail_on.is_some_and(|least| result.standing <= least)
    });
    Ok(match is_met {
        true => Exit::Condition,
        // What could not be checked is no finding, and no success either.
        false => Exit::NotAllOk.when(has_error(&file)),
    })
}

/// Keeps what was found for the reports of later runs. A result is worth having without that.
fn keep_for_runs(
    shelf: &CheckedShelf,
    subject: &Subject,
    file: &CheckFile,
    checked: &CheckedAllocator,
    hasty: &[&str],
) {
    let mut known = kept(checked, file);
    // With less time than usual, what hangs may only be slow.
    let is_slow = |check: &str, verdict| verdict == CheckVerdict::Hang && hasty.contains(&check);
    known.findings.retain(|it| !is_slow(&it.check, it.verdict));
    known
        .hardening
        .retain(|it| !hasty.contains(&it.check.as_str()));
    if let Err(error) = shelf.keep(subject, &checked.info.sha256, known) {
        let name = &subject.allocator.name;
        note(format!(
            "{name}: runs will not say what was found: {error:#}"
        ));
    }
}

fn has_error(file: &CheckFile) -> bool {
    file.allocators.iter().any(|one| {
        let mut results = one.results.iter();
        let mut cells = one.hardening.iter().flat_map(|it| &it.cells);
        results.any(|it| it.verdict == CheckVerdict::Error) || cells.any(MisuseCell::has_error)
    })
}

/// The checks that flags name, or all of the preset.
fn chosen(
    mut checks: Vec<Check>,
    mut misuses: Vec<Misuse>,
    args: &CheckArgs,
) -> Result<(Vec<Check>, Vec<Misuse>)> {
    if args.only.is_empty() {
        checks.retain(|check| !check.full || args.is_full());
        misuses.retain(|misuse| !misuse.full || args.is_full());
        return Ok((checks, misuses));
    }
    for pattern in &args.only {
        let checks = checks.iter().flat_map(|check| [&check.name, &check.group]);
        let misuses = misuses.iter().flat_map(|it| [&it.name, &it.group]);
        let mut names: Vec<&str> = checks.chain(misuses).map(String::as_str).collect();
        names.extend([CONFORMANCE, HARDENING]);
        if !names.iter().any(|name| glob_match(pattern, name)) {
            let hint = did_you_mean(pattern, names.into_iter());
            bail!("--only {pattern}: no such check, and no such group{hint}");
        }
    }
    let is_named = |name: &str| args.only.iter().any(|pattern| glob_match(pattern, name));
    let has_half =
        |half: &str, is_left_out: bool| is_named(half) && (args.is_full() || !is_left_out);
    checks.retain(|it| has_half(CONFORMANCE, it.full) || is_named(&it.name) || is_named(&it.group));
    misuses.retain(|it| has_half(HARDENING, it.full) || is_named(&it.name) || is_named(&it.group));
    Ok((checks, misuses))
}

/// One check of an allocator.
enum Work<'a> {
    Check(&'a Check),
    Misuse(&'a Misuse),
}

/// What came of it.
enum Found {
    Check(CheckResult),
    Misuse(MisuseResult),
}

/// A result in its folder, as complete as it is.
struct Kept<'a> {
    folder: &'a Path,
    file: CheckFile,
    at: Instant,
}

/// What has been found for so long is on the disk.
const KEPT_EVERY: Duration = Duration::from_secs(1);

impl<'a> Kept<'a> {
    /// Before the first check.
    fn new(folder: &'a Path, file: CheckFile) -> Result<Kept<'a>> {
        let mut kept = Kept {
            folder,
            file,
            at: Instant::now(),
        };
        kept.keep()?;
        Ok(kept)
    }

    fn keep(&mut self) -> Result<()> {
        store::keep(
            self.folder,
            CHECK_FILE,
            serde_json::to_vec_pretty(&self.file)?,
        )?;
        self.at = Instant::now();
        Ok(())
    }

    /// Before the first check of an allocator.
    fn begin(&mut self, info: AllocatorInfo) -> Result<()> {
        self.file.allocators.push(CheckedAllocator::new(info));
        self.keep()
    }

    /// Adds a result of the last allocator.
    fn add(&mut self, found: Found) -> Result<()> {
        if let Some(checked) = self.file.allocators.last_mut() {
            match found {
                Found::Check(result) => checked.results.push(result),
                Found::Misuse(result) => checked.hardening.push(result),
            }
            checked.sort();
        }
        match self.at.elapsed() < KEPT_EVERY {
            true => Ok(()),
            false => self.keep(),
        }
    }

    /// After the last check.
    fn end(mut self, stopped: bool) -> Result<CheckFile> {
        self.file.unfinished = stopped;
        self.keep()?;
        Ok(self.file)
    }
}

/// All checks of an allocator, side by side while there are idle CPUs: nothing is timed.
fn check_all(
    runner: &CheckRunner,
    subject: &Subject,
    checks: &[Check],
    misuses: &[Misuse],
    args: &CheckArgs,
    kept: &mut Kept,
) -> Result<()> {
    let name = &subject.allocator.name;
    note(format!("{name}: {} checks", checks.len() + misuses.len()));
    let is_thorough = args.is_full() || !args.only.is_empty();
    let checks = checks.iter().map(Work::Check);
    let mut work: Vec<Work> = checks.chain(misuses.iter().map(Work::Misuse)).collect();
    // Those that may take longest come first: at the end no CPU waits for one of them.
    work.sort_by_key(|work| {
        Reverse(match work {
            Work::Check(it) => it.usual_time() * it.processes(is_thorough),
            Work::Misuse(it) => it.usual_time() * it.processes(args.is_full()),
        })
    });
    let lanes = lanes(1, ROOM_BYTES, memory_left(&Root::machine()));
    let one = |work: &Work| {
        Ok(match work {
            Work::Check(check) => Found::Check(tried(runner, subject, check, is_thorough)?),
            Work::Misuse(misuse) => Found::Misuse(misused(runner, subject, misuse, args)?),
        })
    };
    let info = select::info(&runner.guest, subject, &Plan::default())?;
    kept.begin(info)?;
    side_by_side(lanes, &work, one, |_, found| kept.add(found))
}

/// Makes as many trials as are wanted after those that were made, or until as many as one may wait
/// for have hung.
fn until_hangs<T>(
    wanted: impl Fn(&[T]) -> u32,
    trial: impl Fn(u32) -> Result<T>,
    ended: impl Fn(&T) -> &Ended,
) -> Result<Vec<T>> {
    let mut trials = Vec::new();
    let mut hangs = 0;
    while (trials.len() as u32) < wanted(&trials) && hangs < MOST_HANGS {
        let trial = trial(trials.len() as u32)?;
        hangs += u32::from(matches!(ended(&trial), Ended::Hung(_)));
        trials.push(trial);
    }
    Ok(trials)
}

/// All processes of a check of conformance.
fn tried(
    runner: &CheckRunner,
    subject: &Subject,
    check: &Check,
    is_thorough: bool,
) -> Result<CheckResult> {
    let trial = |_| runner.trial(subject, check);
    // What fails is asked whether it does so each time.
    let wanted = |made: &[Trial]| {
        let processes = check.processes(is_thorough);
        match made.iter().any(has_failed) {
            true => processes.max(TRIALS_OF_A_FAILURE),
            false => processes,
        }
    };
    let trials = until_hangs(wanted, trial, |trial| &trial.ended)?;
    Ok(of_trials(check, &subject.allocator.name, &trials))
}

/// All cells of a check of hardening. If its benign twin does not end well, the misuse is not tried.
fn misused(
    runner: &CheckRunner,
    subject: &Subject,
    misuse: &Misuse,
    args: &CheckArgs,
) -> Result<MisuseResult> {
    let is_full = args.is_full();
    let timeout = args.timeout.unwrap_or(misuse.usual_time());
    let full = if is_full { " --preset full" } else { "" };
    let again = format!(
        "heapmark check -a {} --only {}{full}",
        subject.allocator.name, misuse.name
    );
    let mut result = no_cells(misuse);
    for (size_bytes, form) in misuse.cells(is_full) {
        let attempt = |is_wrong: bool, seed: u32| {
            let attempt = Attempt {
                check: &misuse.name,
                size_bytes,
                form,
                is_wrong,
                seed,
                timeout,
            };
            runner.attempt(subject, &attempt)
        };
        let twin = misuse.has_twin().then(|| attempt(false, 0)).transpose()?;
        let processes = match twin.as_ref().and_then(why_not_well) {
            None => misuse.processes(is_full),
            Some(_) => 0,
        };
        let attempts = until_hangs(|_| processes, |seed| attempt(true, seed), |it| &it.ended)?;
        let cell = (size_bytes, form);
        let cell = of_attempts(misuse, cell, twin.as_ref(), &attempts, again.clone());
        result.cells.push(cell);
    }
    Ok(result)
}

impl CheckArgs {
    fn is_full(&self) -> bool {
        self.preset == FULL
    }
}
