//! Claims by values: artificial runs in, verdicts out. Every kind of check with every verdict that
//! it can return.

mod bounds;
mod own_figures;
mod rows;
mod threads;
mod whole;
mod wholes;

use super::*;
use crate::fake_run::{FakeRun, case, crash, measurement, noise, record};
use heapmark_core::catalog::Catalog;
use heapmark_core::execute::Measurement;
use heapmark_core::plan::CellId;
use heapmark_core::store::{Columns, Purpose};
use std::collections::BTreeMap;

/// A row at `WORKLOAD@THREADS`, and the nanoseconds of its operations.
type Point<'a> = (&'a str, &'a str, f64);

/// A run on 8 cores.
pub struct Stage {
    pub measured: Measured,
}

impl Stage {
    pub fn new() -> Stage {
        let mut lab = FakeRun::new(&["a", "b", "c", "d", "e"], &[], 5);
        for (key, value) in [
            ("architecture", "x86_64"),
            ("cpu_model", "Abacus"),
            ("usable_cpus", "8"),
        ] {
            lab.run.machine.insert(key.into(), value.into());
        }
        Stage {
            measured: Measured {
                head: lab.run,
                records: Vec::new(),
                series: BTreeMap::new(),
            },
        }
    }

    /// `samples` processes of each point, with a noise of 1 %.
    pub fn of(points: &[Point], samples: u32) -> Stage {
        points.iter().fold(Stage::new(), |stage, (row, place, ns)| {
            let (_, threads) = split(place);
            // An artificial process has 2 threads.
            let words = format!("{row} on {place}");
            let one = |block| measurement(ns * noise(&words, block) * 2.0 / f64::from(threads));
            stage.processes(row, place, (0..samples).map(one).collect())
        })
    }

    /// A process for each measurement.
    pub fn processes(mut self, row: &str, place: &str, measurements: Vec<Measurement>) -> Stage {
        let (workload, threads) = split(place);
        let cases = &mut self.measured.head.plan.cases;
        if !cases
            .iter()
            .any(|case| (case.workload.as_str(), case.threads) == (workload, threads))
        {
            cases.push(heapmark_core::plan::Case {
                threads,
                ..case(workload)
            });
        }
        for (block, measurement) in measurements.into_iter().enumerate() {
            let mut sample = record(Purpose::Sample, workload, threads, row, block as u32);
            sample.measurement = Some(measurement);
            self.measured.records.push(sample);
        }
        self
    }

    /// The same with a parameter in all cases of a workload.
    pub fn with(mut self, workload: &str, name: &str, value: &str) -> Stage {
        for case in self
            .measured
            .head
            .plan
            .cases
            .iter_mut()
            .filter(|case| case.workload == workload)
        {
            case.parameters.insert(name.into(), value.into());
        }
        self
    }

    /// Memory over time of five processes: the heap and the total at equal distances.
    pub fn curve(self, row: &str, place: &str, heap: &[u64], total: &[u64]) -> Stage {
        let mut stage = self.processes(row, place, (0..5).map(|_| measurement(10.0)).collect());
        let column = |values: &[u64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        let times: Vec<u64> = (0..heap.len() as u64).collect();
        let columns = [
            ("time_ns", &times[..]),
            ("heap_bytes", heap),
            ("total_dynamic_bytes", total),
        ];
        let columns: BTreeMap<_, _> = columns
            .map(|(name, values)| (name.to_string(), column(values)))
            .into();
        let series = Columns {
            phases: vec!["run".into(); heap.len()],
            columns,
        };
        for block in 0..5 {
            stage
                .measured
                .series
                .insert(CellId::of_block(place, block, None, 0, row), series.clone());
        }
        stage
    }

    /// Judges the claim that consists of this check, on `churn`, by time, for all existing thread
    /// counts.
    pub fn judge(self, check: &str) -> JudgedClaim {
        judge_runs(check, &[self.measured])
    }

    pub fn verdict(self, check: &str) -> Verdict {
        self.judge(check).verdict
    }
}

pub fn judge_runs(check: &str, runs: &[Measured]) -> JudgedClaim {
    let document = document(&format!(
        "workloads = [\"churn\"]\nthreads = \"each\"\nchecks = [{check}]"
    ));
    let judged = judge_document(&document, runs);
    assert!(
        !judged.parts.is_empty(),
        "{check}: a verdict without a reason"
    );
    judged
}

pub fn judge_document(document: &Document, runs: &[Measured]) -> JudgedClaim {
    judge(std::slice::from_ref(document), &Evidence::new(&[], runs)).remove(0)
}

pub fn document(claim: &str) -> Document {
    let rows: String = ["a", "b", "c", "d", "e"]
        .iter()
        .map(|row| format!("{row} = {{ ours = [\"{row}\"] }}\n"))
        .collect();
    let head = "short = \"XX\"\ntitle = \"\"\ndate = \"\"\nmachine = \"\"\n";
    toml::from_str(&format!(
        "{head}[rows]\n{rows}[[claims]]\nid = \"XX-1\"\nsays = \"so\"\n{claim}\n"
    ))
    .unwrap()
}

fn split(place: &str) -> (&str, u32) {
    let (workload, threads) = place.split_once('@').unwrap();
    (workload, threads.parse().unwrap())
}

/// Asserts the check's verdict on each list of points; the last list with 4 processes each must be
/// unclear in any case.
pub fn expect(check: &str, cases: &[(Verdict, &[Point])]) {
    for (verdict, points) in cases {
        assert_eq!(
            Stage::of(points, 5).verdict(check),
            *verdict,
            "{check} on {points:?}"
        );
        if matches!(verdict, Verdict::Holds | Verdict::DoesNotHold) {
            assert_eq!(
                Stage::of(points, 4).verdict(check),
                Verdict::Unclear,
                "{check} on 4 of {points:?}"
            );
        }
    }
}
