//! Writes files that are either complete or absent, and never overwrites another process's file:
//! the content lies under a random name in the same folder until it is complete, and is then
//! renamed. All files that heapmark leaves for users or for later are written here. Also opens
//! files that may come from anybody.

mod trust;

pub use trust::{Weakness, weakness, weaknesses};

use anyhow::Context;
use heapmark_trace::open_regular;
use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The default directory of runs, below the folder where a user works.
pub const RESULTS: &str = "heapmark-results";

/// Errors that name the file or folder they are about.
pub trait WithPath<T> {
    /// Puts what failed (`cannot read`) and the path before an error.
    fn with_path(self, failed: &str, path: &Path) -> anyhow::Result<T>;
}

impl<T, E> WithPath<T> for Result<T, E>
where
    Result<T, E>: Context<T, E>,
{
    fn with_path(self, failed: &str, path: &Path) -> anyhow::Result<T> {
        self.with_context(|| format!("{failed} {}", path.display()))
    }
}

/// What happens to an existing file of the same name.
#[derive(Clone, Copy, PartialEq)]
pub enum Existing {
    /// The file stays, and nothing is written.
    Stays,
    /// The new file replaces it.
    Goes,
}

/// The mode of a file without secrets, before the umask.
pub const PUBLIC: u32 = 0o666;

/// The existing drafts, which are removed if a signal ends heapmark.
static DRAFTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn drafts() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file or folder without its final name. It is removed unless it is kept; it is locked while its
/// owner lives.
#[derive(Debug)]
pub struct Draft(PathBuf, File);

/// The prefix of the names of drafts.
const PREFIX: &str = ".heapmark-draft-";

impl Draft {
    /// Makes a draft file beside `target`. The draft's name cannot be predicted, and no link is
    /// followed.
    pub fn file(target: &Path, mode: u32) -> io::Result<(Draft, File)> {
        let open = |path: &Path| {
            File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(path)
        };
        let draft = Draft::new(folder_of(target), PREFIX, open)?;
        let file = draft.1.try_clone()?;
        Ok((draft, file))
    }

    /// Makes an empty draft folder in `within`.
    pub fn folder(within: &Path) -> io::Result<Draft> {
        Draft::folder_named(within, PREFIX, 0o700)
    }

    /// Makes an empty draft folder like [`folder`](Self::folder), with a name that begins with
    /// `name`.
    pub fn folder_named(within: &Path, name: &str, mode: u32) -> io::Result<Draft> {
        Draft::new(within, name, |path| {
            DirBuilder::new().mode(mode).create(path)?;
            // Another heapmark may already have removed the folder as a dead process's draft: then
            // a new name is tried.
            File::open(path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => ErrorKind::AlreadyExists.into(),
                _ => error,
            })
        })
    }

    fn new(
        folder: &Path,
        name: &str,
        make: impl Fn(&Path) -> io::Result<File>,
    ) -> io::Result<Draft> {
        static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.insert(folder.into()) {
            sweep(folder);
        }
        drop(swept);
        loop {
            let number = RandomState::new().build_hasher().finish();
            let path = folder.join(format!("{name}{number:016x}"));
            // A signal must not come between making the draft and adding it to the list.
            let mut drafts = drafts();
            match make(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => {
                    let made = made?;
                    // Until the file is locked, another heapmark may take it for a dead process's
                    // draft.
                    if let Err(TryLockError::WouldBlock) = made.try_lock() {
                        continue;
                    }
                    if is_there(&path) {
                        drafts.insert(path.clone());
                        return Ok(Draft(path, made));
                    }
                }
            }
        }
    }

    /// Returns the draft's path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives the draft its final name, on the same disk; if that name is taken, another one can be
    /// tried.
    pub fn keep(&self, target: &Path, existing: Existing) -> io::Result<()> {
        keep(&self.0, target, existing)
    }
}

/// Does what [`Draft::keep`] does, for a file that lies in a draft folder.
pub fn keep(file: &Path, target: &Path, existing: Existing) -> io::Result<()> {
    match existing {
        Existing::Goes => fs::rename(file, target)?,
        // If two processes take the same name at once, one fails: a link never replaces a file.
        Existing::Stays => match fs::hard_link(file, target) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists && !is_there(target) => {
                fs::rename(file, target)?;
            }
            linked => linked?,
        },
    }
    sync_folder(folder_of(target))
}

impl Drop for Draft {
    fn drop(&mut self) {
        remove(&self.0);
        drafts().remove(&self.0);
    }
}

/// Removes the drafts in a folder that this user's heapmark processes left when they were killed.
fn sweep(folder: &Path) {
    let is_draft = |name: &str| {
        let number = name.strip_prefix(PREFIX).unwrap_or_default();
        number.len() == 16 && number.bytes().all(|c| c.is_ascii_hexdigit())
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(is_draft)
            && entry.metadata().is_ok_and(|metadata| {
                metadata.uid() == geteuid().as_raw() && (metadata.is_file() || metadata.is_dir())
            });
        // The lock is held until the draft is removed: the draft's owner may be about to lock it.
        if is_ours
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            remove(&entry.path());
        }
    }
}

/// Removes a draft; a draft that was renamed does not exist any more.
fn remove(draft: &Path) {
    let _ = fs::remove_file(draft).or_else(|_| fs::remove_dir_all(draft));
}

/// Removes all drafts and keeps `DRAFTS` locked, so that no new draft begins before heapmark ends.
pub fn abandon_drafts() {
    let drafts = drafts();
    drafts.iter().for_each(|draft| remove(draft));
    std::mem::forget(drafts);
}

/// Writes the content of `target` to a draft; the content is on the disk when this returns.
pub fn draft<T, E: From<io::Error>>(
    target: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<(Draft, T), E> {
    let (draft, mut file) = Draft::file(target, mode)?;
    let written = write(&mut file)?;
    file.sync_all()?;
    Ok((draft, written))
}

/// Writes a file, replacing an existing one.
pub fn replace(target: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let (draft, ()) = draft(target, mode, |file| file.write_all(content))?;
    draft.keep(target, Existing::Goes)
}

/// Makes a folder and its parents; returns whether the folder is new.
pub fn make_folder(folder: &Path) -> io::Result<bool> {
    let above = folder_of(folder);
    if !above.is_dir() {
        make_folder(above)?;
    }
    match fs::create_dir(folder) {
        Ok(()) => sync_folder(above).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Syncs a folder, so that its file names are on the disk: otherwise a power cut may keep later
/// writes and lose earlier ones.
fn sync_folder(folder: &Path) -> io::Result<()> {
    // A folder that is writable but not readable cannot be synced.
    let Ok(folder) = File::open(folder) else {
        return Ok(());
    };
    match folder.sync_all() {
        // Some folders that are not on a disk cannot be synced, either.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTSUP)) => Ok(()),
        synced => synced,
    }
}

/// Returns whether a file, or even a dangling link, has this name.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The most bytes of a document, which is read as a whole; heapmark writes none that is as long.
pub const MOST_DOCUMENT: u64 = 64 << 20;

/// Opens a file in a folder that may come from anybody: the file must be regular and no link, and
/// must not have more than `most` bytes.
pub fn open_stored(path: &Path, most: u64) -> io::Result<File> {
    if path.symlink_metadata()?.is_symlink() {
        return Err(io::Error::other("it is a link; heapmark stores none"));
    }
    let file = open_regular(path)?;
    match file.metadata()?.len() {
        length if length > most => Err(too_long(most)),
        _ => Ok(file),
    }
}

/// Reads a document in a folder that may come from anybody.
pub fn read_stored(path: &Path) -> io::Result<Vec<u8>> {
    up_to(open_stored(path, MOST_DOCUMENT)?, MOST_DOCUMENT)
}

/// Reads a document that the user has named; a link or a pipe is allowed, too.
pub fn read_named(path: &Path) -> io::Result<String> {
    text(File::open(path)?)
}

/// Reads a document that the user keeps, where heapmark looks for it unasked; a link is allowed, too.
pub fn read_kept(path: &Path) -> io::Result<String> {
    text(open_regular(path)?)
}

fn text(file: File) -> io::Result<String> {
    let bytes = up_to(file, MOST_DOCUMENT)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Reads a file to its end; fails if the file has more than `most` bytes.
pub fn up_to(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match file.take(most + 1).read_to_end(&mut bytes)? as u64 {
        length if length > most => Err(too_long(most)),
        _ => Ok(bytes),
    }
}

fn too_long(most: u64) -> io::Error {
    let most = most >> 20;
    io::Error::other(format!("it has more than {most} MiB, and no such file has"))
}

/// Returns the length of a file in bytes; 0 if it is not there.
pub fn length(path: impl AsRef<Path>) -> u64 {
    fs::metadata(path).map_or(0, |known| known.len())
}

/// Returns the disk space in bytes of a file, or of all that a folder holds; what cannot be read
/// does not count.
pub fn space_of(path: &Path) -> u64 {
    let Ok(known) = path.symlink_metadata() else {
        return 0;
    };
    let inside = known.is_dir().then(|| fs::read_dir(path).ok()).flatten();
    let entries = inside.into_iter().flatten().flatten();
    let held: u64 = entries.map(|entry| space_of(&entry.path())).sum();
    512 * known.blocks() + held
}

/// Returns the mode for a file that is derived from these sources: only users who may read all of
/// them may read it.
pub fn mode_of<P: AsRef<Path>>(sources: impl IntoIterator<Item = P>) -> u32 {
    let known = sources
        .into_iter()
        .filter_map(|source| fs::metadata(source).ok());
    known.fold(PUBLIC, |all, one| all & one.permissions().mode())
}

/// Returns the first of the names `x.html`, `x-2.html`, `x-3.html`, ... that is not `taken`.
pub fn numbered(path: PathBuf, taken: impl Fn(&Path) -> bool) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_owned();
    let name = |number: u32| {
        let mut name = stem.clone();
        name.push(format!("-{number}"));
        if let Some(ending) = path.extension() {
            name.push(".");
            name.push(ending);
        }
        path.with_file_name(name)
    };
    let mut names = std::iter::once(path.clone()).chain((2..).map(name));
    names.find(|name| !taken(name)).unwrap_or(path)
}

/// Returns the folder that a path lies in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_fails_half_way_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a");
        fs::write(&target, "old").unwrap();
        let failed = draft(&target, PUBLIC, |file| {
            file.write_all(b"half")?;
            Err::<(), _>(io::Error::other("planted"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "planted");
        assert_eq!(
            (fs::read_to_string(&target).unwrap(), names(folder.path())),
            ("old".into(), vec!["a".into()])
        );
        replace(&target, b"new", PUBLIC).unwrap();
        assert_eq!(
            (fs::read_to_string(&target).unwrap(), names(folder.path())),
            ("new".into(), vec!["a".into()])
        );
    }

    #[test]
    fn drafts_of_the_dead_are_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (living, _file) = Draft::file(&at("a"), PUBLIC).unwrap();
        let beside = tempfile::tempdir().unwrap();
        let folder_of_living = Draft::folder(beside.path()).unwrap();
        let moved = at(&format!("{PREFIX}00000000000000aa"));
        fs::rename(folder_of_living.path(), &moved).unwrap();
        let dead =
            ["0123456789abcdef", "fedcba9876543210"].map(|number| at(&format!("{PREFIX}{number}")));
        fs::write(&dead[0], "").unwrap();
        fs::create_dir_all(dead[1].join("run")).unwrap();
        for other in ["notes", "0123456789abcde", "0123456789abcdef.txt"] {
            fs::write(at(&format!("{PREFIX}{other}")), "").unwrap();
        }
        sweep(folder.path());
        assert!(dead.iter().all(|path| !is_there(path)));
        assert!(is_there(living.path()) && is_there(&moved));
        assert_eq!(names(folder.path()).len(), 5);
    }

    #[test]
    fn a_name_that_is_taken_meanwhile_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a");
        let (first, ()) = draft(&target, PUBLIC, |file| file.write_all(b"first")).unwrap();
        let (second, ()) = draft(&target, PUBLIC, |file| file.write_all(b"second")).unwrap();
        first.keep(&target, Existing::Stays).unwrap();
        let refused = second.keep(&target, Existing::Stays).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        drop((first, second));
        assert_eq!(
            (fs::read_to_string(&target).unwrap(), names(folder.path())),
            ("first".into(), vec!["a".into()])
        );
    }

    #[test]
    fn a_link_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, link) = (folder.path().join("theirs"), folder.path().join("link"));
        fs::write(&theirs, "theirs").unwrap();
        std::os::unix::fs::symlink(&theirs, &link).unwrap();
        replace(&link, b"ours", PUBLIC).unwrap();
        assert_eq!(
            (
                fs::read_to_string(&theirs).unwrap(),
                fs::read_to_string(&link).unwrap()
            ),
            ("theirs".into(), "ours".into())
        );
    }

    #[test]
    fn what_is_made_of_a_private_file_is_private_from_its_first_byte() {
        let folder = tempfile::tempdir().unwrap();
        let (private, public) = (folder.path().join("private"), folder.path().join("public"));
        for (path, mode) in [(&private, 0o600), (&public, 0o644)] {
            fs::write(path, "").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        assert_eq!(
            (
                mode_of([&public]),
                mode_of([&public, &private]),
                mode_of([""; 0])
            ),
            (0o644, 0o600, PUBLIC)
        );
        let (draft, _file) = Draft::file(&public, mode_of([&private])).unwrap();
        assert_eq!(
            draft.path().metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn names_are_numbered_before_their_ending() {
        let taken = |path: &Path| {
            ["a.b.html", "a.b-2.html", "x"]
                .iter()
                .any(|name| path.ends_with(name))
        };
        assert_eq!(
            numbered("f/a.b.html".into(), taken),
            Path::new("f/a.b-3.html")
        );
        assert_eq!(numbered("x".into(), taken), Path::new("x-2"));
        assert_eq!(numbered("y".into(), taken), Path::new("y"));
    }
}
