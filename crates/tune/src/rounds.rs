//! The directory of a tuning, and the processes behind the search: `tune.json`, and a stored run in `runs/N` for each round. The search
//! depends on what is stored only, so the same command goes on where it was interrupted.

use crate::arrival::{Counts, Sight, complaints};
use crate::judged::{Goal, Logs};
use crate::search::{Race, Round, Stage};
use crate::setting::Setting;
use anyhow::{Context, Result, bail};
use heapmark_core::analyse::{counting, grid};
use heapmark_core::catalog::{Catalog, Settings, settings};
use heapmark_core::cmd::run::comparison::PartOf;
use heapmark_core::cmd::run::{self as run_command, RunArgs, stop_on_signals};
use heapmark_core::cmd::try_command::{self, SettingRow, TryArgs};
use heapmark_core::cmd::{Exit, note, parsed};
use heapmark_core::execute::child::{Launch, Rules, padded};
use heapmark_core::execute::{Guest, Interrupted, Subject, descendants};
use heapmark_core::file::{self, WithPath, make_folder, read_stored};
use heapmark_core::metric::Sample;
use heapmark_core::store;
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
const SCHEMA: u32 = 1;
/// The command line of a user may be private.
const MODE: u32 = 0o600;
/// A process is looked at when it is this old, and then twice as old each time.
const YOUNG: Duration = Duration::from_millis(40);
/// A process without a clock may take this long.
const PATIENCE: Duration = Duration::from_secs(1800);
/// Lives long enough to be looked at, in place of a command that does not; it is ended then.
const LASTING: [&str; 2] = ["/bin/sleep", "10"];
/// Until then a process that lasts has shown what it will.
const LONG_ENOUGH: Duration = Duration::from_secs(1);
/// The row that is a copy of the default, beside the A/A copy of each run.
const DECOY: &str = "decoy";

/// The file that is kept in the directory.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    schema: u32,
    /// What was asked for, as it was typed.
    asked: Vec<String>,
    /// Processes that were looked at, in their order.
    sights: Vec<(String, Sight)>,
    /// Rounds.
    runs: Vec<RoundRun>,
}

/// A round, in `runs/N`, N from 1.
#[derive(Debug, Serialize, Deserialize)]
struct RoundRun {
    rows: Vec<String>,
    whole: bool,
}

/// How the command is run.
#[derive(Clone, Debug, Default)]
pub struct TunedCommand {
    /// The command's words, the first an absolute path.
    pub command: Vec<OsString>,
    /// The command as it was typed.
    pub typed: Vec<String>,
    /// The command that confirms in its place, as it was typed.
    pub held_out: Option<Vec<String>>,
    /// The command's standard input.
    pub stdin: PathBuf,
    /// The exit code that the command is expected to end with.
    pub expect_exit: i32,
    /// Run by `sh` before each process.
    pub prepare: Option<String>,
    /// Flags that `heapmark try` gets as they are.
    pub flags: Vec<String>,
    /// What `-a` takes for the default, and for each allocator by its name.
    pub baseline: String,
    /// See there.
    pub words: BTreeMap<String, String>,
}

/// Processes of this machine.
pub struct Rounds<'a> {
    dir: PathBuf,
    kept: Kept,
    work: TunedCommand,
    allocators: Vec<Subject>,
    catalog: &'a Catalog,
    guest: Guest,
    /// How many of what is kept the search has asked for.
    sights: usize,
    runs: usize,
}

impl<'a> Rounds<'a> {
    /// A new tuning in a directory, or the one that is there; refuses one of other work.
    pub fn opened(
        dir: &Path,
        asked: Vec<String>,
        work: TunedCommand,
        allocators: Vec<Subject>,
        catalog: &'a Catalog,
    ) -> Result<Rounds<'a>> {
        let file = dir.join(FILE);
        let kept = match file::is_there(&file) {
            false => Kept {
                schema: SCHEMA,
                asked,
                sights: Vec::new(),
                runs: Vec::new(),
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
                if kept.asked != asked {
                    refuse!(
                        "{} holds a tuning of other work ({}): choose another directory with -o",
                        dir.display(),
                        shlex::try_join(kept.asked.iter().map(String::as_str)).unwrap_or_default()
                    );
                }
                kept
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

    /// Runs these words under a setting, until they are looked at or to their end. The second value says whether that was possible.
    fn process(&self, setting: &Setting, words: &[OsString], once: bool) -> Result<(Sight, bool)> {
        let row: SettingRow = setting.row();
        let mut variables = row.subject(&self.allocators)?.environment();
        let own = std::env::vars_os().filter(|(name, _)| name != "LD_PRELOAD");
        let (own, _) = Settings::of(&self.catalog.allocators).split(own);
        for (name, own) in &own {
            let name = name.to_string_lossy();
            if let Some(value) = variables.get_mut(&*name) {
                *value = settings::joined(&name, &own.to_string_lossy(), value);
            }
        }
        let launcher = self.guest.path();
        let mut launch = Launch::new(
            launcher,
            &["inherit"],
            &Rules::default(),
            padded(&variables, 0),
        )?;
        let stdin = File::open(&self.work.stdin).with_path("--stdin", &self.work.stdin)?;
        // Some programs do less if they see /dev/null.
        let stdout = OpenOptions::new().write(true).open("/dev/zero");
        launch
            .command
            .args(words)
            .envs(own)
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
                        // Before that it may not have read anything yet.
                        let is_over = is_settled(&view) || began.elapsed() > LONG_ENOUGH;
                        stop.fetch_or(once && is_over, Ordering::Relaxed);
                        views.insert(pid, view);
                    }
                }
            }
            YOUNG / 4
        };
        let end = launch.run(PATIENCE, &stop, Some(&mut look));
        let largest = views
            .values()
            .max_by_key(|view| view.memory.resident.rss_bytes);
        let given = largest.map_or(Vec::new(), |view| view.settings.clone());
        let was_seen = largest.is_some_and(|view| once || is_settled(view));
        let end = match end {
            // The process was ended because it was looked at.
            Err(error) if once && was_seen && error.is::<Interrupted>() => {
                let sight = Sight {
                    given,
                    ..Sight::default()
                };
                return Ok((sight, true));
            }
            end => end?,
        };
        end.was_started(Path::new(&words[0]))?;
        let failure = match end.code() {
            Some(code) if code == self.work.expect_exit => None,
            Some(code) => Some(format!("exit code {code}")),
            None if end.hang.is_some() => Some("it does not end".into()),
            None => Some("a signal ended it".into()),
        };
        let sight = Sight {
            counts: Counts {
                faults: end.launched.minor_faults,
                peak_bytes: end.launched.max_rss_bytes,
                cpu_ns: end.cpu_ns(),
            },
            given,
            complaints: complaints(&end.stderr()),
            failure,
        };
        Ok((sight, was_seen))
    }

    fn prepared(&self) -> Result<()> {
        let Some(line) = &self.work.prepare else {
            return Ok(());
        };
        let status = Command::new("sh")
            .arg("-c")
            .arg(line)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .env_remove("LD_PRELOAD")
            .status()
            .context("cannot start sh for --prepare")?;
        if !status.success() {
            refuse!("--prepare: {status}");
        }
        Ok(())
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
        let mut line = work.flags.clone();
        line.extend([
            "-a".into(),
            words.join(","),
            "--baseline".into(),
            work.baseline.clone(),
            "--blocks".into(),
            blocks.to_string(),
            // Another seed in each round.
            "--seed".into(),
            (self.runs + 1).to_string(),
            "--stdin".into(),
            work.stdin.display().to_string(),
            "--".into(),
        ]);
        let held_out = work.held_out.as_ref().filter(|_| stage == Stage::Confirm);
        line.extend(held_out.unwrap_or(&work.typed).iter().cloned());
        let mut run: TryArgs = parsed(&line)?;
        run.comparison.output = Some(self.run_in(self.runs));
        run.comparison.part_of = PartOf::History;
        run.settings = rows.iter().map(Setting::row).collect();
        run.settings.push(SettingRow {
            name: DECOY.into(),
            ..Setting::none(&self.allocators[0].allocator.name).row()
        });
        try_command::run(run)
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
        self.prepared()?;
        let (mut sight, was_seen) = self.process(setting, &self.work.command, false)?;
        if !was_seen && !setting.is_none() && sight.failure.is_none() {
            let (lasting, _) = self.process(setting, &LASTING.map(OsString::from), true)?;
            sight.given = lasting.given;
        }
        self.kept.sights.truncate(number);
        self.kept.sights.push((setting.name.clone(), sight.clone()));
        self.keep()?;
        Ok(sight)
    }

    fn round(&mut self, stage: Stage, rows: &[Setting], blocks: u32) -> Result<Round> {
        let number = self.runs;
        let dir = self.run_in(number);
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        let has_begun = store::head_of(&dir).is_file();
        if has_begun && self.kept.runs.get(number).is_none_or(|it| it.rows != names) {
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
            // Before the run: an interrupted one is found again.
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
        read(&dir)
    }
}

/// Whether it is known what serves a process: it has begun.
fn is_settled(view: &ProcessView) -> bool {
    view.malloc.first().is_some_and(|it| it.allocator.is_some())
}

/// What a stored round says, by row.
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
    let mut round = Round::default();
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
                of(|it| Some(it.measurement.peak_rss_bytes as f64)),
            ),
            (
                Goal::Idle,
                of(|it| it.measurement.figures.get("end_rss_bytes").copied()),
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
