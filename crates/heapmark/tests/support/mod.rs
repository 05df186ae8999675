//! What the end-to-end tests share: a folder of their own, heapmark with a scrubbed environment, readers of what it
//! stored, and fakes compiled from C. Asserts nothing about heapmark itself.

// Each test file uses a part of this.
#![allow(dead_code)]

pub mod campaign;
pub mod captured;
pub mod home;
pub mod live;
pub mod machine;
pub mod rust_project;
pub mod stored;
pub mod tried;

use heapmark::build;
use heapmark::catalog::Catalog;
use heapmark::cli;
use heapmark::plan::Plan;
use heapmark_trace::Event;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;
use tempfile::TempDir;

/// Flags of a run that takes a second or two: small work, one thread.
pub const SMALL: [&str; 11] = [
    "-w",
    "churn",
    "-t",
    "1",
    "--target-ms",
    "2",
    "--set",
    "churn.objects=5000",
    "--no-aa-copy",
    "--no-floor",
    // How busy the machine is that runs the tests must not decide how many processes a test sees.
    "--no-repeat",
];

/// Read once for all processes that the tests start.
pub static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::load().unwrap());

/// A limit for processes that would never end: on a machine with much else to do, two threads that
/// wait for each other at each step may take minutes.
pub const HUNG_AFTER: Duration = Duration::from_secs(600);

/// Calls of malloc of this size in a trace.
pub fn mallocs(trace: &Path, size: u64) -> usize {
    let is_one =
        |event: &Event| matches!(event, Event::Malloc { size: asked, .. } if *asked == size);
    let events = heapmark_trace::Reader::open(trace).unwrap();
    let events = events.map(|event| event.unwrap().1);
    events.filter(is_one).count()
}

/// Waits until no other test, nor another `cargo test`, makes what they share; the lock ends with the file.
pub fn alone(name: &str) -> File {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.lock"));
    let file = lock_file(&path);
    file.lock().unwrap();
    file
}

/// Some tests make files of other users.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn lock_file(path: &Path) -> File {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .unwrap()
}

/// A port that no other test gets as long as this is there, in whichever `cargo test` of this user it runs.
pub struct Port(pub u16, File);

impl Port {
    pub fn free() -> Port {
        let folder =
            // SAFETY: a plain system call.
            std::env::temp_dir().join(format!("heapmark-test-ports-{}", unsafe { libc::getuid() }));
        std::fs::create_dir_all(&folder).unwrap();
        // Below those that the system chooses from.
        let mine = |number: u16| {
            let file = lock_file(&folder.join(number.to_string()));
            let is_free = file.try_lock().is_ok()
                && std::net::TcpListener::bind(("127.0.0.1", number)).is_ok();
            is_free.then_some(Port(number, file))
        };
        (20_000..30_000).find_map(mine).expect("a port")
    }
}

/// Node with one of the scripts in `tests/node`, and with the packages that it needs.
pub fn node(script: &str) -> Command {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node");
    let _alone = alone("node");
    let changed = |name: &str| {
        let file = folder.join(name).metadata();
        file.and_then(|file| file.modified()).ok()
    };
    // npm writes the second one last. A newer lock file means other packages.
    if changed("package-lock.json") > changed("node_modules/.package-lock.json") {
        let npm = Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(&folder)
            .output();
        let npm = npm.unwrap_or_else(|why| panic!("npm: {why}: scripts/setup.sh test brings it"));
        assert!(
            npm.status.success(),
            "npm ci: {}",
            String::from_utf8_lossy(&npm.stderr)
        );
    }
    let mut node = Command::new("node");
    node.arg(folder.join(script));
    node
}

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder of one test: its home, its configuration, its results.
pub struct Place {
    dir: TempDir,
    takes_turns: bool,
}

/// A library that is compiled by the first that asks for it; others wait for it.
type Compiled = Arc<OnceLock<Vec<u8>>>;

/// Libraries by the flags and sources that they are made of: many tests take the same few.
static COMPILED: Mutex<BTreeMap<Vec<PathBuf>, Compiled>> = Mutex::new(BTreeMap::new());

/// Where heapmark keeps what has passed.
const CHECKS: &str = ".cache/heapmark/checks";

/// What heapmark keeps of the calls of glibc that few workloads make, with the mark of the folder, by file name: a run that knows
/// nothing of them starts more processes for them than for its workload.
static RARE_CALLS: LazyLock<Vec<(OsString, Vec<u8>)>> = LazyLock::new(|| {
    let place = Place::bare();
    let end = place.run_small("run", &["-a", "glibc", "--blocks", "1"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    // The workload's check is left to each test.
    let is_check = |content: &[u8]| {
        let kept = serde_json::from_slice::<Value>(content);
        kept.is_ok_and(|kept| word(&kept["passed"], "cell").contains("/check/"))
    };
    let entries = std::fs::read_dir(place.at(CHECKS)).unwrap();
    let files = entries.map(Result::unwrap).map(|entry| {
        let content = std::fs::read(entry.path()).unwrap();
        (entry.file_name(), content)
    });
    files.filter(|(_, content)| !is_check(content)).collect()
});

/// How a heapmark ended.
pub struct End {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    pub stdout: String,
    /// Without the lines that say how far long work is: how busy the machine is decides whether there are any.
    pub stderr: String,
}

/// What is costly to make and the same for all: named by a hash of its inputs. What a heapmark has found of an allocator stays with
/// its test.
const SHARED: [&str; 8] = [
    "carried",
    "compiled-traces",
    "compiled-traces.lock",
    "libraries",
    "programs",
    "recorder",
    "sources",
    "traces",
];

impl Place {
    /// For runs whose processes run alone unless a test asks for turns: those take longer, and are compared by another clock.
    pub fn new() -> Place {
        let place = Place::bare();
        let checks = place.at(CHECKS);
        std::fs::create_dir(&checks).unwrap();
        for (name, content) in RARE_CALLS.iter() {
            std::fs::write(checks.join(name), content).unwrap();
        }
        place
    }

    /// A place in which nothing is known of any allocator.
    fn bare() -> Place {
        let place = Place {
            dir: tempfile::tempdir().unwrap(),
            takes_turns: false,
        };
        let (own, shared) = (place.at(".cache/heapmark"), build::cache_root().unwrap());
        std::fs::create_dir_all(&own).unwrap();
        for shelf in SHARED {
            let from = shared.join(shelf);
            match shelf.ends_with(".lock") {
                true => drop(lock_file(&from)),
                false => std::fs::create_dir_all(&from).unwrap(),
            }
            std::os::unix::fs::symlink(from, own.join(shelf)).unwrap();
        }
        place
    }

    /// For runs that take turns where they can, as those of users do.
    pub fn of_turns() -> Place {
        Place {
            takes_turns: true,
            ..Place::new()
        }
    }

    /// A path in the folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The same as text, for flags.
    pub fn text(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_string()
    }

    /// heapmark, with nothing of the caller's environment but the compiler's path.
    pub fn heapmark(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
        let mut words = args.to_vec();
        let has = |flag: &str| args.iter().any(|word| word.starts_with(flag));
        if let Some("run" | "try" | "replay") = args.first().copied()
            && !self.takes_turns
            && !["--turns", "--alone", "--resume"].into_iter().any(has)
        {
            words.insert(1, "--alone");
        }
        command
            .args(words)
            .env_clear()
            .env("HOME", self.dir.path())
            .env("XDG_CONFIG_HOME", self.at("config"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.dir.path());
        // SAFETY: one async-signal-safe call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                // Tests that run below `nohup` would hand it on, and a terminal that ends would end nothing.
                libc::signal(libc::SIGHUP, libc::SIG_DFL);
                Ok(())
            })
        };
        command
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> End {
        End::of(self.heapmark(args).output().unwrap())
    }

    /// All tables of a run, with their notes and the meaning of their columns.
    pub fn full(&self, run: &str) -> String {
        self.run(&["show", "--full", run]).stdout
    }

    /// `heapmark run` of a small job with these further flags, into the folder `name`.
    pub fn run_small(&self, name: &str, flags: &[&str]) -> End {
        self.run(&[&["run", "-o", name], &SMALL[..], flags].concat())
    }

    /// `heapmark run` of these workloads and allocators in one block, into the folder `name`.
    pub fn run_block(&self, name: &str, workloads: &str, allocators: &str, flags: &[&str]) -> End {
        let of = ["run", "-o", name, "-w", workloads, "-a", allocators];
        self.run(&[&of[..], &["--blocks", "1"], flags].concat())
    }

    /// A library from `tests/fakes/<name>.c`, which has memory of its own and the usual functions for what it does not define itself.
    pub fn fake(&self, name: &str) -> PathBuf {
        self.compile(name, &[source("own")])
    }

    /// A library from `tests/fakes/<name>.c` and further files alone.
    pub fn compile(&self, name: &str, with: &[PathBuf]) -> PathBuf {
        let library = self.at(&format!("lib{name}.so"));
        let strict = ["-Wall", "-Werror"].map(PathBuf::from);
        compile_into(&library, &[&strict[..], &[source(name)], with].concat());
        library
    }

    /// A library from `tests/fakes/<name>.c` that needs another library.
    pub fn needing(&self, name: &str, other: &Path) -> PathBuf {
        let linked = ["-Wl,--no-as-needed".into(), other.to_owned()];
        self.compile(name, &[&[source("own")], &linked[..]].concat())
    }

    /// A library that answers each misuse in this way (`tests/fakes/answers.c`).
    pub fn answering(&self, answer: &str) -> PathBuf {
        let library = self.at(&format!("lib{answer}.so"));
        let defined = format!("-DANSWER={answer}").into();
        compile_into(&library, &["-w".into(), defined, source("answers")]);
        library
    }

    /// heapmark with a cache that no other test writes to, to its end.
    pub fn run_with_own_cache(&self, args: &[&str]) -> End {
        let mut command = self.heapmark(args);
        End::of(
            command
                .env("HEAPMARK_CACHE", self.at("cache"))
                .output()
                .unwrap(),
        )
    }

    /// Builds allocators of the catalogue that are not built yet: a test that names one measures it, or fails.
    #[track_caller]
    pub fn ready(&self, names: &[&str]) {
        // In the caller's environment, in which cargo fetches the sources.
        let mut build = Command::new(env!("CARGO_BIN_EXE_heapmark"));
        build.arg("build").args(names);
        let end = End::of(build.output().unwrap());
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    }

    /// Whether the system has the package of this allocator.
    pub fn is_installed(&self, name: &str) -> bool {
        let end = self.run(&["list", "allocators", "--format", "json"]);
        let listed: Vec<Value> = serde_json::from_str(&end.stdout).unwrap();
        let mut all = listed.iter();
        all.any(|entry| entry["name"] == name && entry["state"] == "ready")
    }

    /// A stored run as CSV rows, by workload, threads and allocator.
    pub fn rows(&self, run: &str) -> Vec<BTreeMap<String, String>> {
        let end = self.run(&["export", run, "--to", "csv-rows"]);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        csv::Reader::from_reader(end.stdout.as_bytes())
            .deserialize()
            .map(|row| row.unwrap())
            .collect()
    }
}

impl End {
    pub fn of(output: Output) -> End {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let stderr = text(output.stderr)
            .split_inclusive('\n')
            .filter(|line| !is_progress(line.trim_end()))
            .collect();
        End {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr,
        }
    }

    /// Whether stdout has this, whatever lines it stands on: the machine's noise decides where they break.
    pub fn says(&self, text: &str) -> bool {
        words(&self.stdout).contains(text)
    }

    /// Asserts that it ended with this code and one line on stderr.
    #[track_caller]
    pub fn is_one_line(&self, code: i32) {
        let found = (self.code, self.stderr.lines().count());
        assert_eq!(found, (Some(code), 1), "{}", self.stderr);
    }
}

/// Whether a line is one of those that long work writes after two seconds: `trace stats a.trace: 43 %, about 12.0 s left`.
pub fn is_progress(line: &str) -> bool {
    let (known, unknown) = (
        line.contains(" %, about ") && line.ends_with(" left"),
        line.contains(": for ") && line.ends_with(" now"),
    );
    known || unknown || line.ends_with(": 0 %")
}

/// Files in a folder and in its folders, by their paths from there.
pub fn files(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => names.extend(files(&entry.path()).iter().map(|it| format!("{name}/{it}"))),
            false => names.push(name),
        }
    }
    names.sort();
    names
}

/// Copies a program, by another process: what another test starts meanwhile would hold open for writing what this process
/// writes, and the kernel does not start a file that is open for writing.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp")
        .arg(from.as_ref())
        .arg(to.as_ref())
        .status();
    assert!(copied.unwrap().success());
}

/// Writes the library that the compiler makes of these flags and sources into this file.
pub fn compile_into(library: &Path, made_of: &[PathBuf]) {
    let mut all = COMPILED.lock().unwrap();
    let compiled = all.entry(made_of.to_vec()).or_default().clone();
    drop(all);
    let content = compiled.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("made.so");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-shared", "-fPIC", "-fno-builtin"])
            .args(made_of);
        let output = cc.arg("-o").arg(&made).output().unwrap();
        assert!(
            output.status.success(),
            "{made_of:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        std::fs::read(made).unwrap()
    });
    // As a linker does: a process may have the old file mapped.
    let _ = std::fs::remove_file(library);
    std::fs::write(library, content).unwrap();
}

/// The source of a fake.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fakes/{name}.c"))
}

/// glibc under another name, as a word of `-a`: what each test that compares allocators must notice.
pub fn glibc_again() -> String {
    let library = build::find_library("libc.so.6").unwrap();
    format!("another={}", library.display())
}

/// `run.json`.
pub fn head(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap()
}

/// The plan in `run.json`.
pub fn plan(run: &Path) -> Plan {
    serde_json::from_value(head(run)["plan"].clone()).unwrap()
}

/// `samples.jsonl`; every line must be a record.
pub fn samples(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("samples.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect()
}

/// The records that were run for this.
pub fn of_purpose<'a>(records: &'a [Value], purpose: &str) -> Vec<&'a Value> {
    records
        .iter()
        .filter(|record| record["purpose"] == purpose)
        .collect()
}

/// A field that must be text.
pub fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("no text `{key}` in {value}"))
}

/// All commands; those of `trace` stand for it.
pub fn commands() -> Vec<(String, clap::Command)> {
    let definition = cli::definition();
    let all = definition.get_subcommands().flat_map(|command| {
        let below = command.get_subcommands().map(|command| {
            let name = format!("trace {}", command.get_name());
            (name, command.clone())
        });
        match command.get_name() {
            "trace" => below.collect(),
            name => vec![(name.to_owned(), command.clone())],
        }
    });
    all.collect()
}

/// The words of what is printed, whatever lines they stand on.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
