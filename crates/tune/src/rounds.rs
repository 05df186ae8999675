//! The directory of a tuning, and the processes behind the search: `tune.json`, and a stored run in `runs/N` for each round.
//! The search depends only on what is stored, so the same command resumes where a tuning was interrupted.

use crate::arrival::{Counts, Sight, complaints};
use crate::judged::{Goal, Logs};
use crate::search::{Race, Round, Stage};
use crate::setting::Setting;
use anyhow::{Context, Result, bail};
use heapmark_core::analyse::{counting, grid};
use heapmark_core::catalog::{Catalog, Settings, settings};
use heapmark_core::cmd::run::comparison::{Comparison, PartOf};
use heapmark_core::cmd::run::setting_row::SettingRow;
use heapmark_core::cmd::run::{self as run_command, RunArgs, stop_on_signals};
use heapmark_core::cmd::signals::has_stopped;
use heapmark_core::cmd::try_command::{self, TryArgs};
use heapmark_core::cmd::{Exit, note, parsed};
use heapmark_core::execute::child::{Launch, Rules, may_go_on, padded, wait_for};
use heapmark_core::execute::{Guest, Interrupted, Subject, descendants};
use heapmark_core::file::{self, WithPath, make_folder, read_stored};
use heapmark_core::metric::Sample;
use heapmark_core::session::FIRST_TIMEOUT;
use heapmark_core::store::{self, Purpose, Record};
use heapmark_stats::median;
use heapmark_which::ProcessView;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const FILE: &str = "tune.json";
const SCHEMA: u32 = 4;
/// The mode of a tuning's files: the user's command line may be private.
pub const MODE: u32 = 0o600;
/// A process is first looked at when it is this old, and again each time that its age has doubled.
const YOUNG: Duration = Duration::from_millis(40);
/// The time limit of a process that is not timed, before it is known how long one of the default takes.
const PATIENCE: Duration = Duration::from_secs(1800);
/// The time limit after that: so many times as long, and no less than so long.
const TIMES: f64 = 100.0;
const LEAST_PATIENCE: Duration = Duration::from_secs(20);
/// The command that stands in for one that ends too soon to be looked at; it is ended after the
/// look.
const LASTING: [&str; 2] = ["/bin/sleep", "10"];
/// At this age, a process has shown all that a look at it can show.
const LONG_ENOUGH: Duration = Duration::from_secs(1);
/// The name of the row that is a copy of the default, beside the A/A copy of each run.
const DECOY: &str = "decoy";

/// The content of `tune.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    schema: u32,
    #[serde(flatten)]
    of: Tuning,
    /// The looks at processes, each with the name of its setting, in the order of the search.
    sights: Vec<(String, Sight)>,
    /// The rounds of pairs, in their order.
    runs: Vec<RoundRun>,
    /// What the held-out command took under the default; `None` before it was looked at.
    held_out: Option<Counts>,
}

/// What a tuning is of: a directory is resumed only by a tuning of the same.
#[derive(Debug, Serialize, Deserialize)]
pub struct Tuning {
    /// The arguments that determine what is measured, as they were typed.
    pub asked: Vec<String>,
    /// What else the numbers depend on: programs, libraries, settings, the machine.
    pub surroundings: Vec<String>,
    /// The time budget in seconds, which determines the lengths of rounds.
    pub budget_s: f64,
}

impl Tuning {
    /// Fails unless what is stored in `dir` belongs to this tuning.
    fn must_be_that_of(&self, kept: &Kept, dir: &Path) -> Result<()> {
        let before = &kept.of;
        if before.asked != self.asked {
            refuse!(
                "{} holds a tuning of other work ({}): choose another directory with -o",
                dir.display(),
                shlex::try_join(before.asked.iter().map(String::as_str)).unwrap_or_default()
            );
        }
        let mut facts = self.surroundings.iter();
        if let Some(fact) = facts.find(|fact| !before.surroundings.contains(fact)) {
            refuse!(
                "{} was measured otherwise (now: {fact}): choose another directory with -o",
                dir.display()
            );
        }
        // Before the first round of settings, the budget has decided nothing.
        let has_rows = kept.runs.iter().any(|run| !run.rows.is_empty());
        if before.budget_s != self.budget_s && has_rows {
            refuse!(
                "{} is being measured with --budget {}s: give that, or choose another directory with -o",
                dir.display(),
                before.budget_s
            );
        }
        Ok(())
    }
}

/// A round, in `runs/N`, N from 1.
#[derive(Debug, Serialize, Deserialize)]
struct RoundRun {
    rows: Vec<String>,
    whole: bool,
}

/// The work that is measured.
#[derive(Clone, Debug)]
pub enum Load {
    /// A command, or a server with its client: flags and words of `heapmark try`.
    Tried(Vec<String>),
    /// A workload: flags of `heapmark run`.
    Workload(Vec<String>),
}

impl Load {
    /// Fails if `try` or `run` would refuse the flags.
    pub fn must_be_taken(&self) -> Result<()> {
        match self {
            Load::Tried(words) => parsed::<TryArgs>(words).map(drop),
            Load::Workload(words) => parsed::<RunArgs>(words).map(drop),
        }
    }

    /// Measures the load with these flags, and with options that no flag can express.
    fn measure(&self, flags: &[&str], with: impl FnOnce(Comparison) -> Comparison) -> Result<Exit> {
        let (Load::Tried(words) | Load::Workload(words)) = self;
        let flags = flags.iter().map(ToString::to_string);
        let line: Vec<String> = flags.chain(words.iter().cloned()).collect();
        match self {
            Load::Tried(_) => {
                let mut run: TryArgs = parsed(&line)?;
                run.comparison = with(run.comparison);
                try_command::run(run)
            }
            Load::Workload(_) => {
                let mut run: RunArgs = parsed(&line)?;
                run.args.comparison = with(run.args.comparison);
                run_command::run(run)
            }
        }
    }
}

/// The work that is tuned.
#[derive(Clone, Debug)]
pub struct TunedWork {
    /// The command that is looked at while it runs; `None` for a server or a workload.
    pub looked_at: Option<LookedAt>,
    /// The load that the search measures.
    pub search: Load,
    /// The load that the confirmation measures.
    pub confirm: Load,
    /// The command that `sh` runs before each process.
    pub prepare: Option<String>,
    /// The word for the default after `-a`.
    pub baseline: String,
    /// The word for each allocator after `-a`, by the allocator's name.
    pub words: BTreeMap<String, String>,
}

/// A command that is looked at.
#[derive(Clone, Debug)]
pub struct LookedAt {
    /// The command's words, the first an absolute path.
    pub command: Vec<OsString>,
    /// The command's standard input.
    pub stdin: PathBuf,
    /// The exit code that the command is expected to end with.
    pub expect_exit: i32,
}

impl LookedAt {
    /// Returns the command that stands in for one that ends too soon to be looked at.
    fn lasting() -> LookedAt {
        LookedAt {
            command: LASTING.map(OsString::from).to_vec(),
            stdin: "/dev/null".into(),
            expect_exit: 0,
        }
    }
}

/// The stored part of a tuning, and the processes that add to it.
pub struct Rounds<'a> {
    dir: PathBuf,
    kept: Kept,
    work: TunedWork,
    allocators: Vec<Subject>,
    catalog: &'a Catalog,
    guest: Guest,
    /// How many of the stored looks, and of the stored runs, the search has asked for so far.
    sights: usize,
    runs: usize,
}

impl<'a> Rounds<'a> {
    /// Opens the tuning in a directory, or begins a new one; refuses a tuning of other work.
    pub fn opened(
        dir: &Path,
        of: Tuning,
        work: TunedWork,
        allocators: Vec<Subject>,
        catalog: &'a Catalog,
    ) -> Result<Rounds<'a>> {
        let file = dir.join(FILE);
        let kept = match file::is_there(&file) {
            false => Kept {
                schema: SCHEMA,
                of,
                sights: Vec::new(),
                runs: Vec::new(),
                held_out: None,
            },
            true => {
                store::refuse_of_others(dir, FILE, "go on with a copy of your own (cp -r)")?;
                let text = read_stored(&file).with_path("cannot read", &file)?;
                let kept: Kept = serde_json::from_slice(&text)
                    .with_context(|| format!("{} is no tuning", file.display()))?;
                if kept.schema != SCHEMA {
                    bail!(
                        "{} has schema {}, and this heapmark knows {SCHEMA}",
                        file.display(),
                        kept.schema
                    );
                }
                of.must_be_that_of(&kept, dir)?;
                Kept { of, ..kept }
            }
        };
        Ok(Rounds {
            dir: dir.to_path_buf(),
            kept,
            work,
            allocators,
            catalog,
            guest: Guest::find()?,
            sights: 0,
            runs: 0,
        })
    }

    fn keep(&self) -> Result<()> {
        let runs = self.dir.join("runs");
        make_folder(&runs).with_path("cannot create", &runs)?;
        let file = self.dir.join(FILE);
        let text = serde_json::to_string_pretty(&self.kept)? + "\n";
        file::replace(&file, text.as_bytes(), MODE).with_path("cannot write", &file)
    }

    /// The directory of a round, counted from 0.
    fn run_in(&self, number: usize) -> PathBuf {
        self.dir.join("runs").join((number + 1).to_string())
    }

    /// The directory of the last round.
    pub fn last(&self) -> Option<PathBuf> {
        Some(self.run_in(self.runs.checked_sub(1)?))
    }

    /// Runs a command under a setting, to its end or, with `once`, until it was looked at. The second value is whether a look
    /// succeeded.
    fn process(&self, setting: &Setting, of: &LookedAt, once: bool) -> Result<(Sight, bool)> {
        let row: SettingRow = setting.row();
        let mut variables = row.subject(&self.allocators)?.environment();
        let inherited = std::env::vars_os().filter(|(name, _)| name != "LD_PRELOAD");
        let (inherited, _) = Settings::of(&self.catalog.allocators).split(inherited);
        for (name, inherited_value) in &inherited {
            let name = name.to_string_lossy();
            if let Some(value) = variables.get_mut(&*name) {
                *value = settings::joined(&name, &inherited_value.to_string_lossy(), value);
            }
        }
        let launcher = self.guest.path();
        let mut launch = Launch::new(
            launcher,
            &["inherit"],
            &Rules::default(),
            padded(&variables, 0),
        )?;
        let stdin = File::open(&of.stdin).with_path("--stdin", &of.stdin)?;
        // Some programs do less if they see /dev/null.
        let stdout = OpenOptions::new().write(true).open("/dev/zero");
        launch
            .command
            .args(&of.command)
            .envs(inherited)
            .stdin(stdin)
            .stdout(stdout.context("cannot write to /dev/zero")?);
        let began = Instant::now();
        let mut views: BTreeMap<i32, ProcessView> = BTreeMap::new();
        let mut next = YOUNG;
        let stop = stop_on_signals();
        let mut look = |launcher: i32| {
            if began.elapsed() >= next {
                next = began.elapsed() * 2;
                for pid in descendants(launcher) {
                    if let Ok(view) = ProcessView::at(pid, &self.catalog.allocators) {
                        // Until its allocator is known, a process may not have read anything.
                        let is_over =
                            is_settled(&view) && !is_lost(&view) || began.elapsed() > LONG_ENOUGH;
                        stop.fetch_or(once && is_over, Ordering::Relaxed);
                        views.insert(pid, view);
                    }
                }
            }
            YOUNG / 4
        };
        let end = launch.run(self.patience(), &stop, Some(&mut look));
        let largest = views
            .values()
            .max_by_key(|view| view.memory.resident.rss_bytes);
        let given = largest.map_or(Vec::new(), |view| view.settings.clone());
        let was_seen = largest.is_some_and(|view| {
            let is_old = began.elapsed() > LONG_ENOUGH;
            once || is_settled(view) && (is_old || !is_lost(view))
        });
        let end = match end {
            // The process was ended because it was looked at.
            Err(error) if once && was_seen && error.is::<Interrupted>() && !has_stopped() => {
                let sight = Sight {
                    given,
                    ..Sight::default()
                };
                return Ok((sight, true));
            }
            end => end?,
        };
        end.was_started(Path::new(&of.command[0]))?;
        let failure = match end.code() {
            Some(code) if code == of.expect_exit => None,
            Some(code) => Some(format!("exit code {code}")),
            None if end.hang.is_some() => Some("it does not end".into()),
            None => Some("a signal ended it".into()),
        };
        let sight = Sight {
            counts: Some(Counts {
                faults: end.launched.minor_faults,
                peak_bytes: end.launched.max_rss_bytes,
                cpu_ns: end.cpu_ns(),
                wall_ns: end.launched.wall_ns,
            }),
            given,
            complaints: complaints(&end.stderr()),
            failure,
        };
        Ok((sight, was_seen))
    }

    /// The time limit of a process that is not timed.
    fn patience(&self) -> Duration {
        let first = self.kept.sights.iter().find_map(|(_, sight)| sight.counts);
        first.map_or(PATIENCE, |counts| {
            let usual = Duration::from_secs_f64(counts.wall_s() * TIMES);
            usual.clamp(LEAST_PATIENCE, PATIENCE)
        })
    }

    fn prepared(&self) -> Result<()> {
        let Some(line) = &self.work.prepare else {
            return Ok(());
        };
        let mut shell = Command::new("sh")
            .arg("-c")
            .arg(line)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .env_remove("LD_PRELOAD")
            .spawn()
            .context("cannot start sh for --prepare")?;
        let stop = stop_on_signals();
        let ended = wait_for(&mut shell, FIRST_TIMEOUT, &stop, None)?;
        // The terminal sends Ctrl-C to sh, too.
        may_go_on(&stop)?;
        match ended {
            Some(status) if status.success() => Ok(()),
            Some(status) => refuse!("--prepare: {status}"),
            None => refuse!("--prepare took longer than {} s", FIRST_TIMEOUT.as_secs()),
        }
    }

    /// Returns what the command that confirms takes. Fails unless it runs under the default: better now than after the search.
    pub fn held_out(&mut self, held_out: &LookedAt) -> Result<Option<Counts>> {
        if self.kept.held_out.is_some() {
            return Ok(self.kept.held_out);
        }
        self.prepared()?;
        let default = Setting::none(&self.allocators[0].allocator.name);
        let (sight, _) = self.process(&default, held_out, false)?;
        if let Some(failure) = sight.failure {
            refuse!("--held-out does not run under {}: {failure}", default.name);
        }
        self.kept.held_out = sight.counts;
        self.keep()?;
        Ok(self.kept.held_out)
    }

    fn measure(&self, stage: Stage, rows: &[Setting], blocks: u32) -> Result<Exit> {
        let work = &self.work;
        let mut words = vec![work.baseline.clone()];
        for row in rows {
            let word = &work.words[&row.allocator];
            if !words.contains(word) {
                words.push(word.clone());
            }
        }
        let load = match stage {
            Stage::Search => &work.search,
            Stage::Confirm => &work.confirm,
        };
        let flags = [
            "-a",
            &words.join(","),
            "--baseline",
            &work.baseline,
            "--blocks",
            &blocks.to_string(),
            // Another seed in each round.
            "--seed",
            &(self.runs + 1).to_string(),
        ];
        load.measure(&flags, |base| Comparison {
            output: Some(self.run_in(self.runs)),
            part_of: PartOf::History,
            settings: self.rows(rows),
            ..base
        })
    }

    /// The rows of a round: those of the settings, and a copy of the default.
    fn rows(&self, settings: &[Setting]) -> Vec<SettingRow> {
        let decoy = SettingRow {
            name: DECOY.into(),
            ..Setting::none(&self.allocators[0].allocator.name).row()
        };
        settings.iter().map(Setting::row).chain([decoy]).collect()
    }
}

impl Race for Rounds<'_> {
    fn sight(&mut self, setting: &Setting) -> Result<Sight> {
        let number = self.sights;
        self.sights += 1;
        if let Some((name, sight)) = self.kept.sights.get(number)
            && *name == setting.name
        {
            return Ok(sight.clone());
        }
        let sight = match &self.work.looked_at {
            Some(command) => {
                self.prepared()?;
                let (mut sight, was_seen) = self.process(setting, command, false)?;
                if !was_seen && !setting.is_none() && sight.failure.is_none() {
                    sight.given = self.process(setting, &LookedAt::lasting(), true)?.0.given;
                }
                sight
            }
            None => self.process(setting, &LookedAt::lasting(), true)?.0,
        };
        // A default that fails is not stored, since it ends the tuning: once mended, it runs anew.
        if !setting.is_none() || sight.failure.is_none() {
            self.kept.sights.truncate(number);
            self.kept.sights.push((setting.name.clone(), sight.clone()));
            self.keep()?;
        }
        Ok(sight)
    }

    fn round(&mut self, stage: Stage, rows: &[Setting], blocks: u32) -> Result<Round> {
        let number = self.runs;
        let dir = self.run_in(number);
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        let has_begun = store::head_of(&dir).is_file();
        if has_begun
            && self
                .kept
                .runs
                .get(number)
                .is_none_or(|run| run.rows != names)
        {
            bail!(
                "{} is no round of this tuning any more: choose another directory with -o",
                dir.display()
            );
        }
        let is_whole = has_begun && self.kept.runs[number].whole;
        if !is_whole {
            self.kept.runs.truncate(number);
            self.kept.runs.push(RoundRun {
                rows: names,
                whole: false,
            });
            // Stored before the run, so that an interrupted run is found again.
            self.keep()?;
            let exit = match has_begun {
                true => {
                    note(format!("{} was interrupted: it goes on", dir.display()));
                    let line = ["--resume".to_owned(), dir.display().to_string()];
                    let mut run: RunArgs = parsed(&line)?;
                    run.args.comparison.part_of = PartOf::History;
                    run_command::run(run)?
                }
                false => self.measure(stage, rows, blocks)?,
            };
            if matches!(exit, Exit::Interrupted) {
                return Err(Interrupted.into());
            }
            self.kept.runs[number].whole = true;
            self.keep()?;
        }
        self.runs += 1;
        read(&dir).with_context(|| {
            format!(
                "{}: what it measured is kept; after a change choose another directory with -o",
                dir.display()
            )
        })
    }
}

/// Whether the allocator that serves a process is known, so that the process has begun.
fn is_settled(view: &ProcessView) -> bool {
    view.malloc
        .first()
        .is_some_and(|serving| serving.allocator.is_some())
}

/// Whether a setting has not reached the process, as far as that can be known: a constructor may read it later.
fn is_lost(view: &ProcessView) -> bool {
    view.settings.iter().any(|given| given.state.is_lost())
}

/// Reads the results of a stored round, by row.
fn read(dir: &Path) -> Result<Round> {
    let run = store::read(dir)?;
    let records = counting(&run.records);
    let tables = grid(&run.head, &records);
    let table = tables.first().context("the round has no case")?;
    let copy = run.head.plan.aa_copy.as_deref();
    let Some(baseline) = table.baseline() else {
        bail!("{} has no default", dir.display());
    };
    if let Some(failed) = &baseline.failed {
        bail!("the default: {}", failed.summary());
    }
    let is_timed = |record: &&Record| {
        record.purpose == Purpose::Sample && record.allocator == run.head.plan.baseline
    };
    let timed = run.records.iter().filter(is_timed);
    let walls: Vec<f64> = timed
        .filter_map(|record| Some(record.wall_ns()? as f64))
        .collect();
    let mut round = Round {
        // The other half belongs to the process with which the default takes turns; without turns, one process of the default
        // serves all rows.
        process_s: median(&walls).unwrap_or_default() / 2e9,
        is_paced: table.is_paced(),
        ..Round::default()
    };
    for group in &table.groups {
        let name = &group.allocator.name;
        if *name == run.head.plan.baseline {
            continue;
        }
        let of = |value: fn(&Sample) -> Option<f64>| -> Vec<f64> {
            let theirs: BTreeMap<_, _> = baseline.samples().into_iter().collect();
            let pair = |(slot, sample): &(_, Sample)| {
                let (ours, theirs) = (value(sample)?, value(theirs.get(slot)?)?);
                Some((ours / theirs).ln()).filter(|log| log.is_finite())
            };
            group.samples().iter().filter_map(pair).collect()
        };
        let times = group.log_ratios(baseline, |process| table.ranked_by(process));
        let mut logs = Logs::from([
            (
                Goal::Time,
                times.into_values().filter(|log| log.is_finite()).collect(),
            ),
            (
                Goal::Memory,
                of(|sample| Some(sample.measurement.peak_rss_bytes as f64)),
            ),
            (
                Goal::Idle,
                of(|sample| sample.measurement.figures.get("end_rss_bytes").copied()),
            ),
        ]);
        logs.retain(|_, logs| !logs.is_empty());
        if name == DECOY || copy == Some(name) {
            round.decoys.push(logs);
            continue;
        }
        let outcome = match &group.failed {
            Some(failed) => Err(failed.summary()),
            None => Ok(logs),
        };
        round.rows.insert(name.clone(), outcome);
    }
    Ok(round)
}
