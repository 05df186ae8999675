//! Objects that come before the recorder in the dynamic linker's search order: a program that
//! defines a function itself, or an earlier library in `LD_PRELOAD`. The `malloc` of such an object
//! is called instead of the recorder's. That is legitimate, and noted here so that it can be
//! reported. Operators are different: an object that replaces some of them also gets the calls of
//! the others, from the C++ library's versions.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

unsafe extern "C" {
    // As glibc declares it, with an ELF symbol as the last argument's type.
    fn dladdr1(
        at: *const c_void,
        about: *mut libc::Dl_info,
        symbol: *mut *const libc::Elf64_Sym,
        what: c_int,
    ) -> c_int;
}

/// Requests the symbol from `dladdr1`.
const RTLD_DL_SYMENT: c_int = 1;

/// The functions that all of the C++ library's operators end in, unless replaced: three from which
/// others are built, and the C family.
const REPLACED: [&CStr; 5] = [
    c"_Znwm",
    c"_ZdlPv",
    c"_ZnwmSt11align_val_t",
    c"_ZdlPvSt11align_val_t",
    c"malloc",
];

static OPERATORS: AtomicBool = AtomicBool::new(false);
static MALLOC: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

/// Returns whether another object serves operators, or the functions that they end in: then the recorder must leave them to the C++
/// library.
#[inline(always)]
pub fn has_operators() -> bool {
    OPERATORS.load(Ordering::Relaxed)
}

/// Searches for objects that come before the recorder; called once, before anything is recorded.
pub fn find() {
    OPERATORS.store(
        REPLACED.iter().any(|name| !before_us(name).is_null()),
        Ordering::Relaxed,
    );
    MALLOC.store(before_us(c"malloc").cast_mut(), Ordering::Relaxed);
}

/// Returns the path of the object whose `malloc` is called instead of the recorder's; null if the recorder's is called.
pub fn path_of_malloc() -> *const c_char {
    MALLOC.load(Ordering::Relaxed)
}

/// Returns the path of the object whose definition of a function is found before ours; null if ours
/// is the first.
fn before_us(name: &CStr) -> *const c_char {
    let mut symbol = ptr::null();
    // SAFETY: both calls fill locals, for which zeros are valid; a symbol lies in a file that stays
    // mapped.
    unsafe {
        let (mut found, mut recorder): (libc::Dl_info, libc::Dl_info) =
            (core::mem::zeroed(), core::mem::zeroed());
        let first = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        let is_known = dladdr1(first, &mut found, &mut symbol, RTLD_DL_SYMENT) != 0
            && libc::dladdr((&raw const OPERATORS).cast(), &mut recorder) != 0;
        // If a program takes a function's address, it may get that of a stub in the program, which
        // is no definition.
        let is_stub = symbol.as_ref().is_some_and(|symbol| symbol.st_shndx == 0);
        if is_known && !is_stub && found.dli_fbase != recorder.dli_fbase {
            found.dli_fname
        } else {
            ptr::null()
        }
    }
}
