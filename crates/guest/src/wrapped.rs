//! The functions that stand between a kernel and its allocator, in the processes that look at each
//! call.

use crate::api::{AlignedOperators, Api};
use core::ptr;

/// The functions that are counted separately, in the order of [`Function`]. C++ operators are counted with the C
/// functions that they correspond to.
pub const FUNCTIONS: [&str; 5] = ["malloc", "free", "calloc", "realloc", "posix_memalign"];

/// A function that is counted separately.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Function {
    Malloc,
    Free,
    Calloc,
    Realloc,
    PosixMemalign,
}

/// A call that requests a block.
#[derive(Clone, Copy)]
pub struct Request {
    pub function: Function,
    /// The name of the function that is called.
    pub call: &'static str,
    /// The number by which calloc multiplies the size; 1 for all other functions.
    pub count: usize,
    pub size: usize,
    /// The requested alignment; 1 if none was requested.
    pub alignment: usize,
}

impl Request {
    fn of(function: Function, call: &'static str, size: usize) -> Request {
        Request {
            function,
            call,
            count: 1,
            size,
            alignment: 1,
        }
    }

    /// The requested bytes. If their number overflows, the allocator must refuse the request, and there is no block.
    pub fn bytes(&self) -> usize {
        self.count.saturating_mul(self.size)
    }
}

/// A type that looks at each call, and makes the call once.
pub trait Look {
    /// Makes a call that requests a block; `block` finds the block in the call's result.
    fn allocate<R>(
        request: Request,
        make: impl FnOnce(&Api) -> R,
        block: impl FnOnce(&R) -> *mut u8,
    ) -> R;

    /// Makes a realloc; `make` calls the function and returns the new block.
    fn resize(block: *mut u8, size: usize, make: impl FnOnce(&Api) -> *mut u8) -> *mut u8;

    /// Makes a call that frees a block.
    fn free(block: *mut u8, make: impl FnOnce(&Api));
}

/// Returns functions that call those of `real`; `L` looks at each call.
pub fn wrap<L: Look>(real: &Api) -> Api {
    let aligned = real.aligned.map(|real| AlignedOperators {
        new: new_aligned::<L>,
        delete: delete_aligned::<L>,
        delete_sized: real.delete_sized.map(|_| delete_aligned_sized::<L> as _),
    });
    Api {
        malloc: malloc::<L>,
        free: free::<L>,
        calloc: calloc::<L>,
        realloc: realloc::<L>,
        posix_memalign: posix_memalign::<L>,
        free_sized: free_sized::<L>,
        new: new::<L>,
        delete: delete::<L>,
        delete_sized: delete_sized::<L>,
        aligned,
        usable_size: real.usable_size,
    }
}

fn itself(block: &*mut u8) -> *mut u8 {
    *block
}

unsafe extern "C" fn malloc<L: Look>(size: usize) -> *mut u8 {
    let request = Request::of(Function::Malloc, "malloc", size);
    // SAFETY: the allocator's own function, as in all of these.
    L::allocate(request, |real| unsafe { (real.malloc)(size) }, itself)
}

unsafe extern "C" fn calloc<L: Look>(count: usize, size: usize) -> *mut u8 {
    let request = Request {
        count,
        ..Request::of(Function::Calloc, "calloc", size)
    };
    // SAFETY: as above.
    L::allocate(
        request,
        |real| unsafe { (real.calloc)(count, size) },
        itself,
    )
}

unsafe extern "C" fn posix_memalign<L: Look>(
    place: *mut *mut u8,
    alignment: usize,
    size: usize,
) -> i32 {
    let request = Request {
        alignment,
        ..Request::of(Function::PosixMemalign, "posix_memalign", size)
    };
    let made = |error: &i32| match error {
        // SAFETY: the function has put the block there.
        0 => unsafe { *place },
        _ => ptr::null_mut(),
    };
    // SAFETY: as above, with the caller's place for the result.
    let make = |real: &Api| unsafe { (real.posix_memalign)(place, alignment, size) };
    L::allocate(request, make, made)
}

unsafe extern "C" fn new<L: Look>(size: usize) -> *mut u8 {
    let request = Request::of(Function::Malloc, "operator new", size);
    // SAFETY: as above.
    L::allocate(request, |real| unsafe { (real.new)(size) }, itself)
}

unsafe extern "C" fn new_aligned<L: Look>(size: usize, alignment: usize) -> *mut u8 {
    let request = Request {
        alignment,
        ..Request::of(Function::PosixMemalign, "operator new", size)
    };
    let make = |real: &Api| match real.aligned {
        // SAFETY: as above.
        Some(real) => unsafe { (real.new)(size, alignment) },
        // This function is handed out only if `real` has such an operator.
        None => ptr::null_mut(),
    };
    L::allocate(request, make, itself)
}

unsafe extern "C" fn realloc<L: Look>(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: as above, with a block of its own.
    L::resize(block, size, |real| unsafe { (real.realloc)(block, size) })
}

unsafe extern "C" fn free<L: Look>(block: *mut u8) {
    // SAFETY: as above, with a block of its own, as in all that follow.
    L::free(block, |real| unsafe { (real.free)(block) });
}

unsafe extern "C" fn free_sized<L: Look>(block: *mut u8, size: usize, flags: usize) {
    // SAFETY: as above.
    L::free(block, |real| unsafe {
        (real.free_sized)(block, size, flags)
    });
}

unsafe extern "C" fn delete<L: Look>(block: *mut u8) {
    // SAFETY: as above.
    L::free(block, |real| unsafe { (real.delete)(block) });
}

unsafe extern "C" fn delete_sized<L: Look>(block: *mut u8, size: usize) {
    // SAFETY: as above.
    L::free(block, |real| unsafe { (real.delete_sized)(block, size) });
}

unsafe extern "C" fn delete_aligned<L: Look>(block: *mut u8, alignment: usize) {
    // SAFETY: as above.
    L::free(block, |real| unsafe {
        real.delete_aligned(block, alignment, None)
    });
}

unsafe extern "C" fn delete_aligned_sized<L: Look>(block: *mut u8, size: usize, alignment: usize) {
    // SAFETY: as above.
    L::free(block, |real| unsafe {
        real.delete_aligned(block, alignment, Some(size))
    });
}
