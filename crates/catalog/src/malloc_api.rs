//! The names that make a malloc: what a complete allocator defines, and what it may define besides.
//! Only names; the guest's proof shows which library serves them in a process.

use std::collections::HashSet;
use std::sync::LazyLock;

/// The C functions that a complete allocator defines. A missing one is served by libc, on another
/// heap.
pub const FUNCTIONS: [&str; 11] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "reallocarray",
];

/// The replaceable C++ `operator new` and `operator delete`, as a 64-bit Linux compiler names them.
/// A missing one is served by libstdc++, which calls `malloc`: correct, but one call more.
pub const OPERATORS: [&str; 20] = [
    "_Znwm",                               // new(size)
    "_Znam",                               // new[](size)
    "_ZnwmRKSt9nothrow_t",                 // new(size, nothrow)
    "_ZnamRKSt9nothrow_t",                 // new[](size, nothrow)
    "_ZnwmSt11align_val_t",                // new(size, align)
    "_ZnamSt11align_val_t",                // new[](size, align)
    "_ZnwmSt11align_val_tRKSt9nothrow_t",  // new(size, align, nothrow)
    "_ZnamSt11align_val_tRKSt9nothrow_t",  // new[](size, align, nothrow)
    "_ZdlPv",                              // delete(p)
    "_ZdaPv",                              // delete[](p)
    "_ZdlPvRKSt9nothrow_t",                // delete(p, nothrow)
    "_ZdaPvRKSt9nothrow_t",                // delete[](p, nothrow)
    "_ZdlPvm",                             // delete(p, size)
    "_ZdaPvm",                             // delete[](p, size)
    "_ZdlPvSt11align_val_t",               // delete(p, align)
    "_ZdaPvSt11align_val_t",               // delete[](p, align)
    "_ZdlPvSt11align_val_tRKSt9nothrow_t", // delete(p, align, nothrow)
    "_ZdaPvSt11align_val_tRKSt9nothrow_t", // delete[](p, align, nothrow)
    "_ZdlPvmSt11align_val_t",              // delete(p, size, align)
    "_ZdaPvmSt11align_val_t",              // delete[](p, size, align)
];

/// Functions that belong to a malloc if it has them, but that no program needs: C23, glibc's
/// controls and statistics, and glibc's own names for its functions.
pub const COMPANIONS: [&str; 30] = [
    "free_sized",
    "free_aligned_sized",
    "cfree",
    "malloc_trim",
    "malloc_stats",
    "malloc_info",
    "malloc_get_state",
    "malloc_set_state",
    "malloc_object_size",
    "malloc_object_size_fast",
    "malloc_disable",
    "malloc_enable",
    "malloc_iterate",
    "mallinfo",
    "mallinfo2",
    "mallopt",
    "malloc_good_size",
    "malloc_size",
    "malloc_backtrace",
    "independent_calloc",
    "independent_comalloc",
    "bulk_free",
    // glibc's private aliases: some allocators define them so that no caller bypasses them.
    "__libc_malloc",
    "__libc_calloc",
    "__libc_realloc",
    "__libc_free",
    "__libc_memalign",
    "__libc_valloc",
    "__libc_pvalloc",
    "__posix_memalign",
];

/// Returns every name that must be defined or explained in `left-to-libc`.
pub fn required() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.into_iter().chain(OPERATORS)
}

/// Returns every name that a library may export without listing it in its recipe.
pub fn all() -> impl Iterator<Item = &'static str> {
    required().chain(COMPANIONS)
}

/// Returns whether `name` is one of [`all`]; each name that a library exports is looked up.
pub fn contains(name: &str) -> bool {
    static ALL: LazyLock<HashSet<&str>> = LazyLock::new(|| all().collect());
    ALL.contains(name)
}

/// Returns whether `name` matches `pattern`, where `*` stands for any run of characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => {
            let Some(rest) = name.strip_prefix(head) else {
                return false;
            };
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| matches(tail, &rest[at..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_stands_for_any_run() {
        assert!(matches("mi_*", "mi_collect"));
        assert!(matches("_Z*", "_Znwm"));
        assert!(matches(
            "_Z*St11align_val_t*",
            "_ZdlPvSt11align_val_tRKSt9nothrow_t"
        ));
        assert!(matches("*", ""));
        assert!(!matches("mi_*", "xmi_collect"));
        assert!(!matches("malloc", "malloc_trim"));
    }

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<_> = all().collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
