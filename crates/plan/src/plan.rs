//! The plan of a run: which processes run, in which order.

use super::case::Case;
use super::cell::{Cell, CellId, Part};
use super::cpus_seen::CpusSeen;
use super::factor::Factor;
use super::huge_pages::HugePages;
use super::limit::Limit;
use super::mode::Mode;
use super::turns::{Asked as AskedTurns, Turn};
use super::{limit, turns};
use heapmark_catalog::Iterations;
use heapmark_stats::{ALPHA, ALPHA_UNTIL_PRECISE};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is measured, how often and in which order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The seed of every random choice.
    pub seed: u64,
    /// How often each allocator runs each case, at least.
    pub blocks: u32,
    /// How often each allocator runs each case, at most; `None`: exactly `blocks` times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_blocks: Option<u32>,
    /// The precision that ends the run between `blocks` and `most_blocks`: half of each 95 % interval, as a share of its ratio, is at most
    /// this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// The half of an interval that is enough for a ratio far from 1, if it is more than `precision`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_precision: Option<f64>,
    /// Time budget in seconds: no block begins that would end later than this if it takes as long as the block before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_s: Option<f64>,
    /// Whether the budget is the suite's own: then it covers blocks alone, and never ends a run before the least number of blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub budget_of_suite: bool,
    /// Whether parts with interference are run again. Duets are not run again, since the interference affected both sides.
    #[serde(default)]
    pub repeats: bool,
    /// The lengths of turns in milliseconds, used one after the other from duet to duet; none if nothing takes turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turn_lengths_ms: Vec<u32>,
    /// What is measured.
    pub mode: Mode,
    /// Which memory may be in transparent huge pages, in cases whose factor is not huge pages.
    #[serde(default, skip_serializing_if = "HugePages::is_machines")]
    pub huge_pages: HugePages,
    /// Name of the allocator that the others are compared with; one of `allocators`.
    pub baseline: String,
    /// Workloads that the user named directly, not by a suite or a pattern: if nothing of one
    /// exists, that is a failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<String>,
    /// The time that one process should measure on the baseline, if a case is calibrated.
    pub target_ms: u32,
    /// Workloads at thread counts.
    pub cases: Vec<Case>,
    /// Names of the allocators.
    pub allocators: Vec<String>,
    /// Name of the A/A copy of the baseline, which shows what this run would call a difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aa_copy: Option<String>,
    /// Name of the null allocator, which shows the harness's own cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<String>,
    /// Names of the null allocators under C libraries other than the system's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floors_elsewhere: Vec<String>,
}

/// The parameter that sets how many requests of a case come in a second at full load; 0 means as
/// many as the baseline can serve.
pub const CAPACITY: &str = "capacity";

/// The most processes in a part, including the baseline. More would put the last one too far from
/// the baseline.
pub const MOST_IN_A_PART: usize = 6;

/// Returns the largest number of simultaneous comparisons: of each allocator in each case, or of
/// all pairs of allocators.
pub fn comparisons(cases: usize, allocators: usize) -> usize {
    (cases * allocators).max(pairs(allocators))
}

/// Returns the number of pairs among `of` items.
pub fn pairs(of: usize) -> usize {
    of * of.saturating_sub(1) / 2
}

/// Fixed environment padding and seed of processes that are not measured.
const UNMEASURED_SEED: u64 = 1;

/// The seed of the requests in runs that sample memory, unless another seed is given: two runs then request the same, and
/// differ only by what an allocator makes of the requests.
pub const SEED_OF_MEMORY: u64 = 1;

impl Plan {
    /// Returns the significance level: the p-values of the plan's comparisons are compared with it.
    pub fn alpha(&self) -> f64 {
        if self.precision.is_some() {
            ALPHA_UNTIL_PRECISE
        } else {
            ALPHA
        }
    }

    /// Returns the most blocks that may be run.
    pub fn most_blocks(&self) -> u32 {
        self.most_blocks.unwrap_or(self.blocks).max(self.blocks)
    }

    /// Returns the plan with these turns for all cases that may take turns.
    pub fn in_turns(mut self, turns: &AskedTurns) -> Plan {
        let has_factor = self.cases.iter().any(|case| case.factor.is_some());
        let is_plain = self.mode.spec().plain && !has_factor;
        for place in 0..self.cases.len() {
            let case = &self.cases[place];
            let may = is_plain && !case.beside && case.may_take_turns();
            // A case with a single row has nothing to compare that row with.
            let takes = may && self.rows_of(case).nth(1).is_some();
            self.cases[place].turns = takes.then_some(turns.by);
        }
        self.turn_lengths_ms.clone_from(&turns.lengths_ms);
        self
    }

    /// Returns how these two processes take turns, if they do. Each candidate gets every length equally often.
    pub fn turn(&self, pair: [&Cell; 2]) -> Option<Turn> {
        let case = &self.cases[pair[0].case];
        let baseline = case.baseline(&self.baseline);
        let candidate = pair.into_iter().find(|cell| cell.allocator != baseline);
        let row = |cell: &Cell| self.rows_of(case).position(|name| name == cell.allocator);
        let first = candidate.and_then(row).unwrap_or(0);
        let place = (first + pair[0].block as usize).checked_rem(self.turn_lengths_ms.len());
        let ms = place.map_or(turns::LENGTHS_MS[0], |place| self.turn_lengths_ms[place]);
        let length = Duration::from_millis(ms.into());
        // A duet of a kernel ends once each process has measured for as long as a process alone does.
        let enough_ms = match case.kernel() {
            Some(_) => 2 * self.target_ms,
            None => turns::ENOUGH_MS,
        };
        Some(Turn {
            by: case.turns?,
            length,
            enough: Duration::from_millis(enough_ms.into()),
        })
    }

    /// Returns what the processes of a case measure.
    pub fn mode_of(&self, case: &Case) -> Mode {
        if case.beside { Mode::Memory } else { self.mode }
    }

    /// Returns the plan without the cases whose memory is measured beside the others, or, if `beside` is set, a plan of those cases alone.
    pub fn only(&self, beside: bool) -> Plan {
        let mut plan = self.clone();
        plan.cases.retain(|case| case.beside == beside);
        if !beside {
            return plan;
        }
        Plan {
            blocks: 1,
            most_blocks: None,
            precision: None,
            far_precision: None,
            mode: Mode::Memory,
            aa_copy: None,
            floor: None,
            floors_elsewhere: Vec::new(),
            ..plan
        }
    }

    /// Returns all cells that run in any case, in the order in which they run.
    pub fn cells(&self) -> Vec<Cell> {
        let blocks = (0..self.blocks).flat_map(|block| self.block(block));
        self.beside().into_iter().chain(blocks.flatten()).collect()
    }

    /// Returns the cells of the cases whose memory is measured beside the others: one process of
    /// each allocator, since resident memory hardly varies.
    pub fn beside(&self) -> Vec<Cell> {
        let mut random = ChaCha8Rng::seed_from_u64(SEED_OF_MEMORY);
        (0..self.cases.len())
            .filter(|case| self.cases[*case].beside)
            .flat_map(|case| self.parts(0, case, &mut random))
            .flatten()
            .collect()
    }

    /// Returns one block, in which every case runs once, with every allocator once and the baseline in each part. Each case is spread over
    /// the whole session. A block depends on no other block. A case with a factor runs next to the case without it.
    pub fn block(&self, block: u32) -> Vec<Part> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(u64::from(block));
        let mut cases: Vec<usize> = (0..self.cases.len()).collect();
        cases.retain(|case| self.plain(*case) == *case && !self.cases[*case].beside);
        cases.shuffle(&mut random);
        cases
            .into_iter()
            .flat_map(|case| self.parts(block, case, &mut random))
            .collect()
    }

    fn parts(&self, block: u32, case: usize, random: &mut ChaCha8Rng) -> Vec<Part> {
        let seed = random.random();
        let (baseline, mut others) = self.baseline_and_others(case);
        others.shuffle(random);
        let count = self.parts_for(case, others.len());
        let size = others.len().div_ceil(count).max(1);
        (0..count)
            .map(|part| {
                let mut names = vec![baseline];
                names.extend(others.iter().skip(part * size).take(size));
                names.shuffle(random);
                let mut places = Vec::new();
                for name in names {
                    let mut cases = self.with_factor(case, name);
                    cases.shuffle(random);
                    places.extend(cases.into_iter().map(|case| (case, name)));
                }
                let part = part as u32;
                let named = (count > 1).then_some(part);
                let cell = |(position, (case, name)): (usize, (usize, &str))| Cell {
                    id: CellId::of_block(&self.cases[case].label(), block, named, 0, name),
                    case,
                    allocator: name.to_string(),
                    block,
                    part,
                    attempt: 0,
                    position: position as u32,
                    seed,
                    padding: random.random_range(0..4096),
                    limit: None,
                };
                places.into_iter().enumerate().map(cell).collect()
            })
            .collect()
    }

    /// Returns the index of the case without a factor, which is the case before this one if this one has a factor.
    pub fn plain(&self, case: usize) -> usize {
        case - usize::from(self.cases[case].factor.is_some())
    }

    /// Returns the index of a case, and of the same case with a factor if this row has that factor: one runs after the other.
    fn with_factor(&self, case: usize, row: &str) -> Vec<usize> {
        let next = case + 1;
        let has_row = |next: &Case| self.rows_of(next).any(|name| name == row);
        let follows = self
            .cases
            .get(next)
            .is_some_and(|next| next.factor.is_some() && has_row(next));
        [case].into_iter().chain(follows.then_some(next)).collect()
    }

    /// Returns which memory of a case's processes may be in transparent huge pages.
    pub fn huge_pages_of(&self, case: &Case) -> HugePages {
        match case.factor {
            Some(Factor::HugePages(which)) => which,
            _ => self.huge_pages,
        }
    }

    /// Returns the number of CPUs that is reported to a case's commands; `None` if their calls are not intercepted. If one case gets a
    /// changed number, the others get the real one just as slowly.
    pub fn cpus_seen_of(&self, case: &Case) -> Option<CpusSeen> {
        let tells = |factor: Option<Factor>| match factor {
            Some(Factor::CpusSeen(count)) => Some(CpusSeen::Count(count)),
            _ => None,
        };
        let any = self.cases.iter().any(|case| tells(case.factor).is_some());
        any.then(|| tells(case.factor).unwrap_or(CpusSeen::Machine))
    }

    /// Returns the case whose work this case does: the case without the factor, unless the work may depend on the factor.
    pub fn works_like(&self, case: usize) -> usize {
        match self.cases[case].factor {
            Some(Factor::CpusSeen(_)) => case,
            _ => self.plain(case),
        }
    }

    /// Returns how many of 100 blocks of the litter stay, in a run of aged heaps.
    pub fn age(&self) -> Option<u8> {
        self.cases.iter().find_map(Case::age)
    }

    /// Returns the next attempt at the same part.
    pub fn again(&self, part: &[Cell]) -> Part {
        let again = |cell: &Cell| {
            let attempt = cell.attempt + 1;
            let (_, others) = self.baseline_and_others(self.plain(cell.case));
            let part = (self.parts_for(cell.case, others.len()) > 1).then_some(cell.part);
            let label = self.cases[cell.case].label();
            Cell {
                id: CellId::of_block(&label, cell.block, part, attempt, &cell.allocator),
                attempt,
                ..cell.clone()
            }
        };
        part.iter().map(again).collect()
    }

    /// Returns the number of parts in which a block runs the rows of a case.
    fn parts_for(&self, case: usize, others: usize) -> usize {
        let case = &self.cases[case];
        let most = match case.turns {
            Some(_) => 2,
            None => MOST_IN_A_PART,
        };
        if self.mode_of(case).spec().compares_memory {
            1
        } else {
            others.div_ceil(most - 1).max(1)
        }
    }

    /// Returns the row that a case's other rows are compared with, and those other rows.
    fn baseline_and_others(&self, case: usize) -> (&str, Vec<&str>) {
        let case = &self.cases[case];
        let baseline = case.baseline(&self.baseline);
        let others = self.rows_of(case).filter(|name| *name != baseline);
        (baseline, others.collect())
    }

    /// Returns a process that looks for the smallest limit of a row; `which` is its number among the processes under the same limit.
    pub fn search(&self, case: usize, row: &str, limit: Limit, which: u32) -> Cell {
        let id = CellId::of_search(&self.cases[case].label(), limit.bytes, which, row);
        Cell {
            limit: Some(limit),
            ..unmeasured(case, row, id)
        }
    }

    /// Returns a part of a block, in random order. Each process that has a smallest limit runs once
    /// more under each multiple of it. All do the work for which the limit was found.
    pub fn under_limits(&self, part: &[Cell], smallest: impl Fn(&Cell) -> Option<Limit>) -> Part {
        let mut all = Vec::new();
        for cell in part {
            let free = Cell {
                seed: UNMEASURED_SEED,
                ..cell.clone()
            };
            let Some((limit, bytes)) = smallest(cell).and_then(|limit| Some((limit, limit.bytes?)))
            else {
                all.push(free);
                continue;
            };
            let label = self.cases[cell.case].label();
            all.extend(limit::TIMED_PERCENT.map(|percent| Cell {
                id: CellId::of_limited(&label, cell.block, percent, &cell.allocator),
                limit: Some(Limit {
                    bytes: Some(bytes / 100 * u64::from(percent)),
                    percent: Some(percent),
                    ..limit
                }),
                ..free.clone()
            }));
            all.push(free);
        }
        let first = part.first().map_or((0, 0), |cell| (cell.block, cell.case));
        let mut random = ChaCha8Rng::seed_from_u64(self.seed ^ first.1 as u64);
        random.set_stream(u64::from(first.0));
        all.shuffle(&mut random);
        all
    }

    /// Returns the names of the rows of a case: its allocators, the A/A copy and the floor, then
    /// its programs.
    pub fn rows_of<'a>(&'a self, case: &'a Case) -> impl Iterator<Item = &'a str> {
        let timed = !case.beside;
        let compared = self
            .allocators
            .iter()
            .chain(self.aa_copy.iter().filter(move |_| timed));
        compared
            .filter(|_| case.is_for_allocators())
            .chain(self.floors().filter(move |_| timed && case.has_floor()))
            .chain(case.rows.iter().map(|row| &row.name))
            .map(String::as_str)
    }

    /// Returns the names of the plan's null allocators.
    pub fn floors(&self) -> impl Iterator<Item = &String> {
        self.floor.iter().chain(&self.floors_elsewhere)
    }

    /// Returns one checked process for every case and allocator, in which blocks are compared with
    /// each other and nothing is timed. The extra rows have none: the A/A copy is the baseline's
    /// library, and blocks of the null allocator overlap by design.
    pub fn checks(&self) -> Vec<Cell> {
        let extra: Vec<&str> = self
            .aa_copy
            .iter()
            .chain(self.floors())
            .map(String::as_str)
            .collect();
        let mut checks = Vec::new();
        for (place, case) in self.cases.iter().enumerate() {
            let rows = self.rows_of(case).filter(|name| !extra.contains(name));
            checks.extend(rows.map(|name| self.check(place, name)));
        }
        checks
    }

    fn check(&self, case: usize, name: &str) -> Cell {
        let id = CellId::of_check(&self.cases[case].label(), name);
        unmeasured(case, name, id)
    }

    /// Returns the processes that test functions which few workloads call: one for each allocator and kind of call.
    pub fn corners(&self) -> Vec<(Cell, &'static str)> {
        let of = |allocator: &str, corner| {
            let id = CellId::of_corner(allocator, corner);
            (unmeasured(0, allocator, id), corner)
        };
        self.allocators
            .iter()
            .flat_map(|allocator| heapmark_guest::corners::ALL.map(|corner| of(allocator, corner)))
            .collect()
    }

    /// Returns the trial of a case: two processes of its baseline that show whether two can take turns.
    pub fn trial(&self, case: usize) -> Cell {
        let planned = &self.cases[case];
        let baseline = planned.baseline(&self.baseline);
        unmeasured(case, baseline, CellId::of_trial(&planned.label(), baseline))
    }

    /// Returns the checked process of the case's baseline.
    pub fn check_of_baseline(&self, case: usize) -> Cell {
        self.check(case, self.cases[case].baseline(&self.baseline))
    }

    /// Returns the process on the baseline that measures how long this case takes.
    pub fn calibration(&self, case: usize) -> Cell {
        let planned = &self.cases[case];
        let id = CellId::of_calibration(&planned.label());
        unmeasured(case, planned.baseline(&self.baseline), id)
    }

    /// Returns the case whose calibration shows how many requests the baseline can serve, if this case's requests come at a share of that:
    /// the same case for all shares, so that they are shares of one number.
    pub fn shows_capacity(&self, case: usize) -> Option<usize> {
        let case = &self.cases[case];
        if case.parameters.get(CAPACITY)? != "0" {
            return None;
        }
        let wanted = case.at_full_load();
        let same = |other: &Case| other.threads == case.threads && other.at_full_load() == wanted;
        self.cases.iter().position(same)
    }

    /// Returns the measured iterations of one process, once the calibration has shown how long one
    /// takes on the baseline.
    pub fn iterations(&self, case: usize, one_iteration_ns: u64) -> u32 {
        match self.cases[case].iterations {
            Iterations::Fixed(count) => count,
            Iterations::Calibrated(_) => {
                let target_ns = u64::from(self.target_ms) * 1_000_000;
                let count = (target_ns + one_iteration_ns / 2) / one_iteration_ns.max(1);
                count.clamp(1, 10_000) as u32
            }
        }
    }

    /// Returns the seconds that the processes take if every allocator is as fast as the baseline,
    /// start-up included; and the number of processes that are not included, because the duration
    /// of their fixed work is unknown before the first run.
    pub fn estimate(&self) -> (f64, usize) {
        const START_S: f64 = 0.05;
        let process = |case: &Case| match case.iterations {
            Iterations::Calibrated(_) => Some(f64::from(self.target_ms) / 1e3 * 1.3 + START_S),
            Iterations::Fixed(count) => case
                .seconds()
                .map(|seconds| seconds * f64::from(count) + START_S),
        };
        let mut seconds = 0.0;
        let mut unknown = 0;
        for case in &self.cases {
            let each = match self.mode.limit() {
                _ if case.beside => 1,
                Some(_) => limit::processes(self.blocks),
                None => self.blocks,
            };
            let processes = self.rows_of(case).count() * (each as usize + 1);
            match process(case) {
                Some(each) => seconds += each * processes as f64,
                None => unknown += processes,
            }
        }
        (seconds, unknown)
    }
}

fn unmeasured(case: usize, allocator: &str, id: CellId) -> Cell {
    Cell {
        id,
        case,
        allocator: allocator.to_string(),
        seed: UNMEASURED_SEED,
        ..Cell::default()
    }
}
