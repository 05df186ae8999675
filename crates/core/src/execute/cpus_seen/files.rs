//! Files that report the number of CPUs, as a machine with more CPUs would have them. The machine's own CPUs stand in
//! for the additional ones, in turn.

use crate::execute::memory_file::stream_file;
use crate::file::{Draft, WithPath};
use anyhow::Result;
use std::fs::{self, File, read_to_string};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The folder in which Linux lists CPUs.
const LISTED: &str = "/sys/devices/system/cpu";
/// Files in that folder that contain a list of CPUs.
const LISTS: [&str; 3] = ["online", "possible", "present"];
/// The folder of control groups.
const GROUPS: &str = "/sys/fs/cgroup/";

/// The files of a machine with this many CPUs.
pub struct CpuFiles {
    count: u32,
    /// The folder that stands in for `LISTED`; it is among the temporary files.
    listed: Draft,
}

impl CpuFiles {
    pub fn new(count: u32) -> Result<CpuFiles> {
        let within = std::env::temp_dir();
        let listed = Draft::folder(&within).with_path("creating a folder in", &within)?;
        let files = CpuFiles { count, listed };
        files.fill().with_path("filling", files.listed.path())?;
        Ok(files)
    }

    fn fill(&self) -> std::io::Result<()> {
        let here = |name: &str| self.listed.path().join(name);
        for entry in fs::read_dir(LISTED)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            if number(&name).is_none() && !LISTS.contains(&&*name) {
                symlink(Path::new(LISTED).join(&*name), here(&name))?;
            }
        }
        for name in LISTS {
            fs::write(here(name), list(self.count) + "\n")?;
        }
        let cpus = possible();
        for cpu in 0..self.count {
            let stands_for = Path::new(LISTED).join(format!("cpu{}", cpu % cpus));
            symlink(stands_for, here(&format!("cpu{cpu}")))?;
        }
        Ok(())
    }

    /// Opens the file that a process gets in place of this path; `None` if the process gets the file itself. `thread`
    /// is the calling thread.
    pub fn open(&self, path: &Path, thread: u32) -> Option<File> {
        if let Ok(below) = path.strip_prefix(LISTED) {
            return File::open(self.listed.path().join(below)).ok();
        }
        let text = || self.text(path, thread);
        // Only absolute paths that begin like this are worth a look.
        let may_be = path.starts_with("/proc") || path.starts_with(GROUPS);
        let text = may_be.then(text).flatten()?;
        unnamed(&text).ok()
    }

    fn text(&self, path: &Path, thread: u32) -> Option<String> {
        // Read from here, this path would lead to a thread of heapmark.
        if path.starts_with("/proc/thread-self") {
            return None;
        }
        let below = path.strip_prefix("/proc/self").ok();
        let seen = below.map_or_else(
            // The path as the process sees it, whatever is mounted there.
            || PathBuf::from(format!("/proc/{thread}/root{}", path.display())),
            |rest| Path::new("/proc").join(thread.to_string()).join(rest),
        );
        let name = path.file_name()?.to_str()?;
        let is_of_group = path.starts_with(GROUPS);
        let of = |change: fn(&str, u32) -> String| {
            let text = read_to_string(&seen).ok()?;
            Some(change(&text, self.count))
        };
        match name {
            "stat" if path == Path::new("/proc/stat") => of(stat),
            "cpuinfo" if path == Path::new("/proc/cpuinfo") => of(cpuinfo),
            "status" if path.starts_with("/proc") => of(status),
            "cpu.max" if is_of_group => of(|_, _| "max 100000\n".into()),
            "cpu.cfs_quota_us" if is_of_group => of(|_, _| "-1\n".into()),
            _ if is_of_group && name.starts_with("cpuset.") && name.contains("cpus") => {
                of(|_, count| list(count) + "\n")
            }
            _ => None,
        }
    }
}

/// Returns the list of all CPUs, such as `0-63`.
pub fn list(count: u32) -> String {
    match count {
        1 => "0".into(),
        _ => format!("0-{}", count - 1),
    }
}

/// Returns the number of CPUs that this machine can have.
pub fn possible() -> u32 {
    let text = read_to_string(format!("{LISTED}/possible")).unwrap_or_default();
    let last = text.trim_end().rsplit(['-', ',']).next();
    last.and_then(|last| last.parse().ok()).unwrap_or(0) + 1
}

/// Returns the number in a name such as `cpu7`.
fn number(name: &str) -> Option<u32> {
    name.strip_prefix("cpu")?.parse().ok()
}

/// Makes a read-only file in memory that contains this text.
fn unnamed(text: &str) -> Result<File> {
    let mut file = stream_file("heapmark-cpus")?;
    file.write_all(text.as_bytes())?;
    let again = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
    Ok(File::open(again)?)
}

/// Returns the text of `/proc/stat` with a line for each of `count` CPUs.
fn stat(text: &str, count: u32) -> String {
    let is_of_one = |line: &&str| {
        line.split(' ')
            .next()
            .is_some_and(|name| number(name).is_some())
    };
    let cpu_lines: Vec<&str> = text.lines().filter(is_of_one).collect();
    let all = (0..count).filter_map(|cpu| {
        let line = cpu_lines.get(cpu as usize % cpu_lines.len().max(1))?;
        Some(format!("cpu{cpu} {}\n", line.split_once(' ')?.1))
    });
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default().to_owned();
    let others = lines.filter(|line| !is_of_one(line)).map(str::to_owned);
    [first].into_iter().chain(all).chain(others).collect()
}

/// Returns the text of `/proc/cpuinfo` with a part for each of `count` CPUs.
fn cpuinfo(text: &str, count: u32) -> String {
    const NAME: &str = "processor";
    let parts: Vec<&str> = text.split_inclusive("\n\n").collect();
    let (cpu_parts, others): (Vec<&str>, Vec<&str>) =
        parts.into_iter().partition(|part| part.starts_with(NAME));
    let all = (0..count).filter_map(|cpu| {
        let part = cpu_parts.get(cpu as usize % cpu_parts.len().max(1))?;
        Some(format!("{NAME}\t: {cpu}\n{}", part.split_once('\n')?.1))
    });
    all.chain(others.into_iter().map(str::to_owned)).collect()
}

/// Returns the text of `/proc/PID/status`, which contains the CPUs as a mask and as a list.
fn status(text: &str, count: u32) -> String {
    let line = |line: &str| match line.split_once(':') {
        Some(("Cpus_allowed", _)) => format!("Cpus_allowed:\t{}\n", mask(count)),
        Some(("Cpus_allowed_list", _)) => format!("Cpus_allowed_list:\t{}\n", list(count)),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Returns the mask of all CPUs in words of 32 bits, the highest first.
fn mask(count: u32) -> String {
    let word = |word: u32| format!("{:08x}", u32::MAX >> (32 - (count - 32 * word).min(32)));
    let words: Vec<String> = (0..count.div_ceil(32)).rev().map(word).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_that_are_there_stand_for_those_that_are_not() {
        let text = "cpu  9 9\ncpu0 4 1\ncpu1 5 2\nintr 7 cpu\nctxt 3\n";
        let wanted = "cpu  9 9\ncpu0 4 1\ncpu1 5 2\ncpu2 4 1\nintr 7 cpu\nctxt 3\n";
        assert_eq!(stat(text, 3), wanted);
        let text = "processor\t: 0\nmodel\t: a\n\nprocessor\t: 1\nmodel\t: b\n\nHardware: c\n";
        let wanted = "processor\t: 0\nmodel\t: a\n\nprocessor\t: 1\nmodel\t: b\n\nprocessor\t: 2\nmodel\t: a\n\nHardware: c\n";
        assert_eq!(cpuinfo(text, 3), wanted);
        let text = "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
        let wanted = "Name:\tx\nCpus_allowed:\t0000003f,ffffffff\nCpus_allowed_list:\t0-37\n";
        assert_eq!(status(text, 38), wanted);
        assert_eq!(
            (mask(64), list(1)),
            ("ffffffff,ffffffff".into(), "0".into())
        );
    }

    #[test]
    fn a_quota_is_told_only_if_there_is_one_and_other_files_are_left_alone() {
        let files = CpuFiles::new(64).unwrap();
        let pid = std::process::id();
        let open = |path: &str| {
            let file = files.open(Path::new(path), pid);
            file.map(|file| std::io::read_to_string(file).unwrap())
        };
        assert_eq!(open("/sys/devices/system/cpu/online").unwrap(), "0-63\n");
        assert!(
            open("/proc/self/status")
                .unwrap()
                .contains("_list:\t0-63\n")
        );
        assert!(open("/proc/cpuinfo").unwrap().contains("processor\t: 63\n"));
        for path in [
            "/proc/self/maps",
            "/etc/passwd",
            "/sys/fs/cgroup/none/cpu.max",
        ] {
            assert_eq!(open(path), None, "{path}");
        }
        let listed = fs::read_dir(files.listed.path()).unwrap();
        let names = listed.map(|entry| entry.unwrap().file_name());
        let cpus = names.filter(|name| number(&name.to_string_lossy()).is_some());
        assert_eq!(cpus.count(), 64);
    }
}
