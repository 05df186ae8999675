//! Finds processes of a recorded tree that ran unrecorded, and why. Recorded processes note the programs that they execute,
//! and `/proc` shows running processes, and the libraries in them whose calls bypass the recorder. The tree is read there
//! up to fifty times a second, less often if it is large; no process is stopped. Processes that an unrecorded process
//! starts, and processes that have left the tree, are missed if they end between two looks.

use anyhow::Result;
use heapmark_core::build::command::{find, recognise};
use heapmark_core::catalog::folder::listing;
use heapmark_core::execute::exec_tracer::{Executed, holds, resolved};
use heapmark_core::execute::handed::Handed;
use heapmark_core::execute::reach::{Beyond, Reader};
use heapmark_core::execute::tree::{self, descendants};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a daemon may take until its first call.
const GRACE: Duration = Duration::from_secs(1);
/// The shortest time from one look to the next.
const WAIT: Duration = Duration::from_millis(20);
/// The wait is at least this many times the CPU time of a look: on a busy machine a look lasts longer and costs no more.
const WAITS: u32 = 200;
/// The longest wait: a process that lives longer than this is seen.
const LONGEST: Duration = Duration::from_secs(1);

/// A program that a process executed, as the caller of exec named it, and whether it was to be
/// recorded.
#[derive(Debug, PartialEq)]
struct Noted {
    pid: i32,
    given: bool,
    path: String,
}

/// The process and program that a capture belongs to.
pub struct Captured {
    pub pid: i32,
    pub program: String,
    /// Whether the process was not forked by a recorded process.
    pub started: bool,
}

/// The programs that were executed, without failed attempts.
fn noted(text: &str) -> Vec<Noted> {
    let mut all: Vec<Noted> = Vec::new();
    // Text after the last zero byte is torn.
    let (whole, _) = text.rsplit_once('\0').unwrap_or_default();
    let read = |part: &str| {
        let (head, rest) = part.split_once(' ')?;
        let (given, path) = rest.split_once(' ')?;
        let one = Noted {
            pid: head.get(1..)?.parse().ok()?,
            given: given == "1",
            path: path.to_owned(),
        };
        Some((head.starts_with('+'), one))
    };
    for (executed, one) in whole.split('\0').filter_map(read) {
        if executed {
            all.push(one);
        } else if let Some(place) = all.iter().rposition(|known| *known == one) {
            all.remove(place);
        }
    }
    all
}

impl Noted {
    /// The program's file, and why it left no capture; `None` if it left one.
    fn unrecorded(&self, captured: &[Captured]) -> Option<(String, String)> {
        let here = std::env::current_dir().ok()?;
        // Resolved as the kernel or a search of PATH does. A name relative to another folder cannot
        // be resolved, and a name in `/proc` may be the process itself.
        let is_of_kernel = self.path.starts_with("/proc/");
        let Some(file) = find(&self.path, &here).ok().filter(|_| !is_of_kernel) else {
            return (!self.given).then(|| (self.path.clone(), NOT_GIVEN.to_owned()));
        };
        let recognised = recognise(&file);
        let program = resolved(recognised.program()).display().to_string();
        let is_ours = |one: &Captured| one.pid == self.pid && one.program == program;
        if captured.iter().any(is_ours) {
            return None;
        }
        let given = if self.given { GIVEN } else { NOT_GIVEN };
        let why = recognised.unreachable.unwrap_or_else(|| given.to_owned());
        Some((program, why))
    }
}

const GIVEN: &str = "it had the recorder in LD_PRELOAD, and left no capture";
const NOT_GIVEN: &str = "it was started without the recorder in LD_PRELOAD";

/// Samples a tree until `unrecorded` is called.
pub struct Watch {
    root: i32,
    end: Sender<()>,
    thread: JoinHandle<Seen>,
}

/// What was seen of a process tree.
#[derive(Default)]
struct Seen {
    /// Programs by process number and file.
    programs: BTreeMap<(i32, String), SeenProgram>,
    /// Objects that take memory past the recorder, with the program.
    beyond: BTreeSet<(String, Beyond)>,
}

struct SeenProgram {
    executed: Executed,
    /// The process's number in its own PID namespace.
    own_pid: i32,
    /// Whether the process's parent runs the same program: then the process was forked and has executed nothing.
    forked: bool,
}

impl Watch {
    /// Watches a process and all its descendants.
    pub fn new(root: i32, library: &Path) -> std::io::Result<Watch> {
        let (end, ended) = channel();
        let library = resolved(library);
        let look = move || {
            let mut seen = Seen::default();
            let mut reader = Reader::default();
            let mut wait = WAIT;
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(wait) {
                let began = own_cpu_time();
                for pid in std::iter::once(root).chain(descendants(root)) {
                    look(pid, &library, &mut seen, &mut reader);
                }
                wait = ((own_cpu_time() - began) * WAITS).clamp(WAIT, LONGEST);
            }
            seen
        };
        Ok(Watch {
            root,
            end,
            thread: std::thread::Builder::new().spawn(look)?,
        })
    }

    /// Programs that ran without leaving one of these captures, in words. A capture is compared by
    /// its process and program. `programs` is the file in which recorded processes note what they
    /// execute.
    pub fn unrecorded(
        self,
        captured: &[Captured],
        programs: &Handed,
        library: &Path,
    ) -> Vec<String> {
        drop(self.end);
        let seen = self
            .thread
            .join()
            .expect("a thread that panics ends heapmark");
        let mut words: BTreeMap<String, usize> = BTreeMap::new();
        for (program, beyond) in &seen.beyond {
            words.insert(beyond.words_in(program), 1);
        }
        for look in seen.programs.values() {
            let pid = look.own_pid;
            let program = &look.executed.program;
            let is_of_it = |one: &Captured| one.pid == pid && one.program == *program;
            // The process made no call that could have been recorded.
            let is_idle = look.forked && look.executed.loaded == Some(true);
            if !is_idle && !captured.iter().any(is_of_it) {
                let why = why(&look.executed, library);
                *words.entry(format!("{program}: {why}")).or_default() += 1;
            }
        }
        let noted = noted(&programs.text());
        // A process with one capture for each program that it executed is fully recorded, whatever
        // names the programs have.
        let is_whole = |pid: i32| {
            let times = noted.iter().filter(|one| one.pid == pid).count();
            let began = captured.iter().filter(|one| one.pid == pid && one.started);
            times + usize::from(pid == self.root) <= began.count()
        };
        for noted in noted.iter().filter(|one| !is_whole(one.pid)) {
            if let Some((program, why)) = noted.unrecorded(captured)
                && !seen.programs.contains_key(&(noted.pid, program.clone()))
            {
                *words.entry(format!("{program}: {why}")).or_default() += 1;
            }
        }
        let lines = words.into_iter().map(|(words, times)| match times {
            1 => words,
            _ => format!("{words} ({times} times)"),
        });
        lines.collect()
    }
}

/// Returns the processes that continue after the program has ended and have no capture by then,
/// each in words. A daemon may be about to begin a capture, and may need this process to lend it
/// the file.
pub fn silent(
    word: &str,
    captured: impl Fn() -> Result<Vec<Captured>>,
) -> Result<Vec<(i32, String)>> {
    let ends = Instant::now() + GRACE;
    loop {
        let mut silent = going_on(word);
        let captured = captured()?;
        silent.retain(|(pid, _)| captured.iter().all(|one| one.pid != *pid));
        if silent.is_empty() || Instant::now() > ends {
            let words = |(pid, program)| {
                let words = format!(
                    "{program}: it goes on (process {pid}) and has left no capture; it can begin one only where it may write"
                );
                (pid, words)
            };
            return Ok(silent.into_iter().map(words).collect());
        }
        std::thread::sleep(WAIT);
    }
}

/// Returns the processes of the tree, even those that left it: no other process has this word in its environment.
fn going_on(word: &str) -> Vec<(i32, String)> {
    let pids = listing("/proc").filter_map(|path| path.file_name()?.to_str()?.parse::<i32>().ok());
    let is_ours = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        holds(&environment, Path::new(word))
    };
    pids.filter(is_ours)
        .filter_map(|pid| Some((pid, tree::program(pid).ok()?.display().to_string())))
        .collect()
}

/// Notes what `/proc` reports of a process, once per program.
fn look(pid: i32, library: &Path, seen: &mut Seen, reader: &mut Reader) {
    let Ok(program) = tree::program(pid) else {
        return;
    };
    let key = (pid, program.display().to_string());
    // Checked at each look: libraries may be opened later, and bound later still.
    let beyond = reader.beyond(pid, library).into_iter();
    seen.beyond.extend(beyond.map(|one| (key.1.clone(), one)));
    let seen = &mut seen.programs;
    let known = seen.get(&key);
    if known.is_some_and(|look| look.executed.loaded == Some(true)) {
        return;
    }
    let Ok(maps) = std::fs::read(format!("/proc/{pid}/maps")) else {
        return;
    };
    if !seen.contains_key(&key) {
        let Some(executed) = Executed::at_its_start(pid, library) else {
            return;
        };
        let parent = number(pid, "PPid:").and_then(|parent| tree::program(parent).ok());
        if key.1 == executed.program {
            let look = SeenProgram {
                executed,
                own_pid: number(pid, "NSpid:").unwrap_or(pid),
                forked: parent == Some(program),
            };
            seen.insert(key.clone(), look);
        }
    }
    // A process that has just ended has no maps.
    if let Some(look) = seen.get_mut(&key)
        && !maps.is_empty()
    {
        look.executed.loaded = Some(holds(&maps, library));
    }
}

/// The CPU time of the calling thread.
fn own_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The last number of a line of `/proc/PID/status`.
fn number(pid: i32, name: &str) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    tree::field(&status, name)?
        .split_whitespace()
        .last()?
        .parse()
        .ok()
}

/// Why a program was not recorded, as far as its file and the kernel show it.
fn why(executed: &Executed, library: &Path) -> String {
    let uid = executed.uid;
    let user = uid.map(|uid| format!(" as user {uid}")).unwrap_or_default();
    if let Some(why) = recognise(Path::new(&executed.program)).unreachable {
        return why;
    }
    match (executed.given, executed.loaded) {
        (Some(false), _) => NOT_GIVEN.into(),
        (Some(true), Some(false)) => match closed(library) {
            Some(place) => format!(
                "it ran{user}, and others may not read the recorder: {} is closed",
                place.display()
            ),
            None => format!(
                "it ran{user}, had the recorder in LD_PRELOAD, and had not loaded it when last seen"
            ),
        },
        (_, Some(true)) => format!(
            "the recorder was in it, and it left no capture: it called nothing, or could not write; it ran{user}"
        ),
        (Some(true), None) => GIVEN.into(),
        (None, _) => {
            format!("it left no capture, and the kernel shows nothing more of it; it ran{user}")
        }
    }
}

/// The file or folder whose mode keeps other users from reading a file: the file itself or a folder
/// above it.
fn closed(file: &Path) -> Option<&Path> {
    let bits = |path: &Path| if path == file { 0o004 } else { 0o001 };
    file.ancestors().find(|path| {
        path.metadata()
            .is_ok_and(|known| known.permissions().mode() & bits(path) == 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// The report about a sleeping process that was started like this.
    fn said(change: impl FnOnce(&mut Command, &Path), captured: bool) -> Vec<String> {
        let library = heapmark_core::build::find_library("libm.so.6").unwrap();
        let mut command = Command::new("sleep");
        command.arg("60").stdin(Stdio::null());
        change(&mut command, &library);
        let mut child = command.spawn().unwrap();
        let watch = Watch::new(child.id() as i32, &library).unwrap();
        std::thread::sleep(WAIT * 20);
        let program = tree::program(child.id() as i32).unwrap();
        let program = program.display().to_string();
        child.kill().and_then(|()| child.wait()).unwrap();
        let pid = child.id() as i32;
        let captured = captured.then_some(Captured {
            pid,
            program,
            started: true,
        });
        watch.unrecorded(captured.as_slice(), &Handed::new().unwrap(), &library)
    }

    #[test]
    fn what_was_noted_counts_unless_it_failed() {
        let text = "+7 1 /bin/a\0+7 1 b c\0-7 1 b c\0+8 0 x\0nonsense\0+9";
        let one = |pid, given, path: &str| Noted {
            pid,
            given,
            path: path.into(),
        };
        assert_eq!(noted(text), [one(7, true, "/bin/a"), one(8, false, "x")]);
        let (sh, place) = (
            one(7, true, "/bin/sh"),
            Path::new("/bin/sh")
                .canonicalize()
                .unwrap()
                .display()
                .to_string(),
        );
        assert_eq!(
            sh.unrecorded(&[Captured {
                pid: 7,
                program: place.clone(),
                started: true
            }]),
            None
        );
        assert!(sh.unrecorded(&[]).unwrap().1.ends_with("left no capture"));
        assert_eq!(
            one(7, false, "sh").unrecorded(&[]),
            Some((place, NOT_GIVEN.into()))
        );
    }

    #[test]
    fn a_process_that_left_no_capture_is_named_with_what_the_kernel_shows_of_it() {
        let without = said(|_, _| {}, false);
        assert!(
            without.len() == 1
                && without[0].ends_with("sleep: it was started without the recorder in LD_PRELOAD")
        );
        assert_eq!(said(|_, _| {}, true), [""; 0]);
        let loaded = said(
            |command, library| _ = command.env("LD_PRELOAD", library),
            false,
        );
        assert!(
            loaded.len() == 1
                && loaded[0].contains("the recorder was in it, and it left no capture"),
            "{loaded:?}"
        );
    }

    #[test]
    fn a_folder_that_others_may_not_enter_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(closed(&file), Some(folder.path()));
        assert_eq!(closed(Path::new("/proc/self/maps")), None);
    }
}
