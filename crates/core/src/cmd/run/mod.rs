//! `heapmark run`: plans, measures, stores, and prints the results.

#[doc(hidden)]
pub mod comparison;
#[doc(hidden)]
pub mod controls;
mod outline;
mod programs;
mod progress;
#[doc(hidden)]
pub mod real_programs;
#[doc(hidden)]
pub mod resolve;
#[doc(hidden)]
pub mod run_length;
#[doc(hidden)]
pub mod select;
#[doc(hidden)]
pub mod setting_row;
mod single_cell;
mod traces;

use super::output::{AnswerFormat, Output};
use super::page::beside;
use super::show::what_next;
use super::signals::{self, Answer, has_stopped};
use super::{
    Exit, export, is_of_disk, note, piped_input, print, say_damage, screen, surroundings, usage,
};
use crate::analyse::{analyse, reads_figure};
use crate::catalog::time;
use crate::execute::{Guest, Subject, knows};
use crate::file::RESULTS;
use crate::observe::preflight::{ItemState, Preflight, When};
use crate::observe::root::Root;
use crate::observe::{Groups, Prices};
use crate::plan::{Counter, LimitKind, Mode, Override, Plan};
use crate::report::{self, Format, render, units};
use crate::session::{DoesNotRun, Ended, Processes, Selection, Session};
use crate::store::{self, Paths, Purpose, Record, Run, RunFile, Store};
use anyhow::{Result, anyhow};
use comparison::{Comparison, PartOf, listed, target};
use progress::TerminalProgress;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
pub use traces::choices;

/// Measure allocators: every process proves its allocator, every result is stored
#[derive(clap::Args)]
pub struct RunArgs {
    /// Named selection of workloads, threads and allocators
    #[arg(default_value = "quick")]
    pub suite: String,
    /// Workloads: names or patterns from `heapmark list workloads`, or trace:FILE
    #[arg(short, long, value_name = "GLOB,...", value_delimiter = ',', value_parser = listed, help_heading = "What is measured")]
    pub workloads: Vec<String>,
    /// Thread counts; `all` is the number of usable CPUs [default: the suite's]
    #[arg(short, long, value_name = "N,...", value_delimiter = ',', value_parser = listed, help_heading = "What is measured")]
    pub threads: Vec<String>,
    /// quick, paper, or another preset of the workloads [default: the suite's]
    #[arg(long, value_name = "NAME", help_heading = "What is measured")]
    pub preset: Option<String>,
    #[command(flatten)]
    pub args: RunFlags,
}

/// How to measure.
#[derive(clap::Args)]
pub struct RunFlags {
    /// Set a parameter of a workload
    #[arg(
        long,
        value_name = "WORKLOAD.PARAMETER=VALUE",
        help_heading = "What is measured"
    )]
    pub set: Vec<Override>,
    #[command(flatten)]
    pub comparison: Comparison,
    /// Also measure libraries that pass calls on to libc; their rows report it
    #[arg(long, help_heading = "Allocators")]
    allow_forwarding: bool,
    /// Leave out the null allocator, which shows the cost of the harness itself
    #[arg(
        long,
        overrides_with = "no_floor",
        help_heading = "Checks and controls"
    )]
    no_floor: bool,
    /// How long one process should measure on the baseline, if the preset is calibrated: 1s; a bare
    /// number: milliseconds
    #[arg(long, value_name = "TIME", value_parser = target, help_heading = "How long")]
    target_ms: Option<u32>,
    /// Sample memory over time at this interval, for every workload (some always do): 1ms, 500us,
    /// ...
    #[arg(long, value_name = "TIME", value_parser = time::interval, conflicts_with = "turns", help_heading = "What is measured")]
    series: Option<std::time::Duration>,
    #[command(flatten)]
    pub instead: Instead,
}

/// What is measured instead of time; one of them at most.
#[derive(clap::Args)]
#[group(multiple = false, conflicts_with_all = ["series", "precision", "max_blocks", "budget", "age", "turns"])]
pub struct Instead {
    /// Time single calls instead, 1 of K on average (16 if it is left out), in processes that measure
    /// nothing else
    #[arg(long, value_name = "K", num_args = 0..=1, default_missing_value = LATENCY_EVERY, value_parser = every, help_heading = "What is measured")]
    latency: Option<u32>,
    /// Count events per operation instead of timing
    #[arg(long, help_heading = "What is measured")]
    counter: Option<Counter>,
    /// Measure memory instead of time: how much is resident for the live bytes, and how much stays
    /// resident up to 5 s after everything was freed
    #[arg(long, help_heading = "What is measured")]
    pub retained: bool,
    /// Find the smallest limit on memory under which each allocator still does the work, and the
    /// slow-down near it
    #[arg(long, value_name = "WHAT", help_heading = "What is measured")]
    pub limit: Option<LimitKind>,
}

impl Instead {
    /// Returns what is measured instead of time; `None` if time is measured.
    fn mode(&self) -> Option<Mode> {
        match (self.latency, self.counter) {
            (Some(every), _) => Some(Mode::Latency { every }),
            (_, Some(counter)) => Some(Mode::Count(counter)),
            _ if self.retained => Some(Mode::Memory),
            _ => self.limit.map(Mode::Limit),
        }
    }
}

/// Two clock reads cost as much as some calls: 1 of 16 makes that a small part of the process's
/// time.
const LATENCY_EVERY: &str = "16";

fn every(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=1_000_000) => Ok(number),
        _ => Err("expected a number from 1 to 1000000 (a suite goes before --latency)".into()),
    }
}

/// Runs `heapmark run`.
pub fn run(command: RunArgs) -> Result<Exit> {
    go(&command.args.comparison, || Selection::of_flags(&command))
}

/// Measures what an earlier run left to do, or a selection made by any command, and prints the results.
pub fn go(args: &Comparison, select: impl FnOnce() -> Result<Selection>) -> Result<Exit> {
    // What could be neither kept nor printed in the end is refused before anything is built or measured.
    if let Some(dir) = &args.output {
        store::may_begin(dir).map_err(usage)?;
    }
    surroundings::stdout()?;
    let root = Root::find().map_err(usage)?;
    // The machine is inspected before the allocators are built, which may take minutes.
    if args.strict && is_refused(&Preflight::look(&root, When::Before)) {
        return Ok(Exit::Warned);
    }
    let mut selection = match &args.resume {
        Some(run) => Selection::of_stored(run)?,
        None => select()?,
    };
    if args.dry_run {
        return plan_only(&selection, args);
    }
    if args.resume.is_some() {
        piped_input::take_up(&mut selection.plan.cases)?;
    }
    if selection.plan.mode.limit() == Some(LimitKind::Cgroup)
        && let Err(why) = Groups::for_limits(&root)
    {
        refuse!(
            "--limit cgroup: {why}: start heapmark by `systemd-run --user --scope heapmark ...` or as root, or take --limit data"
        );
    }
    // The machine is inspected again after building, before the first process.
    let look = Preflight::look(&root, When::Before);
    if args.strict && is_refused(&look) {
        return Ok(Exit::Warned);
    }
    knows(&selection.plan).map_err(usage)?;
    let guest = Guest::find()?;
    let stop = stop_on_signals();
    if let Some(id) = &args.cell {
        let known = match &args.resume {
            Some(run) => store::read(&store::find(run)?)?.records,
            None => Vec::new(),
        };
        return single_cell::run(guest, selection, known, id, stop);
    }
    let stored = match &args.resume {
        Some(run) => Stored::of_earlier(run)?,
        None => Stored::begin(&selection, &guest, args.output.as_deref())?,
    };
    let dir = stored.store.dir().to_owned();
    let plan = &selection.plan;
    let more = if plan.most_blocks() > plan.blocks {
        ", or more"
    } else {
        ""
    };
    note(format!(
        "{}{more} processes in {}",
        plan.cells().len() + plan.checks().len(),
        dir.display()
    ));
    note(report::warnings(&look.warnings()));
    stored.store.keep_preflight(When::Before, look)?;
    if let Some(prices) = Prices::measure(&root) {
        report::price_warning(&prices).iter().for_each(note);
        stored.store.keep_prices(prices)?;
    }
    let timed = plan.mode.spec().plain;
    let ended = match measure(guest, selection, stored, stop, &root, args.check_again) {
        Err(error) if is_of_disk(&error).is_some() => {
            print_results(&dir, args)?;
            return Err(error);
        }
        ended => ended?,
    };
    let all_ok = print_results(&dir, args)?;
    if timed {
        note(share(&ended));
    }
    if !ended.whole {
        if args.part_of == PartOf::Nothing {
            say!(
                "interrupted; what was measured is stored: heapmark run --resume {} goes on",
                dir.display()
            );
        }
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::NotAllOk.when(!all_ok))
}

/// Runs a selection that another command plans, in a new directory; returns what is stored, and
/// whether the run was completed. `name` takes the place of a suite's name.
pub fn nested(
    name: &str,
    plan: Plan,
    subjects: Vec<Subject>,
    output: Option<PathBuf>,
) -> Result<(Run, bool)> {
    knows(&plan).map_err(usage)?;
    let selection = Selection::of_parts(name, plan, subjects);
    let guest = Guest::find()?;
    let root = Root::find().map_err(usage)?;
    let stored = Stored::begin(&selection, &guest, output.as_deref())?;
    let look = Preflight::look(&root, When::Before);
    stored.store.keep_preflight(When::Before, look)?;
    if let Some(prices) = Prices::measure(&root) {
        stored.store.keep_prices(prices)?;
    }
    let dir = stored.store.dir().to_owned();
    let ended = measure(guest, selection, stored, stop_on_signals(), &root, false)?;
    Ok((store::read(&dir)?, ended.whole))
}

/// The directory of a run, and what an earlier session has left in it.
struct Stored {
    store: Store,
    head: RunFile,
    known: Vec<Record>,
}

impl Stored {
    /// Creates a run directory: the one that the user named, or one named after the date.
    fn begin(selection: &Selection, guest: &Guest, dir: Option<&Path>) -> Result<Stored> {
        let head = selection.head(guest)?;
        let dir = match dir {
            Some(dir) => dir.to_path_buf(),
            None => store::fresh(&today())
                .map_err(|error| usage(anyhow!("{error:#}; -o names another place")))?,
        };
        Ok(Stored {
            store: Store::create(&dir, &head).map_err(usage)?,
            head,
            known: Vec::new(),
        })
    }

    /// Opens the directory of an earlier run.
    fn of_earlier(run: &str) -> Result<Stored> {
        let dir = store::find(run)?;
        let store = Store::open(&dir)?;
        let stored = store::read(&dir)?;
        say_damage(&dir, &stored);
        Ok(Stored {
            store,
            head: stored.head,
            known: stored.records,
        })
    }
}

/// Runs a selection to its end, with its progress on stderr.
fn measure(
    guest: Guest,
    selection: Selection,
    stored: Stored,
    stop: Arc<AtomicBool>,
    root: &Root,
    check_again: bool,
) -> Result<Ended> {
    let selection = Arc::new(selection);
    let plan = &selection.plan;
    let mut progress = TerminalProgress::new(plan.checks().len() + plan.cells().len());
    let processes = Processes::new(guest, selection.clone(), stop);
    let ended = Session::new(selection, processes, Some(stored.store), stored.known)
        .checking_again(check_again)
        .run(&stored.head, root, &mut progress);
    progress.finish();
    match ended {
        Err(error) if error.is::<DoesNotRun>() => Err(usage(error)),
        ended => ended,
    }
}

/// Prints what a run would do, and does nothing.
fn plan_only(selection: &Selection, args: &Comparison) -> Result<Exit> {
    let dir = match (&args.resume, &args.output) {
        (Some(run), _) => store::find(run)?,
        (None, Some(dir)) => dir.clone(),
        (None, None) => Path::new(RESULTS).join(format!("{}-N", today())),
    };
    print(outline::outline(selection, args, &dir))?;
    let mut end = Exit::Done;
    for subject in &selection.subjects {
        if let Some(outcome) = &subject.refused {
            let why = outcome.reason();
            say!("{} cannot be measured: {why}", subject.allocator.name);
            end = Exit::NotAllOk;
        }
    }
    Ok(end)
}

/// The share of the time that was spent measuring.
fn share(ended: &Ended) -> String {
    let took_s = ended.took.as_secs_f64();
    let share = if took_s > 0.0 {
        ended.measured.as_secs_f64() / took_s
    } else {
        0.0
    };
    format!(
        "measured phases: {} of {took_s:.1} s (the rest: starts, proofs, calibration, checked processes, the store)",
        units::percent(share)
    )
}

/// Whether `--strict` refuses this machine; prints why.
fn is_refused(look: &Preflight) -> bool {
    if look.warnings().is_empty() {
        return false;
    }
    for item in look.in_state(ItemState::Warning) {
        let found = item.found.as_deref().unwrap_or("not told");
        say!(
            "{}: {found}: {}; change: {}",
            item.name,
            item.means,
            item.change
        );
    }
    say!(
        "heapmark: {}; nothing was measured because of --strict",
        report::warnings(&look.warnings())
    );
    true
}

/// Prints the matrix of all cases, or the tables, to stdout and writes them as text and as a page into the run directory;
/// returns whether every process ended `ok`. What was measured is printed first: the disk may have no room for the page.
fn print_results(dir: &Path, args: &Comparison) -> Result<bool> {
    let format = args.format;
    let prints = args.part_of != PartOf::History;
    let run = store::read_for_tables(dir, Paths::Published, reads_figure)?;
    if prints && format == AnswerFormat::Json {
        let run = store::read_for_tables(dir, Paths::Published, |_| true)?;
        export::write(&Output::stdout(), Format::Json, &run)?;
    } else if prints {
        let analysis = analyse(&run.head, &run.records);
        let tables = render::terminal(&report::first_screen(&run.head, &analysis), screen());
        print(format!("\n{tables}"))?;
    }
    beside(dir, &run)?;
    let text = report::export(Format::Markdown, &run.head, &run.records)?;
    store::keep(dir, "report.md", text.bytes)?;
    // A shard of a campaign moves to where it is kept.
    if prints && format != AnswerFormat::Json && args.part_of != PartOf::Campaign {
        print(what_next(dir))?;
    }
    Ok(all_ok(&run))
}

/// Whether nothing failed. What this machine lacks is not a failure, unless nothing else is left of
/// a workload that the user named.
pub fn all_ok(run: &Run) -> bool {
    let mut judged = run
        .records
        .iter()
        .filter(|record| !matches!(record.purpose, Purpose::Control | Purpose::Corners));
    let ended_well = judged.all(|record| !record.has_failed() || record.outcome.is_absent());
    let is_there = |name: &String| {
        let mut records = run
            .records
            .iter()
            .filter(|record| record.workload == *name)
            .peekable();
        records.peek().is_none() || records.any(|record| !record.outcome.is_absent())
    };
    ended_well && run.head.plan.named.iter().all(is_there)
}

/// Returns a flag that signals set. The flag is set already if a signal came before, since a command may do several things one after the
/// other.
pub fn stop_on_signals() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    signals::answer(Answer::Stop(Arc::clone(&stop)));
    stop.fetch_or(has_stopped(), Ordering::SeqCst);
    stop
}

/// The UTC date, for names of run directories.
pub fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}
