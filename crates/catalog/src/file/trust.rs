//! Whether another user can exchange what lies at a path. What heapmark finds by itself and then
//! executes or preloads must not be exchangeable; what its user names is the user's own choice.

use rustix::fs::lgetxattr;
use rustix::process::geteuid;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

/// A file or folder on the way to a path by which another user can exchange what lies there.
#[derive(Debug, PartialEq)]
pub struct Weakness {
    place: PathBuf,
    by: By,
}

/// Who can change a file.
#[derive(Debug, PartialEq)]
enum By {
    Everyone,
    Group,
    Owner(u32),
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let place = self.place.display();
        match self.by {
            By::Everyone | By::Group => write!(f, "others can write in {place}"),
            By::Owner(owner) => write!(f, "{place} belongs to user {owner}"),
        }
    }
}

impl Weakness {
    /// Returns whether everyone can exchange the file, and not only a group or an owner whom an
    /// administrator may have chosen.
    pub fn is_for_everyone(&self) -> bool {
        self.by == By::Everyone
    }
}

/// Returns the first weakness of a path, if it has one.
pub fn weakness(path: &Path) -> Option<Weakness> {
    weaknesses(path).next()
}

/// Returns all weaknesses of a path. If the end of the path does not exist, these include a
/// weakness of the last folder that does: anyone who can write there could make the rest.
pub fn weaknesses(path: &Path) -> impl Iterator<Item = Weakness> + use<> {
    let (steps, is_whole) = steps(path);
    let last = steps.len() - 1;
    let steps = steps.into_iter().enumerate();
    steps.filter_map(move |(at, place)| {
        let data = place.symlink_metadata().ok()?;
        // In a sticky folder (`/tmp`) only owners rename and remove; but everyone makes new names.
        let is_sticky = data.is_dir() && data.mode() & 0o1000 != 0 && (is_whole || at < last);
        // The mode of a symbolic link has no meaning.
        let mode = if data.is_symlink() || is_sticky {
            0
        } else {
            data.mode()
        };
        let by = who(data.uid(), data.gid(), mode, || has_list(&place))?;
        Some(Weakness { place, by })
    })
}

/// Returns who can change a file, if anyone else can. Many systems give each user a group with the
/// user's own number. `has_list` returns whether the group's bits are those of an access control
/// list.
fn who(owner: u32, group: u32, mode: u32, has_list: impl Fn() -> bool) -> Option<By> {
    let is_others = |group| ![0, owner].contains(&group);
    if ![0, geteuid().as_raw()].contains(&owner) && !is_outside(owner) {
        Some(By::Owner(owner))
    } else if mode & 0o002 != 0 {
        Some(By::Everyone)
    } else if mode & 0o020 != 0 && (is_others(group) || has_list()) {
        Some(By::Group)
    } else {
        None
    }
}

fn has_list(place: &Path) -> bool {
    lgetxattr(place, "system.posix_acl_access", &mut [0_u8; 0]).is_ok_and(|bytes| bytes > 0)
}

/// Returns whether an owner is the user to whom all files from outside a user namespace seem to
/// belong. Inside the namespace, there is no way to find out which of these files are root's.
fn is_outside(owner: u32) -> bool {
    /// The Unix user `nobody`.
    const OVERFLOW: u32 = 65_534;
    static IS_MAPPED: LazyLock<bool> = LazyLock::new(|| {
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        map.is_empty()
            || map.lines().any(|line| {
                let numbers: Vec<u32> = line
                    .split_whitespace()
                    .filter_map(|number| number.parse().ok())
                    .collect();
                matches!(numbers[..], [first, _, count] if OVERFLOW.wrapping_sub(first) < count)
            })
    });
    owner == OVERFLOW && !*IS_MAPPED
}

/// Returns every folder, link and file that the kernel passes on the way to a path; and whether all
/// of them exist.
fn steps(path: &Path) -> (Vec<PathBuf>, bool) {
    /// The kernel's limit on symbolic links in a path.
    const MOST_LINKS: usize = 40;
    let parts = |path: &Path| -> Vec<OsString> {
        let parts = path.components();
        parts
            .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
            .map(|part| part.as_os_str().to_owned())
            .collect()
    };
    let mut here = PathBuf::from("/");
    let mut seen = vec![here.clone()];
    let path = std::env::current_dir().unwrap_or_default().join(path);
    let mut rest = VecDeque::from(parts(&path));
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            here.pop();
            continue;
        }
        let next = here.join(part);
        if next.symlink_metadata().is_err() {
            return (seen, false);
        }
        seen.push(next.clone());
        match next.read_link() {
            Ok(target) if links < MOST_LINKS => {
                links += 1;
                if target.is_absolute() {
                    here = "/".into();
                }
                for part in parts(&target).into_iter().rev() {
                    rest.push_front(part);
                }
            }
            _ => here = next,
        }
    }
    (seen, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_lies_below_a_folder_or_behind_a_link_that_others_can_change_is_not_trusted() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        for folder in ["open/below", "real", "closed"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("open/below/file"), "").unwrap();
        // A link leads through the open folder into a closed one.
        symlink(at("open/link"), at("real/link")).unwrap();
        symlink("../closed", at("open/link")).unwrap();
        let is_weak = |mode: u32, path: &str| {
            fs::set_permissions(at("open"), Permissions::from_mode(mode)).unwrap();
            weakness(&at(path)).map(|weakness| weakness.place == at("open"))
        };
        for path in ["open/below/file", "real/link", "real/../open/below"] {
            assert_eq!(
                [0o755, 0o1777, 0o777, 0o757].map(|mode| is_weak(mode, path)),
                [None, None, Some(true), Some(true)],
                "{path}"
            );
        }
        assert_eq!(
            is_weak(0o1777, "open/new"),
            Some(true),
            "anyone may make it"
        );
        assert_eq!(is_weak(0o755, "open/new"), None);
        fs::set_permissions(at("open/below/file"), Permissions::from_mode(0o606)).unwrap();
        assert_eq!(is_weak(0o755, "open/below/file"), Some(false), "the file");
    }

    #[test]
    fn of_owners_only_root_and_oneself_are_trusted_and_of_groups_only_ones_own() {
        let me = geteuid().as_raw();
        let by = |owner, group, mode, has_list| who(owner, group, mode, || has_list);
        assert_eq!(by(123_456, 0, 0o755, false), Some(By::Owner(123_456)));
        assert_eq!(
            [0, me].map(|owner| by(owner, 0, 0o755, false)),
            [None, None]
        );
        assert_eq!(by(me, 50, 0o775, false), Some(By::Group));
        assert_eq!(by(0, 0, 0o775, false), None);
        assert_eq!(by(0, 0, 0o775, true), Some(By::Group));
        assert_eq!(by(me, me, 0o777, false), Some(By::Everyone));
    }
}
