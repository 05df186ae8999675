//! Writes to heapmark's file that lists the programs which this one executes or spawns. A child
//! writes to the file between fork and exec, perhaps on its parent's memory and stack: nothing is
//! changed here, and nothing allocated.

use crate::decimal::decimal;
use crate::environment::{number, variable};
use crate::file::handed;
use crate::lent::Lender;
use crate::local::Errno;
use crate::next::CStringArray;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicBool, Ordering};
use heapmark_wire::lent::LOG;

const PATH_BYTES: usize = 256;

struct ProgramLog {
    known: AtomicBool,
    path: UnsafeCell<[u8; PATH_BYTES]>,
    device_and_inode: UnsafeCell<(u64, u64)>,
    lender: Lender,
}

// SAFETY: written once, when there is one thread.
unsafe impl Sync for ProgramLog {}

static FILE: ProgramLog = ProgramLog {
    known: AtomicBool::new(false),
    path: UnsafeCell::new([0; PATH_BYTES]),
    device_and_inode: UnsafeCell::new((0, 0)),
    lender: Lender::new(),
};

/// Reads the file's path and identity from the environment; called once per program.
pub fn configure() {
    let value = variable(LOG);
    let mut words = value.splitn(4, |byte| *byte == b' ').skip(1);
    let (device, inode) = (words.next().and_then(number), words.next().and_then(number));
    if let (Some(device), Some(inode), Some(path)) = (device, inode, words.next())
        && path.len() < PATH_BYTES
    {
        FILE.lender.configure(value);
        // SAFETY: there is one thread, and the path fits, with a zero byte behind it.
        unsafe {
            FILE.device_and_inode.get().write((device, inode));
            let to = FILE.path.get().cast::<u8>();
            to.copy_from(path.as_ptr(), path.len());
        }
        FILE.known.store(true, Ordering::Release);
    }
}

/// Writes `+PID 1 PATH` and a zero byte if the program gets the recorder, with `0` if it does not;
/// with `-PID` if it was not executed after all.
///
/// # Safety
/// The path is a C string or null, and the environment an array of them or null.
pub unsafe fn note(sign: &[u8], pid: c_int, path: *const c_char, words: CStringArray) {
    if !FILE.known.load(Ordering::Acquire) || path.is_null() {
        return;
    }
    let _errno = Errno::keep();
    // SAFETY: plain system calls; the program's own strings; written before there were threads.
    unsafe {
        let known = *FILE.device_and_inode.get();
        let Some(file) = handed(&*FILE.path.get(), known, &FILE.lender) else {
            return;
        };
        let mut digits = [0; 20];
        let given: &[u8] = if gets_recorder(words) { b" 1 " } else { b" 0 " };
        let part = |bytes: &[u8]| libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let path = CStr::from_ptr(path).to_bytes_with_nul();
        let parts = [
            part(sign),
            part(decimal(pid as u64, &mut digits)),
            part(given),
            part(path),
        ];
        libc::syscall(libc::SYS_writev, file.0, parts.as_ptr(), parts.len());
    }
}

unsafe fn gets_recorder(words: CStringArray) -> bool {
    // SAFETY: an array of C strings with a null at its end, if there is one.
    unsafe {
        let has = |name: &[u8]| {
            let mut at = words;
            while !at.is_null() && !(*at).is_null() {
                if CStr::from_ptr(*at).to_bytes().starts_with(name) {
                    return true;
                }
                at = at.add(1);
            }
            false
        };
        has(b"LD_PRELOAD=") && has(b"HEAPMARK_RECORD_TO=")
    }
}
