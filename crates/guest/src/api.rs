//! The malloc family as function pointers, resolved once. Calls through them are like those of a program compiled
//! without a PLT, and an optimiser can neither delete nor fold them.

use crate::objects::Objects;
use crate::report;
use core::ffi::{CStr, c_int, c_void};
use core::fmt;
use core::mem::{transmute, transmute_copy};
use core::ptr;

/// The functions whose owner is proved in every process, with the addresses that a program gets for
/// their names. For the C functions, these are the addresses that this program itself was bound to,
/// as every program is. C++ operator new and delete are looked up: a guest without C++ code has
/// them only if the allocator's library brings them.
pub fn family(objects: &Objects) -> [(&'static CStr, *mut c_void); 11] {
    [
        (c"malloc", libc::malloc as *mut c_void),
        (c"free", libc::free as *mut c_void),
        (c"calloc", libc::calloc as *mut c_void),
        (c"realloc", libc::realloc as *mut c_void),
        (c"posix_memalign", libc::posix_memalign as *mut c_void),
        (c"aligned_alloc", libc::aligned_alloc as *mut c_void),
        (c"memalign", libc::memalign as *mut c_void),
        (c"reallocarray", libc::reallocarray as *mut c_void),
        (
            c"malloc_usable_size",
            libc::malloc_usable_size as *mut c_void,
        ),
        (c"_Znwm", objects.find(c"_Znwm")),
        (c"_ZdlPv", objects.find(c"_ZdlPv")),
    ]
}

/// Calls malloc and free once, before any symbol is looked up or resolved: an allocator that looks up its own functions
/// in its first call has done so by then.
pub fn wake() {
    // SAFETY: an ordinary pair of calls; the compiler cannot see the block's address, so both calls
    // happen.
    unsafe { libc::free(core::hint::black_box(libc::malloc(8))) };
}

/// The functions that kernels call.
#[derive(Clone, Copy)]
pub struct Api {
    /// `malloc`
    pub malloc: unsafe extern "C" fn(usize) -> *mut u8,
    /// `free`
    pub free: unsafe extern "C" fn(*mut u8),
    /// `calloc`
    pub calloc: unsafe extern "C" fn(usize, usize) -> *mut u8,
    /// `realloc`
    pub realloc: unsafe extern "C" fn(*mut u8, usize) -> *mut u8,
    /// `posix_memalign`
    pub posix_memalign: unsafe extern "C" fn(*mut *mut u8, usize, usize) -> i32,
    /// Frees a block of known size: block, size, and 0 for `sdallocx`, which takes flags.
    pub free_sized: unsafe extern "C" fn(*mut u8, usize, usize),
    /// `operator new`, or `malloc` if the allocator's own library has no operators. Likewise, `delete` and
    /// `delete_sized` may be `free`.
    pub new: unsafe extern "C" fn(usize) -> *mut u8,
    /// `operator delete`
    pub delete: unsafe extern "C" fn(*mut u8),
    /// `operator delete(block, size)`
    pub delete_sized: unsafe extern "C" fn(*mut u8, usize),
    /// The operators that take an alignment, if the allocator's own library has them.
    pub aligned: Option<AlignedOperators>,
    /// `malloc_usable_size`; returns 0 if the allocator has none.
    pub usable_size: unsafe extern "C" fn(*mut u8) -> usize,
}

/// C++ operators for over-aligned types.
#[derive(Clone, Copy)]
pub struct AlignedOperators {
    /// `operator new(size, alignment)`
    pub new: unsafe extern "C" fn(usize, usize) -> *mut u8,
    /// `operator delete(block, alignment)`
    pub delete: unsafe extern "C" fn(*mut u8, usize),
    /// `operator delete(block, size, alignment)`
    pub delete_sized: Option<unsafe extern "C" fn(*mut u8, usize, usize)>,
}

/// C functions that free a block of known size, best first. A sized `operator delete` is not one of
/// them: some allocators have other size classes for `operator new` than for `malloc`.
const FREE_SIZED: [&CStr; 2] = [c"sdallocx", c"free_sized"];

impl Api {
    /// The functions that a program in this process would call.
    pub fn resolve() -> Api {
        let (objects, free) = (Objects::loaded(), libc::free as *mut c_void);
        let beside_free = |name: &CStr| objects.find_beside(free, name, None);
        // SAFETY: these symbols have exactly these C signatures in every C library and every
        // allocator.
        unsafe {
            // A block must be freed by the library that made it, so one function without the other
            // is of no use.
            let pair = |new, delete| beside_free(new).zip(beside_free(delete));
            let (new, delete) =
                pair(c"_Znwm", c"_ZdlPv").unwrap_or((libc::malloc as *mut c_void, free));
            let has_operators = delete != free;
            Api {
                malloc: function(libc::malloc as *mut c_void),
                free: function(free),
                calloc: function(libc::calloc as *mut c_void),
                realloc: function(libc::realloc as *mut c_void),
                posix_memalign: function(libc::posix_memalign as *mut c_void),
                // Functions that take fewer arguments ignore the rest.
                free_sized: function(
                    FREE_SIZED
                        .iter()
                        .find_map(|name| beside_free(name))
                        .unwrap_or(free),
                ),
                new: function(new),
                delete: function(delete),
                // Without a sized operator, the plain one is called and ignores the size, as the C++ library's own
                // sized operator does, too.
                delete_sized: function(
                    beside_free(c"_ZdlPvm")
                        .filter(|_| has_operators)
                        .unwrap_or(delete),
                ),
                aligned: pair(c"_ZnwmSt11align_val_t", c"_ZdlPvSt11align_val_t").map(
                    |(new, delete)| AlignedOperators {
                        new: function(new),
                        delete: function(delete),
                        delete_sized: beside_free(c"_ZdlPvmSt11align_val_t")
                            .map(|delete| function(delete)),
                    },
                ),
                usable_size: beside_free(c"malloc_usable_size")
                    .map_or(unknown_size, |address| function(address)),
            }
        }
    }

    /// Allocates a block; ends the process if malloc returns none.
    #[inline(always)]
    pub fn block(&self, size: usize) -> *mut u8 {
        // SAFETY: an ordinary call.
        let block = unsafe { (self.malloc)(size) };
        if block.is_null() {
            report::no_block("malloc", size);
        }
        block
    }

    /// Like [`Api::block`], for a request that may be for 0 bytes and may then yield no block.
    #[inline(always)]
    pub fn allocate(&self, size: usize) -> *mut u8 {
        // SAFETY: an ordinary call.
        let block = unsafe { (self.malloc)(size) };
        if block.is_null() && size > 0 {
            report::no_block("malloc", size);
        }
        block
    }
}

/// The function at an address.
///
/// # Safety
/// `F` must be its type.
unsafe fn function<F: Copy>(address: *mut c_void) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: of the same size; the caller guarantees the type.
    unsafe { transmute_copy(&address) }
}

/// A function that allocates blocks, and two that free them: one without the block's size, and one with the size (and
/// 0, as for [`Api::free_sized`]).
#[derive(Clone, Copy)]
pub struct SizedFrees {
    /// `malloc`, or `operator new`.
    pub allocate: unsafe extern "C" fn(usize) -> *mut u8,
    /// `free`, or `operator delete`.
    pub plain: unsafe extern "C" fn(*mut u8),
    /// Like [`Api::free_sized`], or `operator delete` with a size.
    pub sized: unsafe extern "C" fn(*mut u8, usize, usize),
}

impl Api {
    /// Returns the C functions, or the C++ operators, that the allocator's own library has. If the functions under test
    /// are not from a library, the C functions are taken without looking for them.
    pub fn sized_frees(&self, is_no_library: bool) -> Option<SizedFrees> {
        let has = |name: &CStr| beside_free(name).is_some();
        if is_no_library || FREE_SIZED.iter().any(|name| has(name)) {
            return Some(SizedFrees {
                allocate: self.malloc,
                plain: self.free,
                sized: self.free_sized,
            });
        }
        let operators = [c"_Znwm", c"_ZdlPv", c"_ZdlPvm"];
        operators.into_iter().all(has).then(|| SizedFrees {
            allocate: self.new,
            plain: self.delete,
            // SAFETY: a function that takes fewer arguments ignores the rest.
            sized: unsafe {
                transmute::<
                    unsafe extern "C" fn(*mut u8, usize),
                    unsafe extern "C" fn(*mut u8, usize, usize),
                >(self.delete_sized)
            },
        })
    }

    /// A block from `posix_memalign`, or null if there is none. A misaligned block ends the process.
    #[inline(always)]
    pub fn aligned_block(&self, alignment: usize, size: usize) -> *mut u8 {
        let mut block = ptr::null_mut();
        // SAFETY: an ordinary call, with a local place for the result.
        if unsafe { (self.posix_memalign)(&mut block, alignment, size) } != 0 {
            return ptr::null_mut();
        }
        if block.addr() % alignment != 0 {
            fail!(
                "wrong-result",
                "posix_memalign({alignment}, {size}) returned {block:?}"
            );
        }
        block
    }

    /// Ends the process because posix_memalign returned no block. If malloc still has that much memory, the alignment
    /// was refused.
    #[cold]
    pub fn no_aligned(
        &self,
        alignment: usize,
        size: usize,
        error: c_int,
        place: fmt::Arguments<'_>,
    ) -> ! {
        let why = match error {
            0 => "returned 0 and no block",
            libc::EINVAL => "returned EINVAL",
            libc::ENOMEM => "returned ENOMEM",
            _ => "failed",
        };
        // SAFETY: an ordinary call.
        if unsafe { (self.malloc)(size + alignment) }.is_null() {
            fail!("oom", "posix_memalign({alignment}, {size}) {why}{place}");
        }
        let more = size + alignment;
        fail!(
            "wrong-result",
            "posix_memalign({alignment}, {size}) {why}, though malloc({more}) has memory{place}"
        )
    }

    /// Frees a block from the `operator new` with an alignment, or from `posix_memalign` in its place.
    ///
    /// # Safety
    /// The block is live and was made with this alignment, and with this size if one is given.
    pub unsafe fn delete_aligned(&self, block: *mut u8, alignment: usize, size: Option<usize>) {
        // SAFETY: as the caller guarantees.
        unsafe {
            match (self.aligned, size) {
                (None, _) => (self.free)(block),
                (
                    Some(AlignedOperators {
                        delete_sized: Some(delete),
                        ..
                    }),
                    Some(size),
                ) => delete(block, size, alignment),
                (Some(AlignedOperators { delete, .. }), _) => delete(block, alignment),
            }
        }
    }
}

/// Ends the process because a block lacks the alignment that every block must have.
#[cold]
pub fn misaligned(call: fmt::Arguments<'_>, block: usize, alignment: usize) -> ! {
    let is_of_dlmalloc = || beside_free(c"independent_comalloc").is_some();
    let hint = if block.is_multiple_of(8) && is_of_dlmalloc() {
        "; built for 8? it is a descendant of dlmalloc, and takes -DMALLOC_ALIGNMENT=16"
    } else {
        ""
    };
    fail!(
        "wrong-result",
        "{call} returned {block:#x}, which is not aligned to {alignment} bytes{hint}"
    )
}

unsafe extern "C" fn unknown_size(_block: *mut u8) -> usize {
    0
}

/// Finds a function in the object that owns `free`: a function from another object could not handle the allocator's
/// blocks.
pub fn beside_free(name: &CStr) -> Option<*mut c_void> {
    Objects::loaded().find_beside(libc::free as *mut c_void, name, None)
}

/// A function with up to six integer or pointer arguments, such as purge and version calls.
pub type AnyCall = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> usize;

/// Calls `address` with integer or pointer arguments and returns its integer or pointer result.
///
/// # Safety
/// `address` must be a function that takes at most these arguments, none of them in floating-point
/// registers.
pub unsafe fn call(address: *mut c_void, args: &[usize; 6]) -> usize {
    // SAFETY: on the supported ABIs surplus integer arguments are ignored by the callee.
    let function = unsafe { transmute::<*mut c_void, AnyCall>(address) };
    // SAFETY: the caller guarantees the arguments.
    unsafe { function(args[0], args[1], args[2], args[3], args[4], args[5]) }
}
