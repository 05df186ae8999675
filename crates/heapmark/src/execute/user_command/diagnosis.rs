//! What is wrong with a process: which allocator served it, how it ended, what it printed.

use super::output::OutputReader;
use super::process::Ran;
use super::{CommandRunner, Reference, malloc_probe};
use crate::execute::Outcome;
use crate::execute::report::Report;
use anyhow::Result;
use heapmark_wire::Phase;

impl CommandRunner<'_> {
    /// `None` if nothing is wrong. Without a reference, this process becomes the reference.
    pub(super) fn fault(
        &self,
        ran: &mut Ran,
        reference: Option<&Reference>,
    ) -> Result<Option<Outcome>> {
        if let Some(why) = ran.refused.clone() {
            return Ok(Some(Outcome::Unsupported { why }));
        }
        if let Some(why) = malloc_probe::unproven(self.subject, &ran.witnessed) {
            return Ok(Some(Outcome::NotLoaded { why }));
        }
        let phase = if ran.witnessed.is_empty() {
            Phase::Load
        } else {
            Phase::Run
        };
        if let Some(served) = &ran.served {
            return Ok(served.fault());
        }
        let Some(code) = ran.end.code() else {
            return Ok(ran.end.outcome(phase, &Report::parse("")));
        };
        if ran.witnessed.is_empty() {
            let outcome = ran.end.outcome(phase, &Report::parse(""));
            let silent =
                "no process of the command reported which library serves its malloc".into();
            return Ok(outcome
                .filter(|outcome| code != 0 && matches!(outcome, Outcome::NotLoaded { .. }))
                .or(Some(Outcome::NotLoaded { why: silent })));
        }
        let Some(reference) = reference else {
            return Ok(None);
        };
        if code != reference.code {
            let what = format!(
                "exit code {code}, under {} {}",
                reference.baseline.allocator.name, reference.code
            );
            return Ok(Some(Outcome::WrongResult { what }));
        }
        let difference = ran
            .output
            .take()
            .map(OutputReader::difference)
            .transpose()?
            .flatten();
        Ok(difference.map(|what| Outcome::WrongResult {
            what: format!("{what} under {}", reference.baseline.allocator.name),
        }))
    }
}
