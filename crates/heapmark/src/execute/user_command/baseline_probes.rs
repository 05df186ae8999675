//! What is asked of the baseline only, in processes of its check: how much of the CPU time is
//! malloc and free, and which programs of the tree no allocator reaches.

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
/// Note: programs that an allocator may serve, but that did not report one.
pub const SILENT: &str = "silent";
/// Note: why the search for these programs is incomplete.
pub const UNSEARCHED: &str = "unsearched";
/// Note: why the share of malloc and free in the CPU time is unknown.
pub const NO_CEILING: &str = "no_ceiling";

/// A tree that is stopped at each fork and exec may take this many times as long as the plain one,
/// and at least `LEAST_PATIENCE`.
const SLOWER: u32 = 20;
const LEAST_PATIENCE: Duration = Duration::from_secs(30);
/// How often to check for the end if there is nothing to look at.
const SHORT_WAIT: Duration = Duration::from_millis(1);

impl CommandRunner<'_> {
    /// Adds the answers to the measurement of the plain process; `false` if `stop` was set.
    pub(super) fn asked(&self, measurement: &mut Measurement, plain: &Ran) -> Result<bool> {
        Ok(self.timed(measurement, plain)? && self.searched(measurement, plain)?)
    }

    /// Runs one process in which glibc serves and its calls are timed.
    fn timed(&self, measurement: &mut Measurement, plain: &Ran) -> Result<bool> {
        self.prepare()?;
        // libc comes before any allocator that the program is linked to, for functions that the
        // timer does not define.
        let libc = find_library("libc.so.6")
            .context("libc.so.6 is not in the dynamic linker's folders")?;
        let preload = format!("{}:{}", self.tools.timer.display(), libc.display());
        let times = Times::new()?;
        let variables = [("LD_PRELOAD".to_string(), preload), times.variable()].into();
        let Some(timed) = self.start(variables, None, None, Some(&times))? else {
            return Ok(false);
        };
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
        let calls = timed
            .served
            .as_ref()
            .map_or_else(|| times.read(), |served| Ok(served.calls))?;
        // Timing itself takes time. The plain process is free of it, but its CPU time is usable
        // only if glibc serves it.
        let plain_is_glibc = self.subject.library.files.iter().all(|file| *file == libc);
        let cpu_ns = if plain_is_glibc {
            timed.cpu_ns().min(plain.cpu_ns())
        } else {
            timed.cpu_ns()
        };
        measurement.figures.extend(calls.figures(cpu_ns));
        Ok(true)
    }

    /// Runs one process that is traced through each fork and exec of its tree.
    fn searched(&self, measurement: &mut Measurement, plain: &Ran) -> Result<bool> {
        self.prepare()?;
        let (log, account) = (Log::new()?, inherited_file("heapmark-account")?);
        let mut launch = self.launch(&account, true, &self.variables(&log))?;
        launch
            .env_clear()
            .envs(self.environment())
            .stdout(nowhere()?)
            .stderr(nowhere()?);
        let limit = LEAST_PATIENCE
            .max(Duration::from_nanos(plain.end.usage.wall_ns).saturating_mul(SLOWER));
        let mut drive = self
            .command
            .client
            .as_ref()
            .map(|client| Drive::new(client, self, &account, None))
            .transpose()?;
        let mut look = |pid| drive.as_mut().map_or(SHORT_WAIT, |drive| drive.look(pid));
        let Some(found) = search(launch, &self.tools.witness, limit, self.stop, &mut look)? else {
            return Ok(false);
        };
        let silent = Silent::among(&found.executed, &log.read());
        let told = [(UNPROVEN, silent.out_of_reach), (SILENT, silent.unknown)];
        measurement.notes.extend(
            told.into_iter()
                .filter_map(|(name, words)| Some((name.to_string(), words?))),
        );
        let undriven = || {
            drive
                .as_mut()?
                .fault(None)
                .map(|outcome| outcome.to_string())
        };
        measurement.notes.extend(
            found
                .cut
                .or_else(undriven)
                .map(|why| (UNSEARCHED.to_string(), why)),
        );
        Ok(true)
    }

    fn prepare(&self) -> Result<()> {
        if let Some(outcome) = self.prepared()? {
            bail!("{outcome}");
        }
        Ok(())
    }
}
