//! A look at a process: all that heapmark reports about it.

use crate::given::{Dropped, Given, dropped, given};
use crate::held::HeldMemory;
use crate::objects::MappedObjects;
use crate::preload::{Preload, preloads};
use crate::process::{Process, listed};
use crate::serving::{Serving, Whom, found};
use anyhow::Result;
use heapmark_core::catalog::Allocator;
use heapmark_core::execute::reach::mappings;
use heapmark_core::observe::{Groups, Root};
use serde::Serialize;
use std::collections::BTreeMap;

/// What was seen of a process.
#[derive(Serialize)]
pub struct ProcessView {
    /// The process's number.
    pub pid: i32,
    /// The parent's number.
    pub parent: i32,
    /// The kernel's short name of the process.
    pub name: String,
    /// The words of the command line.
    pub command: Vec<String>,
    /// The file that the process executes.
    pub program: String,
    /// The allocators that serve the process; the one that serves the program's own calls comes
    /// first.
    pub malloc: Vec<Serving>,
    /// The libraries that were to be preloaded.
    pub preloads: Vec<Preload>,
    /// The process's settings.
    pub settings: Vec<Given>,
    /// Variables that ancestors of the process have and the process does not.
    pub dropped: Vec<Dropped>,
    /// How many threads the process has.
    pub threads: u64,
    /// How many threads there are of each name.
    pub thread_names: BTreeMap<String, usize>,
    /// The CPUs that the process may use.
    pub cpus: SeenCpus,
    /// The memory of the process.
    pub memory: HeldMemory,
    /// Further facts that readers must know, one sentence each.
    pub notes: Vec<String>,
}

/// The CPUs that a process sees.
#[derive(Clone, Copy, Serialize)]
pub struct SeenCpus {
    /// The CPUs of the machine, by which some allocators size their arenas.
    pub online: u64,
    /// CPUs on which the process may run.
    pub allowed: u64,
    /// How many CPUs the process's control group lets it use at once on average; `None` if there is
    /// no limit, or none that is known.
    pub quota: Option<f64>,
}

impl ProcessView {
    /// Looks at the process with this number.
    pub fn at(pid: i32, known: &[Allocator]) -> Result<ProcessView> {
        let process = Process::of(pid)?;
        let maps = process.maps()?;
        let has_linker = mappings(&maps).any(|mapping| mapping.is_of_linker());
        let objects = MappedObjects::of(&process, &maps);
        let preloads = preloads(&objects, has_linker);
        let mut found = found(&objects, &preloads, known)?;
        if process.has_overwritten {
            let words = "it has overwritten its environment, as programs that set their title do: which variables it was given is not known";
            found.notes.push(words.into());
        }
        let settings = given(&objects, &maps, &found.servings, known);
        let dropped = dropped(&process, &process.ancestors(), known);
        let memory = HeldMemory::by(&process)?;
        let root = Root::machine();
        let online = root
            .text("sys/devices/system/cpu/online")
            .unwrap_or_default();
        let group = Groups::of_process(&root, &pid.to_string(), "cpu");
        let limit = group.and_then(|group| group.cpu_limit(&root)).flatten();
        let look = ProcessView {
            pid,
            parent: process.parent,
            name: process.name.clone(),
            command: process.command.clone(),
            program: process.program.to_string_lossy().into_owned(),
            malloc: found.servings,
            preloads,
            settings,
            dropped,
            threads: process.threads,
            thread_names: process.thread_names(),
            cpus: SeenCpus {
                online: listed(&online),
                allowed: process.cpus_allowed,
                quota: limit.map(|(_, cpus)| cpus),
            },
            memory,
            notes: found.notes,
        };
        process.is_the_same_program()?;
        Ok(look)
    }

    /// Whether an allocator of this family serves the program's own calls. One that is inside the program and serves those that
    /// name it does as well, unless a preload was meant and failed: the preload was to serve all calls.
    pub fn is_served_by(&self, family: &str) -> bool {
        let has_failed = self.preloads.iter().any(|preload| preload.why.is_some());
        let is_dropped = self.dropped.iter().any(|it| it.variable == "LD_PRELOAD");
        let serves_program = |serving: &&Serving| match serving.serves {
            Whom::All | Whom::Program => true,
            Whom::Callers => !has_failed && !is_dropped,
            Whom::Libraries | Whom::OneLibrary => false,
        };
        self.malloc
            .iter()
            .filter(serves_program)
            .any(|serving| serving.is_of(family))
    }

    /// Whether both views say the same, apart from numbers that change: the processes execute the
    /// same program with the same allocators and settings.
    pub fn says_the_same(&self, other: &ProcessView) -> bool {
        let content = |look: &ProcessView| {
            let dropped = look.dropped.iter();
            let dropped = dropped.map(|it| (it.variable.clone(), it.value.clone()));
            (
                look.program.clone(),
                look.malloc.clone(),
                look.preloads.clone(),
                look.settings.clone(),
                dropped.collect::<Vec<_>>(),
                look.notes.clone(),
            )
        };
        content(self) == content(other)
    }
}
