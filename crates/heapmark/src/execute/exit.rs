//! How a process ended, and the outcome if the end alone decides it.

use super::memory_file::text;
use super::report::Report;
use super::{Outcome, Usage};
use anyhow::{Result, anyhow};
use heapmark_wire::{EXIT_FAILED, Launched, Phase};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// How much of a failed process's stderr is kept.
pub(super) const STDERR_BYTES: u64 = 4096;
/// The exit code of a process that the dynamic linker did not start.
const LINKER_REFUSED: i32 = 127;

/// How a process ended, before its report is read.
pub(super) struct End {
    pub(super) status: i32,
    /// Set if it was killed for exceeding its time: the limit, and what its threads were doing.
    pub(super) hang: Option<(Duration, Vec<String>)>,
    pub(super) usage: Usage,
    pub(super) stderr: File,
    /// Whether it ran below a launcher that was ended before it could write its account. Unless the
    /// process hung, heapmark did not do that.
    pub(super) unaccounted: bool,
}

/// How a process ended that a launcher ran.
pub(super) struct LaunchedEnd {
    pub end: End,
    /// How many processes it left running.
    pub left_behind: u64,
    /// Why it could not be started.
    pub refused: Option<String>,
}

impl End {
    /// The end of the process that a launcher ran, in place of the launcher's own end, if the
    /// launcher wrote an account.
    pub(super) fn launched(self, account: &File, command: &str) -> LaunchedEnd {
        let Some(launched) = Launched::parse(&text(account, 0)) else {
            let end = End {
                unaccounted: true,
                ..self
            };
            return LaunchedEnd {
                end,
                left_behind: 0,
                refused: None,
            };
        };
        let refused = (launched.errno != 0).then(|| {
            format!(
                "cannot start {command}: {}",
                std::io::Error::from_raw_os_error(launched.errno)
            )
        });
        let end = End {
            status: launched.status,
            usage: launched.into(),
            ..self
        };
        LaunchedEnd {
            end,
            left_behind: launched.left_behind,
            refused,
        }
    }

    /// As [`End::launched`], for programs that heapmark brings or has built: failing to start one
    /// is an error, not a result.
    pub(super) fn started(self, account: &File, program: &Path) -> Result<End> {
        let LaunchedEnd { end, refused, .. } =
            self.launched(account, &program.display().to_string());
        refused.map_or(Ok(end), |why| Err(anyhow!(why)))
    }

    /// Whether it ended by itself, with exit code 0.
    pub(super) fn is_clean(&self) -> bool {
        self.hang.is_none() && self.status == 0
    }

    /// Its exit code, if it ended by itself.
    pub(super) fn code(&self) -> Option<i32> {
        (self.hang.is_none() && libc::WIFEXITED(self.status))
            .then(|| libc::WEXITSTATUS(self.status))
    }

    /// All that the process wrote to stderr.
    pub(super) fn stderr(&self) -> String {
        text(&self.stderr, 0)
    }

    /// The last part of its stderr.
    pub(super) fn last_words(&self) -> String {
        let length = self.stderr.metadata().map_or(0, |metadata| metadata.len());
        text(&self.stderr, length.saturating_sub(STDERR_BYTES))
            .trim_end()
            .to_string()
    }

    /// The outcome if the way it ended decides it. `None` if the guest ran to its end, so that its
    /// report decides.
    pub(super) fn outcome(&self, phase: Phase, report: &Report<'_>) -> Option<Outcome> {
        let phase_word = || phase.word().to_string();
        if let Some((limit, threads)) = &self.hang {
            let (after_s, threads) = (limit.as_secs_f64(), threads.clone());
            return Some(Outcome::Hang {
                after_s,
                phase: phase_word(),
                threads,
            });
        }
        if libc::WIFSIGNALED(self.status) {
            let signal = libc::WTERMSIG(self.status);
            return Some(match signal {
                _ if self.unaccounted => {
                    let signal = format!(
                        "{} to its parent process, which heapmark did not send",
                        signal_name(signal)
                    );
                    Outcome::Crash {
                        signal,
                        phase: phase_word(),
                    }
                }
                // heapmark sends this signal only after the process has ended.
                libc::SIGKILL => Outcome::Oom {
                    what: format!(
                        "killed in phase {}, most likely by the kernel for lack of memory",
                        phase.word()
                    ),
                },
                _ => Outcome::Crash {
                    signal: signal_name(signal),
                    phase: phase_word(),
                },
            });
        }
        let code = libc::WEXITSTATUS(self.status);
        match (code, phase, report.failure()) {
            (0, Phase::Done, None) => None,
            (EXIT_FAILED, _, Some((kind, what))) => {
                let what = what.to_string();
                Some(match kind {
                    "oom" => Outcome::Oom {
                        what: format!("{what} in phase {}", phase.word()),
                    },
                    "wrong-result" => Outcome::WrongResult { what },
                    "unsupported" => Outcome::Unsupported { why: what },
                    "absent" => Outcome::Absent { why: what },
                    "not-loaded" => Outcome::NotLoaded { why: what },
                    _ => Outcome::Error { what },
                })
            }
            (LINKER_REFUSED, Phase::Load, _) => Some(match self.linker_words() {
                Some(why) => Outcome::NotLoaded { why },
                None => Outcome::Exit {
                    code,
                    phase: phase_word(),
                },
            }),
            // The dynamic linker failed when a function was called for the first time.
            (LINKER_REFUSED, ..) => {
                let words = self
                    .linker_words()
                    .map_or(String::new(), |why| format!(": {why}"));
                Some(Outcome::Exit {
                    code,
                    phase: phase_word() + &words,
                })
            }
            _ => Some(Outcome::Exit {
                code,
                phase: phase_word(),
            }),
        }
    }

    /// What the dynamic linker printed before it gave up, for example that a library which the
    /// preloaded one needs is missing.
    fn linker_words(&self) -> Option<String> {
        const SAYS: [&str; 2] = [
            "error while loading shared libraries: ",
            "symbol lookup error: ",
        ];
        let words = |line: &'_ str| {
            SAYS.iter()
                .find_map(|says| Some(line.find(says)? + says.len()))
        };
        self.last_words()
            .lines()
            .find_map(|line| Some(line[words(line)?..].to_string()))
    }
}

/// The usual name of a signal.
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGSYS => "SIGSYS",
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGUSR2 => "SIGUSR2",
        other => return format!("signal {other}"),
    };
    name.to_string()
}
