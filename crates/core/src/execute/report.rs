//! Reads what a guest wrote into the shared page, or a program to its stdout. A possibly broken
//! allocator could write to the page, so no line is trusted.

use super::report_lines::ReportLines;
use super::{
    Footprint, Iteration, Latency, LoadedObject, Measurement, Outcome, Proof, ThreadTime,
    per_operation,
};
use heapmark_wire::{Phase, numbers};
use std::collections::BTreeMap;

/// What a measured process reports about itself.
pub struct Report<'a> {
    pub lines: ReportLines<'a>,
    pub proof: Proof,
}

/// Calls by function, in the order of the `done` and `expected` lines. A program may leave out the
/// last; the number after them is the checksum.
const CALLS: [&str; 5] = ["malloc", "free", "calloc", "realloc", "posix_memalign"];
const CHECKSUM: &str = "checksum";

/// Returns the calls that a `done` or `expected` line lists, and the checksum.
fn work(line: &str) -> impl Iterator<Item = (&'static str, &str)> {
    let (calls, checksum) = line.rsplit_once(' ').unwrap_or(("", line));
    let calls = CALLS.into_iter().zip(calls.split(' '));
    calls.chain([(CHECKSUM, checksum)])
}

impl<'a> Report<'a> {
    pub fn parse(text: &'a str) -> Report<'a> {
        let lines = ReportLines::parse(text);
        let proof = proof(&lines);
        Report { lines, proof }
    }

    fn number(&self, key: &str) -> u64 {
        self.lines
            .value(key)
            .and_then(|value| value.parse().ok())
            .unwrap_or(0)
    }

    /// Returns why the guest gave up: the outcome's word, and the reason.
    pub fn failure(&self) -> Option<(&'a str, &'a str)> {
        let value = self.lines.value("fail")?;
        Some(value.split_once(' ').unwrap_or((value, "")))
    }

    /// Returns the phase that a program reports: that of its last `phase=` line. A program that
    /// reports the end of its work has left phase `load`, even if it reports no phases; one that
    /// stopped early does not.
    pub fn phase(&self) -> Phase {
        if self.lines.value("done").is_some() {
            return Phase::Done;
        }
        self.lines
            .values("phase")
            .filter_map(Phase::from_word)
            .last()
            .unwrap_or(Phase::Load)
    }

    /// Works like [`Report::verify_work`] for a program, which must also have done the requested
    /// number of iterations.
    pub fn verify_program(&self, cold: u32, iterations: u32) -> Outcome {
        let outcome = self.verify_work();
        let reported = self.iterations();
        let told_cold = reported.iter().filter(|one| one.cold).count();
        let measured = reported.len() - told_cold;
        if outcome.is_ok() && (told_cold, measured) != (cold as usize, iterations as usize) {
            let what = format!(
                "{told_cold} cold and {measured} measured iterations, expected {cold} and {iterations}"
            );
            return Outcome::WrongResult { what };
        }
        outcome
    }

    /// Checks whether the work that was done is the work that the parameters imply.
    pub fn verify_work(&self) -> Outcome {
        let account = self.lines.value("done").zip(self.lines.value("expected"));
        let Some((done, expected)) = account else {
            let what = "it did not account for its work".into();
            return Outcome::Error { what };
        };
        let differing: Vec<String> = work(done)
            .zip(work(expected))
            .filter(|(done, expected)| done != expected && done.0 == expected.0)
            .map(|((name, done), (_, expected))| format!("{name} {done}, expected {expected}"))
            .collect();
        let is_nothing = |iteration: &Iteration| iteration.cold || iteration.ops == 0;
        let what = if !differing.is_empty() {
            differing.join("; ")
        } else if done != expected {
            format!("`{done}`, expected `{expected}`")
        } else if self.iterations().iter().all(is_nothing) {
            "no operation was measured".into()
        } else {
            return Outcome::Ok;
        };
        Outcome::WrongResult { what }
    }

    /// Works like [`Report::verify_work`] for a guest, whose clocks must also agree with each other.
    pub fn verify_guest(&self) -> Outcome {
        match (self.verify_work(), self.impossible_times()) {
            (Outcome::Ok, Some(what)) => Outcome::WrongResult { what },
            (outcome, _) => outcome,
        }
    }

    /// Describes times that no process can have: a thread uses at most the time that passes, a
    /// process at most that time on each CPU it may run on. The number of worker threads does not
    /// matter, because a library may start threads of its own.
    fn impossible_times(&self) -> Option<String> {
        // Allows for a small difference between two clocks.
        let most_ns = |wall_ns: u64, readings: u64, cpus: u64| {
            (wall_ns + wall_ns / 50 + readings.saturating_mul(10_000_000)).saturating_mul(cpus)
        };
        let contradict = |of: &str, cpu_ns: u64, wall_ns: u64| {
            let s = |ns: u64| ns as f64 / 1e9;
            format!(
                "its clocks contradict each other: {of} used {:.3} s of CPU time in {:.3} s",
                s(cpu_ns),
                s(wall_ns)
            )
        };
        let too_much = |thread: &ThreadTime| thread.cpu_ns > most_ns(thread.wall_ns, 1, 1);
        if let Some(thread) = self.threads().find(too_much) {
            return Some(contradict("a thread", thread.cpu_ns, thread.wall_ns));
        }
        let iterations = self.iterations();
        let cpus = self.number("cpus");
        let cpu_ns: u64 = iterations.iter().map(|one| one.user_ns + one.sys_ns).sum();
        let wall_ns: u64 = iterations.iter().map(|one| one.wall_ns).sum();
        // The clocks are not read at the same instant: a thread that waits for a CPU between two readings does not stop the
        // others.
        let wall_ns = wall_ns.max(self.number("read_within_ns"));
        let impossible = cpus > 0 && cpu_ns > most_ns(wall_ns, iterations.len() as u64, cpus);
        impossible.then(|| format!("{} on {cpus} CPUs", contradict("it", cpu_ns, wall_ns)))
    }

    fn iterations(&self) -> Vec<Iteration> {
        let lines = self.lines.all();
        lines
            .filter(|(key, _)| matches!(*key, "cold" | "iteration"))
            .filter_map(|(key, value)| {
                let [wall_ns, purge_ns, user_ns, sys_ns, minor_faults, ops] = numbers(value)?;
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

    fn threads(&self) -> impl Iterator<Item = ThreadTime> {
        self.lines.values("thread").filter_map(|value| {
            let [wall_ns, cpu_ns] = numbers(value)?;
            Some(ThreadTime { wall_ns, cpu_ns })
        })
    }

    pub fn measurement(&self) -> Measurement {
        let done = self.lines.value("done").unwrap_or_default();
        let calls = work(done)
            .filter(|(name, _)| *name != CHECKSUM)
            .filter_map(|(name, number)| Some((name.to_string(), number.parse().ok()?)))
            .filter(|(_, number)| *number > 0);
        let figures = self
            .lines
            .named("figure")
            .filter_map(|(name, number)| Some((name.to_string(), number.parse().ok()?)));
        let mut measurement = Measurement {
            iterations: self.iterations(),
            threads: self.threads().collect(),
            calls: calls.collect(),
            baseline_rss_bytes: self.number("baseline_rss_bytes"),
            held_before_bytes: self.number("held_before_bytes"),
            peak_rss_bytes: self.number("peak_rss_bytes"),
            requested_peak_bytes: self.number("requested_peak_bytes"),
            purge: self.lines.value("purge").unwrap_or("none").into(),
            figures: figures.collect(),
            notes: self
                .lines
                .named("note")
                .map(|(name, word)| (name.to_string(), word.to_string()))
                .collect(),
            latency: Latency::of(&self.lines).map(Box::new),
            footprint: Footprint::of(&self.lines).map(Box::new),
            turns: None,
        };
        let operations: u64 = measurement.measured().map(|one| one.ops).sum();
        let counts = self.lines.named("count").filter_map(|(event, number)| {
            let number: f64 = number.parse().ok()?;
            Some((per_operation(event), number / operations.max(1) as f64))
        });
        measurement.figures.extend(counts);
        measurement
    }
}

/// Reads the lines `object=INDEX DEVICE INODE BUILD-ID PATH` and `owner=FUNCTION INDEX`.
pub fn proof(lines: &ReportLines<'_>) -> Proof {
    let mut proof = Proof::default();
    let mut indices = BTreeMap::new();
    for (key, value) in lines.all() {
        if key == "object" {
            let mut words = value.splitn(5, ' ');
            let mut word = || words.next().unwrap_or_default();
            indices.insert(word(), proof.objects.len());
            proof.objects.push(LoadedObject {
                device: word().parse().unwrap_or(0),
                inode: word().parse().unwrap_or(0),
                build_id: word().trim_start_matches('-').into(),
                path: word().into(),
            });
        } else if key == "owner"
            && let Some((function, index)) = value.split_once(' ')
            && let Some(object) = indices.get(index)
        {
            proof.owners.insert(function.into(), *object);
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
            report.proof.objects[report.proof.owners["malloc"]].path,
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
    fn the_last_number_is_the_checksum_also_of_a_program_that_aligns_nothing() {
        let short = GOOD.replace("200 200 0 0 0 77", "200 200 0 0 77");
        let calls = Report::parse(&short).measurement().calls;
        assert_eq!((calls.len(), calls["free"]), (2, 200));
        let wrong = short.replace("done=200 200 0 0 77", "done=200 200 0 0 78");
        let Outcome::WrongResult { what } = Report::parse(&wrong).verify_work() else {
            panic!()
        };
        assert_eq!(what, "checksum 78, expected 77");
        let aligned = GOOD.replace("200 200 0 0 0 77", "200 200 0 0 5 77");
        assert_eq!(
            Report::parse(&aligned).measurement().calls["posix_memalign"],
            5
        );
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
        // A thread waited for a CPU between two readings, and another one did not.
        let waited = text(1, 200, "thread=8 7");
        assert!(!verify(&waited).is_ok());
        assert_eq!(verify(&(waited + "read_within_ns=51000000\n")), Outcome::Ok);
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
