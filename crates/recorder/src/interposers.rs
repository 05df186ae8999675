//! Who comes before us in the order in which the dynamic linker searches: a program that defines a function itself, or a library
//! that stands before us in `LD_PRELOAD`. Its `malloc` is called instead of ours; that is its good right, and known here so that it
//! can be said. Its operators are another matter: whoever replaces some of them gets the others' calls too, from the C++ library's.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

unsafe extern "C" {
    // As glibc declares it, with a symbol of the ELF file for the last.
    fn dladdr1(at: *const c_void, about: *mut libc::Dl_info, symbol: *mut *const libc::Elf64_Sym, what: c_int)
    -> c_int;
}

/// Asks `dladdr1` for the symbol.
const RTLD_DL_SYMENT: c_int = 1;

/// What the C++ library's operators end in, if nobody replaces them: three that others are made of, and the family of C.
const REPLACED: [&CStr; 5] = [c"_Znwm", c"_ZdlPv", c"_ZnwmSt11align_val_t", c"_ZdlPvSt11align_val_t", c"malloc"];

static OPERATORS: AtomicBool = AtomicBool::new(false);
static MALLOC: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

/// Somebody else serves operators, or what these end in: ours must leave them to the C++ library.
#[inline(always)]
pub fn has_operators() -> bool {
    OPERATORS.load(Ordering::Relaxed)
}

/// Looks around; once, before anything is recorded.
pub fn find() {
    OPERATORS.store(REPLACED.iter().any(|name| !before_us(name).is_null()), Ordering::Relaxed);
    MALLOC.store(before_us(c"malloc").cast_mut(), Ordering::Relaxed);
}

/// The path of the object whose `malloc` is called instead of ours; null where ours is.
pub fn path_of_malloc() -> *const c_char {
    MALLOC.load(Ordering::Relaxed)
}

/// The path of the object whose definition of a function is found before ours; null where ours is the first.
fn before_us(name: &CStr) -> *const c_char {
    let mut symbol = ptr::null();
    // SAFETY: both calls fill what is ours, for which zeros are valid; a symbol lies in a file that stays mapped.
    unsafe {
        let (mut found, mut own): (libc::Dl_info, libc::Dl_info) = (core::mem::zeroed(), core::mem::zeroed());
        let first = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        let is_known = dladdr1(first, &mut found, &mut symbol, RTLD_DL_SYMENT) != 0
            && libc::dladdr((&raw const OPERATORS).cast(), &mut own) != 0;
        // Where a program takes a function's address, that can be of a stub in the program, which is no definition.
        let is_stub = symbol.as_ref().is_some_and(|symbol| symbol.st_shndx == 0);
        if is_known && !is_stub && found.dli_fbase != own.dli_fbase { found.dli_fname } else { ptr::null() }
    }
}
