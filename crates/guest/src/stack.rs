//! Stacks of workers.

use crate::fail;
use crate::watched::{forget, harness_grows, know, wanted};
use core::ffi::c_void;
use core::hint::black_box;
use core::ptr;
use heapmark_wire::Kind;

/// Below a stack: a page at least, on every machine.
const GUARD: usize = 64 << 10;

/// So much of each stack is in memory from the start, and the harness's: how deep a thread calls while it waits for another one differs
/// from process to process, and what it touches first would be growth of the heap.
const PRESENT: usize = 64 << 10;

/// A stack that is known, for a worker of a process whose memory is recorded: the C library would map it unseen, and its
/// 8 MiB would pass for the allocator's. All zero is no stack.
pub struct Stack {
    start: *mut c_void,
    bytes: usize,
}

impl Stack {
    /// The C library's.
    pub fn none() -> Stack {
        Stack { start: ptr::null_mut(), bytes: 0 }
    }

    /// One that is known where memory over time is recorded, otherwise the C library's.
    pub fn where_wanted() -> Stack {
        if wanted() { Stack::map() } else { Stack::none() }
    }

    /// As large as the C library would make it, above a guard that cannot be accessed.
    fn map() -> Stack {
        // SAFETY: attributes are initialised before their use; a fresh private mapping, whose first part nobody uses.
        unsafe {
            let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
            let mut bytes = 0;
            libc::pthread_attr_init(&mut attributes);
            libc::pthread_attr_getstacksize(&attributes, &mut bytes);
            libc::pthread_attr_destroy(&mut attributes);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
            let start = libc::mmap(ptr::null_mut(), bytes + GUARD, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            if start == libc::MAP_FAILED || libc::mprotect(start, GUARD, libc::PROT_NONE) != 0 {
                fail::give_up("oom", format_args!("no {bytes} bytes for a stack"));
            }
            know(start.addr() + GUARD, bytes, Kind::Stack);
            let stack = Stack { start, bytes };
            let end = start.byte_add(GUARD + bytes).cast::<u8>();
            (1..=stack.present_bytes()).step_by(4096).for_each(|below| end.byte_sub(below).write_volatile(0));
            harness_grows(stack.present_bytes() as i64);
            stack
        }
    }

    fn present_bytes(&self) -> usize {
        self.bytes.min(PRESENT)
    }

    /// Makes the attributes say this stack; nothing to do where there is none.
    ///
    /// # Safety
    /// The attributes are initialised, and the stack stays mapped until the thread has ended.
    pub unsafe fn give(&self, attributes: &mut libc::pthread_attr_t) {
        if !self.start.is_null() {
            // SAFETY: the part above the guard is ours.
            unsafe { libc::pthread_attr_setstack(attributes, self.start.byte_add(GUARD), self.bytes) };
        }
    }

    /// Gives it back; nothing to do where there is none.
    ///
    /// # Safety
    /// Nobody runs on it any more.
    pub unsafe fn unmap(&mut self) {
        if !self.start.is_null() {
            forget(self.start.addr() + GUARD);
            harness_grows(-(self.present_bytes() as i64));
            // SAFETY: mapped by `map`, and the caller vouches for the rest.
            unsafe { libc::munmap(self.start, self.bytes + GUARD) };
            self.start = ptr::null_mut();
        }
    }
}

/// Brings as much of the main thread's own stack into memory.
#[inline(never)]
pub fn present() {
    black_box(&mut [0u8; PRESENT]);
}
