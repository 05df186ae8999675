//! Compiles a program, runs it under the recorder, and reads the recordings.

mod capture;
mod frames;
mod ledger;

pub use capture::{Capture, Noted};
pub use frames::deepest;
pub use ledger::Ledger;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The library: cargo builds it for this package's tests, and puts it next to them.
pub fn recorder() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let library = tests.with_file_name("libheapmark_recorder.so");
    assert!(library.is_file(), "{} is missing", library.display());
    library
}

/// A folder with a compiled scenario, and the recordings of its runs.
pub struct Scenario {
    pub dir: tempfile::TempDir,
    program: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl Scenario {
    /// Compiles `tests/scenarios/NAME`.
    pub fn new(name: &str) -> Scenario {
        Scenario::with_flags(name, &[])
    }

    /// With further arguments for the compiler.
    pub fn with_flags(name: &str, flags: &[&str]) -> Scenario {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        compile(name, &program, flags);
        Scenario {
            dir,
            program,
            variables: Vec::new(),
        }
    }

    /// With a variable of the recorder.
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Scenario {
        self.variables.push((name, value.to_string()));
        self
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// A command to be recorded.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command
            .env("LD_PRELOAD", recorder())
            .env("HEAPMARK_RECORD_TO", self.dir.path().join("run"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the program with a library after the recorder that serves its memory.
    pub fn run_with(&self, library: &str, arguments: &[&str]) -> String {
        let file = self.dir.path().join(library).with_extension("so");
        compile(library, &file, &["-shared", "-fPIC"]);
        let preload = format!("{}:{}", recorder().display(), file.display());
        good(
            self.command(&self.program)
                .args(arguments)
                .env("LD_PRELOAD", preload)
                .output()
                .unwrap(),
        )
    }

    /// Runs the program, which must succeed, and returns its output.
    pub fn run(&self, arguments: &[&str]) -> String {
        good(
            self.command(&self.program)
                .args(arguments)
                .output()
                .unwrap(),
        )
    }

    /// All recordings, in the order of their starts.
    pub fn captures(&self) -> Vec<Capture> {
        captures(self.dir.path())
    }

    /// The recording, if there is exactly one.
    pub fn capture(&self) -> Capture {
        let mut captures = self.captures();
        assert_eq!(captures.len(), 1, "one process, one recording");
        captures.remove(0)
    }

    /// Runs the program and reads its recording, which must be consistent.
    pub fn recorded(&self, arguments: &[&str]) -> (String, Capture) {
        let printed = self.run(arguments);
        let capture = self.capture();
        Ledger::of(&capture).assert_consistent();
        (printed, capture)
    }
}

/// All recordings in a folder, in the order of their starts.
pub fn captures(folder: &Path) -> Vec<Capture> {
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_capture = |file: &PathBuf| file.extension().is_some_and(|end| end == "cap");
    let mut captures: Vec<Capture> = files
        .filter(is_capture)
        .map(|file| Capture::read(&file))
        .collect();
    captures.sort_by_key(|capture| capture.text("started-unix-ns").parse::<u64>().unwrap());
    captures
}

/// Compiles a scenario with warnings as errors; nothing is optimised away.
pub fn compile(name: &str, program: &Path, flags: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/scenarios")
        .join(name);
    let compiler = if name.ends_with(".cpp") { "c++" } else { "cc" };
    let mut command = Command::new(compiler);
    command
        .args([
            "-O1",
            "-g",
            "-Wall",
            "-Werror",
            "-fno-builtin",
            "-pthread",
            "-o",
        ])
        .arg(program);
    let end = command
        .arg(source)
        .args(flags)
        .arg("-ldl")
        .output()
        .unwrap();
    assert!(
        end.status.success(),
        "{compiler} {name}: {}",
        String::from_utf8_lossy(&end.stderr)
    );
}

/// The output of a process, which must have succeeded.
pub fn good(end: Output) -> String {
    let words = String::from_utf8_lossy(&end.stderr);
    assert!(end.status.success(), "{}: {words}", end.status);
    assert_eq!(words, "", "nothing to complain about");
    String::from_utf8(end.stdout).unwrap()
}
