//! Libraries from the system's packages: where the dynamic linker finds them, and which version the
//! package has.

use super::step;
use heapmark_catalog::folder::listing;
use std::collections::{BTreeMap, BTreeSet};
use std::env::consts::ARCH;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Returns the file that the dynamic linker would load for a soname, with links resolved. Skips
/// files for other processors; if there are no others, returns such a file, so that the refusal
/// names it.
pub fn find(soname: &str) -> Option<PathBuf> {
    if soname.starts_with('/') {
        return newest(soname);
    }
    let found: Vec<PathBuf> = FOLDERS
        .iter()
        .filter_map(|folder| folder.join(soname).canonicalize().ok())
        .collect();
    let is_for_us = |path: &&PathBuf| found.len() == 1 || super::inspect::inspect_any(path).is_ok();
    found.iter().find(is_for_us).or(found.first()).cloned()
}

/// Returns the file that matches a pattern with `*` and has the highest numbers in its path;
/// `{arch}` is the processor.
fn newest(pattern: &str) -> Option<PathBuf> {
    let pattern = pattern.replace("{arch}", ARCH);
    let mut found = vec![PathBuf::from("/")];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let is_wanted = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| heapmark_catalog::malloc_api::matches(part, name))
        };
        let inside = |folder: &PathBuf| {
            if part.contains('*') {
                listing(folder).filter(is_wanted).collect()
            } else {
                vec![folder.join(part)]
            }
        };
        found = found
            .iter()
            .flat_map(inside)
            .filter(|path| path.exists())
            .collect();
    }
    let numbers = |path: &PathBuf| -> Vec<u64> {
        path.display()
            .to_string()
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|digits| digits.parse().ok())
            .collect()
    };
    found.into_iter().max_by_key(numbers)?.canonicalize().ok()
}

/// The folders of `/etc/ld.so.conf`, then those that are always searched.
static FOLDERS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let mut files: Vec<PathBuf> = listing("/etc/ld.so.conf.d").collect();
    files.sort();
    files.insert(0, "/etc/ld.so.conf".into());
    let mut folders: Vec<PathBuf> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().map(str::trim);
        folders.extend(
            lines
                .filter(|line| line.starts_with('/'))
                .map(PathBuf::from),
        );
    }
    for base in ["/lib", "/usr/lib"] {
        folders.push(format!("{base}/{ARCH}-linux-gnu").into());
        folders.push(format!("{base}64").into());
        folders.push(base.into());
    }
    let mut seen = BTreeSet::new();
    // A folder may be a link to another one.
    folders.retain(|folder| folder.is_dir() && seen.insert(folder.canonicalize().ok()));
    folders
});

/// Returns the installed version of a Debian package; empty if it is not installed, or there is no
/// dpkg.
pub fn package_version(package: &str) -> String {
    static VERSIONS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
        let mut query = Command::new("dpkg-query");
        let text = step::output(query.args(["-W", "-f=${Package} ${Version}\n"]));
        text.unwrap_or_default()
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, version)| (name.into(), version.into()))
            .collect()
    });
    // Ubuntu renamed many libraries when `time_t` grew.
    VERSIONS
        .get(package)
        .or_else(|| VERSIONS.get(&format!("{package}t64")))
        .cloned()
        .unwrap_or_default()
}

/// Returns the package that a file belongs to, if it is not the one that an entry names: another
/// release has another number in the package's name.
pub fn owner(file: &Path) -> Option<String> {
    let text = step::output(Command::new("dpkg-query").arg("-S").arg(file))?;
    Some(text.split([':', ',']).next()?.to_owned())
}

/// Returns the version of libc: the package's, or what `getconf` reports.
pub fn libc_version() -> String {
    let version = package_version("libc6");
    if !version.is_empty() {
        return version;
    }
    step::output(Command::new("getconf").arg("GNU_LIBC_VERSION"))
        .unwrap_or_default()
        .trim()
        .trim_start_matches("glibc ")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_releases_the_newest_is_found() {
        let folder = tempfile::tempdir().unwrap();
        for release in ["llvm-9", "llvm-14", "llvm-19", "llvm-100"] {
            std::fs::create_dir(folder.path().join(release)).unwrap();
        }
        let file = |release: &str| {
            folder
                .path()
                .join(release)
                .join(format!("lib-{}.so", std::env::consts::ARCH))
        };
        for release in ["llvm-9", "llvm-14", "llvm-19"] {
            std::fs::write(file(release), "").unwrap();
        }
        let pattern = format!("{}/llvm-*/lib-{{arch}}.so", folder.path().display());
        assert_eq!(find(&pattern), file("llvm-19").canonicalize().ok());
    }

    #[test]
    fn libc_is_found_and_nonsense_is_not() {
        assert!(find("libc.so.6").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("libno-such-allocator.so.9"), None);
        assert_eq!(find("/usr/lib/no-such-*/lib.so"), None);
        assert_eq!(package_version("no-such-package"), "");
    }
}
