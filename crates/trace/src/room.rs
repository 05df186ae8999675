//! How much memory this process may still take. A process that the kernel kills for lack of memory
//! reports nothing, so tables that grow with a file of unknown origin ask before they grow.

use rustix::process::{Resource, getrlimit};
use std::fs::read_to_string;
use std::path::Path;

/// Requests up to this size are never checked.
const SMALL: u64 = 16 << 20;
/// What else a process needs.
const MARGIN: u64 = 32 << 20;

/// Why a table of this many bytes does not fit, if it does not.
pub(super) fn refusal(bytes: u64) -> Option<String> {
    let left = if bytes > SMALL { left()? } else { return None };
    // What is kept beside the table grows with it.
    let needed = bytes.saturating_add(bytes / 4).saturating_add(MARGIN);
    (needed > left).then(|| {
        format!(
            "{} MiB of memory are needed, and {} MiB can be had",
            needed >> 20,
            left >> 20
        )
    })
}

/// The least of what the machine, the process's own limit and its control groups leave.
fn left() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let sources = [machine(), address_space()]
        .into_iter()
        .chain(groups.lines().map(group));
    sources.flatten().min()
}

/// The memory that the kernel can give without swapping.
fn machine() -> Option<u64> {
    let text = read_to_string("/proc/meminfo").ok()?;
    Some(
        text.lines()
            .find_map(|line| number(line.strip_prefix("MemAvailable:")?))?
            << 10,
    )
}

/// `ulimit -v`
fn address_space() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let pages = number(&read_to_string("/proc/self/statm").ok()?)?;
    Some(limit.saturating_sub(pages * rustix::param::page_size() as u64))
}

/// What the group of a line of `/proc/self/cgroup`, and those above it, leave. Their page cache is
/// dropped when memory is short.
fn group(line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (folder, names) = match parts.next()? {
        "" => ("/sys/fs/cgroup", ["memory.max", "memory.current"]),
        "memory" => (
            "/sys/fs/cgroup/memory",
            ["memory.limit_in_bytes", "memory.usage_in_bytes"],
        ),
        _ => return None,
    };
    let own = Path::new(folder).join(parts.next()?.trim_start_matches('/'));
    let left = |group: &Path| {
        let [limit, used] = names.map(|name| number(&read_to_string(group.join(name)).ok()?));
        let stat = read_to_string(group.join("memory.stat")).unwrap_or_default();
        let files = ["inactive_file ", "active_file "];
        let files = stat.lines().filter_map(|line| {
            files
                .iter()
                .find_map(|name| number(line.strip_prefix(name)?))
        });
        Some(limit?.saturating_sub(used?.saturating_sub(files.sum())))
    };
    own.ancestors()
        .take_while(|group| group.starts_with(folder))
        .filter_map(left)
        .min()
}

/// The number at the start of a text.
fn number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
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
