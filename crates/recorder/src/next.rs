//! The next definitions of the recorder's functions, in the next library that has them. All are
//! found before a thread's first call is passed on, so that a hook never has to check.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};

/// A block of memory, or the argument of a thread.
pub type BlockPointer = *mut c_void;
/// The function that a new thread runs.
pub type StartRoutine = extern "C" fn(BlockPointer) -> BlockPointer;
/// The arguments of a program, or its environment: a null follows the last one.
pub type CStringArray = *const *const c_char;
/// The type of `posix_spawn` and `posix_spawnp`.
pub type Spawn = unsafe extern "C" fn(
    *mut libc::pid_t,
    *const c_char,
    *const c_void,
    *const c_void,
    CStringArray,
    CStringArray,
) -> c_int;

/// The next definition of each function.
#[derive(Clone, Copy)]
pub struct NextFunctions {
    pub malloc: unsafe extern "C" fn(usize) -> BlockPointer,
    pub free: unsafe extern "C" fn(BlockPointer),
    pub calloc: unsafe extern "C" fn(usize, usize) -> BlockPointer,
    pub realloc: unsafe extern "C" fn(BlockPointer, usize) -> BlockPointer,
    pub reallocarray: Option<unsafe extern "C" fn(BlockPointer, usize, usize) -> BlockPointer>,
    pub posix_memalign: Option<unsafe extern "C" fn(*mut BlockPointer, usize, usize) -> c_int>,
    pub aligned_alloc: Option<unsafe extern "C" fn(usize, usize) -> BlockPointer>,
    pub memalign: Option<unsafe extern "C" fn(usize, usize) -> BlockPointer>,
    pub valloc: Option<unsafe extern "C" fn(usize) -> BlockPointer>,
    pub pvalloc: Option<unsafe extern "C" fn(usize) -> BlockPointer>,
    pub usable_size: Option<unsafe extern "C" fn(BlockPointer) -> usize>,
    pub free_sized: Option<unsafe extern "C" fn(BlockPointer, usize)>,
    pub free_aligned_sized: Option<unsafe extern "C" fn(BlockPointer, usize, usize)>,
    pub pthread_create: Option<
        unsafe extern "C" fn(
            *mut libc::pthread_t,
            *const libc::pthread_attr_t,
            StartRoutine,
            BlockPointer,
        ) -> c_int,
    >,
    pub fork: Option<unsafe extern "C" fn() -> libc::pid_t>,
    pub mallopt: Option<unsafe extern "C" fn(c_int, c_int) -> c_int>,
    pub malloc_trim: Option<unsafe extern "C" fn(usize) -> c_int>,
    pub mallinfo: Option<unsafe extern "C" fn() -> libc::mallinfo>,
    pub mallinfo2: Option<unsafe extern "C" fn() -> libc::mallinfo2>,
    pub execve: Option<unsafe extern "C" fn(*const c_char, CStringArray, CStringArray) -> c_int>,
    pub execv: Option<unsafe extern "C" fn(*const c_char, CStringArray) -> c_int>,
    pub execvp: Option<unsafe extern "C" fn(*const c_char, CStringArray) -> c_int>,
    pub execvpe: Option<unsafe extern "C" fn(*const c_char, CStringArray, CStringArray) -> c_int>,
    pub posix_spawn: Option<Spawn>,
    pub posix_spawnp: Option<Spawn>,
}

struct NextCell(UnsafeCell<NextFunctions>);

// SAFETY: written once, at the process's first call, when there is one thread.
unsafe impl Sync for NextCell {}

static NEXT: NextCell = NextCell(UnsafeCell::new(NextFunctions {
    malloc: first::malloc,
    free: first::free,
    calloc: first::calloc,
    realloc: first::realloc,
    reallocarray: None,
    posix_memalign: None,
    aligned_alloc: None,
    memalign: None,
    valloc: None,
    pvalloc: None,
    usable_size: None,
    free_sized: None,
    free_aligned_sized: None,
    pthread_create: None,
    fork: None,
    mallopt: None,
    malloc_trim: None,
    mallinfo: None,
    mallinfo2: None,
    execve: None,
    execv: None,
    execvp: None,
    execvpe: None,
    posix_spawn: None,
    posix_spawnp: None,
}));

/// Returns the next definitions of all these functions.
#[inline(always)]
pub fn next() -> &'static NextFunctions {
    // SAFETY: see `NextCell`.
    unsafe { &*NEXT.0.get() }
}

const NOT_YET: u8 = 0;
const UNDER_WAY: u8 = 1;
const DONE: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(NOT_YET);
static MALLOC: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// Finds the definitions, once per process. Returns false while that is under way: the search
/// itself may allocate.
pub fn find() -> bool {
    match STATE.load(Ordering::Acquire) {
        DONE => return true,
        UNDER_WAY => return false,
        _ => STATE.store(UNDER_WAY, Ordering::Relaxed),
    }
    // SAFETY: each name is looked up with its C type.
    unsafe {
        let found = NextFunctions {
            malloc: must(c"malloc"),
            free: must(c"free"),
            calloc: must(c"calloc"),
            realloc: must(c"realloc"),
            reallocarray: look(c"reallocarray"),
            posix_memalign: look(c"posix_memalign"),
            aligned_alloc: look(c"aligned_alloc"),
            memalign: look(c"memalign"),
            valloc: look(c"valloc"),
            pvalloc: look(c"pvalloc"),
            usable_size: look(c"malloc_usable_size"),
            free_sized: look(c"free_sized"),
            free_aligned_sized: look(c"free_aligned_sized"),
            pthread_create: look(c"pthread_create"),
            fork: look(c"fork"),
            mallopt: look(c"mallopt"),
            malloc_trim: look(c"malloc_trim"),
            mallinfo: look(c"mallinfo"),
            mallinfo2: look(c"mallinfo2"),
            execve: look(c"execve"),
            execv: look(c"execv"),
            execvp: look(c"execvp"),
            execvpe: look(c"execvpe"),
            posix_spawn: look(c"posix_spawn"),
            posix_spawnp: look(c"posix_spawnp"),
        };
        NEXT.0.get().write(found);
    }
    MALLOC.store(find_path_of_malloc().cast_mut(), Ordering::Relaxed);
    STATE.store(DONE, Ordering::Release);
    true
}

/// Returns the next definition of a function.
///
/// # Safety
/// `F` is the type of a pointer to a function of that name.
pub unsafe fn look<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<BlockPointer>()) };
    // SAFETY: guaranteed by the caller.
    unsafe {
        let found = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        if found.is_null() {
            None
        } else {
            Some(core::mem::transmute_copy(&found))
        }
    }
}

unsafe fn must<F: Copy>(name: &CStr) -> F {
    // SAFETY: guaranteed by the caller.
    match unsafe { look(name) } {
        Some(found) => found,
        None => give_up(
            c"heapmark's recorder: no library behind it defines malloc, free, calloc and realloc\n",
        ),
    }
}

/// Prints the reason on stderr and ends the process.
pub fn give_up(why: &CStr) -> ! {
    // SAFETY: writes a string of ours.
    unsafe {
        libc::syscall(libc::SYS_write, 2, why.as_ptr(), why.count_bytes());
        libc::abort()
    }
}

/// Returns the path of the object that defines the next `malloc`; null if the dynamic linker cannot
/// find it.
pub fn path_of_malloc() -> *const c_char {
    MALLOC.load(Ordering::Relaxed)
}

/// Looks up the path once: a child may have neither the stack for it nor, after a fork by a thread,
/// the dynamic linker's locks.
fn find_path_of_malloc() -> *const c_char {
    // SAFETY: `dladdr` fills the structure, for which zeros are valid.
    unsafe {
        let mut found: libc::Dl_info = core::mem::zeroed();
        let known = libc::dladdr(next().malloc as *const c_void, &mut found) != 0;
        if known {
            found.dli_fname
        } else {
            core::ptr::null()
        }
    }
}

/// The functions in use during the search for the next ones. Only the dynamic linker can call them,
/// and gets memory that is never reused. Hooks keep blocks of that memory away from `free` and
/// `realloc`.
mod first {
    use super::*;

    pub extern "C" fn malloc(size: usize) -> BlockPointer {
        take(size)
    }

    pub extern "C" fn free(_: BlockPointer) {}

    pub extern "C" fn calloc(count: usize, size: usize) -> BlockPointer {
        take(count.saturating_mul(size))
    }

    pub extern "C" fn realloc(_: BlockPointer, size: usize) -> BlockPointer {
        take(size)
    }
}

const ARENA_BYTES: usize = 16 << 10;

#[repr(align(16))]
struct Arena(UnsafeCell<[u8; ARENA_BYTES]>);

// SAFETY: each block is handed out once.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new([0; ARENA_BYTES]));
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Returns zeroed memory that has never been handed out.
fn take(size: usize) -> BlockPointer {
    let size = size.saturating_add(15) & !15;
    let at = TAKEN.fetch_add(size, Ordering::Relaxed);
    if at.saturating_add(size) > ARENA_BYTES {
        give_up(c"heapmark's recorder: the dynamic linker needs more memory than expected\n");
    }
    ARENA.0.get().cast::<u8>().wrapping_add(at).cast()
}

/// Copies the contents of a block of the arena into a block of this size. The size of the old block
/// is not known, so the bytes that follow it are copied, too.
///
/// # Safety
/// Both blocks are the caller's.
pub unsafe fn copy_first(old: BlockPointer, new: BlockPointer, size: usize) {
    let end = ARENA.0.get() as usize + ARENA_BYTES;
    // SAFETY: reads from the arena up to its end, and writes what the new block has room for.
    unsafe { new.copy_from(old, size.min(end - old as usize)) };
}

/// Returns whether the block comes from the arena, and so was not made by the next library.
#[inline(always)]
pub fn is_first(block: BlockPointer) -> bool {
    (block as usize).wrapping_sub(ARENA.0.get() as usize) < ARENA_BYTES
}
