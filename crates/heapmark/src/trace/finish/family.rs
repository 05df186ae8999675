//! What a forked process has from its parent: the objects that were alive when it was made, at the same addresses.

use super::capture::Capture;
use super::merge::Merge;
use crate::trace::cut::birth;
use crate::trace::{Event, Head, Live};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Generations that are followed: processes that fork in a row.
const MOST_GENERATIONS: usize = 64;

/// Objects from before the recording, in the order in which they were allocated; none where the parent is not known.
pub(super) fn inherited(path: &Path, head: &Head) -> Vec<(u64, Event)> {
    of_generation(path, head, MOST_GENERATIONS)
}

fn of_generation(path: &Path, head: &Head, left: usize) -> Vec<(u64, Event)> {
    // Who executed another program has nothing left of its parent's.
    let forked = head.get("begin") == Some("fork");
    let number = |key: &str| head.get(key).and_then(|text| text.parse::<u32>().ok());
    let (Some(pid), Some(parent), true) = (number("pid"), number("parent"), forked && left > 0) else {
        return Vec::new();
    };
    beside(path, parent).into_iter().find_map(|file| alive_at_fork(&file, pid, left - 1)).unwrap_or_default()
}

/// Captures in the same directory that a process of this number may have written.
fn beside(path: &Path, pid: u32) -> Vec<PathBuf> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let word = format!(".{pid}.");
    let own = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.contains(&word) && name.ends_with(".cap")
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(own).collect();
    files.sort();
    files
}

/// What was alive in a process when it made the one with this number; `None` where it never did.
fn alive_at_fork(file: &Path, child: u32, left: usize) -> Option<Vec<(u64, Event)>> {
    let capture = Capture::open(file).ok()?;
    let mut merge = Merge::new(&capture);
    let mut live: Live<(u64, Event)> = Live::default();
    let mut number = 0;
    let mut follow = |thread: u32, event: &Event| {
        number += 1;
        drop(live.follow(thread, event, |size, _| (number, birth(event, size))));
    };
    for (address, event) in of_generation(file, &capture.head, left) {
        merge.inherit(address, event, &mut |thread, event| follow(thread, &event));
    }
    let mut at_fork = None;
    let run = merge.run(|addresses, thread, event| {
        if event == (Event::Fork { pid: child }) {
            at_fork = Some(addresses.live().map(|(address, token)| (token, address)).collect::<HashMap<_, _>>());
        } else {
            follow(thread, &event);
        }
        Ok(at_fork.is_none())
    });
    run.ok()?;
    let at_fork = at_fork?;
    let mut alive: Vec<(u64, u64, Event)> = live
        .into_objects()
        .filter_map(|(token, (number, event))| Some((number, *at_fork.get(&token)?, event)))
        .collect();
    alive.sort_unstable_by_key(|(number, ..)| *number);
    Some(alive.into_iter().map(|(_, address, event)| (address, event)).collect())
}
