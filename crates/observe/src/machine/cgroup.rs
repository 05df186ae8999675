//! The control groups that limit this process: the folders of its own group and of all groups above
//! it, in version 1, in version 2, and if both are mounted.

use super::counters::Throttled;
use super::root::Root;
use rustix::fs::{Access, access};
use std::ops::Add;
use std::path::Path;

/// The groups of one controller.
#[derive(Clone)]
pub struct Groups {
    /// The version, which decides the names of the files.
    pub version: Version,
    /// Folders, the process's own group first, then those above it as far as they are visible.
    pub folders: Vec<String>,
}

/// The version of control groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Version {
    /// Version 1: a hierarchy per controller.
    One,
    /// Version 2: one hierarchy for all.
    Two,
}

impl Groups {
    /// Returns the groups of a controller, such as `cpu` or `memory`. A controller that version 1
    /// uses is not in version 2.
    pub fn of(root: &Root, controller: &str) -> Option<Groups> {
        Groups::of_process(root, "self", controller)
    }

    /// Returns the control groups of another process, by its number.
    pub fn of_process(root: &Root, process: &str, controller: &str) -> Option<Groups> {
        let lines = root.text(&format!("proc/{process}/cgroup"))?;
        let has = |list: &str| list.split(',').any(|name| name == controller);
        let find = |wanted: &dyn Fn(&str) -> bool| {
            lines.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                wanted(controllers).then_some(path)
            })
        };
        let (version, path) = match find(&has) {
            Some(path) => (Version::One, path),
            None => (Version::Two, find(&str::is_empty)?),
        };
        let mounts = root.text("proc/self/mountinfo")?;
        let mut mounts = mounts.lines().filter_map(Mount::parse);
        let mount = mounts.find(|mount| match version {
            Version::One => mount.kind == "cgroup" && has(mount.options),
            Version::Two => mount.kind == "cgroup2",
        })?;
        // In a container the mount's root may be below the machine's own root; the path then starts
        // with it.
        let inside = path
            .strip_prefix(mount.root)
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
            .unwrap_or(path);
        let folders = Path::new(inside.trim_matches('/'))
            .ancestors()
            .map(|group| {
                format!("{}/{}", mount.point, group.display())
                    .trim_end_matches('/')
                    .to_string()
            });
        Some(Groups {
            version,
            folders: folders.collect(),
        })
    }

    /// Returns the text of a file in each of the groups that have it, with the group's folder.
    pub fn texts(&self, root: &Root, file: &str) -> Vec<(String, String)> {
        let text = |folder| root.text(&format!("{folder}/{file}"));
        self.folders
            .iter()
            .filter_map(|folder| Some((folder.clone(), text(folder)?)))
            .collect()
    }

    /// Returns whether the topmost group is the machine's own root, above which there can be no
    /// limit. Only the root has no type.
    pub fn reach_the_root(&self, root: &Root) -> bool {
        let top = self.folders.last();
        let has = |file| top.is_some_and(|top| root.path(&format!("{top}/{file}")).exists());
        self.version == Version::Two && has("cgroup.controllers") && !has("cgroup.type")
    }

    /// Returns the memory left below the tightest limit. `None` if there is no limit.
    pub fn memory_left(&self, root: &Root) -> Option<MemoryLeft> {
        let (limits, usage, cache) = match self.version {
            Version::Two => (&MEMORY_LIMITS[..2], "memory.current", "inactive_file "),
            Version::One => (
                &MEMORY_LIMITS[2..],
                "memory.usage_in_bytes",
                "total_inactive_file ",
            ),
        };
        // Cached files that are not in use give way at once.
        let cached = |folder: &str| {
            let text = root.text(&format!("{folder}/memory.stat"))?;
            let mut values = text.lines().filter_map(|line| line.strip_prefix(cache));
            values.next()?.trim().parse::<u64>().ok()
        };
        let texts = limits.iter().flat_map(|file| self.texts(root, file));
        let limited = texts.filter_map(|(folder, text)| {
            let limit_bytes: u64 = text.parse().ok()?;
            let used: u64 = root.number(&format!("{folder}/{usage}")).unwrap_or(0);
            let held = used.saturating_sub(cached(&folder).unwrap_or(0));
            (limit_bytes < NO_LIMIT_BYTES).then(|| MemoryLeft {
                bytes: limit_bytes.saturating_sub(held),
                limit_bytes,
                folder,
            })
        });
        limited.min()
    }

    /// Returns the folder in which this process may make groups with limits on memory; or why there
    /// is none.
    pub fn for_limits(root: &Root) -> Result<String, String> {
        let groups = Groups::of(root, "memory").ok_or("no control groups are mounted here")?;
        if groups.version == Version::One {
            return Err("this machine limits memory by control groups of version 1".into());
        }
        let hands_on = |(folder, text): (String, String)| {
            text.split_whitespace()
                .any(|controller| controller == "memory")
                .then_some(folder)
        };
        let mut folders = groups
            .texts(root, "cgroup.subtree_control")
            .into_iter()
            .filter_map(hands_on)
            .peekable();
        if folders.peek().is_none() {
            return Err("no group above this process limits the memory of those below it (cgroup.subtree_control)".into());
        }
        let may_write = |path: &str| access(root.path(path), Access::WRITE_OK).is_ok();
        folders
            .find(|folder| may_write(folder) && may_write(&format!("{folder}/cgroup.procs")))
            .ok_or_else(|| "no group above this process may be changed by this user".into())
    }

    /// Returns whether any group reports a memory limit.
    pub fn tell_memory(&self, root: &Root) -> bool {
        MEMORY_LIMITS
            .iter()
            .any(|file| !self.texts(root, file).is_empty())
    }

    /// Returns the group with the lowest limit, and that limit in CPUs. The outer `None` means that
    /// it is not known whether there is a limit.
    pub fn cpu_limit(&self, root: &Root) -> Option<Option<(String, f64)>> {
        let file = match self.version {
            Version::Two => "cpu.max",
            Version::One => "cpu.cfs_quota_us",
        };
        let limit = |(folder, text): (String, String)| {
            let cpus = match self.version {
                Version::Two => cpus_of_max(&text)?,
                Version::One => {
                    let period = root.number::<f64>(&format!("{folder}/cpu.cfs_period_us"))?;
                    let quota: f64 = text.parse().ok()?;
                    (quota >= 0.0).then_some(quota / period)
                }
            };
            Some((folder, cpus))
        };
        let entries: Vec<_> = self
            .texts(root, file)
            .into_iter()
            .filter_map(limit)
            .collect();
        let known = !entries.is_empty() || self.reach_the_root(root);
        let limits = entries
            .into_iter()
            .filter_map(|(folder, cpus)| Some((folder, cpus?)));
        known.then(|| limits.min_by(|(_, a), (_, b)| a.total_cmp(b)))
    }

    /// Returns all throttling of this process, including by groups above. `None` if no group
    /// reports it.
    pub fn throttled(&self, root: &Root) -> Option<Throttled> {
        self.texts(root, "cpu.stat")
            .iter()
            .filter_map(|(_, text)| Throttled::read(text))
            .reduce(Throttled::add)
    }
}

/// Parses `max 100000` or `150000 100000`: time in each period, both in us. The inner `None` means
/// no limit.
fn cpus_of_max(text: &str) -> Option<Option<f64>> {
    let (quota, period) = text.split_once(' ')?;
    if quota == "max" {
        return Some(None);
    }
    let quota: f64 = quota.parse().ok()?;
    let period: f64 = period.parse().ok()?;
    Some(Some(quota / period))
}

/// Files that limit memory: two of version 2, one of version 1.
const MEMORY_LIMITS: [&str; 3] = ["memory.max", "memory.high", "memory.limit_in_bytes"];

/// Version 1 reports "no limit" as the largest number of whole pages.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// Memory left below a limit.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryLeft {
    /// Bytes that are not used yet.
    pub bytes: u64,
    /// The limit itself.
    pub limit_bytes: u64,
    /// The folder of the group that has this limit.
    pub folder: String,
}

/// A line of mountinfo.
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl Mount<'_> {
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let mut after = after.split(' ');
        Some(Mount {
            root: before.next()?,
            point: before.next()?,
            kind: after.next()?,
            options: after.nth(1)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn planted(cgroup: &str, mountinfo: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        fs::write(dir.path().join("proc/self/cgroup"), cgroup).unwrap();
        fs::write(dir.path().join("proc/self/mountinfo"), mountinfo).unwrap();
        dir
    }

    fn folders(cgroup: &str, mountinfo: &str, controller: &str) -> Option<(Version, Vec<String>)> {
        let groups = Groups::of(&Root::at(planted(cgroup, mountinfo).path()), controller)?;
        Some((groups.version, groups.folders))
    }

    const TWO: &str = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n";
    const BOTH: &str = "\
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 master:3 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn a_desktop_of_version_2_has_every_group_above() {
        let expected = [
            "/sys/fs/cgroup/user.slice/session.scope",
            "/sys/fs/cgroup/user.slice",
            "/sys/fs/cgroup",
        ];
        let found = folders("0::/user.slice/session.scope\n", TWO, "cpu");
        assert_eq!(
            found,
            Some((Version::Two, expected.map(String::from).to_vec()))
        );
    }

    #[test]
    fn a_controller_of_version_1_is_found_beside_an_empty_version_2() {
        let cgroup = "4:memory:/jobs/7\n2:cpu,cpuacct:/\n1:cpuset:/\n0::/\n";
        let memory = [
            "/sys/fs/cgroup/memory/jobs/7",
            "/sys/fs/cgroup/memory/jobs",
            "/sys/fs/cgroup/memory",
        ];
        assert_eq!(
            folders(cgroup, BOTH, "memory"),
            Some((Version::One, memory.map(String::from).to_vec()))
        );
        assert_eq!(
            folders(cgroup, BOTH, "cpu"),
            Some((Version::One, vec!["/sys/fs/cgroup/cpu,cpuacct".into()]))
        );
        // A controller that version 1 does not use is in version 2.
        assert_eq!(
            folders(cgroup, BOTH, "io"),
            Some((Version::Two, vec!["/sys/fs/cgroup/unified".into()]))
        );
    }

    #[test]
    fn a_mount_that_begins_at_the_containers_group_is_that_group() {
        let mount = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let found = folders("4:memory:/docker/abc\n", mount, "memory");
        assert_eq!(
            found,
            Some((Version::One, vec!["/sys/fs/cgroup/memory".into()]))
        );
    }

    #[test]
    fn a_group_for_limits_is_made_where_memory_is_handed_on_and_this_user_may_write() {
        let dir = planted("0::/user/mine\n", TWO);
        let root = Root::at(dir.path());
        let why = || Groups::for_limits(&root).unwrap_err();
        assert!(why().contains("cgroup.subtree_control"), "{}", why());
        let top = dir.path().join("sys/fs/cgroup");
        let user = top.join("user");
        fs::create_dir_all(user.join("mine")).unwrap();
        fs::write(user.join("mine/cgroup.subtree_control"), "\n").unwrap();
        fs::write(user.join("cgroup.subtree_control"), "cpu memory\n").unwrap();
        // Without this file the folder is no group that a process could be moved to.
        assert!(why().contains("may be changed"), "{}", why());
        fs::write(user.join("cgroup.procs"), "").unwrap();
        assert_eq!(Groups::for_limits(&root).unwrap(), "/sys/fs/cgroup/user");
        let one = planted("4:memory:/jobs\n0::/\n", BOTH);
        let one = Groups::for_limits(&Root::at(one.path())).unwrap_err();
        assert!(one.contains("version 1"), "{one}");
    }

    #[test]
    fn files_that_were_read_take_no_memory_from_a_group() {
        const MIB: u64 = 1 << 20;
        for (group, mounts, [limit, usage], cache) in [
            (
                "0::/a\n",
                TWO,
                ["memory.max", "memory.current"],
                "inactive_file",
            ),
            (
                "4:memory:/a\n",
                BOTH,
                ["memory.limit_in_bytes", "memory.usage_in_bytes"],
                "total_inactive_file",
            ),
        ] {
            let dir = planted(group, mounts);
            let root = Root::at(dir.path());
            let groups = Groups::of(&root, "memory").unwrap();
            let folder = root.path(&groups.folders[0]);
            fs::create_dir_all(&folder).unwrap();
            let write = |file: &str, text: String| fs::write(folder.join(file), text).unwrap();
            write(limit, format!("{}\n", 100 * MIB));
            write(usage, format!("{}\n", 90 * MIB));
            let left = || groups.memory_left(&root).unwrap().bytes / MIB;
            assert_eq!(left(), 10);
            let stat = format!("anon 7\n{cache} {}\nactive_file 5\n", 60 * MIB);
            write("memory.stat", stat);
            assert_eq!(left(), 70);
        }
    }

    #[test]
    fn what_is_not_mounted_is_not_told() {
        assert_eq!(folders("4:memory:/\n", TWO, "memory"), None);
        assert_eq!(folders("", TWO, "memory"), None);
    }

    #[test]
    fn throttling_is_summed_over_the_groups_that_tell_it() {
        let dir = planted("0::/a/b\n", TWO);
        for (folder, times) in [("a/b", 2), ("a", 3)] {
            let folder = dir.path().join("sys/fs/cgroup").join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(
                folder.join("cpu.stat"),
                format!("nr_throttled {times}\nthrottled_usec 5\n"),
            )
            .unwrap();
        }
        let root = Root::at(dir.path());
        let groups = Groups::of(&root, "cpu").unwrap();
        assert_eq!(
            groups.throttled(&root),
            Some(Throttled {
                times: 5,
                total_ns: 10_000
            })
        );
    }

    #[test]
    fn a_share_of_a_period_is_a_number_of_cpus() {
        let found = ["max 100000", "150000 100000", "50000 100000", "nonsense"].map(cpus_of_max);
        assert_eq!(found, [Some(None), Some(Some(1.5)), Some(Some(0.5)), None]);
    }
}
