//! What is wrong with a process: which allocator served it, how it ended, what it printed.

use super::last_words::with_words;
use super::output::OutputReader;
use super::process::Ran;
use super::{CommandRunner, EarlyEnd, REPEATS, Reference, StepResult, malloc_probe};
use crate::execute::Outcome;
use crate::execute::child::may_go_on;
use crate::plan::CpusSeen;
use anyhow::Context;
use heapmark_wire::Phase;
use std::process::{Command, Stdio};

impl CommandRunner<'_> {
    /// Returns what is wrong with a process; `None` if nothing is. Without a reference, this process becomes the
    /// reference.
    pub(super) fn fault(
        &self,
        ran: &mut Ran,
        reference: Option<&Reference>,
    ) -> StepResult<Option<Outcome>> {
        if let Some(outcome) = ran.end.out_of_memory() {
            return Ok(Some(outcome));
        }
        if let Some(why) = ran.end.refused(&self.command.command[0]) {
            return Ok(Some(Outcome::Unsupported { why }));
        }
        if let Some(why) = malloc_probe::unproven(self.subject, &ran.witnessed) {
            return Ok(Some(Outcome::NotLoaded { why }));
        }
        if let Some(CpusSeen::Count(count)) = self.job.cpus_seen
            && let Some(other) = ran
                .scheduled
                .iter()
                .find(|scheduling| scheduling.cpus() != count)
        {
            let why = format!(
                "a process of it has seen {} CPUs, not {count}",
                other.cpus()
            );
            return Ok(Some(Outcome::Unsupported { why }));
        }
        let is_unproven = ran.witnessed.is_empty() && self.silent().is_none();
        let phase = if is_unproven { Phase::Load } else { Phase::Run };
        let unproven = || {
            let why = "no process of the command reported which library serves its malloc";
            let why = match &ran.unreported {
                Some(trouble) => format!("{why}: {trouble}"),
                None => why.into(),
            };
            Outcome::NotLoaded { why }
        };
        if let Some(served) = &ran.served {
            let fault = served.fault.clone();
            return match fault.or_else(|| is_unproven.then(unproven)) {
                None => self.other_output(ran, reference),
                fault => Ok(fault),
            };
        }
        let Some(code) = ran.end.code() else {
            return Ok(ran.end.outcome(phase, None));
        };
        if is_unproven {
            let outcome = ran.end.outcome(phase, None);
            return Ok(outcome
                .filter(|outcome| code != 0 && matches!(outcome, Outcome::NotLoaded { .. }))
                .or_else(|| Some(unproven())));
        }
        if let Some(reference) = reference
            && code != reference.code
        {
            if self.job.limit.is_some() {
                let phase = phase.word().into();
                return Ok(Some(Outcome::Exit { code, phase }));
            }
            let (baseline, wanted) = (&reference.baseline.allocator.name, reference.code);
            let words = ran.end.last_words();
            let is_own = reference.baseline.variant == self.subject.variant;
            let what = if self.is_baseline && is_own {
                let what = format!(
                    "a later run of it ended otherwise than its first: exit code {code}, not {wanted}"
                );
                with_words(&what, &words)
                    + "; if the command changes what it works on: --prepare CMD restores that before each run"
            } else {
                with_words(
                    &format!("exit code {code}, under {baseline} {wanted}"),
                    &words,
                )
            };
            return Ok(Some(Outcome::WrongResult { what }));
        }
        self.other_output(ran, reference)
    }

    /// Compares what a process printed with what the reference printed.
    fn other_output(
        &self,
        ran: &mut Ran,
        reference: Option<&Reference>,
    ) -> StepResult<Option<Outcome>> {
        // The reference's own output is taken later, if nothing else is wrong with the process.
        let Some((reference, output)) = reference.zip(ran.output.take_if(|_| reference.is_some()))
        else {
            return Ok(None);
        };
        let baseline = &reference.baseline.allocator.name;
        let (printed, difference) = output.end()?;
        ran.digest.push(printed.digest());
        let Some(what) = difference else {
            return Ok(None);
        };
        let wrong = Outcome::WrongResult {
            what: format!("{what} under {baseline}"),
        };
        if self.is_baseline {
            return Ok(Some(wrong));
        }
        for _ in 0..REPEATS {
            let again = match self.baseline_again(reference)? {
                Ok(again) => again,
                Err(outcome) => return Ok(Some(outcome)),
            };
            let output = again.output.map(OutputReader::end).transpose()?;
            if let Some(what) = output.and_then(|(_, difference)| difference) {
                let why = format!(
                    "what it prints is not the same each time under {baseline} either ({what}): leave out --check-output, or \
                     restore what it works on by --prepare CMD"
                );
                return Ok(Some(Outcome::Unsupported { why }));
            }
        }
        Ok(Some(wrong))
    }

    /// Returns the digest of what a real program wrote, if one is asked for.
    pub(super) fn written(&self) -> Result<Option<String>, EarlyEnd> {
        let real = self.command.real.as_ref();
        let Some((first, words)) = real.and_then(|real| real.digest.split_first()) else {
            return Ok(None);
        };
        let end = Command::new(first)
            .args(words)
            .current_dir(&self.command.folder)
            .env_clear()
            .envs(self.unmeasured())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {first}"))?;
        may_go_on(self.stop)?;
        let words = String::from_utf8_lossy(&end.stdout).trim().to_owned();
        if end.status.success() && !words.is_empty() {
            return Ok(Some(words));
        }
        let failed = format!("the digest of what it wrote failed ({})", end.status);
        let what = with_words(&failed, &String::from_utf8_lossy(&end.stderr));
        Err(Outcome::WrongResult { what }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tools;
    use super::super::server::Served;
    use super::*;
    use crate::execute::exit::End;
    use crate::execute::memory_file::stream_file;
    use crate::execute::{Job, Subject};
    use crate::plan::UserCommand;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    #[test]
    fn a_server_of_which_no_process_reports_is_no_result() {
        let command = UserCommand {
            command: vec!["server".into()],
            ..UserCommand::default()
        };
        let tools = Tools {
            witness: PathBuf::new(),
            timer: PathBuf::new(),
            reach: PathBuf::new(),
            aging: None,
        };
        let runner = CommandRunner {
            command: &command,
            tools: &tools,
            subject: &Subject::libc(),
            shares_files: false,
            is_baseline: true,
            job: &Job::default(),
            launcher: Path::new("/none"),
            timeout: Duration::ZERO,
            prepare_timeout: Duration::ZERO,
            stop: &AtomicBool::new(false),
        };
        let fault = |fault: Option<Outcome>| {
            let served = Served {
                client: Default::default(),
                used: Default::default(),
                rest_rss_bytes: None,
                drained: Vec::new(),
                fault,
            };
            let end = End {
                launched: Default::default(),
                hang: None,
                wants_terminal: false,
                stderr: stream_file("heapmark-stderr").unwrap(),
                under_limit: None,
                oom_kill: false,
                unaccounted: false,
            };
            let fault = runner.fault(&mut Ran::of(end, Some(served)), None);
            fault.unwrap_or_else(|_| panic!("no step failed"))
        };
        assert!(matches!(fault(None), Some(Outcome::NotLoaded { .. })));
        let what = "the client failed".into();
        let of_client = Some(Outcome::WrongResult { what });
        assert_eq!(fault(of_client.clone()), of_client);
    }
}
