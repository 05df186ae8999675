//! Where captures are stored while a program writes them. A recorder reserves space before it maps
//! a piece of its file, so that a full disk is an error for the recorder and not a signal for the
//! program. But on some file systems a store into reserved space may need more space.

use std::path::{Path, PathBuf};

/// File systems on which such a store can fail, by the kernel's numbers: they write changed data to
/// another place or to another machine.
const FAILING: [(u32, &str); 11] = [
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xca45_1a4e, "bcachefs"),
    (0xf2f5_2010, "f2fs"),
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
];
/// Better places for captures; folders on disks come before those in memory.
const ELSEWHERE: [&str; 3] = ["/var/tmp", "/tmp", "/dev/shm"];

/// Returns the folder to write captures in if they are meant for `folder`, and a message if that is
/// another folder or not safe.
pub fn for_captures(folder: &Path) -> (PathBuf, Option<String>) {
    choose(folder, &ELSEWHERE.map(Path::new), failing)
}

fn choose(
    folder: &Path,
    others: &[&Path],
    kind: impl Fn(&Path) -> Option<&'static str>,
) -> (PathBuf, Option<String>) {
    let Some(kind_here) = kind(folder) else {
        return (folder.to_path_buf(), None);
    };
    let why = format!(
        "{} is on {kind_here}, where a full disk may end the recorded program (SIGBUS)",
        folder.display()
    );
    match others
        .iter()
        .find(|other| other.is_dir() && kind(other).is_none())
    {
        Some(other) => {
            let words = format!("{why}: captures lie in {} while it runs", other.display());
            (other.to_path_buf(), Some(words))
        }
        None => {
            let words = format!("{why}, and so is all else: see that there is room");
            (folder.to_path_buf(), Some(words))
        }
    }
}

fn failing(folder: &Path) -> Option<&'static str> {
    let found = rustix::fs::statfs(folder).ok()?.f_type as u32;
    FAILING
        .iter()
        .find(|(number, _)| *number == found)
        .map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_store_can_fail_captures_lie_elsewhere_and_it_is_said() {
        let (here, there) = (Path::new("/"), Path::new("/tmp"));
        assert_eq!(choose(here, &[there], |_| None), (here.into(), None));
        let (chosen, message) = choose(here, &[there], |path| (path == here).then_some("btrfs"));
        assert!(chosen == there && message.unwrap().contains("/ is on btrfs"));
        let (chosen, message) = choose(here, &[there], |_| Some("zfs"));
        assert!(chosen == here && message.unwrap().contains("see that there is room"));
    }

    #[test]
    fn a_file_system_in_memory_keeps_what_it_has() {
        assert_eq!(failing(Path::new("/dev/shm")), None);
        assert_eq!(failing(Path::new("/proc")), None);
    }
}
