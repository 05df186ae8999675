//! Runs the processes of `heapmark check`.

use crate::definition::{Check, Form};
use crate::process_page::CheckPage;
use anyhow::Result;
use heapmark_core::execute::child::{Launch, Look, Rules, end_tree, inherits, may_go_on, padded};
use heapmark_core::execute::exit::{End, signal_name};
use heapmark_core::execute::memory_file::{mapped_file, memory_file, text};
use heapmark_core::execute::patience::Patience;
use heapmark_core::execute::report::proof;
use heapmark_core::execute::report_lines::ReportLines;
use heapmark_core::execute::tree::{descendants, resident_bytes};
use heapmark_core::execute::{Guest, Outcome, Subject, prove};
use rustix::process::Pid;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The most memory that a check may take; no check needs a quarter of it.
const MOST_BYTES: u64 = 2 << 30;
/// How many times its usual time a check may take on a machine that does other work.
const MOST_PATIENCE: u32 = 10;
const LOOK: Duration = Duration::from_millis(20);
/// The exit code of a check that cannot apply.
const UNSUPPORTED: i32 = 77;
/// Exit codes of a check that went wrong itself; allocators that end a process by exiting use other
/// codes.
const FAILED: [i32; 2] = [120, 121];
/// The loader's exit code if a library of the program is missing.
const NOT_LOADED: i32 = 127;

/// What a process of a check is to do.
pub struct CheckJob<'a> {
    /// The check.
    pub check: &'a Check,
    /// For a wrong program: the size of its blocks, and what the attacker knows.
    pub cell: (u64, Form),
    /// Whether a wrong program makes its mistake; its benign twin makes the same calls without it.
    pub is_wrong: bool,
    /// The seed for a wrong program's random bytes and choices.
    pub seed: u32,
}

/// What one process of a check reported, and how it ended.
#[derive(Default)]
pub struct Trial {
    /// How the process ended.
    pub ended: ProcessEnd,
    /// The signal that ended the process, if one did.
    pub signal: Option<i32>,
    /// The process's lines: `reason=` what did not hold, `note=` a value, `sample=` a value that
    /// means something only together with those of other processes, `rate=` how many of the
    /// process's own trials ended in one way.
    pub text: String,
    /// What a wrong program wrote while it ran.
    pub page: CheckPage,
}

/// How a process ended.
#[derive(Clone, Default)]
pub enum ProcessEnd {
    /// The process came to its regular end.
    #[default]
    Done,
    /// The check does not apply, for this reason.
    Unsupported(String),
    /// The process was ended by a signal, or by an exit code that no check has.
    Broken(String),
    /// The process took longer than this.
    Hung(Duration),
    /// The process took more memory than a check may.
    TooLarge,
    /// A library other than the requested one served the process, or the check itself went wrong,
    /// for this reason.
    NotLoaded(String),
}

impl Trial {
    /// The values of the lines with this key.
    pub fn said(&self, key: &str) -> Vec<String> {
        let lines = ReportLines::parse(&self.text);
        let values = lines.values(key).map(str::trim_end);
        values.map(String::from).collect()
    }
}

impl ProcessEnd {
    /// The end in words; `None` for the regular end.
    pub fn words(&self) -> Option<String> {
        match self {
            ProcessEnd::Done => None,
            ProcessEnd::TooLarge => Some("ended by heapmark: it took more than 2 GiB".into()),
            ProcessEnd::Unsupported(why) | ProcessEnd::Broken(why) | ProcessEnd::NotLoaded(why) => {
                Some(why.clone())
            }
            ProcessEnd::Hung(limit) => Some(format!("not ended after {} s", limit.as_secs_f64())),
        }
    }
}

/// Starts the processes of checks.
pub struct CheckProcesses<'a> {
    /// The guest, which launches the programs.
    pub guest: Guest,
    /// The programs that contain the checks, in the order of [`crate::definition::CheckProgram`].
    pub programs: [PathBuf; 3],
    /// The time limit of a process, if the check's own limit does not apply.
    pub timeout: Option<Duration>,
    /// Set if a signal has stopped the run.
    pub stop: &'a AtomicBool,
}

impl CheckProcesses<'_> {
    /// Runs a process of a check. Fails with `Interrupted` if `stop` was set.
    pub fn trial(&self, subject: &Subject, job: &CheckJob) -> Result<Trial> {
        may_go_on(self.stop)?;
        let refused = match subject.refused.clone() {
            Some(Outcome::Unsupported { why }) => Some(ProcessEnd::Unsupported(why)),
            Some(outcome) => Some(ProcessEnd::NotLoaded(outcome.reason())),
            None => None,
        };
        let replaced = || {
            Some(ProcessEnd::NotLoaded(
                prove::are_as_first_seen(subject).err()?,
            ))
        };
        if let Some(ended) = refused.or_else(replaced) {
            return Ok(Trial {
                ended,
                ..Trial::default()
            });
        }
        let program = &self.programs[job.check.program as usize];
        let timeout = self.timeout.unwrap_or(job.check.usual_time());
        let report = memory_file("heapmark-check")?;
        let environment = subject.environment();
        let variables = padded(&environment, 0);
        let launcher = self.guest.path();
        let mut launch = Launch::new(launcher, &[], &Rules::default(), variables)?;
        inherits(&mut launch.command, &report);
        launch
            .command
            .arg(program)
            .arg(&job.check.name)
            .arg(report.as_raw_fd().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let page = match job.check.is_wrong() {
            true => Some(mapped_file("heapmark-misuse", CheckPage::BYTES)?),
            false => None,
        };
        if let Some(page) = &page {
            inherits(&mut launch.command, page);
            let (size_bytes, form) = job.cell;
            let wrong = if job.is_wrong { "wrong" } else { "right" };
            launch
                .command
                .arg(page.as_raw_fd().to_string())
                .arg(size_bytes.to_string())
                .args([&form.to_string(), wrong])
                .arg(job.seed.to_string());
        }
        let mut ended_for = None;
        let mut patience = Patience::new(timeout);
        let mut look = |launcher: i32| {
            let resident: u64 = descendants(launcher).into_iter().map(resident_bytes).sum();
            let why = if resident > MOST_BYTES {
                Some(ProcessEnd::TooLarge)
            } else {
                patience
                    .is_over(launcher)
                    .then_some(ProcessEnd::Hung(timeout))
            };
            if why.is_some() {
                ended_for = why;
                Pid::from_raw(launcher).into_iter().for_each(end_tree);
            }
            LOOK
        };
        let end = launch.run(
            timeout * MOST_PATIENCE,
            self.stop,
            Some(&mut look as Look<'_>),
        )?;
        end.was_started(program)?;
        let text = text(&report, 0);
        let lines = ReportLines::parse(&text);
        // A process that ended before its proof was complete has proven nothing, and its end says
        // why.
        let proof = Some(proof(&lines)).filter(|proof| proof.is_complete());
        let others = proof.and_then(|proof| prove::verify(subject, &proof).err());
        let ended = match (others, ended_for, &end.hang) {
            (Some(why), _, _) => ProcessEnd::NotLoaded(why),
            (None, Some(ended), _) => ended,
            (None, None, Some((limit, _))) => ProcessEnd::Hung(*limit),
            _ => by_itself(&end, &lines),
        };
        let status = end.launched.status;
        let page = match page {
            Some(page) => CheckPage::read(&page, &lines, &subject.allocator.stops_at)?,
            None => CheckPage::default(),
        };
        Ok(Trial {
            ended,
            signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
            page,
            text,
        })
    }
}

fn by_itself(end: &End, lines: &ReportLines) -> ProcessEnd {
    let reached = lines.value("end").is_some();
    let when = if reached { " after its end" } else { "" };
    let last_words = || match end.last_words().lines().last() {
        Some(line) => format!(", last words: {line}"),
        None => String::new(),
    };
    let signal = libc::WTERMSIG(end.launched.status);
    match (end.code(), lines.value("unsupported")) {
        (Some(0), _) if reached => ProcessEnd::Done,
        (Some(UNSUPPORTED), Some(why)) => ProcessEnd::Unsupported(why.into()),
        (Some(NOT_LOADED), _) if lines.value("owner").is_none() => {
            ProcessEnd::NotLoaded(format!("the program could not be loaded{}", last_words()))
        }
        (Some(code), _) if FAILED.contains(&code) => ProcessEnd::NotLoaded(format!(
            "the check itself failed: exit code {code}{}",
            last_words()
        )),
        (Some(code), _) => ProcessEnd::Broken(format!("exit code {code}{when}{}", last_words())),
        // If a library has killed its parent process, the launcher is gone and left no report.
        (None, _) if end.killed_for_memory() => {
            ProcessEnd::NotLoaded("killed by the kernel, for lack of memory".into())
        }
        (None, _) if signal == libc::SIGKILL && !end.unaccounted => {
            ProcessEnd::NotLoaded("killed by SIGKILL, and not for lack of memory".into())
        }
        (None, _) => ProcessEnd::Broken(format!("{}{when}{}", signal_name(signal), last_words())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapmark_wire::Launched;

    #[test]
    fn ends_that_are_not_the_allocators_are_told_apart() {
        let ended = |status: i32, unaccounted: bool, oom_kill: bool, lines: &str| -> String {
            let launched = Launched {
                status,
                ..Launched::default()
            };
            let end = End {
                launched,
                hang: None,
                wants_terminal: false,
                stderr: memory_file("heapmark-stderr").unwrap(),
                under_limit: None,
                oom_kill,
                unaccounted,
            };
            match by_itself(&end, &ReportLines::parse(lines)) {
                ProcessEnd::Done => "done".into(),
                ProcessEnd::Unsupported(why) => format!("unsupported: {why}"),
                ProcessEnd::Broken(why) => format!("broken: {why}"),
                ProcessEnd::NotLoaded(why) => format!("error: {why}"),
                ProcessEnd::Hung(_) | ProcessEnd::TooLarge => "of no status".into(),
            }
        };
        let exit = |code: i32, lines: &str| ended(code << 8, false, false, lines);
        assert_eq!(exit(0, "end=reached\n"), "done");
        assert_eq!(exit(0, ""), "broken: exit code 0");
        assert_eq!(
            exit(77, "unsupported=no thread\n"),
            "unsupported: no thread"
        );
        assert_eq!(exit(9, ""), "broken: exit code 9");
        for code in FAILED {
            let expected = format!("error: the check itself failed: exit code {code}");
            assert_eq!(exit(code, ""), expected);
        }
        assert_eq!(ended(libc::SIGABRT, false, false, ""), "broken: SIGABRT");
        assert_eq!(
            ended(libc::SIGKILL, false, true, ""),
            "error: killed by the kernel, for lack of memory"
        );
        assert_eq!(
            ended(libc::SIGKILL, false, false, ""),
            "error: killed by SIGKILL, and not for lack of memory"
        );
        assert_eq!(ended(libc::SIGKILL, true, true, ""), "broken: SIGKILL");
        assert_eq!(ended(libc::SIGABRT, false, true, ""), "broken: SIGABRT");
    }
}
