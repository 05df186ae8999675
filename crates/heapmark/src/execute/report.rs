//! Reads what a guest wrote into the shared page, or a program to its stdout. A possibly broken
//! allocator could write to the page, so no line is trusted.

use super::report_lines::ReportLines;
use super::{
    Footprint, Iteration, Latency, LoadedObject, Measurement, Outcome, Proof, ThreadTime,
    per_operation,
};
use heapmark_wire::Phase;
use std::collections::BTreeMap;

/// What a measured process reports about itself.
pub(super) struct Report<'a> {
    lines: ReportLines<'a>,
    proof: Proof,
}

/// Calls by function, in the order of the `done` and `expected` lines; the last number is the
/// checksum.
const CALLS: [&str; 6] = [
    "malloc",
    "free",
    "calloc",
    "realloc",
    "posix_memalign",
    "checksum",
];

impl<'a> Report<'a> {
    pub(super) fn parse(text: &'a str) -> Report<'a> {
        let lines = ReportLines::parse(text);
        let proof = proof(&lines);
        Report { lines, proof }
    }

    pub(super) fn values(&self, key: &str) -> impl Iterator<Item = &'a str> {
        self.lines.values(key)
    }

    fn number(&self, key: &str) -> u64 {
        self.values(key)
            .next()
            .and_then(|value| value.parse().ok())
            .unwrap_or(0)
    }

    pub(super) fn version(&self) -> Option<&'a str> {
        self.values("version").next()
    }

    /// Why the guest gave up: the outcome's word, and the reason.
    pub(super) fn failure(&self) -> Option<(&'a str, &'a str)> {
        self.values("fail")
            .next()
            .map(|value| value.split_once(' ').unwrap_or((value, "")))
    }

    pub(super) fn proof(&self) -> &Proof {
        &self.proof
    }

    /// Whether the guest got beyond its proof. The last line of the proof names the owner of `free`
    /// or of an operator; every process has some object that defines `malloc` and `free`.
    pub(super) fn proof_is_complete(&self) -> bool {
        ["malloc", "free"]
            .iter()
            .all(|name| self.proof.owners.contains_key(*name))
    }

    /// The phase that a program reports: that of its last `phase=` line.
    pub(super) fn phase(&self) -> Phase {
        self.values("phase")
            .filter_map(Phase::from_word)
            .last()
            .unwrap_or(Phase::Load)
    }

    /// Whether it reports what was done; a program that stopped early does not.
    pub(super) fn is_complete(&self) -> bool {
        self.values("done").next().is_some()
    }

    /// As [`Report::verify_work`], for a program: it must also have done the requested number of
    /// iterations.
    pub(super) fn verify_program(&self, cold: u32, iterations: u32) -> Outcome {
        let outcome = self.verify_work();
        let told = self.iterations();
        let told = (
            told.iter().filter(|one| one.cold).count(),
            told.iter().filter(|one| !one.cold).count(),
        );
        match outcome {
            Outcome::Ok if told != (cold as usize, iterations as usize) => Outcome::WrongResult {
                what: format!(
                    "{} cold and {} measured iterations, expected {cold} and {iterations}",
                    told.0, told.1
                ),
            },
            outcome => outcome,
        }
    }

    /// Whether the work that was done is the work that the parameters imply.
    pub(super) fn verify_work(&self) -> Outcome {
        let (Some(done), Some(expected)) =
            (self.values("done").next(), self.values("expected").next())
        else {
            return Outcome::Error {
                what: "it did not account for its work".into(),
            };
        };
        let differing: Vec<String> = CALLS
            .iter()
            .zip(done.split(' ').zip(expected.split(' ')))
            .filter(|(_, (done, expected))| done != expected)
            .map(|(name, (done, expected))| format!("{name} {done}, expected {expected}"))
            .collect();
        if !differing.is_empty() {
            return Outcome::WrongResult {
                what: differing.join("; "),
            };
        }
        if done != expected {
            return Outcome::WrongResult {
                what: format!("`{done}`, expected `{expected}`"),
            };
        }
        if self
            .iterations()
            .iter()
            .all(|iteration| iteration.cold || iteration.ops == 0)
        {
            return Outcome::WrongResult {
                what: "no operation was measured".into(),
            };
        }
        Outcome::Ok
    }

    /// As [`Report::verify_work`], for a guest: its clocks must also agree with each other.
    pub(super) fn verify_guest(&self) -> Outcome {
        match (self.verify_work(), self.impossible_times()) {
            (Outcome::Ok, Some(what)) => Outcome::WrongResult { what },
            (outcome, _) => outcome,
        }
    }

    /// Times that no process can have: a thread uses at most the time that passes, a process at
    /// most that time on each CPU it may run on. The number of worker threads does not matter,
    /// because a library may start threads of its own.
    fn impossible_times(&self) -> Option<String> {
        // Two clocks differ a little, and are not read at the same instant: at each reading, the
        // reading thread may have to wait for a CPU while other threads of the process continue.
        let most_ns = |wall_ns: u64, readings: u64, cpus: u64| {
            (wall_ns + wall_ns / 50 + readings.saturating_mul(10_000_000)).saturating_mul(cpus)
        };
        let Measurement {
            iterations,
            threads,
            ..
        } = self.measurement();
        let contradict = |of: &str, cpu_ns: u64, wall_ns: u64| {
            let s = |ns: u64| ns as f64 / 1e9;
            format!(
                "its clocks contradict each other: {of} used {:.3} s of CPU time in {:.3} s",
                s(cpu_ns),
                s(wall_ns)
            )
        };
        let too_much = |thread: &&ThreadTime| thread.cpu_ns > most_ns(thread.wall_ns, 1, 1);
        if let Some(thread) = threads.iter().find(too_much) {
            return Some(contradict("a thread", thread.cpu_ns, thread.wall_ns));
        }
        let (cpus, cpu_ns, wall_ns) = iterations
            .iter()
            .fold((self.number("cpus"), 0, 0), |(cpus, cpu, wall), one| {
                (cpus, cpu + one.user_ns + one.sys_ns, wall + one.wall_ns)
            });
        let impossible = cpus > 0 && cpu_ns > most_ns(wall_ns, iterations.len() as u64, cpus);
        impossible.then(|| format!("{} on {cpus} CPUs", contradict("it", cpu_ns, wall_ns)))
    }

    fn iterations(&self) -> Vec<Iteration> {
        let lines = self
            .lines
            .all()
            .filter(|(key, _)| matches!(*key, "cold" | "iteration"));
        lines
            .filter_map(|(key, value)| {
                let numbers: Vec<u64> = value
                    .split(' ')
                    .map(|word| word.parse().ok())
                    .collect::<Option<_>>()?;
                let [wall_ns, purge_ns, user_ns, sys_ns, minor_faults, ops] =
                    numbers.try_into().ok()?;
                Some(Iteration {
                    cold: key == "cold",
                    wall_ns,
                    purge_ns,
                    user_ns,
                    sys_ns,
                    minor_faults,
                    ops,
                })
            })
            .collect()
    }

    pub(super) fn measurement(&self) -> Measurement {
        let done = self.values("done").next().unwrap_or_default();
        let calls = CALLS.iter().zip(done.split(' '));
        let threads = self.values("thread").filter_map(|value| {
            let (wall, cpu) = value.split_once(' ')?;
            Some(ThreadTime {
                wall_ns: wall.parse().ok()?,
                cpu_ns: cpu.parse().ok()?,
            })
        });
        let figures = self.values("figure").filter_map(|value| {
            let (name, number) = value.split_once(' ')?;
            Some((name.to_string(), number.parse().ok()?))
        });
        let iterations = self.iterations();
        let operations: u64 = iterations
            .iter()
            .filter(|one| !one.cold)
            .map(|one| one.ops)
            .sum();
        let counts = self.values("count").filter_map(|value| {
            let (event, number) = value.split_once(' ')?;
            Some((
                per_operation(event),
                number.parse::<f64>().ok()? / operations.max(1) as f64,
            ))
        });
        let notes = self
            .values("note")
            .filter_map(|value| value.split_once(' '));
        Measurement {
            iterations,
            threads: threads.collect(),
            calls: calls
                .filter(|(name, _)| **name != "checksum")
                .filter_map(|(name, number)| Some((name.to_string(), number.parse().ok()?)))
                .filter(|(_, number)| *number > 0)
                .collect(),
            baseline_rss_bytes: self.number("baseline_rss_bytes"),
            peak_rss_bytes: self.number("peak_rss_bytes"),
            requested_peak_bytes: self.number("requested_peak_bytes"),
            purge: self.values("purge").next().unwrap_or("none").to_string(),
            figures: figures.chain(counts).collect(),
            notes: notes
                .map(|(name, word)| (name.to_string(), word.to_string()))
                .collect(),
            latency: Latency::of(&self.lines).map(Box::new),
            footprint: Footprint::of(&self.lines).map(Box::new),
        }
    }
}

/// `object=INDEX DEVICE INODE BUILD-ID PATH` and `owner=FUNCTION INDEX`.
fn proof(lines: &ReportLines<'_>) -> Proof {
    let mut proof = Proof::default();
    let mut numbers = BTreeMap::new();
    for (key, value) in lines.all() {
        if key == "object" {
            let mut words = value.splitn(5, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (index, device, inode, build_id, path) = (word(), word(), word(), word(), word());
            numbers.insert(index.to_string(), proof.objects.len());
            proof.objects.push(LoadedObject {
                path: path.to_string(),
                device: device.parse().unwrap_or(0),
                inode: inode.parse().unwrap_or(0),
                build_id: build_id.trim_start_matches('-').to_string(),
            });
        } else if key == "owner"
            && let Some((function, index)) = value.split_once(' ')
            && let Some(object) = numbers.get(index)
        {
            proof.owners.insert(function.to_string(), *object);
        }
    }
    proof
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "object=0 1 2 - /proc/self/exe\nobject=1 1 3 ab12 /lib/with space.so\nowner=malloc 1\n\
        purge=none\ncold=9 0 9 0 5 200\niteration=8 1 7 1 0 200\ndone=200 200 0 0 0 77\nexpected=200 200 0 0 0 77\n\
        peak_rss_bytes=4096\nthread=8 7\nfigure=incarnations 3\n\
        note=write_back clwb\ncount=mmap 50\nnote=cycles not supported\n";

    #[test]
    fn a_good_report_is_read_whole() {
        let report = Report::parse(GOOD);
        assert_eq!(report.verify_work(), Outcome::Ok);
        let measurement = report.measurement();
        assert_eq!(measurement.iterations.len(), 2);
        assert_eq!(measurement.iterations[1].purge_ns, 1);
        assert_eq!(measurement.calls["malloc"], 200);
        assert_eq!(measurement.figures["incarnations"], 3.0);
        assert_eq!(measurement.figures["mmap_per_operation"], 0.25);
        assert_eq!(
            (
                &*measurement.notes["write_back"],
                &*measurement.notes["cycles"]
            ),
            ("clwb", "not supported")
        );
        assert_eq!(
            report.proof().objects[report.proof().owners["malloc"]].path,
            "/lib/with space.so"
        );
    }

    #[test]
    fn work_that_differs_from_the_expected_is_a_wrong_result() {
        let text = GOOD.replace("done=200 200 0 0 0 77", "done=200 199 0 0 0 77");
        let Outcome::WrongResult { what } = Report::parse(&text).verify_work() else {
            panic!()
        };
        assert_eq!(what, "free 199, expected 200");
        let text = GOOD.replace("0 77\nexpected", "0 78\nexpected");
        assert!(matches!(
            Report::parse(&text).verify_work(),
            Outcome::WrongResult { .. }
        ));
    }

    #[test]
    fn cpu_time_above_the_time_that_passed_is_a_fault_and_a_library_may_have_threads_of_its_own() {
        let text = |wall_ms: u64, cpu_ms: u64, thread: &str| {
            let line = format!(
                "iteration={} 0 {} 0 0 200",
                wall_ms * 1_000_000,
                cpu_ms * 1_000_000
            );
            GOOD.replace("iteration=8 1 7 1 0 200", &line)
                .replace("thread=8 7", thread)
                + "cpus=4\n"
        };
        let verify = |text: &str| Report::parse(text).verify_guest();
        assert_eq!(verify(GOOD), Outcome::Ok);
        let good = "thread=1000000000 1010000000";
        // One worker thread, and three threads of the library.
        assert_eq!(verify(&text(1000, 3990, good)), Outcome::Ok);
        // A hundred short rounds on a busy machine.
        let rounds = "iteration=90000 0 410000 0 0 200\n".repeat(100) + "cpus=2\n";
        assert_eq!(verify(&(GOOD.to_owned() + &rounds)), Outcome::Ok);
        for (text, says) in [
            (
                text(1000, 1000, "thread=500000000 1000000000"),
                "a thread used 1.000 s of CPU time in 0.500 s",
            ),
            (
                text(1000, 5000, good),
                "it used 5.000 s of CPU time in 1.000 s on 4 CPUs",
            ),
        ] {
            let Outcome::WrongResult { what } = verify(&text) else {
                panic!("{text}")
            };
            assert!(what.contains(says), "{what}");
        }
    }

    #[test]
    fn a_report_without_work_is_never_ok() {
        assert!(!Report::parse("").verify_work().is_ok());
        assert!(
            !Report::parse("done=0 0 0 0 0 0\nexpected=0 0 0 0 0 0\n")
                .verify_work()
                .is_ok()
        );
        assert!(
            !Report::parse(&GOOD.replace("iteration=8", "iteration=x"))
                .verify_work()
                .is_ok()
        );
    }
}
