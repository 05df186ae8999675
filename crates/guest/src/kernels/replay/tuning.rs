//! Calls that change glibc's heap as a whole: if a program makes such calls, they are replayed only
//! if glibc serves malloc. Other allocators lack these functions, or have them by name only.

use crate::objects::Objects;
use core::ffi::{CStr, c_int, c_void};

/// The functions, present only if glibc serves malloc.
pub struct Tuning {
    mallopt: Option<unsafe extern "C" fn(c_int, c_int) -> c_int>,
    malloc_trim: Option<unsafe extern "C" fn(usize) -> c_int>,
}

impl Tuning {
    /// Looks up which of the functions this process has.
    pub fn find() -> Tuning {
        let objects = Objects::loaded();
        let malloc = objects.find(c"malloc");
        let beside = |name: &CStr| objects.find_beside(malloc, name, None);
        let of_glibc = |name| beside(c"gnu_get_libc_version").and(beside(name));
        // SAFETY: glibc's functions, with the types that it declares.
        unsafe {
            Tuning {
                mallopt: of_glibc(c"mallopt")
                    .map(|address| core::mem::transmute::<*mut c_void, _>(address)),
                malloc_trim: of_glibc(c"malloc_trim")
                    .map(|address| core::mem::transmute::<*mut c_void, _>(address)),
            }
        }
    }

    /// Calls `mallopt`, if glibc serves malloc.
    pub fn mallopt(&self, parameter: c_int, value: c_int) {
        if let Some(call) = self.mallopt {
            // SAFETY: takes any numbers.
            unsafe { call(parameter, value) };
        }
    }

    /// Calls `malloc_trim`, if glibc serves malloc.
    pub fn trim(&self, pad: usize) {
        if let Some(call) = self.malloc_trim {
            // SAFETY: takes any number.
            unsafe { call(pad) };
        }
    }
}
