//! One process of `heapmark check`.

use super::child::{Launch, Look, end_tree, may_go_on, padded};
use super::exit::{End, signal_name};
use super::memory_file::{inherited_file, text};
use super::tree::{descendants, field};
use super::{Guest, LoadedObject, Proof, Subject, prove};
use crate::plan::HugePages;
use anyhow::Result;
use rustix::process::Pid;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The most memory that a check may take; no check needs a quarter of it.
const MOST_BYTES: u64 = 2 << 30;
const LOOK: Duration = Duration::from_millis(20);
/// The exit code of a check that cannot apply.
const UNSUPPORTED: i32 = 77;

/// What one process of a check said, and how it ended.
pub struct Trial {
    /// How it ended.
    pub ended: Ended,
    /// What did not hold.
    pub reasons: Vec<String>,
    /// Values, where standards leave it open.
    pub notes: Vec<String>,
}

/// How it ended.
pub enum Ended {
    /// At its own end.
    Done,
    /// It cannot apply: why.
    Unsupported(String),
    /// By a signal, or by an exit code that no check has.
    Broken(String),
    /// It took longer than this.
    Hung(Duration),
    /// It took more memory than a check may.
    TooLarge,
    /// Another library than the one that was asked for served it: why.
    NotLoaded(String),
}

/// Runs it once. Fails with `Interrupted` if `stop` was set.
pub fn trial(
    program: &Path,
    guest: &Guest,
    subject: &Subject,
    check: &str,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<Trial> {
    may_go_on(stop)?;
    let without_process = |why| Trial {
        ended: Ended::NotLoaded(why),
        reasons: Vec::new(),
        notes: Vec::new(),
    };
    if let Some(why) = subject.refused.clone() {
        return Ok(without_process(why));
    }
    if let Err(why) = prove::are_as_first_seen(subject) {
        return Ok(without_process(why));
    }
    let report = inherited_file("heapmark-check")?;
    let environment = subject.environment();
    let variables = padded(&environment, 0);
    let mut launch = Launch::new(guest.path(), &[], HugePages::Machine, None, variables)?;
    launch
        .command
        .arg(program)
        .arg(check)
        .arg(report.as_raw_fd().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut is_too_large = false;
    let mut look = |launcher: i32| {
        if resident_bytes(launcher) > MOST_BYTES {
            is_too_large = true;
            Pid::from_raw(launcher).into_iter().for_each(end_tree);
        }
        LOOK
    };
    let end = launch.run(timeout, stop, Some(&mut look as Look<'_>))?;
    end.was_started(program)?;
    let said = text(&report, 0);
    let lines = |key: &str| -> Vec<String> {
        let values = said.lines().filter_map(|line| line.split_once('='));
        let of_key = values.filter(|(known, _)| *known == key);
        of_key.map(|(_, value)| value.to_owned()).collect()
    };
    let ended = match (
        is_too_large,
        proof(&lines("owner"), &lines("object")),
        &end.hang,
    ) {
        (_, Some(proof), _) if prove::verify(subject, &proof).is_err() => {
            Ended::NotLoaded(prove::verify(subject, &proof).err().unwrap_or_default())
        }
        (true, ..) => Ended::TooLarge,
        (_, _, Some((limit, _))) => Ended::Hung(*limit),
        _ => by_itself(&end, lines("unsupported").pop(), !lines("end").is_empty()),
    };
    Ok(Trial {
        ended,
        reasons: lines("reason"),
        notes: lines("note"),
    })
}

fn by_itself(end: &End, unsupported: Option<String>, reached: bool) -> Ended {
    let when = if reached { " after its end" } else { "" };
    let last_words = || match end.last_words().lines().last() {
        Some(line) => format!(", last words: {line}"),
        None => String::new(),
    };
    match (end.code(), unsupported) {
        (Some(0), _) if reached => Ended::Done,
        (Some(UNSUPPORTED), Some(why)) => Ended::Unsupported(why),
        (Some(code), _) => Ended::Broken(format!("exit code {code}{when}{}", last_words())),
        (None, _) => {
            let signal = signal_name(libc::WTERMSIG(end.launched.status));
            Ended::Broken(format!("{signal}{when}{}", last_words()))
        }
    }
}

/// The owners of functions, `malloc /path/lib.so`, and all loaded objects; `None` if the process did
/// not come that far.
fn proof(owners: &[String], objects: &[String]) -> Option<Proof> {
    let object = |path: &str| {
        let file = std::fs::metadata(path).ok()?;
        Some(LoadedObject {
            path: path.into(),
            device: file.dev(),
            inode: file.ino(),
            build_id: String::new(),
        })
    };
    let mut proof = Proof {
        objects: objects.iter().filter_map(|path| object(path)).collect(),
        ..Proof::default()
    };
    for line in owners {
        let (function, path) = line.split_once(' ')?;
        proof.owners.insert(function.into(), proof.objects.len());
        proof.objects.push(object(path)?);
    }
    proof.is_complete().then_some(proof)
}

/// Resident bytes of all processes below a launcher.
fn resident_bytes(launcher: i32) -> u64 {
    let of = |pid: i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let kib: u64 = field(&status, "VmRSS:")?
            .split_whitespace()
            .next()?
            .parse()
            .ok()?;
        Some(kib << 10)
    };
    descendants(launcher).into_iter().filter_map(of).sum()
}
