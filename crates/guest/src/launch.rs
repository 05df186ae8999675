//! `heapmark-guest launch FD [inherit] [held] [thp RULE] [turns CPU NS] [LIMIT NUMBER] [answered SOCKET] NAME=VALUE...
//! -- COMMAND ARGUMENT...`: runs another program as a child of this small process and writes what the kernel counted
//! for it to a file. The peak resident set that `wait4` reports includes the process before `exec`; a child of heapmark
//! itself would have been a copy of heapmark. With `inherit` the variables are added to the launcher's own; without it,
//! the program has no other variables. With `held` this process first stops itself, so that a tracer can attach. The
//! rule for transparent huge pages is `never` or `advised`. With `turns` this process and all its descendants run on
//! that CPU alone, where the kernel lets a process run for that many nanoseconds before it is another's turn (0: as
//! long as the kernel chooses). The rule and a limit hold for the command and all that it starts, not for this process.
//! A limit is a number of bytes, of private writable memory (`data`) or of address space (`as`), or the descriptor of
//! `cgroup.procs` of a control `group`. With `answered` heapmark answers the command's questions about CPUs (see
//! `answered.rs`).
//!
//! This process stands between heapmark and the measured program: a library that kills its parent kills this process,
//! and with it the library's own process. Processes that the program leaves behind end with the program, in any group
//! or session; and all of them end when heapmark ends, in any way.

use crate::answered;
use crate::clock::now_ns;
use crate::report;
pub use crate::scheduled::set_slice;
use crate::sys;
use crate::text::number;
use core::ffi::{CStr, c_char, c_int};
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use heapmark_wire::Launched;

/// The command's process id while the command runs, otherwise 0.
static COMMAND: AtomicI32 = AtomicI32::new(0);
/// Whether heapmark has ended, so that nothing is waited for any longer.
static ABANDONED: AtomicBool = AtomicBool::new(false);

/// Runs the command and returns this process's exit code: 0 if the result was written.
///
/// # Safety
/// `argv` must be what the C runtime passed to `main`.
pub unsafe fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    let count = argc.max(0) as usize;
    // SAFETY: the C runtime passed `argc` valid strings.
    let argument = |index: usize| unsafe { CStr::from_ptr(*argv.add(index)) };
    let separator = (3..count).find(|index| argument(*index) == c"--");
    let file = number(argument(2));
    let (Some(separator), Some(file)) = (separator.filter(|place| place + 1 < count), file) else {
        return report::usage();
    };
    // `option` returns the place of an option's word, which is followed by `words` words of its own.
    let mut options = 3;
    let mut option = |name: &CStr, words: usize| {
        let place = options;
        let is_given = argument(place) == name;
        options += if is_given { 1 + words } else { 0 };
        is_given.then_some(place)
    };
    let inherits = option(c"inherit", 0).is_some();
    let held = option(c"held", 0).is_some();
    let huge_pages = option(c"thp", 1).map(|place| argument(place + 1));
    let mut turns = None;
    if let Some(place) = option(c"turns", 2) {
        let numbers = number(argument(place + 1)).zip(number(argument(place + 2)));
        let Some((cpu, slice_ns)) = numbers else {
            return report::usage();
        };
        turns = Some((cpu, slice_ns));
    }
    let mut limits = LIMITS.iter();
    let mut limit = None;
    if let Some((place, of)) = limits.find_map(|(name, of)| Some((option(name, 1)?, of))) {
        let Some(number) = number(argument(place + 1)) else {
            return report::usage();
        };
        limit = Some(of(number));
    }
    let mut socket = None;
    if let Some(place) = option(c"answered", 1) {
        let Some(number) = number(argument(place + 1)) else {
            return report::usage();
        };
        socket = Some(number);
    }
    // SAFETY: the environment's strings are consecutive before the separator, the command's after
    // it, up to the null that ends `argv`; this process may change the array.
    let (environment, command) = unsafe {
        *argv.add(separator).cast_mut() = core::ptr::null();
        (argv.add(options), argv.add(separator + 1))
    };
    // SAFETY: plain system calls. The command inherits none of these descriptors.
    unsafe {
        libc::fcntl(file, libc::F_SETFD, libc::FD_CLOEXEC);
        if let Some(Limit::Group(members)) = limit {
            libc::fcntl(members as c_int, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        if let Some(socket) = socket {
            libc::fcntl(socket, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
    if held {
        // SAFETY: a plain system call.
        unsafe { libc::raise(libc::SIGSTOP) };
    }
    // This comes before the fork: the command is scheduled as this process is, and the command checks that.
    let takes_turns = turns.is_none_or(|(cpu, slice_ns)| take_turns(cpu, slice_ns));
    let masks = end_with_heapmark();
    let start_ns = now_ns();
    // SAFETY: plain system calls; the child only executes.
    let (child, status, usage) = unsafe {
        let parent = libc::getpid();
        // Orphaned descendants become children of this process, not of init.
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        let child = libc::fork();
        if child == 0 {
            libc::sigprocmask(libc::SIG_SETMASK, &masks.before, core::ptr::null_mut());
            let is_ruled = huge_pages.is_none_or(|rule| forbid_huge_pages(rule == c"advised"));
            if !takes_turns || !is_ruled || limit.is_some_and(|limit| !limit.hold()) {
                report_errno(file);
            }
            // The filter comes last, so that no call of this process waits for an answer.
            if socket.is_some_and(|socket| !answered::by(socket)) {
                report_errno(file);
            }
            execute(parent, command, environment, inherits, file);
        }
        COMMAND.store(child, Relaxed);
        libc::sigprocmask(libc::SIG_SETMASK, &masks.own, core::ptr::null_mut());
        let (mut status, mut usage) = (0, core::mem::zeroed());
        let waited = loop {
            match libc::wait4(child, &mut status, 0, &mut usage) {
                -1 if *libc::__errno_location() == libc::EINTR => {}
                waited => break waited,
            }
        };
        COMMAND.store(0, Relaxed);
        (child, waited, (status, usage))
    };
    let wall_ns = now_ns() - start_ns;
    if child < 0 || status != child {
        return 1;
    }
    let (status, usage) = usage;
    // This is written before the processes left behind get their grace period.
    let _ = writeln!(OutputFile(file), "ended=1");
    let launched = Launched {
        left_behind: sweep(GRACE_MS),
        ..account(status, wall_ns, &usage)
    };
    c_int::from(write!(OutputFile(file), "{launched}").is_err())
}

/// Lets this process, and all that it will start, run on this CPU alone, for this long at a time; 0 means as long as
/// the kernel chooses. Returns whether that worked.
pub fn take_turns(cpu: usize, slice_ns: u64) -> bool {
    // SAFETY: plain system calls on locals, for which zeros are valid.
    unsafe {
        let mut cpus: libc::cpu_set_t = core::mem::zeroed();
        if cpu >= libc::CPU_SETSIZE as usize {
            return false;
        }
        libc::CPU_SET(cpu, &mut cpus);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &cpus) == 0
            && (slice_ns == 0 || set_slice(slice_ns))
    }
}

/// Forbids transparent huge pages for this process and all that it will execute; if `except_advised` is set, programs
/// may still ask for huge pages. Returns whether that worked.
pub fn forbid_huge_pages(except_advised: bool) -> bool {
    /// From `linux/prctl.h`; libc has no name for this flag yet.
    const EXCEPT_ADVISED: libc::c_ulong = 1 << 1;
    let except = if except_advised { EXCEPT_ADVISED } else { 0 };
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, except, 0, 0) == 0 }
}

/// A limit on the memory of the command and of all that it starts.
#[derive(Clone, Copy)]
enum Limit {
    /// Bytes of private writable memory, for each process.
    Data(u64),
    /// Bytes of address space, for each process.
    AddressSpace(u64),
    /// A descriptor of a control group's `cgroup.procs`.
    Group(u64),
}

type LimitOf = fn(u64) -> Limit;

/// The words of the command line that set a limit, each followed by a number.
const LIMITS: [(&CStr, LimitOf); 3] = [
    (c"data", Limit::Data),
    (c"as", Limit::AddressSpace),
    (c"group", Limit::Group),
];

impl Limit {
    /// Puts this process under the limit; returns whether that worked.
    fn hold(self) -> bool {
        let (resource, bytes) = match self {
            Limit::Data(bytes) => (libc::RLIMIT_DATA, bytes),
            Limit::AddressSpace(bytes) => (libc::RLIMIT_AS, bytes),
            Limit::Group(members) => {
                // SAFETY: writes a text of this function to a file that heapmark opened for this.
                return unsafe { libc::write(members as c_int, c"0".as_ptr().cast(), 1) } == 1;
            }
        };
        let limit = libc::rlimit {
            rlim_cur: bytes,
            rlim_max: bytes,
        };
        // SAFETY: reads a local.
        unsafe { libc::setrlimit(resource, &limit) == 0 }
    }
}

/// Sets of blocked signals.
struct Masks {
    /// The signals blocked by the process that started this one, and so by the command.
    before: libc::sigset_t,
    /// The signals blocked by this process: all but the one for heapmark's end, and those that stop a whole group at the
    /// terminal, by which heapmark notices that the command waits for it.
    own: libc::sigset_t,
}

/// Asks the kernel to send a signal when heapmark ends: one that no program sends by chance. Until here the signal was
/// SIGKILL, which would leave behind processes that have left the command's tree. Blocks all signals: this signal until
/// there is a command to end, the others for good, since a command may send them to its whole group.
fn end_with_heapmark() -> Masks {
    extern "C" fn end(_: c_int) {
        ABANDONED.store(true, Relaxed);
        let command = COMMAND.load(Relaxed);
        if command > 0 {
            // SAFETY: a plain system call on a child that is not yet waited for.
            unsafe { libc::kill(command, libc::SIGKILL) };
        }
    }
    let signal = libc::SIGRTMAX();
    // SAFETY: plain system calls on locals, for which zeros are valid; the handler only stores a
    // flag and makes a system call.
    unsafe {
        let mut masks: Masks = core::mem::zeroed();
        libc::sigfillset(&mut masks.own);
        libc::sigprocmask(libc::SIG_SETMASK, &masks.own, &mut masks.before);
        for heeded in [signal, libc::SIGTTIN, libc::SIGTTOU] {
            libc::sigdelset(&mut masks.own, heeded);
        }
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = end as extern "C" fn(c_int) as usize;
        libc::sigaction(signal, &action, core::ptr::null_mut());
        libc::prctl(libc::PR_SET_PDEATHSIG, signal);
        masks
    }
}

/// Converts the result of `wait4` for a process that took this many nanoseconds.
pub fn account(status: c_int, wall_ns: u64, usage: &libc::rusage) -> Launched {
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Launched {
        errno: 0,
        status,
        wall_ns,
        user_ns: ns(usage.ru_utime),
        sys_ns: ns(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        max_rss_bytes: (usage.ru_maxrss as u64) << 10,
        left_behind: 0,
    }
}

/// Milliseconds of grace after the end of the command: the last processes of a pipeline may end
/// just after it.
const GRACE_MS: u32 = 100;
/// Milliseconds after which a process that cannot be killed (of another user, or waiting in the
/// kernel) is given up.
const PATIENCE_MS: u32 = 1000;

/// Waits a little for remaining children, kills those that are still there, and returns how many
/// processes these were.
pub fn sweep(grace_ms: u32) -> u64 {
    let mut ended = 0;
    for round in 0.. {
        let grace_ms = if ABANDONED.load(Relaxed) { 0 } else { grace_ms };
        let mut status = 0;
        let still = loop {
            // SAFETY: writes into a local.
            match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
                // A process is counted when it ends, since a process that is slow to end gets the signal more than
                // once.
                reaped if reaped > 0 => {
                    ended += u64::from(round > grace_ms && libc::WIFSIGNALED(status))
                }
                rest => break rest == 0,
            }
        };
        if !still {
            break;
        }
        if round > grace_ms + PATIENCE_MS {
            return ended + 1;
        }
        if round >= grace_ms {
            end_children();
        }
        sys::sleep_ms(1);
    }
    ended
}

/// Kills this process's children. Their children then become this process's, and are found in the
/// next round.
fn end_children() {
    let mut text = [0; 4096];
    // SAFETY: plain system calls, on a buffer of this function.
    let length = unsafe {
        let file = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY);
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        length
    };
    let text = text.get(..length.max(0) as usize).unwrap_or_default();
    // A number that the buffer cuts off would name another process.
    let whole = text
        .iter()
        .rposition(|byte| *byte == b' ')
        .map_or(0, |end| end + 1);
    for word in text[..whole].split(|byte| *byte == b' ') {
        if let Some(pid) = core::str::from_utf8(word)
            .ok()
            .and_then(|word| word.parse().ok())
            .filter(|pid| *pid > 1)
        {
            // SAFETY: a child of ours that was not waited for, so its number cannot belong to
            // another process.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

/// Becomes the command; if that fails, writes the reason to the file.
unsafe fn execute(
    parent: c_int,
    command: *const *const c_char,
    mut environment: *const *const c_char,
    inherits: bool,
    file: c_int,
) -> ! {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: plain system calls on the caller's strings; this process has one thread, which may
    // change its environment.
    unsafe {
        if inherits {
            while !(*environment).is_null() {
                libc::putenv((*environment).cast_mut());
                environment = environment.add(1);
            }
            environment = environ;
        }
        // When this launcher is killed, its child dies too.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() == parent {
            libc::execve(*command, command, environment);
            report_errno(file);
        }
        libc::_exit(127)
    }
}

/// Writes to the file why the command does not run, and ends this process.
fn report_errno(file: c_int) -> ! {
    // SAFETY: reads this thread's errno, and ends the process.
    unsafe {
        let _ = writeln!(OutputFile(file), "errno={}", *libc::__errno_location());
        libc::_exit(127)
    }
}

pub(crate) struct OutputFile(pub c_int);

impl Write for OutputFile {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: writes a text to a file that heapmark opened for this.
        let written = unsafe { libc::write(self.0, text.as_ptr().cast(), text.len()) };
        if written == text.len() as isize {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}
