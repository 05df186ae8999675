//! Opens captures for processes of the recorded tree that may not open them themselves, because
//! they run as other users or have given up the right. So captures stay in the user's own folder,
//! readable for that user alone. A process gets its own capture and no other: the kernel reports
//! which process asks. The process must also know a secret from the tree's environment.

use anyhow::{Context, Result};
use heapmark_wire::lent::{ADDRESS_BYTES, QUESTION_BYTES, SECRET_BYTES, filters};
use rustix::cmsg_space;
use rustix::net::{
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, sendmsg, shutdown,
};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A request must be complete within this time.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most captures that one process number can have in a recording.
const MOST_NAMES: u32 = 1000;

/// Answers requests until it is dropped.
pub struct Lender {
    socket: Arc<UnixListener>,
    thread: Option<JoinHandle<()>>,
    /// Only the environments of the tree's processes contain it.
    pub word: String,
}

impl Lender {
    /// Lends captures with this stem.
    pub fn new(stem: &Path) -> Result<Lender> {
        let random = || format!("{:016x}", RandomState::new().build_hasher().finish());
        let letters: String = [random(), random(), random(), random()].concat();
        let (address, rest) = letters.split_at(ADDRESS_BYTES);
        let secret = rest[..SECRET_BYTES].to_owned();
        let name = SocketAddr::from_abstract_name(address).context("cannot make an address")?;
        let socket = Arc::new(UnixListener::bind_addr(&name).context("cannot make a socket")?);
        let status = std::fs::read("/proc/self/status").unwrap_or_default();
        let own = filters(&status).unwrap_or(0);
        let word = format!("{address}{secret}{own}");
        let listener = socket.clone();
        let known = Arc::new((secret, stem.to_path_buf()));
        let lend = move || {
            // `accept` fails once the socket is shut down.
            while let Ok((stream, _)) = listener.accept() {
                let known = known.clone();
                // A wrong request gets no answer; one that does not come keeps nobody waiting.
                let _ = std::thread::Builder::new()
                    .spawn(move || answer(&stream, known.0.as_bytes(), &known.1));
            }
        };
        let thread = std::thread::Builder::new()
            .spawn(lend)
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

fn answer(mut stream: &UnixStream, secret: &[u8], stem: &Path) -> Result<()> {
    stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))?;
    let mut question = [0; QUESTION_BYTES];
    stream.read_exact(&mut question)?;
    let (told, inode) = question.split_at(SECRET_BYTES);
    let inode = u64::from_le_bytes(inode.try_into()?);
    let pid = asking(stream)
        .filter(|_| told == secret)
        .context("a stranger asks")?;
    let file = match inode {
        0 => create(stem, pid)?,
        inode => names(stem, pid)
            .map_while(open)
            .find(|file| file.metadata().is_ok_and(|it| it.ino() == inode)),
    };
    send(stream, &file.context("no such file")?)
}

/// The process at the other end.
fn asking(stream: &UnixStream) -> Option<i32> {
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: fills a local of that length, for which zeros are valid.
    let (told, peer) = unsafe {
        let mut peer: libc::ucred = std::mem::zeroed();
        let fd = stream.as_raw_fd();
        let to = (&raw mut peer).cast();
        let told = libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, to, &mut length);
        (told, peer)
    };
    (told == 0 && peer.pid > 0).then_some(peer.pid)
}

/// The capture names that a recorder may give.
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

/// Sends a byte, and the file with it.
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
mod tests {
    use super::*;
    use std::io::Write;

    fn ask(word: &str, secret: &str, inode: u64) -> bool {
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
        let lender = Lender::new(&stem).unwrap();
        let word = lender.word.clone();
        let (secret, wrong) = (
            &word[ADDRESS_BYTES..][..SECRET_BYTES],
            "0".repeat(SECRET_BYTES),
        );
        assert!(
            !ask(&word, &wrong, 0) && std::fs::read_dir(folder.path()).unwrap().next().is_none()
        );
        assert!(ask(&word, secret, 0));
        let own = names(&stem, std::process::id() as i32).next().unwrap();
        let known = own.metadata().unwrap();
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
