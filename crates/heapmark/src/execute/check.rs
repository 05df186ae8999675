//! One process of `heapmark check`.

use super::child::{Launch, Look, Rules, end_tree, may_go_on, padded};
use super::exit::{End, signal_name};
use super::memory_file::{inherited_file, text};
use super::patience::Patience;
use super::report_lines::ReportLines;
use super::tree::{descendants, field};
use super::{Guest, LoadedObject, Outcome, Proof, Subject, prove};
use crate::catalog::check::{Check, Language};
use anyhow::Result;
use rustix::process::Pid;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The most memory that a check may take; no check needs a quarter of it.
const MOST_BYTES: u64 = 2 << 30;
/// How often its own time a check may take on a machine that does other work.
const MOST_PATIENCE: u32 = 10;
const LOOK: Duration = Duration::from_millis(20);
/// The exit code of a check that cannot apply.
const UNSUPPORTED: i32 = 77;
/// Those of a check that failed itself; allocators that end a process by an exit use others.
const FAILED: [i32; 2] = [120, 121];
/// That of the loader if a library of the program is missing.
const NOT_LOADED: i32 = 127;

/// What one process of a check said, and how it ended.
pub struct Trial {
    /// How it ended.
    pub ended: Ended,
    /// What did not hold.
    pub reasons: Vec<String>,
    /// Values, where standards leave it open.
    pub notes: Vec<String>,
}

/// How it ended.
pub enum Ended {
    /// At its own end.
    Done,
    /// It cannot apply: why.
    Unsupported(String),
    /// By a signal, or by an exit code that no check has.
    Broken(String),
    /// It took longer than this.
    Hung(Duration),
    /// It took more memory than a check may.
    TooLarge,
    /// Another library than the one that was asked for served it, or the check itself went wrong:
    /// why.
    NotLoaded(String),
}

/// Runs checks.
pub struct CheckRunner<'a> {
    /// The launcher.
    pub guest: Guest,
    /// The program that has all checks in C.
    pub program: PathBuf,
    /// The one that has those in C++.
    pub program_in_cxx: PathBuf,
    /// The one that has those that replace operators.
    pub program_replacing: PathBuf,
    /// How long a process may take, if not as long as the check itself says.
    pub timeout: Option<Duration>,
    /// Set if a signal has stopped the run.
    pub stop: &'a AtomicBool,
}

impl CheckRunner<'_> {
    /// Makes a check once. Fails with `Interrupted` if `stop` was set.
    pub fn trial(&self, subject: &Subject, check: &Check) -> Result<Trial> {
        let program = match check.language {
            Language::C => &self.program,
            Language::Cxx if check.replacing => &self.program_replacing,
            Language::Cxx => &self.program_in_cxx,
        };
        let timeout = self.timeout.unwrap_or(check.usual_time());
        let process = self.process(subject, program, &check.name, timeout, None)?;
        Ok(Trial {
            reasons: process.said("reason"),
            notes: process.said("note"),
            ended: process.ended,
        })
    }

    /// One process; with a page that is mapped in it, and further words, if it is one of hardening.
    pub(super) fn process(
        &self,
        subject: &Subject,
        program: &Path,
        check: &str,
        timeout: Duration,
        page: Option<(&File, &[String])>,
    ) -> Result<Process> {
        may_go_on(self.stop)?;
        let refused = match subject.refused.clone() {
            Some(Outcome::Unsupported { why }) => Some(Ended::Unsupported(why)),
            Some(outcome) => Some(Ended::NotLoaded(outcome.reason())),
            None => None,
        };
        let replaced = || Some(Ended::NotLoaded(prove::are_as_first_seen(subject).err()?));
        if let Some(ended) = refused.or_else(replaced) {
            return Ok(Process {
                ended,
                signal: None,
                text: String::new(),
            });
        }
        let report = inherited_file("heapmark-check")?;
        let environment = subject.environment();
        let variables = padded(&environment, 0);
        let launcher = self.guest.path();
        let mut launch = Launch::new(launcher, &[], &Rules::default(), variables)?;
        launch
            .command
            .arg(program)
            .arg(check)
            .arg(report.as_raw_fd().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if let Some((page, words)) = page {
            launch.command.arg(page.as_raw_fd().to_string()).args(words);
        }
        let mut is_too_large = false;
        let mut hangs = false;
        let mut patience = Patience::new(timeout);
        let mut look = |launcher: i32| {
            if resident_bytes(launcher) > MOST_BYTES {
                is_too_large = true;
                Pid::from_raw(launcher).into_iter().for_each(end_tree);
            } else if patience.is_over(launcher) {
                hangs = true;
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
        let others = proof(&lines).and_then(|proof| prove::verify(subject, &proof).err());
        let ended = match (others, &end.hang) {
            (Some(why), _) => Ended::NotLoaded(why),
            _ if is_too_large => Ended::TooLarge,
            _ if hangs => Ended::Hung(timeout),
            (_, Some((limit, _))) => Ended::Hung(*limit),
            _ => by_itself(&end, &lines),
        };
        let status = end.launched.status;
        let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        Ok(Process {
            ended,
            signal,
            text,
        })
    }
}

/// A process and what it said.
pub(super) struct Process {
    pub ended: Ended,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    text: String,
}

impl Process {
    /// The values of the lines with this key.
    pub fn said(&self, key: &str) -> Vec<String> {
        let lines = ReportLines::parse(&self.text);
        let values = lines.values(key).map(str::trim_end);
        values.map(String::from).collect()
    }
}

fn by_itself(end: &End, lines: &ReportLines) -> Ended {
    let reached = lines.value("end").is_some();
    let when = if reached { " after its end" } else { "" };
    let last_words = || match end.last_words().lines().last() {
        Some(line) => format!(", last words: {line}"),
        None => String::new(),
    };
    let signal = libc::WTERMSIG(end.launched.status);
    match (end.code(), lines.value("unsupported")) {
        (Some(0), _) if reached => Ended::Done,
        (Some(UNSUPPORTED), Some(why)) => Ended::Unsupported(why.into()),
        (Some(NOT_LOADED), _) if lines.value("owner").is_none() => {
            Ended::NotLoaded(format!("the program could not be loaded{}", last_words()))
        }
        (Some(code), _) if FAILED.contains(&code) => Ended::NotLoaded(format!(
            "the check itself failed: exit code {code}{}",
            last_words()
        )),
        (Some(code), _) => Ended::Broken(format!("exit code {code}{when}{}", last_words())),
        // If a library has killed its parent process, the launcher is gone and left no account.
        (None, _) if end.killed_for_memory() => {
            Ended::NotLoaded("killed by the kernel, for lack of memory".into())
        }
        (None, _) if signal == libc::SIGKILL && !end.unaccounted => {
            Ended::NotLoaded("killed by SIGKILL, and not for lack of memory".into())
        }
        (None, _) => Ended::Broken(format!("{}{when}{}", signal_name(signal), last_words())),
    }
}

/// The owners of functions, `owner=malloc /path/lib.so`, and all loaded objects; `None` if the process
/// did not come that far.
fn proof(lines: &ReportLines) -> Option<Proof> {
    let object = |path: &str| {
        let file = std::fs::metadata(path).ok()?;
        Some(LoadedObject {
            path: path.into(),
            device: file.dev(),
            inode: file.ino(),
            build_id: String::new(),
        })
    };
    let mut proof = Proof {
        objects: lines.values("object").filter_map(object).collect(),
        ..Proof::default()
    };
    for (function, path) in lines.named("owner") {
        proof.owners.insert(function.into(), proof.objects.len());
        proof.objects.push(object(path)?);
    }
    proof.is_complete().then_some(proof)
}

/// Resident bytes of all processes below a launcher.
fn resident_bytes(launcher: i32) -> u64 {
    let of = |pid: i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let kib: u64 = field(&status, "VmRSS:")?
            .split_whitespace()
            .next()?
            .parse()
            .ok()?;
        Some(kib << 10)
    };
    descendants(launcher).into_iter().filter_map(of).sum()
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
                stderr: inherited_file("heapmark-stderr").unwrap(),
                under_limit: None,
                oom_kill,
                unaccounted,
            };
            match by_itself(&end, &ReportLines::parse(lines)) {
                Ended::Done => "done".into(),
                Ended::Unsupported(why) => format!("unsupported: {why}"),
                Ended::Broken(why) => format!("broken: {why}"),
                Ended::NotLoaded(why) => format!("error: {why}"),
                Ended::Hung(_) | Ended::TooLarge => "of no status".into(),
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
