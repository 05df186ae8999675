//! A command, its allocator, and the environment that it runs in.

use crate::execute::{Job, Subject};
use crate::plan::{CommandVariant, UserCommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The libraries that are preloaded together with an allocator.
pub struct Tools {
    /// The library that reports which library serves memory; preloaded into every process.
    pub witness: PathBuf,
    /// The library that times calls of glibc's functions; preloaded into one process of the baseline's check.
    pub timer: PathBuf,
    /// The library that counts what a preloaded allocator would serve; preloaded into one process of the baseline's check.
    pub reach: PathBuf,
    /// The libraries that age heaps, in a run of aged heaps.
    pub aging: Option<Aging>,
}

/// The libraries that age heaps.
pub struct Aging {
    /// The library that ages the heap of a program; preloaded into every process.
    pub litter: PathBuf,
    /// The library that counts the sizes requested from glibc's functions; preloaded into one process of the baseline's check.
    pub sizes: PathBuf,
}

/// The command under an allocator.
pub struct CommandRunner<'a> {
    /// The command.
    pub command: &'a UserCommand,
    /// The libraries that are preloaded together with an allocator.
    pub tools: &'a Tools,
    /// The allocator.
    pub subject: &'a Subject,
    /// Whether two processes of the command run at the same time and may write to the same files.
    pub shares_files: bool,
    /// Whether this row is the one that the command's other rows are compared with (the baseline, or the first row of a
    /// variant), or its A/A copy.
    pub is_baseline: bool,
    /// The job: environment padding, and whether this is a check.
    pub job: &'a Job,
    /// The launcher that starts the command.
    pub launcher: &'a Path,
    /// How long a process may take.
    pub timeout: Duration,
    /// How long `--prepare` may take.
    pub prepare_timeout: Duration,
    /// The flag that is set when everything must end.
    pub stop: &'a AtomicBool,
}

impl CommandRunner<'_> {
    /// Returns the variant that this row runs, if rows are variants.
    pub(super) fn variant(&self) -> Option<&CommandVariant> {
        self.command.variant(self.subject.variant.as_deref())
    }

    /// Returns whether this row runs the same variant as the baseline of the run.
    pub(super) fn is_first_variant(&self) -> bool {
        self.variant() == self.command.variants.first()
    }

    /// Returns why nothing can be preloaded into the command, so that none of its processes reports which library
    /// serves it.
    pub(super) fn silent(&self) -> Option<&str> {
        self.variant()?.silent.as_deref()
    }

    /// Returns the user's own environment without settings that configure allocators: with them,
    /// rows would not measure what their names state, and two allocators in one process would prove
    /// nothing.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        self.command.settings.split(self.unmeasured()).0
    }

    /// Returns the environment of processes that are not measured: for a real program its own,
    /// otherwise the user's without `LD_PRELOAD`.
    pub(super) fn unmeasured(&self) -> Vec<(OsString, OsString)> {
        let Some(real) = &self.command.real else {
            let variables = std::env::vars_os();
            return variables.filter(|(name, _)| name != "LD_PRELOAD").collect();
        };
        let variables = real.environment.iter();
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        variables.collect()
    }
}
