//! From flags to a selection: subjects, plan, and what is missing.

use super::comparison::Comparison;
use super::real_programs::RealCases;
use super::resolve::{
    choose, must_be_ready, must_take_programs, put_libc_first, resolve, take_own,
};
use super::{
    RunArgs, RunFlags, controls, programs, real_programs, run_length, setting_row, traces,
};
use crate::build;
use crate::build::command::recognise_command;
use crate::catalog::allocator::Purge;
use crate::catalog::malloc_api::FUNCTIONS;
use crate::catalog::suite::{Suite, thread_counts};
use crate::catalog::{Catalog, RealProgram, Source, Workload, joined, real_program};
use crate::cmd::{catalog, described_machine, note, say, told_version, usage};
use crate::execute::{Guest, Subject};
use crate::file::Draft;
use crate::observe::machine;
use crate::plan::{
    Case, Factor, HugePages, Mode, Override, Plan, SEED_OF_MEMORY, UserCommand, cases, comparisons,
};
use crate::session::{FIRST_TIMEOUT, Selection};
use crate::store::{self, AllocatorInfo, Checked, CheckedShelf, HEAPMARK, RunFile, SCHEMA};
use anyhow::{Result, anyhow, bail};
use rand::Rng;
use rand::rand_core::UnwrapErr;
use rand::rngs::SysRng;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

impl Selection {
    /// Returns the selection that the flags ask for.
    pub fn of_flags(command: &RunArgs) -> Result<Selection> {
        let args = &command.args;
        let flags = &command.args.comparison;
        let catalog = catalog()?;
        let suite = catalog
            .suite(&command.suite)
            .map_err(|error| usage(meant(&command.suite, error, catalog)))?;
        let suite = suite.under(command.preset.as_ref().unwrap_or(&suite.preset));
        let cpus = machine::usable_cpus();
        let patterns = if command.workloads.is_empty() {
            &suite.workloads
        } else {
            &command.workloads
        };
        let real = real_program::load()?;
        let real = real_programs::chosen(patterns, &real, catalog).map_err(usage)?;
        let Measured {
            mode,
            cases,
            beside,
            scratch,
            linked,
        } = match real.as_slice() {
            [] => Measured::of_workloads(command, &suite, patterns, catalog, cpus)?,
            _ => Measured::of_real_programs(command, &suite, &real, catalog, cpus)?,
        };
        refuse_factor(&cases, flags, mode)?;
        let baseline = flags.baseline.as_ref().unwrap_or(&suite.baseline);
        let mut words = flags.allocators.clone();
        let tiers = if words.is_empty() {
            suite.tiers.as_slice()
        } else {
            &[]
        };
        let linked_allocator = take_own(&mut words, linked_alike(&linked), catalog)?;
        let (baseline, mut chosen) = choose(&words, tiers, baseline, flags.replace, catalog)?;
        chosen.extend(linked_allocator.map(|allocator| (allocator, true)));
        if scratch.is_some() {
            must_take_programs(&chosen)?;
        }
        // Slow steps come when no flag can be refused any more.
        let patience_s = flags.timeout.unwrap_or(FIRST_TIMEOUT).as_secs_f64();
        let (beside, mut compiled_traces) =
            traces::beside(beside, &cases, cpus, patience_s).map_err(usage)?;
        let (cases, compiled) = traces::make_ready(cases, cpus, patience_s).map_err(usage)?;
        compiled_traces.extend(compiled);
        let mut cases = with_factor(cases, flags);
        let mut subjects = resolve(chosen, catalog, flags.dry_run)?;
        for subject in &mut subjects {
            subject.allocator.wrapper |= args.allow_forwarding;
        }
        if linked.iter().any(Option::is_some) {
            put_libc_first(&mut subjects)?;
        }
        must_be_ready(&baseline, &subjects)?;
        let mut subjects = setting_row::in_place(subjects, &flags.settings, &baseline)?;
        programs::mark(&mut cases, catalog);
        // In a mode that cannot measure programs, there is no reason to build them.
        let builds = mode.spec().plain && !flags.dry_run;
        let programs = programs::resolve(&cases, catalog, !builds)?;
        let pinned = programs::pinned(&cases, &subjects, catalog)?;
        let pinned = resolve(pinned, catalog, flags.dry_run)?;
        let (aa_copy, floors) =
            controls::choose(args, mode, &mut subjects, &baseline, &cases, catalog)?;
        let length =
            run_length::of_run(args, mode, &suite, comparisons(cases.len(), subjects.len()));
        cases.extend(beside);
        let plan = plan(
            flags,
            mode,
            length,
            baseline,
            cases,
            &subjects,
            aa_copy.as_ref(),
        );
        let mut names = floors.iter().map(|floor| floor.allocator.name.clone());
        let plan = Plan {
            target_ms: args.target_ms.unwrap_or(suite.target_ms),
            named: command
                .workloads
                .iter()
                .filter(|word| is_workload(word, catalog))
                .cloned()
                .collect(),
            floor: names.next(),
            floors_elsewhere: names.collect(),
            ..plan
        };
        refuse_turns(flags, &plan)?;
        subjects.extend(aa_copy.into_iter().chain(floors));
        Ok(Selection {
            plan,
            subjects,
            pinned,
            programs,
            timeout_s: flags.timeout.map(|time| time.as_secs_f64()),
            compiled_traces,
            scratch,
            // The suite decides only what is not chosen.
            suite: match command.workloads.is_empty() {
                true => suite.name,
                false => "custom".into(),
            },
            preset: suite.preset,
            threads: command.threads.clone(),
            set: args.set.iter().map(Override::to_string).collect(),
        })
    }

    /// A run that another command plans: `name` takes the place of a suite's name.
    pub fn of_parts(name: &str, plan: Plan, subjects: Vec<Subject>) -> Selection {
        Selection {
            plan,
            subjects,
            suite: name.into(),
            preset: "quick".into(),
            ..Selection::default()
        }
    }

    /// Returns the selection of a stored run, given its directory or `latest`. Machine, libraries and heapmark must be unchanged: half a
    /// run on one machine and half on another is not a valid run.
    pub fn of_stored(run: &str) -> Result<Selection> {
        let dir = store::find(run).map_err(usage)?;
        store::refuse_of_others(&dir, store::HEAD, "go on with a copy of your own (cp -r)")?;
        let head = store::read(&dir)?.head;
        let here = described_machine();
        match head.other_here(&here) {
            None => {}
            Some([HEAPMARK, then, now]) => bail!(
                "heapmark {then} began this run, and this is {now}: go on with that one, or start a new run"
            ),
            Some([key, then, now]) => bail!(
                "this run began on a machine with {key} {then}, here it is {now}: go on there, or start a new run"
            ),
        }
        // Two builds of one version may have different guests.
        let guest = Guest::find()?;
        if !head.guest.is_empty() && build::hash_of_file(guest.path())? != head.guest {
            return Err(another_file(guest.path().display()));
        }
        let infos = head.allocators.iter().chain(&head.rows);
        let of_rows = infos.flat_map(|info| {
            let files = info.files.iter().zip(&info.sha256);
            files
                .chain(&info.needs)
                .map(|(file, sha256)| (Path::new(file), sha256))
        });
        let commands = || head.plan.cases.iter().filter_map(Case::command);
        let inputs = commands()
            .filter_map(|command| command.stdin.as_deref().zip(command.stdin_sha256.as_ref()));
        // Several rows and cases may have the same file.
        let files: BTreeSet<(&Path, &String)> = of_rows.chain(inputs).collect();
        for (file, sha256) in files {
            if build::hash_of_file(file)? != *sha256 {
                return Err(another_file(file.display()));
            }
        }
        if let Some(file) = changed_program(commands())? {
            return Err(another_file(file.display()));
        }
        let mut plan = head.plan;
        if let Some(file) = plan.cases.iter().find_map(Case::changed_file) {
            return Err(another_file(file));
        }
        let mut compiled_traces = Vec::new();
        for case in &mut plan.cases {
            compiled_traces.extend(traces::take_up(case)?);
        }
        let scratch = real_programs::take_up(&mut plan.cases)?;
        Ok(Selection {
            plan,
            subjects: head.subjects,
            pinned: head.pinned,
            programs: head.programs,
            timeout_s: head.timeout_s,
            compiled_traces,
            scratch,
            suite: head.suite,
            preset: head.preset,
            threads: head.threads,
            set: head.set,
        })
    }

    /// The content of `run.json`.
    pub fn head(&self, guest: &Guest) -> Result<RunFile> {
        let shelf = CheckedShelf::open()
            .inspect_err(|error| say!("what heapmark check found is left out: {error:#}"))
            .ok();
        let info = |subject: &Subject| {
            let info = info(guest, subject, &self.plan)?;
            let is_compared = self.plan.allocators.contains(&info.name);
            let shelf = shelf.as_ref().filter(|_| is_compared);
            let checked = shelf.and_then(|shelf| found_before(shelf, subject, &info));
            Ok(AllocatorInfo { checked, ..info })
        };
        Ok(RunFile {
            schema: SCHEMA,
            heapmark: env!("CARGO_PKG_VERSION").into(),
            guest: build::hash_of_file(guest.path())?,
            started: jiff::Timestamp::now().to_string(),
            suite: self.suite.clone(),
            preset: self.preset.clone(),
            threads: self.threads.clone(),
            set: self.set.clone(),
            plan: self.plan.clone(),
            allocators: self.subjects.iter().map(info).collect::<Result<_>>()?,
            subjects: self.subjects.clone(),
            pinned: self.pinned.clone(),
            rows: programs::rows(&self.plan.cases, &self.programs)?,
            programs: self.programs.clone(),
            timeout_s: self.timeout_s,
            machine: described_machine(),
            preflights: Default::default(),
        })
    }
}

/// The refusal to go on with other content of a file.
fn another_file(file: impl Display) -> anyhow::Error {
    anyhow!("{file} is not the file that this run began with: start a new run")
}

/// Returns the first file that these commands, their variants or their clients execute and whose content has changed since its hash was
/// stored.
fn changed_program<'a>(commands: impl Iterator<Item = &'a UserCommand>) -> Result<Option<PathBuf>> {
    let mut known = BTreeSet::new();
    for command in commands {
        let variants = command.variants.iter();
        let variants = variants.map(|variant| (&variant.command, &variant.sha256));
        let client = command.client.iter();
        let client = client.map(|client| (&client.command, &client.sha256));
        let own = [(&command.command, &command.sha256)];
        for (words, hashes) in own.into_iter().chain(variants).chain(client) {
            if hashes.is_empty() || !known.insert((words, hashes)) {
                continue;
            }
            let found = recognise_command(words, &command.folder);
            let mut hashes = hashes.iter();
            for file in &found.chain {
                if hashes.next() != Some(&build::hash_of_file(file)?) {
                    return Ok(Some(file.clone()));
                }
            }
            // An interpreter that is gone, or found elsewhere.
            if hashes.next().is_some() {
                return Ok(Some(found.program().to_owned()));
            }
        }
    }
    Ok(None)
}

/// Returns what `heapmark check` has found for an allocator; prints a message if that cannot be read.
fn found_before(shelf: &CheckedShelf, subject: &Subject, info: &AllocatorInfo) -> Option<Checked> {
    let name = &info.name;
    shelf.find(subject, &info.hashes()).unwrap_or_else(|error| {
        say!(
            "{name}: what heapmark check found is left out ({error:#}); heapmark check -a {name} finds it again"
        );
        None
    })
}

/// Returns the library that all programs are linked to, or why no single row can stand for the allocators of all programs.
fn linked_alike(linked: &[Option<String>]) -> Result<&str, String> {
    match linked {
        [Some(first), others @ ..] if others.iter().all(|other| other.as_ref() == Some(first)) => {
            Ok(first)
        }
        _ => Err("the chosen programs are not all linked to one allocator".into()),
    }
}

/// The cases of a run and what is measured in them, before the traces that the cases replay are compiled.
struct Measured {
    mode: Mode,
    cases: Vec<Case>,
    /// Cases whose memory is measured in processes of their own.
    beside: Vec<Case>,
    /// The folder in which real programs work.
    scratch: Option<Draft>,
    /// For each real program, the library of the allocator that it is linked to, if it has one.
    linked: Vec<Option<String>>,
}

impl Measured {
    fn of_real_programs(
        command: &RunArgs,
        suite: &Suite,
        programs: &[&RealProgram],
        catalog: &Catalog,
        cpus: u32,
    ) -> Result<Measured> {
        let args = &command.args;
        let mode = real_programs::mode(command)?;
        let installed = real_programs::installed(programs);
        if installed.is_empty() {
            refuse!("none of these programs is installed");
        }
        let dry_run = args.comparison.dry_run;
        let RealCases {
            cases,
            scratch,
            linked,
        } = real_programs::cases(&installed, &suite.preset, &args.set, catalog, cpus, dry_run)?;
        Ok(Measured {
            mode,
            cases,
            beside: Vec::new(),
            scratch: Some(scratch),
            linked,
        })
    }

    fn of_workloads(
        command: &RunArgs,
        suite: &Suite,
        patterns: &[String],
        catalog: &Catalog,
        cpus: u32,
    ) -> Result<Measured> {
        let args = &command.args;
        let workloads = chosen(patterns, catalog).map_err(usage)?;
        let workloads: Vec<&Workload> = workloads.iter().collect();
        let of_suite = command.workloads.is_empty();
        let mode = mode(args, of_suite && suite.memory, &workloads).map_err(usage)?;
        // A kernel that takes points itself runs with one thread, unless more are asked for.
        let one = ["1".to_owned()];
        let words = match command.threads.is_empty() {
            false => &command.threads[..],
            true if workloads.iter().any(|workload| workload.is_for_memory()) => &one,
            true => &suite.threads,
        };
        let threads = thread_counts(words, cpus).map_err(|why| usage(anyhow!("-t: {why}")))?;
        let mut set = Vec::new();
        // A workload that the user chose runs as documented, without the suite's parameters.
        if of_suite {
            set = overrides(suite, mode).map_err(usage)?;
        }
        set.extend(args.set.iter().cloned());
        let mut beside = Vec::new();
        if of_suite {
            let workloads_beside = chosen(&suite.memory_of, catalog)?;
            let workloads_beside: Vec<&Workload> = workloads_beside.iter().collect();
            let is_beside = |change: &Override| change.is_for_any(&workloads_beside);
            if mode.spec().plain {
                let mut set = set.clone();
                set.retain(|change| is_beside(change) && change.parameter != traces::ROUNDS);
                beside =
                    cases(&workloads_beside, &suite.preset, &[1], cpus, &set).map_err(usage)?;
            }
            set.retain(|change| change.is_for_any(&workloads) || !is_beside(change));
        }
        let mut cases = cases(&workloads, &suite.preset, &threads, cpus, &set).map_err(usage)?;
        traces::check(&mut cases, mode).map_err(usage)?;
        refuse_idle(command, mode, &workloads, &cases)?;
        if let Some(interval) = args.series {
            for case in &mut cases {
                case.series_ns = Some(interval.as_nanos() as u64);
            }
        }
        Ok(Measured {
            mode,
            cases,
            beside,
            scratch: None,
            linked: Vec::new(),
        })
    }
}

/// The workloads that these words name, each once: traces, and names or patterns.
fn chosen(words: &[String], catalog: &Catalog) -> Result<Vec<Workload>> {
    let (traces, patterns): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| traces::file(word).is_some());
    let mut workloads = traces::workloads(&traces)?;
    for pattern in patterns {
        let found = catalog.workloads(pattern);
        for workload in found.map_err(|error| without_threads(pattern, error, catalog))? {
            if !workloads.iter().any(|known| known.name == workload.name) {
                workloads.push(workload.clone());
            }
        }
    }
    Ok(workloads)
}

/// Returns what a run measures: what its flags ask for, or memory if its suite or all its workloads are meant for that.
fn mode(args: &RunFlags, is_for_memory: bool, workloads: &[&Workload]) -> Result<Mode> {
    let asked = args.instead.mode();
    let (memory, others): (Vec<&Workload>, Vec<&Workload>) = workloads
        .iter()
        .partition(|workload| workload.is_for_memory());
    let [alone, ..] = memory[..] else {
        let of_suite = is_for_memory.then_some(Mode::Memory);
        return Ok(asked.or(of_suite).unwrap_or_default());
    };
    match asked {
        Some(mode) if mode.spec().compares_memory => Ok(mode),
        None if is_for_memory || others.is_empty() => Ok(Mode::Memory),
        None => bail!(
            "{} measures memory, {} time: add --retained to measure memory only, or run them apart",
            alone.name,
            others[0].name
        ),
        Some(_) => bail!(
            "{} measures memory alone: leave out --latency and --counter",
            alone.name
        ),
    }
}

/// Refuses a factor that means nothing for these cases.
pub fn refuse_factor(cases: &[Case], flags: &Comparison, mode: Mode) -> Result<()> {
    let spec = mode.spec();
    match (flags.age, flags.thp) {
        (Some(_), Some(HugePages::Advised | HugePages::Machine)) => refuse!(
            "--age and --thp advised or machine: each compares an allocator with itself, so one at a time (--thp never goes with --age)"
        ),
        (Some(_), _) if !spec.plain => {
            refuse!("--age compares times: leave out workloads that measure memory alone")
        }
        (Some(_), _) if cases.iter().all(|case| case.not_aged().is_some()) => {
            refuse!("{}", only_fresh(cases))
        }
        (_, Some(which)) if which != HugePages::Never && spec.simulated => {
            refuse!("--thp: --counter callgrind counts instructions, which no page changes")
        }
        _ => Ok(()),
    }
}

/// Which of the cases have no heap to age.
fn only_fresh(cases: &[Case]) -> String {
    let named = |case: &Case| Some(format!("{} ({})", case.workload, case.not_aged()?));
    format!(
        "--age: not for {}",
        joined(cases.iter().filter_map(named), ", ")
    )
}

/// The cases, each followed by the same under a factor if the flags ask for one.
pub fn with_factor(cases: Vec<Case>, flags: &Comparison) -> Vec<Case> {
    let factor = match (flags.age, flags.thp) {
        (Some(age), _) => Factor::Age(age),
        (_, Some(which)) if which != HugePages::Never => Factor::HugePages(which),
        _ => return cases,
    };
    let is_under = |case: &Case| flags.age.is_none() || case.not_aged().is_none();
    if !cases.iter().all(is_under) {
        say(only_fresh(&cases));
    }
    beside(cases, factor, is_under)
}

/// Returns the cases, each followed by the same case under a factor if it can run under that.
pub fn beside(cases: Vec<Case>, factor: Factor, is_under: impl Fn(&Case) -> bool) -> Vec<Case> {
    let both = |case: Case| {
        let more = is_under(&case).then(|| case.under(factor));
        [case].into_iter().chain(more)
    };
    cases.into_iter().flat_map(both).collect()
}

/// The parameters that a suite sets.
fn overrides(suite: &Suite, mode: Mode) -> Result<Vec<Override>> {
    let mut set = Vec::new();
    for text in &suite.set {
        let change: Override = text
            .parse()
            .map_err(|why| anyhow!("suite {}: set: {why}", suite.name))?;
        // Memory is followed in one round.
        if change.parameter != traces::ROUNDS || !mode.spec().follows_memory {
            set.push(change);
        }
    }
    Ok(set)
}

/// Refuses flags that would change nothing for these workloads.
fn refuse_idle(
    command: &RunArgs,
    mode: Mode,
    workloads: &[&Workload],
    cases: &[Case],
) -> Result<()> {
    let args = &command.args;
    let is_trace = |workload: &&Workload| workload.kernel.as_deref() == Some("replay");
    let are_traces = workloads.iter().all(is_trace);
    let threads =
        !command.threads.is_empty() && workloads.iter().all(|workload| workload.threads.is_some());
    let target = args.target_ms.is_some();
    let is_fixed = |case: &Case| !(case.is_calibrated() || traces::has_later(case));
    let refusals = [
        (
            command.preset.is_some() && are_traces,
            "--preset: a trace has none, it is what was recorded",
        ),
        (
            threads && are_traces,
            "--threads: a trace has the threads that were recorded",
        ),
        (
            threads,
            "--threads: how many threads these workloads have follows from their parameters (--set)",
        ),
        (
            !mode.spec().plain
                && (args.comparison.precision.is_some() || args.comparison.max_blocks.is_some()),
            "--precision and --max-blocks: only times are measured until they are precise; --blocks N sets the number",
        ),
        (
            target && mode.spec().simulated,
            "--target-ms: --counter callgrind counts one iteration, however long it takes",
        ),
        (
            target && cases.iter().all(is_fixed),
            "--target-ms: the work of these workloads is fixed, so no process is made longer or shorter",
        ),
        (
            args.series.is_some() && mode.spec().follows_memory,
            "--series: these workloads measure memory, which their runs record anyway",
        ),
        (
            args.series.is_some() && cases.iter().all(|case| case.kernel().is_none()),
            "--series: memory over time is followed in built-in workloads only, and these are programs",
        ),
    ];
    if let Some((_, why)) = refusals.into_iter().find(|(is_idle, _)| *is_idle) {
        refuse!("{why}");
    }
    let fixed = cases
        .iter()
        .filter(|case| is_fixed(case))
        .map(|case| &case.workload);
    let fixed: BTreeSet<&String> = fixed.collect();
    if target && !fixed.is_empty() {
        let names = joined(fixed, ", ");
        note(format!(
            "--target-ms changes nothing for {names}: that work is fixed"
        ));
    }
    let own = workloads
        .iter()
        .filter(|workload| workload.threads.is_some());
    let own = joined(own.map(|workload| &workload.name), ", ");
    if !command.threads.is_empty() && !own.is_empty() {
        note(format!(
            "--threads changes nothing for {own}: how many they have follows from their parameters (--set)"
        ));
    }
    Ok(())
}

fn is_workload(name: &str, catalog: &Catalog) -> bool {
    catalog.workloads.iter().any(|known| known.name == name)
}

/// The error about a word that is not a suite, with what it may have meant.
fn meant(word: &str, error: anyhow::Error, catalog: &Catalog) -> anyhow::Error {
    let hint = match word {
        _ if word.ends_with(".trace") => format!("; a trace: heapmark replay {word}"),
        _ if word.ends_with(".so") || word.contains(".so.") => {
            format!("; a library: heapmark run -a {word},glibc")
        }
        _ if is_workload(word, catalog) => format!("; a workload: heapmark run -w {word}"),
        _ if catalog.meant(word).is_ok() => format!("; an allocator: heapmark run -a {word}"),
        _ => String::new(),
    };
    anyhow!("{error:#}{hint}")
}

/// The error about a word that is not a workload, with what it may have meant: cells are called
/// `larson@2`.
fn without_threads(word: &str, error: anyhow::Error, catalog: &Catalog) -> anyhow::Error {
    if word.ends_with(".trace") {
        return anyhow!("{error:#}; a trace: -w trace:{word}, or heapmark replay {word}");
    }
    match word.split_once('@') {
        Some((name, threads)) if catalog.workloads(name).is_ok() => {
            anyhow!("no workload `{word}`: thread counts are given by -t: -w {name} -t {threads}")
        }
        _ => error,
    }
}

/// The plan of a comparison, from its flags and a plan of its length.
pub fn plan(
    flags: &Comparison,
    mode: Mode,
    length: Plan,
    baseline: String,
    cases: Vec<Case>,
    subjects: &[Subject],
    aa_copy: Option<&Subject>,
) -> Plan {
    let name = |subject: &Subject| subject.allocator.name.clone();
    let spec = mode.spec();
    let seed = match spec.follows_memory {
        true => SEED_OF_MEMORY,
        false => UnwrapErr(SysRng).next_u32().into(),
    };
    let plan = Plan {
        seed: flags.seed.unwrap_or(seed),
        mode,
        repeats: spec.compares_times && !flags.no_repeat,
        huge_pages: flags.thp.map_or(HugePages::Machine, |_| HugePages::Never),
        baseline,
        cases,
        allocators: subjects.iter().map(name).collect(),
        aa_copy: aa_copy.map(name),
        ..length
    };
    match &flags.turns {
        _ if flags.alone => plan,
        turns => plan.in_turns(&turns.clone().unwrap_or_default()),
    }
}

/// Refuses turns that no case can take.
pub fn refuse_turns(flags: &Comparison, plan: &Plan) -> Result<()> {
    if flags.turns.is_some() && plan.cases.iter().all(|case| case.turns.is_none()) {
        refuse!(
            "--turns: nothing here can take turns: they are for times of one thread, without --age and --thp, and with --prepare only if `{{side}}` is in it"
        );
    }
    Ok(())
}

/// The allocator's entry in `run.json`.
pub fn info(guest: &Guest, subject: &Subject, plan: &Plan) -> Result<AllocatorInfo> {
    let allocator = &subject.allocator;
    let library = &subject.library;
    let purge = match &allocator.purge {
        None => "none",
        Some(Purge::Call { .. }) => "called",
        Some(Purge::Configured) => "configured",
    };
    let tier = if plan.aa_copy.as_ref() == Some(&allocator.name) {
        "aa-copy".into()
    } else {
        serde_json::from_value(json!(allocator.tier))?
    };
    // libc's reallocarray calls the allocator's realloc: it need not be exported.
    let build = subject.variant.as_deref();
    let mut commands = plan.cases.iter().filter_map(Case::command);
    let build = commands.find_map(|command| command.variant(build));
    let build = build.filter(|_| matches!(allocator.source, Source::AsCalled));
    let is_left = |name: &&&str| {
        !library.files.is_empty() && **name != "reallocarray" && !library.exports.contains(**name)
    };
    let files = library
        .files
        .iter()
        .chain(build.map(|variant| &variant.program));
    let version = match subject.refused {
        Some(_) => None,
        None => told_version(guest, subject)?,
    };
    let is_commit = matches!(allocator.source, Source::Git(_));
    let release = allocator.release(version.as_deref().filter(|_| !is_commit));
    // The crate's version is not the allocator's: name the crate.
    let pinned = library.origin.strip_prefix("crate ");
    let unknown = || pinned.map_or("-".into(), |pinned| format!("in {pinned}"));
    Ok(AllocatorInfo {
        name: allocator.name.clone(),
        family: allocator.family.clone(),
        tier,
        origin: match library.built.as_str() {
            "" => library.origin.clone(),
            built => format!("{}, {built}", library.origin),
        },
        version: version.unwrap_or_else(unknown),
        sources: allocator.sources.date.clone(),
        release,
        files: files
            .clone()
            .map(|file| file.display().to_string())
            .collect(),
        sha256: files
            .clone()
            .map(|file| build::hash_of_file(file))
            .collect::<Result<_>>()?,
        needs: library
            .needs
            .iter()
            .map(|file| Ok((file.display().to_string(), build::hash_of_file(file)?)))
            .collect::<Result<_>>()?,
        build_ids: library
            .files
            .iter()
            .map(|file| Ok(build::inspect::inspect_any(file)?.build_id))
            .collect::<Result<_>>()?,
        environment: allocator.environment.clone(),
        left_to_libc: FUNCTIONS
            .iter()
            .filter(is_left)
            .map(|name| name.to_string())
            .collect(),
        purge: purge.into(),
        purged_as: library.purged_as.clone(),
        checked: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Client, CommandVariant};
    use std::fs;

    #[test]
    fn any_other_program_of_a_command_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        let names = ["server", "client", "variant"];
        for name in names {
            fs::write(file(name), format!("#!/bin/sh\n: {name}\n")).unwrap();
        }
        let words = |name: &str| vec![file(name).display().to_string()];
        let hashes = |name: &str| {
            let chain = recognise_command(&words(name), dir.path()).chain;
            assert_eq!(chain.len(), 2, "with its interpreter");
            let hashes = chain.iter().map(|file| build::hash_of_file(file));
            hashes.collect::<Result<Vec<_>>>().unwrap()
        };
        let command = UserCommand {
            command: words("server"),
            sha256: hashes("server"),
            client: Some(Client {
                command: words("client"),
                sha256: hashes("client"),
                ..Client::default()
            }),
            variants: vec![CommandVariant {
                command: words("variant"),
                sha256: hashes("variant"),
                ..CommandVariant::default()
            }],
            ..UserCommand::default()
        };
        let changed = || changed_program([&command].into_iter()).unwrap();
        assert_eq!(changed(), None);
        for name in names {
            let before = fs::read(file(name)).unwrap();
            fs::write(file(name), "#!/bin/sh\n: rebuilt\n").unwrap();
            assert_eq!(changed(), Some(file(name)));
            fs::write(file(name), before).unwrap();
        }
        // Of a run without hashes nothing is known.
        let older = UserCommand {
            command: words("gone"),
            ..UserCommand::default()
        };
        assert_eq!(changed_program([&older].into_iter()).unwrap(), None);
    }
}
