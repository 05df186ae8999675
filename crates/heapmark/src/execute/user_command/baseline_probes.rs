//! What is asked of the baseline only, in processes of its check: how much of the CPU time is malloc and free, and which programs
//! of the tree no allocator reaches.

use super::CommandRunner;
use super::in_malloc::Times;
use super::malloc_probe::{Log, Silent};
use super::output::nowhere;
use super::process::Ran;
use super::server::Drive;
use crate::build::find_library;
use crate::execute::Measurement;
use crate::execute::exec_tracer::search;
use crate::execute::memory_file::inherited_file;
use crate::execute::report::Report;
use anyhow::{Context, Result, bail};
use heapmark_wire::Phase;
use std::time::Duration;

/// Note: programs that no allocator reaches, with the reasons.
pub const UNPROVEN: &str = "unproven";
/// Note: programs that an allocator may serve, and that could not say so.
pub const SILENT: &str = "silent";
/// Note: why such programs were not looked for to the end.
pub const UNSEARCHED: &str = "unsearched";
/// Note: why nobody knows how much of the CPU time is malloc and free.
pub const NO_CEILING: &str = "no_ceiling";

/// A tree that is stopped at each fork and exec may take so many times as long as the plain one, and this long in any case.
const SLOWER: u32 = 20;
const LEAST_PATIENCE: Duration = Duration::from_secs(30);
/// Where there is nothing to look at, whether all is over yet.
const SHORT_WAIT: Duration = Duration::from_millis(1);

impl CommandRunner<'_> {
    /// Adds the answers to what the plain process measured; `false` where `stop` was set meanwhile.
    pub(super) fn asked(&self, measurement: &mut Measurement, plain: &Ran) -> Result<bool> {
        Ok(self.timed(measurement, plain)? && self.searched(measurement, plain)?)
    }

    /// One process in which glibc serves and its calls are timed.
    fn timed(&self, measurement: &mut Measurement, plain: &Ran) -> Result<bool> {
        self.prepare()?;
        // In front of an allocator that the program is linked to, for the functions that the timer leaves alone.
        let libc = find_library("libc.so.6").context("libc.so.6 is not in the dynamic linker's folders")?;
        let preload = format!("{}:{}", self.tools.timer.display(), libc.display());
        let times = Times::new()?;
        let variables = [("LD_PRELOAD".to_string(), preload), times.variable()].into();
        let Some(timed) = self.start(variables, None, None, Some(&times))? else { return Ok(false) };
        let fault = match &timed.served {
            Some(served) => served.fault(),
            None if timed.end.code().is_some() => None,
            None => timed.end.outcome(Phase::Run, &Report::parse("")),
        };
        if let Some(outcome) = fault {
            let why = format!("the process in which calls were timed ended {outcome}");
            measurement.notes.insert(NO_CEILING.into(), why);
            return Ok(true);
        }
        let calls = timed.served.as_ref().map_or_else(|| times.read(), |served| Ok(served.calls))?;
        // Timing costs time itself; the plain process paid none of it, but tells nothing of glibc where another serves it.
        let plain_is_glibc = self.subject.library.files.iter().all(|file| *file == libc);
        let cpu_ns = if plain_is_glibc { timed.cpu_ns().min(plain.cpu_ns()) } else { timed.cpu_ns() };
        measurement.figures.extend(calls.figures(cpu_ns));
        Ok(true)
    }

    /// One process that is followed through each fork and exec of its tree.
    fn searched(&self, measurement: &mut Measurement, plain: &Ran) -> Result<bool> {
        self.prepare()?;
        let (log, account) = (Log::new()?, inherited_file("heapmark-account")?);
        let mut launch = self.launch(&account, true, &self.variables(&log))?;
        launch.env_clear().envs(self.environment()).stdout(nowhere()?).stderr(nowhere()?);
        let limit = LEAST_PATIENCE.max(Duration::from_nanos(plain.end.usage.wall_ns).saturating_mul(SLOWER));
        let mut drive =
            self.trial.client.as_ref().map(|client| Drive::new(client, self, &account, None)).transpose()?;
        let mut look = |pid| drive.as_mut().map_or(SHORT_WAIT, |drive| drive.look(pid));
        let Some(found) = search(launch, &self.tools.witness, limit, self.stop, &mut look)? else { return Ok(false) };
        let silent = Silent::among(&found.executed, &log.read());
        let told = [(UNPROVEN, silent.out_of_reach), (SILENT, silent.unknown)];
        measurement.notes.extend(told.into_iter().filter_map(|(name, words)| Some((name.to_string(), words?))));
        let undriven = || drive.as_mut()?.fault(None).map(|outcome| outcome.to_string());
        measurement.notes.extend(found.cut.or_else(undriven).map(|why| (UNSEARCHED.to_string(), why)));
        Ok(true)
    }

    fn prepare(&self) -> Result<()> {
        if let Some(outcome) = self.prepared()? {
            bail!("{outcome}");
        }
        Ok(())
    }
}
