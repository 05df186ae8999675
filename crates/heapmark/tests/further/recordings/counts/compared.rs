//! A program that is recorded while a counter that knows nothing of the recorder stands behind it: what both say of each process that
//! it came to.

// The test uses a part of it.
#![allow(dead_code)]

use heapmark_trace::finish::{Finished, Unfinished, finish_all};
use heapmark_trace::{Call, Done, Event, Fault, Reader};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::Permissions;
use std::io::PipeReader;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What is counted, in the order of the counter's numbers.
pub const KINDS: [&str; 6] = [
    "malloc",
    "calloc",
    "realloc",
    "aligned",
    "free",
    "usable_size",
];
const MALLOC: usize = 0;
const CALLOC: usize = 1;
const REALLOC: usize = 2;
const ALIGNED: usize = 3;
const FREE: usize = 4;
const USABLE_SIZE: usize = 5;
const WORD: usize = 8;

/// A daemon lives on when its recording has ended: for so long at most.
const PATIENCE: Duration = Duration::from_secs(30);

/// Calls by kind.
pub type Calls = [u64; KINDS.len()];

/// A program's name, its calls, and how many of them were left out.
type Told = (String, Calls, u64);

/// A place for programs, and the counter that counts into it.
pub struct Place {
    /// Where programs run: anybody may look, its owner may write.
    pub work: TempDir,
    /// Where the counter's files lie: anybody may write.
    counts: TempDir,
    library: PathBuf,
}

/// What came of a program.
pub struct Compared {
    pub end: Output,
    pub processes: Vec<Process>,
}

/// A program that a process executed.
#[derive(Debug)]
pub struct Process {
    pub pid: u32,
    pub program: String,
    /// By the recorder; nothing where there is no capture.
    pub recorded: Option<Calls>,
    /// By the counter; nothing where there is no file.
    pub counted: Option<Calls>,
    /// Calls that a trace leaves out, because they are of objects whose beginning is not on record; they are said, and counted as recorded.
    pub left_out: u64,
}

impl Process {
    pub fn calls(&self) -> u64 {
        self.recorded.iter().flatten().sum()
    }

    pub fn agrees(&self) -> bool {
        self.recorded.unwrap_or_default() == self.counted.unwrap_or_default()
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}):", self.program, self.pid)?;
        match (self.recorded, self.counted) {
            (None, Some(counted)) => {
                write!(f, " {} calls, not recorded", counted.iter().sum::<u64>())
            }
            (Some(recorded), None) => {
                write!(f, " {} calls, not counted", recorded.iter().sum::<u64>())
            }
            (recorded, counted) => {
                let (recorded, counted) =
                    (recorded.unwrap_or_default(), counted.unwrap_or_default());
                let differ = (0..KINDS.len()).filter(|kind| recorded[*kind] != counted[*kind]);
                differ.into_iter().try_for_each(|kind| {
                    write!(
                        f,
                        " {}: {} recorded, {} counted;",
                        KINDS[kind], recorded[kind], counted[kind]
                    )
                })
            }
        }
    }
}

/// Where programs are looked for: the system's own first, which every user may execute.
pub fn path() -> String {
    format!(
        "/usr/sbin:/usr/bin:/sbin:/bin:{}",
        std::env::var("PATH").unwrap_or_default()
    )
}

impl Place {
    /// Compiles the counter with further flags.
    pub fn new(flags: &[&str]) -> Place {
        // Other users' programs look into both, so neither may lie below what is closed to them.
        let [work, counts] = [0o755, 0o1777].map(|mode| {
            let folder = tempfile::Builder::new()
                .prefix("heapmark-counts-")
                .tempdir_in("/tmp")
                .unwrap();
            std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            folder
        });
        let library = counts.path().join("counter.so");
        let mut cc = Command::new("cc");
        cc.args([
            "-O1",
            "-shared",
            "-fPIC",
            "-fno-builtin",
            "-pthread",
            "-Wall",
            "-Werror",
        ])
        .args(flags);
        cc.arg(format!("-DFOLDER=\"{}\"", counts.path().display()))
            .arg("-o")
            .arg(&library);
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/further/recordings/counts/counter.c");
        let end = cc.arg(source).arg("-ldl").output().unwrap();
        assert!(
            end.status.success(),
            "{}",
            String::from_utf8_lossy(&end.stderr)
        );
        Place {
            work,
            counts,
            library,
        }
    }

    /// Records a command to its end, and the end of all that it started.
    pub fn compare(&self, heapmark: &Path, words: &[String]) -> Compared {
        for file in self.files(self.counts.path(), |name| !name.ends_with(".so")) {
            std::fs::remove_file(file).unwrap();
        }
        let mut command = Command::new(heapmark);
        command
            .current_dir(self.work.path())
            .env("LD_PRELOAD", &self.library)
            .env("PATH", path());
        // A daemon that has not called anything yet has no file; it has this pipe, unless it closes what it does not know.
        let (alive, held) = std::io::pipe().unwrap();
        let descriptor = held.as_raw_fd();
        // SAFETY: a call of the system that is allowed between fork and exec. The copy stays open in all that is executed.
        unsafe {
            command.pre_exec(move || match libc::dup(descriptor) {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            })
        };
        let end = command
            .args(["record", "--raw", "-o", "counted.trace", "--"])
            .args(words)
            .output()
            .unwrap();
        drop(held);
        self.wait(&alive);
        let mut processes: BTreeMap<u32, [Vec<Told>; 2]> = BTreeMap::new();
        for (pid, program, calls) in self.counted(heapmark) {
            processes.entry(pid).or_default()[1].push((program, calls, 0));
        }
        for (pid, program, calls, left_out) in self.recorded() {
            processes.entry(pid).or_default()[0].push((program, calls, left_out));
        }
        let made_calls = |(_, calls, _): &Told| calls.iter().any(|count| *count > 0);
        let mut all = Vec::new();
        for (pid, both) in processes {
            // One after the other, where a process executed several programs.
            let [recorded, counted] =
                both.map(|programs| programs.into_iter().filter(made_calls).collect::<Vec<_>>());
            for at in 0..recorded.len().max(counted.len()) {
                let (recorded, counted) = (recorded.get(at), counted.get(at));
                let program = recorded
                    .or(counted)
                    .map(|(program, ..)| program.clone())
                    .unwrap_or_default();
                let calls = |of: Option<&Told>| of.map(|(_, calls, _)| *calls);
                let left_out = recorded.map_or(0, |(.., left_out)| *left_out);
                all.push(Process {
                    pid,
                    program,
                    recorded: calls(recorded),
                    counted: calls(counted),
                    left_out,
                });
            }
        }
        Compared {
            end,
            processes: all,
        }
    }

    /// Waits until nothing runs any more that was counted.
    fn wait(&self, alive: &PipeReader) {
        let until = Instant::now() + PATIENCE;
        let patience = Timespec::try_from(PATIENCE).unwrap();
        let ended = poll(&mut [PollFd::new(alive, PollFlags::IN)], Some(&patience)).unwrap();
        assert_eq!(ended, 1, "something that was recorded does not end");
        let runs = |file: &PathBuf| {
            let pid = file.file_stem().unwrap_or_default();
            let state = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"))
                .unwrap_or_default();
            let state = state.rsplit_once(") ").map_or("", |(_, rest)| rest);
            !state.is_empty() && !state.starts_with('Z')
        };
        while self
            .files(self.counts.path(), |name| !name.ends_with(".so"))
            .iter()
            .any(runs)
        {
            assert!(
                Instant::now() < until,
                "something that was recorded does not end"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn files(&self, folder: &Path, is_one: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let name = |path: &PathBuf| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        let mut files: Vec<PathBuf> = entries
            .filter(|path| path.is_file() && is_one(&name(path)))
            .collect();
        // The second program of a process is its 2, the tenth its 10.
        files.sort_by_key(|path| (name(path).len(), name(path)));
        files
    }

    /// What the counter says; not of heapmark itself and what that measures with.
    fn counted(&self, heapmark: &Path) -> Vec<(u32, String, Calls)> {
        let heapmark = heapmark.canonicalize().unwrap();
        let is_own = |program: &Path| program == heapmark || program.ends_with("heapmark-guest");
        let files = self.files(self.counts.path(), |name| !name.ends_with(".so"));
        let read = |file: PathBuf| {
            let bytes = std::fs::read(&file).unwrap();
            let (numbers, text) = bytes.split_at(KINDS.len() * WORD);
            let mut calls = Calls::default();
            for (number, bytes) in calls.iter_mut().zip(numbers.chunks_exact(WORD)) {
                *number = u64::from_ne_bytes(bytes.try_into().unwrap());
            }
            let program =
                String::from_utf8_lossy(text.split(|byte| *byte == 0).next().unwrap()).into_owned();
            let pid = file.file_stem().unwrap().to_string_lossy().parse().unwrap();
            (!is_own(Path::new(&program))).then_some((pid, program, calls))
        };
        files.into_iter().filter_map(read).collect()
    }

    /// What the traces say, by process, and what they had to leave out. The captures are gone afterwards.
    fn recorded(&self) -> Vec<(u32, String, Calls, u64)> {
        let folders = std::fs::read_dir(self.work.path()).unwrap();
        let folder = folders
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension().is_some_and(|it| it == "captures"))
            .unwrap();
        let captures = self.files(&folder, |name| name.ends_with(".cap"));
        let mut traces = BTreeMap::new();
        finish_all(&captures, Done::default(), &mut |capture| {
            into_memory(capture, &mut traces)
        });
        let mut all = Vec::new();
        for capture in &captures {
            let (trace, finished) = traces
                .remove(capture)
                .unwrap()
                .unwrap_or_else(|fault| panic!("{}: {fault}", capture.display()));
            assert_eq!(finished.damage, [""; 0], "{}", capture.display());
            let pid = finished.head.text("pid").unwrap().parse().unwrap();
            let left_out = finished.mended.unknown + finished.unknown_uses;
            all.push((
                pid,
                finished.head.text("exe").unwrap_or_default(),
                calls(&trace, &finished),
                left_out,
            ));
        }
        std::fs::remove_dir_all(folder).unwrap();
        all
    }
}

type Traces = BTreeMap<PathBuf, Result<(Vec<u8>, Finished), Fault>>;

fn into_memory(capture: Unfinished, traces: &mut Traces) {
    let (path, mut trace) = (capture.path().to_path_buf(), Vec::new());
    let finished = capture.finish(&mut trace, &mut |child| into_memory(child, traces));
    traces.insert(path, finished.map(|finished| (trace, finished)));
}

/// Calls of the process itself that a trace tells of, and those that it had to leave out.
fn calls(trace: &[u8], finished: &Finished) -> Calls {
    let (mut calls, mut inherited) = (Calls::default(), 0);
    for event in Reader::new(trace).unwrap() {
        let (_, event) = event.unwrap();
        if inherited > 0 {
            inherited -= 1;
            continue;
        }
        let kind = match event {
            Event::Inherit { objects } => {
                inherited = objects;
                continue;
            }
            Event::Malloc { .. }
            | Event::Failed {
                call: Call::Malloc | Call::Operator,
                ..
            } => MALLOC,
            Event::Calloc { .. }
            | Event::Failed {
                call: Call::Calloc, ..
            } => CALLOC,
            Event::Realloc { .. }
            | Event::ReallocFree { .. }
            | Event::Failed {
                call: Call::Realloc,
                ..
            } => REALLOC,
            Event::Aligned { .. }
            | Event::Failed {
                call: Call::Aligned,
                ..
            } => ALIGNED,
            Event::Free { .. }
            | Event::FreeSized { .. }
            | Event::FreeAlignedSized { .. }
            | Event::FreeAligned { .. } => FREE,
            Event::UsableSize { .. } => USABLE_SIZE,
            _ => continue,
        };
        calls[kind] += 1;
    }
    // An object that ended unseen has an end in the trace that was no call.
    calls[FREE] = calls[FREE] + finished.mended.unknown - finished.mended.unseen;
    calls[USABLE_SIZE] += finished.unknown_uses;
    calls
}
