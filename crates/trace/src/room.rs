//! How much memory this process may still take. A process that the kernel kills for lack of memory
//! reports nothing, so tables that grow with a file of unknown origin ask before they grow.

use rustix::process::{Resource, getrlimit};
use std::fs::read_to_string;
use std::path::Path;

/// Requests up to this many bytes are never checked.
const SMALL: u64 = 16 << 20;
/// The bytes that a process needs besides the table.
const MARGIN: u64 = 32 << 20;

/// Returns why a table of this many bytes does not fit; `None` if it fits, or if that is not known.
pub fn refusal(bytes: u64) -> Option<String> {
    let left = if bytes > SMALL { left()? } else { return None };
    // Data that is kept beside the table grows with it.
    let needed = bytes.saturating_add(bytes / 4).saturating_add(MARGIN);
    (needed > left).then(|| {
        format!(
            "{} MiB of memory are needed, and {} MiB can be had",
            needed >> 20,
            left >> 20
        )
    })
}

/// Returns the least memory that the machine, the process's own limit and its control groups leave.
fn left() -> Option<u64> {
    // The memory that the kernel can give without swapping.
    let machine = number("/proc/meminfo", "MemAvailable:").map(|kib| kib << 10);
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = groups.lines().filter_map(group);
    groups.chain(machine).chain(address_space()).min()
}

/// Returns the bytes of address space that `ulimit -v` leaves.
fn address_space() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let pages = number("/proc/self/statm", "")?;
    Some(limit.saturating_sub(pages * rustix::param::page_size() as u64))
}

/// Returns the memory that the control group in a line of `/proc/self/cgroup`, and the groups above
/// it, leave. Their page cache counts as free, since it is dropped when memory is short.
fn group(line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (folder, limit, used) = match parts.next()? {
        "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
        "memory" => (
            "/sys/fs/cgroup/memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
        ),
        _ => return None,
    };
    let path = Path::new(folder).join(parts.next()?.trim_start_matches('/'));
    let left = |group: &Path| {
        let files = ["inactive_file ", "active_file "]
            .into_iter()
            .filter_map(|kind| number(group.join("memory.stat"), kind));
        let used = number(group.join(used), "")?.saturating_sub(files.sum());
        Some(number(group.join(limit), "")?.saturating_sub(used))
    };
    path.ancestors()
        .take_while(|group| group.starts_with(folder))
        .filter_map(left)
        .min()
}

/// Returns the first number that follows these words at the beginning of a line of a file.
fn number(file: impl AsRef<Path>, words: &str) -> Option<u64> {
    let text = read_to_string(file).ok()?;
    let mut lines = text.lines();
    lines.find_map(|line| {
        line.strip_prefix(words)?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_tables_are_not_asked_about_and_those_that_no_machine_has_room_for_are_refused() {
        assert_eq!(refusal(SMALL), None);
        let refused = refusal(1 << 60).expect("no machine has so much");
        assert!(
            refused.starts_with("1374389534752 MiB of memory are needed, and "),
            "{refused}"
        );
        assert!(refusal(u64::MAX).is_some());
    }
}
