//! A limit on the memory of a measured process, in force from its first instruction on, and for all
//! that it starts. The launcher puts the process under the limit, but not itself.

use super::oom_kills;
use super::outcome::Outcome;
use crate::file::WithPath;
use crate::plan::LimitKind;
use anyhow::{Context, Result};
use heapmark_wire::Watched;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// The memory limit of a job.
#[derive(Clone)]
pub struct MemoryLimit {
    /// The kind of memory that is limited.
    pub kind: LimitKind,
    /// The limit; `None` if the memory of a control group is only counted.
    pub bytes: Option<u64>,
    /// The folder in which control groups may be made, if a group sets the limit.
    pub groups: Option<PathBuf>,
}

/// A limit that is set up for one process.
pub struct Limited {
    /// The launcher's arguments for the limit.
    pub words: Vec<String>,
    is_limited: bool,
    group: Option<Group>,
}

/// How a process fared under its memory limit.
#[derive(Clone, Copy)]
pub struct UnderLimit {
    /// Whether the memory was limited; false if that of a control group was only counted.
    pub is_limited: bool,
    /// Whether the kernel killed the process because its group was at its limit. How many processes
    /// were killed is not known: if a group is killed as a whole, the kernel counts the first
    /// process twice.
    pub was_killed: bool,
    /// Most bytes that the group was charged; `None` without a group, and on kernels before 5.19.
    pub charged_bytes: Option<u64>,
}

impl MemoryLimit {
    /// Returns how many bytes of the harness's own memory such a limit counts, at its peak. The
    /// guest counts them itself: a thread that lives for some milliseconds has a stack of 8 MiB,
    /// which samples may miss.
    pub(super) fn harness_bytes(&self, watched: &Watched) -> u64 {
        let (all, private) = watched.ranges().most_bytes();
        match self.kind {
            LimitKind::Cgroup => watched.held().most_harness_bytes(),
            LimitKind::Data => private,
            LimitKind::As => all,
        }
    }

    /// Sets up the limit before the process is started.
    pub(super) fn set(&self) -> Result<Limited> {
        let words = |word: &str, number: String| vec![word.to_owned(), number];
        let (words, group) = match (self.kind, self.bytes) {
            (LimitKind::Cgroup, bytes) => {
                let groups = self.groups.as_deref();
                let group = Group::create(groups.context("no place for control groups")?, bytes)?;
                let members = group.members.as_raw_fd().to_string();
                (words("group", members), Some(group))
            }
            (_, None) => (Vec::new(), None),
            (kind, Some(bytes)) => (words(kind.word(), bytes.to_string()), None),
        };
        Ok(Limited {
            words,
            is_limited: self.bytes.is_some(),
            group,
        })
    }
}

impl Limited {
    /// Returns the file whose descriptor number the launcher receives, if a group sets the limit.
    pub(super) fn members(&self) -> Option<&File> {
        self.group.as_ref().map(|group| &group.members)
    }

    /// Returns how the process fared under the limit. Must be called once all processes have ended.
    pub fn end(self) -> UnderLimit {
        let group = self.group.as_ref();
        UnderLimit {
            is_limited: self.is_limited,
            was_killed: group.is_some_and(Group::was_killed),
            charged_bytes: group.and_then(|group| group.number("memory.peak")),
        }
    }
}

impl UnderLimit {
    /// Returns the outcome if the limit decides it, however the command reacted.
    pub fn outcome(&self, errno: i32) -> Option<Outcome> {
        let what = match errno {
            _ if self.was_killed => "killed by the kernel, its group was at the limit",
            libc::ENOMEM | libc::EAGAIN => "too little to be started",
            _ => return None,
        };
        Some(Outcome::Oom { what: what.into() })
    }
}

/// A control group of version 2 for one process and all that it starts.
struct Group {
    folder: PathBuf,
    /// The file through which a process becomes a member of the group, by writing 0 into it.
    members: File,
}

impl Group {
    fn create(groups: &Path, limit_bytes: Option<u64>) -> Result<Group> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let folder = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let folder = groups.join(format!("heapmark-{}-{number}", std::process::id()));
            match fs::create_dir(&folder) {
                // The folder was left behind by a killed heapmark that had the same process id.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    _ = fs::remove_dir(&folder);
                }
                made => {
                    made.with_path("cannot create the control group", &folder)?;
                    break folder;
                }
            }
        };
        let open = || -> Result<File> {
            let set = |file: &str, value: &str| {
                let path = folder.join(file);
                fs::write(&path, value).with_path("cannot set", &path)
            };
            if let Some(bytes) = limit_bytes {
                set("memory.max", &bytes.to_string())?;
            }
            // If one process is killed, all are, because the remainder of a tree gives no result.
            set("memory.oom.group", "1")?;
            // A machine without swap has no such file.
            if folder.join("memory.swap.max").exists() {
                set("memory.swap.max", "0")?;
            }
            let path = folder.join("cgroup.procs");
            let members = File::options().write(true).open(&path);
            members.with_path("cannot open", &path)
        };
        match open() {
            Ok(members) => Ok(Group { folder, members }),
            Err(error) => {
                _ = fs::remove_dir(&folder);
                Err(error)
            }
        }
    }

    fn number(&self, file: &str) -> Option<u64> {
        fs::read_to_string(self.folder.join(file))
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    fn was_killed(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        oom_kills::count(&events).is_some_and(|kills| kills > 0)
    }
}

impl Drop for Group {
    /// Removes the group, which is possible only a moment after its last process has ended.
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            sleep(Duration::from_millis(5));
        }
    }
}
