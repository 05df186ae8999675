//! The variables of the calling thread, at a fixed offset from the thread pointer: one addition, no
//! call. The standard library's thread locals call the dynamic linker on each access, and that may
//! allocate.

use crate::layout::StreamState;

/// A thread's variables. All zero is a thread without an event yet.
#[repr(C)]
pub struct Local {
    /// The state that the thread writes with; null before the thread's first event, and again after its end.
    pub state: *mut StreamState,
    /// The thread's number plus one; 0 if it has none.
    pub thread_and_one: u32,
    /// Whether the thread's destructors have run: then further events are written to other streams, one by one.
    pub ended: bool,
    /// The start time of the fork that is under way, or that has made this process; 0 if there was
    /// none.
    pub forking: u64,
}

const _: () = assert!(size_of::<Local>() == 24 && core::mem::offset_of!(Local, state) == 0);

/// Returns the variables of the calling thread.
#[inline(always)]
pub fn local() -> *mut Local {
    place()
}

/// Returns the state of the calling thread: like [`local`], with one step less on the path of each
/// event.
#[inline(always)]
pub fn state() -> *mut StreamState {
    #[cfg(target_arch = "x86_64")]
    {
        let state;
        // SAFETY: as in `place`; the state comes first.
        unsafe {
            core::arch::asm!(
                "mov {state}, qword ptr [rip + heapmark_recorder_local@GOTTPOFF]",
                "mov {state}, qword ptr fs:[{state}]",
                state = out(reg) state,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        state
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the variable belongs to the calling thread.
    unsafe {
        (*local()).state
    }
}

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".pushsection .tbss.heapmark_recorder_local,\"awT\",@nobits",
    ".p2align 4",
    ".globl heapmark_recorder_local",
    ".hidden heapmark_recorder_local",
    ".type heapmark_recorder_local, @object",
    ".size heapmark_recorder_local, 24",
    "heapmark_recorder_local:",
    ".zero 24",
    ".popsection",
);

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn place() -> *mut Local {
    let place;
    // SAFETY: reads the offset that the dynamic linker has stored, and the thread pointer, which
    // lies at its own address.
    unsafe {
        core::arch::asm!(
            "mov {place}, qword ptr [rip + heapmark_recorder_local@GOTTPOFF]",
            "add {place}, qword ptr fs:[0]",
            place = out(reg) place,
            options(pure, readonly, nostack),
        );
    }
    place
}

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".pushsection .tbss.heapmark_recorder_local,\"awT\",%nobits",
    ".p2align 4",
    ".globl heapmark_recorder_local",
    ".hidden heapmark_recorder_local",
    ".type heapmark_recorder_local, %object",
    ".size heapmark_recorder_local, 24",
    "heapmark_recorder_local:",
    ".zero 24",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn place() -> *mut Local {
    let place;
    // SAFETY: as for x86-64.
    unsafe {
        core::arch::asm!(
            "mrs {place}, tpidr_el0",
            "adrp {offset}, :gottprel:heapmark_recorder_local",
            "ldr {offset}, [{offset}, :gottprel_lo12:heapmark_recorder_local]",
            "add {place}, {place}, {offset}",
            place = out(reg) place,
            offset = out(reg) _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    place
}

/// Returns the stack depth: the frames of called functions are deeper.
#[inline(always)]
pub fn depth() -> usize {
    let depth: usize;
    // SAFETY: reads a register.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("mov {}, rsp", out(reg) depth, options(nomem, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("mov {}, sp", out(reg) depth, options(nomem, nostack, preserves_flags));
    }
    depth
}

/// The value of `errno`, which is restored at the end: a program does not expect `free` to change
/// it.
pub struct Errno(i32);

impl Errno {
    pub fn keep() -> Errno {
        // SAFETY: the variable belongs to the calling thread.
        Errno(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: the variable belongs to the calling thread.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
