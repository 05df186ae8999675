//! The libraries that a process was to preload, and whether it did: a preload that fails prints one
//! line on stderr at most.

use crate::objects::MappedObjects;
use crate::process::Process;
use heapmark_core::build::find_library;
use heapmark_core::build::inspect::inspect_any;
use heapmark_core::execute::prove::identity;
use heapmark_core::execute::reach::{Mapping, file_name, shares_mounts};
use heapmark_core::observe::Root;
use heapmark_core::observe::preflight::preloaded_everywhere;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use serde::Serialize;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A library that was to be preloaded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preload {
    /// The library's name, as it was given.
    pub named: String,
    /// The place of the name: `LD_PRELOAD`, or the system's file.
    pub place: &'static str,
    /// The library's mapped file; `None` if the library is not loaded.
    pub file: Option<String>,
    /// Why the library is not loaded.
    pub why: Option<String>,
}

/// The system's list of libraries to preload.
const SYSTEMS: &str = "/etc/ld.so.preload";

/// The libraries that a process was to preload.
pub fn preloads(objects: &MappedObjects, is_dynamic: bool) -> Vec<Preload> {
    let process = objects.process;
    let variable = process.variable("LD_PRELOAD").unwrap_or_default();
    let words = variable.split([' ', ':']).filter(|word| !word.is_empty());
    let named = words.map(|word| (word.to_owned(), "LD_PRELOAD"));
    let of_system = preloaded_everywhere(&Root::at(&process.path("")));
    let named = named.chain(of_system.into_iter().map(|word| (word, SYSTEMS)));
    named
        .map(|(named, place)| {
            let file = mapped(objects, &named);
            let why = file.is_none().then(|| why_not(objects, &named, is_dynamic));
            Preload {
                named,
                place,
                file,
                why,
            }
        })
        .collect()
}

/// The mapped file to which a given name leads.
fn mapped(objects: &MappedObjects, named: &str) -> Option<String> {
    let leads_to = |mapping: &Mapping| Some(mapping.file.to_owned());
    if named.contains('/') {
        let opened = meant(objects.process, named);
        let meant: Vec<PathBuf> = opened.iter().map(path).collect();
        // The file may have been deleted or replaced since.
        let had = |mapping: &Mapping| {
            let path = Path::new(mapping.former_path());
            let leads_there = |file: &PathBuf| fs::read_link(file).is_ok_and(|file| file == path);
            path == Path::new(named) || meant.iter().any(leads_there)
        };
        let is_it = |mapping: &&Mapping| {
            let own = identity(&mapping.path(objects.process.thread));
            had(mapping) || own.is_some() && meant.iter().any(|file| identity(file) == own)
        };
        let found = objects.firsts.iter().find(is_it);
        if found.is_some() || is_sure(named) {
            return leads_to(found?);
        }
    }
    leads_to(objects.named(file_name(named))?.0)
}

/// Whether a name always leads to the same file, as one with `$LIB` or `$ORIGIN` does not, nor a relative path: it starts at the
/// process's first working directory, which the process may have left.
fn is_sure(named: &str) -> bool {
    !named.contains('$') && (named.starts_with('/') || !named.contains('/'))
}

/// The files to which a path may lead: from the process's root, whose links stay below it; and as the process may have changed
/// its root since, from heapmark's own, if both have the same mounts.
fn meant(process: &Process, named: &str) -> Vec<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let open = |path: &Path| openat(CWD, path, flags, Mode::empty());
    if !named.starts_with('/') {
        let path = format!("/proc/{}/cwd/{named}", process.thread);
        return open(Path::new(&path)).into_iter().collect();
    }
    let below_root = open(&process.path("")).and_then(|root| {
        match openat2(root, named, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
            // Linux before 5.6, or a container that forbids what it does not know.
            Err(Errno::NOSYS | Errno::PERM) => open(&process.path(named)),
            opened => opened,
        }
    });
    let own = shares_mounts(process.thread).then(|| open(Path::new(named)).ok());
    below_root.into_iter().chain(own.flatten()).collect()
}

/// The path of an open file, which is also a link to its own path.
fn path(file: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

fn why_not(objects: &MappedObjects, named: &str, is_dynamic: bool) -> String {
    let process = objects.process;
    if !is_dynamic {
        return "the program is static: it has no dynamic linker that could preload".into();
    }
    if process.is_secure {
        return "the program runs with the privileges of its file (set-user-ID, set-group-ID, capabilities), and the \
                dynamic linker then preloads only what the system's folders have, with set-user-ID itself"
            .into();
    }
    // A name alone is sought in folders of the process's own root.
    let root = identity(&process.path(""));
    let is_elsewhere = !named.contains('/') && root != identity(Path::new("/"));
    if !is_sure(named) || is_elsewhere {
        return "not loaded; why is not known".into();
    }
    let opened = meant(process, named);
    let file = match named.contains('/') {
        true => opened.first().map(path),
        false => find_library(named),
    };
    let fault = match file.filter(|file| file.exists()) {
        None => {
            Some("there is no such file: the dynamic linker said so on stderr, and went on".into())
        }
        Some(file) => inspect_any(&file).err().map(|error| {
            let words = error.to_string();
            words
                .rsplit_once(": ")
                .map_or(words.clone(), |(_, why)| why.to_owned())
        }),
    };
    // What is there now need not be what was there at the start. Shared memory has a name of its own directly below the root.
    let is_former = |mapping: &Mapping| {
        mapping.is_deleted() && Path::new(mapping.file).parent() != Some(Path::new("/"))
    };
    match fault {
        _ if objects.firsts.iter().any(is_former) => {
            "not found among what is loaded: it may have been deleted or replaced since".into()
        }
        Some(why) => why,
        None => "not loaded; why is not known".into(),
    }
}
