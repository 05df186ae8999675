//! Compares the owners of the malloc family that a process reports with the files that should serve
//! it.

use super::{LoadedObject, Proof, Subject};
use crate::build::FileState;
use crate::catalog::Source;
use std::path::{Path, PathBuf};

/// Checks that the preloaded files, and those that they need, are still those that were there when the
/// first process started: a file that was replaced or written to would be measured under the old name.
pub fn are_as_first_seen(subject: &Subject) -> Result<(), String> {
    match first_seen(subject).find(|(file, first)| FileState::of(file) != *first) {
        Some((file, None)) => Err(format!("{} is gone", file.display())),
        Some((file, Some(_))) => Err(format!(
            "{} was replaced after the run had begun: start a new one",
            file.display()
        )),
        None => Ok(()),
    }
}

/// Returns the files that are preloaded, each as it was when it was first checked.
fn wanted(subject: &Subject) -> impl Iterator<Item = (&PathBuf, Option<FileState>)> {
    first_seen(subject).take(subject.library.files.len())
}

/// Returns the files that are preloaded, then those that they need, each as it was when it was first checked.
fn first_seen(subject: &Subject) -> impl Iterator<Item = (&PathBuf, Option<FileState>)> {
    let library = &subject.library;
    let files = library.files.iter().chain(&library.needs);
    let states = || files.clone().map(|file| FileState::of(file)).collect();
    let first = library.first_seen.get_or_init(states);
    files.zip(first.iter().copied())
}

/// Checks that the library serves those functions of the proof that it exports, and that no
/// preloaded library serves the others.
pub fn verify(subject: &Subject, proof: &Proof) -> Result<(), String> {
    // Any owner is right: this row measures the command as it is.
    if matches!(subject.allocator.source, Source::AsCalled) {
        return Ok(());
    }
    let wanted: Vec<_> = wanted(subject).collect();
    for (file, first) in &wanted {
        if first.is_none() {
            return Err(format!("{} is gone", file.display()));
        }
        if !proof.objects.iter().any(|object| is(object, *first)) {
            are_as_first_seen(subject)?;
            return Err(format!("{} was not loaded", file.display()));
        }
    }
    let is_ours = |owner: &LoadedObject| wanted.iter().any(|(_, first)| is(owner, *first));
    let exported = proof
        .owners
        .iter()
        .filter(|(function, _)| !wanted.is_empty() && subject.library.exports.contains(*function));
    let exported = exported.map(|(function, index)| (function, &proof.objects[*index]));
    let (ours, others): (Vec<_>, Vec<_>) = exported.partition(|(_, owner)| is_ours(owner));
    // If malloc is one of these functions, the others follow from it.
    let malloc = others.iter().find(|(function, _)| *function == "malloc");
    if let Some((function, owner)) = malloc.or(others.first()) {
        let versions = match ours.is_empty() && is_libc(Path::new(&owner.path)) {
            true => {
                ", and so is all else that the library exports: programs ask for other versions of these symbols"
            }
            false => "",
        };
        return Err(format!("{function} is served by {}{versions}", owner.path));
    }
    for (function, index) in &proof.owners {
        let path = &proof.objects[*index].path;
        // C++ operators may come from any C++ runtime.
        let is_c = !function.starts_with('_');
        if wanted.is_empty() && !is_libc(Path::new(path)) && is_c {
            return Err(format!(
                "{function} is served by {path}, not by the C library"
            ));
        }
    }
    // The null allocator works inside the guest; which allocator serves the rest of the process
    // does not matter.
    let null = matches!(subject.allocator.source, Source::Null);
    if null || proof.is_complete() {
        return Ok(());
    }
    Err("no library serves malloc and free".into())
}

/// Returns the part of a proof that is stored: the owners, and every preloaded object.
pub fn relevant(subject: &Subject, proof: &Proof) -> Proof {
    let mut relevant = Proof {
        owners: proof.owners.clone(),
        objects: Vec::new(),
    };
    for (old, object) in proof.objects.iter().enumerate() {
        let is_owner = |owner: &usize| *owner == old;
        if !proof.owners.values().any(is_owner)
            && !wanted(subject).any(|(_, first)| is(object, first))
        {
            continue;
        }
        let new = relevant.objects.len();
        for (owner, former) in relevant.owners.values_mut().zip(proof.owners.values()) {
            if is_owner(former) {
                *owner = new;
            }
        }
        relevant.objects.push(object.clone());
    }
    relevant
}

/// Returns whether a file should serve the malloc family: a preloaded one or, without any, the C library.
pub fn is_wanted(subject: &Subject, path: &Path) -> bool {
    match subject.library.files.as_slice() {
        [] => is_libc(path),
        files => {
            identity(path).is_some_and(|id| files.iter().any(|file| identity(file) == Some(id)))
        }
    }
}

/// Returns a file's device and inode.
pub fn identity(file: &Path) -> Option<(u64, u64)> {
    Some(FileState::of(file)?.identity)
}

/// Returns whether an object is a file, whatever was written into the file since.
fn is(object: &LoadedObject, file: Option<FileState>) -> bool {
    file.is_some_and(|file| file.identity == (object.device, object.inode))
}

fn is_libc(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-musl")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Library;
    use std::fs;

    #[test]
    fn a_file_that_is_written_to_is_no_longer_the_one_that_was_first_seen() {
        let folder = tempfile::tempdir().unwrap();
        let [mine, core] = ["libmine.so", "libcore.so"].map(|name| folder.path().join(name));
        for file in [&mine, &core] {
            fs::write(&mine, "old").unwrap();
            fs::write(&core, "old").unwrap();
            let library = Library {
                files: vec![mine.clone()],
                needs: vec![core.clone()],
                ..Library::default()
            };
            let subject = Subject::new(Subject::libc().allocator, library);
            assert_eq!(are_as_first_seen(&subject), Ok(()));
            let before = identity(file);
            fs::write(file, "newer").unwrap();
            assert_eq!(identity(file), before);
            let why = are_as_first_seen(&subject).unwrap_err();
            let told = format!("{} was replaced", file.display());
            assert!(why.contains(&told), "{why}");
        }
    }
}
