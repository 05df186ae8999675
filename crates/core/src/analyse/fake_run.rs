//! Fake runs for tests: a plan in two lines, times by formula, failures on demand. Crates above this one include the file,
//! so its paths begin with the crate.

use heapmark_core::catalog::Iterations;
use heapmark_core::catalog::workload::ProgramRow;
use heapmark_core::execute::footprint::{Resident, Retained};
use heapmark_core::execute::latency::{Bucket, Calls, Stall};
use heapmark_core::execute::{Footprint, Iteration, Latency, Measurement, Outcome, TurnsTaken};
use heapmark_core::observe::memory_profile::{MemoryPoint, MemoryProfile};
use heapmark_core::plan::{
    AskedTurns, Case as PlannedCase, Cell, CellId, Mode, Plan, Target, Turns,
};
use heapmark_core::store::{AllocatorInfo, Purpose, Record, RunFile, SCHEMA};
use std::collections::BTreeMap;

/// Operations in each iteration of a sample.
const OPS: u64 = 1_000_000;

/// A run under construction.
pub struct FakeRun {
    pub run: RunFile,
    pub records: Vec<Record>,
}

impl FakeRun {
    /// A run of these allocators, the first as baseline, on these workloads with 2 threads each; no
    /// records yet.
    pub fn new(allocators: &[&str], workloads: &[&str], blocks: u32) -> FakeRun {
        let run = RunFile {
            schema: SCHEMA,
            heapmark: "0.1.0".into(),
            guest: String::new(),
            started: "2026-01-01T00:00:00Z".into(),
            suite: "quick".into(),
            preset: "quick".into(),
            threads: Vec::new(),
            set: Vec::new(),
            plan: Plan {
                seed: 1,
                blocks,
                baseline: allocators[0].into(),
                target_ms: 250,
                turn_lengths_ms: AskedTurns::default().lengths_ms,
                mode: Mode::Time,
                cases: workloads.iter().map(|name| case(name)).collect(),
                allocators: allocators.iter().map(|name| name.to_string()).collect(),
                ..Plan::default()
            },
            subjects: Vec::new(),
            pinned: Vec::new(),
            rows: Vec::new(),
            programs: Vec::new(),
            timeout_s: None,
            allocators: allocators.iter().map(|name| allocator(name)).collect(),
            machine: BTreeMap::from([("cpu".into(), "Abacus 2".into())]),
            preflights: Default::default(),
        };
        FakeRun {
            run,
            records: Vec::new(),
        }
    }

    /// One check and all samples of every row; `ns_per_op` gives the time of each sample.
    pub fn fill(mut self, ns_per_op: impl Fn(&str, &str, u32) -> f64) -> FakeRun {
        for case in self.run.plan.cases.clone() {
            for allocator in self.run.rows_of(&case).cloned().collect::<Vec<_>>() {
                self.records.push(record(
                    Purpose::Check,
                    &case.workload,
                    case.threads,
                    &allocator.name,
                    0,
                ));
                for block in 0..self.run.plan.blocks {
                    let mut sample = record(
                        Purpose::Sample,
                        &case.workload,
                        case.threads,
                        &allocator.name,
                        block,
                    );
                    sample.measurement = Some(measurement(ns_per_op(
                        &case.workload,
                        &allocator.name,
                        block,
                    )));
                    self.records.push(sample);
                }
            }
        }
        self
    }

    /// Turns the first case into one of whole processes, with these programs as additional rows.
    pub fn whole(mut self, programs: &[&str]) -> FakeRun {
        let case = &mut self.run.plan.cases[0];
        (case.target, case.whole_process) = (Target::Program("trees-c".into()), true);
        case.parameters.insert("n".into(), "16".into());
        for name in programs {
            case.rows.push(ProgramRow {
                name: name.to_string(),
                program: format!("trees-{name}"),
                ..ProgramRow::default()
            });
            self.run.rows.push(AllocatorInfo {
                tier: "program".into(),
                purge: "none".into(),
                ..allocator(name)
            });
        }
        self
    }

    /// Turns the run into one that times one call in `every`; `buckets` gives how many calls of
    /// malloc took how many nanoseconds.
    pub fn timing_calls(
        mut self,
        every: u32,
        buckets: impl Fn(&str) -> Vec<(u64, u64)>,
    ) -> FakeRun {
        self.run.plan.mode = Mode::Latency { every };
        for record in self
            .records
            .iter_mut()
            .filter(|record| record.purpose == Purpose::Sample)
        {
            record.purpose = Purpose::Latency;
            if let Some(measurement) = &mut record.measurement {
                measurement.latency = Some(Box::new(latency(every, &buckets(&record.allocator))));
            }
        }
        self
    }

    /// Turns the run into one that samples memory; `course` gives the live and the resident MiB
    /// that were seen in a process.
    pub fn following_memory(mut self, course: impl Fn(&str) -> Option<(u64, u64)>) -> FakeRun {
        self.run.plan.mode = Mode::Memory;
        for record in self
            .records
            .iter_mut()
            .filter(|record| record.purpose == Purpose::Sample)
        {
            record.purpose = Purpose::Memory;
            record.memory = course(&record.allocator).map(|(live, heap)| {
                let moment = MemoryPoint {
                    live_bytes: live << 20,
                    occupied_bytes: live << 21,
                    heap_bytes: heap << 20,
                };
                Box::new(MemoryProfile {
                    points: 10,
                    peak_demand: moment,
                    peak_footprint: MemoryPoint {
                        heap_bytes: moment.heap_bytes * 2,
                        ..moment
                    },
                    live_byte_points: 5 * moment.live_bytes,
                    heap_byte_points: 10 * moment.heap_bytes,
                    most_anon_huge_bytes: moment.heap_bytes + (2 << 20),
                    sampling_share: 0.003,
                    most_heap_bytes: moment.heap_bytes * 2,
                    at_peak: None,
                })
            });
            if let Some(measurement) = &mut record.measurement {
                let resident = Resident {
                    rss_bytes: 9 << 20,
                    harness_bytes: 1 << 20,
                    ..Resident::default()
                };
                let begin = Resident {
                    rss_bytes: 5 << 20,
                    anon_huge_bytes: 2 << 20,
                    ..Resident::default()
                };
                let retained = vec![Retained {
                    after_ms: 100,
                    resident,
                }];
                measurement.footprint = Some(Box::new(Footprint {
                    begin,
                    retained,
                    ..Footprint::default()
                }));
            }
        }
        self
    }

    /// Adds figures to a cell, as a check reports them.
    pub fn told(mut self, cell: &str, figures: &[(&str, f64)]) -> FakeRun {
        let figures = figures
            .iter()
            .map(|(name, value)| (name.to_string(), *value))
            .collect();
        self.cell(cell).measurement = Some(Measurement {
            figures,
            ..Measurement::default()
        });
        self
    }

    /// The record of an existing cell.
    pub fn cell(&mut self, cell: &str) -> &mut Record {
        self.records
            .iter_mut()
            .find(|record| record.cell == *cell)
            .expect("the cell is in the plan")
    }

    /// Gives a cell this outcome.
    pub fn fail(mut self, cell: &str, outcome: Outcome) -> FakeRun {
        let record = self.cell(cell);
        record.outcome = outcome;
        record.measurement = None;
        record.stderr = "last words".into();
        self
    }

    /// Gives each sample of an allocator two more processes of the same block.
    pub fn in_three_parts(mut self, allocator: &str) -> FakeRun {
        let sample =
            |record: &&Record| record.allocator == allocator && record.purpose == Purpose::Sample;
        let samples: Vec<Record> = self.records.iter().filter(sample).cloned().collect();
        for part in [1, 2] {
            let again = |record: Record| Record { part, ..record };
            self.records.extend(samples.iter().cloned().map(again));
        }
        self
    }

    /// Lets all processes take turns: of 10 ms in even blocks, and of 40 ms in odd ones.
    pub fn in_turns(mut self) -> FakeRun {
        for record in &mut self.records {
            let ms = if record.block.is_multiple_of(2) {
                10
            } else {
                40
            };
            if let Some(measurement) = &mut record.measurement {
                measurement.turns = Some(TurnsTaken {
                    by: Turns::Stop,
                    cpu: 0,
                    at_once: 1,
                    runs: 1,
                    slice_ns: ms * 1_000_000,
                    turn_ns: None,
                });
            }
        }
        self
    }

    /// Removes the records for which `gone` is true.
    pub fn without(mut self, gone: impl Fn(&Record) -> bool) -> FakeRun {
        self.records.retain(|record| !gone(record));
        self
    }

    /// The entry of an allocator.
    pub fn allocator(&mut self, name: &str) -> &mut AllocatorInfo {
        self.run
            .allocators
            .iter_mut()
            .find(|allocator| allocator.name == name)
            .expect("in the plan")
    }
}

/// A segmentation fault in the measured phase.
pub fn crash() -> Outcome {
    Outcome::Crash {
        signal: "SIGSEGV".into(),
        phase: "run".into(),
    }
}

/// Uniform scatter of up to +-1 %, different for each of the words: noise that a test can rely on.
pub fn noise(words: &str, block: u32) -> f64 {
    let mix = words.bytes().fold(u64::from(block) + 1, |mix, byte| {
        (mix ^ u64::from(byte))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29)
    });
    1.0 + 0.01 * ((mix >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
}

/// A case with 2 threads and no parameters.
pub fn case(name: &str) -> PlannedCase {
    PlannedCase {
        workload: name.into(),
        target: Target::Kernel(name.into()),
        rows: Vec::new(),
        threads: 2,
        oversubscribed: false,
        operation: "call".into(),
        parameters: BTreeMap::new(),
        cold: 1,
        iterations: Iterations::Fixed(1),
        whole_process: false,
        caution: None,
        counts_purge: false,
        series_ns: None,
        factor: None,
        at_once: None,
        beside: false,
        turns: None,
    }
}

fn allocator(name: &str) -> AllocatorInfo {
    AllocatorInfo {
        name: name.into(),
        family: name.into(),
        tier: "main".into(),
        origin: "file".into(),
        version: "-".into(),
        sources: String::new(),
        release: String::new(),
        files: Vec::new(),
        sha256: Vec::new(),
        needs: BTreeMap::new(),
        build_ids: Vec::new(),
        environment: BTreeMap::new(),
        left_to_libc: Vec::new(),
        purge: "called".into(),
        purged_as: None,
        checked: None,
    }
}

fn latency(every: u32, times: &[(u64, u64)]) -> Latency {
    let bucket = |(ns, count): &(u64, u64)| {
        let (from_ns, to_ns) =
            heapmark_wire::bucket_range(heapmark_wire::bucket_of(*ns)).expect("a bucket");
        Bucket {
            from_ns,
            to_ns,
            count: *count,
        }
    };
    let calls = Calls {
        function: "malloc".into(),
        count: times.iter().map(|(_, count)| count).sum(),
        longest: Stall {
            ns: times.iter().map(|(ns, _)| *ns).max().unwrap_or(0),
            bytes: Some(64),
            at_ns: 2_000_000,
        },
        buckets: times.iter().map(bucket).collect(),
    };
    Latency {
        every,
        clock: "rdtsc".into(),
        timer_least_ns: 18,
        timer_median_ns: 20,
        functions: vec![calls],
    }
}

/// The measurement of a process that takes this long per operation, and ten times as long in its
/// cold iteration.
pub fn measurement(ns_per_op: f64) -> Measurement {
    let wall_ns = (ns_per_op * OPS as f64 / 2.0).round() as u64;
    let warm = Iteration {
        wall_ns,
        user_ns: wall_ns,
        sys_ns: wall_ns / 4,
        ops: OPS,
        ..Iteration::default()
    };
    let cold = Iteration {
        cold: true,
        wall_ns: wall_ns * 10,
        ..warm.clone()
    };
    Measurement {
        iterations: vec![cold, warm.clone(), warm],
        baseline_rss_bytes: 2 << 20,
        peak_rss_bytes: 14 << 20,
        requested_peak_bytes: 10 << 20,
        purge: "called".into(),
        ..Measurement::default()
    }
}

/// The record of a process that ended `ok`, otherwise empty.
pub fn record(
    purpose: Purpose,
    workload: &str,
    threads: u32,
    allocator: &str,
    block: u32,
) -> Record {
    let case = format!("{workload}@{threads}");
    let id = match purpose {
        Purpose::Check => CellId::of_check(&case, allocator),
        _ => CellId::of_block(&case, block, None, 0, allocator),
    };
    let cell = Cell {
        id,
        allocator: allocator.into(),
        block,
        seed: 7,
        ..Cell::default()
    };
    let started = "2026-01-01T00:00:01Z".into();
    Record {
        started,
        ..Record::new(purpose, &cell, workload, threads, Outcome::Ok)
    }
}
