//! Whether what a state says is under way still is. Handlers of signals come between any two instructions, on any stack. Some
//! jump away for ever and leave what they interrupted half done; others go over to another stack, and come back later. So whoever
//! begins something leaves a witness in its frame, a word that holds its own address: as long as the frame is there, so is
//! that, and what takes the frame's place writes over it.

use crate::local::Errno;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// The least that memory is mapped by.
const PAGE_BYTES: usize = 4096;

/// Lies in the frame of what is under way.
pub struct Witness(UnsafeCell<MaybeUninit<usize>>);

impl Witness {
    /// One that says nothing yet.
    #[inline(always)]
    pub fn new() -> Witness {
        Witness(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Stands from now on, as long as its frame; gives where.
    #[inline(always)]
    pub fn stand(&self) -> usize {
        let place = self.0.get().cast::<usize>();
        // SAFETY: our own; others read it.
        unsafe { place.write_volatile(place as usize) };
        place as usize
    }
}

/// The witness there stands, for one whose stack is so deep.
pub fn stands(place: usize, depth: usize) -> bool {
    // SAFETY: it can be read.
    (place / PAGE_BYTES == depth / PAGE_BYTES || is_readable(place))
        && unsafe { (place as *const usize).read_volatile() == place }
}

/// A fibre's stack may be gone. The kernel looks at the set of signals before it looks at what to do with them, which is nothing
/// that there is.
fn is_readable(place: usize) -> bool {
    let _errno = Errno::keep();
    let (nothing, none) = (-1, core::ptr::null_mut::<u64>());
    // SAFETY: reads eight bytes, if they can be read.
    let end = unsafe { libc::syscall(libc::SYS_rt_sigprocmask, nothing, place, none, size_of::<u64>()) };
    // SAFETY: the thread's own.
    end == -1 && unsafe { *libc::__errno_location() } != libc::EFAULT
}
