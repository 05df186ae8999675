//! Analyses a user's command: where the file is, which program is executed in the end, and whether a preloaded allocator reaches it. Only
//! reads files and runs nothing, except that [`Shim::advice`] asks a version manager.

mod evidence;
mod inside;
mod linked;
mod linker;
mod shim;

pub use evidence::{Evidence, GO, evidence, is_dynamic, shown_to_serve};
pub use inside::{allocators_inside, own_malloc};
pub use linked::{Linked, linked, parts_beside};
pub use shim::Shim;

use anyhow::{Context, Result, bail};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file that can be executed.
#[derive(Default)]
pub struct Recognised {
    /// The executed files, from the one that was named to the one that the machine can run: a
    /// script comes before its interpreter.
    pub chain: Vec<PathBuf>,
    /// Why a preloaded allocator does not reach the program, worded to follow the program's name.
    pub unreachable: Option<String>,
    /// Whether this machine can run the program, whether or not a preloaded allocator reaches it.
    pub runs: bool,
    /// Whether nothing at all can be preloaded into the program.
    pub is_silent: bool,
    /// Allocators that are linked statically into the program, under names of their own.
    pub inside: Vec<&'static str>,
    /// Whether the named file is a version manager's script.
    pub shim: Option<Shim>,
}

/// The most scripts that are interpreted by scripts; the kernel's own limit is lower.
const DEEPEST: usize = 5;

impl Recognised {
    fn refused(why: impl Into<String>) -> Recognised {
        Recognised {
            unreachable: Some(why.into()),
            ..Recognised::default()
        }
    }

    /// Returns the program that the machine executes in the end.
    pub fn program(&self) -> &Path {
        self.chain.last().map_or(Path::new(""), PathBuf::as_path)
    }
}

/// Returns the file of a command, found as a shell in this folder would find it.
pub fn find(word: &str, folder: &Path) -> Result<PathBuf> {
    if !word.contains('/') {
        let path = env::var_os("PATH").unwrap_or_default();
        let found = env::split_paths(&path)
            .map(|place| folder.join(place).join(word))
            .find(|path| is_executable(path));
        let quoted = if word.contains(' ') {
            " (a command and its arguments are words of their own: leave the quotes away)"
        } else {
            ""
        };
        return found.with_context(|| format!("{word}: no such command in PATH{quoted}"));
    }
    // Drops `.` components.
    let path: PathBuf = folder.join(word).components().collect();
    match path.metadata() {
        Err(error) => bail!("{word}: {error}"),
        Ok(file) if !file.is_file() => bail!("{word}: not a file that could be executed"),
        Ok(_) if !is_executable(&path) => {
            bail!("{word}: not executable; chmod +x {word}, or name its interpreter first")
        }
        Ok(_) => Ok(path),
    }
}

/// Returns the words with which a shell would start a command: the path of a file instead of a name, after `sh` if the file is a script
/// that names no interpreter.
pub fn as_a_shell_starts(mut words: Vec<OsString>, folder: &Path) -> Result<Vec<OsString>> {
    let named = &words[0];
    let word = named
        .to_str()
        .with_context(|| format!("{} is no UTF-8", named.display()))?;
    let file = find(word, folder)?;
    let is_bare = is_bare_script(&file);
    words[0] = file.into();
    if is_bare {
        words.insert(0, SHELL.into());
    }
    Ok(words)
}

/// The shell that shells use for scripts that name no interpreter.
const SHELL: &str = "/bin/sh";

/// Returns whether the file is text that the kernel refuses to execute, judged by its first line as shells judge it.
fn is_bare_script(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(256).read_to_end(&mut start));
    let line = start
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    read.is_ok()
        && !start.starts_with(b"#!")
        && !line.contains(&0)
        && !start.starts_with(b"\x7fELF")
}

/// Returns the name of the program that a command executes, even if the command names a dynamic linker first.
pub fn name_of<S: AsRef<OsStr>>(words: &[S]) -> &OsStr {
    let behind = || linker::program(&words[1..]);
    let program = Some(&words[0]).filter(|word| !linker::is_linker(Path::new(word)));
    program.or_else(behind).unwrap_or(&words[0]).as_ref()
}

/// Reads the file that a command's first word names, an absolute path; if that is a dynamic linker, reads the program that it loads.
pub fn recognise_command<S: AsRef<OsStr>>(words: &[S], folder: &Path) -> Recognised {
    let first = Path::new(&words[0]);
    if !linker::is_linker(first) {
        return recognise(first);
    }
    let Some(program) = linker::program(&words[1..]) else {
        return Recognised {
            chain: vec![first.into()],
            ..Recognised::refused("is the dynamic linker, and no program stands behind it")
        };
    };
    let mut found = recognise(&folder.join(program.as_ref()));
    found.chain.insert(0, first.into());
    found
}

/// Returns whether a file can be executed.
pub fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0)
}

/// Reads a file, and follows scripts to their interpreter.
pub fn recognise(path: &Path) -> Recognised {
    let mut chain = vec![path.to_path_buf()];
    let mut shim = None;
    let found = loop {
        let file = &chain[chain.len() - 1];
        let (data, metadata) = match (std::fs::read(file), file.metadata()) {
            (Ok(data), Ok(metadata)) => (data, metadata),
            (Err(error), _) | (_, Err(error)) if chain.len() > 1 => {
                let interpreter = chain.pop().unwrap_or_default();
                break no_interpreter(&interpreter, &error);
            }
            (Err(error), _) | (_, Err(error)) => {
                break Recognised::refused(format!("it cannot be read ({error})"));
            }
        };
        if chain.len() == 1 {
            shim = Shim::of(path, &data);
        }
        match interpreter(&data) {
            Some(next) if chain.len() <= DEEPEST => chain.push(next),
            _ if is_privileged(file, &metadata) => {
                break Recognised::refused(
                    "runs with the privileges of its file (set-user-ID, set-group-ID or capabilities): the \
                     dynamic linker preloads nothing into it",
                );
            }
            _ => break inside::look(&data),
        }
    };
    Recognised {
        chain,
        shim,
        ..found
    }
}

/// Returns the interpreter of a script; for `env`, the command that follows it.
fn interpreter(data: &[u8]) -> Option<PathBuf> {
    let line = data
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line);
    // The kernel splits at spaces and tabs only: other blanks belong to the name.
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let first = PathBuf::from(words.next()?);
    if !first.ends_with("env") {
        return Some(first);
    }
    let command = words.find(|word| !word.starts_with('-') && !word.contains('='));
    match command {
        Some(command) if command.ends_with('\r') => Some(command.into()),
        Some(command) => find(command, Path::new("/")).ok().or(Some(first)),
        None => Some(first),
    }
}

/// Returns the refusal of a script whose interpreter is missing: the kernel's error would sound as if the script were missing.
fn no_interpreter(interpreter: &Path, error: &std::io::Error) -> Recognised {
    let name = interpreter.display().to_string();
    let why = match name.strip_suffix('\r') {
        Some(_) => {
            ": lines of this script end as on Windows; make them end as here: sed -i 's/\\r$//' FILE"
        }
        None => "",
    };
    let name = name.escape_default();
    Recognised::refused(format!(
        "its first line names the interpreter {name} ({error}){why}"
    ))
}

fn is_privileged(path: &Path, file: &std::fs::Metadata) -> bool {
    let mode = file.mode();
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let other =
        (mode & 0o4000 != 0 && file.uid() != user) || (mode & 0o2000 != 0 && file.gid() != group);
    // Root gains nothing from capabilities: the dynamic linker still preloads for root.
    let capable = user != 0
        && rustix::fs::getxattr(path, c"security.capability", &mut [0_u8; 0])
            .is_ok_and(|size| size > 0);
    other || capable
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// Writes a file with this content and mode.
    fn file(dir: &Path, name: &str, content: &[u8], mode: u32) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_command_is_found_as_a_shell_finds_it() {
        let dir = tempfile::tempdir().unwrap();
        let script = file(dir.path(), "run", b"#!/bin/sh\n", 0o755);
        file(dir.path(), "text", b"", 0o644);
        assert_eq!(find("./run", dir.path()).unwrap(), script);
        assert!(find("sh", dir.path()).unwrap().ends_with("sh"));
        let error = |word: &str| find(word, dir.path()).unwrap_err().to_string();
        assert!(
            error("./text").contains("not executable"),
            "{}",
            error("./text")
        );
        assert!(error("./gone").contains("No such file"));
        assert!(error("no-such-command").contains("no such command in PATH"));
        assert!(error("..//").contains("not a file"));
    }

    #[test]
    fn a_script_is_followed_to_its_interpreter() {
        let dir = tempfile::tempdir().unwrap();
        for line in [
            "#!/bin/sh -e",
            "#!/usr/bin/env sh",
            "#! /usr/bin/env -S A=1 sh",
        ] {
            let script = file(
                dir.path(),
                "run",
                format!("{line}\nexit 0\n").as_bytes(),
                0o755,
            );
            let found = recognise(&script);
            assert!(found.program().ends_with("sh"), "{line}: {:?}", found.chain);
            assert_eq!(found.unreachable, None);
        }
        let path = dir.path().join("run");
        let around = file(
            dir.path(),
            "run",
            format!("#!{}\n", path.display()).as_bytes(),
            0o755,
        );
        assert!(
            recognise(&around)
                .unreachable
                .unwrap()
                .contains("no program that this machine knows")
        );
    }

    #[test]
    fn an_interpreter_that_is_not_there_is_named_and_not_its_script() {
        let dir = tempfile::tempdir().unwrap();
        let why = |content: &[u8]| {
            let found = recognise(&file(dir.path(), "run", content, 0o755));
            assert!(found.program().ends_with("run"), "{:?}", found.chain);
            found.unreachable.unwrap()
        };
        let windows = why(b"#!/bin/sh\r\necho hi\r\n");
        let start = "its first line names the interpreter /bin/sh\\r (No such file";
        assert!(
            windows.starts_with(start) && windows.contains("sed -i"),
            "{windows}"
        );
        let windows = why(b"#!/usr/bin/env sh\r\n");
        assert!(windows.contains("the interpreter sh\\r"), "{windows}");
        let gone = why(b"#!/opt/gone -x\n");
        assert!(
            gone.contains("/opt/gone (No such file") && !gone.contains("sed"),
            "{gone}"
        );
    }

    #[test]
    fn a_script_without_an_interpreter_is_started_by_sh_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let started = |content: &[u8]| {
            file(dir.path(), "run", content, 0o755);
            let words = as_a_shell_starts(vec!["./run".into(), "a".into()], dir.path()).unwrap();
            words.len() == 3 && words[0] == "/bin/sh" && words[2] == "a"
        };
        assert!(started(b"echo hi\n") && started(b""));
        let elf = fs::read("/bin/true").unwrap();
        assert!(!started(b"#!/bin/sh\n") && !started(&elf) && !started(b"MZ\0\n"));
    }

    #[test]
    fn a_program_behind_the_dynamic_linker_is_recognised_in_its_place() {
        let of = |words: &[&str]| recognise_command(words, Path::new("/bin"));
        let found = of(&["/lib64/ld-linux-x86-64.so.2", "--argv0", "x", "./sh", "-c"]);
        assert!(
            found.program().ends_with("sh") && found.chain.len() == 2,
            "{:?}",
            found.chain
        );
        assert_eq!(found.unreachable, None);
        let none = of(&["/lib64/ld-linux-x86-64.so.2", "--list"]);
        assert!(
            none.unreachable
                .unwrap()
                .contains("no program stands behind it")
        );
        assert_eq!(name_of(&["/lib64/ld-linux-x86-64.so.2", "./sh"]), "./sh");
        assert_eq!(name_of(&["/bin/sh", "-c"]), "/bin/sh");
    }

    #[test]
    fn what_is_no_program_of_this_machine_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let why = |content: &[u8]| {
            recognise(&file(dir.path(), "x", content, 0o755))
                .unreachable
                .unwrap()
        };
        assert!(why(b"text").contains("no program that this machine knows"));
        assert!(
            recognise(&dir.path().join("gone"))
                .unreachable
                .unwrap()
                .contains("cannot be read")
        );
        let mut other = fs::read("/bin/sh").unwrap();
        other[18] = 21;
        assert!(
            why(&other).contains("made for PowerPc64"),
            "{}",
            why(&other)
        );
    }
}
