//! Answers system calls of a command and of all that it starts, on a thread of its own, until the answerer is dropped.

use super::files::CpuFiles;
use crate::plan::CpusSeen;
use anyhow::{Context, Result, bail, ensure};
use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{Error, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;

/// A flag of the listener (since Linux 6.6): the asking and the answering thread wake each other on one CPU, which
/// halves the wait.
const WAKE_AT_ONCE: u64 = 1;
/// The length of the longest path that the kernel accepts.
const PATH: usize = libc::PATH_MAX as usize;

/// A thread that answers the system calls of one command and of all processes that it starts.
pub struct Answerer {
    own: UnixStream,
    launchers: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Answerer {
    /// Starts the answering thread, which reports `told` to processes.
    pub fn new(told: CpusSeen) -> Result<Answerer> {
        let (ours, launchers) = UnixStream::pair().context("cannot make a socket")?;
        let files = match told {
            CpusSeen::Machine => None,
            CpusSeen::Count(count) => Some((count, CpuFiles::new(count)?)),
        };
        let socket = ours.try_clone().context("cannot duplicate a socket")?;
        let serve = move || {
            // Without a listener, no program asks.
            let Ok(listener) = received(&socket) else {
                return;
            };
            while let Ok(true) = is_asked(&listener, &socket) {
                // A process that has ended meanwhile needs no answer.
                let _ = answer(&listener, files.as_ref());
            }
        };
        let thread = std::thread::Builder::new().spawn(serve);
        Ok(Answerer {
            own: ours,
            launchers,
            thread: Some(thread.context("cannot start a thread")?),
        })
    }

    /// Returns the socket whose descriptor number the launcher receives.
    pub fn socket(&self) -> &UnixStream {
        &self.launchers
    }

    /// Returns the launcher's arguments for this answerer.
    pub fn words(&self) -> [String; 2] {
        ["answered".into(), self.launchers.as_raw_fd().to_string()]
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        // Ends each wait of the thread.
        let _ = self.own.shutdown(Shutdown::Both);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Receives the listener that the launcher sends.
fn received(socket: &UnixStream) -> Result<OwnedFd> {
    let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut beside,
        flags,
    )?;
    let mut sent = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let listener = sent.next().context("no listener")?;
    // SAFETY: a plain system call; a kernel without it returns an error.
    unsafe {
        let flags = libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS;
        libc::ioctl(listener.as_raw_fd(), flags as _, WAKE_AT_ONCE);
    }
    Ok(listener)
}

/// Waits for a call; returns false once no more calls can come.
fn is_asked(listener: &OwnedFd, socket: &UnixStream) -> Result<bool> {
    let mut both = [
        PollFd::new(listener, PollFlags::IN),
        PollFd::new(socket, PollFlags::IN),
    ];
    match poll(&mut both, None) {
        Err(rustix::io::Errno::INTR) => return Ok(true),
        waited => waited?,
    };
    let (calls, end) = (both[0].revents(), both[1].revents());
    Ok(end.is_empty() && !calls.intersects(PollFlags::HUP | PollFlags::ERR))
}

/// Receives one call and answers it.
fn answer(listener: &OwnedFd, files: Option<&(u32, CpuFiles)>) -> Result<()> {
    // SAFETY: zeros are valid for this structure, and the kernel requires them.
    let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    control(listener, libc::SECCOMP_IOCTL_NOTIF_RECV as _, &mut call)?;
    let answer = answer_to(&call, files).unwrap_or(Reply::Kernels);
    let mut response = libc::seccomp_notif_resp {
        id: call.id,
        val: 0,
        error: 0,
        flags: 0,
    };
    match answer {
        Reply::Kernels => response.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        Reply::Value(value) => response.val = value,
        Reply::Fault(errno) => response.error = -errno,
        Reply::Opened(file, flags) => {
            let mut opened = libc::seccomp_notif_addfd {
                id: call.id,
                flags: libc::SECCOMP_ADDFD_FLAG_SEND as u32,
                srcfd: file.as_raw_fd() as u32,
                newfd: 0,
                newfd_flags: flags,
            };
            if control(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD as _, &mut opened).is_ok() {
                return Ok(());
            }
            response.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        }
    }
    control(listener, libc::SECCOMP_IOCTL_NOTIF_SEND as _, &mut response)
}

/// The result of a call.
enum Reply {
    /// The kernel carries out the call itself.
    Kernels,
    Value(i64),
    Fault(i32),
    /// The call returns a descriptor of this file, with these flags.
    Opened(File, u32),
}

/// Finds the answer to a call. Fails if the process has ended, or if its memory may not be read and written. A process
/// that gets the true answer waits just as long.
fn answer_to(call: &libc::seccomp_notif, files: Option<&(u32, CpuFiles)>) -> Result<Reply> {
    let arguments = &call.data.args;
    let number = i64::from(call.data.nr);
    if number == libc::SYS_sched_getaffinity {
        return files.map_or(Ok(Reply::Kernels), |(count, _)| {
            allowed(call.pid, arguments, *count)
        });
    }
    let is_at = number == libc::SYS_openat;
    let (path, flags) = (
        arguments[usize::from(is_at)],
        arguments[1 + usize::from(is_at)],
    );
    let path = path_at(call.pid, path)?;
    let path = Path::new(OsStr::from_bytes(&path));
    let opened = files.and_then(|(_, files)| files.open(path, call.pid));
    let close_on_exec = flags as u32 & libc::O_CLOEXEC as u32;
    Ok(opened.map_or(Reply::Kernels, |file| Reply::Opened(file, close_on_exec)))
}

/// Returns the answer to `sched_getaffinity` on a kernel with this many CPUs.
fn allowed(thread: u32, arguments: &[u64; 6], count: u32) -> Result<Reply> {
    let [of, room, place, ..] = *arguments;
    let is_there = of == 0 || Path::new(&format!("/proc/{of}")).exists();
    let bytes = 8 * count.div_ceil(64) as usize;
    if !is_there {
        return Ok(Reply::Kernels);
    }
    if (room as u32 as usize) < bytes || room % 8 != 0 {
        return Ok(Reply::Fault(libc::EINVAL));
    }
    let mut set = vec![0_u8; bytes];
    (0..count as usize).for_each(|cpu| set[cpu / 8] |= 1 << (cpu % 8));
    let local = libc::iovec {
        iov_base: set.as_mut_ptr().cast(),
        iov_len: bytes,
    };
    let other = libc::iovec {
        iov_base: place as *mut _,
        iov_len: bytes,
    };
    // SAFETY: reads the local set; the destination is in the other process, which waits for the answer.
    let written = unsafe { libc::process_vm_writev(thread as i32, &local, 1, &other, 1, 0) };
    ensure!(written == bytes as isize, Error::last_os_error());
    Ok(Reply::Value(bytes as i64))
}

/// Returns the path at this address in a process's memory, without its terminating NUL.
fn path_at(thread: u32, place: u64) -> Result<Vec<u8>> {
    const PAGE: usize = 4096;
    let mut path = vec![0; PATH];
    // Read up to the end of the first page, and then at most one more: the second page may not be mapped.
    let first = PAGE - place as usize % PAGE;
    let local = libc::iovec {
        iov_base: path.as_mut_ptr().cast(),
        iov_len: PATH,
    };
    let part = |from: usize, bytes: usize| libc::iovec {
        iov_base: (place as usize + from) as *mut _,
        iov_len: bytes,
    };
    let others = [part(0, first), part(first, PATH - first)];
    // SAFETY: writes at most as many bytes into the local as it has.
    let read = unsafe { libc::process_vm_readv(thread as i32, &local, 1, others.as_ptr(), 2, 0) };
    ensure!(read > 0, Error::last_os_error());
    path.truncate(read as usize);
    match CStr::from_bytes_until_nul(&path) {
        Ok(path) => Ok(path.to_bytes().to_vec()),
        Err(_) => bail!("no path"),
    }
}

/// Calls an ioctl on the listener, with the structure that belongs to the request.
fn control<T>(listener: &OwnedFd, request: u64, with: &mut T) -> Result<()> {
    // SAFETY: the kernel reads and writes the structure that belongs to the request.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), request as _, &raw mut *with) };
    ensure!(done >= 0, Error::last_os_error());
    Ok(())
}
