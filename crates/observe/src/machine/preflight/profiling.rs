//! Whether the CPU's own counters can be read. No result of heapmark needs them, but explaining a
//! result may.

use super::Root;
use super::item::{
    ItemState::{Fine, Note},
    PreflightItem, item, note_if,
};
use heapmark_guest::counted::perf;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::io;

pub fn items(root: &Root) -> Vec<PreflightItem> {
    // Counting works only on this machine, not on copied files.
    let counted = root.planted().is_none().then(count_instructions);
    vec![
        item(
            "perf_event_paranoid",
            "above 2 only root may count instructions or cache misses; no time or memory figure depends on it",
            "echo 2 | sudo tee /proc/sys/kernel/perf_event_paranoid",
            root.number("proc/sys/kernel/perf_event_paranoid"),
            |level: i32| (level.to_string(), note_if(level > 2)),
        ),
        counters(counted),
    ]
}

fn counters(counted: Option<io::Result<u64>>) -> PreflightItem {
    item(
        "hardware-counters",
        "without them `perf stat` cannot explain a difference by instructions and misses; no time or memory figure depends on it",
        "a virtual machine gets them from its host (vPMU); refused ones: see perf_event_paranoid",
        counted,
        |counted| match counted {
            Ok(0) => ("open, but count nothing".into(), Note),
            Ok(_) => ("work".into(), Fine),
            Err(error) => {
                let words = match error.raw_os_error() {
                    Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => "none in this machine",
                    Some(libc::EACCES | libc::EPERM) => "refused",
                    Some(libc::ENOSYS) => "not in this kernel",
                    _ => return (error.to_string(), Note),
                };
                (words.into(), Note)
            }
        },
    )
}

/// Counts the instructions of this thread between opening a counter and reading it.
fn count_instructions() -> io::Result<u64> {
    let file =
        perf::open(perf::INSTRUCTIONS, perf::Whom::Caller).map_err(io::Error::from_raw_os_error)?;
    // SAFETY: a new descriptor that has no other owner.
    let counter = unsafe { OwnedFd::from_raw_fd(file) };
    let reading = perf::read(counter.as_raw_fd()).ok_or_else(io::Error::last_os_error)?;
    Ok(reading.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_of_not_counting_has_words() {
        let found = |counted| counters(counted).found;
        assert_eq!(found(Some(Ok(1234))).as_deref(), Some("work"));
        assert_eq!(
            found(Some(Ok(0))).as_deref(),
            Some("open, but count nothing")
        );
        let refused = io::Error::from_raw_os_error(libc::EACCES);
        assert_eq!(found(Some(Err(refused))).as_deref(), Some("refused"));
        let missing = io::Error::from_raw_os_error(libc::ENOENT);
        assert_eq!(
            found(Some(Err(missing))).as_deref(),
            Some("none in this machine")
        );
        assert_eq!(found(None), None);
    }

    #[test]
    fn only_working_counters_are_fine() {
        assert_eq!(
            (counters(Some(Ok(1))).state, counters(Some(Ok(0))).state),
            (Fine, Note)
        );
        assert_eq!(counters(None).state, Note);
    }
}
