//! From flags to a selection: subjects, plan, and what is missing.

use super::RunArgs;
use super::comparison::Comparison;
use super::controls::{self, Companions};
use super::programs;
use super::resolve::{choose, must_be_ready, resolve};
use super::run_length::Extent;
use super::traces;
use crate::build;
use crate::catalog::suite::thread_counts;
use crate::catalog::{Catalog, Workload};
use crate::cmd::{tier, usage, version};
use crate::execute::{Guest, Subject};
use crate::observe::machine;
use crate::plan::{Case, Counter, Mode, Plan, cases, comparisons};
use crate::session::{FIRST_TIMEOUT, Selection};
use crate::store::{self, AllocatorInfo, RunFile, SCHEMA};
use anyhow::{Result, anyhow, bail};
use std::path::Path;

impl Selection {
    pub(in crate::cmd) fn of_flags(command: &RunArgs) -> Result<Selection> {
        let RunArgs {
            suite,
            workloads: words,
            args,
        } = command;
        let catalog = Catalog::load()?;
        let suite = catalog
            .suite(suite)
            .map_err(|error| usage(meant(suite, error, &catalog)))?;
        let suite = &suite.under(args.preset.as_ref().unwrap_or(&suite.preset));
        let (cpus, mode) = (machine::usable_cpus(), args.instead.mode());
        let patterns = if words.is_empty() {
            &suite.workloads
        } else {
            words
        };
        let (traces, patterns): (Vec<&String>, Vec<&String>) = patterns
            .iter()
            .partition(|word| traces::file(word).is_some());
        let traces = traces::workloads(&traces).map_err(usage)?;
        let named = words
            .iter()
            .filter(|word| catalog.workloads.iter().any(|known| known.name == **word));
        let named: Vec<String> = named.cloned().collect();
        let mut workloads: Vec<&Workload> = traces.iter().collect();
        for pattern in patterns {
            let found = catalog
                .workloads(pattern)
                .map_err(|error| usage(without_threads(pattern, error, &catalog)))?;
            for workload in found {
                if !workloads.iter().any(|known| known.name == workload.name) {
                    workloads.push(workload);
                }
            }
        }
        let words = if args.threads.is_empty() {
            &suite.threads
        } else {
            &args.threads
        };
        let threads = thread_counts(words, cpus).map_err(|why| usage(anyhow!("-t: {why}")))?;
        let preset = &suite.preset;
        let cases = cases(&workloads, preset, &threads, cpus, &args.set).map_err(usage)?;
        let (mut cases, compiled_traces) = {
            let patience_s = args
                .comparison
                .timeout
                .unwrap_or(FIRST_TIMEOUT)
                .as_secs_f64();
            traces::make_ready(cases, mode, cpus, patience_s).map_err(usage)?
        };
        refuse_idle(args, &workloads, &cases).map_err(usage)?;
        if let Some(interval) = args.series {
            cases
                .iter_mut()
                .for_each(|case| case.series_ns = Some(interval.as_nanos() as u64));
        }

        let dry_run = args.comparison.dry_run;
        let baseline = args.comparison.baseline.as_ref().unwrap_or(&suite.baseline);
        let (baseline, chosen) = {
            let flags = &args.comparison;
            choose(
                &flags.allocators,
                &suite.tiers,
                baseline,
                flags.replace,
                &catalog,
            )?
        };
        let mut subjects = resolve(chosen, &catalog, dry_run)?;
        subjects
            .iter_mut()
            .for_each(|subject| subject.allocator.wrapper |= args.allow_forwarding);
        must_be_ready(&baseline, &subjects)?;
        programs::mark(&mut cases, &catalog);
        // Programs never start when single calls are timed: no reason to build them.
        let programs = programs::resolve(
            &cases,
            &catalog,
            dry_run || matches!(mode, Mode::Latency { .. } | Mode::Memory),
        )?;
        let pinned = resolve(
            programs::pinned(&cases, &subjects, &catalog)?,
            &catalog,
            dry_run,
        )?;
        let Companions { aa_copy, floor } =
            controls::choose(args, &mut subjects, &baseline, &cases, &catalog)?;
        let extent = Extent::of_run(args, suite, comparisons(cases.len(), subjects.len()));
        let plan = plan(
            &args.comparison,
            extent,
            baseline,
            cases,
            &subjects,
            aa_copy.as_ref(),
        );
        let plan = Plan {
            // Counts and retained memory hardly change on a busy machine.
            repeats: plan.repeats && !matches!(mode, Mode::Count(_) | Mode::Memory),
            target_ms: args.target_ms.unwrap_or(suite.target_ms),
            mode,
            named,
            floor: floor.as_ref().map(|floor| floor.allocator.name.clone()),
            ..plan
        };
        subjects.extend(aa_copy.into_iter().chain(floor));
        Ok(Selection {
            plan,
            subjects,
            pinned,
            programs,
            timeout_s: args.comparison.timeout.map(|time| time.as_secs_f64()),
            compiled_traces,
            suite: suite.name.clone(),
            preset: preset.clone(),
        })
    }

    /// A run that another command plans: `name` takes the place of a suite's name.
    pub(in crate::cmd) fn of_parts(name: &str, plan: Plan, subjects: Vec<Subject>) -> Selection {
        let (pinned, programs, compiled_traces) = Default::default();
        let (suite, preset) = (name.into(), "quick".into());
        Selection {
            plan,
            subjects,
            pinned,
            programs,
            timeout_s: None,
            compiled_traces,
            suite,
            preset,
        }
    }

    /// What a stored run consists of, given its directory or `latest`.
    pub(in crate::cmd) fn of_stored(run: &str) -> Result<Selection> {
        let dir = store::find(run).map_err(usage)?;
        store::refuse_of_others(&dir)?;
        Selection::of_run(&store::read(&dir)?.head)
    }

    /// What an earlier run consists of. Machine and libraries must be unchanged: half a run on one
    /// machine and half on another is not a valid run.
    pub(in crate::cmd) fn of_run(head: &RunFile) -> Result<Selection> {
        let here = machine::describe();
        for key in ["architecture", "cpu_model"] {
            let (then, now) = (head.machine.get(key), here.get(key));
            if let (Some(then), Some(now)) = (then, now)
                && then != now
            {
                bail!(
                    "this run began on a machine with {key} {then}, here it is {now}: go on there, or start a new run"
                );
            }
        }
        for info in head.allocators.iter().chain(&head.rows) {
            for (file, sha256) in info.files.iter().zip(&info.sha256) {
                if build::hash_of_file(Path::new(file))? != *sha256 {
                    bail!("{file} is not the file that this run began with: start a new run");
                }
            }
        }
        let mut plan = head.plan.clone();
        let compiled_traces = plan
            .cases
            .iter_mut()
            .filter_map(|case| traces::take_up(case).transpose());
        let compiled_traces = compiled_traces.collect::<Result<_>>()?;
        Ok(Selection {
            plan,
            subjects: head.subjects.clone(),
            pinned: head.pinned.clone(),
            programs: head.programs.clone(),
            timeout_s: head.timeout_s,
            compiled_traces,
            suite: head.suite.clone(),
            preset: head.preset.clone(),
        })
    }

    /// The content of `run.json`.
    pub(in crate::cmd) fn head(&self, guest: &Guest) -> Result<RunFile> {
        Ok(RunFile {
            schema: SCHEMA,
            heapmark: env!("CARGO_PKG_VERSION").into(),
            started: jiff::Timestamp::now().to_string(),
            suite: self.suite.clone(),
            preset: self.preset.clone(),
            plan: self.plan.clone(),
            allocators: self
                .subjects
                .iter()
                .map(|subject| {
                    info(
                        guest,
                        subject,
                        self.plan.aa_copy.as_ref() == Some(&subject.allocator.name),
                    )
                })
                .collect::<Result<_>>()?,
            subjects: self.subjects.clone(),
            pinned: self.pinned.clone(),
            rows: programs::rows(&self.plan.cases, &self.programs)?,
            programs: self.programs.clone(),
            timeout_s: self.timeout_s,
            machine: machine::describe(),
            preflights: Default::default(),
        })
    }
}

/// Refuses flags that would change nothing for these workloads.
fn refuse_idle(args: &super::RunFlags, workloads: &[&Workload], cases: &[Case]) -> Result<()> {
    let is_trace = |workload: &&Workload| workload.kernel.as_deref() == Some("replay");
    if args.preset.is_some() && workloads.iter().all(is_trace) {
        bail!("--preset: a trace has none, it is what was recorded");
    }
    if !args.threads.is_empty() && workloads.iter().all(|workload| workload.threads.is_some()) {
        match workloads.iter().all(is_trace) {
            true => bail!("--threads: a trace has the threads that were recorded"),
            false => bail!(
                "--threads: how many threads these workloads have follows from their parameters (--set)"
            ),
        }
    }
    if args.target_ms.is_some() && args.instead.mode() == Mode::Count(Counter::Callgrind) {
        bail!("--target-ms: --counter callgrind counts one iteration, however long it takes");
    }
    if args.target_ms.is_some() && !cases.iter().any(Case::is_calibrated) {
        bail!(
            "--target-ms: the work of these workloads is fixed, so no process is made longer or shorter"
        );
    }
    if args.series.is_some() && cases.iter().all(|case| case.kernel().is_none()) {
        bail!(
            "--series: memory over time is followed in kernels only, and these workloads are programs"
        );
    }
    Ok(())
}

/// The error about a word that is not a suite, with what it may have meant.
fn meant(word: &str, error: anyhow::Error, catalog: &Catalog) -> anyhow::Error {
    let is_workload = catalog
        .workloads
        .iter()
        .any(|workload| workload.name == word);
    let is_allocator = catalog
        .allocators
        .iter()
        .any(|allocator| allocator.name == word);
    let hint = match word {
        _ if word.ends_with(".trace") => format!("; a trace: heapmark replay {word}"),
        _ if word.ends_with(".so") || word.contains(".so.") => {
            format!("; a library: heapmark run -a {word},glibc")
        }
        _ if is_workload => format!("; a workload: heapmark run -w {word}"),
        _ if is_allocator => format!("; an allocator: heapmark run -a {word}"),
        _ => String::new(),
    };
    anyhow!("{error:#}{hint}")
}

/// The error about a word that is not a workload, with what it may have meant: cells are called
/// `larson@2`.
fn without_threads(word: &str, error: anyhow::Error, catalog: &Catalog) -> anyhow::Error {
    match word.split_once('@') {
        Some((name, threads)) if catalog.workloads(name).is_ok() => {
            anyhow!("no workload `{word}`: thread counts are given by -t: -w {name} -t {threads}")
        }
        _ => error,
    }
}

/// The plan of a comparison, from its flags.
pub(in crate::cmd) fn plan(
    flags: &Comparison,
    extent: Extent,
    baseline: String,
    cases: Vec<Case>,
    subjects: &[Subject],
    aa_copy: Option<&Subject>,
) -> Plan {
    let name = |subject: &Subject| subject.allocator.name.clone();
    Plan {
        seed: flags.seed(),
        blocks: extent.blocks,
        most_blocks: extent.most_blocks,
        precision: extent.precision,
        budget_s: extent.budget_s,
        repeats: !flags.no_repeat,
        baseline,
        cases,
        allocators: subjects.iter().map(name).collect(),
        aa_copy: aa_copy.map(name),
        ..Plan::default()
    }
}

fn info(guest: &Guest, subject: &Subject, aa_copy: bool) -> Result<AllocatorInfo> {
    let Subject {
        allocator,
        library,
        refused,
    } = subject;
    let purge = match &allocator.purge {
        None => "none",
        Some(crate::catalog::allocator::Purge::Call { .. }) => "called",
        Some(crate::catalog::allocator::Purge::Configured) => "configured",
    };
    // libc's reallocarray calls the allocator's realloc: it need not be exported.
    let heap_of_its_own =
        |name: &&&str| **name != "reallocarray" && !library.exports.contains(**name);
    let preloaded = !library.files.is_empty();
    let left = crate::catalog::malloc_api::FUNCTIONS
        .iter()
        .filter(|_| preloaded)
        .filter(heap_of_its_own);
    Ok(AllocatorInfo {
        name: allocator.name.clone(),
        family: allocator.family.clone(),
        tier: if aa_copy {
            "aa-copy".into()
        } else {
            tier(allocator).into()
        },
        origin: library.origin.clone(),
        version: if refused.is_some() {
            "-".into()
        } else {
            version(guest, subject)?
        },
        sources: allocator.sources.clone(),
        files: library
            .files
            .iter()
            .map(|file| file.display().to_string())
            .collect(),
        sha256: library
            .files
            .iter()
            .map(|file| build::hash_of_file(file))
            .collect::<Result<_>>()?,
        left_to_libc: left.map(|name| name.to_string()).collect(),
        purge: purge.into(),
        purged_as: library.purged_as.clone(),
    })
}
