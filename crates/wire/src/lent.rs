//! How a process asks heapmark for a file that is meant for it but that it may not open: it has given up the right, or
//! never had it. heapmark listens at an abstract socket address, which needs no folder, and answers with the open file, or
//! with nothing.

/// The variable with the data for asking for a capture: [`ADDRESS_BYTES`] letters of the address, [`SECRET_BYTES`]
/// letters of a secret, then the number of system call filters (seccomp) that heapmark itself is under. A process under
/// more filters might be killed for asking, and so does not ask.
pub const VARIABLE: &core::ffi::CStr = c"HEAPMARK_RECORD_ASK";
/// The variable that names the file in which executed programs are listed. Its value is the data for asking for that
/// file, and the file's device, inode and path; `preloaded/handed.h` reads the same for other files.
pub const LOG: &core::ffi::CStr = c"HEAPMARK_RECORD_PROGRAMS";
/// The length of the address, in letters.
pub const ADDRESS_BYTES: usize = 24;
/// The length of the secret after the address, in letters.
pub const SECRET_BYTES: usize = 32;
/// Bytes of a question: the secret, then the number of the capture's inode; 0 for a new capture, or if there is only
/// one file to ask for.
pub const QUESTION_BYTES: usize = SECRET_BYTES + 8;

/// Reads the number of system call filters from a process's `/proc/PID/status`, or a piece of it; `None` on old
/// kernels, which do not report it.
pub fn filters(status: &[u8]) -> Option<u32> {
    const NAMES: [&[u8]; 2] = [b"\nSeccomp_filters:\t", b"\nSeccomp:\t"];
    NAMES.iter().find_map(|name| {
        let at = status.windows(name.len()).position(|part| part == *name)? + name.len();
        let end = status[at..].iter().position(|byte| *byte == b'\n')?;
        core::str::from_utf8(&status[at..at + end])
            .ok()?
            .parse()
            .ok()
    })
}

#[cfg(test)]
mod tests {
    use super::filters;

    #[test]
    fn filters_are_counted_where_the_kernel_counts_them() {
        assert_eq!(
            filters(b"Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t17\nCpus:\t1\n"),
            Some(17)
        );
        assert_eq!(filters(b"Name:\tx\nSeccomp:\t0\n"), Some(0));
        assert_eq!(filters(b"Name:\tx\n"), None);
    }
}
