//! The libraries that a process was to preload, and whether it did: a preload that fails prints one
//! line on stderr at most.

use crate::process::Process;
use heapmark_core::build::find_library;
use heapmark_core::build::inspect::inspect_any;
use heapmark_core::execute::prove::identity;
use heapmark_core::execute::reach::{Mapping, file_name, mappings};
use serde::Serialize;
use std::fs;
use std::path::PathBuf;

/// A library that was to be preloaded.
#[derive(Clone, Debug, Serialize)]
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

/// The libraries that a process with these mappings was to preload.
pub fn preloads(process: &Process, maps: &str, is_dynamic: bool) -> Vec<Preload> {
    let variable = process.variable("LD_PRELOAD").unwrap_or_default();
    let system = fs::read_to_string(process.path(SYSTEMS)).unwrap_or_default();
    let words = |text: &str| -> Vec<String> {
        let words = text.split([' ', ':', '\n', '\t']);
        words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let named = words(variable).into_iter().map(|word| (word, "LD_PRELOAD"));
    let named = named.chain(words(&system).into_iter().map(|word| (word, SYSTEMS)));
    named
        .map(|(named, place)| {
            let file = mapped(process, maps, &named);
            let why = file.is_none().then(|| why_not(process, &named, is_dynamic));
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
fn mapped(process: &Process, maps: &str, named: &str) -> Option<String> {
    let mut files = mappings(maps).filter(Mapping::begins_a_file);
    if named.contains('/') {
        let meant = identity(&path(process, named));
        let same = files.find(|mapping| {
            let path = process.path(mapping.file);
            mapping.file == named || meant.is_some() && identity(&path) == meant
        });
        return same.map(|mapping| mapping.file.to_owned());
    }
    let is_it = |file: &str| {
        let has_soname =
            || inspect_any(&process.path(file)).is_ok_and(|inspection| inspection.soname == named);
        file_name(file) == named || has_soname()
    };
    files
        .find(|mapping| is_it(mapping.file))
        .map(|mapping| mapping.file.to_owned())
}

fn path(process: &Process, named: &str) -> PathBuf {
    match named.starts_with('/') {
        true => process.path(named),
        // A relative path starts at the process's first working directory, which the process may
        // have left.
        false => format!("/proc/{}/cwd/{named}", process.pid).into(),
    }
}

fn why_not(process: &Process, named: &str, is_dynamic: bool) -> String {
    if !is_dynamic {
        return "the program is static: it has no dynamic linker that could preload".into();
    }
    if process.is_secure {
        return "the program runs with the privileges of its file (set-user-ID, set-group-ID, capabilities), and the \
                dynamic linker then preloads only what the system's folders have, with set-user-ID itself"
            .into();
    }
    if named.contains('$') {
        return "not loaded; why is not known".into();
    }
    let file = match named.contains('/') {
        true => Some(path(process, named)),
        false => find_library(named),
    };
    match file.filter(|file| file.exists()) {
        None => "there is no such file: the dynamic linker said so on stderr, and went on".into(),
        Some(file) => match inspect_any(&file) {
            Err(error) => {
                let words = error.to_string();
                words
                    .rsplit_once(": ")
                    .map_or(words.clone(), |(_, why)| why.to_owned())
            }
            Ok(_) => "not loaded; why is not known".into(),
        },
    }
}
