//! The system calls that a started process makes, and the memory that it holds just before its end:
//! the kernel stops the process at each call (ptrace). Tracing is exact, but so slow that no time
//! of a traced process means anything.

use crate::launch;
use crate::memory::proc_kib;
use crate::started::{self, StartOrder};
use crate::sys;
use crate::text::{TextIn, c_str_in};
use core::ffi::{CStr, c_int, c_long};
use core::fmt::{self, Write};
use heapmark_wire::Launched;

/// The number of a call that no kernel has: a traced process makes it to show that its work is
/// done.
const WORK_IS_DONE: c_long = 99_999;
/// Number of counters, one for each call number.
const CALLS: usize = 512;
/// Maximum number of files below `/proc` and `/sys` that are kept, and of bytes of a path.
const FILES: usize = 128;
const PATH_BYTES: usize = 160;

/// What was observed of a traced process.
pub struct Trace {
    /// How the process ended.
    pub ended: Launched,
    /// How often each call was made, by its number.
    calls: [u32; CALLS],
    files: [[u8; PATH_BYTES]; FILES],
    /// Number of files below `/proc` and `/sys` that the process opened, each counted once.
    pub file_count: usize,
    /// Memory of the process when its work was done.
    pub memory: Option<ProcessMemory>,
}

/// The memory of a process.
#[derive(Clone, Copy, Default)]
pub struct ProcessMemory {
    /// Resident bytes that belong to no file.
    pub anonymous_bytes: u64,
    /// Bytes of the whole address space.
    pub mapped_bytes: u64,
    /// Private writable bytes, which a kernel that never overcommits sets aside.
    pub accountable_bytes: u64,
    /// Number of mappings.
    pub mappings: u64,
}

/// Makes the call which shows that a started process has done its work.
pub fn work_is_done() {
    // SAFETY: no kernel has this call, so it has no effect.
    unsafe { sys::call(WORK_IS_DONE, []) };
}

/// Runs a process to its end; `None` if the kernel does not let it be traced.
pub fn follow(order: &StartOrder) -> Option<Trace> {
    let first = started::start(&StartOrder {
        traced: true,
        ..*order
    });
    let mut trace = Trace {
        ended: Launched::default(),
        calls: [0; CALLS],
        files: [[0; PATH_BYTES]; FILES],
        file_count: 0,
        memory: None,
    };
    let mut held = false;
    loop {
        // SAFETY: fills locals. This process has no other child meanwhile.
        let (pid, status, usage) = unsafe {
            let (mut status, mut usage) = (0, core::mem::zeroed());
            let pid = libc::wait4(-1, &mut status, libc::__WALL, &mut usage);
            (pid, status, usage)
        };
        if pid == first && !libc::WIFSTOPPED(status) {
            trace.ended = launch::account(status, 0, &usage);
            return held.then_some(trace);
        }
        if pid <= 0 {
            return None;
        }
        if !libc::WIFSTOPPED(status) {
            continue;
        }
        if !held {
            held = true;
            let options =
                libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
            trace_call(libc::PTRACE_SETOPTIONS, pid, 0, options as usize);
        }
        let signal = libc::WSTOPSIG(status);
        if signal == libc::SIGTRAP | 0x80 {
            trace.note(pid, first);
        }
        // A stop caused by tracing itself, or the first stop of a thread that has just been
        // created.
        let is_trace_stop = signal & 0x7f == libc::SIGTRAP || signal == libc::SIGSTOP;
        let delivered = if is_trace_stop { 0 } else { signal };
        trace_call(libc::PTRACE_SYSCALL, pid, 0, delivered as usize);
    }
}

fn trace_call(request: libc::c_uint, pid: c_int, address: usize, data: usize) -> isize {
    let [request, pid] = [request as usize, pid as usize];
    // SAFETY: the requests made here write into locals that outlive the call, or nothing.
    unsafe { sys::call(libc::SYS_ptrace, [request, pid, address, data]) }
}

impl Trace {
    /// Counts a call that a thread of the process is about to make, and keeps the path of a kernel
    /// file that it opens. Ignores the stop after a call.
    fn note(&mut self, thread: c_int, process: c_int) {
        // SAFETY: plain numbers, which the kernel fills.
        let mut info: libc::ptrace_syscall_info = unsafe { core::mem::zeroed() };
        let room = (&raw mut info).addr();
        let size = size_of::<libc::ptrace_syscall_info>();
        trace_call(libc::PTRACE_GET_SYSCALL_INFO, thread, size, room);
        if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
            return;
        }
        // SAFETY: the kernel has filled this variant.
        let entry = unsafe { info.u.entry };
        if entry.nr == WORK_IS_DONE as u64 {
            self.memory = ProcessMemory::of(process);
            return;
        }
        if let Some(count) = self.calls.get_mut(entry.nr as usize) {
            *count += 1;
        }
        let path = match entry.nr as c_long {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => entry.args[0],
            libc::SYS_openat => entry.args[1],
            _ => return,
        };
        let path = read_path(thread, path as usize);
        let is_kernels = path.starts_with(b"/proc/") || path.starts_with(b"/sys/");
        if is_kernels && !self.files[..self.file_count].contains(&path) {
            if self.file_count == FILES {
                fail!(
                    "error",
                    "a started process opens more than {FILES} kernel files"
                );
            }
            self.files[self.file_count] = path;
            self.file_count += 1;
        }
    }

    /// Number of all calls.
    pub fn call_count(&self) -> u64 {
        self.calls.iter().map(|count| u64::from(*count)).sum()
    }

    /// Writes how often each call was made, `brk 3, mmap 12`, in the order of the calls' numbers.
    pub fn write_calls(&self, to: &mut TextIn) -> fmt::Result {
        let made = self.calls.iter().enumerate();
        for (place, (number, count)) in made.filter(|(_, count)| **count > 0).enumerate() {
            to.write_str(if place == 0 { "" } else { ", " })?;
            let mut all = NAMES.iter().chain(&OLD_NAMES);
            let known = all.find(|known| known.number == number as c_long);
            let name = known.map(|known| CStr::from_bytes_until_nul(&known.name));
            match name {
                Some(Ok(name)) => write!(to, "{} {count}", name.to_str().unwrap_or("?"))?,
                _ => write!(to, "call-{number} {count}")?,
            }
        }
        Ok(())
    }

    /// Writes which kernel files were opened: `/proc/cpuinfo, /sys/…`
    pub fn write_files(&self, to: &mut TextIn) -> fmt::Result {
        for (place, path) in self.files[..self.file_count].iter().enumerate() {
            let path = CStr::from_bytes_until_nul(path).unwrap_or_default();
            to.write_str(if place == 0 { "" } else { ", " })?;
            to.write_str(path.to_str().unwrap_or("?"))?;
        }
        Ok(())
    }
}

/// Reads a path from a stopped process's memory, as far as it fits.
fn read_path(pid: c_int, address: usize) -> [u8; PATH_BYTES] {
    let mut path = [0; PATH_BYTES];
    let mut len = 0;
    // The last byte stays 0. A read may not reach into a page that is not mapped.
    while len < PATH_BYTES - 1 {
        let from = address + len;
        let most = (PATH_BYTES - 1 - len).min(4096 - from % 4096);
        let local = libc::iovec {
            iov_base: path[len..].as_mut_ptr().cast(),
            iov_len: most,
        };
        let remote = libc::iovec {
            iov_base: from as *mut _,
            iov_len: most,
        };
        let [local_vector, other] = [(&raw const local).addr(), (&raw const remote).addr()];
        // SAFETY: the kernel writes within the local.
        let read = unsafe {
            sys::call(
                libc::SYS_process_vm_readv,
                [pid as usize, local_vector, 1, other, 1],
            )
        };
        if read <= 0 {
            break;
        }
        let end = len + read as usize;
        if let Some(last) = path[len..end].iter().position(|byte| *byte == 0) {
            path[len + last..].fill(0);
            break;
        }
        len = end;
    }
    path
}

impl ProcessMemory {
    /// The memory of another process; `None` if the kernel does not report it.
    fn of(pid: c_int) -> Option<ProcessMemory> {
        let mut rooms = [[0; 64]; 2];
        let [status, smaps] = &mut rooms;
        let status = c_str_in(status, format_args!("/proc/{pid}/status"))?;
        let mapped_bytes = proc_kib(status, "VmSize:")? << 10;
        let smaps = c_str_in(smaps, format_args!("/proc/{pid}/smaps"))?;
        let mut memory = ProcessMemory {
            mapped_bytes,
            ..ProcessMemory::default()
        };
        let mut size = 0;
        sys::RawFile::open(smaps)?.lines(|line| memory.take(line, &mut size));
        (memory.mappings > 0).then_some(memory)
    }

    /// Takes a line of `smaps`; `size` is the size of the mapping that the line is about.
    fn take(&mut self, line: &str, size: &mut u64) {
        let mut words = line.split_ascii_whitespace();
        let key = words.next().unwrap_or_default();
        let mut bytes = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0) << 10;
        match key {
            "Size:" => {
                *size = bytes();
                self.mappings += 1;
            }
            "Anonymous:" => self.anonymous_bytes += bytes(),
            "VmFlags:" if words.any(|flag| flag == "ac") => self.accountable_bytes += *size,
            _ => {}
        }
    }
}

/// A call's name, stored without a pointer: the dynamic linker would have to write pointers at each
/// start, which is what is measured.
struct CallName {
    name: [u8; 20],
    number: c_long,
}

impl CallName {
    /// Names a call after its constant, such as `SYS_brk`.
    const fn new(constant: &str, number: c_long) -> CallName {
        const PREFIX: usize = 4;
        let mut name = [0; 20];
        let mut place = 0;
        while place + PREFIX < constant.len() {
            name[place] = constant.as_bytes()[place + PREFIX];
            place += 1;
        }
        CallName { name, number }
    }
}

macro_rules! named {
    ($($constant:ident)*) => {
        [$(CallName::new(stringify!($constant), libc::$constant)),*]
    };
}

/// Calls that libraries may make when a process starts and ends; other calls are shown by their
/// numbers.
static NAMES: [CallName; 131] = named! {
    SYS_brk SYS_mmap SYS_munmap SYS_mremap SYS_madvise SYS_mprotect SYS_mlock SYS_mlock2
    SYS_mlockall SYS_munlock SYS_mincore SYS_msync SYS_mbind SYS_set_mempolicy SYS_get_mempolicy
    SYS_move_pages SYS_membarrier SYS_memfd_create SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect
    SYS_process_madvise SYS_userfaultfd SYS_read SYS_write SYS_readv SYS_writev SYS_pread64
    SYS_pwrite64 SYS_openat SYS_openat2 SYS_close SYS_close_range SYS_dup SYS_dup3 SYS_fcntl
    SYS_ioctl SYS_lseek SYS_fstat SYS_newfstatat SYS_statx SYS_statfs SYS_fstatfs SYS_readlinkat
    SYS_faccessat SYS_faccessat2 SYS_getdents64 SYS_getcwd SYS_ftruncate SYS_fallocate SYS_unlinkat
    SYS_flock SYS_pipe2 SYS_eventfd2 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_ppoll
    SYS_pselect6 SYS_socket SYS_connect SYS_sendto SYS_recvfrom SYS_sendmsg SYS_recvmsg SYS_shmget
    SYS_shmat SYS_shmctl SYS_shmdt SYS_clone SYS_clone3 SYS_execve SYS_exit SYS_exit_group SYS_wait4
    SYS_waitid SYS_kill SYS_tkill SYS_tgkill SYS_futex SYS_set_robust_list SYS_get_robust_list
    SYS_set_tid_address SYS_rseq SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn
    SYS_rt_sigtimedwait SYS_sigaltstack SYS_setitimer SYS_getitimer SYS_timer_create
    SYS_timer_settime SYS_timerfd_create SYS_nanosleep SYS_clock_nanosleep SYS_clock_gettime
    SYS_clock_getres SYS_gettimeofday SYS_times SYS_getrandom SYS_getpid SYS_getppid SYS_gettid
    SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getpgid SYS_getsid SYS_getcpu SYS_getrlimit
    SYS_setrlimit SYS_prlimit64 SYS_getrusage SYS_sysinfo SYS_uname SYS_prctl SYS_seccomp
    SYS_personality SYS_capget SYS_sched_yield SYS_sched_getaffinity SYS_sched_setaffinity
    SYS_sched_getparam SYS_sched_getscheduler SYS_sched_setscheduler SYS_getpriority SYS_setpriority
    SYS_perf_event_open SYS_io_uring_setup
};

/// Older calls, which newer architectures no longer have.
#[cfg(target_arch = "x86_64")]
static OLD_NAMES: [CallName; 22] = named! {
    SYS_open SYS_stat SYS_lstat SYS_access SYS_readlink SYS_getdents SYS_pipe SYS_poll SYS_select
    SYS_dup2 SYS_arch_prctl SYS_time SYS_alarm SYS_pause SYS_fork SYS_vfork SYS_epoll_create
    SYS_epoll_wait SYS_eventfd SYS_unlink SYS_mkdir SYS_getpgrp
};
#[cfg(not(target_arch = "x86_64"))]
static OLD_NAMES: [CallName; 0] = [];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_constants() {
        let name = |number| {
            let mut all = NAMES.iter().chain(&OLD_NAMES);
            let known = all.find(|known| known.number == number).unwrap();
            CStr::from_bytes_until_nul(&known.name).unwrap()
        };
        assert_eq!(name(libc::SYS_brk), c"brk");
        assert_eq!(name(libc::SYS_sched_setscheduler), c"sched_setscheduler");
    }

    #[test]
    fn memory_is_summed_up_over_mappings() {
        let text = "55d0-55d4 r--p 00000000 fe:00 12   /opt/a b\nSize:                 16 kB\nKernelPageSize:        4 kB\n\
            Anonymous:             4 kB\nVmFlags: rd mr mw me sd\n\
            7f00-7f20 rw-p 00000000 00:00 0\nSize:                128 kB\nAnonymous:            12 kB\nVmFlags: rd wr mr mw me ac sd\n";
        let (mut memory, mut size) = (ProcessMemory::default(), 0);
        text.lines().for_each(|line| memory.take(line, &mut size));
        assert_eq!((memory.mappings, memory.anonymous_bytes), (2, 16 << 10));
        assert_eq!(memory.accountable_bytes, 128 << 10);
    }
}
