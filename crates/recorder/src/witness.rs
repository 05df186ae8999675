//! Detects whether a call that a state marks as under way still is. Signal handlers run between any
//! two instructions, on any stack. Some jump away for ever and leave the interrupted code half
//! done; others switch to another stack, and come back later. So code that begins something leaves
//! a witness in its frame, a word that holds its own address: it exists as long as the frame, and
//! whatever takes the frame's place overwrites it.

use crate::local::Errno;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// The smallest unit of mapping.
pub const PAGE_BYTES: usize = 4096;

/// A word in the frame of the call that is under way.
pub struct Witness(UnsafeCell<MaybeUninit<usize>>);

impl Witness {
    /// Returns a witness that is not set yet.
    #[inline(always)]
    pub fn new() -> Witness {
        Witness(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Sets the witness, which stands as long as its stack frame exists; returns its address.
    #[inline(always)]
    pub fn stand(&self) -> usize {
        let place = self.0.get().cast::<usize>();
        // SAFETY: the word is this witness's own; other calls only read it.
        unsafe { place.write_volatile(place as usize) };
        place as usize
    }
}

/// Returns whether the witness at `place` is set, seen from a stack of this depth.
pub fn stands(place: usize, depth: usize) -> bool {
    // SAFETY: the word is readable.
    (place / PAGE_BYTES == depth / PAGE_BYTES || is_readable(place))
        && unsafe { (place as *const usize).read_volatile() == place }
}

/// Returns whether the address is readable: a fibre's stack may be unmapped. The kernel reads the
/// signal set before it checks the operation, which is an invalid one.
pub fn is_readable(place: usize) -> bool {
    let _errno = Errno::keep();
    let (nothing, none) = (-1, core::ptr::null_mut::<u64>());
    // SAFETY: reads eight bytes, if they can be read.
    let end = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            nothing,
            place,
            none,
            size_of::<u64>(),
        )
    };
    // SAFETY: the variable belongs to the calling thread.
    end == -1 && unsafe { *libc::__errno_location() } != libc::EFAULT
}
