//! What is measured for the baseline only, in processes of its check: how much of the CPU time is
//! malloc and free, how much of the memory is malloc's, and which programs of the tree, and which
//! of their libraries, no allocator reaches.

use super::aged::{SizesFile, UNCOUNTED};
use super::in_malloc::{Calls, SLOWER_CALLS, SLOWER_WALL, Times};
use super::malloc_probe::{self, Silent};
use super::output::nowhere;
use super::process::Ran;
use super::reached::{
    ANONYMOUS, BEYOND, CALLS, END_LIVE, END_OF, END_UNKNOWN, MIXED, OTHER_SIZES, REACHED, Reach,
    ReachFile,
};
use super::server::Drive;
use super::server::drain::Drain;
use super::{CommandRunner, REPEATS, Reference, SERVED_BY, StepResult, Tools, held};
use crate::build::command::recognise;
use crate::build::find_library;
use crate::catalog::{Source, joined};
use crate::execute::child::monotonic_ns_after;
use crate::execute::exec_tracer::{FoundPrograms, Preloaded, resolved, search};
use crate::execute::handed::Handed;
use crate::execute::reach::Beyond;
use crate::execute::{Measurement, Outcome};
use anyhow::{Context, Result, bail};
use heapmark_wire::Phase;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Note: programs that no allocator reaches, with the reasons.
pub const UNPROVEN: &str = "unproven";
/// Note: programs that an allocator may serve, but that did not report one.
pub const SILENT: &str = "silent";
/// Note: why the search for programs that no allocator reaches is incomplete.
pub const UNSEARCHED: &str = "unsearched";
/// Note: why the share of malloc and free in the CPU time is unknown.
pub const UNTIMED: &str = "untimed";

/// A tree that is stopped at each fork and exec may take this many times as long as the plain one,
/// and at least `LEAST_PATIENCE`.
const SLOWER: u32 = 20;
const LEAST_PATIENCE: Duration = Duration::from_secs(30);
/// Signals by which processes of well programs end: others send them, or a pipe has lost its reader.
const ORDINARY: [i32; 5] = [
    libc::SIGPIPE,
    libc::SIGTERM,
    libc::SIGKILL,
    libc::SIGINT,
    libc::SIGHUP,
];
/// How often to check for the end if there is nothing to look at.
const SHORT_WAIT: Duration = Duration::from_millis(1);

impl CommandRunner<'_> {
    /// Measures what else is needed in the check of the baseline and of each variant: time in malloc, or how memory is
    /// asked for.
    pub(super) fn probed(&self, measurement: &mut Measurement, plain: &Ran) -> Result<()> {
        let mut untimed = |why: String| _ = measurement.notes.insert(UNTIMED.into(), why);
        if let Some(why) = self.silent() {
            untimed(why.to_owned());
            return self.asked(measurement, plain);
        }
        let is_first = self.is_first_variant();
        match self.variant().map(|variant| &variant.inside[..]) {
            None | Some([]) => {
                self.sized(measurement, plain)?;
                self.timed(measurement, plain, is_first)?;
            }
            Some(inside) => untimed(format!("it has {} inside", joined(inside, ", "))),
        }
        // No allocator reaches a variant as it is built, and none needs to.
        match self.subject.allocator.source {
            Source::AsCalled => self.counted_after_load(measurement, plain)?,
            _ if !is_first => {}
            _ => self.searched(measurement, plain)?,
        }
        self.shaped(measurement, plain)
    }

    /// Runs one process that is traced through each system call, and adds how it asks for memory to the note on what
    /// its file shows.
    fn asked(&self, measurement: &mut Measurement, plain: &Ran) -> Result<()> {
        self.prepare()?;
        let libraries = Preloaded::nothing(true);
        let (found, _) = self.traced(&self.subject.environment(), libraries, plain, None)?;
        let (brk, mmap) = found.calls();
        let least = found.cut.as_ref().map_or("", |_| "at least ");
        let notes = &mut measurement.notes;
        let served_by = notes.entry(SERVED_BY.into()).or_default();
        *served_by += &format!("; {least}{brk} calls of brk and {mmap} of mmap ask for its memory");
        Ok(())
    }

    /// Runs one process that is traced; if it is a server, together with its client.
    fn traced<'r>(
        &'r self,
        variables: &BTreeMap<String, String>,
        libraries: Preloaded<'_>,
        plain: &Ran,
        counts: Option<&'r ReachFile>,
    ) -> Result<(FoundPrograms, Option<Drive<'r>>)> {
        let mut launch = self.launch(&["inherit", "held"], variables)?;
        launch.command.stdout(nowhere()?).stderr(nowhere()?);
        let wall = Duration::from_nanos(plain.end.launched.wall_ns);
        let limit = LEAST_PATIENCE.max(wall.saturating_mul(SLOWER)) + self.drained_for();
        let mut drive = Drive::of(self, &launch.account, None, nowhere()?)?;
        if let Some(drive) = &mut drive {
            drive.reach = counts;
            drive.drain = counts.and_then(|_| self.drain(true));
        }
        let mut look = |pid| drive.as_mut().map_or(SHORT_WAIT, |drive| drive.look(pid));
        let found = search(launch.command, libraries, limit, self.stop, &mut look)?;
        Ok((found, drive))
    }

    /// Runs one process in which glibc serves and the requested sizes are counted, if a heap is to
    /// be aged with them.
    fn sized(&self, measurement: &mut Measurement, plain: &Ran) -> Result<()> {
        let Some(aging) = self.tools.aging.as_ref().filter(|_| self.job.counts_sizes) else {
            return Ok(());
        };
        self.prepare()?;
        let sizes = SizesFile::new()?;
        let variables = self.below(&aging.sizes, &libc()?, sizes.variable());
        let sized = self.start(variables, None, None, None, None)?;
        if let Some(outcome) = failed(&sized, plain) {
            let why = format!("the process that counts them ended {outcome}");
            measurement.notes.insert(UNCOUNTED.into(), why);
            return Ok(());
        }
        sizes.add_to(measurement)
    }

    /// Runs one process in which glibc serves and its calls are timed; and another one in which they
    /// take longer, which shows whether the command's time follows from its work.
    fn timed(&self, measurement: &mut Measurement, plain: &Ran, slower: bool) -> Result<()> {
        let libc = libc()?;
        let (timed, calls) = match self.timed_at(&libc, None, plain)? {
            Ok(timed) => timed,
            Err(outcome) => {
                let why = format!("the process in which calls were timed ended {outcome}");
                measurement.notes.insert(UNTIMED.into(), why);
                return Ok(());
            }
        };
        // Calls are slow for this long only: a process with a fixed amount of work does the rest at full speed, and
        // takes longer in all.
        let slow_for_ns = timed.end.launched.wall_ns * 3 / 2;
        // A command that is judged by a number of its own may run for a fixed time.
        if slower
            && self.command.values.is_empty()
            && let Some(slower_ns) = calls.slower_ns(timed.cpu_ns())
            && let Ok((slower, fewer)) =
                self.timed_at(&libc, Some((slower_ns, slow_for_ns)), plain)?
        {
            let wall = slower.wall_ns() as f64 / timed.wall_ns() as f64;
            let figures = [(SLOWER_CALLS, fewer.over(calls)), (SLOWER_WALL, wall)];
            let figures = figures.map(|(name, ratio)| (name.to_owned(), ratio));
            measurement.figures.extend(figures);
        }
        // Timing itself takes time. The plain process is free of it, but its CPU time is usable
        // only if glibc serves it.
        let mut cpu_ns = timed.cpu_ns();
        if self.subject.library.files.iter().all(|file| *file == libc) {
            cpu_ns = cpu_ns.min(plain.cpu_ns());
        }
        measurement.figures.extend(calls.figures(cpu_ns));
        Ok(())
    }

    /// Runs a process in which glibc's calls are timed and, with `slower_ns`, slowed down: by how many ns each, and for
    /// how many ns. Returns its fault if it has one.
    fn timed_at(
        &self,
        libc: &Path,
        slower_ns: Option<(u64, u64)>,
        plain: &Ran,
    ) -> Result<Result<(Ran, Calls), Outcome>> {
        self.prepare()?;
        let times = Times::new()?;
        let mut variables = self.below(&self.tools.timer, libc, times.variable());
        if let Some((by_ns, for_ns)) = slower_ns {
            let until_ns = monotonic_ns_after(Duration::from_nanos(for_ns));
            variables.insert("HEAPMARK_SLOWER_NS".into(), by_ns.to_string());
            variables.insert("HEAPMARK_SLOWER_UNTIL_NS".into(), until_ns.to_string());
        }
        let timed = self.start(variables, None, None, Some(&times), None)?;
        if let Some(outcome) = failed(&timed, plain) {
            return Ok(Err(outcome));
        }
        let calls = match &timed.served {
            Some(served) => served.used.calls,
            None => times.read()?,
        };
        Ok(Ok((timed, calls)))
    }

    /// Runs one process that is traced through each fork and exec of its tree. glibc serves it, and
    /// what a preloaded allocator would serve is counted.
    fn searched(&self, measurement: &mut Measurement, plain: &Ran) -> Result<()> {
        self.prepare()?;
        let log = Handed::new()?;
        let counts = ReachFile::new()?;
        let Tools { witness, reach, .. } = self.tools;
        let mut variables = self.below(reach, &libc()?, counts.variable());
        let preload = format!("{}:{}", variables["LD_PRELOAD"], witness.display());
        variables.extend([
            ("LD_PRELOAD".into(), preload),
            ("HEAPMARK_WITNESS".into(), log.told()),
        ]);
        let preloaded = Preloaded {
            witness,
            serves: reach,
            counts: false,
        };
        let (found, mut drive) = self.traced(&variables, preloaded, plain, Some(&counts))?;
        let witnessed = malloc_probe::parse(&log.text());
        let silent = Silent::among(&found.executed, &witnessed);
        let undriven = || Some(drive.as_mut()?.fault(None)?.to_string());
        let unsearched = found.cut.clone().or_else(undriven);
        self.add_beyond(measurement, &found);
        // No figures are added if only a part of the command was searched.
        if unsearched.is_none() {
            let reach = add_reach(measurement, &counts, &found)?;
            match drive {
                Some(drive) => {
                    let live_bytes = drive.used.live_bytes;
                    let figure = live_bytes.map(|bytes| (END_LIVE.to_owned(), bytes as f64));
                    measurement.figures.extend(figure);
                    let drained = drive.drain.map(Drain::figures).unwrap_or_default();
                    measurement.figures.extend(drained);
                }
                None => add_end(measurement, &reach, &found),
            }
        }
        let notes = [
            (
                UNPROVEN,
                listed(malloc_probe::with_own_malloc(&witnessed).chain(silent.out_of_reach)),
            ),
            (SILENT, silent.unknown),
            (UNSEARCHED, unsearched),
        ];
        measurement.notes.extend(
            notes
                .into_iter()
                .filter_map(|(name, words)| Some((name.to_string(), words?))),
        );
        Ok(())
    }

    /// Runs one process of a server in which glibc serves and what is live is counted, before its load and after it.
    fn counted_after_load(&self, measurement: &mut Measurement, plain: &Ran) -> Result<()> {
        if self.drained_for().is_zero() {
            return Ok(());
        }
        self.prepare()?;
        let counts = ReachFile::new()?;
        let variables = self.below(&self.tools.reach, &libc()?, counts.variable());
        let libraries = Preloaded::nothing(false);
        let (_, drive) = self.traced(&variables, libraries, plain, Some(&counts))?;
        if let Some(mut drive) = drive
            && drive.fault(None).is_none()
        {
            let drained = drive.drain.take().map(Drain::figures);
            measurement.figures.extend(drained.into_iter().flatten());
        }
        Ok(())
    }

    /// Returns whether fewer processes than under the baseline end by themselves in a traced process, too, and not only
    /// because signals ended some as they do in well programs: by chance `grep -q` is done before what it reads is.
    /// Where nothing can be traced, that is taken to be so.
    pub(super) fn ends_badly(&self, ran: &Ran, reference: &Reference) -> StepResult<bool> {
        for _ in 0..REPEATS {
            self.prepare()?;
            let log = Handed::new()?;
            let variables = self.variables(&log);
            let (found, _) = self.traced(&variables, Preloaded::nothing(false), ran, None)?;
            if found.cut.is_some() {
                return Ok(true);
            }
            let ended = malloc_probe::ended(&log.text());
            if held(&reference.trees).fewer_ended(ended, "").is_some() {
                let ordinary = |signal| ORDINARY.contains(signal);
                return Ok(found.signals.is_empty() || !found.signals.iter().all(ordinary));
            }
        }
        Ok(false)
    }

    /// Adds the objects that no preloaded allocator serves.
    fn add_beyond(&self, measurement: &mut Measurement, found: &FoundPrograms) {
        // An allocator inside the program itself was reported before anything ran.
        let main_program = resolved(recognise(Path::new(&self.command.command[0])).program());
        let is_told = |one: &Beyond| !one.is_bound() && Path::new(&one.object) == main_program;
        let untold = found.beyond.iter().filter(|(_, one)| !is_told(one));
        let words = listed(untold.map(|(program, one)| one.words_in(program)));
        let notes = &mut measurement.notes;
        notes.extend(words.map(|words| (BEYOND.into(), words)));
    }

    /// Returns the variables of a process in which a library intercepts all calls that glibc serves, together with the
    /// variant's own. libc comes before any allocator that the program is linked to, for functions that the library
    /// does not define.
    fn below(
        &self,
        library: &Path,
        libc: &Path,
        variable: (String, String),
    ) -> BTreeMap<String, String> {
        let environment = self.variant().map(|variant| variant.environment.clone());
        let mut variables = environment.unwrap_or_default();
        let preload = format!("{}:{}", library.display(), libc.display());
        variables.extend([("LD_PRELOAD".to_owned(), preload), variable]);
        variables
    }

    pub(super) fn prepare(&self) -> Result<()> {
        if let Some(outcome) = self.prepared()? {
            bail!("{outcome}");
        }
        Ok(())
    }
}

/// Returns how a process with a probe ended, if not as the plain one did.
fn failed(probed: &Ran, plain: &Ran) -> Option<Outcome> {
    let end = &probed.end;
    match &probed.served {
        Some(served) => served.fault.clone(),
        None if end.code().is_some() && end.code() == plain.end.code() => None,
        None => end.outcome(Phase::Run, None),
    }
}

/// Adds how much of the command a preloaded allocator reaches, and faults of the command that show
/// only under an allocator other than glibc.
fn add_reach(
    measurement: &mut Measurement,
    counts: &ReachFile,
    found: &FoundPrograms,
) -> Result<Reach> {
    let bound = found.beyond.iter().filter(|(_, one)| one.is_bound());
    let bound: BTreeSet<&str> = bound.map(|(_, one)| one.object.as_str()).collect();
    let reach = counts.read(&found.anonymous_bytes, !bound.is_empty())?;
    let mut add = |name: &str, value: u64| {
        measurement.figures.insert(name.into(), value as f64);
    };
    add(CALLS, reach.calls);
    if reach.anonymous_bytes > 0 {
        add(ANONYMOUS, reach.anonymous_bytes);
        add(REACHED, reach.reached_bytes);
    }
    if reach.other_sizes > 0 {
        add(OTHER_SIZES, reach.other_sizes);
    }
    if reach.frees_of_others {
        let notes = &mut measurement.notes;
        notes.insert(MIXED.into(), joined(bound, ", "));
    }
    Ok(reach)
}

/// Adds how much was live at the end of the process that held the most at its end.
fn add_end(measurement: &mut Measurement, reach: &Reach, found: &FoundPrograms) {
    let name = |pid: i32| {
        let mut programs = found.executed.iter().filter(|executed| executed.pid == pid);
        let forked = || "a forked process".to_owned();
        programs
            .next_back()
            .map_or_else(forked, |executed| executed.program.clone())
    };
    let notes = &mut measurement.notes;
    let Some((pid, live_bytes)) = reach.end else {
        let why = "unknown, since none of its processes ends by exit";
        notes.insert(END_UNKNOWN.into(), why.into());
        return;
    };
    let figures = &mut measurement.figures;
    figures.insert(END_LIVE.into(), live_bytes as f64);
    if reach.processes > 1 {
        notes.insert(END_OF.into(), name(pid));
    }
    if let Some(pid) = reach.untold_end {
        let why = format!(
            "unknown in {}, which has had more memory, and ends without exit",
            name(pid)
        );
        notes.insert(END_UNKNOWN.into(), why);
    }
}

/// Joins words with commas; `None` if there are none.
fn listed(words: impl Iterator<Item = String>) -> Option<String> {
    let words = joined(words, ", ");
    (!words.is_empty()).then_some(words)
}

fn libc() -> Result<PathBuf> {
    find_library("libc.so.6").context("libc.so.6 is not in the dynamic linker's folders")
}
