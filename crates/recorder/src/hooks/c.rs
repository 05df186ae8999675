//! The malloc family of C.

use crate::next::{BlockPointer, copy_first, is_first, next};
use crate::record::{entered, record, record_after, record_before};
use crate::thread::{found, record_rare};
use crate::{large, metadata};
use core::ffi::c_int;
use heapmark_wire::capture::{Call, Event, Variant};

fn failed(call: Call, size: usize) -> Event<'static> {
    Event::Failed {
        call,
        size: size as u64,
    }
}

/// # Safety
/// The requirements of C for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> BlockPointer {
    let block = record_after(
        // SAFETY: valid if the program's own call is.
        move || unsafe { (next().malloc)(size) },
        move |address| Event::Malloc {
            address,
            size: size as u64,
            operator: false,
        },
        move || failed(Call::Malloc, size),
    );
    large::born(block, size);
    block
}

/// # Safety
/// The requirements of C for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: BlockPointer) {
    if block.is_null() {
        return record(Event::FreeNull);
    }
    if is_first(block) {
        return;
    }
    large::dies(block);
    // SAFETY: valid if the program's own call is.
    record_before(
        Event::Free {
            address: block as u64,
            operator: false,
        },
        || unsafe { (next().free)(block) },
    );
}

/// # Safety
/// The requirements of C for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> BlockPointer {
    let product = count.saturating_mul(size);
    let block = record_after(
        // SAFETY: valid if the program's own call is.
        move || unsafe { (next().calloc)(count, size) },
        move |address| Event::Calloc {
            address,
            count: count as u64,
            size: size as u64,
        },
        move || failed(Call::Calloc, product),
    );
    large::born(block, product);
    block
}

/// # Safety
/// The requirements of C for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(old: BlockPointer, size: usize) -> BlockPointer {
    // SAFETY: valid if the program's own call is.
    resize(old, size, || unsafe { (next().realloc)(old, size) })
}

/// # Safety
/// The requirements of glibc and the BSDs for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    old: BlockPointer,
    count: usize,
    size: usize,
) -> BlockPointer {
    let product = count.saturating_mul(size);
    resize(old, product, || match found().reallocarray {
        // SAFETY: valid if the program's own call is.
        Some(call) => unsafe { call(old, count, size) },
        None if product == usize::MAX => no_memory(),
        // SAFETY: valid if the program's own call is.
        None => unsafe { (next().realloc)(old, product) },
    })
}

#[inline(always)]
fn resize(old: BlockPointer, size: usize, call: impl FnOnce() -> BlockPointer) -> BlockPointer {
    if is_first(old) {
        // SAFETY: valid if the program's own call is.
        return unsafe { leave_first(old, size) };
    }
    let was_large = match old.is_null() {
        true => None,
        false => large::dies(old),
    };
    let entered = entered();
    let event = |new| Event::Realloc {
        old: old as u64,
        new,
        size: size as u64,
        entered,
    };
    // NULL may also mean that the call was only to free the block, and did.
    let none = || {
        if size == 0 && !old.is_null() {
            event(0)
        } else {
            failed(Call::Realloc, size)
        }
    };
    let block = record_after(call, event, none);
    large::born(block, size);
    if let Some(bytes) = was_large
        && block.is_null()
        && size > 0
    {
        // The call failed: the old block remains as it was.
        large::born(old, bytes);
    }
    block
}

/// Replaces a block of the arena, which the allocator did not make.
#[cold]
#[inline(never)]
unsafe fn leave_first(old: BlockPointer, size: usize) -> BlockPointer {
    // SAFETY: the old block belongs to the program, and the new one is not handed out yet.
    unsafe {
        let new = malloc(size);
        if !new.is_null() {
            copy_first(old, new, size);
        }
        new
    }
}

fn no_memory() -> BlockPointer {
    // SAFETY: the variable belongs to the calling thread.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    core::ptr::null_mut()
}

#[inline(always)]
fn aligned(
    variant: Variant,
    align: usize,
    size: usize,
    call: impl FnOnce() -> BlockPointer,
) -> BlockPointer {
    let block = record_after(
        call,
        move |address| Event::Aligned {
            address,
            align: align as u64,
            size: size as u64,
            variant,
        },
        move || failed(Call::Aligned, size),
    );
    large::born(block, size);
    block
}

/// # Safety
/// The requirements of POSIX for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    place: *mut BlockPointer,
    align: usize,
    size: usize,
) -> c_int {
    let mut result = libc::ENOMEM;
    let block = aligned(Variant::PosixMemalign, align, size, || {
        let Some(call) = found().posix_memalign else {
            return core::ptr::null_mut();
        };
        let mut block = core::ptr::null_mut();
        // SAFETY: valid if the program's own call is.
        result = unsafe { call(&mut block, align, size) };
        if result == 0 {
            block
        } else {
            core::ptr::null_mut()
        }
    });
    if result == 0 {
        // SAFETY: the program provides the place.
        unsafe { place.write(block) };
    }
    result
}

/// # Safety
/// The requirements of C for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> BlockPointer {
    let call = found().aligned_alloc;
    aligned(Variant::AlignedAlloc, align, size, || {
        // SAFETY: valid if the program's own call is.
        call.map_or_else(no_memory, |call| unsafe { call(align, size) })
    })
}

/// # Safety
/// The requirements of glibc for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: usize, size: usize) -> BlockPointer {
    let call = found().memalign;
    aligned(Variant::Memalign, align, size, || {
        // SAFETY: valid if the program's own call is.
        call.map_or_else(no_memory, |call| unsafe { call(align, size) })
    })
}

/// # Safety
/// The requirements of glibc for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(size: usize) -> BlockPointer {
    let call = found().valloc;
    aligned(Variant::Valloc, metadata::page_bytes(), size, || {
        // SAFETY: valid if the program's own call is.
        call.map_or_else(no_memory, |call| unsafe { call(size) })
    })
}

/// # Safety
/// The requirements of glibc for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvalloc(size: usize) -> BlockPointer {
    let call = found().pvalloc;
    aligned(Variant::Pvalloc, metadata::page_bytes(), size, || {
        // SAFETY: valid if the program's own call is.
        call.map_or_else(no_memory, |call| unsafe { call(size) })
    })
}

/// # Safety
/// The requirements of glibc for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: BlockPointer) -> usize {
    let Some(call) = found().usable_size else {
        return 0;
    };
    if block.is_null() || is_first(block) {
        return 0;
    }
    // SAFETY: valid if the program's own call is.
    record_before(
        Event::UsableSize {
            address: block as u64,
        },
        || unsafe { call(block) },
    )
}

/// # Safety
/// The requirements of C23 for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: BlockPointer, size: usize) {
    if block.is_null() {
        return record_rare(&Event::FreeNull);
    }
    if is_first(block) {
        return;
    }
    large::dies(block);
    let event = Event::FreeSized {
        address: block as u64,
        size: size as u64,
        operator: false,
    };
    record_before(event, || match next().free_sized {
        // SAFETY: valid if the program's own call is.
        Some(call) => unsafe { call(block, size) },
        // SAFETY: C23 allows `free` instead of `free_sized`.
        None => unsafe { (next().free)(block) },
    });
}

/// # Safety
/// The requirements of C23 for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: BlockPointer, align: usize, size: usize) {
    if block.is_null() {
        return record_rare(&Event::FreeNull);
    }
    if is_first(block) {
        return;
    }
    large::dies(block);
    let (address, align64, size64) = (block as u64, align as u64, size as u64);
    let event = Event::FreeAlignedSized {
        address,
        align: align64,
        size: size64,
        operator: false,
    };
    record_before(event, || match next().free_aligned_sized {
        // SAFETY: valid if the program's own call is.
        Some(call) => unsafe { call(block, align, size) },
        // SAFETY: C23 allows `free` instead of `free_aligned_sized`.
        None => unsafe { (next().free)(block) },
    });
}
