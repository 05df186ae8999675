//! The search: which settings arrive, which have an effect, which survive rounds with more and more pairs, which go together,
//! and which are confirmed by new pairs. Processes are started only through [`Race`], so that a script can take its place.

use crate::arrival::{Arrival, CountRanges, Counts, Sight, arrival};
use crate::judged::{AtMost, Confirmation, Goal, Logs, estimate, judged, ratios};
use crate::setting::Setting;
use anyhow::Result;
use heapmark_core::analyse::Ratio;
use heapmark_core::report::text::count;
use heapmark_stats::{rank_correlation, shift};
use serde::Serialize;
use std::collections::BTreeMap;

/// The measurements that a search needs from the machine.
pub trait Race {
    /// Runs one process under this setting, without timing it.
    fn sight(&mut self, setting: &Setting) -> Result<Sight>;
    /// Measures pairs of each of these rows and the default; two copies of the default run beside
    /// them.
    fn round(&mut self, stage: Stage, rows: &[Setting], blocks: u32) -> Result<Round>;
}

/// Why pairs are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// To choose among settings.
    Search,
    /// To judge those that were chosen.
    Confirm,
}

/// The results of a round.
#[derive(Default)]
pub struct Round {
    /// The log ratios of each row by its name, or why there are none.
    pub rows: BTreeMap<String, Result<Logs, String>>,
    /// The logs of the copies of the default.
    pub decoys: Vec<Logs>,
    /// How long a process of the default takes by itself, in seconds.
    pub process_s: f64,
    /// Whether the time does not depend on the allocator, like that of a client that sends for ten
    /// seconds.
    pub is_paced: bool,
}

impl Round {
    fn logs(&self, row: &str) -> Option<&Logs> {
        self.rows.get(row)?.as_ref().ok()
    }

    /// Returns the log ratios of one row over another, block by block; none if they have not the same blocks.
    fn over(&self, row: &str, other: &str, goal: Goal) -> Vec<f64> {
        let of = |row| self.logs(row)?.get(&goal);
        match (of(row), of(other)) {
            (Some(one), Some(other)) if one.len() == other.len() => {
                one.iter().zip(other).map(|(a, b)| a - b).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The goal and the limits of a search.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The quantity that is to be reduced.
    pub goal: Goal,
    /// The limit on another goal, if there is one.
    pub at_most: Option<AtMost>,
    /// The time for the whole tuning, in seconds.
    pub budget_s: f64,
    /// What a process takes of what confirms, if that is not what the search measures.
    pub confirms: Option<Counts>,
    /// Whether the search measures a stand-in for what the confirmation measures: a trace of the
    /// program.
    pub is_stand_in: bool,
}

impl Wanted {
    /// Returns all goals that settings are judged by: the goal, and that of the limit.
    fn goals(&self) -> impl Iterator<Item = Goal> {
        let limited = self.at_most.map(|limit| limit.goal);
        [self.goal].into_iter().chain(limited)
    }

    /// Whether a goal is what is resident at the end, which a process that is not timed does not
    /// show.
    fn is_of_idle(&self) -> bool {
        self.goals().any(|goal| goal == Goal::Idle)
    }

    /// Fails if a round has no number to judge by.
    fn must_be_in(&self, round: &Round) -> Result<()> {
        for goal in self.goals() {
            if goal == Goal::Time && round.is_paced {
                refuse!(
                    "its time is fixed, whatever the allocator: judge by --value, or by memory or idle"
                );
            }
            let mut known = round.rows.values().flatten().chain(&round.decoys);
            if !known.any(|logs| logs.contains_key(&goal)) {
                refuse!(
                    "no process told its {}{}",
                    goal.word(),
                    match goal {
                        Goal::Idle => ": a program that ends by _exit or a signal does not",
                        Goal::Time | Goal::Memory => "",
                    }
                );
            }
        }
        Ok(())
    }
}

/// What became of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "word", content = "why")]
pub enum Fate {
    /// The setting did not reach the allocator.
    NotArrived(String),
    /// All that the setting can change was counted, and is as without it.
    NoEffect,
    /// A process did not end as it should.
    Failed(String),
    /// Other settings were better, or the default was.
    Left,
    /// The setting was among those to be confirmed.
    Finalist,
}

/// A setting, and what the search has found out about it.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The setting that is judged.
    pub setting: Setting,
    /// Whether the setting reached the allocator; `None` if it was not looked at by itself.
    pub arrival: Option<Arrival>,
    /// What became of the setting.
    pub fate: Fate,
    /// The ratios that the search measured: as those of the best of many, too good on average.
    pub search: BTreeMap<Goal, Ratio>,
    #[serde(skip)]
    logs: Logs,
}

impl Entry {
    fn new(setting: Setting) -> Entry {
        Entry {
            setting,
            arrival: None,
            fate: Fate::Left,
            search: BTreeMap::new(),
            logs: Logs::new(),
        }
    }

    fn add(&mut self, logs: Logs) {
        for (goal, logs) in logs {
            self.logs.entry(goal).or_default().extend(logs);
        }
        self.search = ratios(&self.logs);
    }

    /// Returns the lowest and the highest log ratio that the measured ones leave likely.
    fn ends(&self, goal: Goal) -> (f64, f64) {
        let all = self.logs.get(&goal).map_or(&[][..], Vec::as_slice);
        match shift(all).and_then(|shift| shift.interval) {
            Some(interval) => (interval.low, interval.high),
            None if all.is_empty() => (f64::NEG_INFINITY, f64::INFINITY),
            None => all
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| {
                    (low.min(*log), high.max(*log))
                }),
        }
    }

    /// Whether the entry may still help, and stay within the limit.
    fn may_win(&self, wanted: &Wanted) -> bool {
        let within = wanted
            .at_most
            .is_none_or(|limit| self.ends(limit.goal).0 <= limit.ratio.ln());
        within && self.ends(wanted.goal).0 < 0.0
    }
}

/// The ratios of two settings, or of the knobs of one, together and apart.
#[derive(Clone, Debug, Serialize)]
pub struct Together {
    /// The name of the combination.
    pub both: String,
    /// Both settings together, over the default.
    pub ratio: Ratio,
    /// The ratio of each part by itself, in the same blocks.
    pub apart: Vec<(String, Ratio)>,
}

/// A row of the confirmation.
#[derive(Clone, Debug, Serialize)]
pub struct Confirmed {
    /// The setting that was confirmed or not.
    pub setting: Setting,
    /// The ratio that the search measured.
    pub search: Option<Ratio>,
    /// The ratios of the new pairs, by goal.
    pub ratios: BTreeMap<Goal, Ratio>,
    /// Whether the setting helps; `None` for a row that is there for comparison.
    pub confirmation: Option<Confirmation>,
}

/// All results of a tuning.
#[derive(Debug, Default, Serialize)]
pub struct Tuned {
    /// All settings, in the order in which they were named.
    pub entries: Vec<Entry>,
    /// The combinations that were measured.
    pub together: Vec<Together>,
    /// The finalists, and the rows measured beside them.
    pub confirmed: Vec<Confirmed>,
    /// The ratios of two copies of the default in the confirmation, or in the search if there was
    /// no confirmation.
    pub decoys: Vec<BTreeMap<Goal, Ratio>>,
    /// Whether the search orders settings as the confirmation does, if they measured different
    /// things.
    pub order: Option<SharedOrder>,
}

/// The order of settings in the search and in the confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SharedOrder {
    /// Spearman's rank correlation of the two orders.
    pub rank_correlation: f64,
    /// The number of settings that both have measured.
    pub settings: usize,
}

impl SharedOrder {
    /// Compares the orders of both ratios; `None` for too few settings.
    fn of(rows: &[Confirmed], goal: Goal) -> Option<SharedOrder> {
        let pair = |row: &Confirmed| Some((row.search?.ratio, row.ratios.get(&goal)?.ratio));
        let (searched, confirmed): (Vec<f64>, Vec<f64>) = rows.iter().filter_map(pair).unzip();
        let settings = searched.len();
        let rank_correlation =
            rank_correlation(&searched, &confirmed).filter(|_| settings >= LEAST_IN_ORDER)?;
        Some(SharedOrder {
            rank_correlation,
            settings,
        })
    }
}

impl Tuned {
    /// Returns the settings that help, the search's choice first: a second choice among confirmed numbers would make them too
    /// good.
    pub fn winners(&self) -> impl Iterator<Item = &Confirmed> {
        let is_it = |row: &&Confirmed| row.confirmation == Some(Confirmation::Confirmed);
        self.confirmed.iter().filter(is_it)
    }
}

/// A race that knows what is left of the budget, by what rounds take at most and not by a clock: an interrupted tuning goes on
/// as it would have. The confirmation has as many pairs as there is time for.
struct Budgeted<'r> {
    race: &'r mut dyn Race,
    process_s: f64,
    confirms_s: f64,
    left_s: f64,
}

impl Race for Budgeted<'_> {
    fn sight(&mut self, setting: &Setting) -> Result<Sight> {
        let sight = self.race.sight(setting)?;
        self.left_s -= sight.counts.map_or(0.0, |counts| counts.wall_s());
        Ok(sight)
    }

    fn round(&mut self, stage: Stage, rows: &[Setting], blocks: u32) -> Result<Round> {
        let blocks = match stage {
            Stage::Search => {
                self.left_s -= round_s(self.process_s, rows.len(), blocks);
                blocks
            }
            Stage::Confirm => {
                let least = blocks.min(LEAST_CONFIRMING);
                let fits =
                    |blocks: &u32| round_s(self.confirms_s, rows.len(), *blocks) <= self.left_s;
                (least..=MOST_CONFIRMING).rev().find(fits).unwrap_or(least)
            }
        };
        self.race.round(stage, rows, blocks)
    }
}

/// Returns the seconds that a round takes, if a process takes this much CPU time.
fn round_s(process_s: f64, rows: usize, blocks: u32) -> f64 {
    let pair = (2.0 * IN_TURNS * process_s).max(SHORTEST_PAIR_S) + BESIDE_S;
    match blocks {
        0 => 0.0,
        blocks => (rows + DECOYS) as f64 * (f64::from(blocks) * pair + CHECKS * process_s),
    }
}

/// The number of pairs in each step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lengths {
    /// Pairs of each survivor, in each round of the screening.
    screening: [u32; 3],
    /// Pairs of each combination; 0 if there are no combinations.
    together: u32,
    /// Pairs of each row of the confirmation, of as many rows as there usually are.
    confirmation: u32,
}

/// The lengths to choose from, those with the most pairs first.
const LENGTHS: [Lengths; 4] = [
    lengths([4, 6, 10], 8, 24),
    lengths([3, 3, 6], 6, 15),
    lengths([3, 3, 3], 6, 10),
    lengths([3, 0, 3], 0, 8),
];

const fn lengths(screening: [u32; 3], together: u32, confirmation: u32) -> Lengths {
    Lengths {
        screening,
        together,
        confirmation,
    }
}

/// The number of survivors that are screened to the end.
const LAST: usize = 4;
/// The most settings that are confirmed, but for those that one of them combines.
const FINALISTS: usize = 3;
/// Settings that are measured beside the finalists if the search measured a stand-in, and the fewest settings that make an
/// order.
const BESIDE_FINALISTS: usize = 4;
const LEAST_IN_ORDER: usize = 5;
/// The most bundles that are combined.
const COMBINED: usize = 3;
/// The most pairs of a row of the confirmation, and the fewest unless there is time for fewer only: with three finalists, fewer
/// can hardly confirm any.
const MOST_CONFIRMING: u32 = LENGTHS[0].confirmation;
const LEAST_CONFIRMING: u32 = 10;
/// The number of copies of the default beside each round.
const DECOYS: usize = 2;
/// Each side of a pair takes at least three turns of up to 40 ms: the CPU time of both, in seconds.
const SHORTEST_PAIR_S: f64 = 0.24;
/// The CPU time of a process that takes turns, over that of one alone: each finds caches that the other has used.
const IN_TURNS: f64 = 1.2;
/// The time that a pair takes besides, in seconds: its sides do not end together, and those of different lengths begin again.
const BESIDE_S: f64 = 0.5;
/// What a row takes before its first pair, in processes.
const CHECKS: f64 = 2.0;
/// The number of processes of a default before it is known how much it varies.
const SIGHTS: usize = 4;
/// Looks that take no longer are made within any budget: they say what does not arrive.
const SHORT_S: f64 = 60.0;
/// The number of pairs that show how long a process takes, if none was looked at.
const FIRST_PAIRS: u32 = 2;

impl Lengths {
    /// Returns the seconds that the whole tuning takes, if a process of the search takes this much CPU time, and one of the
    /// confirmation that much.
    fn cost_s(
        &self,
        settings: usize,
        bundles: usize,
        beside: usize,
        process_s: f64,
        confirms_s: f64,
    ) -> f64 {
        let round = |rows, blocks| round_s(process_s, rows, blocks);
        let second = settings.min(settings.div_ceil(2).max(bundles));
        round(settings, self.screening[0])
            + round(second, self.screening[1])
            + round(second.min(LAST), self.screening[2])
            + round(COMBINED + 1 + 4, self.together)
            + round_s(confirms_s, FINALISTS + 1 + beside, self.confirmation)
    }

    /// Returns the longest lengths within a budget; otherwise, the seconds that the shortest take.
    fn within(budget_s: f64, cost: impl Fn(&Lengths) -> f64) -> Result<Self, f64> {
        let found = LENGTHS.iter().find(|lengths| cost(lengths) <= budget_s);
        found
            .copied()
            .ok_or_else(|| cost(&LENGTHS[LENGTHS.len() - 1]))
    }
}

/// Searches for settings that help; `defaults` are the allocators as they are, that of the program
/// first.
pub fn tune(
    defaults: &[Setting],
    settings: Vec<Setting>,
    wanted: &Wanted,
    race: &mut dyn Race,
    told: &mut dyn FnMut(String),
) -> Result<Tuned> {
    let mut tuned = Tuned::default();
    let untried = defaults.iter().filter(|default| {
        let mut all = settings.iter();
        all.all(|setting| setting.allocator != default.allocator)
    });
    let untried: Vec<String> = untried.map(|default| default.name.clone()).collect();
    if untried.len() == defaults.len() && defaults.len() == 1 {
        refuse!(
            "no setting of {} is known, so there is nothing to try: --also VAR=VALUE adds one",
            untried[0]
        );
    }
    if !untried.is_empty() {
        told(format!(
            "only as it is, since no setting is known: {}",
            untried.join(", ")
        ));
    }
    let mut race = Budgeted {
        race,
        process_s: 0.0,
        confirms_s: 0.0,
        left_s: wanted.budget_s,
    };
    let counted_s = look(defaults, settings, wanted, &mut race, &mut tuned)?;
    tuned.not_arrived().into_iter().for_each(&mut *told);
    let field: Vec<usize> = (0..tuned.entries.len())
        .filter(|place| tuned.entries[*place].fate == Fate::Left)
        .collect();
    if field.is_empty() {
        return Ok(tuned);
    }
    let process_s = match counted_s {
        Some(seconds) => seconds,
        None => race.round(Stage::Search, &[], FIRST_PAIRS)?.process_s,
    };
    let bundles = tuned.distinct_bundles(&field);
    let beside = match wanted.is_stand_in {
        true => BESIDE_FINALISTS,
        false => 0,
    };
    let confirms = wanted.confirms.as_ref();
    let confirms_s = confirms.map_or(process_s, Counts::side_s);
    (race.process_s, race.confirms_s) = (process_s, confirms_s);
    let cost =
        |lengths: &Lengths| lengths.cost_s(field.len(), bundles, beside, process_s, confirms_s);
    let lengths = match Lengths::within(race.left_s, cost) {
        Ok(lengths) => lengths,
        Err(least_s) => refuse!(
            "--budget: racing {} takes {:.0} min here at least: give more, or name fewer allocators with -a",
            count(field.len(), "setting"),
            ((wanted.budget_s - race.left_s + least_s) / 60.0).ceil()
        ),
    };
    let most_s = cost(&Lengths {
        confirmation: MOST_CONFIRMING,
        ..lengths
    });
    told(format!(
        "racing {}, for at most {:.0} min",
        count(field.len(), "setting"),
        (most_s.min(race.left_s) / 60.0).ceil()
    ));
    let mut decoys = vec![Logs::new(); DECOYS];
    let mut field = screen(&mut tuned, field, &lengths, wanted, &mut race, &mut decoys)?;
    if lengths.together > 0 {
        field.extend(combine(&mut tuned, &field, &lengths, wanted, &mut race)?);
    }
    let best_decoy = decoys.iter().filter_map(|logs| estimate(logs, wanted.goal));
    let best_decoy = best_decoy.fold(0.0, f64::min);
    let value = |place: &usize| estimate(&tuned.entries[*place].logs, wanted.goal);
    field.retain(|place| {
        value(place).is_some_and(|value| value < best_decoy)
            && tuned.entries[*place].may_win(wanted)
    });
    field.sort_by(|a, b| {
        value(a)
            .partial_cmp(&value(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    field.truncate(FINALISTS);
    // Only beside its parts can a setting be confirmed.
    for part in field
        .clone()
        .iter()
        .flat_map(|place| tuned.parts_of(&tuned.entries[*place].setting))
    {
        if !field.contains(&part) {
            field.push(part);
        }
    }
    tuned.decoys = decoys.iter().map(ratios).collect();
    // Even without finalists, the result must show whether the trace stands for the program.
    if !field.is_empty() || wanted.is_stand_in {
        confirm(&mut tuned, &field, defaults, &lengths, wanted, &mut race)?;
    }
    Ok(tuned)
}

/// Looks at one process of each setting: those that do not arrive, or have no effect, leave the search. Returns the seconds of a
/// side of a pair, if they were counted.
fn look(
    defaults: &[Setting],
    settings: Vec<Setting>,
    wanted: &Wanted,
    race: &mut dyn Race,
    tuned: &mut Tuned,
) -> Result<Option<f64>> {
    let mut of_default: BTreeMap<&str, Vec<Sight>> = BTreeMap::new();
    for default in defaults {
        let sights = (0..SIGHTS).map(|_| race.sight(default));
        let sights = sights.collect::<Result<Vec<Sight>>>()?;
        if let Some(failure) = sights.iter().find_map(|sight| sight.failure.as_ref()) {
            refuse!("the command does not run under {}: {failure}", default.name);
        }
        let wall_s = sights[0].counts.map_or(0.0, |counts| counts.wall_s());
        let looks = SIGHTS * defaults.len() + settings.len();
        if wall_s * looks as f64 > wanted.budget_s.max(SHORT_S) {
            refuse!(
                "--budget: {looks} processes that are only looked at take {:.0} min here: give more, or name fewer allocators with -a",
                (wall_s * looks as f64 / 60.0).ceil()
            );
        }
        of_default.insert(&default.allocator, sights);
    }
    for default in &defaults[1..] {
        tuned.entries.push(Entry::new(default.clone()));
    }
    for setting in settings {
        let without = &of_default[&*setting.allocator];
        let counts: Vec<Counts> = without.iter().filter_map(|sight| sight.counts).collect();
        let ranges = CountRanges::of(&counts);
        let sight = race.sight(&setting)?;
        let arrived = arrival(&setting, &sight, &without[0]);
        let mut entry = Entry::new(setting);
        entry.fate = match (&arrived, sight.failure) {
            (Arrival::NotArrived(why), _) => Fate::NotArrived(why.clone()),
            (_, Some(failure)) => Fate::Failed(failure),
            _ => Fate::Left,
        };
        entry.arrival = Some(arrived);
        if let Some(ranges) = ranges.filter(|_| entry.setting.is_counted() && !wanted.is_of_idle())
            && entry.fate == Fate::Left
            && ranges.have(sight.counts)
            // One process may be within the ranges by chance.
            && ranges.have(race.sight(&entry.setting)?.counts)
        {
            entry.fate = Fate::NoEffect;
        }
        tuned.entries.push(entry);
    }
    let of_program = &of_default[&*defaults[0].allocator];
    let counted = of_program.iter().filter_map(|sight| sight.counts);
    Ok(counted.map(|counts| counts.side_s()).reduce(f64::max))
}

impl Tuned {
    /// Returns the settings that did not arrive, each with the reason.
    fn not_arrived(&self) -> Vec<String> {
        let of = |entry: &Entry| match &entry.fate {
            Fate::NotArrived(why) => Some(format!("{} did not arrive: {why}", entry.setting.name)),
            _ => None,
        };
        self.entries.iter().filter_map(of).collect()
    }

    fn distinct_bundles(&self, field: &[usize]) -> usize {
        let mut all: Vec<_> = field
            .iter()
            .map(|place| {
                let setting = &self.entries[*place].setting;
                (&setting.allocator, &setting.bundles)
            })
            .collect();
        all.sort();
        all.dedup();
        all.len()
    }

    /// Returns the places of what a setting must be better than: the settings that it combines, if the search has combined it,
    /// and its allocator as it is, unless that is the default.
    fn parts_of(&self, setting: &Setting) -> Vec<usize> {
        let combined = self.together.iter().filter(|it| it.both == setting.name);
        let names = combined.flat_map(|it| it.apart.iter().map(|(name, _)| name));
        let allocator = Some(&setting.allocator).filter(|_| !setting.is_none());
        let places = names
            .chain(allocator)
            .filter_map(|name| self.place_of(name));
        let is_measured = |place: &usize| self.entries[*place].fate == Fate::Left;
        places.filter(is_measured).collect()
    }

    fn rows(&self, field: &[usize]) -> Vec<Setting> {
        let setting = |place: &usize| self.entries[*place].setting.clone();
        field.iter().map(setting).collect()
    }

    /// Returns the place of a setting among the entries, if it is there.
    fn place_of(&self, name: &str) -> Option<usize> {
        let mut entries = self.entries.iter();
        entries.position(|entry| entry.setting.name == name)
    }

    /// Returns measured settings that are not in these rows, from the best to the worst with equal steps between them.
    fn spread(&self, rows: &[Setting], goal: Goal) -> Vec<usize> {
        let value = |place: usize| estimate(&self.entries[place].logs, goal);
        let is_other = |place: &usize| {
            let name = &self.entries[*place].setting.name;
            rows.iter().all(|row| row.name != *name)
        };
        let others = (0..self.entries.len()).filter(is_other);
        let mut others: Vec<(f64, usize)> = others
            .filter_map(|place| Some((value(place)?, place)))
            .collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        let count = others
            .len()
            .min((FINALISTS + BESIDE_FINALISTS).saturating_sub(rows.len()));
        let at = |step: usize| others[(others.len() - 1) * step / count.saturating_sub(1).max(1)].1;
        (0..count).map(at).collect()
    }

    /// Adds what a round has measured.
    fn take(&mut self, field: &[usize], round: &mut Round) {
        for place in field {
            let entry = &mut self.entries[*place];
            match round.rows.remove(&entry.setting.name) {
                Some(Ok(logs)) => entry.add(logs),
                Some(Err(why)) => entry.fate = Fate::Failed(why),
                None => entry.fate = Fate::Failed("it has no numbers".into()),
            }
        }
    }
}

/// Measures rounds of pairs. After each round, the settings that may still win stay, and of these the better half by the lower
/// bound of the interval. After the first round, the best of each bundle stays, too.
fn screen(
    tuned: &mut Tuned,
    mut field: Vec<usize>,
    lengths: &Lengths,
    wanted: &Wanted,
    race: &mut dyn Race,
    decoys: &mut [Logs],
) -> Result<Vec<usize>> {
    for (turn, blocks) in lengths.screening.into_iter().enumerate() {
        if turn > 0 {
            let half = match turn {
                1 => field.len().div_ceil(2),
                _ => LAST,
            };
            let mut bundles = Vec::new();
            let mut place = 0;
            field.retain(|entry| {
                let setting = &tuned.entries[*entry].setting;
                let bundle = (setting.allocator.clone(), setting.bundles.clone());
                let is_first = !bundles.contains(&bundle);
                bundles.push(bundle);
                place += 1;
                place <= half || turn == 1 && is_first
            });
        }
        if blocks == 0 || field.is_empty() {
            continue;
        }
        let mut round = race.round(Stage::Search, &tuned.rows(&field), blocks)?;
        wanted.must_be_in(&round)?;
        tuned.take(&field, &mut round);
        for (all, new) in decoys.iter_mut().zip(round.decoys) {
            for (goal, logs) in new {
                all.entry(goal).or_default().extend(logs);
            }
        }
        field.retain(|place| {
            let entry = &tuned.entries[*place];
            entry.fate == Fate::Left && entry.may_win(wanted)
        });
        let bound = |place: &usize| tuned.entries[*place].ends(wanted.goal).0;
        field.sort_by(|a, b| bound(a).total_cmp(&bound(b)));
    }
    Ok(field)
}

/// Measures the best bundles two by two, and the knobs of one of them apart. Returns the places of combinations that are
/// certainly better than both parts: otherwise a setting without effect would ride along.
fn combine(
    tuned: &mut Tuned,
    field: &[usize],
    lengths: &Lengths,
    wanted: &Wanted,
    race: &mut dyn Race,
) -> Result<Vec<usize>> {
    let best = &field[..field.len().min(COMBINED)];
    let singles = tuned.rows(best);
    let mut pairs: Vec<(Setting, Vec<Setting>)> = Vec::new();
    for (place, one) in singles.iter().enumerate() {
        for other in &singles[place + 1..] {
            if let Some(both) = one.with(other) {
                pairs.push((both, vec![one.clone(), other.clone()]));
            }
        }
    }
    let combined = pairs.len();
    if let Some(several) = singles.iter().find(|setting| setting.parts.len() > 1) {
        pairs.push((several.clone(), several.alone()));
    }
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows: Vec<Setting> = Vec::new();
    for (both, apart) in &pairs {
        for row in [both].into_iter().chain(apart) {
            if rows.iter().all(|known| known.name != row.name) {
                rows.push(row.clone());
            }
        }
    }
    let round = race.round(Stage::Search, &rows, lengths.together)?;
    let ratio = |setting: &Setting| Ratio::from_logs(round.logs(&setting.name)?.get(&wanted.goal)?);
    let mut better = Vec::new();
    for (place, (both, apart)) in pairs.iter().enumerate() {
        let Some(ratio_of_both) = ratio(both) else {
            continue;
        };
        let apart = apart
            .iter()
            .filter_map(|setting| Some((setting.name.clone(), ratio(setting)?)));
        let apart: Vec<(String, Ratio)> = apart.collect();
        let certainly = |(single, _): &(String, Ratio)| {
            let over = shift(&round.over(&both.name, single, wanted.goal));
            over.and_then(|over| over.interval)
                .is_some_and(|interval| interval.high < 0.0)
        };
        let is_best = place < combined && apart.iter().all(certainly);
        if let Some(logs) = round.logs(&both.name).filter(|_| is_best) {
            let mut entry = Entry::new(both.clone());
            entry.add(logs.clone());
            tuned.entries.push(entry);
            better.push(tuned.entries.len() - 1);
        }
        tuned.together.push(Together {
            both: both.name.clone(),
            ratio: ratio_of_both,
            apart,
        });
    }
    Ok(better)
}

/// Measures new pairs of the finalists. If only a setting brings in an allocator, the allocator without settings is measured
/// beside it. If the search measured a stand-in, further settings are measured, too, to show whether their order is the same.
fn confirm(
    tuned: &mut Tuned,
    field: &[usize],
    defaults: &[Setting],
    lengths: &Lengths,
    wanted: &Wanted,
    race: &mut dyn Race,
) -> Result<()> {
    let mut rows = tuned.rows(field);
    let finalists = rows.len();
    for default in &defaults[1..] {
        let is_used = rows.iter().any(|row| row.allocator == default.allocator);
        if is_used && rows.iter().all(|row| row.name != default.name) {
            rows.push(default.clone());
        }
    }
    let mut places: Vec<Option<usize>> = field.iter().copied().map(Some).collect();
    places.extend(
        rows[finalists..]
            .iter()
            .map(|row| tuned.place_of(&row.name)),
    );
    if wanted.is_stand_in {
        let beside = tuned.spread(&rows, wanted.goal);
        rows.extend(tuned.rows(&beside));
        places.extend(beside.into_iter().map(Some));
    }
    let round = race.round(Stage::Confirm, &rows, lengths.confirmation)?;
    wanted.must_be_in(&round)?;
    let found = |row: &Setting| match round.rows.get(&row.name) {
        Some(Ok(logs)) => Ok(logs.clone()),
        Some(Err(why)) => Err(why.clone()),
        None => Err("it has no numbers".to_owned()),
    };
    let logs: Vec<Result<Logs, String>> = rows.iter().map(found).collect();
    let known: Vec<Logs> = logs[..finalists]
        .iter()
        .map(|outcome| outcome.clone().unwrap_or_default())
        .collect();
    let mut words = match finalists {
        0 => Vec::new(),
        _ => judged(&known, &round.decoys, wanted.goal, wanted.at_most),
    };
    for (word, row) in words.iter_mut().zip(&rows) {
        let parts = tuned.rows(&tuned.parts_of(row));
        let is_no_better = |part: &&Setting| {
            let over = Logs::from([(wanted.goal, round.over(&row.name, &part.name, wanted.goal))]);
            judged(&[over], &[], wanted.goal, None) != [Confirmation::Confirmed]
        };
        if *word == Confirmation::Confirmed
            && let Some(part) = parts.iter().find(is_no_better)
        {
            *word = Confirmation::NotConfirmed(format!("not certainly better than {}", part.name));
        }
    }
    for (place, (row, logs)) in rows.into_iter().zip(logs).enumerate() {
        let entry = places[place].map(|place| &mut tuned.entries[place]);
        let mut confirmation = words.get(place).cloned();
        if let Err(why) = &logs {
            confirmation = confirmation.map(|_| Confirmation::NotConfirmed(why.clone()));
        }
        tuned.confirmed.push(Confirmed {
            setting: row,
            search: entry.and_then(|entry| {
                if confirmation.is_some() {
                    entry.fate = Fate::Finalist;
                }
                entry.search.get(&wanted.goal).copied()
            }),
            ratios: ratios(&logs.unwrap_or_default()),
            confirmation,
        });
    }
    if wanted.is_stand_in {
        tuned.order = SharedOrder::of(&tuned.confirmed, wanted.goal);
    }
    tuned.decoys = round.decoys.iter().map(ratios).collect();
    Ok(())
}

#[cfg(test)]
mod tests;
