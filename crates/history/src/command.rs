//! `heapmark history`: measures what is not measured yet, and reports all of it.

use crate::attempted::Attempted;
use crate::folder::{History, Part, SeriesVersion, run_in};
use crate::report;
use crate::series;
use crate::unchanged::{
    refuse_changed, refuse_elsewhere, refuse_other_command, refuse_other_libraries,
    refuse_other_work,
};
use anyhow::Result;
use clap::ValueEnum;
use heapmark_core::analyse::compare::Side;
use heapmark_core::build::{rejoined, user};
use heapmark_core::catalog::{Allocator, Catalog, Source, joined};
use heapmark_core::cmd::output::AnswerFormat;
use heapmark_core::cmd::run::comparison::{PartOf, budget, listed, percent};
use heapmark_core::cmd::run::resolve::{named, resolve};
use heapmark_core::cmd::run::{self as run_command, RunArgs};
use heapmark_core::cmd::try_command::{self, TryArgs};
use heapmark_core::cmd::{Exit, catalog, note, parsed, print, screen, usage};
use heapmark_core::file::{self, WithPath};
use heapmark_core::plan::Counter;
use heapmark_core::report::render;
use heapmark_core::session::Selection;
use heapmark_core::store::{self, Run, RunFile};
use std::fs;
use std::path::{Path, PathBuf};

/// Compare all releases of an allocator: what changed, and between which two
///
/// Every release is measured beside the newest one. The directory grows: the same command with more
/// releases measures those only, and after an interruption it goes on.
#[derive(clap::Args)]
pub struct HistoryArgs {
    /// Family of allocators, of which `heapmark list releases` shows the releases
    #[arg(required_unless_present = "builds", value_name = "FAMILY")]
    family: Option<String>,
    /// Its releases, both ends included [default: all that can be had]
    #[arg(long, value_name = "A..B", conflicts_with = "builds")]
    versions: Option<String>,
    /// In place of a family: builds of yours, the oldest first, as NAME=/path/lib.so or NAME=git:PATH@REF
    #[arg(short = 'a', long = "allocators", value_name = "A,...", value_delimiter = ',', value_parser = listed, conflicts_with = "family")]
    builds: Vec<String>,
    /// Workloads: names or patterns from `heapmark list workloads`, or trace:FILE [default: those of suite
    /// quick]
    #[arg(short, long, value_name = "GLOB,...", value_delimiter = ',', value_parser = listed, conflicts_with = "command")]
    workloads: Vec<String>,
    /// Thread counts; `all` is the number of usable CPUs [default: the suite's]
    #[arg(short, long, value_name = "N,...", value_delimiter = ',', value_parser = listed, conflicts_with = "command")]
    threads: Vec<String>,
    /// Set a parameter of a workload
    #[arg(
        long,
        value_name = "WORKLOAD.PARAMETER=VALUE",
        conflicts_with = "command"
    )]
    set: Vec<String>,
    /// Also measure libraries that pass calls on to libc
    #[arg(long, conflicts_with = "command")]
    allow_forwarding: bool,
    /// Measure memory instead of time
    #[arg(long, conflicts_with = "command")]
    retained: bool,
    /// Count events per operation instead of timing, as in `heapmark run`
    #[arg(long, value_name = "COUNTER", conflicts_with_all = ["command", "retained"])]
    counter: Option<Counter>,
    /// Number of blocks: how often each version runs each workload [default: that of run or try]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    blocks: Option<u32>,
    /// Start no block that would end after this time: 90s, 5min, 2h
    #[arg(long, value_name = "TIME", value_parser = time_limit, conflicts_with_all = ["retained", "counter"])]
    budget: Option<String>,
    /// Differences up to this are too small to matter
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "1%")]
    threshold: f64,
    /// Directory of the history [default: heapmark-history/FAMILY]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What is printed at the end
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: AnswerFormat,
    /// A command of yours instead of workloads, as in `heapmark try`
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// A time limit as it was typed: the command that it is passed on to parses it again.
fn time_limit(text: &str) -> Result<String, String> {
    budget(text).map(|_| text.to_owned())
}

/// Where histories are stored unless `-o` says otherwise.
const HISTORIES: &str = "heapmark-history";

/// Runs the command.
pub fn run(args: HistoryArgs) -> Result<Exit> {
    let catalog = catalog()?;
    let words = match &args.family {
        Some(family) => {
            let versions = args.versions.as_deref().unwrap_or("..");
            vec![format!("{family}@{versions}")]
        }
        None => rejoined(&args.builds),
    };
    let asked = asked(&words, catalog)?;
    let family = args.family.clone().unwrap_or_default();
    let dir = args.output.clone().unwrap_or_else(|| {
        let name = match family.as_str() {
            "" => "own",
            name => name,
        };
        Path::new(HISTORIES).join(name)
    });
    let mut history = opened(&dir, family, work(&args), &args.command)?;
    let length = Length {
        blocks: args.blocks,
        budget: args.budget.clone(),
    };
    let runs_before = history.runs.len();
    let exit = grow(&mut history, &asked, &dir, &length)?;
    if !matches!(exit, Exit::Interrupted) {
        if history.runs.len() == runs_before {
            note_idle(&args);
        }
        tell(&history, &dir, &args)?;
    }
    Ok(exit)
}

/// Reports flags that changed nothing, since nothing new was measured.
fn note_idle(args: &HistoryArgs) {
    let given = [
        ("--blocks", args.blocks.is_some()),
        ("--budget", args.budget.is_some()),
    ];
    let flags = given.iter().filter(|(_, is_given)| *is_given);
    let flags = joined(flags.map(|(flag, _)| *flag), " and ");
    if !flags.is_empty() {
        note(format!(
            "{flags}: without effect, since nothing new is measured"
        ));
    }
}

/// How long each run of a history is.
pub struct Length {
    /// Blocks, if they are given.
    pub blocks: Option<u32>,
    /// The time after which no block starts, as it was typed.
    pub budget: Option<String>,
}

/// The history in a directory, or a new one; refuses a history of other work.
pub fn opened(
    dir: &Path,
    family: String,
    work: Vec<String>,
    command: &[String],
) -> Result<History> {
    // A history whose first run was refused has measured nothing.
    let read = History::read(dir).map_err(usage)?;
    let has_others = |dir: &Path| fs::read_dir(dir).is_ok_and(|mut all| all.next().is_some());
    if read.is_none() && has_others(dir) {
        refuse!(
            "{} has other files, and no history: choose another directory with -o",
            dir.display()
        );
    }
    let Some(history) = read.filter(|history| !history.runs.is_empty()) else {
        return Ok(History::new(family, work, command.to_vec()));
    };
    if history.family != family {
        refuse!(
            "{} is a history of {}: choose another with -o",
            dir.display(),
            history.of_what()
        );
    }
    if history.work != work || history.command != command {
        let measured = [&history.work[..], &["--".into()], &history.command].concat();
        refuse!(
            "{} is a history of other work ({}): choose another with -o, or give the same flags",
            dir.display(),
            measured.join(" ")
        );
    }
    Ok(history)
}

/// Resumes an interrupted run, and measures those of the versions `asked` that are new.
pub fn grow(
    history: &mut History,
    asked: &[SeriesVersion],
    dir: &Path,
    length: &Length,
) -> Result<Exit> {
    if let Some((older, newer)) = history.disordered(asked) {
        refuse!(
            "-a: {older} is older than {newer} in {}: name the oldest first",
            dir.display()
        );
    }
    let mut exit = Exit::Done;
    let last = history.runs.len().checked_sub(1);
    if let Some(last) = last.filter(|last| !history.runs[*last].whole) {
        let run = run_in(dir, last);
        note(format!("{} was interrupted: it goes on", run.display()));
        exit = worse(exit, resumed(&run)?);
        if matches!(exit, Exit::Interrupted) {
            return Ok(interrupted(dir));
        }
        history.runs[last].whole = true;
        history.keep(dir)?;
    }
    let attempted = Attempted::of(&sides(&runs(history, dir)?));
    let (again, mut new): (Vec<&SeriesVersion>, Vec<&SeriesVersion>) = asked
        .iter()
        .partition(|version| attempted.is_known(&version.name));
    refuse_changed(history, asked, dir)?;
    refuse_missing(&new)?;
    for version in new.clone() {
        if history.has_tried(version) && !is_ready(version)? {
            new.retain(|other| other != &version);
            exit = worse(exit, Exit::NotAllOk);
        }
    }
    if new.is_empty() {
        return Ok(exit);
    }
    let bridges: Vec<String> = bridges(history, &attempted).cloned().collect();
    // Bridges that were not asked for keep the words that were given last.
    let is_asked = |name: &String| again.iter().any(|version| version.name == *name);
    let beside = history
        .versions
        .iter()
        .filter(|version| bridges.contains(&version.name) && !is_asked(&version.name));
    refuse_changed(history, beside, dir)?;
    let before = last.map(|last| store::head(&run_in(dir, last)));
    let before = before.transpose()?;
    if let Some(before) = &before {
        refuse_elsewhere(before, dir)?;
        refuse_other_command(before, &history.command, dir)?;
    }
    // A reference without numbers compares nothing, and would not in later runs.
    if !attempted.is_measured(&history.reference) {
        let newest = new.last().map(|version| version.name.clone());
        history.reference = newest.unwrap_or_default();
    }
    history.add(asked);
    let names = new.iter().map(|version| &version.name);
    let measured: Vec<String> = names.chain(&bridges).cloned().collect();
    if measured.len() < 2 {
        if !history.runs.is_empty() {
            note(format!(
                "{} alone has nothing to be compared with: no other version has numbers",
                measured[0]
            ));
            return Ok(worse(exit, Exit::NotAllOk));
        }
        refuse!(
            "{} alone has no history: name two releases or more",
            measured[0]
        );
    }
    if !bridges.is_empty() {
        note(format!(
            "measures {}; {} of the earlier ones beside, to see whether this machine still says the same",
            joined(new.iter().map(|version| &version.name), ", "),
            bridges.len()
        ));
    }
    history.runs.push(Part {
        versions: measured,
        whole: false,
    });
    // Stored before the run, so that an interrupted run is found again.
    history.keep(dir)?;
    let place = history.runs.len() - 1;
    exit = worse(exit, measure(history, place, dir, length, before.as_ref())?);
    if matches!(exit, Exit::Interrupted) {
        return Ok(interrupted(dir));
    }
    history.runs[place].whole = true;
    history.keep(dir)?;
    Ok(exit)
}

/// The versions that are asked for, the oldest first.
pub fn asked(words: &[String], catalog: &Catalog) -> Result<Vec<SeriesVersion>> {
    let mut asked: Vec<SeriesVersion> = Vec::new();
    for word in words {
        let is_own = user(word, &catalog.allocators).map_err(usage)?.is_some();
        for (allocator, _) in named(std::slice::from_ref(word), &[], None, catalog)? {
            let name = allocator.name;
            if asked.iter().any(|known| known.name == name) {
                refuse!("-a: {name} is there twice: a history has each version once");
            }
            // Each version in a list or a range is a word of its own.
            let word = if is_own { word.clone() } else { name.clone() };
            asked.push(SeriesVersion { name, word });
        }
    }
    Ok(asked)
}

/// The arguments of `heapmark run` that are the same in all runs of a history.
pub fn work(args: &HistoryArgs) -> Vec<String> {
    let mut work = Vec::new();
    let mut flag = |name: &str, values: &[String]| {
        if !values.is_empty() {
            work.extend([name.to_owned(), values.join(",")]);
        }
    };
    flag("-w", &args.workloads);
    flag("-t", &args.threads);
    for set in &args.set {
        flag("--set", std::slice::from_ref(set));
    }
    for (flag, is_given) in [
        ("--allow-forwarding", args.allow_forwarding),
        ("--retained", args.retained),
    ] {
        if is_given {
            work.push(flag.into());
        }
    }
    if let Some(value) = args.counter.and_then(|counter| counter.to_possible_value()) {
        work.extend(["--counter".to_owned(), value.get_name().to_owned()]);
    }
    work
}

/// The versions that are measured again beside new ones: the reference, and the oldest other one, if they have numbers.
fn bridges<'h>(history: &'h History, attempted: &Attempted) -> impl Iterator<Item = &'h String> {
    let reference = Some(&history.reference).filter(|name| attempted.is_measured(name));
    let mut names = history.versions.iter().map(|version| &version.name);
    let oldest = names.find(|name| attempted.is_measured(name) && **name != history.reference);
    reference
        .into_iter()
        .chain(oldest.filter(|_| reference.is_some()))
}

/// Refuses libraries of the user's that are not there, before anything of them is stored.
fn refuse_missing(versions: &[&SeriesVersion]) -> Result<()> {
    let known = &catalog()?.allocators;
    for SeriesVersion { word, .. } in versions {
        let own = user(word, known).map_err(usage)?;
        if let Some(Source::Path { files }) = own.map(|allocator| allocator.source)
            && let Some(file) = files.iter().find(|file| !file.is_file())
        {
            refuse!("-a {word}: there is no {}: check the path", file.display());
        }
    }
    Ok(())
}

/// Whether a version that could not be measured before can be now; if not, prints why.
fn is_ready(version: &SeriesVersion) -> Result<bool> {
    let catalog = catalog()?;
    let chosen = named(std::slice::from_ref(&version.word), &[], None, catalog)?;
    let subjects = resolve(chosen, catalog, false)?;
    Ok(subjects.iter().all(|subject| subject.refused.is_none()))
}

/// Measures a new part of a history, whose work must be that of the run `before` it.
fn measure(
    history: &History,
    place: usize,
    dir: &Path,
    length: &Length,
    before: Option<&RunFile>,
) -> Result<Exit> {
    let part = &history.runs[place].versions;
    let versions = history
        .versions
        .iter()
        .filter(|version| part.contains(&version.name));
    let words = joined(versions.map(|version| &version.word), ",");
    let mut line = history.work.clone();
    line.extend([
        "-a".into(),
        words,
        "--baseline".into(),
        history.reference.clone(),
    ]);
    let blocks = length.blocks.map(|blocks| blocks.to_string());
    for (flag, value) in [("--blocks", &blocks), ("--budget", &length.budget)] {
        if let Some(value) = value {
            line.extend([flag.to_owned(), value.clone()]);
        }
    }
    let output = Some(run_in(dir, place));
    if history.command.is_empty() {
        // Without allocations, allocators do not differ, but whole C libraries do.
        if !is_of_c_libraries(history)? {
            line.push("--no-floor".into());
        }
        let mut run: RunArgs = parsed(&line)?;
        run.args.comparison.output = output;
        run.args.comparison.part_of = PartOf::History;
        return run_command::go(&run.args.comparison, || {
            comparable(Selection::of_flags(&run)?, before, dir)
        });
    }
    line.push("--".into());
    line.extend(history.command.iter().cloned());
    let mut run: TryArgs = parsed(&line)?;
    run.comparison.output = output;
    run.comparison.part_of = PartOf::History;
    run_command::go(&run.comparison, || {
        comparable(try_command::selection(&run)?, before, dir)
    })
}

/// Returns the selection, unless its work or its libraries differ from those of the run `before`
/// it.
fn comparable(selection: Selection, before: Option<&RunFile>, dir: &Path) -> Result<Selection> {
    if let Some(before) = before {
        refuse_other_work(before, &selection.plan.cases, dir)?;
        refuse_other_libraries(before, &selection.subjects, dir)?;
    }
    Ok(selection)
}

/// Whether the history's versions are whole C libraries.
fn is_of_c_libraries(history: &History) -> Result<bool> {
    let words: Vec<String> = history
        .versions
        .iter()
        .map(|version| version.word.clone())
        .collect();
    let all = named(&words, &[], Some(true), catalog()?)?;
    let is_one =
        |(allocator, _): &(Allocator, bool)| matches!(allocator.source, Source::Deb { .. });
    Ok(all.iter().any(is_one))
}

/// Resumes a run.
fn resumed(run: &Path) -> Result<Exit> {
    let line = ["--resume".to_owned(), run.display().to_string()];
    let mut run: RunArgs = parsed(&line)?;
    run.args.comparison.part_of = PartOf::History;
    run_command::run(run)
}

/// Returns the worse of the ends of two runs.
pub fn worse(one: Exit, other: Exit) -> Exit {
    match (one, other) {
        (Exit::Done, other) => other,
        (one, Exit::Done) => one,
        (_, other) => other,
    }
}

fn interrupted(dir: &Path) -> Exit {
    say!(
        "interrupted; what was measured is stored in {}: the same command goes on",
        dir.display()
    );
    Exit::Interrupted
}

/// The stored runs of a history.
pub fn runs(history: &History, dir: &Path) -> Result<Vec<Run>> {
    let dirs = (0..history.runs.len()).map(|place| run_in(dir, place));
    dirs.map(|dir| store::read(&dir)).collect()
}

/// The sides of a comparison that stored runs are.
pub fn sides(runs: &[Run]) -> Vec<Side<'_>> {
    let sides = runs.iter().map(|run| Side {
        head: &run.head,
        records: &run.records,
    });
    sides.collect()
}

/// Prints what all runs show, and writes the page.
fn tell(history: &History, dir: &Path, args: &HistoryArgs) -> Result<()> {
    let runs = runs(history, dir)?;
    let versions = history.versions.iter();
    let names: Vec<String> = versions.map(|version| version.name.clone()).collect();
    let results = series::told(&sides(&runs), &names, args.threshold);
    let heads = (0..runs.len()).map(|place| store::head_of(&run_in(dir, place)));
    let page = dir.join("history.html");
    let text = report::page(history, &results, &runs);
    file::replace(&page, text.as_bytes(), file::mode_of(heads)).with_path("cannot write", &page)?;
    match args.format {
        AnswerFormat::Json => print(report::json(history, &results))?,
        AnswerFormat::Text => {
            let tables = render::terminal(&report::told(history, &results, &runs), screen());
            print(format!("\n{tables}"))?;
            note(format!("lines over releases: {}", page.display()));
        }
    }
    Ok(())
}
