//! Stacks for worker threads.

use crate::published::{forget, harness_grows, know, wanted};
use core::ffi::c_void;
use core::hint::black_box;
use core::ptr;
use heapmark_wire::RangeKind;

/// Bytes of the guard below a stack: at least a page on every machine.
const GUARD: usize = 64 << 10;

/// Bytes of each stack that are resident from the start, and count as the harness's memory. How
/// deep a thread's calls go while it waits for another thread differs from process to process, and
/// the first touches of a stack would look like growth of the heap.
const PRESENT: usize = 64 << 10;

/// A stack at a known address, for a worker of a process whose memory is recorded: the address of a
/// stack mapped by the C library would be unknown, and its 8 MiB would count as the allocator's. If
/// its fields are zero, the C library provides the stack.
pub struct Stack {
    start: *mut c_void,
    bytes: usize,
}

impl Stack {
    /// A stack that the C library provides.
    pub fn none() -> Stack {
        Stack {
            start: ptr::null_mut(),
            bytes: 0,
        }
    }

    /// A known stack if memory over time is recorded, otherwise the C library's.
    pub fn where_wanted() -> Stack {
        if wanted() {
            Stack::map()
        } else {
            Stack::none()
        }
    }

    /// Maps a stack as large as the C library would make it, above a guard that cannot be accessed.
    fn map() -> Stack {
        // SAFETY: attributes are initialised before their use; a fresh private mapping, whose first
        // part is never used.
        unsafe {
            let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
            let mut bytes = 0;
            libc::pthread_attr_init(&mut attributes);
            libc::pthread_attr_getstacksize(&attributes, &mut bytes);
            libc::pthread_attr_destroy(&mut attributes);
            let flags =
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
            let start = libc::mmap(
                ptr::null_mut(),
                bytes + GUARD,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            );
            if start == libc::MAP_FAILED || libc::mprotect(start, GUARD, libc::PROT_NONE) != 0 {
                fail!("oom", "no {bytes} bytes for a stack");
            }
            know(start.addr() + GUARD, bytes, RangeKind::Stack);
            let stack = Stack { start, bytes };
            let end = start.byte_add(GUARD + bytes).cast::<u8>();
            (1..=stack.present_bytes())
                .step_by(4096)
                .for_each(|below| end.byte_sub(below).write_volatile(0));
            harness_grows(stack.present_bytes() as i64);
            stack
        }
    }

    fn present_bytes(&self) -> usize {
        self.bytes.min(PRESENT)
    }

    /// Sets this stack in the attributes; does nothing if there is none.
    ///
    /// # Safety
    /// The attributes are initialised, and the stack stays mapped until the thread has ended.
    pub unsafe fn give(&self, attributes: &mut libc::pthread_attr_t) {
        if !self.start.is_null() {
            // SAFETY: the part above the guard is ours.
            unsafe {
                libc::pthread_attr_setstack(attributes, self.start.byte_add(GUARD), self.bytes)
            };
        }
    }

    /// Unmaps the stack; does nothing if there is none.
    ///
    /// # Safety
    /// No thread runs on the stack any longer.
    pub unsafe fn unmap(&mut self) {
        if !self.start.is_null() {
            forget(self.start.addr() + GUARD);
            harness_grows(-(self.present_bytes() as i64));
            // SAFETY: mapped by `map`; the caller guarantees the rest.
            unsafe { libc::munmap(self.start, self.bytes + GUARD) };
            self.start = ptr::null_mut();
        }
    }
}

/// Makes as many bytes of the main thread's own stack resident as of each worker's stack.
#[inline(never)]
pub fn present() {
    black_box(&mut [0u8; PRESENT]);
}
