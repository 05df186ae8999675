//! Captures of processes that forked each other. A child is processed when its parent's capture has
//! been read up to the fork: so each capture is read once, and what a child inherits is kept only
//! while its own trace is written.

use super::capture::Capture;
use crate::{Done, Event, Head};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

/// A process: the folder of its capture, and its process id.
pub type ProcessId = (PathBuf, u32);

/// A capture in its process tree.
pub struct Member {
    pub path: PathBuf,
    /// Whether the capture becomes a trace. Others are read only for their children.
    pub wanted: bool,
    pub process: Option<ProcessId>,
    /// The process that forked this one. A process that executed another program inherits nothing.
    parent: Option<ProcessId>,
    /// The moment of the fork: process ids are reused.
    fork: Option<u64>,
}

/// A capture that can be processed now.
pub struct Turn {
    pub member: Member,
    /// The objects that the parent had at the fork: their addresses, and the calls that make them.
    pub inherited: Vec<(u64, Event)>,
    /// How many captures are being read around this one, each stopped at a fork.
    pub depth: usize,
}

/// The captures still to be processed, and which of them wait for others.
pub struct Family {
    /// Captures that can be processed now.
    ready: RefCell<VecDeque<Turn>>,
    /// Children by their parents.
    waiting: RefCell<BTreeMap<ProcessId, Vec<Member>>>,
    /// Counts the bytes that are read from all captures.
    pub done: Done,
}

impl Family {
    /// Builds the tree of these captures, and of those beside them that are needed to finish them.
    pub fn of(captures: &[PathBuf], done: Done) -> Family {
        let mut members: Vec<Member> = captures.iter().map(|path| Member::of(path, true)).collect();
        let mut folders = HashMap::new();
        let mut sought = HashSet::new();
        let mut at = 0;
        while let Some(member) = members.get(at) {
            at += 1;
            let Some((folder, pid)) = member
                .parent
                .clone()
                .filter(|parent| sought.insert(parent.clone()))
            else {
                continue;
            };
            let beside: &Vec<PathBuf> = folders
                .entry(folder.clone())
                .or_insert_with(|| captures_in(&folder));
            let word = format!(".{pid}.");
            for path in beside {
                let name = path.file_name().unwrap_or_default();
                let is_known = |known: &Member| {
                    known.path.file_name() == Some(name)
                        && known
                            .process
                            .as_ref()
                            .is_some_and(|process| process.0 == folder)
                };
                if !name.to_string_lossy().contains(&word) || members.iter().any(is_known) {
                    continue;
                }
                let other = Member::of(path, false);
                if other.process.as_ref() == Some(&(folder.clone(), pid)) {
                    members.push(other);
                }
            }
        }
        let (mut ready, mut waiting) = (VecDeque::new(), BTreeMap::<_, Vec<Member>>::new());
        for member in members {
            match member.parent.clone() {
                Some(parent) => waiting.entry(parent).or_default().push(member),
                None => ready.push_back(Turn::first(member)),
            }
        }
        Family {
            ready: RefCell::new(ready),
            waiting: RefCell::new(waiting),
            done,
        }
    }

    /// Returns the next capture to process. Captures whose fork is in no capture come last.
    pub fn next(&self) -> Option<Turn> {
        let mut ready = self.ready.borrow_mut();
        if ready.is_empty() {
            let mut waiting = self.waiting.borrow_mut();
            let children = waiting.values().flatten();
            let processes: HashSet<_> = children
                .filter_map(|child| child.process.as_ref())
                .collect();
            let mut eldest: Vec<ProcessId> = waiting
                .keys()
                .filter(|parent| !processes.contains(parent))
                .cloned()
                .collect();
            if eldest.is_empty() {
                // There is a cycle, in which each capture is another's child: start with one of
                // them.
                eldest.extend(waiting.keys().next().cloned());
            }
            let children = eldest
                .iter()
                .filter_map(|parent| waiting.remove(parent))
                .flatten();
            ready.extend(children.map(Turn::first));
        }
        ready.pop_front()
    }

    /// Puts a capture off until later.
    pub fn later(&self, turn: Turn) {
        self.ready.borrow_mut().push_back(Turn { depth: 0, ..turn });
    }

    /// Returns whether a capture waits for this process.
    pub fn awaits(&self, parent: &ProcessId) -> bool {
        self.waiting.borrow().contains_key(parent)
    }

    /// Returns the child that a process forked at a moment.
    pub fn born(&self, parent: &ProcessId, moment: u64) -> Option<Member> {
        let mut waiting = self.waiting.borrow_mut();
        let children = waiting.get_mut(parent)?;
        let child = children
            .iter()
            .position(|member| member.fork == Some(moment))
            .map(|place| children.remove(place));
        if children.is_empty() {
            waiting.remove(parent);
        }
        child
    }
}

impl Turn {
    fn first(member: Member) -> Turn {
        Turn {
            member,
            inherited: Vec::new(),
            depth: 0,
        }
    }
}

impl Member {
    /// Reads the metadata of a capture. A file that cannot be read has none; finishing it reports
    /// why.
    fn of(path: &Path, wanted: bool) -> Member {
        let folder = folder(path);
        let head = Capture::open(path).map_or(Head::default(), |capture| capture.head);
        let process = |key| Some((folder.clone(), head.number(key)?));
        let forked = head.get("begin") == Some("fork");
        Member {
            path: path.to_path_buf(),
            wanted,
            process: process("pid"),
            parent: process("parent").filter(|_| forked),
            fork: head.number("forked-ns"),
        }
    }
}

/// Returns the folder of a file, under the same name whichever path leads there.
fn folder(path: &Path) -> PathBuf {
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    folder
        .canonicalize()
        .unwrap_or_else(|_| folder.to_path_buf())
}

fn captures_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "cap"))
        .collect();
    paths.sort();
    paths
}
