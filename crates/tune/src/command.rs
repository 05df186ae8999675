//! `heapmark tune`: reads the flags, searches, and prints what was found.

use crate::copied;
use crate::judged::{AtMost, Goal};
use crate::page;
use crate::report::{self, TuneReport};
use crate::rounds::{Load, LookedAt, MODE, Rounds, TunedWork, Tuning};
use crate::search::{Tuned, Wanted, tune};
use crate::setting::{Setting, knobs, settings};
use anyhow::{Context, Result};
use clap::ValueEnum;
use heapmark_core::build::command::{as_a_shell_starts, linked, name_of, recognise_command};
use heapmark_core::build::libc_version;
use heapmark_core::catalog::Catalog;
use heapmark_core::cmd::output::AnswerFormat;
use heapmark_core::cmd::run::comparison::{budget, listed};
use heapmark_core::cmd::run::resolve::{must_be_ready, named, put_libc_first, resolve};
use heapmark_core::cmd::try_command::must_be_read_again;
use heapmark_core::cmd::{
    Exit, catalog, described_machine, note, parsed, print, print_json, screen, usage,
};
use heapmark_core::execute::{Interrupted, Subject};
use heapmark_core::file::{self, WithPath};
use heapmark_core::observe::machine;
use heapmark_core::plan::{Case, Plan};
use heapmark_core::report::render;
use heapmark_core::report::text::list;
use heapmark_core::session::Selection;
use heapmark_core::store::run::OF_MACHINE;
use heapmark_which::reads;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Find the allocator settings that help your program: raced, and confirmed in new pairs; those without effect are named
///
/// Settings come from the entries of `heapmark list allocators`. All are compared with the first allocator as it is, without
/// settings.
#[derive(clap::Args)]
pub struct TuneArgs {
    /// Allocators whose settings are tried: names from `heapmark list allocators`; the first one is what the program has now
    #[arg(short, long, value_name = "A,...", value_delimiter = ',', value_parser = listed, default_value = "glibc")]
    allocators: Vec<String>,
    /// What to reduce
    #[arg(long = "for", value_name = "GOAL", default_value = "time")]
    goal: Goal,
    /// A limit on another goal, as a ratio to the default: memory=0.8, time=1.02
    #[arg(long, value_name = "GOAL=RATIO", value_parser = at_most)]
    at_most: Option<AtMost>,
    /// How long the whole tuning may take: 90s, 15min
    #[arg(long, value_name = "TIME", value_parser = budget, default_value = "15min")]
    budget: Duration,
    /// Confirm on this command, in quotes: the same program with another input or, for a server, another client [default: the
    /// same again]
    #[arg(long, value_name = "CMD")]
    held_out: Option<String>,
    /// Tune a workload of `heapmark list workloads`, or trace:FILE; with a command after `--`, search on that trace of the
    /// command, and confirm on the command
    #[arg(short, long, value_name = "NAME", conflicts_with = "server")]
    workload: Option<String>,
    /// Threads of the workload
    #[arg(short, long, value_name = "N")]
    threads: Option<String>,
    /// Tune a server instead, as `heapmark try` measures one
    #[arg(long, value_name = "CMD", requires_all = ["client", "ready"], conflicts_with_all = ["command", "expect_exit"])]
    server: Option<String>,
    /// Command that drives the server and is timed
    #[arg(long, value_name = "CMD", requires = "server")]
    client: Option<String>,
    /// Port or Unix socket that answers when the server is ready, or `started`
    #[arg(long, value_name = "PORT|PATH", requires = "server")]
    ready: Option<String>,
    /// Also try this variable, such as one from a web page
    #[arg(long, value_name = "VAR=VALUE", value_parser = variable)]
    also: Vec<(String, String)>,
    /// Judge by a number that the command prints, as in `heapmark try`
    #[arg(long, value_name = "NAME:BETTER[:UNIT]=REGEX")]
    value: Option<String>,
    /// The exit code that the command is expected to end with [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=255))]
    expect_exit: Option<i32>,
    /// A command for sh before each process; it is not timed
    #[arg(long, value_name = "CMD")]
    prepare: Option<String>,
    /// File for the command's stdin [default: nothing]
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Directory of the tuning; the same command resumes it [default: heapmark-tune/NAME]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What is printed at the end
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: AnswerFormat,
    /// The command and its arguments
    #[arg(last = true, required_unless_present_any = ["workload", "server"], value_name = "CMD")]
    command: Vec<String>,
}

/// Where tunings are stored unless `-o` says otherwise.
const TUNINGS: &str = "heapmark-tune";

/// Parses a limit on another goal: `memory=0.8`.
fn at_most(text: &str) -> Result<AtMost, String> {
    let known = || {
        let (goal, ratio) = text.trim().split_once([' ', '='])?;
        let goal = Goal::from_str(goal, false).ok()?;
        let ratio: f64 = ratio.trim().parse().ok()?;
        (0.01..=100.0)
            .contains(&ratio)
            .then_some(AtMost { goal, ratio })
    };
    known().ok_or_else(|| "expected time, memory or idle, and a ratio: memory=0.8".into())
}

/// Parses an environment variable: `VAR=VALUE`.
fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && name != "LD_PRELOAD" => {
            Ok((name.into(), value.into()))
        }
        Some(("LD_PRELOAD", _)) => Err("-a names allocators".into()),
        _ => Err("expected VAR=VALUE".into()),
    }
}

/// Runs the command.
pub fn run(args: TuneArgs) -> Result<Exit> {
    let catalog = catalog()?;
    let wanted = wanted(&args)?;
    refuse_unused(&args)?;
    let folder = std::env::current_dir().context("cannot tell where this is")?;
    let looked_at = looked_at(&args, &folder)?;
    let (workload, workload_name) = workload(&args)?.unzip();
    let (search, confirm) = loads(&args, workload)?;
    // Wrong flags are refused before any process starts.
    search.must_be_taken()?;
    confirm.must_be_taken()?;
    let name = match &looked_at {
        Some(program) => {
            let file = Path::new(name_of(&program.command)).file_name();
            file.unwrap_or_default().to_string_lossy().into_owned()
        }
        None => workload_name.unwrap_or_else(|| "server".into()),
    };
    let (words, mut subjects) = allocators(&args.allocators, catalog)?;
    // Otherwise the library that the program is linked to would serve the looks, and not the rounds.
    if let Some((program, library)) = linked_to(&args, &folder)? {
        put_libc_first(&mut subjects)?;
        note(format!(
            "{program} is linked to {library}: each allocator of -a serves in its place, glibc too"
        ));
    }
    let work = TunedWork {
        looked_at,
        search,
        confirm,
        prepare: args.prepare.clone(),
        baseline: words[&subjects[0].allocator.name].clone(),
        words,
    };
    let dir = args
        .output
        .clone()
        .unwrap_or_else(|| Path::new(TUNINGS).join(&name));
    let defaults: Vec<Setting> = subjects
        .iter()
        .map(|subject| Setting::none(&subject.allocator.name))
        .collect();
    let all = entries(&args.also, &subjects, catalog);
    let held_out = held_out(&args, &folder)?;
    let of = Tuning {
        asked: asked(&args, &folder),
        surroundings: surroundings(&args, &subjects, &all, &folder),
        budget_s: wanted.budget_s,
    };
    let mut rounds = Rounds::opened(&dir, of, work, subjects.clone(), catalog)?;
    let confirms = held_out.map_or(Ok(None), |command| rounds.held_out(&command));
    let tuned = confirms.and_then(|confirms| {
        let wanted = Wanted { confirms, ..wanted };
        tune(&defaults, all, &wanted, &mut rounds, &mut note)
    });
    let tuned = match tuned {
        Err(error) if error.is::<Interrupted>() => {
            say!(
                "interrupted; what was measured is stored in {}: the same command goes on",
                dir.display()
            );
            return Ok(Exit::Interrupted);
        }
        tuned => tuned?,
    };
    tell(&args, &tuned, &subjects, &rounds, &dir)?;
    Ok(Exit::Done)
}

/// Refuses flags that would have no effect.
fn refuse_unused(args: &TuneArgs) -> Result<()> {
    if args.threads.is_some() && args.workload.is_none() {
        refuse!("--threads: of a workload (-w): other programs have the threads that they start");
    }
    if args.workload.is_none() || !args.command.is_empty() {
        return Ok(());
    }
    let of_commands = [
        ("--held-out", args.held_out.is_some()),
        ("--value", args.value.is_some()),
        ("--expect-exit", args.expect_exit.is_some()),
        ("--prepare", args.prepare.is_some()),
        ("--stdin", args.stdin.is_some()),
    ];
    if let Some((flag, _)) = of_commands.iter().find(|(_, is_given)| *is_given) {
        refuse!("{flag}: a workload has none: it is for a command behind `--`");
    }
    Ok(())
}

/// Returns the command that is tuned, if there is one.
fn looked_at(args: &TuneArgs, folder: &Path) -> Result<Option<LookedAt>> {
    match args.command.is_empty() {
        true => Ok(None),
        false => command(args, &args.command, folder).map(Some),
    }
}

/// Returns the program that is tuned, and the library with a malloc that it is linked to, if there is one.
fn linked_to(args: &TuneArgs, folder: &Path) -> Result<Option<(String, String)>> {
    let words = match &args.server {
        Some(line) => words_of("--server", line)?,
        None => args.command.clone(),
    };
    if words.is_empty() {
        return Ok(None);
    }
    let recognised = recognise_command(&started(&words, folder)?, folder);
    let library = linked(recognised.program()).serves;
    Ok(library.map(|library| (recognised.program().display().to_string(), library)))
}

/// Returns the command that confirms, if it is not the tuned one; `None` for a server, which
/// another client confirms.
fn held_out(args: &TuneArgs, folder: &Path) -> Result<Option<LookedAt>> {
    let Some(line) = &args.held_out else {
        return Ok(None);
    };
    let words = words_of("--held-out", line)?;
    match args.server {
        // It runs only beside its server, but it must be there.
        Some(_) => started(&words, folder).map(|_| None),
        None => command(args, &words, folder).map(Some),
    }
}

/// Returns the words of a command as a shell would start it.
fn started(words: &[String], folder: &Path) -> Result<Vec<OsString>> {
    let words = words.iter().map(OsString::from).collect();
    as_a_shell_starts(words, folder).map_err(usage)
}

fn command(args: &TuneArgs, words: &[String], folder: &Path) -> Result<LookedAt> {
    let command = started(words, folder)?;
    let recognised = recognise_command(&command, folder);
    if let Some(why) = &recognised.unreachable {
        refuse!(
            "{}: {why}: no setting reaches it from outside",
            recognised.program().display()
        );
    }
    let stdin = folder.join(stdin(args));
    must_be_read_again(&stdin).map_err(usage)?;
    Ok(LookedAt {
        command,
        stdin,
        expect_exit: args.expect_exit.unwrap_or_default(),
    })
}

/// Splits the value of a flag into words.
fn words_of(flag: &str, line: &str) -> Result<Vec<String>> {
    let words = shlex::split(line).filter(|words| !words.is_empty());
    words
        .with_context(|| format!("{flag} {line:?}: no command, or a quote that does not end"))
        .map_err(usage)
}

fn stdin(args: &TuneArgs) -> &Path {
    args.stdin.as_deref().unwrap_or(Path::new("/dev/null"))
}

/// Returns what the search measures, and what the confirmation measures.
fn loads(args: &TuneArgs, workload: Option<Load>) -> Result<(Load, Load)> {
    if let Some(workload) = workload.clone().filter(|_| args.command.is_empty()) {
        return Ok((workload.clone(), workload));
    }
    let exit = args.expect_exit.map(|code| code.to_string());
    let stdin = stdin(args).display().to_string();
    let flags = given(&[
        ("--value", args.value.as_ref()),
        ("--prepare", args.prepare.as_ref()),
        ("--expect-exit", exit.as_ref()),
        ("--stdin", Some(&stdin)),
        ("--server", args.server.as_ref()),
        ("--ready", args.ready.as_ref()),
    ]);
    let tried = |words: Vec<String>| Load::Tried([flags.clone(), words].concat());
    let behind = |words: &[String]| [&["--".to_owned()][..], words].concat();
    if args.server.is_some() {
        let by = |client: Option<&String>| tried(given(&[("--client", client)]));
        let client = args.client.as_ref();
        return Ok((by(client), by(args.held_out.as_ref().or(client))));
    }
    let held_out = args.held_out.as_ref();
    let held_out = held_out.map(|line| words_of("--held-out", line));
    let held_out = held_out.transpose()?;
    let command = tried(behind(&args.command));
    let confirm = held_out.map_or(command.clone(), |words| tried(behind(&words)));
    Ok((workload.unwrap_or(command), confirm))
}

/// Returns the workload of `-w`, and its name. Only the first round of a trace is measured: a program begins in a fresh heap,
/// too.
fn workload(args: &TuneArgs) -> Result<Option<(Load, String)>> {
    if args.workload.is_none() {
        return Ok(None);
    }
    let mut flags = given(&[
        ("--workloads", args.workload.as_ref()),
        ("--threads", args.threads.as_ref()),
    ]);
    flags.push("--no-floor".into());
    let planned = |flags: &[String]| {
        let first = ["-a".to_owned(), args.allocators[0].clone()];
        Ok::<Plan, anyhow::Error>(Selection::of_flags(&parsed(&[&first, flags].concat())?)?.plan)
    };
    let mut plan = planned(&flags)?;
    let name = plan.cases[0].workload.clone();
    if plan.cases.len() > 1 && name.starts_with("trace:") {
        flags.extend(["--set".to_owned(), format!("{name}.rounds=first")]);
        plan = planned(&flags)?;
    }
    if plan.cases.len() != 1 || !plan.mode.spec().plain {
        refuse!(
            "-w: a workload that is timed, and one number of threads (-t): {}",
            list(plan.cases.iter().map(Case::label))
        );
    }
    Ok(Some((Load::Workload(flags), name)))
}

/// Returns those flags that have a value, each with its value.
fn given(flags: &[(&str, Option<&String>)]) -> Vec<String> {
    let given = flags
        .iter()
        .filter_map(|(flag, value)| Some([(*flag).to_owned(), (*value)?.clone()]));
    given.flatten().collect()
}

fn wanted(args: &TuneArgs) -> Result<Wanted> {
    if let Some(limit) = args.at_most.filter(|limit| limit.goal == args.goal) {
        refuse!(
            "--at-most {}: that is what --for makes less",
            limit.goal.word()
        );
    }
    let goals = [Some(args.goal), args.at_most.map(|limit| limit.goal)];
    if args.workload.is_some() && goals.contains(&Some(Goal::Idle)) {
        refuse!("-w: idle is of a command or a server, which hold something when they end");
    }
    Ok(Wanted {
        goal: args.goal,
        at_most: args.at_most,
        budget_s: args.budget.as_secs_f64(),
        confirms: None,
        is_stand_in: args.workload.is_some() && !args.command.is_empty(),
    })
}

/// The allocators, built if need be, and the word of `-a` for each.
fn allocators(
    asked: &[String],
    catalog: &Catalog,
) -> Result<(BTreeMap<String, String>, Vec<Subject>)> {
    let mut words = BTreeMap::new();
    let mut chosen = Vec::new();
    for word in asked {
        for (allocator, _) in named(std::slice::from_ref(word), &[], None, catalog)? {
            let name = allocator.name.clone();
            if words.contains_key(&name) {
                refuse!("-a: {name} is there twice");
            }
            // A library of the user's own, or one of several that a word means.
            let argument = match word.contains('=') || word.contains('/') {
                true => word.clone(),
                false => name.clone(),
            };
            words.insert(name, argument);
            chosen.push((allocator, true));
        }
    }
    let subjects = resolve(chosen, catalog, false)?;
    if let Some(subject) = subjects.iter().find(|subject| subject.refused.is_some()) {
        refuse!(
            "-a {}: it cannot be measured here: leave it out",
            subject.allocator.name
        );
    }
    let first = subjects
        .first()
        .map(|subject| subject.allocator.name.clone());
    must_be_ready(&first.unwrap_or_default(), &subjects)?;
    Ok((words, subjects))
}

/// Returns the settings to try: the knobs of each allocator, and each variable given by hand, in the allocators that read it.
fn entries(also: &[(String, String)], subjects: &[Subject], catalog: &Catalog) -> Vec<Setting> {
    let mut all = Vec::new();
    for subject in subjects {
        let allocator = &subject.allocator;
        all.extend(settings(
            &allocator.name,
            knobs(allocator, &catalog.allocators),
        ));
    }
    for (number, (variable, value)) in also.iter().enumerate() {
        let mut reading = subjects
            .iter()
            .filter(|subject| reads(&subject.allocator.family, variable, &catalog.allocators))
            .peekable();
        // If no allocator reads the variable, a process of the first one shows that.
        let first = reading.peek().is_none().then(|| &subjects[0]);
        for subject in first.into_iter().chain(reading) {
            let name = &subject.allocator.name;
            all.push(Setting::given(name, number + 1, variable, value));
        }
    }
    all
}

/// Returns the arguments that determine what is measured.
fn asked(args: &TuneArgs, folder: &Path) -> Vec<String> {
    let mut asked = vec!["tune".to_owned(), "-a".into(), args.allocators.join(",")];
    let goal = args.goal.to_possible_value();
    asked.extend([
        "--for".to_owned(),
        goal.map(|value| value.get_name().to_owned())
            .unwrap_or_default(),
    ]);
    if let Some(limit) = args.at_most {
        asked.extend([
            "--at-most".to_owned(),
            format!("{} {}", limit.goal.word(), limit.ratio),
        ]);
    }
    for (variable, value) in &args.also {
        asked.extend(["--also".to_owned(), format!("{variable}={value}")]);
    }
    let stdin = folder.join(stdin(args)).display().to_string();
    let exit = args.expect_exit.map(|code| code.to_string());
    asked.extend(given(&[
        ("--workload", args.workload.as_ref()),
        ("--threads", args.threads.as_ref()),
        ("--server", args.server.as_ref()),
        ("--client", args.client.as_ref()),
        ("--ready", args.ready.as_ref()),
        ("--held-out", args.held_out.as_ref()),
        ("--value", args.value.as_ref()),
        ("--expect-exit", exit.as_ref()),
        ("--prepare", args.prepare.as_ref()),
        ("--stdin", Some(&stdin)),
    ]));
    asked.push("--".into());
    asked.extend(args.command.iter().cloned());
    asked
}

/// Returns what the numbers depend on besides the command line: a program or library may be rebuilt, a setting have another
/// value, the machine be another one.
fn surroundings(
    args: &TuneArgs,
    subjects: &[Subject],
    settings: &[Setting],
    folder: &Path,
) -> Vec<String> {
    let mut facts = valid_for(subjects);
    let machine = described_machine();
    let fact = |key: &str| Some(format!("{key} {}", machine.get(key)?));
    facts.extend(OF_MACHINE.into_iter().filter_map(fact));
    facts.push(format!("heapmark {}", env!("CARGO_PKG_VERSION")));
    for setting in settings {
        facts.push(format!("{}: {}", setting.name, setting.words()));
    }
    let lines = [&args.server, &args.client, &args.held_out];
    let lines = lines.into_iter().flatten();
    let lines = lines
        .filter_map(|line| shlex::split(line))
        .chain([args.command.clone()])
        .filter(|words| !words.is_empty());
    // Other words may name files that the program writes.
    let programs =
        lines.filter_map(|words| Some(PathBuf::from(started(&words, folder).ok()?.first()?)));
    let libraries = subjects
        .iter()
        .flat_map(|subject| subject.library.files.clone());
    for file in programs.chain(libraries) {
        let written = file.metadata().and_then(|data| data.modified()).ok();
        let since = written.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        if let Some(since) = since {
            facts.push(format!("{} of {} ms", file.display(), since.as_millis()));
        }
    }
    facts
}

/// Prints what was found, and writes the page.
fn tell(
    args: &TuneArgs,
    tuned: &Tuned,
    subjects: &[Subject],
    rounds: &Rounds,
    dir: &Path,
) -> Result<()> {
    let command = match (&args.server, &args.workload) {
        (Some(server), _) => server.clone(),
        (None, Some(workload)) if args.command.is_empty() => workload.clone(),
        _ => shlex::try_join(args.command.iter().map(String::as_str))?,
    };
    let best = tuned.winners().next();
    let copy = best.and_then(|best| {
        let row = best.setting.row().subject(subjects).ok()?;
        Some(copied::lines(
            &best.setting,
            &row,
            &in_shell(args, &command),
        ))
    });
    let tune_report = TuneReport {
        command,
        held_out: args.held_out.clone(),
        searched_on: args.workload.clone().filter(|_| !args.command.is_empty()),
        goal: args.goal,
        default: &subjects[0].allocator.name,
        tuned,
        copy: copy.unwrap_or_default(),
        valid_for: valid_for(subjects),
        run: rounds.last().map(|dir| dir.display().to_string()),
    };
    let page = dir.join("tune.html");
    file::replace(&page, page::page(&tune_report).as_bytes(), MODE)
        .with_path("cannot write", &page)?;
    match args.format {
        AnswerFormat::Json => print_json(&tune_report)?,
        AnswerFormat::Text => {
            let tables = render::terminal(&report::told(&tune_report), screen());
            print(format!("\n{tables}\n"))?;
            note(format!("the race: {}", page.display()));
        }
    }
    Ok(())
}

/// Returns the command as it is typed into a shell; a word for it if a workload was tuned.
fn in_shell(args: &TuneArgs, command: &str) -> String {
    match (&args.server, &args.ready) {
        (Some(server), Some(ready)) => server.replace("{port}", ready),
        _ if args.command.is_empty() => "PROGRAM".into(),
        _ => {
            let file = args.stdin.iter().map(|file| file.to_string_lossy());
            let file =
                file.map(|file| format!(" < {}", shlex::try_quote(&file).unwrap_or_default()));
            command.to_owned() + &file.collect::<String>()
        }
    }
}

/// Returns the facts on which the defaults of allocators and their effects depend.
fn valid_for(subjects: &[Subject]) -> Vec<String> {
    let facts = machine::describe();
    let mut valid: Vec<String> = Vec::new();
    for subject in subjects {
        valid.push(match subject.allocator.family.as_str() {
            "glibc" => format!("glibc {}", libc_version()),
            _ if subject.allocator.sources == Default::default() => subject.allocator.name.clone(),
            _ => subject.allocator.release(None),
        });
    }
    valid.push(format!("{} usable CPUs", machine::usable_cpus()));
    if let Some(pages) = facts.get("transparent_huge_pages") {
        valid.push(format!("transparent huge pages {pages}"));
    }
    if let Some(kernel) = facts.get("kernel") {
        valid.push(format!("Linux {kernel}"));
    }
    valid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judged::GOALS;

    #[test]
    fn a_limit_is_a_goal_and_a_ratio() {
        for text in ["memory=0.8", "memory 0.8"] {
            let limit = at_most(text).unwrap();
            assert_eq!((limit.goal, limit.ratio), (Goal::Memory, 0.8));
        }
        for bad in ["memory", "speed 0.8", "memory 0", "memory x"] {
            assert!(at_most(bad).is_err(), "{bad}");
        }
        assert_eq!(GOALS.len(), Goal::value_variants().len());
    }

    #[test]
    fn another_machine_is_other_surroundings() {
        let args: TuneArgs = parsed(&["--".to_owned(), "true".to_owned()]).unwrap();
        let facts = surroundings(&args, &[], &[], Path::new("/"));
        let machine = described_machine();
        for key in OF_MACHINE {
            let fact = machine.get(key).map(|value| format!("{key} {value}"));
            assert!(fact.is_none_or(|fact| facts.contains(&fact)), "{key}");
        }
    }

    #[test]
    fn a_variable_is_tried_in_the_allocator_that_reads_it() {
        let catalog = catalog().unwrap();
        let subject =
            |name: &str| Subject::new(catalog.allocator(name).unwrap().clone(), Default::default());
        let subjects = ["glibc", "jemalloc", "mimalloc3"].map(subject);
        let tried = |variable: &str| -> Vec<String> {
            let also = [(variable.to_owned(), "x".to_owned())];
            let all = entries(&also, &subjects, catalog);
            let by_hand = all.into_iter().filter(|setting| setting.parts.is_empty());
            by_hand.map(|setting| setting.allocator).collect()
        };
        assert_eq!(tried("MALLOC_CONF"), ["jemalloc"]);
        assert_eq!(tried("_RJEM_MALLOC_CONF"), ["jemalloc"]);
        assert_eq!(tried("MIMALLOC_PURGE_DELAI"), ["mimalloc3"]);
        assert_eq!(tried("GLIBC_TUNABLES"), ["glibc"]);
        assert_eq!(tried("MALLOC_ARENA_MAX"), ["glibc"]);
        // No allocator reads it: the first one reports that.
        assert_eq!(tried("TCMALLOC_RELEASE_RATE"), ["glibc"]);
    }
}
