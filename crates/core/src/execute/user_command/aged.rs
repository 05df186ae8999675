//! A command in an aged heap: what its programs request, counted in a process of the baseline's
//! check, and the litter, the blocks with which a library ages the heap before a program's `main`.
//! What the litter costs is subtracted from the command's time.

use crate::catalog::joined;
use crate::execute::handed::Handed;
use crate::execute::{Measurement, Outcome};
use crate::plan::{LITTER, Litter};
use anyhow::{Context, Result};
use heapmark_wire::Launched;
use std::collections::BTreeMap;
use std::io::Write;

/// Note: how often each size is requested, `SIZE:COUNT,SIZE:COUNT`.
pub const SIZES: &str = "sizes";
/// Note: the program whose heap is aged: device, inode, path.
pub const AGED_PROGRAM: &str = "aged_program";
/// Note: why the requested sizes are unknown.
pub const UNCOUNTED: &str = "uncounted";
/// Figure: the most bytes that are live at a time.
pub const MOST_LIVE: &str = "most_live_bytes";
/// Figure: the number of threads that allocate.
pub const ALLOCATING_THREADS: &str = "allocating_threads";

/// Constants of `preloaded/sizes.c`, in words of eight bytes.
const PROGRAMS: usize = 64;
const PATH_WORDS: usize = 64;
const CLASSES: usize = 48 * 16;
const HEAD: usize = 4 + PATH_WORDS;
const EACH: usize = HEAD + 2 * CLASSES;

/// The file in which the processes of a tree count what they request.
pub struct SizesFile(Handed);

/// The requests of one program of the tree.
#[derive(Default)]
struct Requests {
    path: String,
    threads: u64,
    most_live_bytes: u64,
    /// How many requests, and of how many bytes, for each class of sizes.
    classes: BTreeMap<usize, (u64, u64)>,
}

impl SizesFile {
    pub fn new() -> Result<SizesFile> {
        let handed = Handed::new()?;
        handed
            .file()
            .set_len(8 * (1 + PROGRAMS * EACH) as u64)
            .context("cannot size a file for sizes")?;
        Ok(SizesFile(handed))
    }

    pub fn variable(&self) -> (String, String) {
        ("HEAPMARK_SIZES".into(), self.0.told())
    }

    /// Adds figures and notes of the program with the most live bytes; adds none if no program allocates.
    pub fn add_to(&self, measurement: &mut Measurement) -> Result<()> {
        let words = self.0.words(1 + PROGRAMS * EACH).context("reading sizes")?;
        let most = requests(&words)
            .into_iter()
            .max_by_key(|(_, program)| program.most_live_bytes)
            .filter(|(_, program)| !program.classes.is_empty());
        let Some(((device, inode), program)) = most else {
            return Ok(());
        };
        let sizes = program
            .classes
            .values()
            .map(|(count, bytes)| format!("{}:{count}", (bytes + count / 2) / count));
        measurement.figures.extend([
            (MOST_LIVE.to_owned(), program.most_live_bytes as f64),
            (ALLOCATING_THREADS.to_owned(), program.threads as f64),
        ]);
        let aged = format!("{device} {inode} {}", program.path);
        measurement.notes.extend([
            (SIZES.to_owned(), joined(sizes, ",")),
            (AGED_PROGRAM.to_owned(), aged),
        ]);
        Ok(())
    }
}

/// Sums up requests by the program's device and inode: processes that began at the same time may have counted in two
/// places.
fn requests(words: &[u64]) -> BTreeMap<(u64, u64), Requests> {
    let mut all: BTreeMap<(u64, u64), Requests> = BTreeMap::new();
    for program in words[1..]
        .chunks_exact(EACH)
        .filter(|program| program[1] != 0)
    {
        let found = all.entry((program[0], program[1])).or_default();
        let path: Vec<u8> = program[2..2 + PATH_WORDS]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        found.path = String::from_utf8_lossy(path).into_owned();
        found.threads = found.threads.max(program[2 + PATH_WORDS]);
        found.most_live_bytes = found.most_live_bytes.max(program[3 + PATH_WORDS]);
        let (counts, bytes) = program[HEAD..].split_at(CLASSES);
        for (class, (count, bytes)) in counts.iter().zip(bytes).enumerate() {
            if *count > 0 {
                let (counts, sum) = found.classes.entry(class).or_default();
                *counts += count;
                *sum += bytes;
            }
        }
    }
    all
}

/// The file from which the processes of a tree read how to age their heaps, and into which they report it.
pub struct LitterFile(Handed);

/// What one process did to age its heap.
#[derive(Clone, Copy)]
struct Littered {
    began_ns: u64,
    ended_ns: u64,
    user_ns: u64,
    sys_ns: u64,
    minor_faults: u64,
    blocks: u64,
    live_bytes: u64,
    resident_bytes: u64,
    /// How long the end of the process takes to give the litter back, estimated.
    give_back_ns: u64,
}

impl LitterFile {
    pub fn new(litter: &Litter, seed: u64) -> Result<LitterFile> {
        let handed = Handed::new()?;
        let mut program = litter.program.split(' ');
        let [device, inode] = [(); 2].map(|()| program.next().filter(|word| !word.is_empty()));
        let device = device.unwrap_or("0");
        let inode = inode.unwrap_or("0");
        let threads = 1 + u8::from(litter.by_threads);
        let Litter {
            stay, bytes, sizes, ..
        } = litter;
        writeln!(
            handed.file(),
            "{stay} {bytes} {threads} {seed} {device} {inode} {sizes}"
        )
        .context("cannot write a file for litter")?;
        Ok(LitterFile(handed))
    }

    pub fn variable(&self) -> (String, String) {
        ("HEAPMARK_LITTER".into(), self.0.told())
    }

    /// Subtracts what the litter cost from the command's account, and returns figures of the
    /// litter, or the outcome if the command was not aged as it should be. The time of a server's
    /// client contains no litter.
    pub fn take_out(
        &self,
        litter: &Litter,
        launched: &mut Launched,
        is_server: bool,
    ) -> Result<Vec<(String, f64)>, Outcome> {
        if litter.bytes == 0 {
            return Ok(Vec::new());
        }
        let text = self.0.text();
        let program = litter.program.splitn(3, ' ').nth(2).unwrap_or_default();
        let unsupported = |why: String| Err(Outcome::Unsupported { why });
        if let Some(fault) = text.lines().find_map(|line| line.strip_prefix("fault=")) {
            let what = format!("the heap of {program} could not be aged: {fault}");
            return Err(Outcome::Error { what });
        }
        let mut all: Vec<Littered> = text.lines().filter_map(parse).collect();
        all.sort_by_key(|one| one.began_ns);
        if all.is_empty() {
            return unsupported(match program {
                "" => {
                    "no program of the command was seen to allocate, so there is none to age".into()
                }
                _ => format!("no process executed {program}, whose heap was to be aged"),
            });
        }
        // If processes were aged at the same time, their times do not add up.
        if !all.is_sorted_by(|a, b| a.ended_ns <= b.began_ns) {
            return unsupported(format!(
                "processes of {program} were aged at the same time: how long the command took without that is unknown"
            ));
        }
        if is_server && all.len() > 1 {
            return unsupported(format!(
                "{} processes executed {program}, and each was aged: some of that may be in the client's time",
                all.len()
            ));
        }
        let sum = |of: fn(&Littered) -> u64| all.iter().map(of).sum::<u64>();
        if !is_server {
            for (total, part) in [
                (
                    &mut launched.wall_ns,
                    sum(|one| one.ended_ns - one.began_ns),
                ),
                (&mut launched.user_ns, sum(|one| one.user_ns)),
                (&mut launched.sys_ns, sum(|one| one.sys_ns)),
                (&mut launched.minor_faults, sum(|one| one.minor_faults)),
            ] {
                *total = total.saturating_sub(part);
            }
        }
        let most = |of: fn(&Littered) -> u64| all.iter().map(of).max().unwrap_or(0) as f64;
        let figures = [
            ("littered_processes", all.len() as f64),
            ("litter_blocks", most(|one| one.blocks)),
            (LITTER[0], most(|one| one.live_bytes)),
            (LITTER[1], most(|one| one.resident_bytes)),
            (LITTER[2], sum(|one| one.give_back_ns) as f64),
        ];
        Ok(figures.map(|(name, value)| (name.to_owned(), value)).into())
    }
}

fn parse(line: &str) -> Option<Littered> {
    let mut numbers = line
        .strip_prefix("litter=")?
        .split(' ')
        .map(|word| word.parse().ok());
    let mut next = || numbers.next().flatten();
    Some(Littered {
        began_ns: next()?,
        ended_ns: next()?,
        user_ns: next()?,
        sys_ns: next()?,
        minor_faults: next()?,
        blocks: next()?,
        live_bytes: next()?,
        resident_bytes: next()?,
        give_back_ns: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(program: &str) -> Litter {
        Litter {
            program: program.into(),
            ..Litter::of(50, 0, "16:1", false)
        }
    }

    fn taken(lines: &str, is_server: bool) -> Result<(Launched, usize), Outcome> {
        let litter = order("7 8 /bin/a b");
        let file = LitterFile::new(&litter, 3).unwrap();
        assert_eq!(file.0.text(), "50 33554432 1 3 7 8 16:1000000000\n");
        file.0.file().write_all(lines.as_bytes()).unwrap();
        let mut launched = Launched {
            wall_ns: 1000,
            user_ns: 500,
            sys_ns: 50,
            ..Launched::default()
        };
        let figures = file.take_out(&litter, &mut launched, is_server)?;
        Ok((launched, figures.len()))
    }

    #[test]
    fn the_time_of_the_litter_is_none_of_the_commands() {
        let two = "litter=100 200 60 20 5 9 8 7 6\nlitter=300 350 10 20 5 9 8 7 6\n";
        let (launched, figures) = taken(two, false).unwrap();
        let left = [launched.wall_ns, launched.user_ns, launched.sys_ns];
        assert_eq!((left, figures), ([850, 430, 10], 5));
        let one = "litter=100 200 60 20 5 9 8 7 6\n";
        assert_eq!(taken(one, true).unwrap().0.wall_ns, 1000);
    }

    #[test]
    fn what_was_not_aged_or_cannot_be_taken_out_has_no_time() {
        for (lines, is_server, words) in [
            ("", false, "no process executed /bin/a b"),
            (
                "fault=malloc returned nothing\n",
                false,
                "could not be aged: malloc",
            ),
            (
                "litter=100 200 1 1 1 1 1 1 1\nlitter=150 300 1 1 1 1 1 1 1\n",
                false,
                "at the same time",
            ),
            (
                "litter=100 200 1 1 1 1 1 1 1\nlitter=250 300 1 1 1 1 1 1 1\n",
                true,
                "2 processes executed",
            ),
        ] {
            let outcome = taken(lines, is_server).unwrap_err().to_string();
            assert!(outcome.contains(words), "{outcome}");
        }
    }

    #[test]
    fn two_places_of_one_program_are_added_up() {
        let mut words = vec![0; 1 + PROGRAMS * EACH];
        for (place, live, count) in [(0, 50, 3), (2, 70, 4)] {
            let program = &mut words[1 + place * EACH..][..EACH];
            program[..3].copy_from_slice(&[5, 6, u64::from_ne_bytes(*b"/bin/x\0\0")]);
            program[3 + PATH_WORDS] = live;
            program[HEAD + 20] = count;
            program[HEAD + CLASSES + 20] = count * 20;
        }
        let all = requests(&words);
        let found = &all[&(5, 6)];
        assert_eq!((all.len(), found.path.as_str()), (1, "/bin/x"));
        assert_eq!((found.most_live_bytes, found.classes[&20]), (70, (7, 140)));
    }
}
