//! `late-free`: blocks that are freed when the program, or the thread that allocated them, is about to end, when the
//! allocator may already have torn down its own state. Each time, a new process frees its blocks so late, and another
//! process frees the same blocks just before that point, for comparison.

use super::*;
use crate::memory;
use crate::stack::Stack;
use crate::started::{self, StartOrder};
use crate::text::{c_str_in, number};
use crate::threads;
use core::ffi::{CStr, c_int, c_void};

pub const KERNEL: Kernel = Kernel {
    memory: MemoryPoints::OwnAlone,
    ..Kernel::of_memory("late-free", &["processes", "blocks", "size", "place"], run)
};

/// The word by which `main` recognizes a started process.
pub const WORD: &CStr = c"late-free";

unsafe extern "C" {
    // Declared as in glibc: the function, its argument, and its library.
    fn __cxa_atexit(
        call: extern "C" fn(*mut c_void),
        argument: *mut c_void,
        library: *mut c_void,
    ) -> c_int;
}

/// The report of a started process, which writes it into an inherited file. The same program reads that file.
#[derive(Clone, Copy, Default)]
struct FreedReport {
    blocks: u64,
    span: Span,
}

fn run(bench: &mut Bench) {
    let processes = bench.count("processes");
    let (blocks, size) = (bench.count("blocks"), bench.count("size").max(1));
    bench.needs((blocks * (4 * size + size_of::<*mut u8>())) as u64);
    // A thread may have a heap of its own, so late frees in a thread are compared with early frees in a thread.
    let (place, early_place) = match bench.parameter("place") {
        "atexit" => (c"atexit", c"main"),
        "destructor" => (c"destructor", c"main"),
        "key" => (c"key", c"thread"),
        _ => (c"key-again", c"thread"),
    };
    // SAFETY: the kernel only reads the name. Started processes inherit the file.
    let file = unsafe {
        let name = c"late-free".as_ptr().addr();
        sys::call(libc::SYS_memfd_create, [name])
    };
    if file < 0 {
        fail!("error", "late-free: no memory file");
    }
    let mut rooms = [[0; 24]; 3];
    let [file_text, blocks_text, size_text] = &mut rooms;
    let in_words = [
        (file_text, file as usize),
        (blocks_text, blocks),
        (size_text, size),
    ]
    .map(|(room, number)| c_str_in(room, format_args!("{number}")).unwrap_or_default());
    let mut calls = 0;
    let mut freed_by = |place: &CStr| {
        let [file_word, blocks_word, size_word] = in_words;
        let owner = started::malloc_owner();
        let ended = started::run(&StartOrder {
            arguments: &[WORD, owner, place, file_word, blocks_word, size_word],
            ..StartOrder::default()
        });
        let what = match place.to_bytes() {
            b"main" => "a process that frees in main",
            b"thread" => "a process that frees in a thread",
            b"atexit" => "a process that frees in a function of atexit",
            b"destructor" => "a process that frees after the destructors of its libraries",
            _ => "a process that frees in the destructor of a thread's key",
        };
        started::must_have_worked(ended.status, what);
        let freed = take(file as usize);
        if freed.blocks != blocks as u64 {
            fail!(
                "wrong-result",
                "{what} ended after {} blocks of {blocks}",
                freed.blocks
            );
        }
        calls += freed.blocks;
        freed.span
    };
    let mut expected = 0;
    bench.begin();
    for round in bench.rounds() {
        let [mut late, mut early] = [Span::default(); 2];
        for _ in 0..processes {
            early += freed_by(early_place);
            late += freed_by(place);
        }
        let frees = (processes * blocks) as u64;
        expected += 2 * frees;
        bench.record(round, late, frees);
        if retained::is_wanted() && !round.cold {
            let of_one = |span: Span| span.wall_ns as f64 / frees.max(1) as f64;
            bench.figure("late_free_ns", of_one(late));
            bench.figure("early_free_ns", of_one(early));
            bench.figure("late_free_ratio", of_one(late) / of_one(early));
        }
    }
    let of = |calls: u64| KernelWork::pairs(calls, calls * size as u64);
    bench.account(&of(calls), &of(expected));
    bench.requested_peak((blocks * size) as u64);
}

/// Takes the last process's report out of the file, which is empty afterwards.
fn take(file: usize) -> FreedReport {
    let mut freed = FreedReport::default();
    let room = (&raw mut freed).addr();
    // SAFETY: the kernel writes within the local.
    let read = unsafe {
        let read = sys::call(libc::SYS_pread64, [file, room, size_of::<FreedReport>()]);
        sys::call(libc::SYS_ftruncate, [file]);
        read
    };
    if read == size_of::<FreedReport>() as isize {
        freed
    } else {
        FreedReport::default()
    }
}

/// The blocks of a started process.
struct Late {
    blocks: HarnessTable<Cell<*mut u8>>,
    size: usize,
    file: usize,
    key: libc::pthread_key_t,
    /// Number of rounds of key destructors until the blocks are freed; 0 if the thread itself frees them.
    rounds_left: Cell<u32>,
}

/// The blocks to be freed after the destructors of all libraries, or null.
static AFTER_DESTRUCTORS: AtomicPtr<Late> = AtomicPtr::new(ptr::null_mut());

/// Runs the started process; `arguments` are those after [`WORD`].
pub fn process(mut arguments: impl Iterator<Item = &'static CStr>) -> c_int {
    let mut next = || arguments.next().unwrap_or_default();
    let (owner, place) = (next(), next());
    let mut next_number = || number(next()).unwrap_or(0);
    let (file, blocks, size) = (next_number(), next_number(), next_number());
    started::prove(owner);
    // The blocks must outlive `main`.
    let late = memory::keep(Late {
        blocks: HarnessTable::zeroed(blocks),
        size,
        file,
        key: 0,
        rounds_left: Cell::new(match place.to_bytes() {
            b"key" => 1,
            b"key-again" => 2,
            _ => 0,
        }),
    });
    match place.to_bytes() {
        b"thread" | b"key" | b"key-again" => {
            // SAFETY: the key is made before the thread that uses it, and after the allocator's own key, since the
            // allocator has served the dynamic linker and `main`.
            unsafe {
                let key = &raw mut (*late).key;
                if libc::pthread_key_create(key, Some(at_end_of_thread)) != 0 {
                    return 1;
                }
                let thread = threads::create(in_thread, late.cast(), &Stack::none(), false, 0);
                libc::pthread_join(thread, ptr::null_mut());
            }
            return 0;
        }
        _ => allocate(late),
    }
    match place.to_bytes() {
        b"atexit" => {
            // SAFETY: the function stays loaded.
            if unsafe { __cxa_atexit(free_all, late.cast(), ptr::null_mut()) } != 0 {
                return 1;
            }
        }
        b"destructor" => AFTER_DESTRUCTORS.store(late, Release),
        _ => free_all(late.cast()),
    }
    0
}

/// Registers the late frees; called when `exit` reaches the destructors, those of this program first. A function
/// registered now runs after the destructors of all libraries, including the allocator's.
pub fn before_destructors() {
    let late = AFTER_DESTRUCTORS.load(Acquire);
    if !late.is_null() {
        // SAFETY: the function stays loaded. If the registration fails, too few blocks are reported.
        unsafe { __cxa_atexit(free_all, late.cast(), ptr::null_mut()) };
    }
}

extern "C" fn in_thread(late: *mut c_void) -> *mut c_void {
    allocate(late.cast());
    // SAFETY: the pointer is to the value that `process` made.
    let (key, is_late) = unsafe {
        let late = &*late.cast::<Late>();
        (late.key, late.rounds_left.get() > 0)
    };
    if is_late {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(key, late) };
    } else {
        free_all(late);
    }
    ptr::null_mut()
}

/// Runs as the key's destructor. A destructor that sets its key's value again is called once more, after the
/// destructors of all other keys.
unsafe extern "C" fn at_end_of_thread(value: *mut c_void) {
    // SAFETY: the value is what `process` made.
    let late = unsafe { &*value.cast::<Late>() };
    let left = late.rounds_left.get() - 1;
    late.rounds_left.set(left);
    if left == 0 {
        free_all(value);
    } else {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(late.key, value) };
    }
}

fn allocate(late: *mut Late) {
    // SAFETY: the pointer is to the value that `process` made, and only one thread uses it.
    let late = unsafe { &*late };
    for block in late.blocks.iter() {
        // SAFETY: an ordinary call, and bytes within the block.
        unsafe {
            let address: *mut u8 = libc::malloc(late.size).cast();
            if address.is_null() {
                started::end(started::NO_MEMORY);
            }
            touch::pages(address, late.size);
            address.add(late.size - 1).write_volatile(0);
            block.set(address);
        }
    }
}

/// Frees all blocks, and reports their number and the time taken.
extern "C" fn free_all(late: *mut c_void) {
    // SAFETY: the pointer is to the value that `process` made, and only one thread uses it.
    let late = unsafe { &*late.cast::<Late>() };
    let began = Moment::start();
    for block in late.blocks.iter() {
        // SAFETY: allocated by `allocate`, freed once.
        unsafe { libc::free(block.get().cast()) };
    }
    let freed = FreedReport {
        span: began.elapsed(),
        blocks: late.blocks.len() as u64,
    };
    let from = (&raw const freed).addr();
    // SAFETY: the kernel reads the local.
    unsafe {
        sys::call(
            libc::SYS_pwrite64,
            [late.file, from, size_of::<FreedReport>()],
        )
    };
}
