//! Asks heapmark for files that this process may not open itself, since it runs as another user than
//! heapmark. Uses direct system calls, as in `file`.

use crate::environment::{number, variable};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicBool, Ordering};
use heapmark_wire::lent::{ADDRESS_BYTES, QUESTION_BYTES, SECRET_BYTES, VARIABLE, filters};

/// Time limit for an answer: heapmark may have been stopped.
static PATIENCE: libc::timeval = libc::timeval {
    tv_sec: 2,
    tv_usec: 0,
};
/// The most attempts to ask: if other processes hold the connections, or the machine is busy, the time limit may
/// end before the answer.
const MOST_ASKED: u32 = 3;
/// Bytes of `/proc/self/status` per read, and the overlap of two reads, which is longer than a
/// line. The program's stack is small.
const PIECE: usize = 256;
const AGAIN: usize = 64;

const WORD_BYTES: usize = ADDRESS_BYTES + SECRET_BYTES;

/// The address and the secret with which files are asked for.
pub struct Lender {
    known: AtomicBool,
    word: UnsafeCell<[u8; WORD_BYTES]>,
    filters: UnsafeCell<u32>,
}

// SAFETY: written once, when there is one thread.
unsafe impl Sync for Lender {}

/// The lender of captures.
pub static CAPTURES: Lender = Lender::new();

/// Reads the lender of captures from the environment; called once per program.
pub fn configure() {
    CAPTURES.configure(variable(VARIABLE));
}

impl Lender {
    pub const fn new() -> Lender {
        Lender {
            known: AtomicBool::new(false),
            word: UnsafeCell::new([0; WORD_BYTES]),
            filters: UnsafeCell::new(0),
        }
    }

    /// Takes the address, the secret and heapmark's number of filters from the beginning of a text;
    /// called only while there is one thread.
    pub fn configure(&self, value: &[u8]) {
        let Some((word, rest)) = value.split_first_chunk::<WORD_BYTES>() else {
            return;
        };
        let filters = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
        let Some(filters) = number(filters) else {
            return;
        };
        // SAFETY: there is one thread.
        unsafe {
            self.word.get().write(*word);
            self.filters.get().write(filters as u32);
        }
        self.known.store(true, Ordering::Release);
    }

    /// Asks for the descriptor of this process's own file with this inode, or of a new file if
    /// `inode` is 0.
    pub fn ask(&self, inode: u64) -> Option<c_int> {
        // SAFETY: written before there were threads.
        let (word, filters) = unsafe { (&*self.word.get(), *self.filters.get()) };
        // These are two calls in a row, not nested: the first one's stack is free before the second one begins.
        if !self.known.load(Ordering::Acquire) || !may_ask(filters) {
            return None;
        }
        (0..MOST_ASKED).find_map(|_| ask_for(word, inode))
    }
}

#[inline(never)]
fn ask_for(word: &[u8; WORD_BYTES], inode: u64) -> Option<c_int> {
    let mut question = [0; QUESTION_BYTES];
    question[..SECRET_BYTES].copy_from_slice(&word[ADDRESS_BYTES..]);
    question[SECRET_BYTES..].copy_from_slice(&inode.to_le_bytes());
    // SAFETY: plain system calls on locals.
    unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        let socket = libc::syscall(libc::SYS_socket, libc::AF_UNIX, kind, 0);
        if socket < 0 {
            return None;
        }
        let size = size_of::<libc::timeval>();
        libc::syscall(
            libc::SYS_setsockopt,
            socket,
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            &raw const PATIENCE,
            size,
        );
        libc::syscall(
            libc::SYS_setsockopt,
            socket,
            libc::SOL_SOCKET,
            libc::SO_SNDTIMEO,
            &raw const PATIENCE,
            size,
        );
        let connected = connect(socket, &word[..ADDRESS_BYTES]);
        let flags = libc::MSG_NOSIGNAL;
        let asked = connected
            && libc::syscall(
                libc::SYS_sendto,
                socket,
                question.as_ptr(),
                QUESTION_BYTES,
                flags,
                0,
                0,
            ) == QUESTION_BYTES as c_long;
        let answer = if asked { answer(socket) } else { None };
        libc::syscall(libc::SYS_close, socket);
        answer
    }
}

#[inline(never)]
unsafe fn connect(socket: c_long, name: &[u8]) -> bool {
    // SAFETY: zeros are a valid address.
    let mut address: libc::sockaddr_un = unsafe { core::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as _;
    // The first byte stays zero: an abstract address, not a file.
    address.sun_path[1..]
        .iter_mut()
        .zip(name)
        .for_each(|(to, from)| *to = *from as _);
    let length = core::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    // SAFETY: a plain system call on a local.
    unsafe { libc::syscall(libc::SYS_connect, socket, &raw const address, length) == 0 }
}

#[inline(never)]
unsafe fn answer(socket: c_long) -> Option<c_int> {
    let (mut byte, mut room) = ([0_u8; 1], [0_u64; 4]);
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: zeros are a valid message; the kernel fills what it points to.
    unsafe {
        let mut message: libc::msghdr = core::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
        (message.msg_control, message.msg_controllen) =
            (room.as_mut_ptr().cast(), size_of_val(&room) as _);
        let read = libc::syscall(
            libc::SYS_recvmsg,
            socket,
            &raw mut message,
            libc::MSG_CMSG_CLOEXEC,
        );
        let head = libc::CMSG_FIRSTHDR(&message);
        let has_file = read == 1 && !head.is_null() && (*head).cmsg_type == libc::SCM_RIGHTS;
        has_file.then(|| libc::CMSG_DATA(head).cast::<c_int>().read_unaligned())
    }
}

/// Returns whether this process is under no more system call filters than heapmark: a sandbox may
/// kill a process that asks.
#[inline(never)]
fn may_ask(expected_count: u32) -> bool {
    // SAFETY: plain system calls on locals.
    unsafe {
        let path = c"/proc/self/status";
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0);
        if file < 0 {
            return false;
        }
        let (mut piece, mut at, mut found) = ([0; PIECE], 0, None);
        // The text is read in overlapping pieces, and the last number found in them counts.
        loop {
            let read = libc::syscall(libc::SYS_pread64, file, piece.as_mut_ptr(), PIECE, at);
            let read = piece.get(..read.max(0) as usize).unwrap_or_default();
            found = filters(read).or(found);
            if read.len() < PIECE {
                break;
            }
            at += (PIECE - AGAIN) as c_long;
        }
        libc::syscall(libc::SYS_close, file);
        found == Some(expected_count)
    }
}
