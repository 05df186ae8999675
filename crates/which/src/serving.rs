//! Which object serves a process's malloc: where the dynamic linker has bound the calls of each
//! object, read from the process's memory. If the memory may not be read, the order in which the
//! linker searches decides; for a static program, its symbols and strings do.

use crate::objects::{MappedObjects, imports};
use crate::preload::Preload;
use crate::process::is_refused;
use anyhow::Result;
use heapmark_core::build::command::{Evidence, GO, evidence, is_dynamic, own_malloc};
use heapmark_core::build::{package_of, package_version};
use heapmark_core::catalog::{Allocator, joined};
use heapmark_core::execute::prove::identity;
use heapmark_core::execute::reach::{Binding, Reader, file_name, is_ground};
use heapmark_core::report::text::enclosed;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An allocator in a process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Serving {
    /// The allocator's name: `jemalloc`, `glibc`, `musl`, `a malloc of its own`; `None` if it is
    /// not known.
    pub allocator: Option<String>,
    /// The library's version, if that is known.
    pub version: Option<String>,
    /// Whose calls the allocator serves.
    pub serves: Whom,
    /// The file that contains the allocator.
    pub file: String,
    /// How the allocator comes to serve.
    pub how: How,
    /// Whether the answer was read in the process, and not concluded from files.
    pub proven: bool,
    /// The evidence for the answer, in words.
    pub evidence: String,
}

/// The name for gperftools' tcmalloc, the older of the two.
pub const GPERFTOOLS: &str = "gperftools";

impl Serving {
    /// Whether the allocator is of this family.
    pub fn is_of(&self, family: &str) -> bool {
        let is = |name: &str| is_called(name, family);
        self.allocator.as_deref().is_some_and(is)
    }
}

/// Whether an allocator of this name is of this family: both allocators that are called tcmalloc belong to the family tcmalloc.
pub fn is_called(name: &str, family: &str) -> bool {
    name == family || family == "tcmalloc" && name == GPERFTOOLS
}

/// Whose calls an allocator serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whom {
    /// Calls of all objects.
    All,
    /// Calls of the program's own file.
    Program,
    /// Calls of the program's libraries.
    Libraries,
    /// Calls of the objects that call the allocator by names of its own, which it has besides
    /// malloc.
    Callers,
    /// Calls of this one library.
    OneLibrary,
}

/// How an allocator comes to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The allocator is preloaded.
    Preloaded,
    /// The program or one of its libraries needs the allocator's library.
    Linked,
    /// The allocator is inside the program's own file.
    Inside,
    /// The allocator is part of the C library.
    CLibrary,
}

/// What was found about the allocators of a process.
pub struct ServedBy {
    /// The allocators; the one that serves the program's own calls comes first.
    pub servings: Vec<Serving>,
    /// Further facts that readers must know, one sentence each.
    pub notes: Vec<String>,
}

/// Calls that take memory from the kernel, which a malloc needs and few other programs make.
const FROM_KERNEL: [&str; 6] = ["mmap", "mmap64", "sbrk", "brk", "syscall", "mremap"];
/// Calls for memory other than those that [`Binding::calls`] covers.
const OPERATORS: [&str; 2] = ["_Znwm", "_Znam"];

/// Finds the allocators that serve a process.
pub fn found(
    objects: &MappedObjects,
    preloads: &[Preload],
    known: &[Allocator],
) -> Result<ServedBy> {
    let process = objects.process;
    let program = process.read("exe")?;
    let elf: ElfFile64 = ElfFile64::parse(program.as_slice())
        .map_err(|_| anyhow::anyhow!("{}: no program of 64 bits", process.title()))?;
    let name = process.program.to_string_lossy().into_owned();
    // The process may execute the dynamic linker itself, with the program as its argument.
    let is_linker = process
        .program
        .file_name()
        .is_some_and(|file| is_ground(&file.to_string_lossy()));
    if !is_dynamic(&elf, &program) && !is_linker {
        return Ok(ServedBy {
            servings: static_program(&name, &elf, &program),
            notes: Vec::new(),
        });
    }
    let (bindings, unbound) = match Reader::default().bindings(process.thread) {
        Ok(bindings) => (bindings, "no call of malloc is bound yet"),
        Err(error) => {
            let error = process.error(error);
            if !is_refused(&error) {
                return Err(error);
            }
            let words = "what it has bound is not known: the process's memory may not be read (see /proc/sys/kernel/yama/ptrace_scope)";
            (Vec::new(), words)
        }
    };
    let bound = global(&bindings);
    let proven = bound.is_some();
    let bound = bound.or_else(|| {
        let preloaded = preloads.iter().filter_map(|preload| preload.file.clone());
        let file = objects.first(&elf, preloaded)?;
        let defines = match objects.is_unread(&file) {
            true => "may define",
            false => "defines",
        };
        let words =
            format!("the first that {defines} malloc, as the dynamic linker searches; {unbound}");
        Some((file, words))
    });
    process.is_still_there()?;
    let of_program = bindings.iter().find(|binding| binding.object == name);
    let mut servings = Vec::new();
    let mut notes = Vec::new();
    let global = bound.as_ref().map(|(file, _)| file.as_str());
    let inside = inside(&elf, &program, global == Some(&*name));
    let main = bound.as_ref().map(|(file, evidence)| {
        let data = objects.data(file);
        let named = name_of(file, &data, known);
        let (allocator, version) = match named {
            Some((allocator, version)) => (Some(allocator), version),
            None if *file == name => (Some(OWN.to_owned()), None),
            None => (None, None),
        };
        let is_preloaded = preloads
            .iter()
            .any(|preload| preload.file.as_ref() == Some(file));
        Serving {
            how: match () {
                () if is_preloaded => How::Preloaded,
                () if *file == name => How::Inside,
                () if is_ground(file_name(file)) => How::CLibrary,
                () => How::Linked,
            },
            version: version.or_else(|| packaged(objects, file)),
            allocator,
            serves: Whom::All,
            file: file.clone(),
            proven,
            evidence: as_far_as_read(objects, file, evidence.clone()),
        }
    });
    let calls = of_program.is_some_and(|binding| binding.calls) || imports(&elf, &OPERATORS);
    let of_inside =
        |(allocator, version, sign): &(String, Option<String>, String), serves| Serving {
            allocator: Some(allocator.clone()),
            version: version.clone(),
            serves,
            file: name.clone(),
            how: How::Inside,
            proven: false,
            evidence: sign.clone(),
        };
    match (&inside[..], main) {
        ([], Some(main))
            if of_program.is_some()
                && !calls
                && is_stripped(&elf)
                && imports(&elf, &FROM_KERNEL) =>
        {
            servings.push(Serving {
                allocator: None,
                version: None,
                serves: Whom::Program,
                file: name.clone(),
                how: How::Inside,
                proven: false,
                evidence: "it calls no malloc by way of the dynamic linker, takes memory from the kernel itself, and is stripped: \
                     a malloc may be inside"
                    .into(),
            });
            servings.push(Serving {
                serves: Whom::Libraries,
                ..main
            });
        }
        (inside, Some(main)) if !inside.is_empty() && !calls => {
            servings.extend(
                inside
                    .iter()
                    .map(|allocator| of_inside(allocator, Whom::Program)),
            );
            servings.push(Serving {
                serves: Whom::Libraries,
                ..main
            });
        }
        (inside, main) => {
            servings.extend(main);
            servings.extend(
                inside
                    .iter()
                    .map(|allocator| of_inside(allocator, Whom::Callers)),
            );
        }
    }
    let strays = strays(&bindings, global, &name);
    servings.extend(strays.into_iter().map(|(file, objects_of)| {
        let data = objects.data(&file);
        let (allocator, version) = name_of(&file, &data, known).unzip();
        let evidence = format!(
            "calls of {} lead there: opened with RTLD_DEEPBIND, in a namespace of its own, or linked with -Bsymbolic",
            joined(objects_of, ", ")
        );
        Serving {
            allocator,
            version: version.flatten(),
            serves: Whom::OneLibrary,
            how: How::Linked,
            proven: true,
            evidence: as_far_as_read(objects, &file, evidence),
            file,
        }
    }));
    for binding in bindings
        .iter()
        .filter(|binding| binding.object != name && !binding.defines_malloc)
    {
        notes.extend(
            binding
                .inside
                .iter()
                .map(|inside| format!("{} has {inside} inside, for itself", binding.object)),
        );
    }
    Ok(ServedBy { servings, notes })
}

/// The evidence that a file serves; and if the file may not be read, why it is not known which allocator that is.
fn as_far_as_read(objects: &MappedObjects, file: &str, evidence: String) -> String {
    match objects.is_unread(file) {
        false => evidence,
        true => {
            evidence + "; its file may not be read (one that was deleted or replaced, by root only)"
        }
    }
}

/// The name in [`Serving::allocator`] for a malloc that is not recognised.
pub const OWN: &str = "a malloc of its own";

fn static_program(name: &str, elf: &ElfFile64, data: &[u8]) -> Vec<Serving> {
    let inside = inside(elf, data, true);
    let serving = |allocator, version, evidence| Serving {
        allocator,
        version,
        serves: Whom::All,
        file: name.to_owned(),
        how: How::Inside,
        proven: false,
        evidence,
    };
    if inside.is_empty() {
        let why = match is_stripped(elf) {
            true => "a static program, stripped of symbols, without a string that is known",
            false => "a static program without a symbol or string that is known",
        };
        return vec![serving(None, None, why.into())];
    }
    let is_libc = |allocator: &(String, _, _)| ["glibc", "musl"].contains(&allocator.0.as_str());
    let beside_libc = inside.iter().any(is_libc) && !inside.iter().all(is_libc);
    let each = inside.into_iter().map(|allocator| Serving {
        serves: match beside_libc {
            true if is_libc(&allocator) => Whom::Libraries,
            true => Whom::Program,
            false => Whom::All,
        },
        ..serving(
            Some(allocator.0),
            allocator.1,
            format!("a static program{}", enclosed(": ", &allocator.2, "")),
        )
    });
    let mut all: Vec<Serving> = each.collect();
    all.sort_by_key(|serving| serving.serves == Whom::Libraries);
    all
}

/// Allocators in the program's own file: name, version, and by what it is recognised. `defines`
/// says whether the file serves others, or is static.
fn inside(elf: &ElfFile64, data: &[u8], defines: bool) -> Vec<(String, Option<String>, String)> {
    let is_static = !is_dynamic(elf, data);
    let counts =
        |evidence: &Evidence| is_static || !evidence.is_of_libc() && evidence.allocator != GO;
    let found = evidence(data).into_iter().filter(counts);
    let mut named: Vec<_> = found
        .map(|evidence| {
            (
                evidence.allocator.to_owned(),
                evidence.version,
                evidence.sign,
            )
        })
        .collect();
    let is_whole_program = defines && !is_static;
    if is_whole_program {
        // This allocator serves all calls.
        return Vec::new();
    }
    if named.is_empty() && own_malloc(elf).is_some() {
        named.push((
            OWN.into(),
            None,
            "its own function malloc, which no library sees".into(),
        ));
    }
    named
}

/// Returns the file to which calls lead unless an object decides otherwise: the target of libc's
/// own calls, which every process has.
fn global(bindings: &[Binding]) -> Option<(String, String)> {
    let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
    for file in bindings.iter().flat_map(|binding| &binding.to) {
        *votes.entry(file).or_default() += 1;
    }
    let ground = bindings.iter().filter(|binding| binding.is_ground);
    let of_libc = ground
        .flat_map(|binding| &binding.to)
        .map(String::as_str)
        .next();
    let file = of_libc.or_else(|| {
        let most = votes.iter().max_by_key(|(_, votes)| **votes);
        most.map(|(file, _)| *file)
    })?;
    let votes = votes.get(file).copied().unwrap_or(0);
    let bound = bindings
        .iter()
        .filter(|binding| !binding.to.is_empty())
        .count();
    let words =
        format!("read in its memory: calls of malloc lead there from {votes} of {bound} objects");
    Some((file.to_owned(), words))
}

/// Files to which only some objects are bound, instead of the file that serves the others.
fn strays(
    bindings: &[Binding],
    global: Option<&str>,
    program: &str,
) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for binding in bindings.iter().filter(|binding| binding.object != program) {
        let past = binding.to.iter().filter(|to| Some(to.as_str()) != global);
        // An allocator may call functions of its own.
        for to in
            past.filter(|to| Some(binding.object.as_str()) != global || **to != binding.object)
        {
            found
                .entry(to.clone())
                .or_default()
                .push(binding.object.clone());
        }
    }
    // The serving allocator may use the C library's malloc at its start.
    found.retain(|_, objects| objects.iter().any(|object| Some(object.as_str()) != global));
    found
}

/// The name and the version of the allocator in a library that defines malloc.
fn name_of(file: &str, data: &[u8], known: &[Allocator]) -> Option<(String, Option<String>)> {
    let found = evidence(data);
    let first = found
        .iter()
        .find(|evidence| !evidence.is_of_libc() && evidence.allocator != GO)
        .or(found.first());
    if let Some(evidence) = first {
        return Some((evidence.allocator.to_owned(), evidence.version.clone()));
    }
    let elf: ElfFile64 = ElfFile64::parse(data).ok()?;
    let exports: BTreeSet<&str> = elf
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition())
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    let is_known = |allocator: &&Allocator| {
        let has_all = allocator
            .known_by
            .iter()
            .all(|name| exports.contains(name.as_str()));
        !allocator.known_by.is_empty() && has_all && allocator.family != "glibc"
    };
    let family = known
        .iter()
        .find(is_known)
        .map(|allocator| allocator.family.clone());
    let name = file_name(file);
    let by_name = || {
        let mut families = known.iter().map(|allocator| &allocator.family);
        families
            .find(|family| name.starts_with(&format!("lib{family}")))
            .cloned()
    };
    family.or_else(by_name).map(|family| (family, None))
}

/// The version of the package that a file came with, if the process sees the same files as heapmark.
fn packaged(objects: &MappedObjects, file: &str) -> Option<String> {
    let own = identity(Path::new(file))?;
    let mapped = objects.mapping(file)?.path(objects.process.thread);
    if identity(&mapped) != Some(own) {
        return None;
    }
    let version = package_version(&package_of(Path::new(file))?);
    let version = version.split(['+', '-']).next().unwrap_or_default();
    (!version.is_empty()).then(|| version.to_owned())
}

fn is_stripped(elf: &ElfFile64) -> bool {
    elf.symbols().next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

    #[test]
    fn the_order_of_search_leads_where_the_dynamic_linker_has_bound_the_calls() {
        let process = Process::of(std::process::id() as i32).unwrap();
        let maps = process.maps().unwrap();
        let program = process.read("exe").unwrap();
        let elf: ElfFile64 = ElfFile64::parse(program.as_slice()).unwrap();
        let bindings = Reader::default().bindings(process.pid).unwrap();
        let (bound, words) = global(&bindings).unwrap();
        assert!(
            words.contains(" of ") && bound.contains("libc.so"),
            "{bound}: {words}"
        );
        let objects = MappedObjects::of(&process, &maps);
        assert_eq!(objects.first(&elf, []), Some(bound));
        let mut files = objects.firsts.iter().map(|mapping| mapping.file);
        let other = files.find(|file| file.contains("libgcc_s"));
        // It defines no malloc.
        let first = objects.first(&elf, other.map(str::to_owned));
        assert!(first.unwrap().contains("libc.so"));
    }

    #[test]
    fn a_process_that_ends_meanwhile_is_one_line() {
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let process = Process::of(child.id() as i32).unwrap();
        let maps = process.maps().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let Err(error) = found(&MappedObjects::of(&process, &maps), &[], &[]) else {
            panic!("it was found");
        };
        let words = format!("{} ended while heapmark looked at it", process.title());
        assert_eq!(format!("{error:#}"), words);
    }
}
