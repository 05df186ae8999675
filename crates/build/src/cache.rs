//! Where built libraries and programs are stored, and under which name: a folder's name contains a
//! hash of everything that went into it, so an existing folder is the right one. Does not depend on
//! compilers.

use anyhow::{Context, Result, bail};
use heapmark_catalog::file::{
    self, Draft, PUBLIC, WithPath, folder_of, is_there, make_folder, weakness,
};
use heapmark_catalog::folder::listing;
use heapmark_catalog::joined;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Returns the cache's folder, whether it exists or not: `$HEAPMARK_CACHE`, `$XDG_CACHE_HOME/heapmark` or `~/.cache/heapmark`.
pub fn place() -> Result<PathBuf> {
    let given = |name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(value))
    };
    let root = given("HEAPMARK_CACHE")
        .or_else(|| Some(given("XDG_CACHE_HOME")?.join("heapmark")))
        .or_else(|| Some(given("HOME")?.join(".cache/heapmark")))
        .context("no place for built libraries: set HEAPMARK_CACHE or HOME")?;
    let root = std::path::absolute(&root).with_path("finding", &root)?;
    if !preloadable(&root) {
        bail!(
            "{}: LD_PRELOAD takes no path with a space, colon or `$`; set HEAPMARK_CACHE to another",
            root.display()
        );
    }
    trusted(&root)?;
    Ok(root)
}

/// Returns the cache's folder, which is made if possible, and which no process removes while this process lives.
pub fn root() -> Result<PathBuf> {
    /// The lock is on the folder itself: this process may have no right to make a lock file in another user's folder.
    static HELD: Mutex<Option<File>> = Mutex::new(None);
    // If the folder cannot be made, the error is reported when something is written to it.
    let _ = mark_new(&place()?);
    // Checks the folder again, since another user may have made it first.
    let root = place()?;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if held.is_none()
        && let Ok(folder) = File::open(&root)
    {
        if let Err(TryLockError::WouldBlock) = folder.try_lock_shared() {
            bail!(
                "{} is being removed by {}: try again when it has ended",
                root.display(),
                holders(&folder)
            );
        }
        *held = Some(folder);
    }
    Ok(root)
}

/// Keeps other processes from using the cache while it is removed; fails if one of them is using it.
pub fn hold_alone(root: &Path) -> Result<File> {
    let folder = File::open(root).with_path("cannot open", root)?;
    if let Err(TryLockError::WouldBlock) = folder.try_lock() {
        bail!(
            "{} is used by {}: nothing is removed; try again when it has ended",
            root.display(),
            holders(&folder)
        );
    }
    Ok(folder)
}

/// Fails if another user can exchange what lies at a path of the cache. It is not enough to check the folder: a link in it
/// may lead elsewhere, and a umask may let others write.
pub fn trusted(path: &Path) -> Result<()> {
    let there = path.ancestors().find(|ancestor| is_there(ancestor));
    if let Some(weakness) = there.and_then(weakness) {
        bail!(
            "{weakness}, so what heapmark starts or preloads from {} could be exchanged: take that right from others \
             (chmod go-w, chown), or set HEAPMARK_CACHE to another folder",
            path.display()
        );
    }
    Ok(())
}

/// Returns the processes that hold a lock on a file, as the kernel lists them.
fn holders(file: &File) -> String {
    let Ok(data) = file.metadata() else {
        return "another process".into();
    };
    let (major, minor) = (libc::major(data.dev()), libc::minor(data.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", data.ino());
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let pids = locks.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == place)?;
        words[at - 1].parse().ok()
    });
    let pids: BTreeSet<u32> = pids.collect();
    let name = |pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("process {pid} ({})", name.trim())
    };
    match pids.is_empty() {
        true => "another process".into(),
        false => joined(pids.into_iter().map(name), " and "),
    }
}

/// Returns whether the dynamic linker accepts this path: it splits `LD_PRELOAD` at spaces and
/// colons, and expands `$`.
pub fn preloadable(path: &Path) -> bool {
    !path.to_string_lossy().contains([' ', ':', '$', '\n', '\t'])
}

/// The names of all files and folders that heapmark keeps in its cache.
const SHELVES: [&str; 14] = [
    "cargo",
    "carried",
    "checks",
    "compiled-traces",
    "compiled-traces.lock",
    "copies",
    "findings",
    "inputs",
    "libraries",
    "programs",
    "recorder",
    "sources",
    "traces",
    TAG,
];

/// The marker file by which backup programs recognise a folder that can be rebuilt, and by which
/// heapmark recognises a folder that it has made.
pub const TAG: &str = "CACHEDIR.TAG";
/// The content of the marker file, whose first line is fixed by https://bford.info/cachedir/.
const TAG_TEXT: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# What lies here was built by heapmark, and will be again.\n";

/// Returns the paths that are named like parts of the cache: first those that heapmark made, then those that it may not have made.
pub fn shelves(root: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let there = SHELVES.iter().map(|name| root.join(name));
    there
        .filter(|path| is_there(path))
        .partition(|path| is_ours(path))
}

/// Returns whether heapmark made this file or folder; a symbolic link, and everything behind it, is the user's.
fn is_ours(path: &Path) -> bool {
    let is_tag = |path: &Path| std::fs::read(path).is_ok_and(|text| text == TAG_TEXT.as_bytes());
    path.symlink_metadata()
        .is_ok_and(|data| match data.is_dir() {
            true => is_tag(&path.join(TAG)),
            false => {
                is_tag(path)
                    || data.is_file() && data.len() == 0 && path.ends_with("compiled-traces.lock")
            }
        })
}

/// Makes a folder of the cache and those above it, and marks them. A folder that exists already is
/// not marked: it may be the user's own.
pub fn make(folder: &Path) -> io::Result<()> {
    let above = folder_of(folder);
    if !above.is_dir() {
        make(above)?;
    }
    mark_new(folder)
}

fn mark_new(folder: &Path) -> io::Result<()> {
    match make_folder(folder)? {
        true => file::replace(&folder.join(TAG), TAG_TEXT.as_bytes(), PUBLIC),
        false => Ok(()),
    }
}

/// Writes a file of the cache, and makes its folder. The file is replaced in one step, because
/// another heapmark may be reading it.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    make(path.parent().unwrap_or(path))
        .and_then(|()| file::replace(path, content, PUBLIC))
        .with_path("cannot write", path)
}

/// Makes a folder of the cache, and waits until no other heapmark, or thread of this one, is changing it. The lock is released when the
/// returned file is dropped.
pub fn lock(folder: &Path) -> io::Result<File> {
    make(folder)?;
    let file = lock_file(&folder.join(".lock"))?;
    file.lock()?;
    Ok(file)
}

/// Replaces a file of the cache by what `changed` makes of its old content; another heapmark that changes a file in the same folder waits.
pub fn change(
    path: &Path,
    changed: impl FnOnce(io::Result<Vec<u8>>) -> Result<Vec<u8>>,
) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    let _lock = lock(folder).with_path("cannot write into", folder)?;
    let content = changed(std::fs::read(path))?;
    file::replace(path, &content, PUBLIC).with_path("cannot write", path)
}

/// Returns the first twelve hexadecimal digits of [`hash`].
pub fn short_hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut digits = hash(parts);
    digits.truncate(12);
    digits
}

/// Returns the SHA-256 over parts, in hexadecimal digits. Each part's length is hashed too, so that
/// two lists of parts with the same concatenation do not collide.
pub fn hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize())
}

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns all hexadecimal digits of the SHA-256 of a file, which is read piece by piece.
pub fn hash_of_file(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_path("cannot read", path)?;
    let mut hash = Sha256::new();
    // The buffer is small enough for a core's own cache.
    let mut room = vec![0; 128 << 10];
    loop {
        match file.read(&mut room).with_path("cannot read", path)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&room[..read]),
        }
    }
}

/// Returns a library's line in a checksum file: its hash and its file name.
fn checksum_line(library: &Path) -> Result<String> {
    let name = library.file_name().unwrap_or_default();
    Ok(format!("{}  {}\n", hash_of_file(library)?, name.display()))
}

/// Returns the file with a library's checksum, in the format of `sha256sum -c`.
fn checksum_of(library: &Path) -> PathBuf {
    library.with_extension("so.sha256")
}

/// Returns whether a library is exactly as it was built: a changed one would be measured under the
/// same name.
pub fn is_as_built(library: &Path) -> bool {
    let wanted = std::fs::read_to_string(checksum_of(library));
    wanted.is_ok_and(|wanted| checksum_line(library).is_ok_and(|found| found == wanted))
}

/// The place of a library or program in the cache.
pub struct CachePlace {
    name: String,
    key: String,
    shelf: PathBuf,
}

impl CachePlace {
    /// Returns the place of a library or program with this name whose inputs hash to `key`; `shelf` is `libraries` or `programs`.
    pub fn new(shelf: &str, name: &str, key: &str) -> Result<CachePlace> {
        let place = CachePlace {
            name: name.into(),
            key: key.into(),
            shelf: root()?.join(shelf),
        };
        trusted(&place.library()).map(|()| place)
    }

    /// Returns the folder of the built files, whether it exists or not.
    pub fn folder(&self) -> PathBuf {
        self.shelf.join(format!("{}-{}", self.name, self.key))
    }

    /// Returns the library's file, whether it exists or not.
    pub fn library(&self) -> PathBuf {
        self.folder().join(format!("lib{}.so", self.name))
    }

    /// Returns the path at which the log of a failed build is kept.
    pub fn log(&self) -> PathBuf {
        self.shelf.join(format!("{}-{}.log", self.name, self.key))
    }

    /// Builds the library or program in an empty folder, unless `cached` finds it, either at once or after another process has built it;
    /// also returns whether it was found.
    pub fn build<T>(
        &self,
        cached: impl Fn() -> Result<Option<T>>,
        waiting: impl FnOnce(),
        construct: impl FnOnce(&Path) -> Result<T>,
    ) -> Result<(T, bool)> {
        if let Some(found) = cached()? {
            return Ok((found, true));
        }
        let _lock = self.lock(waiting)?;
        if let Some(found) = cached()? {
            return Ok((found, true));
        }
        let workshop = self.workshop()?;
        let built = construct(workshop.path());
        let context = || {
            let log = self.log();
            // What fails before the first step writes nothing into it.
            match file::length(&log) {
                0 => format!("building {}", self.name),
                _ => format!(
                    "building {}; the whole log is in {}",
                    self.name,
                    log.display()
                ),
            }
        };
        let built = built.with_context(context)?;
        trusted(&self.library()).map(|()| (built, false))
    }

    /// Waits until no other process builds the same library; the lock is released when the value is dropped.
    fn lock(&self, waiting: impl FnOnce()) -> Result<File> {
        let path = self.shelf.join(format!(".{}.lock", self.name));
        let lock = || -> io::Result<File> {
            make(&self.shelf)?;
            let file = lock_file(&path)?;
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => waiting(),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            file.lock()?;
            Ok(file)
        };
        lock().with_context(|| {
            format!(
                "locking {}: choose another place with HEAPMARK_CACHE",
                path.display()
            )
        })
    }

    /// Makes an empty folder to build in, beside the final one so that [`CachePlace::keep`] is a rename. No earlier build used the same
    /// folder: processes that such a build left running write into another one. Removes the workshops of builds that were killed, so
    /// [`CachePlace::lock`] must be held.
    fn workshop(&self) -> Result<Draft> {
        let name = format!(".{}.building", self.name);
        let begins = |path: &PathBuf| {
            let file = path.file_name().unwrap_or_default();
            file.as_encoded_bytes().starts_with(name.as_bytes())
        };
        for left in listing(&self.shelf).filter(begins) {
            let _ = std::fs::remove_dir_all(left);
        }
        Draft::folder_named(&self.shelf, &format!("{name}-"), 0o777)
            .with_path("cannot make a folder in", &self.shelf)
    }

    /// Moves a finished library into place, with the files that describe it beside it.
    pub fn keep(
        &self,
        built: &Path,
        workshop: &Path,
        beside: &[(&str, String)],
    ) -> Result<PathBuf> {
        let half = workshop.join("finished");
        let library = half.join(format!("lib{}.so", self.name));
        let set_apart = || -> io::Result<()> {
            std::fs::create_dir(&half)?;
            std::fs::rename(built, &library)
        };
        set_apart().with_path("moving the library to", &half)?;
        let checksum = checksum_of(&library);
        std::fs::write(&checksum, checksum_line(&library)?).with_path("writing", &checksum)?;
        for (name, text) in beside {
            let file = half.join(name);
            std::fs::write(&file, text).with_path("writing", &file)?;
        }
        self.keep_folder(&half)?;
        Ok(self.library())
    }

    /// Moves a whole folder to its place in the cache, and removes an older one.
    pub fn keep_folder(&self, finished: &Path) -> Result<()> {
        let folder = self.folder();
        clear(&folder)
            .and_then(|()| std::fs::rename(finished, &folder))
            .with_path("moving what was built to", &folder)?;
        let _ = std::fs::remove_file(self.log());
        Ok(())
    }
}

/// Removes a folder if it exists.
fn clear(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)
    } else {
        Ok(())
    }
}

/// Opens a lock file.
pub fn lock_file(path: &Path) -> io::Result<File> {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_parts_differently_changes_the_hash() {
        assert_ne!(short_hash(["ab", "c"]), short_hash(["a", "bc"]));
        assert_eq!(short_hash(["ab", "c"]), short_hash(["ab", "c"]));
        assert_eq!(short_hash(["x"]).len(), 12);
    }

    #[test]
    fn a_folder_that_was_there_is_not_marked_as_a_cache() {
        let home = tempfile::tempdir().unwrap();
        make(&home.path().join("cache/compiled-traces")).unwrap();
        let marked = |folder: &str| home.path().join(folder).join(TAG).is_file();
        assert_eq!(
            (
                marked("."),
                marked("cache"),
                marked("cache/compiled-traces")
            ),
            (false, true, true)
        );
        std::fs::create_dir(home.path().join("compiled-traces")).unwrap();
        make(&home.path().join("compiled-traces")).unwrap();
        assert!(!marked("compiled-traces"));
    }

    fn place(folder: &Path) -> CachePlace {
        let (name, key) = ("mine".to_string(), "0123".to_string());
        CachePlace {
            name,
            key,
            shelf: folder.join("libraries"),
        }
    }

    #[test]
    fn an_interrupted_build_leaves_no_library_and_does_not_stop_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        std::fs::create_dir(&place.shelf).unwrap();
        let killed = place.workshop().unwrap();
        std::fs::write(killed.path().join("half.o"), "half").unwrap();
        let left = killed.path().to_owned();
        // Leaves the folder behind, as a killed process does.
        std::mem::forget(killed);
        assert!(!place.library().exists());

        let workshop = place.workshop().unwrap();
        assert!(!left.exists() && workshop.path() != left);
        let built = workshop.path().join("libmine.so");
        std::fs::write(&built, "whole").unwrap();
        std::fs::write(place.log(), "words").unwrap();
        let kept = place.keep(&built, workshop.path(), &[]).unwrap();
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "whole");
        assert!(is_as_built(&kept));
        std::fs::write(&kept, "while").unwrap();
        assert!(!is_as_built(&kept), "a byte has changed");
        let path = workshop.path().to_owned();
        drop(workshop);
        assert!(!path.exists() && !place.log().exists());
    }

    #[test]
    fn a_second_builder_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let first = place
            .lock(|| panic!("no other process holds the lock"))
            .unwrap();
        let (sender, waits) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| place.lock(move || sender.send(()).unwrap()).is_ok());
            waits.recv().unwrap();
            assert!(!second.is_finished());
            drop(first);
            assert!(second.join().unwrap());
        });
    }
}
