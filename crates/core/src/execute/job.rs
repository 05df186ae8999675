//! What a process gets: the job's text, and the environment of its allocator.

use super::child::Rules;
use super::turns::Side;
use super::{MemoryLimit, Subject};
use crate::catalog::allocator::{Argument, Purge, VersionKind, VersionProbe};
use crate::catalog::{Allocator, Source, joined};
use crate::plan::{Case, Cell, CpusSeen, HugePages, Litter, Mode, Target};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

/// The work of one process.
#[derive(Clone, Default)]
pub struct Job {
    /// The kernel or program that runs.
    pub kernel: String,
    /// The number of worker threads.
    pub threads: u32,
    /// The seed of the random state.
    pub seed: u64,
    /// The number of warm-up iterations.
    pub cold: u32,
    /// The number of measured iterations.
    pub iterations: u32,
    /// Whether every block is checked for overlap with all others; then nothing is timed.
    pub check: bool,
    /// Whether a test after the measurement shows that the allocator still returns sound blocks.
    pub exercise: bool,
    /// Bytes of padding in the environment.
    pub padding: u32,
    /// How memory over time is recorded: `polled`, or the path of the file into which the guest
    /// writes its own points.
    pub series: Option<String>,
    /// What the process measures.
    pub mode: Mode,
    /// Whether the process idles at its end and then reads what is still resident, if its memory is
    /// measured.
    pub idles: bool,
    /// The path of the valgrind that runs the process, if its instructions are counted.
    pub below: Option<PathBuf>,
    /// What ages the process's heap, in a run of aged heaps.
    pub litter: Option<Litter>,
    /// Whether the check counts how often each size is requested.
    pub counts_sizes: bool,
    /// Which memory of the process may be in transparent huge pages.
    pub huge_pages: HugePages,
    /// The CPUs that are reported to the process, if it is a command whose calls heapmark answers.
    pub cpus_seen: Option<CpusSeen>,
    /// The limit on the process's memory, in a run that looks for the smallest such limit.
    pub limit: Option<MemoryLimit>,
    /// The process's place in a duet.
    pub side: Option<Side>,
    /// The kernel's parameters, by name.
    pub parameters: BTreeMap<String, String>,
}

impl Job {
    /// Returns the job of a cell.
    pub fn new(case: &Case, cell: &Cell, cold: u32, iterations: u32, check: bool) -> Result<Job> {
        let row = case.row(&cell.allocator);
        let of_case = match &case.target {
            Target::Kernel(name) | Target::Program(name) => Some(name),
            Target::Command(_) => Some(&case.workload),
            Target::Rows => None,
        };
        let runs = row.map(|row| &row.program).or(of_case);
        let mut parameters = case.job_parameters()?;
        parameters.extend(row.into_iter().flat_map(|row| row.parameters.clone()));
        let kernel = runs.with_context(|| format!("nothing runs {}", cell.id))?;
        Ok(Job {
            kernel: kernel.clone(),
            threads: case.threads,
            seed: cell.seed,
            cold,
            iterations,
            check,
            exercise: true,
            padding: cell.padding,
            parameters,
            ..Job::default()
        })
    }

    /// Returns the rules that apply to the job's process and to all that it starts.
    pub(super) fn rules(&self) -> Rules<'_> {
        Rules {
            huge_pages: self.huge_pages,
            cpus_seen: self.cpus_seen,
            limit: self.limit.as_ref(),
            side: self.side.as_ref(),
        }
    }

    /// Returns a job of a few calls, for the negative control.
    pub(super) fn control() -> Job {
        let parameters = [
            ("spots", "1"),
            ("objects", "1000"),
            ("sharing", "private"),
            ("pad", "true"),
            ("classes", "64:1"),
        ];
        Job {
            kernel: "churn".into(),
            threads: 1,
            seed: 1,
            iterations: 1,
            exercise: true,
            parameters: parameters
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .into(),
            ..Job::default()
        }
    }

    pub(super) fn version_text(probe: &VersionProbe) -> String {
        let returns = match probe.returns {
            VersionKind::Text => "text",
            VersionKind::Decimal => "decimal",
            VersionKind::Mallctl => "mallctl",
        };
        format!(
            "version.symbol={}\nversion.returns={returns}\n",
            probe.symbol
        )
    }

    /// Returns the job text for a kind of call that few workloads make.
    pub(super) fn corner_text(corner: &str) -> String {
        format!("corner={corner}\nallocator=library\n")
    }

    /// Returns text that identifies the result of a check, so that it can be stored: the job
    /// without its number of iterations and without the folders of its files. A trace is named by
    /// its hash, a compiled trace by its own key.
    pub fn work(&self, subject: &Subject) -> String {
        let text = self.text(subject);
        let is_work = |line: &&str| {
            let others = ["iterations=", "cold=", "param.trace="];
            !others.iter().any(|key| line.starts_with(key))
        };
        let without_folders = |line| match str::strip_prefix(line, "param.compiled=") {
            Some(path) => path.rsplit('/').next().unwrap_or(path),
            None => line,
        };
        joined(text.lines().filter(is_work).map(without_folders), "\n")
    }

    /// Returns the text that the guest reads.
    pub(super) fn text(&self, subject: &Subject) -> String {
        let null = matches!(subject.allocator.source, Source::Null);
        let mut text = format!(
            "kernel={}\nthreads={}\nseed={}\ncold={}\niterations={}\ncheck={}\nexercise={}\nallocator={}\n",
            self.kernel,
            self.threads,
            self.seed,
            self.cold,
            self.iterations,
            // The null allocator's blocks overlap by design.
            u8::from(self.check && !null),
            u8::from(self.exercise && !null),
            if null { "null" } else { "library" },
        );
        let preloads = !subject.library.files.is_empty() && subject.library.loader.is_none();
        if self.check && !null && preloads {
            text.push_str(if subject.allocator.wrapper {
                "wrapper=allowed\n"
            } else {
                "wrapper=refused\n"
            });
        }
        if let Some(series) = &self.series {
            let _ = writeln!(text, "series={series}");
        }
        text += &self.mode.job_lines(self.idles);
        if self.counts_sizes {
            text.push_str("sizes=1\n");
        }
        if let Some(litter) = self.litter.as_ref().filter(|litter| litter.bytes > 0) {
            let Litter {
                stay, bytes, sizes, ..
            } = litter;
            let _ = writeln!(
                text,
                "litter.stay={stay}\nlitter.bytes={bytes}\nlitter.sizes={sizes}"
            );
        }
        for (name, value) in &self.parameters {
            let _ = writeln!(text, "param.{name}={value}");
        }
        match &subject.allocator.purge {
            None => {}
            Some(Purge::Configured) => text.push_str("purge.kind=configured\n"),
            Some(Purge::Call {
                symbol,
                args,
                per_thread,
            }) => {
                let args = args.iter().map(|arg| match arg {
                    Argument::Integer(number) => format!("i:{number}"),
                    Argument::Text(text) => format!("s:{text}"),
                });
                // An allocator may consist of two libraries, and the purge function may be in the
                // one that does not define malloc.
                let owner = subject
                    .library
                    .files
                    .first()
                    .and_then(|file| file.file_name())
                    .unwrap_or_default();
                let _ = writeln!(
                    text,
                    "purge.kind=call\npurge.symbol={symbol}\npurge.args={}\npurge.per_thread={}\npurge.owner={}",
                    joined(args, " "),
                    u8::from(*per_thread),
                    owner.display()
                );
            }
        }
        text
    }
}

/// Returns why nothing but the guest can run under an allocator, if that is so.
pub fn only_guest(allocator: &Allocator) -> Option<String> {
    let is_libc = matches!(allocator.source, Source::Deb { .. });
    is_libc.then(|| {
        format!(
            "{} is a whole C library, under which kernels and replays of traces run: a program's children would be under the system's own",
            allocator.name
        )
    })
}

impl Subject {
    /// Returns the words in front of the guest's path if another C library's dynamic linker starts it. The
    /// folder of the library's file comes first: for the baseline's copy, it contains nothing else.
    pub(super) fn loader_words(&self) -> Vec<OsString> {
        let Some(loader) = &self.library.loader else {
            return Vec::new();
        };
        let files = self.library.files.iter().chain([loader]);
        let folders = files.filter_map(|file| Some(file.parent()?.display().to_string()));
        let folders: Vec<String> = folders.collect();
        let folders = folders.join(":");
        vec![loader.into(), "--library-path".into(), folders.into()]
    }

    /// Returns the complete environment of a measured process. Nothing is inherited, so no variable
    /// of the user's shell can configure an allocator unnoticed.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let mut environment = self.allocator.environment.clone();
        let files: Vec<_> = self
            .library
            .files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        if !files.is_empty() && self.library.loader.is_none() {
            environment.insert("LD_PRELOAD".into(), files.join(":"));
        }
        environment
    }

    pub(super) fn record_environment(
        mut environment: BTreeMap<String, String>,
        padding: u32,
    ) -> BTreeMap<String, String> {
        environment.insert("HEAPMARK_PADDING".into(), format!("{padding} bytes"));
        environment
    }

    /// Returns why this allocator cannot run this kernel, if that is known in advance.
    pub(super) fn cannot_run(&self, job: &Job) -> Option<String> {
        let kernel = job.kernel.as_str();
        if let Some(reason) = self.allocator.except.get(kernel) {
            return Some(reason.clone());
        }
        if job.below.is_some() && self.library.loader.is_some() {
            return Some("valgrind would count another C library's dynamic linker, too".into());
        }
        if self.allocator.single_threaded {
            return Some("built without locks, for programs of one thread".into());
        }
        let calls = heapmark_guest::kernels::find(kernel)?.calls;
        let preloads = !self.library.files.is_empty();
        let further = job
            .parameters
            .get("calls")
            .into_iter()
            .flat_map(|calls| calls.split(' '));
        let calls = calls.iter().copied().chain(further);
        let names: Vec<&str> = calls
            .filter(|call| !self.library.exports.contains(*call))
            .collect();
        (preloads && !names.is_empty()).then(|| {
            format!(
                "the library exports no {}, which {kernel} calls: libc would answer for it",
                names.join(", ")
            )
        })
    }
}
