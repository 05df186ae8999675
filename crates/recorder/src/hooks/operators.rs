//! The C++ operators: `new` and `delete` in all twenty forms. Only here are the sizes and
//! alignments visible that C++ passes to its allocator.
//!
//! The operators call `malloc`, `aligned_alloc` and `free` of the next library directly, as those
//! of the C++ libraries do: one call of the program is one event, and nothing passes through a
//! library that would call back. Only if memory runs out is the next definition of the operator
//! used, with its handlers and the exception. The recorder jumps to it, so that none of its own
//! frames stands between the exception and its handler. The same happens if a program replaces some
//! of the operators: the C++ library builds the others from these.

use crate::next::{BlockPointer, give_up, is_first, look, next};
use crate::record::{record, record_after, record_before};
use crate::{interposers, large};
use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};
use heapmark_wire::capture::{Call, Event, Variant};

extern "C" fn new(size: usize) -> BlockPointer {
    if interposers::has_operators() {
        return core::ptr::null_mut();
    }
    let block = record_after(
        // SAFETY: malloc accepts any size. C++ requires a block where C may return none.
        move || unsafe { (next().malloc)(size.max(1)) },
        move |address| Event::Malloc {
            address,
            size: size as u64,
            operator: true,
        },
        move || Event::Failed {
            call: Call::Operator,
            size: size as u64,
        },
    );
    large::born(block, size);
    block
}

extern "C" fn new_aligned(size: usize, align: usize) -> BlockPointer {
    if interposers::has_operators() {
        return core::ptr::null_mut();
    }
    // C requires a size that is a multiple of the alignment.
    let whole = size.max(1).checked_next_multiple_of(align.max(1));
    let block = record_after(
        || match (next().aligned_alloc, whole) {
            // SAFETY: the arguments meet the requirements of C.
            (Some(call), Some(whole)) => unsafe { call(align, whole) },
            _ => core::ptr::null_mut(),
        },
        move |address| Event::Aligned {
            address,
            align: align as u64,
            size: size as u64,
            variant: Variant::Operator,
        },
        move || Event::Failed {
            call: Call::Operator,
            size: size as u64,
        },
    );
    large::born(block, size);
    block
}

#[inline(always)]
unsafe fn delete(block: BlockPointer, event: impl FnOnce(u64) -> Event<'static>) {
    if block.is_null() {
        return record(Event::FreeNull);
    }
    if is_first(block) {
        return;
    }
    large::dies(block);
    // SAFETY: valid if the program's own call is.
    record_before(event(block as u64), || unsafe { (next().free)(block) });
}

/// The symbol names of all forms of `new`.
const NEWS: [&CStr; 8] = [
    c"_Znwm",
    c"_Znam",
    c"_ZnwmSt11align_val_t",
    c"_ZnamSt11align_val_t",
    c"_ZnwmRKSt9nothrow_t",
    c"_ZnamRKSt9nothrow_t",
    c"_ZnwmSt11align_val_tRKSt9nothrow_t",
    c"_ZnamSt11align_val_tRKSt9nothrow_t",
];
const FIRST_NOTHROW: usize = 4;

/// Any of the operators: none has more arguments.
type Operator = extern "C" fn(usize, usize, usize) -> BlockPointer;

/// Returns the function to which an operator jumps if it has failed, or if the recorder must not
/// serve it.
extern "C" fn behind<const FORM: usize>() -> Operator {
    extern "C" fn nothing(_: usize, _: usize, _: usize) -> BlockPointer {
        core::ptr::null_mut()
    }
    static FOUND: [AtomicUsize; NEWS.len()] = [const { AtomicUsize::new(0) }; NEWS.len()];
    match next_operator(NEWS[FORM], &FOUND[FORM]) {
        Some(found) => found,
        None if FORM >= FIRST_NOTHROW => nothing,
        None => give_up(c"heapmark's recorder: out of memory, and no C++ library is loaded to throw an exception\n"),
    }
}

/// Returns the next definition of an operator, looked up once.
#[cold]
fn next_operator(name: &CStr, known: &AtomicUsize) -> Option<Operator> {
    let mut found = known.load(Ordering::Relaxed);
    if found == 0 {
        // SAFETY: the names are those of functions; the libraries stay as they are.
        found =
            unsafe { look::<BlockPointer>(name).unwrap_or_else(|| in_late_library(name)) } as usize;
        known.store(found, Ordering::Relaxed);
    }
    // SAFETY: the address of an operator, or null.
    unsafe { core::mem::transmute(found) }
}

/// Returns the next definition for a C program that has loaded a C++ library later, outside the global
/// search order.
fn in_late_library(name: &CStr) -> BlockPointer {
    let libraries = [c"libstdc++.so.6", c"libc++.so.1"].into_iter();
    // SAFETY: looks at what is loaded, and loads nothing.
    let found = libraries.map(|library| unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            handle
        } else {
            libc::dlsym(handle, name.as_ptr())
        }
    });
    found
        .into_iter()
        .find(|found| !found.is_null())
        .unwrap_or(core::ptr::null_mut())
}

macro_rules! news {
    ($($form:literal $name:ident $ours:ident;)*) => { $(
        /// # Safety
        /// The requirements of C++ for this operator hold.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(size: usize, second: usize, third: usize) -> BlockPointer {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "call {ours}",
                "test rax, rax",
                "je 2f",
                "add rsp, 24",
                "ret",
                "2:",
                "call {behind}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                ours = sym $ours,
                behind = sym behind::<$form>,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                "stp x29, x30, [sp, #-48]!",
                "stp x0, x1, [sp, #16]",
                "str x2, [sp, #32]",
                "bl {ours}",
                "cbnz x0, 2f",
                "bl {behind}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]",
                "ldr x2, [sp, #32]",
                "ldp x29, x30, [sp], #48",
                "br x16",
                "2:",
                "ldp x29, x30, [sp], #48",
                "ret",
                ours = sym $ours,
                behind = sym behind::<$form>,
            );
        }
    )* };
}

news! {
    0 _Znwm new;
    1 _Znam new;
    2 _ZnwmSt11align_val_t new_aligned;
    3 _ZnamSt11align_val_t new_aligned;
    4 _ZnwmRKSt9nothrow_t new;
    5 _ZnamRKSt9nothrow_t new;
    6 _ZnwmSt11align_val_tRKSt9nothrow_t new_aligned;
    7 _ZnamSt11align_val_tRKSt9nothrow_t new_aligned;
}

/// Passes a call to the next definition of an operator; returns false if there is none.
#[cold]
fn leave<const ARGUMENTS: usize>(
    name: &'static str,
    known: &AtomicUsize,
    arguments: [usize; ARGUMENTS],
) -> bool {
    let name = CStr::from_bytes_with_nul(name.as_bytes());
    let Some(call) = name.ok().and_then(|name| next_operator(name, known)) else {
        return false;
    };
    let argument = |place: usize| arguments.get(place).copied().unwrap_or(0);
    call(argument(0), argument(1), argument(2));
    true
}

macro_rules! deletes {
    ($($name:ident($($argument:ident),*) $event:expr;)*) => { $(
        /// # Safety
        /// The requirements of C++ for this operator hold.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(block: BlockPointer $(, $argument: usize)*) {
            static FOUND: AtomicUsize = AtomicUsize::new(0);
            if interposers::has_operators()
                && leave(concat!(stringify!($name), "\0"), &FOUND, [block as usize $(, $argument)*])
            {
                return;
            }
            // SAFETY: valid if the program's own call is.
            unsafe { delete(block, |address| $event(address $(, $argument as u64)*)) }
        }
    )* };
}

fn plain(address: u64) -> Event<'static> {
    Event::Free {
        address,
        operator: true,
    }
}

fn plain_nothrow(address: u64, _nothrow: u64) -> Event<'static> {
    plain(address)
}

fn sized(address: u64, size: u64) -> Event<'static> {
    Event::FreeSized {
        address,
        size,
        operator: true,
    }
}

fn aligned(address: u64, align: u64) -> Event<'static> {
    Event::FreeAligned { address, align }
}

fn aligned_nothrow(address: u64, align: u64, _nothrow: u64) -> Event<'static> {
    aligned(address, align)
}

fn aligned_sized(address: u64, size: u64, align: u64) -> Event<'static> {
    Event::FreeAlignedSized {
        address,
        align,
        size,
        operator: true,
    }
}

deletes! {
    _ZdlPv() plain;
    _ZdaPv() plain;
    _ZdlPvRKSt9nothrow_t(nothrow) plain_nothrow;
    _ZdaPvRKSt9nothrow_t(nothrow) plain_nothrow;
    _ZdlPvm(size) sized;
    _ZdaPvm(size) sized;
    _ZdlPvSt11align_val_t(align) aligned;
    _ZdaPvSt11align_val_t(align) aligned;
    _ZdlPvSt11align_val_tRKSt9nothrow_t(align, nothrow) aligned_nothrow;
    _ZdaPvSt11align_val_tRKSt9nothrow_t(align, nothrow) aligned_nothrow;
    _ZdlPvmSt11align_val_t(size, align) aligned_sized;
    _ZdaPvmSt11align_val_t(size, align) aligned_sized;
}
