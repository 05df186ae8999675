//! Calls that few workloads make, checked once for each library: alignments above 16, sizes near
//! overflow, `malloc_usable_size`, `realloc` of large blocks. Each finding is one line of the
//! report and does not end the process: a library may be wrong here and right in everything that is
//! measured.

use crate::api::{Api, beside_free};
use crate::report;
use core::cell::Cell;
use core::ffi::{CStr, c_void};
use core::fmt::Arguments;
use core::mem::transmute;
use core::ptr;

/// `aligned_alloc` and `memalign`: alignment, then size.
type Aligned = unsafe extern "C" fn(usize, usize) -> *mut u8;

/// Alignments above that of malloc, up to a page.
const ALIGNMENTS: [usize; 8] = [32, 64, 128, 256, 512, 1024, 2048, 4096];
/// Number of blocks that are live at a time.
const LIVE: usize = 64;
/// Sizes, in bytes, of a block that grows until an allocator may move it with `mremap` instead of
/// copying it, and then shrinks again.
const STEPS: [usize; 8] = [100, 3000, 200 << 10, 3 << 20, 24 << 20, 5 << 20, 70_000, 64];

/// A size beyond any address space; twice this size overflows to 0.
const HALF: usize = usize::MAX / 2 + 1;

#[derive(Clone, Copy)]
struct CornerBlock {
    address: *mut u8,
    size: usize,
}

const NONE: CornerBlock = CornerBlock {
    address: ptr::null_mut(),
    size: 0,
};

// Names that show which call crashed if the process of a check crashes; ordinary calls do not
// crash.
const CALLOC_OVERFLOW: &str = "calloc of a product that overflows";
const MALLOC_OVERFLOW: &str = "malloc of more than any memory";
const REALLOC_OVERFLOW: &str = "realloc to more than any memory";

/// The checks. Each runs in a process of its own, so that an error in one does not affect another.
pub const ALL: [&str; 8] = [
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    CALLOC_OVERFLOW,
    MALLOC_OVERFLOW,
    REALLOC_OVERFLOW,
    "malloc_usable_size",
    "realloc of large blocks",
];

struct CornerCheck<'a> {
    api: &'a Api,
}

/// Runs one of the checks in [`ALL`].
pub fn look(api: &Api, corner: &str) {
    let look = CornerCheck { api };
    match corner {
        "posix_memalign" => look.aligned(corner, |alignment, size| {
            let mut block = ptr::null_mut();
            // SAFETY: an ordinary call with a place for its result.
            let error = unsafe { (api.posix_memalign)(&mut block, alignment, size) };
            if error == 0 { block } else { ptr::null_mut() }
        }),
        "aligned_alloc" => look.aligned_by(corner, c"aligned_alloc"),
        "memalign" => look.aligned_by(corner, c"memalign"),
        CALLOC_OVERFLOW => look.calloc_overflow(),
        MALLOC_OVERFLOW => look.malloc_overflow(),
        REALLOC_OVERFLOW => look.realloc_overflow(),
        "malloc_usable_size" => look.usable_size(),
        _ => look.large_realloc(),
    }
}

impl CornerCheck<'_> {
    fn tell(&self, finding: Arguments<'_>) {
        // If the report is full, enough has been reported.
        report::write(format_args!("finding={finding}"));
    }

    fn free(&self, block: *mut u8) {
        // SAFETY: a live block of this allocator's, or NULL.
        unsafe { (self.api.free)(block) };
    }

    /// Runs [`CornerCheck::aligned`] with a function that the allocator may lack.
    fn aligned_by(&self, name: &str, function: &CStr) {
        if let Some(function) = beside_free(function) {
            // SAFETY: both have this signature wherever they are defined.
            let call = unsafe { transmute::<*mut c_void, Aligned>(function) };
            // SAFETY: an ordinary call.
            self.aligned(name, |alignment, size| unsafe { call(alignment, size) });
        }
    }

    /// Checks blocks of each alignment, many live at a time, each filled with its own byte.
    fn aligned(&self, name: &str, call: impl Fn(usize, usize) -> *mut u8) {
        let is_reported = Cell::new(false);
        let tell = |finding: Arguments<'_>| {
            if !is_reported.replace(true) {
                self.tell(finding);
            }
        };
        for alignment in ALIGNMENTS {
            let mut blocks = [NONE; LIVE];
            for (index, block) in blocks.iter_mut().enumerate() {
                // Multiples of the alignment, as aligned_alloc requires.
                let size = alignment * (1 + index % 3);
                let address = call(alignment, size);
                if address.is_null() {
                    tell(format_args!(
                        "{name}({alignment}, {size}) returned no block"
                    ));
                    continue;
                }
                if !address.addr().is_multiple_of(alignment) {
                    tell(format_args!(
                        "{name}({alignment}, {size}) returned a block that is not aligned to that"
                    ));
                }
                // SAFETY: the block has that many bytes.
                unsafe { address.write_bytes(index as u8 + 1, size) };
                *block = CornerBlock { address, size };
            }
            for (index, block) in blocks
                .iter()
                .enumerate()
                .filter(|(_, block)| !block.address.is_null())
            {
                // SAFETY: a live block of that size, which was filled.
                let bytes = unsafe { core::slice::from_raw_parts(block.address, block.size) };
                if bytes.iter().any(|byte| *byte != index as u8 + 1) {
                    tell(format_args!(
                        "{name}({alignment}, {}) returned a block that overlaps another",
                        block.size
                    ));
                }
            }
            blocks.iter().for_each(|block| self.free(block.address));
        }
    }

    /// Checks that requests which no memory can hold are refused. A block that was returned anyway
    /// is not freed.
    fn calloc_overflow(&self) {
        for (count, size) in [
            (HALF, 2),
            (2, HALF),
            (usize::MAX / 16 + 2, 16),
            (1 << 33, (1 << 31) + 1),
        ] {
            // SAFETY: an ordinary call.
            if !unsafe { (self.api.calloc)(count, size) }.is_null() {
                return self.tell(format_args!(
                    "calloc({count}, {size}) returned memory: the product overflows"
                ));
            }
        }
    }

    fn malloc_overflow(&self) {
        for size in [usize::MAX, usize::MAX - 64, HALF] {
            // SAFETY: an ordinary call.
            if !unsafe { (self.api.malloc)(size) }.is_null() {
                return self.tell(format_args!(
                    "malloc({size}) returned memory: there is not so much"
                ));
            }
        }
    }

    /// Checks that a failed realloc leaves the block as it was.
    fn realloc_overflow(&self) {
        const BYTES: usize = 100;
        let much = usize::MAX - 64;
        // SAFETY: ordinary calls; the block is written within its size.
        unsafe {
            let block = (self.api.malloc)(BYTES);
            if block.is_null() {
                return self.tell(format_args!("malloc({BYTES}) returned no block"));
            }
            block.write_bytes(7, BYTES);
            if !(self.api.realloc)(block, much).is_null() {
                self.tell(format_args!(
                    "realloc to {much} bytes returned memory: there is not so much"
                ));
            } else if !filled(block, BYTES, 7) {
                self.tell(format_args!(
                    "realloc to {much} bytes failed and did not leave the block as it was"
                ));
            } else {
                self.free(block);
            }
        }
    }

    /// Checks that the usable size is at least the requested size and reaches into no other block.
    fn usable_size(&self) {
        if beside_free(c"malloc_usable_size").is_none() {
            return;
        }
        for size in [1, 8, 24, 100, 500, 3000, 20_000, 150_000, 3_000_000] {
            let mut blocks = [NONE; LIVE];
            for block in &mut blocks {
                // SAFETY: ordinary calls.
                let address = unsafe { (self.api.malloc)(size) };
                if address.is_null() {
                    return self.tell(format_args!("malloc({size}) returned no block"));
                }
                *block = CornerBlock {
                    address,
                    // SAFETY: a live block.
                    size: unsafe { (self.api.usable_size)(address) },
                };
            }
            let short = blocks.iter().find(|block| block.size < size);
            let reaches = |one: &CornerBlock, other: &CornerBlock| {
                let start = one.address.addr();
                (start..start.saturating_add(one.size)).contains(&other.address.addr())
            };
            let places = |index: usize, one: &CornerBlock| {
                blocks
                    .iter()
                    .enumerate()
                    .any(|(other, block)| other != index && reaches(one, block))
            };
            let long = blocks
                .iter()
                .enumerate()
                .find(|(index, block)| places(*index, block));
            if let Some(block) = short {
                self.tell(format_args!(
                    "malloc_usable_size says {} of a block of {size} bytes",
                    block.size
                ));
            } else if let Some((_, block)) = long {
                let usable = block.size;
                self.tell(format_args!(
                    "malloc_usable_size says {usable} of a block of {size} bytes, where another block begins"
                ));
            }
            blocks.iter().for_each(|block| self.free(block.address));
            if short.is_some() || long.is_some() {
                break;
            }
        }
    }

    /// Checks that a block that grows and shrinks keeps its contents.
    fn large_realloc(&self) {
        let mut block = NONE;
        for (step, size) in STEPS.into_iter().enumerate() {
            // SAFETY: NULL or a live block.
            let address = unsafe { (self.api.realloc)(block.address, size) };
            if address.is_null() {
                return self.tell(format_args!(
                    "realloc from {} to {size} bytes returned no block",
                    block.size
                ));
            }
            let kept = block.size.min(size);
            block = CornerBlock { address, size };
            // SAFETY: the block has that many bytes, of which the first `kept` were filled.
            if !unsafe { filled(address, kept, step as u8) } {
                return self.tell(format_args!(
                    "realloc to {size} bytes lost what the block held"
                ));
            }
            // SAFETY: as above.
            unsafe { address.write_bytes(step as u8 + 1, size) };
        }
        self.free(block.address);
    }
}

/// Whether a block begins with this many bytes of the given value.
///
/// # Safety
/// The block must have that many bytes, and they must have been written.
unsafe fn filled(block: *mut u8, bytes: usize, byte: u8) -> bool {
    // SAFETY: as the caller promises.
    unsafe { core::slice::from_raw_parts(block, bytes) }
        .iter()
        .all(|found| *found == byte)
}
