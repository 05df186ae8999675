//! Why glibc keeps what a server has freed: the same load is served again under settings, each of which prevents one
//! way of growing. Only for a server that is watched after its load, and that kept much in its check.

use super::CommandRunner;
use super::process::Ran;
use super::server::drain::{BEFORE, LITTLE_BYTES, figure};
use crate::execute::Measurement;
use crate::plan::Client;
use anyhow::Result;
use std::time::Duration;

/// Ways of growing, with the setting under which glibc does not grow in that way.
pub const PROBES: [(&str, (&str, &str)); 2] = [
    // All threads allocate in one arena.
    ("arenas", ("MALLOC_ARENA_MAX", "1")),
    // Large blocks always stay out of the heap: by default, this limit rises when large blocks are freed.
    ("drift", ("MALLOC_MMAP_THRESHOLD_", "131072")),
];

/// The moment whose growth is compared.
pub const MOMENT: &str = "1000";
const SHORT: Duration = Duration::from_secs(1);

/// Returns the name of the figure for how much resident memory grew under the setting that prevents this way of
/// growing.
pub fn grown_under(way: &str) -> String {
    format!("drain_under_{way}_grown_bytes")
}

impl CommandRunner<'_> {
    /// Runs the probes, if the plain process kept enough memory to be worth it, and glibc served it.
    pub(super) fn shaped(&self, measurement: &mut Measurement, plain: &Ran) -> Result<()> {
        let grown = |kind: &str| {
            let at = |moment| measurement.figures.get(&figure(moment, kind));
            Some(at(MOMENT)? - at(BEFORE)?)
        };
        let freed = grown("heap_bytes").zip(grown("live_bytes"));
        if freed.is_none_or(|(heap, live)| heap - live.max(0.0) < LITTLE_BYTES) || !is_glibcs(plain)
        {
            return Ok(());
        }
        for (way, (variable, value)) in PROBES {
            let grown = self.grown_with(variable, value)?;
            let grown = grown.map(|bytes| (grown_under(way), bytes));
            measurement.figures.extend(grown);
        }
        Ok(())
    }

    /// Returns by how many bytes the server grows under a setting; `None` if the row has that setting already, or
    /// the server fails with it.
    fn grown_with(&self, variable: &str, value: &str) -> Result<Option<f64>> {
        let mut variables = self.subject.environment();
        if variables.insert(variable.into(), value.into()).is_some() {
            return Ok(None);
        }
        self.prepare()?;
        let mut command = self.command.clone();
        let short = |client: Client| Client {
            drain_ns: Some(SHORT.as_nanos() as u64),
            ..client
        };
        command.client = command.client.map(short);
        let runner = CommandRunner {
            command: &command,
            ..*self
        };
        let mut look = |_| SHORT;
        let ran = runner.start(variables, Some(&mut look), None, None, None)?;
        let Some(served) = ran.served.filter(|served| served.fault.is_none()) else {
            return Ok(None);
        };
        let at = |moment| {
            let name = figure(moment, "rss_bytes");
            let mut all = served.drained.iter();
            all.find_map(|(known, bytes)| (*known == name).then_some(*bytes))
        };
        Ok(at(MOMENT)
            .zip(at(BEFORE))
            .map(|(after, before)| after - before))
    }
}

/// Returns whether glibc serves all processes that have reported.
fn is_glibcs(ran: &Ran) -> bool {
    let is_libc = |path: &str| {
        path.rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with("libc.so"))
    };
    let mut all = ran.witnessed.iter().map(|process| {
        let owner = process.proof.owners.get("malloc");
        owner.is_some_and(|place| is_libc(&process.proof.objects[*place].path))
    });
    !ran.witnessed.is_empty() && all.all(|is_libcs| is_libcs)
}
