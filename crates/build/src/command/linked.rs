//! Finds which libraries of a program define malloc: the dynamic linker loads them in the order in
//! which they are needed, and the first one that defines malloc serves. Only reads files, in the
//! places where `ldd` would find them.

use crate::find_library;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol};
use std::collections::{BTreeSet, VecDeque};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The libraries of a program, other than libc, that define malloc.
#[derive(Debug, Default, PartialEq)]
pub struct Linked {
    /// The library that serves malloc: its name if it is in one of the dynamic linker's folders, else its path.
    pub serves: Option<String>,
    /// Libraries with a malloc that come after the one that serves.
    pub behind: Vec<String>,
}

/// A file's name for others, the libraries that it needs, the folders in which it looks for them, and whether it defines malloc.
struct Needs {
    /// The name under which others need the file, if it has one.
    soname: Option<String>,
    libraries: Vec<String>,
    folders: Vec<PathBuf>,
    defines_malloc: bool,
}

impl Needs {
    fn of(file: &Path) -> Option<Needs> {
        let data = fs::read(file).ok()?;
        let elf: ElfFile64 = ElfFile64::parse(data.as_slice()).ok()?;
        let table = elf.elf_dynamic_table().ok()?;
        let mut needs = Needs {
            soname: None,
            libraries: Vec::new(),
            folders: Vec::new(),
            defines_malloc: elf
                .dynamic_symbols()
                .any(|symbol| symbol.is_definition() && symbol.name() == Ok("malloc")),
        };
        let origin = file.parent()?.to_str()?;
        for entry in &table {
            let text = || {
                Some(
                    std::str::from_utf8(table.string(entry).ok()?)
                        .ok()?
                        .to_owned(),
                )
            };
            match entry.tag {
                DT_SONAME => needs.soname = text(),
                DT_NEEDED => needs.libraries.extend(text()),
                DT_RPATH | DT_RUNPATH => {
                    let folders = text().unwrap_or_default();
                    let folders = folders.replace("${ORIGIN}", origin);
                    let folders = folders.replace("$ORIGIN", origin);
                    needs.folders.extend(folders.split(':').map(PathBuf::from));
                }
                _ => {}
            }
        }
        Some(needs)
    }
}

/// A library that a file needs, or that another library needs that it needs.
struct NeededLibrary {
    /// Its name, if it is in one of the dynamic linker's folders, else its path.
    shown: String,
    file: PathBuf,
    defines_malloc: bool,
}

/// Finds the libraries of this program that define malloc.
pub fn linked(program: &Path) -> Linked {
    let mut linked = Linked::default();
    let mut is_served = false;
    let named = env::var_os("LD_LIBRARY_PATH").into_iter();
    let named = named.flat_map(|all| env::split_paths(&all).collect::<Vec<_>>());
    let named: Vec<PathBuf> = named
        .filter_map(|folder| std::path::absolute(folder).ok())
        .collect();
    let all = needed(program, &named, |_| true).into_iter();
    for library in all.filter(|library| library.defines_malloc) {
        let name = library.shown;
        let file_name = name.rsplit('/').next().unwrap_or(&name);
        if !file_name.starts_with("libc.so") && !file_name.starts_with("ld-") {
            match is_served {
                false => linked.serves = Some(name),
                true => linked.behind.push(name),
            }
        }
        is_served = true;
    }
    linked
}

/// Libraries of the C library and of compilers, which belong to the machine, not to an allocator.
const OF_THE_SYSTEM: [&str; 8] = [
    "ld-",
    "libc.so",
    "libdl.so",
    "libgcc_s.so",
    "libm.so",
    "libpthread.so",
    "librt.so",
    "libstdc++.so",
];

/// Returns the files of the libraries that these libraries need, without those of the system: what an allocator consists of beside the
/// files that are preloaded.
pub fn parts_beside(libraries: &[PathBuf]) -> Vec<PathBuf> {
    // What is preloaded is there already when another library needs it.
    let preloaded = libraries
        .iter()
        .filter_map(|library| Needs::of(library)?.soname);
    let preloaded: BTreeSet<String> = preloaded.collect();
    let is_part = |name: &str| {
        if preloaded.contains(name) {
            return false;
        }
        let name = name.rsplit('/').next().unwrap_or(name);
        !OF_THE_SYSTEM.iter().any(|known| name.starts_with(known))
    };
    // heapmark's own processes have no LD_LIBRARY_PATH.
    let all = libraries
        .iter()
        .flat_map(|library| needed(library, &[], is_part));
    let files: BTreeSet<PathBuf> = all.map(|library| library.file).collect();
    files.into_iter().collect()
}

/// Finds the libraries that a file needs, in the order in which the dynamic linker loads them, first in these folders; follows only those
/// with these names.
fn needed(
    file: &Path,
    named: &[PathBuf],
    is_followed: impl Fn(&str) -> bool,
) -> Vec<NeededLibrary> {
    let mut all = Vec::new();
    let mut known = BTreeSet::new();
    let mut waiting = VecDeque::from([(None::<String>, file.to_path_buf(), Vec::new())]);
    while let Some((shown, file, above)) = waiting.pop_front() {
        let Some(needs) = Needs::of(&file) else {
            continue;
        };
        if let Some(shown) = shown {
            all.push(NeededLibrary {
                shown,
                file,
                defines_malloc: needs.defines_malloc,
            });
        }
        // A folder that a program names is also searched for the libraries that its libraries need.
        let folders = [above, needs.folders].concat();
        for name in needs.libraries.into_iter().filter(|name| is_followed(name)) {
            let of_folders = named
                .iter()
                .chain(&folders)
                .map(|folder| folder.join(&name));
            let is_there = |path: &PathBuf| path.is_file();
            let found = if name.contains('/') {
                Some((name.clone(), PathBuf::from(&name)))
            } else if let Some(file) = of_folders.clone().find(is_there) {
                Some((file.display().to_string(), file))
            } else {
                find_library(&name).map(|file| (name.clone(), file))
            };
            if let Some((shown, file)) = found
                && known.insert(name)
            {
                waiting.push_back((Some(shown), file, folders.clone()));
            }
        }
    }
    all
}
