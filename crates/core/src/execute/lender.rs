//! Opens files for processes of a tree that may not open them themselves, because they run as other
//! users or have given up the right. So only heapmark's user may read and write these files. The
//! process must know a secret from the tree's environment, and the kernel reports which process
//! asks: a process gets its own capture and no other. Users who have no part in the tree cannot
//! delay it.

use anyhow::{Context, Result, ensure};
use heapmark_wire::lent::{ADDRESS_BYTES, QUESTION_BYTES, SECRET_BYTES, filters};
use rustix::cmsg_space;
use rustix::net::{
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, sendmsg, shutdown,
};
use rustix::process::geteuid;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, IoSlice, Read};
use std::mem::MaybeUninit;
use std::net::Shutdown::Both;
use std::os::fd::{AsFd, AsRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time within which a request must be complete.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long to wait for a descriptor when all are in use.
const SHORT_WAIT: Duration = Duration::from_millis(1);
/// How many requests of each other user may be incomplete; one more ends the oldest of them.
const MOST_WAITS: usize = 128;
/// The most captures that one process number can have in a recording.
const MOST_NAMES: u32 = 1000;

/// A thread that answers requests for files until the lender is dropped.
pub struct Lender {
    socket: Arc<UnixListener>,
    thread: Option<JoinHandle<()>>,
    /// How to reach the lender, and the secret; only the environments of the tree's processes contain this word.
    pub word: String,
}

impl Lender {
    /// Lends captures whose paths begin with this stem.
    pub fn of_captures(stem: &Path) -> Result<Lender> {
        let stem = stem.to_path_buf();
        Lender::new(move |pid, inode| match inode {
            0 => create(&stem, pid),
            inode => Ok(names(&stem, pid).map_while(open).find(|file| {
                file.metadata()
                    .is_ok_and(|metadata| metadata.ino() == inode)
            })),
        })
    }

    /// Lends the files that `lend` finds for a process number and the inode that the process asks for.
    pub fn new<F>(lend: F) -> Result<Lender>
    where
        F: Fn(i32, u64) -> Result<Option<File>> + Send + Sync + 'static,
    {
        let random = || format!("{:016x}", RandomState::new().build_hasher().finish());
        let letters: String = [random(), random(), random(), random()].concat();
        let (address, rest) = letters.split_at(ADDRESS_BYTES);
        let secret = rest[..SECRET_BYTES].to_owned();
        let name = SocketAddr::from_abstract_name(address).context("cannot make an address")?;
        let socket = Arc::new(UnixListener::bind_addr(&name).context("cannot make a socket")?);
        let status = std::fs::read("/proc/self/status").unwrap_or_default();
        let count = filters(&status).unwrap_or(0);
        let word = format!("{address}{secret}{count}");
        let listener = socket.clone();
        let known = Arc::new((secret, lend));
        let serve = move || {
            let mut waits: BTreeMap<u32, VecDeque<Weak<UnixStream>>> = BTreeMap::new();
            loop {
                let stream = match listener.accept() {
                    Ok((stream, _)) => Arc::new(stream),
                    // The socket is shut down.
                    Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
                    Err(_) => {
                        std::thread::sleep(SHORT_WAIT);
                        continue;
                    }
                };
                let Some(peer) = asking(&stream) else {
                    continue;
                };
                if peer.uid != geteuid().as_raw() {
                    let waits = waits.entry(peer.uid).or_default();
                    waits.push_back(Arc::downgrade(&stream));
                    let is_full = waits.len() > MOST_WAITS;
                    let first = is_full.then(|| waits.pop_front()).flatten();
                    let _ = first
                        .and_then(|wait| wait.upgrade())
                        .map(|wait| wait.shutdown(Both));
                }
                let known = known.clone();
                // A wrong request gets no answer, and a request that never arrives does not delay any other.
                let _ = std::thread::Builder::new()
                    .spawn(move || answer(&stream, peer.pid, known.0.as_bytes(), &known.1));
            }
        };
        let thread = std::thread::Builder::new()
            .spawn(serve)
            .context("cannot start a thread")?;
        Ok(Lender {
            socket,
            thread: Some(thread),
            word,
        })
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        // Ends the wait in `accept`.
        let _ = shutdown(&self.socket, Shutdown::Both);
        self.thread.take().map(JoinHandle::join);
    }
}

fn answer(
    mut stream: &UnixStream,
    pid: i32,
    secret: &[u8],
    lend: impl Fn(i32, u64) -> Result<Option<File>>,
) -> Result<()> {
    stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))?;
    let mut question = [0; QUESTION_BYTES];
    stream.read_exact(&mut question)?;
    let (given_secret, inode) = question.split_at(SECRET_BYTES);
    ensure!(given_secret == secret, "a stranger asks");
    let file = lend(pid, u64::from_le_bytes(inode.try_into()?))?;
    send(stream, &file.context("no such file")?)
}

/// Returns the process at the other end of the connection.
fn asking(stream: &UnixStream) -> Option<libc::ucred> {
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: fills a local of that length, for which zeros are valid.
    let (result, peer) = unsafe {
        let mut peer: libc::ucred = std::mem::zeroed();
        let fd = stream.as_raw_fd();
        let to = (&raw mut peer).cast();
        let result = libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, to, &mut length);
        (result, peer)
    };
    (result == 0 && peer.pid > 0).then_some(peer)
}

/// Returns the capture names that a recorder may give.
fn names(stem: &Path, pid: i32) -> impl Iterator<Item = PathBuf> {
    (1..MOST_NAMES).map(move |number| {
        let number = match number {
            1 => String::new(),
            _ => format!(".{number}"),
        };
        PathBuf::from(format!("{}.{pid}{number}.cap", stem.display()))
    })
}

fn open(path: PathBuf) -> Option<File> {
    let mut options = File::options();
    options.read(true).write(true);
    options.custom_flags(libc::O_NOFOLLOW).open(path).ok()
}

fn create(stem: &Path, pid: i32) -> Result<Option<File>> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    for path in names(stem, pid) {
        match options.open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return Ok(Some(made?)),
        }
    }
    Ok(None)
}

/// Sends a byte together with the file.
fn send(stream: &UnixStream, file: &File) -> Result<()> {
    let files = [file.as_fd()];
    let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut room);
    beside.push(SendAncillaryMessage::ScmRights(&files));
    let byte = [IoSlice::new(&[1])];
    sendmsg(stream, &byte, &mut beside, SendFlags::NOSIGNAL).context("cannot send a file")?;
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::Write;

    /// Whether a process that knows these words gets a file.
    pub fn ask(word: &str, secret: &str, inode: u64) -> bool {
        let name = SocketAddr::from_abstract_name(&word[..ADDRESS_BYTES]).unwrap();
        let mut stream = UnixStream::connect_addr(&name).unwrap();
        stream
            .write_all(secret.as_bytes())
            .and_then(|()| stream.write_all(&inode.to_le_bytes()))
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer == [1]
    }

    #[test]
    fn a_process_without_the_secret_gets_nothing_and_none_gets_anothers_file() {
        let folder = tempfile::tempdir().unwrap();
        let stem = folder.path().join("x");
        let lender = Lender::of_captures(&stem).unwrap();
        let word = lender.word.clone();
        let (secret, wrong) = (
            &word[ADDRESS_BYTES..][..SECRET_BYTES],
            "0".repeat(SECRET_BYTES),
        );
        assert!(
            !ask(&word, &wrong, 0) && std::fs::read_dir(folder.path()).unwrap().next().is_none()
        );
        assert!(ask(&word, secret, 0));
        let path = names(&stem, std::process::id() as i32).next().unwrap();
        let known = path.metadata().unwrap();
        assert_eq!(known.mode() & 0o777, 0o600);
        assert!(ask(&word, secret, known.ino()) && !ask(&word, &wrong, known.ino()));
        let others = names(&stem, 1).next().unwrap();
        File::create(&others).unwrap();
        assert!(!ask(&word, secret, others.metadata().unwrap().ino()));
        drop(lender);
        assert!(
            UnixStream::connect_addr(
                &SocketAddr::from_abstract_name(&word[..ADDRESS_BYTES]).unwrap()
            )
            .is_err()
        );
    }
}
