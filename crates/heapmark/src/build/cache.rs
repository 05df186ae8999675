//! Where built libraries and programs lie, and under which name: a folder's name holds a hash of everything that went into it, so what
//! is there is the right one. Knows nothing of compilers.

use super::inspect;
use crate::file::{self, PUBLIC, make_folder};
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};

/// `$HEAPMARK_CACHE`, `$XDG_CACHE_HOME/heapmark` or `~/.cache/heapmark`.
pub fn root() -> Result<PathBuf> {
    let given = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = match (given("HEAPMARK_CACHE"), given("XDG_CACHE_HOME"), given("HOME")) {
        (Some(cache), _, _) => cache,
        (_, Some(cache), _) => cache.join("heapmark"),
        (_, _, Some(home)) => home.join(".cache/heapmark"),
        _ => bail!("no place for built libraries: set HEAPMARK_CACHE or HOME"),
    };
    let root = std::path::absolute(&root).with_context(|| format!("finding {}", root.display()))?;
    if !inspect::preloadable(&root) {
        bail!("{}: LD_PRELOAD takes no path with a space, colon or `$`; set HEAPMARK_CACHE to another", root.display());
    }
    Ok(root)
}

/// The mark by which programs that make backups know what can be made again.
const TAG: &str = "CACHEDIR.TAG";
/// What it begins with is fixed by https://bford.info/cachedir/.
const TAG_TEXT: &str =
    "Signature: 8a477f597d28d172789f06886806bc55\n# What lies here was built by heapmark, and will be again.\n";

/// Makes a folder of the cache. It is marked as one unless it was there: then it may be somebody else's.
pub fn make(folder: &Path) -> std::io::Result<()> {
    match make_folder(folder)? {
        true => file::replace(&folder.join(TAG), TAG_TEXT.as_bytes(), PUBLIC),
        false => Ok(()),
    }
}

/// The first twelve hexadecimal digits of a SHA-256 over parts; each part's length goes in, so no two lists collide by
/// being cut differently.
pub fn short_hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize()[..6])
}

/// Bytes as people write hashes.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All digits of the SHA-256 of a file, which is read piece by piece.
pub fn hash_of_file(path: &Path) -> Result<String> {
    let context = || format!("cannot read {}", path.display());
    let mut file = File::open(path).with_context(context)?;
    let (mut hash, mut room) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut room).with_context(context)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&room[..read]),
        }
    }
}

/// The place of one library or program.
#[derive(Clone, Debug)]
pub struct Place {
    name: String,
    key: String,
    shelf: PathBuf,
}

impl Place {
    /// The place of the library `name` whose ingredients hash to `key`.
    pub fn new(name: &str, key: &str) -> Result<Place> {
        Ok(Place { name: name.into(), key: key.into(), shelf: root()?.join("libraries") })
    }

    /// As [`Place::new`], of a program.
    pub fn of_program(name: &str, key: &str) -> Result<Place> {
        Ok(Place { name: name.into(), key: key.into(), shelf: root()?.join("programs") })
    }

    /// The folder that holds what was built, there or not.
    pub fn folder(&self) -> PathBuf {
        self.shelf.join(format!("{}-{}", self.name, self.key))
    }

    /// The library's file, there or not.
    pub fn library(&self) -> PathBuf {
        self.folder().join(format!("lib{}.so", self.name))
    }

    /// Where the log of a failed build stays.
    pub fn log(&self) -> PathBuf {
        self.shelf.join(format!("{}-{}.log", self.name, self.key))
    }

    /// Waits until no other process builds this; the lock ends with the value.
    pub fn lock(&self, waiting: impl FnOnce()) -> Result<File> {
        let path = self.shelf.join(format!(".{}.lock", self.name));
        let context = || format!("locking {}: choose another place with HEAPMARK_CACHE", path.display());
        make(&self.shelf).with_context(context)?;
        let file = File::options().create(true).truncate(false).write(true).open(&path).with_context(context)?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => waiting(),
            Err(TryLockError::Error(error)) => return Err(error).with_context(context),
        }
        file.lock().with_context(context)?;
        Ok(file)
    }

    /// An empty folder to build in, beside the final one so that [`Place::keep`] is a rename. Removes what an
    /// interrupted build left; call it under [`Place::lock`].
    pub fn workshop(&self) -> Result<PathBuf> {
        let folder = self.shelf.join(format!(".{}.building", self.name));
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("clearing {}", folder.display()))?;
        }
        std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(folder)
    }

    /// Moves a finished library into place and clears the workshop.
    pub fn keep(&self, built: &Path, workshop: &Path) -> Result<PathBuf> {
        let half = self.shelf.join(format!(".{}.done", self.name));
        let set_apart = || -> std::io::Result<()> {
            if half.exists() {
                std::fs::remove_dir_all(&half)?;
            }
            std::fs::create_dir(&half)?;
            std::fs::rename(built, half.join(format!("lib{}.so", self.name)))
        };
        set_apart().with_context(|| format!("moving the library to {}", half.display()))?;
        self.keep_folder(&half)?;
        std::fs::remove_dir_all(workshop).with_context(|| format!("clearing {}", workshop.display()))?;
        Ok(self.library())
    }

    /// Moves a whole folder into place.
    pub fn keep_folder(&self, finished: &Path) -> Result<()> {
        let move_in = || -> std::io::Result<()> {
            if self.folder().exists() {
                std::fs::remove_dir_all(self.folder())?;
            }
            std::fs::rename(finished, self.folder())
        };
        move_in().with_context(|| format!("moving what was built to {}", self.folder().display()))?;
        let _ = std::fs::remove_file(self.log());
        Ok(())
    }
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
        make(&home.path().join("cache/scores")).unwrap();
        let marked = |folder: &str| home.path().join(folder).join(TAG).is_file();
        assert_eq!((marked("."), marked("cache"), marked("cache/scores")), (false, false, true));
        std::fs::create_dir(home.path().join("scores")).unwrap();
        make(&home.path().join("scores")).unwrap();
        assert!(!marked("scores"));
    }

    fn place(folder: &Path) -> Place {
        let (name, key) = ("mine".to_string(), "0123".to_string());
        Place { name, key, shelf: folder.join("libraries") }
    }

    #[test]
    fn an_interrupted_build_leaves_no_library_and_does_not_stop_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let workshop = place.workshop().unwrap();
        std::fs::write(workshop.join("half.o"), "half").unwrap();
        assert!(!place.library().exists());

        let workshop = place.workshop().unwrap();
        assert!(!workshop.join("half.o").exists());
        std::fs::write(workshop.join("libmine.so"), "whole").unwrap();
        std::fs::write(place.log(), "words").unwrap();
        let kept = place.keep(&workshop.join("libmine.so"), &workshop).unwrap();
        assert_eq!(std::fs::read_to_string(kept).unwrap(), "whole");
        assert!(!workshop.exists() && !place.log().exists());
    }

    #[test]
    fn a_second_builder_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let first = place.lock(|| panic!("nobody else is here")).unwrap();
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
