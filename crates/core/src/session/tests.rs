//! The run loop with a runner that follows a script: order, repeats, stopping, resuming and budget.
//! No process is started.

use super::passed::Shelf;
use super::runner::{Due, DueDuet, DuetEnding, Ending, Observed, Runner};
use super::*;
use crate::analyse::Standing;
use crate::analyse::fake_run::{self, FakeRun, measurement};
use crate::catalog::workload::Calibrated;
use crate::catalog::{Allocator, Iterations};
use crate::execute::{Attempt, Corner, Measurement, Outcome, Subject, TurnsTaken, Usage};
use crate::observe::interference::Interference;
use crate::observe::machine::{cores, usable_cpus};
use crate::observe::root::Root;
use crate::plan::{AskedTurns, Factor, Mode, Plan, Target, Turns};
use crate::store::{self, Purpose, Record, RunFile, Store, seconds_of_processes};
use anyhow::Result;
use heapmark_stats::Next;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

const CALIBRATED: Iterations = Iterations::Calibrated(Calibrated::Calibrated);

/// The result of a process in a script: its outcome, its time per operation, how busy others were, and how long its turns took, in
/// lengths asked for.
struct Turn {
    outcome: Outcome,
    ns_per_op: f64,
    foreign_cpu_share: f64,
    turn_ns: u64,
}

fn took(ns_per_op: f64) -> Turn {
    Turn {
        outcome: Outcome::Ok,
        ns_per_op,
        foreign_cpu_share: 0.0,
        turn_ns: 1,
    }
}

fn crashed() -> Turn {
    Turn {
        outcome: Outcome::Crash {
            signal: "SIGSEGV".into(),
            phase: "run".into(),
        },
        ..took(1.0)
    }
}

/// A process that takes up to three times as long in one block as in another, so that no interval is narrow.
fn wild(due: &Due, ns_per_op: f64) -> Turn {
    let slower = if due.cell.allocator == "hoard" {
        f64::from(due.cell.block * 7 % 13) / 6.0
    } else {
        0.0
    };
    took(ns_per_op * (1.0 + slower))
}

type Answer = Box<dyn Fn(&Due, &[String]) -> Option<Turn>>;

/// Answers each process as the test says, and notes its name; `None` interrupts the run.
struct Script {
    answer: Answer,
    control: Outcome,
    log: Rc<RefCell<Vec<String>>>,
    /// The bytes that were made present, and how many processes had run before.
    present: Rc<RefCell<Vec<(usize, u64)>>>,
    /// How many processes had run when the pages of the libraries went to other places.
    placed: Rc<RefCell<Vec<usize>>>,
    /// The bytes that each process was said to need.
    largest: Rc<RefCell<BTreeMap<String, u64>>>,
    /// How long the turns of the last process took.
    turn_ns: Cell<u64>,
}

fn attempt(outcome: Outcome, ns_per_op: f64) -> Attempt {
    let measurement = outcome.is_ok().then(|| measurement(ns_per_op));
    let wall_ns = measurement
        .iter()
        .flat_map(Measurement::measured)
        .map(|iteration| iteration.wall_ns)
        .sum();
    Attempt {
        measurement,
        usage: Some(Usage {
            wall_ns,
            ..Usage::default()
        }),
        ..Attempt::without_process(outcome)
    }
}

fn turns(by: Turns, at_once: u32) -> TurnsTaken {
    TurnsTaken {
        by,
        cpu: 0,
        at_once,
        runs: 1,
        slice_ns: 1,
        turn_ns: Some(1),
    }
}

impl Runner for Script {
    fn control(&self) -> Result<Attempt> {
        self.log.borrow_mut().push("control".into());
        Ok(attempt(self.control.clone(), 1.0))
    }

    fn corner(&self, subject: &Subject, corner: &str) -> Result<Corner> {
        self.log
            .borrow_mut()
            .push(format!("corners/{}/{corner}", subject.allocator.name));
        Ok(Corner {
            findings: Vec::new(),
            is_certain: true,
            environment: Default::default(),
        })
    }

    fn make_present(&self, bytes: u64) {
        let before = self.log.borrow().len();
        self.present.borrow_mut().push((before, bytes));
    }

    fn place_anew(&self) {
        let before = self.log.borrow().len();
        self.placed.borrow_mut().push(before);
    }

    fn run(&self, due: &Due, largest_bytes: u64) -> Result<Observed> {
        let cell = due.cell.id.to_string();
        self.largest.borrow_mut().insert(cell, largest_bytes);
        let turn = (self.answer)(due, &self.log.borrow());
        let Some(Turn {
            outcome,
            ns_per_op,
            foreign_cpu_share,
            turn_ns,
        }) = turn
        else {
            return Err(Interrupted.into());
        };
        self.turn_ns.set(turn_ns);
        self.log.borrow_mut().push(due.cell.id.to_string());
        let interference = due.purpose.is_of_a_block().then(|| Interference {
            wall_ns: 10_000_000_000,
            foreign_cpu_share: Some(foreign_cpu_share),
            cpus: Some(1),
            ..Interference::default()
        });
        let attempt = attempt(outcome, ns_per_op);
        Ok(Observed {
            attempt,
            interference,
            memory: None,
            mean_heap: None,
            series: None,
            demand: None,
        })
    }

    fn duets(
        &self,
        lanes: usize,
        work: &[DueDuet],
        ended: &mut dyn FnMut(DuetEnding) -> Result<()>,
    ) -> Result<()> {
        let line = format!("duets {}, {lanes} at a time", work.len());
        self.log.borrow_mut().push(line);
        for (index, duet) in work.iter().enumerate() {
            let side = |due| {
                let mut observed = self.run(due, duet.largest_bytes)?;
                if let Some(measurement) = &mut observed.attempt.measurement {
                    measurement.turns = Some(TurnsTaken {
                        turn_ns: Some(self.turn_ns.get()),
                        ..turns(duet.turn.by, lanes as u32)
                    });
                }
                anyhow::Ok(Some((String::new(), observed)))
            };
            let [one, other] = duet.sides.each_ref().map(side);
            ended((index, [one?, other?]))?;
        }
        Ok(())
    }

    fn side_by_side(
        &self,
        _: usize,
        checks: &[Due],
        ended: &mut dyn FnMut(Ending) -> Result<()>,
    ) -> Result<()> {
        for (index, due) in checks.iter().enumerate() {
            ended((index, String::new(), self.run(due, 0)?))?;
        }
        Ok(())
    }

    fn shelf(&self, _: &Record) -> Result<Option<Shelf>> {
        Ok(None)
    }
}

/// Keeps what followed each block.
#[derive(Default)]
struct Notes {
    blocks: Vec<Next>,
    /// Blocks, and processes stored, of each provisional answer.
    provisional: Vec<(u32, usize)>,
}

impl Progress for Notes {
    fn begin(&self, _: &str) {}
    fn step(&mut self, _: bool) {}
    fn more(&mut self, _: usize) {}
    fn say(&self, _: &str) {}
    fn plan(&mut self, _: &Plan) {}
    fn block(&mut self, _: u32, _: &[Standing], _: f64, next: Next) {
        self.blocks.push(next);
    }
    fn provisional(&mut self, done: u32, _: &RunFile, records: &[Record]) {
        let samples = records
            .iter()
            .filter(|record| record.purpose == Purpose::Sample);
        self.provisional.push((done, samples.count()));
    }
}

/// A run of glibc and hoard on larson with 2 threads.
struct Stage {
    lab: FakeRun,
    known: Vec<Record>,
    control: Outcome,
    store: Option<tempfile::TempDir>,
}

/// What a run of a stage has led to.
struct Done {
    ended: Result<Ended>,
    log: Vec<String>,
    present: Vec<(usize, u64)>,
    placed: Vec<usize>,
    largest: BTreeMap<String, u64>,
    notes: Notes,
    /// The stored records, if the stage has a store.
    stored: Vec<Record>,
}

impl Stage {
    fn new(blocks: u32) -> Stage {
        let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], blocks);
        Stage {
            lab,
            known: Vec::new(),
            control: Outcome::Ok,
            store: None,
        }
    }

    fn plan(mut self, change: impl FnOnce(&mut Plan)) -> Stage {
        change(&mut self.lab.run.plan);
        self
    }

    fn stored(mut self) -> Stage {
        self.store = Some(tempfile::tempdir().unwrap());
        self
    }

    fn run(self, answer: impl Fn(&Due, &[String]) -> Option<Turn> + 'static) -> Done {
        let head = &self.lab.run;
        let subject = |name: &String| Subject {
            allocator: Allocator {
                name: name.clone(),
                ..Allocator::default()
            },
            library: Default::default(),
            variant: None,
            refused: None,
        };
        let selection = Arc::new(Selection {
            plan: head.plan.clone(),
            subjects: head.plan.allocators.iter().map(subject).collect(),
            suite: "quick".into(),
            preset: "quick".into(),
            ..Selection::default()
        });
        let log = Rc::new(RefCell::new(Vec::new()));
        let present = Rc::new(RefCell::new(Vec::new()));
        let placed = Rc::new(RefCell::new(Vec::new()));
        let largest = Rc::new(RefCell::new(BTreeMap::new()));
        let script = Script {
            answer: Box::new(answer),
            control: self.control,
            log: log.clone(),
            present: present.clone(),
            placed: placed.clone(),
            largest: largest.clone(),
            turn_ns: Cell::new(1),
        };
        let dir = self.store.as_ref().map(|folder| folder.path().join("run"));
        let store = dir.as_ref().map(|dir| Store::create(dir, head).unwrap());
        let mut notes = Notes::default();
        let session = Session::new(selection, script, store, self.known);
        let machine = tempfile::tempdir().unwrap();
        let ended = session.run(head, &Root::at(machine.path()), &mut notes);
        let stored = dir.map_or(Vec::new(), |dir| store::read(&dir).unwrap().records);
        let log = log.take();
        Done {
            ended,
            log,
            present: present.take(),
            placed: placed.take(),
            largest: largest.take(),
            notes,
            stored,
        }
    }
}

impl Done {
    /// The cells of all processes in blocks.
    fn blocks(&self) -> Vec<&str> {
        let of_block = |cell: &&str| cell.starts_with("larson@2/b");
        self.log
            .iter()
            .map(String::as_str)
            .filter(of_block)
            .collect()
    }

    fn is_whole(&self) -> bool {
        self.ended.as_ref().unwrap().whole
    }
}

#[test]
fn a_run_is_control_calibration_checks_corners_and_blocks() {
    let stage = Stage::new(2).plan(|plan| plan.cases[0].iterations = CALIBRATED);
    let done = stage.run(|_, _| Some(took(20.0)));
    assert!(done.is_whole());
    let first = [
        "control",
        "larson@2/calibration",
        "larson@2/check/glibc",
        "larson@2/check/hoard",
    ];
    assert_eq!(done.log[..4], first);
    let corners = done
        .log
        .iter()
        .filter(|cell| cell.starts_with("corners/"))
        .count();
    assert!(corners > 1 && corners % 2 == 0, "{:?}", done.log);
    let mut blocks = done.blocks();
    assert_eq!(done.log[4 + corners..], blocks);
    blocks.sort_unstable();
    let expected = [
        "larson@2/b00/glibc",
        "larson@2/b00/hoard",
        "larson@2/b01/glibc",
        "larson@2/b01/hoard",
    ];
    assert_eq!(blocks, expected);
}

#[test]
fn memory_for_the_largest_process_is_made_present_once_before_the_first_block() {
    let done = Stage::new(2).run(|_, _| Some(took(20.0)));
    let first = done
        .log
        .iter()
        .position(|cell| cell.starts_with("larson@2/b"));
    let largest = measurement(20.0).peak_rss_bytes;
    assert!(largest > 0);
    assert_eq!(done.present, [(first.unwrap(), largest)]);
    // A run that ends before its blocks needs no memory to be made present.
    let interrupted = Stage::new(2).run(|due, _| {
        let is_check = due.purpose == Purpose::Check;
        (!is_check).then(|| took(20.0))
    });
    assert_eq!(interrupted.present, []);
}

#[test]
fn pages_go_to_other_places_before_each_block_that_is_timed() {
    let done = Stage::new(2).run(|_, _| Some(took(20.0)));
    let first = |block: &str| done.log.iter().position(|cell| cell.starts_with(block));
    let firsts = ["larson@2/b00", "larson@2/b01"].map(|block| first(block).unwrap());
    assert_eq!(done.placed, firsts);
    let memory = Stage::new(2).plan(|plan| plan.mode = Mode::Memory);
    let done = memory.run(|_, _| Some(took(20.0)));
    assert!(done.placed.is_empty(), "{:?}", done.placed);
}

#[test]
fn a_process_finds_as_much_memory_present_as_its_case_needs_and_a_whole_program_as_its_row() {
    let needed = |whole| {
        let mut stage = Stage::new(2);
        stage.lab = stage.lab.fill(|_, _, _| 20.0);
        stage.known = std::mem::take(&mut stage.lab.records);
        stage.known.retain(|record| !record.cell.contains("/b01/"));
        for record in &mut stage.known {
            let bytes = if record.allocator == "hoard" {
                9 << 30
            } else {
                100 << 20
            };
            if let Some(measurement) = &mut record.measurement {
                measurement.peak_rss_bytes = bytes;
            }
            record.usage = Some(Box::new(Usage {
                max_rss_bytes: bytes,
                ..Usage::default()
            }));
        }
        let stage = stage.plan(|plan| plan.cases[0].whole_process = whole);
        let largest = stage.run(|_, _| Some(took(20.0))).largest;
        ["glibc", "hoard"].map(|name| largest[&format!("larson@2/b01/{name}")])
    };
    assert_eq!(needed(false), [9 << 30, 9 << 30]);
    assert_eq!(needed(true), [100 << 20, 9 << 30]);
}

#[test]
fn the_baselines_calibration_decides_how_many_iterations_all_make_and_how_long_they_may_take() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (noted, stage) = (seen.clone(), Stage::new(1));
    let stage = stage.plan(|plan| plan.cases[0].iterations = CALIBRATED);
    // An iteration of 500,000 operations takes 50 ms, a process should measure for 250.
    let done = stage.run(move |due, _| {
        if due.purpose == Purpose::Sample {
            noted
                .borrow_mut()
                .push((due.job.iterations, due.timeout.as_secs()));
        }
        Some(took(100.0))
    });
    assert!(done.is_whole());
    let seen = seen.take();
    assert_eq!(
        seen.iter()
            .map(|(iterations, _)| *iterations)
            .collect::<Vec<_>>(),
        [5, 5]
    );
    assert!(
        seen.iter().all(|(_, seconds)| (20..60).contains(seconds)),
        "100 times what is expected: {seen:?}"
    );
}

#[test]
fn one_calibration_decides_the_rates_of_all_loads_and_a_resumed_run_keeps_them() {
    let loads = |plan: &mut Plan| {
        let at = |load: &str| {
            let mut case = fake_run::case(&format!("at-{load}"));
            case.target = Target::Kernel("open-loop".into());
            case.parameters = [("capacity", "0"), ("load", load)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
            case
        };
        let given = |case: crate::plan::Case| crate::plan::Case {
            workload: "given".into(),
            parameters: [("capacity".to_owned(), "7".to_owned())].into(),
            ..case
        };
        plan.cases = vec![at("30"), at("80"), given(at("60"))];
    };
    // Each process with the requests per second that are full load; processes that measure nothing have none.
    type Seen = Rc<RefCell<Vec<(Purpose, String, String)>>>;
    let run = |stage: Stage, ns_per_op: f64| {
        let seen = Seen::default();
        let noted = seen.clone();
        let done = stage.run(move |due, _| {
            let capacity = due.job.parameters["capacity"].clone();
            let cell = due.cell.id.to_string();
            noted.borrow_mut().push((due.purpose, cell, capacity));
            Some(took(ns_per_op))
        });
        assert!(done.is_whole());
        (done.stored, seen.take())
    };
    let rates = |seen: &[(Purpose, String, String)]| -> BTreeSet<(bool, String)> {
        let samples = seen.iter().filter(|process| process.0 == Purpose::Sample);
        samples
            .map(|(_, cell, capacity)| (cell.starts_with("given"), capacity.clone()))
            .collect()
    };
    // Two threads with 20 ns per operation do 100,000,000 operations in a second.
    let expected = [(false, "100000000"), (true, "7")];
    let expected = expected
        .map(|(given, capacity)| (given, capacity.to_owned()))
        .into();
    let (stored, seen) = run(Stage::new(2).plan(loads).stored(), 20.0);
    assert_eq!(rates(&seen), expected);
    let calibrations: Vec<&str> = seen
        .iter()
        .filter(|process| process.0 == Purpose::Calibration)
        .map(|process| process.1.as_str())
        .collect();
    assert_eq!(calibrations, ["at-30@2/calibration"]);
    assert!(
        seen.iter()
            .filter(|process| process.0 == Purpose::Check)
            .all(|process| process.2 == "0")
    );
    // Later the machine is slower.
    let mut stage = Stage::new(2).plan(loads);
    stage.known = stored;
    stage.known.retain(|record| !record.cell.contains("/b01/"));
    let (_, again) = run(stage, 50.0);
    assert_eq!(rates(&again), expected);
    assert!(
        again.iter().all(|process| process.0 == Purpose::Sample),
        "{again:?}"
    );
    // If calls are timed, no request is due at a time, even if the capacity is given.
    let calls = |plan: &mut Plan| {
        loads(plan);
        plan.mode = Mode::Latency { every: 4 };
    };
    let (_, seen) = run(Stage::new(2).plan(calls), 20.0);
    assert!(
        seen.iter().any(|process| process.0 == Purpose::Latency),
        "{seen:?}"
    );
    assert!(seen.iter().all(|process| process.2 == "0"), "{seen:?}");
}

#[test]
fn without_the_c_library_in_the_control_no_process_is_measured() {
    let mut stage = Stage::new(1);
    stage.control = Outcome::NotLoaded {
        why: "hoard serves".into(),
    };
    let done = stage.run(|_, _| Some(took(20.0)));
    assert!(
        done.ended
            .err()
            .unwrap()
            .to_string()
            .contains("must be served by the C library, but")
    );
    assert_eq!(done.log, ["control"]);
}

#[test]
fn a_run_ends_as_soon_as_its_intervals_are_narrow_but_never_before_the_least_blocks() {
    let until = |plan: &mut Plan| (plan.precision, plan.most_blocks) = (Some(0.05), Some(40));
    let steady = Stage::new(12).plan(until).run(|due, _| {
        Some(took(if due.cell.allocator == "hoard" {
            30.0
        } else {
            20.0
        }))
    });
    assert_eq!(steady.blocks().len(), 12 * 2);
    assert!(matches!(steady.notes.blocks.last(), Some(Next::Stop(_))));
    assert_eq!(
        Stage::new(12)
            .plan(until)
            .run(|due, _| Some(wild(due, 20.0)))
            .blocks()
            .len(),
        40 * 2
    );
}

#[test]
fn a_provisional_answer_comes_once_when_there_are_intervals_and_only_if_blocks_follow() {
    let provisional = |blocks| {
        let done = Stage::new(blocks).run(|due, _| Some(wild(due, 20.0)));
        done.notes.provisional
    };
    assert_eq!(provisional(8), [(6, 6 * 2)]);
    assert_eq!(provisional(6), []);
}

#[test]
fn no_block_begins_that_would_end_after_the_budget() {
    let until = |budget_s| {
        move |plan: &mut Plan| {
            (plan.precision, plan.most_blocks, plan.budget_s) =
                (Some(0.05), Some(40), Some(budget_s))
        }
    };
    // A process takes 2 s or more, and the checks count.
    let blocks = |budget_s| {
        Stage::new(12)
            .plan(until(budget_s))
            .run(|due, _| Some(wild(due, 2000.0)))
            .blocks()
            .len()
    };
    assert_eq!(blocks(1.0), 2, "one block");
    let some = blocks(100.0);
    assert!(12 < some && some < 40 * 2, "{some}");
}

#[test]
fn with_its_budget_used_up_a_resumed_run_makes_its_last_block_whole_and_begins_no_other() {
    let stage = || {
        Stage::new(12).plan(|plan| {
            (plan.precision, plan.most_blocks, plan.budget_s) = (Some(0.05), Some(40), Some(100.0));
        })
    };
    let slow = |due: &Due, _: &[String]| Some(wild(due, 2000.0));
    let mut stored = stage().stored().run(slow).stored;
    let resumed = |known: &[Record]| {
        let mut stage = stage();
        stage.known = known.to_vec();
        let done = stage.run(slow);
        assert!(done.is_whole());
        done.blocks().len()
    };
    assert_eq!(resumed(&stored), 0);
    stored.pop();
    assert_eq!(resumed(&stored), 2);
}

#[test]
fn a_disturbed_part_is_run_again_after_its_block_and_at_the_end_once_more() {
    let disturbed = |of: &'static [&'static str]| {
        move |due: &Due, _: &[String]| {
            let foreign_cpu_share = if of.contains(&&*due.cell.id) {
                0.9
            } else {
                0.0
            };
            Some(Turn {
                foreign_cpu_share,
                ..took(20.0)
            })
        }
    };
    let repeating = |plan: &mut Plan| plan.repeats = true;
    let once = Stage::new(3)
        .plan(repeating)
        .run(disturbed(&["larson@2/b01/hoard"]));
    let mut blocks = once.blocks();
    assert_eq!(blocks.len(), 8, "{blocks:?}");
    // The part is repeated after its own block, before the next one.
    let mut again: Vec<&str> = blocks.drain(4..6).collect();
    again.sort_unstable();
    assert_eq!(again, ["larson@2/b01~1/glibc", "larson@2/b01~1/hoard"]);
    let twice = Stage::new(3)
        .plan(repeating)
        .run(disturbed(&["larson@2/b01/hoard", "larson@2/b01~1/glibc"]));
    let mut last = twice.blocks()[8..].to_vec();
    last.sort_unstable();
    assert_eq!(last, ["larson@2/b01~2/glibc", "larson@2/b01~2/hoard"]);
    // If the plan does not allow repeats, no part is repeated.
    assert_eq!(
        Stage::new(3)
            .run(disturbed(&["larson@2/b01/hoard"]))
            .blocks()
            .len(),
        6
    );
}

#[test]
fn no_more_parts_are_repeated_than_were_planned() {
    let busy = |_: &Due, _: &[String]| {
        Some(Turn {
            foreign_cpu_share: 0.9,
            ..took(20.0)
        })
    };
    let done = Stage::new(3).plan(|plan| plan.repeats = true).run(busy);
    assert_eq!(
        done.blocks().len(),
        2 * 3 * 2,
        "three parts, each once more"
    );
}

#[test]
fn duets_of_a_kernel_run_two_at_a_time_and_the_trial_by_itself() {
    let duets = |more: &[&str]| -> Vec<String> {
        let stage = Stage::new(2).plan(|plan| {
            plan.allocators
                .extend(more.iter().map(|name| name.to_string()));
            plan.cases[0].threads = 1;
            plan.cases[0].turns = Some(Turns::Stop);
            plan.turn_lengths_ms = vec![10];
        });
        let mut done = stage.run(|_, _| Some(took(20.0)));
        assert!(done.is_whole());
        done.log.retain(|line| line.starts_with("duets"));
        done.log
    };
    let lanes = cores().len().min(usable_cpus() as usize).min(2);
    let of_block = format!("duets 2, {lanes} at a time");
    let alone = "duets 1, 1 at a time";
    assert_eq!(duets(&["rpmalloc"]), [alone, &of_block, &of_block]);
    assert_eq!(duets(&[]), [alone; 3], "there is only one");
}

#[test]
fn turns_that_took_too_long_are_tried_again_before_a_case_is_measured_alone() {
    let trials = |long: usize| {
        let stage = Stage::new(2).plan(|plan| {
            plan.cases[0].threads = 1;
            plan.cases[0].turns = Some(Turns::Stop);
            plan.turn_lengths_ms = vec![10];
        });
        let mut done = stage.run(move |due, log| {
            let trials = log.iter().filter(|line| line.starts_with("duets")).count();
            let is_long = due.purpose == Purpose::Trial && trials <= long;
            Some(Turn {
                turn_ns: if is_long { 3 } else { 1 },
                ..took(20.0)
            })
        });
        assert!(done.is_whole());
        done.log.retain(|line| line.starts_with("duets"));
        done.log.len()
    };
    let blocks = 2;
    assert_eq!(trials(0), 1 + blocks);
    assert_eq!(trials(2), 3 + blocks);
    assert_eq!(trials(3), 3, "measured alone");
}

#[test]
fn what_cannot_take_turns_is_run_again_if_it_was_disturbed() {
    let stage = Stage::new(2).plan(|plan| {
        plan.repeats = true;
        plan.cases[0].threads = 1;
        *plan = plan.clone().in_turns(&AskedTurns::default());
        assert_eq!(plan.cases[0].turns, Some(Turns::Stop));
    });
    let done = stage.run(|due, _| {
        Some(match due.purpose {
            Purpose::Trial => crashed(),
            _ if due.cell.id == "larson@1/b00/hoard" => Turn {
                foreign_cpu_share: 0.9,
                ..took(20.0)
            },
            _ => took(20.0),
        })
    });
    assert!(done.is_whole());
    let is_again = |cell: &&String| cell.starts_with("larson@1/b00~1/");
    let again = done.log.iter().filter(is_again).count();
    assert_eq!(again, 2, "{:?}", done.log);
}

#[test]
fn processes_that_ran_at_the_same_time_share_it() {
    let lab = FakeRun::new(&["glibc"], &["larson"], 1).fill(|_, _, _| 20.0);
    let mut record = lab.records.into_iter().next_back().unwrap();
    record.usage = Some(Box::new(Usage {
        wall_ns: 4_000_000_000,
        ..Usage::default()
    }));
    assert_eq!(seconds_of_processes([&record]), 4.0);
    for (at_once, seconds) in [(1, 2.0), (2, 1.0)] {
        record.measurement.as_mut().unwrap().turns = Some(turns(Turns::Stop, at_once));
        assert_eq!(seconds_of_processes([&record]), seconds);
    }
}

#[test]
fn what_is_stored_is_not_run_again() {
    let whole = Stage::new(2).stored().run(|_, _| Some(took(20.0)));
    let mut stage = Stage::new(2);
    let (known, gone): (Vec<_>, Vec<_>) = whole
        .stored
        .into_iter()
        .partition(|record| !record.cell.contains("b01/"));
    stage.known = known;
    let rest = stage.run(|_, _| Some(took(20.0)));
    let mut missing: Vec<&str> = gone.iter().map(|record| &*record.cell).collect();
    let mut run = rest.log.iter().map(String::as_str).collect::<Vec<_>>();
    missing.sort_unstable();
    run.sort_unstable();
    assert_eq!((run, missing.len()), (missing, 2));
}

#[test]
fn a_part_in_whose_midst_a_run_was_interrupted_is_run_again_as_a_whole() {
    let is_second = |log: &[String]| log.iter().any(|cell| cell.starts_with("larson@2/b01/"));
    let torn = Stage::new(3)
        .stored()
        .run(move |due, log| (due.cell.block != 1 || !is_second(log)).then(|| took(20.0)));
    assert_eq!((torn.is_whole(), torn.blocks().len()), (false, 3));
    let mut rest = Stage::new(3).stored();
    rest.known = torn.stored.clone();
    let rest = rest.run(|_, _| Some(took(20.0)));
    let mut blocks = rest.blocks();
    assert!(rest.is_whole() && blocks.len() == 4, "{blocks:?}");
    blocks.sort_unstable();
    assert_eq!(
        blocks[..2],
        ["larson@2/b01~1/glibc", "larson@2/b01~1/hoard"]
    );
    // The repeated part is known from now on.
    let mut nothing = Stage::new(3);
    nothing.known = [torn.stored, rest.stored].concat();
    let nothing = nothing.run(|_, _| Some(took(20.0)));
    assert!(nothing.is_whole() && nothing.blocks().is_empty());
}

#[test]
fn a_duet_that_one_side_ended_is_not_run_again() {
    let stage = || {
        Stage::new(3).plan(|plan| {
            plan.cases[0].threads = 1;
            plan.cases[0].turns = Some(Turns::Stop);
            plan.turn_lengths_ms = vec![10];
        })
    };
    let ended = stage().stored().run(|due, _| {
        let crashes = due.cell.id == "larson@1/b01/hoard";
        Some(if crashes { crashed() } else { took(20.0) })
    });
    let mut again = stage();
    let (of_the_other, known): (Vec<_>, Vec<_>) = ended
        .stored
        .into_iter()
        .partition(|record| record.cell == "larson@1/b01/glibc");
    assert_eq!(of_the_other.len(), 1);
    let failed = known.iter().filter(|record| !record.outcome.is_ok());
    assert_eq!(failed.count(), 1);
    again.known = known;
    let again = again.run(|_, _| Some(took(20.0)));
    let of_blocks = again
        .log
        .iter()
        .filter(|cell| cell.starts_with("larson@1/b"));
    let of_blocks: Vec<&String> = of_blocks.collect();
    assert!(of_blocks.is_empty(), "{of_blocks:?}");
}

#[test]
fn an_interrupted_run_has_stored_all_that_had_ended() {
    let done = Stage::new(4)
        .stored()
        .run(|due, _| (due.cell.block < 2).then(|| took(20.0)));
    assert!(!done.is_whole());
    assert_eq!(done.blocks().len(), 4);
    let mut stored: Vec<&str> = done.stored.iter().map(|record| &*record.cell).collect();
    let mut log: Vec<String> = done.log.iter().map(|cell| cell.replace(' ', "-")).collect();
    stored.sort_unstable();
    log.sort_unstable();
    assert_eq!(stored, log);
}

#[test]
fn a_row_whose_check_fails_is_not_measured_and_one_that_fails_twice_is_given_up() {
    let failing = |due: &Due, _: &[String]| {
        Some(
            if due.cell.allocator == "hoard" && due.purpose == Purpose::Check {
                crashed()
            } else {
                took(20.0)
            },
        )
    };
    let unchecked = Stage::new(4).run(failing);
    assert_eq!(
        unchecked.blocks().len(),
        4,
        "glibc alone: {:?}",
        unchecked.blocks()
    );
    assert!(
        unchecked
            .log
            .iter()
            .all(|cell| !cell.starts_with("corners/hoard"))
    );
    let crashing = |due: &Due, _: &[String]| {
        Some(
            if due.cell.allocator == "hoard" && due.purpose == Purpose::Sample {
                crashed()
            } else {
                took(20.0)
            },
        )
    };
    let hoard = |done: &Done| {
        done.blocks()
            .iter()
            .filter(|cell| cell.ends_with("hoard"))
            .count()
    };
    assert_eq!(hoard(&Stage::new(4).run(crashing)), 2);
}

#[test]
fn no_heap_is_aged_with_the_sizes_of_a_check_that_failed() {
    let stage = Stage::new(1).stored().plan(|plan| {
        let aged = plan.cases[0].under(Factor::Age(50));
        plan.cases.push(aged);
    });
    let done = stage.run(|due, _| {
        let shows_sizes = due.cell.id == "larson@2/check/glibc";
        Some(if shows_sizes { crashed() } else { took(20.0) })
    });
    assert!(done.is_whole());
    let is_aged = |cell: &String| cell.starts_with("larson-aged");
    assert!(!done.log.iter().any(is_aged), "{:?}", done.log);
    let of_aged = done.stored.iter();
    let of_aged = of_aged.filter(|record| record.workload == "larson-aged");
    let why: Vec<String> = of_aged.map(|record| record.outcome.to_string()).collect();
    let names_check = |why: &String| why.contains("larson@2/check/glibc shows with which sizes");
    assert!(why.len() == 2 && why.iter().all(names_check), "{why:?}");
}
