//! What a capture states about its process, before the first event and at the end: lines of
//! `key=value` in the file's first chunk.

use crate::decimal::decimal;
use crate::file::{self, Reason};
use crate::{clock, interposers, next};
use core::ffi::{CStr, c_char};
use heapmark_wire::capture::{HEADER_BYTES, Header, TEXT_BYTES, text::escape};

/// The most bytes of text.
const MOST_BYTES: usize = TEXT_BYTES - HEADER_BYTES;

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The text, to which lines are added.
pub struct Text {
    pub header: *mut Header,
}

impl Text {
    /// Adds a line, if it fits. The last quarter of the space is kept for the end: arguments can be
    /// long.
    #[inline(never)]
    fn line(&mut self, key: &[&[u8]], value: &[u8], most: usize) {
        // SAFETY: the chunk is mapped as long as the process lives.
        let header = unsafe { &*self.header };
        let mut at = header.sealed_bytes();
        for part in key {
            part.iter().for_each(|byte| self.put(&mut at, *byte));
        }
        self.put(&mut at, b'=');
        for byte in value {
            let (bytes, length) = escape(*byte);
            bytes
                .iter()
                .take(length)
                .for_each(|byte| self.put(&mut at, *byte));
        }
        self.put(&mut at, b'\n');
        if at <= most {
            let payload = self.header.cast::<u8>().wrapping_add(HEADER_BYTES);
            // SAFETY: the payload has been written up to `at`.
            header.seal(unsafe { core::slice::from_raw_parts(payload, at) }, false);
        }
    }

    /// Writes a byte, if it fits.
    fn put(&mut self, at: &mut usize, byte: u8) {
        if *at < MOST_BYTES {
            // SAFETY: within the payload, which one thread writes at a time.
            unsafe { self.header.cast::<u8>().add(HEADER_BYTES + *at).write(byte) };
        }
        *at += 1;
    }

    fn add(&mut self, key: &str, value: &[u8]) {
        self.line(&[key.as_bytes()], value, MOST_BYTES / 4 * 3);
    }

    fn number(&mut self, key: &str, value: u64) {
        let mut digits = [0; 20];
        self.line(&[key.as_bytes()], decimal(value, &mut digits), MOST_BYTES);
    }
}

/// The start of a recording.
pub struct Origin {
    pub pid: u32,
    /// The process that this memory was copied from; 0 if there is none.
    pub parent: u32,
    /// The start time of the fork, if known.
    pub forking: u64,
    /// A stamp, and the monotonic time read with it.
    pub stamp: u64,
    pub ns: u64,
}

/// Adds what is known about the process at the start.
pub fn describe(text: &mut Text, room: &mut [u8], origin: &Origin) {
    text.number("pid", u64::from(origin.pid));
    if origin.parent == 0 {
        // SAFETY: no arguments.
        text.number("parent", unsafe { libc::getppid() } as u64);
        text.add("begin", b"start");
    } else {
        text.number("parent", u64::from(origin.parent));
        text.add("begin", b"fork");
    }
    if origin.forking != 0 {
        text.number("forked-ns", origin.forking);
    }
    // SAFETY: the path is a C string, and the buffer is ours.
    let bytes = unsafe {
        libc::syscall(
            libc::SYS_readlinkat,
            libc::AT_FDCWD,
            c"/proc/self/exe".as_ptr(),
            room.as_mut_ptr(),
            room.len(),
        )
    };
    text.add("exe", &room[..bytes.max(0) as usize]);
    let line = file::read(c"/proc/self/cmdline", room);
    for (index, word) in line
        .strip_suffix(b"\0")
        .unwrap_or(line)
        .split(|byte| *byte == 0)
        .enumerate()
    {
        text.line(
            &[b"argv.", decimal(index as u64, &mut [0; 20])],
            word,
            MOST_BYTES / 4 * 3,
        );
    }
    let path = next::path_of_malloc();
    if !path.is_null() {
        // SAFETY: a string of the dynamic linker's.
        text.add("allocator", unsafe { CStr::from_ptr(path) }.to_bytes());
    }
    let path = interposers::path_of_malloc();
    if !path.is_null() {
        // SAFETY: a string of the dynamic linker's.
        text.add("before", unsafe { CStr::from_ptr(path) }.to_bytes());
    }
    variables(text);
    machine(text, room);
    text.number("started-unix-ns", clock::unix_ns());
    text.add(
        "clock",
        if clock::kind() == clock::CPU {
            b"cpu"
        } else {
            b"counter"
        },
    );
    let (ns, stamps) = (
        clock::now_ns() - origin.ns,
        clock::cpu().saturating_sub(origin.stamp),
    );
    text.number("stamps-per-second", clock::stamps_per_second(stamps, ns));
}

/// Adds the environment variables that change how allocators behave.
fn variables(text: &mut Text) {
    // SAFETY: the environment is an array of C strings with a null at its end, if there is one.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            let pair = CStr::from_ptr(*at).to_bytes();
            let mut halves = pair.splitn(2, |byte| *byte == b'=');
            let (name, value) = (
                halves.next().unwrap_or_default(),
                halves.next().unwrap_or_default(),
            );
            if name.starts_with(b"MALLOC_") || name == b"GLIBC_TUNABLES" {
                text.line(&[b"env.", name], value, MOST_BYTES / 4 * 3);
            }
            at = at.add(1);
        }
    }
}

fn machine(text: &mut Text, room: &mut [u8]) {
    text.add(
        "kernel",
        file::read(c"/proc/sys/kernel/osrelease", room).trim_ascii(),
    );
    text.number("page-bytes", page_bytes() as u64);
    text.add(
        "thp",
        file::read(c"/sys/kernel/mm/transparent_hugepage/enabled", room).trim_ascii(),
    );
    let short = room.len().min(2048);
    let cpus = file::read(c"/proc/cpuinfo", &mut room[..short]);
    let model = cpus
        .split(|byte| *byte == b'\n')
        .find(|line| line.starts_with(b"model name"));
    if let Some(at) = model.and_then(|line| {
        line.iter()
            .position(|byte| *byte == b':')
            .map(|at| &line[at + 1..])
    }) {
        text.add("cpu", at.trim_ascii());
    }
}

/// Adds why and when recording ended. If this is missing, the process was killed, or ended without
/// its destructors.
pub fn end(text: &mut Text, reason: Reason, stamp: u64, ns: u64) {
    text.line(&[b"end"], reason.as_bytes(), MOST_BYTES);
    text.number("end.stamp", stamp);
    text.number("end.ns", ns);
}

/// Adds the number of events of a stream, from which a reader learns how many are missing. If there
/// are more streams than fit, the rest lack this line.
pub fn events(text: &mut Text, stream: u32, events: u64) {
    let mut digits = [0; 20];
    let key = [&b"end.events."[..], decimal(stream.into(), &mut digits)];
    text.line(&key, decimal(events, &mut [0; 20]), MOST_BYTES);
}

/// Adds what is known if the process lived until its destructors: its peak of memory, its anonymous memory at the end, and
/// the number of calls that the next library made to itself.
pub fn at_end(text: &mut Text, room: &mut [u8], inner: u64) {
    text.number("end.inner-calls", inner);
    let status = file::read(c"/proc/self/status", room);
    let bytes = |name: &[u8]| {
        let line = status
            .split(|byte| *byte == b'\n')
            .find_map(|line| line.strip_prefix(name));
        let digits = line
            .into_iter()
            .flatten()
            .filter(|byte| byte.is_ascii_digit());
        let kib = digits.fold(0, |kib: u64, digit| kib * 10 + u64::from(digit - b'0'));
        kib * 1024
    };
    text.number("end.peak-rss-bytes", bytes(b"VmHWM:"));
    text.number("end.anonymous-bytes", bytes(b"RssAnon:"));
    // A program may disable huge pages for itself, as Ruby does.
    // SAFETY: takes numbers.
    if unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) } == 1 {
        text.number("end.thp-disabled", 1);
    }
}

pub fn page_bytes() -> usize {
    // SAFETY: only returns a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}
