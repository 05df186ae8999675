//! Fresh processes of this program, which a kernel starts: under the same allocator, since they
//! inherit the environment. Each process must find that it has the same malloc as the kernel's own
//! process.

use crate::clock::now_ns;
use crate::launch;
use crate::objects::Objects;
use crate::sys;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use heapmark_wire::Launched;

/// Exit code of a started process whose malloc belongs to another library.
pub const OTHER_MALLOC: c_int = 3;
/// Exit code of a started process if malloc returned NULL.
pub const NO_MEMORY: c_int = 4;

/// Maximum number of arguments of a started process.
const ARGUMENTS: usize = 8;
/// Seconds after which a start that may fail is ended, since it may also hang.
const PATIENCE_S: libc::time_t = 2;

/// How a process is started.
#[derive(Clone, Copy, Default)]
pub struct StartOrder<'a> {
    /// The arguments, beginning with the word by which `main` recognizes the process.
    pub arguments: &'a [&'a CStr],
    /// A resource and its limit. A start with a limit may fail: what the process prints is dropped,
    /// and the process is ended after some time.
    pub limit: Option<(u32, u64)>,
    /// Whether the process waits for a tracer.
    pub traced: bool,
}

/// What the new process needs until it has become the program. The new process shares this
/// process's memory.
struct Becoming<'a> {
    order: &'a StartOrder<'a>,
    argv: [*const c_char; ARGUMENTS + 2],
    environment: *const *const c_char,
}

/// Starts a process and waits for its end.
pub fn run(order: &StartOrder) -> Launched {
    let start_ns = now_ns();
    let pid = start(order);
    // SAFETY: fills locals; the process is a child that was not yet waited for.
    let (status, usage) = unsafe {
        let (mut status, mut usage) = (0, core::mem::zeroed());
        while libc::wait4(pid, &mut status, libc::__WALL, &mut usage) != pid {}
        (status, usage)
    };
    launch::account(status, now_ns() - start_ns, &usage)
}

/// Starts a process, and returns its number once it has become the program. Like `posix_spawn`,
/// this function neither copies this process's page tables nor runs its fork handlers, since
/// neither is part of a start.
pub fn start(order: &StartOrder) -> c_int {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    #[repr(align(64))]
    struct Stack(#[allow(dead_code)] [u8; 64 << 10]);
    let mut stack = MaybeUninit::<Stack>::uninit();
    let mut becoming = Becoming {
        order,
        argv: [ptr::null(); ARGUMENTS + 2],
        // SAFETY: no other thread changes the environment.
        environment: unsafe { environ },
    };
    becoming.argv[0] = c"heapmark-guest".as_ptr();
    for (place, argument) in becoming.argv[1..=ARGUMENTS].iter_mut().zip(order.arguments) {
        *place = argument.as_ptr();
    }
    // SAFETY: this thread waits until the new process has left this memory; until then the new
    // process makes only system calls, on a stack of its own.
    let pid = unsafe {
        libc::clone(
            become_program,
            stack.as_mut_ptr().add(1).cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut becoming).cast(),
        )
    };
    if pid < 0 {
        fail!("error", "no process could be started");
    }
    pid
}

extern "C" fn become_program(becoming: *mut c_void) -> c_int {
    // SAFETY: what `start` passes.
    let becoming = unsafe { &*becoming.cast::<Becoming>() };
    let order = becoming.order;
    // SAFETY: the kernel reads only what outlives the calls: the memory is shared with `start`.
    unsafe {
        if let Some((resource, bytes)) = order.limit {
            let mut usual: libc::rlimit = core::mem::zeroed();
            let room = (&raw mut usual).addr();
            sys::call(libc::SYS_prlimit64, [0, resource as usize, 0, room]);
            let limit = libc::rlimit {
                rlim_cur: bytes,
                ..usual
            };
            let timer = libc::itimerval {
                it_interval: core::mem::zeroed(),
                it_value: libc::timeval {
                    tv_sec: PATIENCE_S,
                    tv_usec: 0,
                },
            };
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            let path = c"/dev/null".as_ptr().addr();
            let here = libc::AT_FDCWD as usize;
            let null = sys::call(libc::SYS_openat, [here, path, libc::O_RDWR as usize]);
            let steps = [
                sys::call(libc::SYS_dup3, [null as usize, 1]),
                sys::call(libc::SYS_dup3, [null as usize, 2]),
                sys::call(
                    libc::SYS_setitimer,
                    [libc::ITIMER_REAL as usize, (&raw const timer).addr()],
                ),
                sys::call(
                    libc::SYS_prlimit64,
                    [0, libc::RLIMIT_CORE as usize, (&raw const none).addr()],
                ),
                sys::call(
                    libc::SYS_prlimit64,
                    [0, resource as usize, (&raw const limit).addr()],
                ),
            ];
            if steps.iter().any(|done| *done < 0) {
                return 127;
            }
        }
        if order.traced {
            let me = libc::PTRACE_TRACEME as usize;
            sys::call(libc::SYS_ptrace, [me]);
        }
        sys::call(
            libc::SYS_execve,
            [
                c"/proc/self/exe".as_ptr().addr(),
                becoming.argv.as_ptr().addr(),
                becoming.environment.addr(),
            ],
        );
    }
    127
}

/// Returns the status with which a child has ended; waits for its end unless the options forbid
/// that.
pub fn end_of(pid: i32, options: i32) -> Option<c_int> {
    let mut status = 0;
    // SAFETY: fills a local.
    (unsafe { libc::waitpid(pid, &mut status, options) } == pid).then_some(status)
}

/// Ends this process with the outcome of a process that it started, unless that process did its
/// work.
pub fn must_have_worked(status: c_int, what: &str) {
    if libc::WIFSIGNALED(status) {
        fail!("crash", "{} {what}", libc::WTERMSIG(status));
    }
    match libc::WEXITSTATUS(status) {
        0 => {}
        OTHER_MALLOC => fail!("not-loaded", "the malloc of {what} is another library's"),
        NO_MEMORY => fail!("oom", "malloc returned NULL to {what}"),
        code => fail!("exit", "{code} {what}"),
    }
}

/// Returns the path of the file whose malloc this process calls.
pub fn malloc_owner() -> &'static CStr {
    let objects = Objects::loaded();
    objects
        .path_of(libc::malloc as *mut c_void)
        .unwrap_or_default()
}

/// Ends a started process unless it has the same malloc as the process that started it.
pub fn prove(owner: &CStr) {
    if malloc_owner() != owner {
        end(OTHER_MALLOC);
    }
}

/// Ends a started process at once.
pub fn end(code: c_int) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}
