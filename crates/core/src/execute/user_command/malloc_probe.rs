//! Reads what the witness in each process reported about its allocator, and explains missing
//! reports.

use super::scheduling::Scheduling;
use crate::build::command::recognise;
use crate::execute::exec_tracer::Executed;
use crate::execute::report::Report;
use crate::execute::{Proof, Subject, prove};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A program that a process of the tree executed.
#[derive(Debug, PartialEq)]
pub struct Witnessed {
    pub pid: i32,
    pub program: String,
    pub proof: Proof,
}

const RESIDENT: &str = "resident=";
const SCHEDULED: &str = "scheduled=";

/// Reads, from the file that every witness writes into, the most bytes that were resident when one of
/// the processes ended by itself; `None` if none did.
pub fn resident_at_end(text: &str) -> Option<u64> {
    let numbers = text.lines().filter_map(|line| line.strip_prefix(RESIDENT));
    numbers.filter_map(|number| number.parse().ok()).max()
}

/// Counts, in the file that every witness writes into, the processes that ended by themselves: by exit, or by a return
/// from main.
pub fn ended(text: &str) -> usize {
    let lines = text.lines();
    lines.filter(|line| line.starts_with(RESIDENT)).count()
}

/// Reads, from the file that every witness writes into, how the processes that ended by themselves were scheduled then.
pub fn scheduled_at_end(text: &str) -> BTreeSet<Scheduling> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(SCHEDULED));
    lines.filter_map(Scheduling::parse).collect()
}

/// Parses the reports in the file that every witness writes into. Incomplete reports prove nothing, and are left out.
pub fn parse(text: &str) -> Vec<Witnessed> {
    let lines = text.split_inclusive('\n');
    let is_end = |line: &str| line.starts_with(RESIDENT) || line.starts_with(SCHEDULED);
    let text: String = lines.filter(|line| !is_end(line)).collect();
    let parts = text
        .split("process=")
        .skip(1)
        .filter(|part| part.ends_with("end=1\n"));
    let read = |part: &str| {
        let (head, _) = part.split_once('\n')?;
        let (pid, rest) = head.split_once(' ')?;
        let (_parent, program) = rest.split_once(' ')?;
        Some(Witnessed {
            pid: pid.parse().ok()?,
            program: program.to_owned(),
            proof: Report::parse(part).proof,
        })
    };
    parts.filter_map(read).collect()
}

impl Witnessed {
    /// Returns whether the program defines a malloc of its own, which comes before everything that is preloaded.
    pub fn serves_itself(&self) -> bool {
        let owner = self.proof.owners.get("malloc");
        owner.is_some_and(|place| self.proof.objects[*place].path == self.program)
    }
}

/// Returns the programs of a tree that have a malloc of their own, in words.
pub fn with_own_malloc(witnessed: &[Witnessed]) -> impl Iterator<Item = String> {
    let processes = witnessed.iter().filter(|process| process.serves_itself());
    let programs: BTreeSet<&str> = processes.map(|process| process.program.as_str()).collect();
    let words = |program| format!("{program} (it defines a malloc of its own)");
    programs.into_iter().map(words)
}

/// Returns why a tree does not count: the first of its processes that another allocator served.
/// Programs with a malloc of their own are the same in every row, unless there are no others.
pub fn unproven(subject: &Subject, witnessed: &[Witnessed]) -> Option<String> {
    let all_serve_themselves = witnessed.iter().all(Witnessed::serves_itself);
    let reached = |process: &&Witnessed| all_serve_themselves || !process.serves_itself();
    witnessed.iter().filter(reached).find_map(|process| {
        let program = &process.program;
        let pid = process.pid;
        let why = prove::verify(subject, &process.proof).err()?;
        Some(format!("{why} in {program} (process {pid})"))
    })
}

/// Programs that were executed but not reported by a witness, in words.
#[derive(Debug, Default, PartialEq)]
pub struct Silent {
    /// Programs that no preloaded allocator reaches, and why.
    pub out_of_reach: Option<String>,
    /// Programs that the allocator may serve, without a proof.
    pub unknown: Option<String>,
}

impl Silent {
    pub fn among(executed: &[Executed], witnessed: &[Witnessed]) -> Silent {
        let known: BTreeSet<(i32, &str)> = witnessed
            .iter()
            .map(|process| (process.pid, process.program.as_str()))
            .collect();
        let mut silent: BTreeMap<(bool, &str, String), usize> = BTreeMap::new();
        for one in executed {
            if !known.contains(&(one.pid, one.program.as_str())) {
                let (is_reached, why) = why(one);
                *silent.entry((is_reached, &one.program, why)).or_default() += 1;
            }
        }
        let list = |reached: bool| {
            let words: Vec<String> = silent
                .iter()
                .filter(|((is_reached, ..), _)| *is_reached == reached)
                .map(|((_, program, why), times)| match times {
                    1 => format!("{program} ({why})"),
                    _ => format!("{program} ({times} times; {why})"),
                })
                .collect();
            (!words.is_empty()).then(|| words.join(", "))
        };
        Silent {
            out_of_reach: list(false),
            unknown: list(true),
        }
    }
}

/// Returns why a program reported nothing, from its file and from the kernel's data; and whether
/// the allocator may serve it nevertheless.
fn why(one: &Executed) -> (bool, String) {
    if let Some(why) = recognise(Path::new(&one.program)).unreachable {
        return (false, why);
    }
    let euid = rustix::process::geteuid().as_raw();
    let user = one.uid.filter(|uid| *uid != euid);
    let user = user
        .map(|uid| format!(", as user {uid}"))
        .unwrap_or_default();
    let why = match (one.given, one.loaded) {
        (Some(false), _) => "it was started without LD_PRELOAD".into(),
        (Some(true), Some(false)) if user.is_empty() => "its LD_PRELOAD was not loaded".into(),
        (Some(true), Some(false)) => format!(
            "its LD_PRELOAD was not loaded{user}: most likely that user may not read the libraries, which HEAPMARK_CACHE can put elsewhere"
        ),
        (Some(true), Some(true)) => {
            format!("it loaded LD_PRELOAD{user}, but could not report its allocator")
        }
        (Some(true), None) => {
            format!("it had LD_PRELOAD{user}; whether it was loaded is unknown")
        }
        (None, _) => format!("the kernel does not show its environment{user}"),
    };
    let is_reached = one
        .given
        .is_none_or(|given| given && one.loaded != Some(false));
    (is_reached, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "process=7 6 /usr/bin/a b\nobject=0 1 2 - /usr/bin/a b\nobject=6 1 3 ab12 /lib/libc.so.6\n\
        owner=malloc 6\nowner=free 6\nend=1\nprocess=8 7 /usr/bin/c\nobject=0 1 4 - /usr/bin/c\nowner=malloc 0\nend=1\n";

    #[test]
    fn each_process_is_read_and_a_torn_one_is_not() {
        let all = parse(TWO);
        assert_eq!(
            all.iter()
                .map(|process| (process.pid, process.program.as_str()))
                .collect::<Vec<_>>(),
            [(7, "/usr/bin/a b"), (8, "/usr/bin/c")]
        );
        assert_eq!(
            all[0].proof.objects[all[0].proof.owners["malloc"]].path,
            "/lib/libc.so.6"
        );
        assert_eq!(parse(&TWO[..TWO.len() - 3]).len(), 1);
        assert_eq!(parse("nonsense\nprocess=x y\nend=1\n"), []);
    }

    #[test]
    fn what_is_resident_at_an_end_is_the_largest_and_hides_no_process() {
        assert_eq!(resident_at_end(TWO), None);
        let ended = TWO.replace("end=1\n", "end=1\nresident=4096\nscheduled=0 0 0 3\n")
            + "resident=8192\nresident=4";
        assert_eq!(scheduled_at_end(&ended).len(), 1, "the same twice");
        assert_eq!(resident_at_end(&ended), Some(8192));
        assert_eq!((super::ended(TWO), super::ended(&ended)), (0, 4));
        assert_eq!(parse(&ended), parse(TWO));
    }

    #[test]
    fn one_process_that_another_library_served_is_named() {
        let text = TWO.replace("- /usr/bin/c\n", "- /lib/other.so\n");
        let why = unproven(&Subject::libc(), &parse(&text)).unwrap();
        assert_eq!(
            why,
            "malloc is served by /lib/other.so, not by the C library in /usr/bin/c (process 8)"
        );
        assert_eq!(unproven(&Subject::libc(), &parse(TWO)[..1]), None);
    }

    #[test]
    fn a_program_with_a_malloc_of_its_own_is_named_and_only_alone_a_fault() {
        let witnessed = parse(TWO);
        assert_eq!(unproven(&Subject::libc(), &witnessed), None);
        assert!(unproven(&Subject::libc(), &witnessed[1..]).is_some());
        let words: Vec<String> = with_own_malloc(&witnessed).collect();
        assert_eq!(words, ["/usr/bin/c (it defines a malloc of its own)"]);
    }

    #[test]
    fn why_a_program_kept_silent_is_what_the_kernel_knew_of_it() {
        let run = |pid, program: &str, given, loaded| Executed {
            pid,
            program: program.to_owned(),
            uid: None,
            given,
            loaded,
        };
        let executed = [
            run(7, "/usr/bin/a b", Some(true), Some(true)),
            run(8, "/bin/sh", Some(false), None),
            run(9, "/bin/sh", Some(false), Some(false)),
            run(8, "/usr/bin/c", Some(true), None),
        ];
        let silent = Silent::among(&executed, &parse(TWO));
        assert_eq!(
            silent.out_of_reach.unwrap(),
            "/bin/sh (2 times; it was started without LD_PRELOAD)"
        );
        assert_eq!(silent.unknown, None);
        assert_eq!(
            Silent::among(&executed[..1], &parse(TWO)),
            Silent::default()
        );
        // A program that had LD_PRELOAD is not reported as "without LD_PRELOAD".
        let silent = |given, loaded| Silent::among(&[run(3, "/bin/sh", given, loaded)], &[]);
        let not_loaded = silent(Some(true), Some(false));
        assert!(
            not_loaded
                .out_of_reach
                .unwrap()
                .contains("its LD_PRELOAD was not loaded")
        );
        for (given, loaded) in [(Some(true), Some(true)), (Some(true), None), (None, None)] {
            let Silent {
                out_of_reach: None,
                unknown: Some(why),
            } = silent(given, loaded)
            else {
                panic!("{given:?}")
            };
            assert!(!why.contains("without LD_PRELOAD"), "{why}");
        }
    }
}
