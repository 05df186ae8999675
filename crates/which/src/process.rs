//! One running process: what `/proc` says about it. Whatever keeps heapmark from looking at it is
//! reported in one line.

use anyhow::{Context, Result, anyhow};
use heapmark_core::catalog::folder::listing;
use heapmark_core::cmd::Usage;
use heapmark_core::execute::tree::{field, program};
use heapmark_core::observe::memory::stat_words;
use heapmark_core::observe::preflight::listed_cpus;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

/// A process that can be looked at.
pub struct Process {
    /// The process's number.
    pub pid: i32,
    /// The thread by whose files the process is read: the main one, or another one if that has ended.
    pub thread: i32,
    /// The parent's number.
    pub parent: i32,
    /// The kernel's short name of the process.
    pub name: String,
    /// The words of the command line.
    pub command: Vec<String>,
    /// The file that the process executes, as seen from inside the process.
    pub program: PathBuf,
    /// How many threads the process has.
    pub threads: u64,
    /// How many CPUs the process may run on.
    pub cpus_allowed: u64,
    /// The environment as it was when the program was executed, in order.
    pub environment: Vec<(String, String)>,
    /// Whether the process has overwritten its environment, so that it is not known what it was given.
    pub has_overwritten: bool,
    /// Whether the dynamic linker drops variables, since the process runs with the privileges of
    /// its file.
    pub is_secure: bool,
    /// When the process was started, in the kernel's ticks: the kernel may reuse a process number.
    started: String,
    /// The auxiliary vector, with the addresses that the kernel has chosen: they change with every
    /// program that is executed, even if the same one is executed again.
    vector: Vec<u8>,
}

/// The error that a process, or the program that it executed, no longer exists.
#[derive(Debug)]
pub enum Gone {
    /// The process of this name and number has ended.
    Ended(String),
    /// The process of this name and number executes another program now.
    Replaced(String),
}

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Gone::Ended(title) => write!(f, "{title} ended while heapmark looked at it"),
            Gone::Replaced(title) => write!(
                f,
                "{title} executed another program while heapmark looked at it: look again"
            ),
        }
    }
}

impl std::error::Error for Gone {}

/// The kernel's `PF_KTHREAD`.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// The place of the start time in `stat`, counted from 0 at the first word after the process's
/// name.
const STARTED: usize = 19;
/// `AT_SECURE` of the auxiliary vector.
const AT_SECURE: u64 = 23;

impl Process {
    /// Opens the process with this number.
    pub fn of(pid: i32) -> Result<Process> {
        Process::unless_closed(pid)?.map_err(|closed| Usage(closed).into())
    }

    /// Like [`of`](Self::of), but returns a line that says why a running process may not be looked
    /// at.
    pub fn unless_closed(pid: i32) -> Result<Result<Process, String>> {
        let gone = || Usage(format!("there is no process {pid}"));
        let status = match fs::read_to_string(format!("/proc/{pid}/status")) {
            Err(error) if is_gone(&error) => return Err(gone().into()),
            read => read.with_context(|| format!("/proc/{pid}/status"))?,
        };
        let word = |key: &str| field(&status, key).unwrap_or_default().trim().to_owned();
        let name = word("Name:");
        let number = |key: &str| word(key).parse::<i32>().unwrap_or(0);
        let refused = |why: String| Err(Usage(format!("{pid} ({name}) {why}")).into());
        if number("Tgid:") != pid {
            return refused(format!("is a thread of process {}", number("Tgid:")));
        }
        let Some(thread) = running_thread(pid) else {
            return refused(format!(
                "has ended and is a zombie: its parent {} has not asked for its exit code yet",
                number("PPid:")
            ));
        };
        let stat = fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
        let flags: u64 = stat_words(&stat)
            .nth(6)
            .and_then(|flags| flags.parse().ok())
            .unwrap_or(0);
        if flags & KERNEL_THREAD != 0 {
            return refused("is a thread of the kernel, which has no malloc".into());
        }
        let mut process = Process {
            pid,
            thread,
            parent: number("PPid:"),
            command: Vec::new(),
            program: PathBuf::new(),
            threads: number("Threads:").max(0) as u64,
            cpus_allowed: listed(&word("Cpus_allowed_list:")),
            environment: Vec::new(),
            has_overwritten: false,
            is_secure: false,
            vector: Vec::new(),
            started: started(&stat).to_owned(),
            name: name.clone(),
        };
        let owner = word("Uid:");
        let owner = owner.split_whitespace().next().unwrap_or("?");
        // The file that the fewest users may read: the others can also be read with CAP_PERFMON.
        process.program = match program(thread) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let user = rustix::process::getuid().as_raw().to_string();
                let why = match owner == user {
                    true => "may not be looked at: its program has privileges, or it forbids to be traced".into(),
                    false => format!("belongs to user {owner}: only that user and root (with CAP_SYS_PTRACE) may look at it"),
                };
                return Ok(Err(format!("{pid} ({name}) {why}")));
            }
            read => read.map_err(|error| process.error(error))?,
        };
        let environment = process.read("environ")?;
        process.environment = variables(&environment);
        process.has_overwritten = is_overwritten(&environment);
        let command = process.read("cmdline")?;
        let words = command.split(|byte| *byte == 0);
        let words = words.map(|word| String::from_utf8_lossy(word).into_owned());
        process.command = words.filter(|word| !word.is_empty()).collect();
        process.vector = process.read("auxv")?;
        process.is_secure = is_secure(&process.vector);
        Ok(Ok(process))
    }

    /// Reads a file of the process.
    pub fn read(&self, file: &str) -> Result<Vec<u8>> {
        let data = fs::read(format!("/proc/{}/{file}", self.thread));
        data.map_err(|error| self.error(error))
    }

    /// Reads a file of the process as text.
    pub fn text(&self, file: &str) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.read(file)?).into_owned())
    }

    /// The process's mappings. When a process ends, its address space becomes empty first.
    pub fn maps(&self) -> Result<String> {
        let maps = self.text("maps")?;
        if maps.is_empty() {
            return Err(self.ended());
        }
        Ok(maps)
    }

    /// The meaning of an error from reading one of the process's files.
    pub fn error(&self, error: io::Error) -> anyhow::Error {
        if is_gone(&error) {
            return self.ended();
        }
        anyhow::Error::new(error).context(self.title())
    }

    /// Fails if the process has ended, even if another one has its number now.
    pub fn is_still_there(&self) -> Result<()> {
        if started(&self.text("stat")?) != self.started {
            return Err(self.ended());
        }
        Ok(())
    }

    /// Fails if the process has ended, or executed a program, since it was opened: what was read
    /// then belongs to two programs.
    pub fn is_the_same_program(&self) -> Result<()> {
        self.is_still_there()?;
        match self.read("auxv")? {
            now if now == self.vector => Ok(()),
            now if now.is_empty() => Err(self.ended()),
            _ => Err(anyhow!(Gone::Replaced(self.title()))),
        }
    }

    fn ended(&self) -> anyhow::Error {
        anyhow!(Gone::Ended(self.title()))
    }

    /// The process's name and number, as in `python3 (4711)`.
    pub fn title(&self) -> String {
        format!("{} ({})", self.name, self.pid)
    }

    /// The value of one of the process's variables.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let mut all = self.environment.iter();
        all.find_map(|(variable, value)| (variable == name).then_some(value.as_str()))
    }

    /// The path by which heapmark reaches a file that the process sees at `file`.
    pub fn path(&self, file: &str) -> PathBuf {
        format!("/proc/{}/root{file}", self.thread).into()
    }

    /// The ancestors that may be looked at, the nearest first.
    pub fn ancestors(&self) -> Vec<Process> {
        let mut found: Vec<Process> = Vec::new();
        let mut next = self.parent;
        while next > 0
            && let Ok(process) = Process::of(next)
        {
            next = process.parent;
            found.push(process);
        }
        found
    }

    /// How many threads there are of each name.
    pub fn thread_names(&self) -> BTreeMap<String, usize> {
        let mut names = BTreeMap::new();
        for task in listing(format!("/proc/{}/task", self.pid)) {
            let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
            *names.entry(name.trim().to_owned()).or_default() += 1;
        }
        names
    }
}

/// Whether a process could not be looked at because it no longer exists; any other error leaves its
/// allocator unknown.
pub fn has_gone(pid: i32, error: &anyhow::Error) -> bool {
    error.is::<Gone>()
        || match fs::read_to_string(format!("/proc/{pid}/status")) {
            Ok(_) => running_thread(pid).is_none(),
            Err(error) => is_gone(&error),
        }
}

/// A thread of a process that has not ended: the main one if possible, since the others stay when that one ends alone, and its
/// files are empty then. `None` if all have ended, though the parent has not asked for the exit code yet.
fn running_thread(pid: i32) -> Option<i32> {
    let is_running = |thread: &i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status"));
        status.is_ok_and(|status| {
            let state = field(&status, "State:").unwrap_or_default();
            !state.trim().starts_with(['Z', 'X'])
        })
    };
    let all = listing(format!("/proc/{pid}/task"));
    let others = all.filter_map(|task| task.file_name()?.to_str()?.parse().ok());
    [pid].into_iter().chain(others).find(is_running)
}

/// Whether an error says that the process has ended.
fn is_gone(error: &io::Error) -> bool {
    // ESRCH: the process was still there when the file was opened.
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(3)
}

/// Whether the kernel did not let heapmark look.
pub fn is_refused(error: &anyhow::Error) -> bool {
    let cause = error.root_cause().downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::PermissionDenied)
}

/// Returns when a process was started, from `stat`, in the kernel's ticks.
fn started(stat: &str) -> &str {
    stat_words(stat).nth(STARTED).unwrap_or_default()
}

fn variables(environment: &[u8]) -> Vec<(String, String)> {
    let words = environment.split(|byte| *byte == 0);
    let words = words.map(String::from_utf8_lossy);
    let pair = |word: std::borrow::Cow<str>| {
        let (name, value) = word.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    words.filter_map(pair).collect()
}

/// Whether an environment does not begin with a variable: a program that sets its title writes over its arguments and on.
fn is_overwritten(environment: &[u8]) -> bool {
    let first = environment.split(|byte| *byte == 0).next();
    !environment.is_empty() && first.is_some_and(|first| !first.contains(&b'='))
}

/// Whether the auxiliary vector sets `AT_SECURE`. The vector consists of pairs of a kind and a
/// value, each one word.
fn is_secure(vector: &[u8]) -> bool {
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0);
    let mut pairs = vector.chunks_exact(16);
    pairs.any(|pair| word(&pair[..8]) == AT_SECURE && word(&pair[8..]) != 0)
}

/// How many numbers are in a list like `0-3,8`.
pub fn listed(list: &str) -> u64 {
    listed_cpus(list).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_and_the_auxiliary_vector_are_read() {
        assert_eq!((listed("0-3,8"), listed("5"), listed("")), (5, 1, 0));
        let vector = |secure: u64| [6_u64, 4096, AT_SECURE, secure, 0, 0].map(u64::to_ne_bytes);
        assert!(is_secure(vector(1).as_flattened()));
        assert!(!is_secure(vector(0).as_flattened()));
    }

    #[test]
    fn an_environment_that_a_title_was_written_over_is_told() {
        let told: [&[u8]; 4] = [b"\0\0A=1\0", b"orker\0\0A=1\0", b"A=1\0B\0", b""];
        assert_eq!(told.map(is_overwritten), [true, true, false, false]);
    }

    #[test]
    fn this_very_process_is_read() {
        let process = Process::of(std::process::id() as i32).unwrap();
        assert!(process.threads > 0 && process.cpus_allowed > 0 && !process.is_secure);
        assert_eq!(process.program, std::env::current_exe().unwrap());
        assert!(process.variable("PATH").is_some());
        process.is_still_there().unwrap();
    }

    #[test]
    fn an_error_is_the_end_of_a_process_only_if_that_is_gone() {
        let error = || anyhow!("no program of 64 bits");
        let own = std::process::id() as i32;
        assert!(!has_gone(own, &error()));
        assert!(has_gone(own, &anyhow!(Gone::Ended("x (1)".into()))));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        // Not waited for, it stays as a zombie.
        while !has_gone(pid, &error()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
        assert!(has_gone(pid, &error()));
    }
}
