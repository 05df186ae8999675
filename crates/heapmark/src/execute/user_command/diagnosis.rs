//! What is wrong with a process: which allocator served it, how it ended, what it printed.

use super::process::Ran;
use super::{CommandRunner, Reference, malloc_probe};
use crate::execute::Outcome;
use anyhow::Result;
use heapmark_wire::Phase;

impl CommandRunner<'_> {
    /// `None` if nothing is wrong. Without a reference, this process becomes the reference.
    pub(super) fn fault(
        &self,
        ran: &mut Ran,
        reference: Option<&Reference>,
    ) -> Result<Option<Outcome>> {
        if let Some(outcome) = ran.end.out_of_memory() {
            return Ok(Some(outcome));
        }
        if let Some(why) = ran.end.refused(&self.command.command[0]) {
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
            return Ok(served.fault.clone());
        }
        let Some(code) = ran.end.code() else {
            return Ok(ran.end.outcome(phase, None));
        };
        if ran.witnessed.is_empty() {
            let outcome = ran.end.outcome(phase, None);
            let why = "no process of the command reported which library serves its malloc".into();
            return Ok(outcome
                .filter(|outcome| code != 0 && matches!(outcome, Outcome::NotLoaded { .. }))
                .or(Some(Outcome::NotLoaded { why })));
        }
        let Some(reference) = reference else {
            return Ok(None);
        };
        let baseline = &reference.baseline.allocator.name;
        let difference = if code != reference.code {
            if self.job.limit.is_some() {
                let phase = phase.word().into();
                return Ok(Some(Outcome::Exit { code, phase }));
            }
            let wanted = reference.code;
            Some(format!("exit code {code}, under {baseline} {wanted}"))
        } else if let Some(output) = ran.output.take() {
            let (_, difference) = output.end()?;
            difference.map(|what| format!("{what} under {baseline}"))
        } else {
            None
        };
        Ok(difference.map(|what| Outcome::WrongResult { what }))
    }
}
