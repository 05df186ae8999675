//! How a process ended, and the outcome if the end alone decides it.

use super::Outcome;
use super::memory_file::text;
use super::memory_limit::UnderLimit;
use anyhow::{Result, anyhow};
use heapmark_wire::{EXIT_FAILED, Launched, Phase};
use std::fmt::Display;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// The number of bytes of a failed process's stderr that are kept.
pub const STDERR_BYTES: u64 = 4096;
/// The exit code of a process that the dynamic linker could not start.
const LINKER_REFUSED: i32 = 127;

/// Returns the last informative line, which is neither the notice of a core dump nor a remark on an earlier line.
pub fn last_useful_line(text: &str) -> Option<&str> {
    let is_remark = |line: &str| {
        let words = line.rsplit_once("] ").map_or(line, |(_, words)| words);
        let words = words.trim_start();
        words.starts_with("NOTE:") || words.starts_with("note:") || words.starts_with("@ ")
    };
    let says = |line: &&str| {
        let line = line.trim();
        !line.is_empty() && !is_remark(line) && !line.ends_with("(core dumped)")
    };
    let mut lines = text.lines();
    let last = lines.clone().rfind(|line| !line.trim().is_empty());
    lines.rfind(says).or(last)
}

/// How a process ended, before its report is read.
pub struct End {
    /// The launcher's account of the process, or heapmark's account of the launcher if `unaccounted`.
    pub launched: Launched,
    /// The time limit, and what the threads were doing, if the process was killed for exceeding that limit.
    pub hang: Option<(Duration, Vec<String>)>,
    /// Whether the process was killed because it reads from its terminal or changes it.
    pub wants_terminal: bool,
    pub stderr: File,
    /// How the process fared under its memory limit, if it had one.
    pub under_limit: Option<UnderLimit>,
    /// Whether the kernel killed a process for lack of memory while this one ran.
    pub oom_kill: bool,
    /// Whether the launcher was ended before it could write its account. heapmark ends it only if
    /// the process hung.
    pub unaccounted: bool,
}

impl End {
    /// Returns why the process could not be started, or not go on without its terminal.
    pub fn refused(&self, command: impl Display) -> Option<String> {
        if self.wants_terminal {
            return Some(format!(
                "{command} reads from its terminal or changes it, which no measured process may: give it what it reads by --stdin"
            ));
        }
        let errno = self.launched.errno;
        (errno != 0 && self.out_of_memory().is_none()).then(|| {
            let why = std::io::Error::from_raw_os_error(errno);
            format!("cannot start {command}: {why}")
        })
    }

    /// Fails if the program could not be started. heapmark brings or has built this program, so
    /// that is an error and not a result.
    pub fn was_started(&self, program: &Path) -> Result<()> {
        self.refused(program.display())
            .map_or(Ok(()), |why| Err(anyhow!(why)))
    }

    /// Returns the outcome if the memory limit alone decides it.
    pub fn out_of_memory(&self) -> Option<Outcome> {
        self.under_limit?.outcome(self.launched.errno)
    }

    /// Returns the process's exit code, if it ended by itself.
    pub fn code(&self) -> Option<i32> {
        ExitStatus::from_raw(self.launched.status)
            .code()
            .filter(|_| self.hang.is_none())
    }

    /// Returns whether the process got SIGKILL while the kernel counted a kill for lack of memory. heapmark itself
    /// sends that signal only after a process has ended.
    pub fn killed_for_memory(&self) -> bool {
        let signal = ExitStatus::from_raw(self.launched.status).signal();
        signal == Some(libc::SIGKILL) && self.oom_kill && !self.unaccounted
    }

    /// Returns the CPU time of the whole tree of processes.
    pub fn cpu_ns(&self) -> u64 {
        self.launched.user_ns + self.launched.sys_ns
    }

    /// Returns all that the process wrote to stderr.
    pub fn stderr(&self) -> String {
        text(&self.stderr, 0)
    }

    /// Returns the last part of the process's stderr.
    pub fn last_words(&self) -> String {
        let length = self.stderr.metadata().map_or(0, |metadata| metadata.len());
        text(&self.stderr, length.saturating_sub(STDERR_BYTES))
            .trim_end()
            .to_string()
    }

    /// Returns the outcome if the way the process ended decides it. `None` if the guest ran to its
    /// end, so that its report decides. `failure` is why the guest gave up: the outcome's word, and
    /// the reason.
    pub fn outcome(&self, phase: Phase, failure: Option<(&str, &str)>) -> Option<Outcome> {
        let word = phase.word();
        if let Some((limit, threads)) = &self.hang {
            return Some(Outcome::Hang {
                after_s: limit.as_secs_f64(),
                phase: word.into(),
                threads: threads.clone(),
            });
        }
        if let Some(outcome) = self.out_of_memory() {
            return Some(outcome);
        }
        let status = self.launched.status;
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            if self.killed_for_memory() {
                let what = format!("killed in phase {word} by the kernel, for lack of memory");
                return Some(Outcome::Oom { what });
            }
            let mut signal = signal_name(signal);
            if self.unaccounted {
                signal += " to its parent process, which heapmark did not send";
            }
            let phase = word.into();
            return Some(Outcome::Crash { signal, phase });
        }
        let code = libc::WEXITSTATUS(status);
        let exit = |phase| Outcome::Exit { code, phase };
        Some(match (code, phase, failure) {
            (0, Phase::Done, None) => return None,
            (EXIT_FAILED, _, Some((kind, what))) => {
                let (what, why) = (what.to_string(), what.to_string());
                match kind {
                    "oom" => Outcome::Oom {
                        what: format!("{what} in phase {word}"),
                    },
                    "no-thread" if self.under_limit.is_some_and(|limit| limit.is_limited) => {
                        Outcome::Oom { what }
                    }
                    "wrong-result" => Outcome::WrongResult { what },
                    "unsupported" => Outcome::Unsupported { why },
                    "absent" => Outcome::Absent { why },
                    "not-loaded" => Outcome::NotLoaded { why },
                    "crash" | "exit" => of_started(kind, &what),
                    _ => Outcome::Error { what },
                }
            }
            (LINKER_REFUSED, ..) => match self.linker_words() {
                None => exit(word.into()),
                Some(why) if phase == Phase::Load => Outcome::NotLoaded { why },
                // The dynamic linker failed when a function was called for the first time.
                Some(why) => exit(format!("{word}: {why}")),
            },
            _ => exit(word.into()),
        })
    }

    /// Returns what the dynamic linker printed before it gave up, for example that a library which
    /// the preloaded one needs is missing.
    fn linker_words(&self) -> Option<String> {
        const SAYS: [&str; 2] = [
            "error while loading shared libraries: ",
            "symbol lookup error: ",
        ];
        let words = |line: &str| {
            SAYS.iter()
                .find_map(|says| Some(line.split_once(says)?.1.to_string()))
        };
        self.last_words().lines().find_map(words)
    }
}

/// Returns the outcome of a process that the guest has started, from text such as `11 a started process`.
fn of_started(kind: &str, text: &str) -> Outcome {
    let (number, process) = text.split_once(' ').unwrap_or_default();
    let phase = process.to_string();
    match number.parse() {
        Ok(signal) if kind == "crash" => Outcome::Crash {
            signal: signal_name(signal),
            phase,
        },
        Ok(code) => Outcome::Exit { code, phase },
        Err(_) => Outcome::Error { what: text.into() },
    }
}

/// Returns the usual name of a signal.
pub fn signal_name(signal: i32) -> String {
    signal_hook::low_level::signal_name(signal)
        .map_or_else(|| format!("signal {signal}"), Into::into)
}

#[cfg(test)]
mod tests {
    use super::last_useful_line;

    #[test]
    fn the_last_line_that_says_something_is_told() {
        let blamed = "1 alloc.cc:7] wrong size\n1 alloc.cc:9] NOTE: the stack is not the cause\n\n";
        assert_eq!(last_useful_line(blamed), Some("1 alloc.cc:7] wrong size"));
        let dumped = "x.c:3: error\n    @ 0x12 main\nAborted (core dumped)\n";
        assert_eq!(last_useful_line(dumped), Some("x.c:3: error"));
        assert_eq!(last_useful_line("NOTE: all\n"), Some("NOTE: all"));
        assert_eq!(last_useful_line(" \n"), None);
    }
}
