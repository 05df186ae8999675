//! Runs that go on beside a test: started, watched, signalled, and held against their plan.

use super::{End, Place, SMALL, copy_program, plan, word};
use heapmark::build::GUEST;
use heapmark::plan::{Cell, CellId};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A heapmark that runs beside the test, with a guest program of its own that can be told from all others.
pub fn start(place: &Place, args: &[&str]) -> Child {
    let guest = place.at("own-guest");
    if !guest.exists() {
        copy_program(GUEST.find().unwrap(), &guest);
    }
    let mut command = place.heapmark(args);
    command
        .env("HEAPMARK_GUEST", guest)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub fn finish(child: Child) -> End {
    End::of(child.wait_with_output().unwrap())
}

pub fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// How long something that must come may take while other programs run.
const PATIENCE: Duration = Duration::from_secs(600);

/// Most looks read all of /proc, or a file that grows.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Waits for something that must come.
pub fn wait_for(what: &str, mut come: impl FnMut() -> bool) {
    let (began, mut pause) = (Instant::now(), Duration::from_millis(2));
    while !come() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}

/// The part of `samples.jsonl` that consists of complete lines.
pub fn complete_lines(run: &Path) -> Vec<u8> {
    let mut bytes = fs::read(run.join("samples.jsonl")).unwrap_or_default();
    bytes.truncate(
        bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1),
    );
    bytes
}

/// Lines that have an end.
pub fn count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Complete lines of `samples.jsonl`, which is not read again while it is as long as at the last look: some wait for the next line.
pub fn lines(run: &Path) -> usize {
    thread_local! {
        /// The run of this thread's last look, how long the file was, and its lines.
        static LAST: RefCell<(PathBuf, u64, usize)> = RefCell::default();
    }
    let length = fs::metadata(run.join("samples.jsonl")).map_or(0, |known| known.len());
    LAST.with_borrow_mut(|last| {
        if (last.0.as_path(), last.1) != (run, length) {
            *last = (run.to_owned(), length, count(&complete_lines(run)));
        }
        last.2
    })
}

/// Processes that run this place's guest, launchers too.
pub fn guests(place: &Place) -> usize {
    processes_of(&place.at("own-guest"))
}

/// Processes that run this file. Others may run programs of the same name; zombies have no program any more.
pub fn processes_of(file: &Path) -> usize {
    let file = file.canonicalize().unwrap();
    let runs_it =
        |entry: fs::DirEntry| fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == file);
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(runs_it)
        .filter(|runs| *runs)
        .count()
}

/// Exactly one record for each cell of the plan, and none of another; all blocks of every row in the tables. A line that a
/// kill has torn is no record, and a part that it has torn was run again as a whole.
pub fn is_whole(place: &Place, name: &str) {
    let (run, mut found) = (place.at(name), BTreeSet::new());
    let plan = plan(&run);
    let text = String::from_utf8(complete_lines(&run)).unwrap();
    for record in text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    {
        let cell: CellId = word(&record, "cell").into();
        assert!(found.insert(cell.clone()), "{cell} twice");
    }
    for mut part in (0..plan.blocks).flat_map(|block| plan.block(block)) {
        let mut take = |part: &[Cell]| part.iter().filter(|cell| found.remove(&cell.id)).count();
        loop {
            let taken = take(&part);
            if taken == part.len() {
                break;
            }
            assert!(taken > 0, "{} did not run", part[0].id);
            part = plan.again(&part);
        }
    }
    let singles = [plan.beside(), plan.checks()].concat();
    let mut planned: BTreeSet<CellId> = singles.into_iter().map(|cell| cell.id).collect();
    planned.extend(["control".into(), plan.calibration(0).id]);
    planned.extend(plan.corners().into_iter().map(|(cell, _)| cell.id));
    assert_eq!(found, planned);
    tables_are_whole(place, name);
}

pub fn tables_are_whole(place: &Place, name: &str) {
    let plan = plan(&place.at(name));
    let rows = place.rows(name);
    assert_eq!(
        rows.len(),
        plan.cases
            .iter()
            .map(|case| plan.rows_of(case).count())
            .sum::<usize>()
    );
    for row in rows {
        assert_eq!(
            (row["outcome"].as_str(), &row["samples"]),
            ("ok", &plan.blocks.to_string()),
            "{row:?}"
        );
    }
}

/// A run of many short processes.
pub fn many(blocks: &'static str) -> Vec<&'static str> {
    [
        &["run", "-o", "run", "-a", "glibc,null", "--blocks", blocks],
        &SMALL[..],
    ]
    .concat()
}

/// A run whose guest waits for ever in its checked process.
pub fn hanging(place: &Place) -> Child {
    hanging_in(place, &place.fake("hanger"))
}

/// The same of another library that waits for ever.
pub fn hanging_in(place: &Place, library: &Path) -> Child {
    let word = format!("glibc,hanger={}", library.display());
    let flags = [
        "run",
        "-o",
        "run",
        "-a",
        &word,
        "--blocks",
        "1",
        "--timeout",
        "600",
    ];
    let child = start(place, &[&flags[..], &SMALL[..]].concat());
    // Control, calibration, the baseline's check: then comes the one that hangs.
    wait_for("the check before", || lines(&place.at("run")) == 3);
    wait_for("a guest below its launcher", || guests(place) >= 2);
    child
}
