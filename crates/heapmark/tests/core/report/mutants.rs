//! Damaged files of every kind that heapmark reads from a disk, through the built binary: no command panics, aborts, hangs or takes a
//! gibibyte; and of a file with a checksum no command says anything else unless it tells why.

use super::fuzz::damage;
use crate::support::campaign::planned;
use crate::support::captured::Captured;
use crate::support::stored::unpacked;
use crate::support::stored::{copy, original};
use crate::support::{Place, SMALL, repository};
use heapmark::store::sealed;
use heapmark_wire::capture::Event;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::ExitStatus;

const SEED: u64 = 7;
/// Resident.
const MOST_BYTES: u64 = 1 << 30;

/// What a changed byte is to a reader.
#[derive(Clone, Copy, PartialEq)]
enum Guard {
    /// Another content: no checksum tells.
    None,
    /// Damage: the file, or a line of it, ends with the checksum of the store.
    Sealed,
    /// Damage: a checksum of another kind tells.
    Own,
}

/// A kind of file, by one that is read.
struct Kind {
    file: &'static str,
    guard: Guard,
    /// What reads it.
    commands: &'static [&'static [&'static str]],
}

const fn kind(
    file: &'static str,
    guard: Guard,
    commands: &'static [&'static [&'static str]],
) -> Kind {
    Kind {
        file,
        guard,
        commands,
    }
}

const OF_RUN: &[&[&str]] = &[
    &["show", "run"],
    &["report", "run", "-o", "-"],
    &["export", "run", "--to", "csv"],
    &["export", "run", "--to", "md"],
    &["claims", "run"],
    &["compare", "run"],
];
const OF_CATALOGUE: &[&[&str]] = &[&["list", "suites"], &["list", "claims", "--format", "json"]];
const OF_TRACE: &[&[&str]] = &[
    &["trace", "check", "a.trace"],
    &["trace", "stats", "a.trace"],
    &["trace", "dump", "a.trace"],
    &["trace", "cut", "a.trace", "--events", "50..200", "-o", "-"],
    &["replay", "--dry-run", "a.trace", "-a", "glibc"],
];
const MEASURED: &[&[&str]] = &[&["run", "-o", "out", "-a", "glibc", "--blocks", "1"]];
const REPLAYED: &[&[&str]] = &[&[
    "replay", "a.trace", "-o", "out", "-a", "glibc", "--blocks", "1",
]];

const KINDS: [Kind; 23] = [
    kind("run/run.json", Guard::Sealed, OF_RUN),
    kind("run/samples.jsonl", Guard::Sealed, OF_RUN),
    kind("run/machine/before.json", Guard::Sealed, OF_RUN),
    kind("run/machine/after.json", Guard::Sealed, OF_RUN),
    kind("run/machine/prices.json", Guard::Sealed, OF_RUN),
    kind("run/series/churn@1_b00_glibc.csv", Guard::Own, OF_RUN),
    kind(
        "latency/latency/churn@1_b00_mimalloc3.csv",
        Guard::Own,
        &[
            &["show", "latency"],
            &["export", "latency", "--to", "csv-latency"],
        ],
    ),
    kind(
        "camp/plan.json",
        Guard::None,
        &[
            &["campaign", "status", "camp"],
            &["campaign", "print", "camp", "--engine", "slurm"],
            &["campaign", "pool", "camp"],
        ],
    ),
    kind(
        "camp/shards/0/attempt-1/run.json",
        Guard::Sealed,
        &[&["campaign", "status", "camp"]],
    ),
    kind(
        "camp/beat/1-1.json",
        Guard::None,
        &[&["campaign", "status", "camp", "--format", "json"]],
    ),
    kind(
        "check/check.json",
        Guard::None,
        &[
            &["report", "check", "-o", "-"],
            &["claims", "check"],
            &["check", "diff", "check", "whole.json"],
        ],
    ),
    kind("a.trace", Guard::Own, OF_TRACE),
    kind(
        "a.cap",
        Guard::Own,
        &[&["trace", "finish", "a.cap", "-o", "-"]],
    ),
    kind(
        "mtrace.txt",
        Guard::None,
        &[&["trace", "import", "mtrace.txt", "-o", "-"]],
    ),
    kind(
        "config/heapmark/allocators/jemalloc.toml",
        Guard::None,
        OF_CATALOGUE,
    ),
    kind(
        "config/heapmark/workloads/churn.toml",
        Guard::None,
        OF_CATALOGUE,
    ),
    kind(
        "config/heapmark/suites/default.toml",
        Guard::None,
        OF_CATALOGUE,
    ),
    kind(
        "config/heapmark/programs/mine/program.toml",
        Guard::None,
        OF_CATALOGUE,
    ),
    kind("config/heapmark/claims/ll.toml", Guard::None, OF_CATALOGUE),
    kind("sizes.csv", Guard::None, &[SIZES]),
    kind(".cache/heapmark/findings/", Guard::None, MEASURED),
    kind(".cache/heapmark/checks/", Guard::None, MEASURED),
    kind(".cache/heapmark/compiled-traces/", Guard::Own, REPLAYED),
];
/// Those of the cache, whose readers measure: the last ones.
const MEASURING: usize = 3;
const SIZES: &[&str] = &[
    "run",
    "--dry-run",
    "-w",
    "churn",
    "-a",
    "glibc",
    "--set",
    "distribution=sizes.csv",
];

/// A place with a whole file of each kind.
fn whole() -> Place {
    let place = unpacked();
    copy(&original(), &place.at("run"));
    planned(&place, "2");
    fs::create_dir_all(place.at("camp/shards/0")).unwrap();
    fs::create_dir(place.at("camp/beat")).unwrap();
    copy(&original(), &place.at("camp/shards/0/attempt-1"));
    let beat = json!({"host": "box", "boot_id": "1-2-3"}).to_string();
    fs::write(place.at("camp/beat/1-1.json"), beat).unwrap();
    let mut captured = Captured::new(&place.at("a.cap"), 2, &[("pid", "7")]);
    for number in 0..200 {
        let (address, operator) = (0x1000 + number * 0x100, false);
        let size = 16 + number * 3;
        captured.put(
            (number % 2) as u32,
            &Event::Malloc {
                address,
                size,
                operator,
            },
            2 * number,
        );
        if number % 3 == 0 {
            captured.put(
                (number % 2) as u32,
                &Event::Free { address, operator },
                2 * number + 1,
            );
        }
    }
    captured.end();
    let text: String = (1..50)
        .map(|at| format!("@ ./a:[0x1] + 0x{at}000 0x10\n"))
        .collect();
    fs::write(place.at("mtrace.txt"), format!("= Start\n{text}= End\n")).unwrap();
    fs::write(place.at("sizes.csv"), "size,count\n16,3\n48,1\n4096,2\n").unwrap();
    let config = place.at("config/heapmark");
    for (folder, file) in [
        ("allocators", "allocators/jemalloc.toml"),
        ("workloads", "workloads/llheap/churn.toml"),
        ("suites", "suites/default.toml"),
        ("claims", "claims/ll.toml"),
    ] {
        let from = repository().join(file);
        fs::create_dir_all(config.join(folder)).unwrap();
        let replaces = ["", "replace = true\n"][usize::from(folder == "allocators")];
        let text = replaces.to_owned() + &fs::read_to_string(&from).unwrap();
        fs::write(config.join(folder).join(from.file_name().unwrap()), text).unwrap();
    }
    fs::create_dir_all(config.join("programs/mine")).unwrap();
    let program =
        "name = \"mine\"\nabout = \"x\"\nallocator = \"none\"\nrun = [\"sh\", \"mine.sh\"]\n";
    fs::write(config.join("programs/mine/program.toml"), program).unwrap();
    // Compiled traces of its own.
    fs::remove_file(place.at(".cache/heapmark/compiled-traces")).unwrap();
    let only = ["--only", "align-natural", "--only", "double-free"];
    let checked = ["check", "-a", "glibc", "-o", "check", "--fail-on", "std"];
    for command in [
        &["trace", "finish", "a.cap"][..],
        &[&checked[..], &only].concat(),
        MEASURED[0],
        REPLAYED[0],
    ] {
        let end = ended(&place, command);
        assert!(
            matches!(end.status.code(), Some(0 | 4)),
            "{command:?}: {}",
            end.text()
        );
    }
    fs::copy(place.at("check/check.json"), place.at("whole.json")).unwrap();
    place
}

/// How a command ended.
#[derive(PartialEq)]
struct Ended {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: String,
    resident_bytes: u64,
}

impl Ended {
    fn text(&self) -> String {
        format!("{}: {}", self.status, self.stderr)
    }
}

fn is_measuring(command: &[&str]) -> bool {
    command.contains(&"out")
}

/// Runs a command to its end; what measures does the least.
#[allow(clippy::zombie_processes, reason = "wait4 waits, and tells the memory")]
fn ended(place: &Place, command: &[&str]) -> Ended {
    let _ = fs::remove_dir_all(place.at("out"));
    let (out, err) = (place.at("stdout"), place.at("stderr"));
    let more: &[&str] = match command {
        ["run", "-o", ..] => &SMALL,
        ["replay", "a.trace", ..] => &["--target-ms", "1", "--no-aa-copy", "--no-repeat"],
        _ => &[],
    };
    let mut heapmark = place.heapmark(&[command, more].concat());
    heapmark
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap());
    let is_measuring = is_measuring(command);
    // SAFETY: two async-signal-safe calls between fork and exec.
    unsafe {
        heapmark.pre_exec(move || {
            libc::alarm(300);
            let most = libc::rlimit {
                rlim_cur: 4 << 30,
                rlim_max: 4 << 30,
            };
            if !is_measuring {
                libc::setrlimit(libc::RLIMIT_AS, &most);
            }
            Ok(())
        })
    };
    let child = heapmark.spawn().unwrap();
    let mut status = 0;
    // SAFETY: zeros are a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a child that nobody else waits for, and places for what is told of it.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    assert_eq!(waited, child.id() as i32);
    Ended {
        status: ExitStatus::from_raw(status),
        stdout: fs::read(out).unwrap(),
        stderr: fs::read_to_string(err).unwrap(),
        resident_bytes: (usage.ru_maxrss as u64) << 10,
    }
}

/// The file of a kind; in the cache the first whose name is a hash.
fn file_of(place: &Place, kind: &Kind) -> std::path::PathBuf {
    let path = place.at(kind.file);
    if !kind.file.ends_with('/') {
        return path;
    }
    let named = |path: &Path| path.file_name().unwrap().to_string_lossy().len() > 12;
    let mut all: Vec<_> = fs::read_dir(&path)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    all.retain(|path| named(path));
    all.sort();
    all.into_iter()
        .next()
        .unwrap_or_else(|| panic!("nothing in {}", path.display()))
}

/// One of the numbers in it becomes one that few readers expect.
fn exaggerate(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    let is_digit = |place: &usize| bytes[*place].is_ascii_digit();
    let begins = |place: &usize| is_digit(place) && (*place == 0 || !is_digit(&(place - 1)));
    let begin = (0..bytes.len()).filter(begins).collect::<Vec<_>>();
    let Some(&begin) = begin.choose(random) else {
        return;
    };
    let length = bytes[begin..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let number = [
        "0",
        "-1",
        "2147483648",
        "4294967295",
        "18446744073709551615",
        "1e308",
        "65536",
    ];
    let number = number.choose(random).unwrap();
    bytes.splice(begin..begin + length, number.bytes());
}

/// Gives each line, or the whole, the checksum that fits.
fn seal_again(bytes: &[u8], by_line: bool) -> Vec<u8> {
    let again = |text: &str| match text.rfind(",\"crc\":\"") {
        Some(end) => sealed(&format!("{}}}", &text[..end])),
        None => text.to_owned(),
    };
    let text = String::from_utf8_lossy(bytes);
    let sealed = match by_line {
        true => text.lines().map(|line| again(line) + "\n").collect(),
        false => again(&text),
    };
    sealed.into_bytes()
}

#[test]
fn two_mutants_of_each_kind_of_file_are_read_or_refused() {
    mutants_are_read_or_refused(2 * KINDS.len());
}

#[test]
#[ignore = "make test-all"]
fn two_thousand_mutants_are_read_or_refused() {
    mutants_are_read_or_refused(2000);
}

fn mutants_are_read_or_refused(count: usize) {
    let place = whole();
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut before: BTreeMap<Vec<&str>, Ended> = BTreeMap::new();
    let (mut refused, mut told, mut same, mut other, mut most_bytes) = (0, 0, 0, 0, 0);
    for mutant in 0..count {
        // Those that measure come once in each tenth round.
        let round = mutant / KINDS.len();
        let mut of = mutant % KINDS.len();
        if of >= KINDS.len() - MEASURING && !round.is_multiple_of(10) {
            of = mutant % (KINDS.len() - MEASURING);
        }
        let kind = &KINDS[of];
        let command = *kind.commands.choose(&mut random).unwrap();
        let base = before
            .entry(command.to_vec())
            .or_insert_with(|| ended(&place, command));
        let file = file_of(&place, kind);
        let good = fs::read(&file).unwrap();
        let mut bytes = good.clone();
        for _ in 0..random.random_range(1..4) {
            match random.random_range(0..3) {
                0 => exaggerate(&mut bytes, &mut random),
                _ => damage(&mut bytes, &mut random),
            }
        }
        let is_sealed = kind.guard == Guard::Sealed && random.random();
        if is_sealed {
            bytes = seal_again(&bytes, kind.file.ends_with(".jsonl"));
        }
        fs::write(&file, &bytes).unwrap();
        let end = ended(&place, command);
        let seen = format!(
            "seed {SEED}, mutant {mutant}: {command:?} of {}: {}",
            kind.file,
            end.text()
        );
        if end.status.code().is_none_or(|code| code == 101) || end.resident_bytes > MOST_BYTES {
            let kept = std::env::temp_dir().join(format!("heapmark-mutant-{mutant}"));
            fs::write(&kept, &bytes).unwrap();
            panic!(
                "{seen}, {} bytes resident: {}",
                end.resident_bytes,
                kept.display()
            );
        }
        let lines = |bytes: &[u8]| -> HashSet<Vec<u8>> {
            bytes
                .split(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect()
        };
        // Whole lines in another order, or fewer, are what was measured.
        let is_other = match kind.guard {
            Guard::None => false,
            _ if is_sealed || is_measuring(command) => false,
            _ => !lines(&bytes).is_subset(&lines(&good)),
        };
        let is_told = end.status != base.status || end.stderr != base.stderr;
        assert!(
            !is_other || is_told || end.stdout == base.stdout,
            "silently another: {seen}"
        );
        refused += usize::from(end.status != base.status);
        told += usize::from(end.status == base.status && is_told);
        same += usize::from(!is_told && end.stdout == base.stdout);
        other += usize::from(!is_told && end.stdout != base.stdout);
        most_bytes = most_bytes.max(end.resident_bytes);
        fs::write(&file, good).unwrap();
    }
    println!(
        "{count} mutants: {refused} refused, {told} told, {same} the same, {other} other content without a checksum; {} MiB resident at most",
        most_bytes >> 20
    );
    assert!(refused + told > count / 4, "the damage is too tame");
}
