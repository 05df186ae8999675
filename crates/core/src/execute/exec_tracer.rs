//! Finds every program that a command's tree executes, however short its life and whatever process
//! starts it. The kernel stops the whole tree at each fork and each exec (ptrace), so no process is
//! missed. This is slow and never timed. Set-user-ID programs have no privileges under ptrace, so
//! the way that the tree ends is not evaluated. Also notes how much anonymous memory each process
//! has, and at the end of each process which of its objects bypass the preloaded library.
//!
//! The tree is traced with PTRACE_SEIZE. Only then does the kernel distinguish a signal that is
//! about to be delivered from a process that a signal has stopped; a stopped process must stay
//! stopped until SIGCONT.

use super::child::may_go_on;
use super::reach::{Beyond, Reader};
use super::tree::{field, program};
use crate::build::spawn_launcher;
use crate::observe::memory::ProcessFiles;
use anyhow::{Context, Result, bail};
use memchr::memmem;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// A process and the program that it executed.
#[derive(Clone, Debug)]
pub struct Executed {
    pub pid: i32,
    /// The program's file, as the kernel names it.
    pub program: String,
    /// The user that the process runs as.
    pub uid: Option<u32>,
    /// Whether the process's environment asked to preload the library (witness or recorder).
    pub given: Option<bool>,
    /// Whether the library (witness or recorder) was in the process's memory when the process
    /// ended; unknown for a process that executed another program.
    pub loaded: Option<bool>,
}

impl Executed {
    /// Returns what `/proc` reports just after the exec.
    pub fn at_its_start(pid: i32, witness: &Path) -> Option<Executed> {
        let program = program(pid).ok()?.display().to_string();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let uids = field(&status, "Uid:").unwrap_or_default();
        let environment = fs::read(format!("/proc/{pid}/environ")).ok();
        let asks = |variable: &[u8]| {
            let files = variable.strip_prefix(b"LD_PRELOAD=");
            files.is_some_and(|files| holds(files, witness))
        };
        Some(Executed {
            pid,
            program,
            uid: uids
                .split_whitespace()
                .nth(1)
                .and_then(|uid| uid.parse().ok()),
            given: environment.map(|text| text.split(|byte| *byte == 0).any(asks)),
            loaded: None,
        })
    }
}

/// Returns the path with symbolic links resolved, as the kernel lists files.
pub fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

pub fn holds(text: &[u8], path: &Path) -> bool {
    memmem::find(text, path.as_os_str().as_bytes()).is_some()
}

/// All that a search found.
#[derive(Debug, Default)]
pub struct FoundPrograms {
    pub executed: Vec<Executed>,
    /// The most anonymous memory that each process was seen to have, since its last exec.
    pub anonymous_bytes: BTreeMap<i32, u64>,
    /// Objects that bypassed the preloaded libraries, each with its program.
    pub beyond: BTreeSet<(String, Beyond)>,
    /// How often each thread asked the kernel for memory since its process's last exec, if that is counted. Calls of the
    /// first process are left out unless it executed the command itself.
    asked: BTreeMap<i32, Asked>,
    /// The signals that have ended processes.
    pub signals: BTreeSet<i32>,
    /// Why the list may be incomplete.
    pub cut: Option<String>,
}

/// Calls that ask the kernel for memory.
#[derive(Debug, Default)]
struct Asked {
    /// The number of calls of `brk`.
    brk: u64,
    /// The number of calls of `mmap` for memory without a file.
    mmap: u64,
}

impl FoundPrograms {
    /// Returns how often the tree called `brk`, and `mmap` for memory without a file, if that was counted.
    pub fn calls(&self) -> (u64, u64) {
        let all = self.asked.values();
        all.fold((0, 0), |(brk, mmap), asked| {
            (brk + asked.brk, mmap + asked.mmap)
        })
    }

    /// Notes how much anonymous memory a process has; does nothing for a thread other than the first.
    fn look_at_memory(&mut self, pid: i32) {
        let anonymous = ProcessFiles::of(pid).status_bytes("RssAnon:");
        if let Some(bytes) = anonymous.filter(|_| is_process(pid)) {
            let most = self.anonymous_bytes.entry(pid).or_default();
            *most = bytes.max(*most);
        }
    }
}

fn is_process(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    field(&status, "Tgid:").is_some_and(|of| of.trim() == pid.to_string())
}

/// The libraries that a command is started with, and what is counted.
#[derive(Clone, Copy)]
pub struct Preloaded<'a> {
    /// The library that reports in each process.
    pub witness: &'a Path,
    /// The library that serves memory.
    pub serves: &'a Path,
    /// Whether calls that ask the kernel for memory are counted: then each system call stops the process.
    pub counts: bool,
}

impl Preloaded<'static> {
    /// Returns the value for a search that looks for no libraries.
    pub fn nothing(counts: bool) -> Preloaded<'static> {
        let nothing = Path::new("/none");
        Preloaded {
            witness: nothing,
            serves: nothing,
            counts,
        }
    }
}

/// How long to wait for the next event.
const WAIT: Duration = Duration::from_micros(200);
/// The shortest time between two looks at the memory of all processes. It is also at least `LOOKS`
/// times as long as a look takes.
const LOOK: Duration = Duration::from_millis(2);
const LOOKS: u32 = 10;
/// How long killed processes may take to disappear. The remaining ones end with the tracing thread.
const LAST_WAIT: Duration = Duration::from_secs(10);
/// The events that stop each process. All traced processes end with the tracing thread.
const OPTIONS: i32 = libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_EXITKILL;

/// Runs a command that stops itself before it does anything, and traces it to its end or for at
/// most `limit`. Reports what it executes and whether the witness was loaded. Meanwhile calls
/// `look` with the first process; `look` returns the wait until its next call.
pub fn search(
    command: Command,
    preloaded: Preloaded<'_>,
    limit: Duration,
    stop: &AtomicBool,
    look: &mut dyn FnMut(i32) -> Duration,
) -> Result<FoundPrograms> {
    let first = AtomicI32::new(0);
    // A separate thread waits for any of its own children, and so never for those that other
    // threads started.
    let found = std::thread::scope(|scope| {
        let follower = scope.spawn(|| follow(command, preloaded, limit, stop, &first));
        while !follower.is_finished() {
            let pid = first.load(Ordering::Relaxed);
            std::thread::sleep(if pid == 0 { WAIT } else { look(pid) });
        }
        follower.join().expect("a thread that panics ends heapmark")
    })?;
    may_go_on(stop)?;
    Ok(found)
}

fn follow(
    mut command: Command,
    preloaded: Preloaded<'_>,
    limit: Duration,
    stop: &AtomicBool,
    seen: &AtomicI32,
) -> Result<FoundPrograms> {
    let mut child = spawn_launcher(&mut command).context("cannot follow a command")?;
    let first = child.id() as i32;
    let began = Instant::now();
    let late = || stop.load(Ordering::Relaxed) || began.elapsed() > limit;
    while !stopped(first)? && !late() {
        std::thread::sleep(WAIT);
    }
    let mut found = FoundPrograms::default();
    let counts = if preloaded.counts {
        libc::PTRACE_O_TRACESYSGOOD
    } else {
        0
    };
    if !trace(libc::PTRACE_SEIZE, first, (OPTIONS | counts) as usize) {
        let error = std::io::Error::last_os_error();
        child
            .kill()
            .and_then(|()| child.wait())
            .context("cannot end a command")?;
        found.cut = Some(format!("the kernel does not allow tracing it ({error})"));
        return Ok(found);
    }
    signal(first, libc::SIGCONT);
    seen.store(first, Ordering::Relaxed);
    let mut alive = BTreeSet::from([first]);
    let mut ending = None;
    let mut reader = Reader::default();
    let mut next_look = Instant::now();
    let wait = if preloaded.counts { WAIT / 10 } else { WAIT };
    loop {
        let mut status = 0;
        let options = libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG;
        // SAFETY: writes into a local. Only what this thread has started or traces is waited for.
        match unsafe { libc::waitpid(-1, &mut status, options) } {
            0 => {
                let now = Instant::now();
                if now >= next_look {
                    alive.iter().for_each(|pid| found.look_at_memory(*pid));
                    next_look = now + LOOK.max(now.elapsed() * LOOKS);
                }
                std::thread::sleep(wait);
            }
            // No traced process is left.
            ..0 => break,
            pid if libc::WIFSTOPPED(status) => {
                alive.insert(pid);
                go_on(pid, status, preloaded, &mut alive, &mut found, &mut reader);
            }
            pid => {
                alive.remove(&pid);
                if libc::WIFSIGNALED(status) && ending.is_none() {
                    found.signals.insert(libc::WTERMSIG(status));
                }
            }
        }
        let has_ended = !alive.contains(&first);
        if ending.is_none() && (has_ended || late()) {
            ending = Some(Instant::now());
            if has_ended {
                seen.store(0, Ordering::Relaxed);
            } else {
                found.cut = Some(format!("it was ended after {} s", limit.as_secs()));
            }
        }
        if let Some(since) = ending {
            // Processes that the command leaves behind are killed, in whatever group or session
            // they are, and so is anything they start meanwhile.
            alive.iter().for_each(|pid| signal(*pid, libc::SIGKILL));
            if since.elapsed() > LAST_WAIT {
                break;
            }
        }
    }
    // The first process executed nothing, so its calls are a launcher's own and not the command's.
    if !found.executed.iter().any(|one| one.pid == first) {
        found.asked.remove(&first);
    }
    Ok(found)
}

/// Returns whether the first process has stopped itself.
fn stopped(first: i32) -> Result<bool> {
    let mut status = 0;
    // SAFETY: writes into a local; the process is a child of this thread.
    match unsafe { libc::waitpid(first, &mut status, libc::WUNTRACED | libc::WNOHANG) } {
        0 => Ok(false),
        pid if pid == first && libc::WIFSTOPPED(status) => Ok(true),
        _ => bail!("a command ended before it could be followed (wait status {status})"),
    }
}

/// Notes an exec or an exit, and lets the process continue as it would without a tracer.
fn go_on(
    pid: i32,
    status: i32,
    preloaded: Preloaded<'_>,
    alive: &mut BTreeSet<i32>,
    found: &mut FoundPrograms,
    reader: &mut Reader,
) {
    let signal = libc::WSTOPSIG(status);
    let event = status >> 16;
    if event == libc::PTRACE_EVENT_EXEC {
        // A thread that executes a program takes over its process's number; its own number never appears again.
        if let Some(former) = former(pid).filter(|former| *former != pid) {
            alive.remove(&former);
        }
        found.anonymous_bytes.remove(&pid);
        found.asked.remove(&pid);
        let started = Executed::at_its_start(pid, preloaded.witness);
        found.executed.extend(started);
    } else if event == libc::PTRACE_EVENT_EXIT {
        // At this stop, the process's memory still exists.
        let last = found
            .executed
            .iter_mut()
            .rev()
            .find(|one| one.pid == pid && one.loaded.is_none());
        if let Some((last, maps)) = last.zip(fs::read(format!("/proc/{pid}/maps")).ok()) {
            last.loaded = Some(holds(&maps, &resolved(preloaded.witness)));
        }
        found.look_at_memory(pid);
        if is_process(pid)
            && let Ok(program) = program(pid)
        {
            let serves = resolved(preloaded.serves);
            let beyond = reader.beyond(pid, &serves);
            let program = program.display().to_string();
            let beyond = beyond.into_iter().map(|one| (program.clone(), one));
            found.beyond.extend(beyond);
        }
    }
    // A new process, and one that continues after a stop, report that with SIGTRAP.
    let stays = event == libc::PTRACE_EVENT_STOP && signal != libc::SIGTRAP;
    let is_call = signal == SYSTEM_CALL;
    if is_call {
        let asked = found.asked.entry(pid).or_default();
        match call_at(pid) {
            Some((libc::SYS_brk, _)) => asked.brk += 1,
            Some((libc::SYS_mmap, flags)) if flags & libc::MAP_ANONYMOUS as u64 != 0 => {
                asked.mmap += 1;
            }
            _ => {}
        }
    }
    let delivered = match event {
        0 if !is_call => signal as usize,
        _ => 0,
    };
    let request = match stays {
        true => libc::PTRACE_LISTEN,
        false if preloaded.counts => libc::PTRACE_SYSCALL,
        false => libc::PTRACE_CONT,
    };
    trace(request, pid, delivered);
}

/// The signal with which a process stops at the beginning and at the end of a system call.
const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;

/// Returns the number and the fourth argument (for `mmap`, the flags) of the system call that a process begins; `None` at
/// its end.
fn call_at(pid: i32) -> Option<(i64, u64)> {
    const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
    const ENTRY: u64 = 1;
    // The kernel's `ptrace_syscall_info`: its kind, two addresses, then the number and the arguments of the call.
    let mut words = [0_u64; 11];
    // SAFETY: the kernel writes at most as many bytes as the size that it is given.
    let bytes = unsafe {
        libc::ptrace(
            GET_SYSCALL_INFO,
            pid,
            size_of_val(&words),
            words.as_mut_ptr(),
        )
    };
    (bytes > 0 && words[0] & 0xff == ENTRY).then_some((words[3] as i64, words[7]))
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: a plain system call on a process that we trace: no other process can get its number
    // before we have waited for it.
    unsafe { libc::kill(pid, signal) };
}

/// Returns the former number of the thread that executed a program.
fn former(pid: i32) -> Option<i32> {
    let mut number: libc::c_ulong = 0;
    // SAFETY: writes into a local.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, pid, 0, &raw mut number) };
    (result != -1).then_some(number as i32)
}

fn trace(request: libc::c_uint, pid: i32, data: usize) -> bool {
    // SAFETY: none of the requests made here reads or writes memory.
    unsafe { libc::ptrace(request, pid, 0, data) != -1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str, limit: Duration) -> FoundPrograms {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "kill -STOP $$; exec /bin/sh -c \"$0\"", line]);
        command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null());
        search(
            command,
            Preloaded::nothing(false),
            limit,
            &AtomicBool::new(false),
            &mut |_| WAIT,
        )
        .unwrap()
    }

    /// The names of the programs that a shell command line executes; it must run to its end.
    fn programs(line: &str) -> Vec<String> {
        let found = found(line, Duration::from_secs(60));
        assert_eq!(found.cut, None, "{line}");
        found
            .executed
            .iter()
            .map(|one| one.program.rsplit('/').next().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn signals_that_end_processes_are_known_and_not_those_of_the_tracer() {
        let signals = |line| found(line, Duration::from_secs(60)).signals;
        let ended =
            signals("exec 2>/dev/null; sh -c 'kill -ABRT $$' | :; sh -c 'kill -PIPE $$'; exit 0");
        assert_eq!(ended, [libc::SIGABRT, libc::SIGPIPE].into());
        assert_eq!(signals("setsid sleep 600 & exit 0"), [].into());
    }

    #[test]
    fn every_program_of_a_tree_is_seen_however_short_it_lives() {
        let seen = programs("/bin/true; (/bin/true | /bin/cat) ; exec /bin/sleep 0");
        let count = |name: &str| seen.iter().filter(|seen| *seen == name).count();
        assert_eq!(
            (count("true"), count("cat"), count("sleep"), seen.len()),
            (2, 1, 1, 5),
            "{seen:?}"
        );
    }

    #[test]
    fn what_was_preloaded_is_read_from_environment_and_memory() {
        let libm = crate::build::find_library("libm.so.6").unwrap();
        let mut command = Command::new("/bin/sh");
        let line = format!(
            "LD_PRELOAD={} /bin/true; /bin/true; LD_PRELOAD=/none/libm.so.6 /bin/true; exit",
            libm.display()
        );
        command.args(["-c", "kill -STOP $$; exec /bin/sh -c \"$0\"", &line]);
        command.stderr(std::process::Stdio::null());
        let never = AtomicBool::new(false);
        let limit = Duration::from_secs(60);
        let libraries = Preloaded {
            witness: &libm,
            ..Preloaded::nothing(false)
        };
        let found = search(command, libraries, limit, &never, &mut |_| WAIT).unwrap();
        let pairs: Vec<_> = found
            .executed
            .iter()
            .skip(1)
            .map(|one| (one.given, one.loaded))
            .collect();
        assert_eq!(
            pairs,
            [
                (Some(true), Some(true)),
                (Some(false), Some(false)),
                (Some(false), Some(false))
            ]
        );
        assert_eq!(
            found.executed[0].uid,
            Some(rustix::process::geteuid().as_raw())
        );
    }

    #[test]
    fn signals_reach_whom_they_are_meant_for_and_what_is_left_behind_does_not_keep_us() {
        assert_eq!(
            programs("trap '/bin/true' USR1; kill -USR1 $$; /bin/cat /dev/null").len(),
            3
        );
        assert_eq!(
            programs("trap '/bin/true' TRAP; kill -TRAP $$; /bin/cat /dev/null").len(),
            3
        );
        // Waits until the other process sleeps.
        let left = "setsid /bin/sleep 86399 >/dev/null 2>&1 &
                    until read pid name state rest </proc/$!/stat && [ $name$state = '(sleep)S' ]; do :; done";
        assert_eq!(programs(left)[1..], ["setsid", "sleep"]);
    }

    #[test]
    fn what_a_command_asks_the_kernel_for_is_counted_in_all_its_threads_and_processes() {
        let launcher = "import mmap, os, sys\nos.kill(os.getpid(), 19)\n\
            [mmap.mmap(-1, 4096) for _ in range(1500)]\n\
            os.spawnlp(os.P_WAIT, 'python3', 'python3', '-S', '-c', sys.argv[1])\n";
        let asks = "import mmap, os, threading\n\
            def ask(): [mmap.mmap(-1, 4096) for _ in range(250)]\n\
            ask()\nthread = threading.Thread(target=ask)\nthread.start()\nthread.join()\n\
            if os.fork() == 0: ask(); os._exit(0)\nos.wait()\n";
        let mut command = Command::new("python3");
        command.args(["-S", "-c", launcher, asks]);
        let never = AtomicBool::new(false);
        let limit = Duration::from_secs(60);
        let counts = Preloaded::nothing(true);
        let found = search(command, counts, limit, &never, &mut |_| WAIT).unwrap();
        let (brk, mmap) = found.calls();
        assert!(brk > 0 && (750..1500).contains(&mmap), "{found:?}");
    }

    #[test]
    fn what_others_have_started_is_not_waited_for() {
        let mut other = Command::new("/bin/sleep").arg("86398").spawn().unwrap();
        let found = found("exec /bin/true", Duration::from_secs(60));
        other.kill().and_then(|()| other.wait().map(drop)).unwrap();
        assert_eq!((found.executed.len(), found.cut), (2, None));
    }

    #[test]
    fn a_process_that_is_stopped_stays_so_until_it_is_continued() {
        let seen = programs(
            "(while [ /proc/$$/exe -ef /bin/sh ]; do kill -CONT $$; done) & kill -STOP $$; exec /bin/true",
        );
        assert_eq!(seen[1..], ["true"]);
        let stays = |signal: &str| {
            let found = found(
                &format!("kill -{signal} $$; exec /bin/true"),
                Duration::from_secs(5),
            );
            assert_eq!(
                found.cut.as_deref(),
                Some("it was ended after 5 s"),
                "{signal}"
            );
            assert_eq!(found.executed.len(), 1, "{signal}: {found:?}");
        };
        std::thread::scope(|scope| {
            for signal in ["STOP", "TSTP", "TTIN", "TTOU"] {
                scope.spawn(move || stays(signal));
            }
        });
    }

    #[test]
    fn one_that_starts_others_without_end_is_ended() {
        let found = found("while :; do /bin/true; done", Duration::from_secs(5));
        assert!(found.cut.is_some() && found.executed.len() > 1);
    }
}
