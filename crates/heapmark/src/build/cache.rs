//! Where built libraries and programs are stored, and under which name: a folder's name contains a
//! hash of everything that went into it, so an existing folder is the right one. Does not depend on
//! compilers.

use crate::catalog::folder::listing;
use crate::file::{self, Draft, PUBLIC, WithPath, make_folder};
use anyhow::{Context, Result, bail};
use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// `$HEAPMARK_CACHE`, `$XDG_CACHE_HOME/heapmark` or `~/.cache/heapmark`.
pub fn root() -> Result<PathBuf> {
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
    let folders = above(&root);
    if let Some(open) = folders.iter().find(|folder| folder.others_may_exchange()) {
        bail!(
            "{}: others can write in {}, and so exchange what heapmark preloads: take that right from them \
             (chmod go-w), or set HEAPMARK_CACHE to another",
            root.display(),
            open.path.display()
        );
    }
    // The owner of such a folder could still replace files.
    static SAID: Once = Once::new();
    if let Some(other) = folders.iter().find(|folder| folder.is_of_another()) {
        SAID.call_once(|| {
            eprintln!(
                "warning: {} belongs to user {}, who can exchange what heapmark preloads from {}; HEAPMARK_CACHE names \
                 another place",
                other.path.display(),
                other.owner,
                root.display()
            );
        });
    }
    Ok(root)
}

/// Whether the dynamic linker accepts this path: it splits `LD_PRELOAD` at spaces and colons, and
/// expands `$`.
pub fn preloadable(path: &Path) -> bool {
    !path.to_string_lossy().contains([' ', ':', '$', '\n', '\t'])
}

/// A folder or link in the path of the cache.
struct Folder {
    path: PathBuf,
    owner: u32,
    group: u32,
    mode: u32,
}

/// Everything on the way to a folder that can be replaced: the folder and all folders above it, by
/// its name and, if that contains links, by its real path.
fn above(folder: &Path) -> Vec<Folder> {
    let place = folder
        .ancestors()
        .find_map(|folder| folder.canonicalize().ok())
        .unwrap_or_default();
    let look = |path: &Path| {
        let data = path.symlink_metadata().ok()?;
        let mode = if data.is_dir() { data.mode() } else { 0 };
        Some(Folder {
            path: path.into(),
            owner: data.uid(),
            group: data.gid(),
            mode,
        })
    };
    folder
        .ancestors()
        .chain(place.ancestors())
        .filter_map(look)
        .collect()
}

/// The owner of files outside a user namespace, as seen inside: the Unix user `nobody`.
const NOBODY: u32 = 65_534;

impl Folder {
    /// In a sticky folder (`/tmp`) only owners may rename; and many systems give each user a group
    /// of the same number.
    fn others_may_exchange(&self) -> bool {
        let by_group = self.mode & 0o020 != 0 && ![0, self.owner].contains(&self.group);
        (by_group || self.mode & 0o002 != 0) && self.mode & 0o1000 == 0
    }

    fn is_of_another(&self) -> bool {
        ![0, NOBODY, geteuid().as_raw()].contains(&self.owner)
    }
}

/// All that heapmark keeps in its cache.
pub const SHELVES: [&str; 13] = [
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

/// The marker file by which backup programs recognise a folder that can be rebuilt.
const TAG: &str = "CACHEDIR.TAG";
/// Its first line is fixed by https://bford.info/cachedir/.
const TAG_TEXT: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# What lies here was built by heapmark, and will be again.\n";

/// Makes a folder of the cache, and marks it as one. A folder that exists already is not marked: it
/// may be the user's own.
pub fn make(folder: &Path) -> io::Result<()> {
    if make_folder(folder)? {
        file::replace(&folder.join(TAG), TAG_TEXT.as_bytes(), PUBLIC)
    } else {
        Ok(())
    }
}

/// Writes a file of the cache, and makes its folder. In one step, because another heapmark may be
/// reading it.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    make(path.parent().unwrap_or(path))
        .and_then(|()| file::replace(path, content, PUBLIC))
        .with_path("cannot write", path)
}

/// Changes a file of the cache, from what it was; another heapmark that changes one beside it waits.
pub fn change(
    path: &Path,
    changed: impl FnOnce(io::Result<Vec<u8>>) -> Result<Vec<u8>>,
) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    let lock = || -> io::Result<File> {
        make(folder)?;
        let file = lock_file(&folder.join(".lock"))?;
        file.lock()?;
        Ok(file)
    };
    let _lock = lock().with_path("cannot write into", folder)?;
    let content = changed(std::fs::read(path))?;
    file::replace(path, &content, PUBLIC).with_path("cannot write", path)
}

/// The first twelve hexadecimal digits of [`hash`].
pub fn short_hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut digits = hash(parts);
    digits.truncate(12);
    digits
}

/// The SHA-256 over parts, in hexadecimal digits. Each part's length is hashed too, so that two
/// lists of parts with the same concatenation do not collide.
pub fn hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize())
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All digits of the SHA-256 of a file, which is read piece by piece.
pub fn hash_of_file(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_path("cannot read", path)?;
    let mut hash = Sha256::new();
    let mut room = vec![0; 1 << 20];
    loop {
        match file.read(&mut room).with_path("cannot read", path)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&room[..read]),
        }
    }
}

/// The checksum line of a library in its folder.
fn checksum_line(library: &Path) -> Result<String> {
    let name = library.file_name().unwrap_or_default();
    Ok(format!("{}  {}\n", hash_of_file(library)?, name.display()))
}

/// The file with a library's checksum, in the format of `sha256sum -c`.
fn checksum_of(library: &Path) -> PathBuf {
    library.with_extension("so.sha256")
}

/// The place of one library or program.
pub struct CachePlace {
    name: String,
    key: String,
    shelf: PathBuf,
}

impl CachePlace {
    /// The place of what has this name and whose inputs hash to `key`; `shelf` is `libraries` or
    /// `programs`.
    pub fn new(shelf: &str, name: &str, key: &str) -> Result<CachePlace> {
        Ok(CachePlace {
            name: name.into(),
            key: key.into(),
            shelf: root()?.join(shelf),
        })
    }

    /// The folder for what was built, whether it exists or not.
    pub fn folder(&self) -> PathBuf {
        self.shelf.join(format!("{}-{}", self.name, self.key))
    }

    /// The library's file, whether it exists or not.
    pub fn library(&self) -> PathBuf {
        self.folder().join(format!("lib{}.so", self.name))
    }

    /// Whether the library is exactly as it was built: a changed one would be measured under the
    /// same name.
    pub fn is_whole(&self) -> bool {
        let library = self.library();
        let wanted = std::fs::read_to_string(checksum_of(&library));
        wanted.is_ok_and(|wanted| checksum_line(&library).is_ok_and(|found| found == wanted))
    }

    /// Where the log of a failed build is kept.
    pub fn log(&self) -> PathBuf {
        self.shelf.join(format!("{}-{}.log", self.name, self.key))
    }

    /// Builds what belongs here in an empty folder, unless `cached` finds it, now or when another
    /// process that builds it has ended; also returns whether it was found.
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
            format!(
                "building {}; the whole log is in {}",
                self.name,
                log.display()
            )
        };
        Ok((built.with_context(context)?, false))
    }

    /// Waits until no other process builds this; the lock is released when the value is dropped.
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

    /// An empty folder to build in, beside the final one so that [`CachePlace::keep`] is a rename.
    /// No build before had the same one: what that has left to run writes into another. Removes the
    /// workshops of builds that were killed; call it while holding [`CachePlace::lock`].
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

    /// Moves a finished library into place.
    pub fn keep(&self, built: &Path, workshop: &Path) -> Result<PathBuf> {
        let half = workshop.join("finished");
        let library = half.join(format!("lib{}.so", self.name));
        let set_apart = || -> io::Result<()> {
            std::fs::create_dir(&half)?;
            std::fs::rename(built, &library)
        };
        set_apart().with_path("moving the library to", &half)?;
        let checksum = checksum_of(&library);
        std::fs::write(&checksum, checksum_line(&library)?).with_path("writing", &checksum)?;
        self.keep_folder(&half)?;
        Ok(self.library())
    }

    /// Moves a whole folder into place.
    pub fn keep_folder(&self, finished: &Path) -> Result<()> {
        let folder = self.folder();
        clear(&folder)
            .and_then(|()| std::fs::rename(finished, &folder))
            .with_path("moving what was built to", &folder)?;
        let _ = std::fs::remove_file(self.log());
        Ok(())
    }
}

/// Removes a folder if it is there.
fn clear(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)
    } else {
        Ok(())
    }
}

/// Opens the file of a lock.
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
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn cutting_parts_differently_changes_the_hash() {
        assert_ne!(short_hash(["ab", "c"]), short_hash(["a", "bc"]));
        assert_eq!(short_hash(["ab", "c"]), short_hash(["ab", "c"]));
        assert_eq!(short_hash(["x"]).len(), 12);
    }

    #[test]
    fn a_place_below_a_folder_in_which_others_can_write_is_not_trusted() {
        let home = tempfile::tempdir().unwrap();
        let (open, real) = (home.path().join("open"), home.path().join("real"));
        [&open, &real]
            .into_iter()
            .for_each(|folder| std::fs::create_dir(folder).unwrap());
        std::os::unix::fs::symlink(open.join("cache"), real.join("link")).unwrap();
        let is_open = |mode: u32, place: &Path| {
            std::fs::set_permissions(&open, std::fs::Permissions::from_mode(mode)).unwrap();
            above(place).iter().any(Folder::others_may_exchange)
        };
        let cache = open.join("cache");
        assert_eq!(
            [0o755, 0o1777, 0o777, 0o757].map(|mode| is_open(mode, &cache)),
            [false, false, true, true]
        );
        std::fs::create_dir(&cache).unwrap();
        assert_eq!(
            [0o755, 0o777].map(|mode| is_open(mode, &real.join("link/more"))),
            [false, true],
            "where a link leads"
        );
        let folder = |owner, group, mode| Folder {
            path: "/x".into(),
            owner,
            group,
            mode,
        };
        let by_group =
            [(1000, 1000), (1000, 50), (0, 0)].map(|(owner, group)| folder(owner, group, 0o775));
        assert_eq!(
            by_group.map(|folder| folder.others_may_exchange()),
            [false, true, false]
        );
        let owners = [0, geteuid().as_raw(), NOBODY, 123_456]
            .map(|owner| folder(owner, 0, 0o755).is_of_another());
        assert_eq!(owners, [false, false, false, true]);
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
            (false, false, true)
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
        // Nothing of it is removed.
        std::mem::forget(killed);
        assert!(!place.library().exists());

        let workshop = place.workshop().unwrap();
        assert!(!left.exists() && workshop.path() != left);
        let built = workshop.path().join("libmine.so");
        std::fs::write(&built, "whole").unwrap();
        std::fs::write(place.log(), "words").unwrap();
        let kept = place.keep(&built, workshop.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "whole");
        assert!(place.is_whole());
        std::fs::write(kept, "while").unwrap();
        assert!(!place.is_whole(), "a byte has changed");
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
        let (told, waits) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| place.lock(move || told.send(()).unwrap()).is_ok());
            waits.recv().unwrap();
            assert!(!second.is_finished());
            drop(first);
            assert!(second.join().unwrap());
        });
    }
}
