//! The search against a script: settings with known effects, in noise that a seed makes.

use super::*;
use crate::setting::tests::planted;
use heapmark_core::catalog::Moved;
use heapmark_which::{Given, SettingState};

/// What the script knows of a setting.
#[derive(Clone, Copy)]
struct Truth {
    /// The setting's bundle.
    bundle: &'static str,
    /// Time and peak over the default's.
    time: f64,
    memory: f64,
    /// Page faults more than the default has.
    faults: u64,
    /// Whether it reaches the allocator.
    arrives: bool,
}

const fn truth(bundle: &'static str, time: f64) -> Truth {
    Truth {
        bundle,
        time,
        memory: 1.0,
        faults: 0,
        arrives: true,
    }
}

/// A machine that follows a script.
struct Script {
    truths: Vec<Truth>,
    /// Of pairs: noise, in log units.
    noise: f64,
    seed: u64,
    /// Time of two bundles together, if it is not the product of both.
    pair: Option<(&'static str, &'static str, f64)>,
    /// Stages of the rounds, and their rows.
    rounds: Vec<(Stage, Vec<String>)>,
    /// Pairs of the last round.
    blocks: u32,
    sights: usize,
    /// How long a process takes by itself.
    wall_ns: u64,
    /// Whether a sight counts anything.
    counts: bool,
    /// Time of the allocator `other`, over the default's.
    other: f64,
    /// Whether what confirms has the opposite effects.
    is_reversed: bool,
    /// In which stages its time is fixed.
    paced: &'static [Stage],
}

fn script(truths: &[Truth], seed: u64) -> Script {
    Script {
        truths: truths.to_vec(),
        noise: 0.01,
        seed,
        pair: None,
        rounds: Vec::new(),
        blocks: 0,
        sights: 0,
        wall_ns: 100_000_000,
        counts: true,
        other: 1.0,
        is_reversed: false,
        paced: &[],
    }
}

impl Script {
    /// Nearly normal.
    fn noisy(&mut self) -> f64 {
        let mut next = || {
            self.seed = self
                .seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (self.seed >> 33) as f64 / f64::from(1u32 << 31)
        };
        let sum: f64 = (0..12).map(|_| next()).sum();
        self.noise * (sum - 6.0)
    }

    fn logs(&mut self, setting: &Setting, blocks: u32) -> Logs {
        let of_setting: Vec<Truth> = self
            .truths
            .iter()
            .copied()
            .filter(|truth| setting.bundles.iter().any(|bundle| bundle == truth.bundle))
            .collect();
        let mut time: f64 = of_setting.iter().map(|truth| truth.time).product();
        if let Some((one, other, both)) = self.pair
            && [one, other]
                .iter()
                .all(|name| setting.bundles.iter().any(|bundle| bundle == name))
        {
            time = both;
        }
        if setting.allocator == "other" {
            time *= self.other;
        }
        let memory: f64 = of_setting.iter().map(|truth| truth.memory).product();
        let mut pairs = |ratio: f64| (0..blocks).map(|_| ratio.ln() + self.noisy()).collect();
        Logs::from([(Goal::Time, pairs(time)), (Goal::Memory, pairs(memory))])
    }

    fn run(&mut self, wanted: &Wanted) -> Result<Tuned> {
        let settings = self
            .truths
            .iter()
            .map(|truth| planted(truth.bundle, moved(truth)));
        let settings: Vec<Setting> = settings.collect();
        tune(&[Setting::none("own")], settings, wanted, self, &mut |_| {})
    }
}

/// Settings with faults to count change nothing else.
fn moved(truth: &Truth) -> Moved {
    match truth.bundle.starts_with("counted") {
        true => Moved::Faults,
        false => Moved::Time,
    }
}

impl Race for Script {
    fn sight(&mut self, setting: &Setting) -> Result<Sight> {
        self.sights += 1;
        let truth = self
            .truths
            .iter()
            .find(|truth| setting.bundles.iter().any(|bundle| bundle == truth.bundle));
        let given = truth.map(|truth| Given {
            place: setting
                .environment
                .keys()
                .next()
                .cloned()
                .unwrap_or_default(),
            setting: String::new(),
            value: "1".into(),
            state: match truth.arrives {
                true => SettingState::Taken,
                false => SettingState::Refused,
            },
            why: "by the script".into(),
        });
        Ok(Sight {
            counts: self.counts.then_some(Counts {
                faults: 1000 + self.sights as u64 % 3 + truth.map_or(0, |truth| truth.faults),
                peak_bytes: 1 << 20,
                cpu_ns: 100_000_000,
                wall_ns: self.wall_ns,
            }),
            given: given.into_iter().collect(),
            ..Sight::default()
        })
    }

    fn round(&mut self, stage: Stage, rows: &[Setting], blocks: u32) -> Result<Round> {
        self.rounds
            .push((stage, rows.iter().map(|row| row.name.clone()).collect()));
        self.blocks = blocks;
        let mut round = Round {
            process_s: 0.1,
            is_paced: self.paced.contains(&stage),
            ..Round::default()
        };
        for row in rows {
            let mut logs = self.logs(row, blocks);
            if self.is_reversed && stage == Stage::Confirm {
                let all = logs.values_mut().flatten();
                all.for_each(|log| *log = -*log);
            }
            round.rows.insert(row.name.clone(), Ok(logs));
        }
        let default = Setting::none("own");
        round.decoys = (0..DECOYS).map(|_| self.logs(&default, blocks)).collect();
        Ok(round)
    }
}

const TIME: Wanted = Wanted {
    goal: Goal::Time,
    at_most: None,
    budget_s: 1800.0,
    confirms: None,
    is_stand_in: false,
};

fn fate<'t>(tuned: &'t Tuned, bundle: &str) -> &'t Fate {
    let mut all = tuned.entries.iter();
    let entry = all.find(|entry| entry.setting.bundles == [bundle]);
    &entry.expect("it was named").fate
}

fn winners(tuned: &Tuned) -> Vec<String> {
    tuned
        .winners()
        .map(|winner| winner.setting.name.clone())
        .collect()
}

/// The planted space of the committed script.
fn space() -> Vec<Truth> {
    let mut lost = truth("lost", 0.5);
    lost.arrives = false;
    let mut moves = truth("counted-moves", 1.0);
    moves.faults = 500;
    vec![
        truth("faster", 0.9),
        truth("slower", 1.1),
        truth("little", 1.02),
        truth("inert", 1.0),
        truth("counted", 1.0),
        moves,
        lost,
    ]
}

#[test]
fn each_kind_of_setting_is_told_and_the_good_one_is_confirmed() {
    let mut script = script(&space(), 7);
    let tuned = script.run(&TIME).unwrap();
    assert_eq!(winners(&tuned), ["own+faster"]);
    assert_eq!(fate(&tuned, "faster"), &Fate::Finalist);
    assert_eq!(fate(&tuned, "slower"), &Fate::Left);
    assert_eq!(fate(&tuned, "counted"), &Fate::NoEffect);
    // The faults differ: only pairs can tell.
    assert_ne!(fate(&tuned, "counted-moves"), &Fate::NoEffect);
    assert!(matches!(fate(&tuned, "lost"), Fate::NotArrived(_)));
    // What did not arrive or does nothing was never raced.
    let raced = |name: &str| {
        script
            .rounds
            .iter()
            .any(|(_, rows)| rows.iter().any(|row| row == name))
    };
    assert!(raced("own+inert") && !raced("own+counted") && !raced("own+lost"));
    // The last round is the confirmation, and the only one.
    let confirms = |(stage, _): &&(Stage, Vec<String>)| *stage == Stage::Confirm;
    assert_eq!(script.rounds.iter().filter(confirms).count(), 1);
    assert_eq!(script.rounds.last().unwrap().0, Stage::Confirm);
    let best = tuned.winners().next().unwrap();
    let (low, high) = best.ratios[&Goal::Time].interval.unwrap();
    assert!(low < 0.9 && 0.9 < high, "{low} {high}");
    assert!(best.search.is_some());
}

#[test]
fn where_no_setting_does_anything_nothing_is_found() {
    let space = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|bundle| truth(bundle, 1.0));
    let found = (0..100).filter(|seed| {
        let tuned = script(&space, 1000 + seed).run(&TIME).unwrap();
        tuned.winners().count() > 0
    });
    assert!(found.count() <= 5);
}

/// The search's own figure is that of the best of many, and so too good; the confirmation's is not.
#[test]
fn what_is_confirmed_has_no_bias_of_choice() {
    let space = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|bundle| truth(bundle, 0.97));
    let (mut search, mut confirmed, mut width, mut n) = (0.0, 0.0, 0.0, 0.0);
    for seed in 0..100 {
        let mut script = script(&space, 5000 + seed);
        script.noise = 0.03;
        // Several together would be better than each.
        let wanted = Wanted {
            budget_s: 90.0,
            ..TIME
        };
        let tuned = script.run(&wanted).unwrap();
        let first = &tuned.confirmed[0];
        assert_eq!(first.setting.bundles.len(), 1);
        let ratio = first.ratios[&Goal::Time];
        search += first.search.unwrap().ratio.ln() - 0.97_f64.ln();
        confirmed += ratio.ratio.ln() - 0.97_f64.ln();
        let (low, high) = ratio.interval.unwrap();
        width += (high / low).ln() / 2.0;
        n += 1.0;
    }
    let [search, confirmed, width] = [search, confirmed, width].map(|sum| sum / n);
    assert!(confirmed.abs() <= width / 4.0, "{confirmed} {width}");
    assert!(
        search < -2.0 * confirmed.abs() && search < -0.005,
        "{search} {confirmed}"
    );
}

#[test]
fn a_pair_that_is_better_than_both_is_found_and_a_harmful_one_is_not() {
    let mut script = script(&[truth("one", 0.97), truth("other", 0.98)], 3);
    script.pair = Some(("one", "other", 0.80));
    let tuned = script.run(&TIME).unwrap();
    assert_eq!(winners(&tuned)[0], "own+one+other");
    assert_eq!(tuned.together.len(), 1);
    assert!(tuned.together[0].ratio.ratio < 0.85);
    script.rounds.clear();
    script.pair = Some(("one", "other", 1.2));
    let tuned = script.run(&TIME).unwrap();
    assert!(winners(&tuned).iter().all(|name| name != "own+one+other"));
}

/// A pair of what helps and what does nothing comes out certainly better than both by chance, now and then; new pairs tell.
#[test]
fn what_does_nothing_does_not_ride_along() {
    let space = [
        truth("one", 0.90),
        truth("other", 0.92),
        truth("inert", 1.0),
    ];
    let (mut chosen, mut refused) = (0, 0);
    for seed in 0..200 {
        let tuned = script(&space, 7000 + seed).run(&TIME).unwrap();
        assert_eq!(winners(&tuned)[0], "own+one+other");
        for row in &tuned.confirmed {
            let rides = row.setting.bundles.len() == 2 && row.setting.name.contains("inert");
            match &row.confirmation {
                Some(Confirmation::NotConfirmed(why)) if rides => {
                    assert!(why.starts_with("not certainly better than own+"), "{why}");
                    refused += 1;
                }
                Some(_) if rides => chosen += 1,
                _ => {}
            }
        }
    }
    assert!(refused > 2 && chosen == 0, "{refused} {chosen}");
}

#[test]
fn a_limit_on_memory_keeps_what_takes_more_out() {
    let mut hungry = truth("hungry", 0.8);
    hungry.memory = 1.5;
    let mut script = script(&[hungry, truth("modest", 0.9)], 5);
    assert_eq!(winners(&script.run(&TIME).unwrap())[0], "own+hungry+modest");
    let wanted = Wanted {
        at_most: Some(AtMost {
            goal: Goal::Memory,
            ratio: 1.05,
        }),
        ..TIME
    };
    assert_eq!(winners(&script.run(&wanted).unwrap()), ["own+modest"]);
}

#[test]
fn a_short_budget_is_kept_or_refused() {
    let (settings, process_s) = (20, 1.0);
    let cost = |lengths: &Lengths| lengths.cost_s(settings, 8, 0, process_s, process_s);
    let all: Vec<f64> = LENGTHS.iter().map(cost).collect();
    assert!(all.is_sorted_by(|a, b| a > b), "{all:?}");
    let within = |budget_s| Lengths::within(budget_s, cost);
    assert_eq!(within(all[0]).unwrap(), LENGTHS[0]);
    assert_eq!(within(all[2]).unwrap(), LENGTHS[2]);
    assert_eq!(within(all[3] - 1.0), Err(all[3]));
    let wanted = Wanted {
        budget_s: 10.0,
        ..TIME
    };
    let mut script = script(&space(), 1);
    let error = script.run(&wanted).unwrap_err().to_string();
    assert!(
        error.starts_with("--budget: racing 5 settings takes 2 min"),
        "{error}"
    );
    // What the search has left over goes to the confirmation.
    let pairs = |budget_s| {
        let mut script = self::script(&space(), 1);
        script.run(&Wanted { budget_s, ..TIME }).unwrap();
        script.blocks
    };
    let [short, longer, long] = [70.0, 75.0, 1800.0].map(pairs);
    assert!(
        8 < short && short < longer && longer <= 24,
        "{short} {longer}"
    );
    assert_eq!(long, 24);
    // What confirms may take longer than what the search measures.
    let wanted = Wanted {
        confirms: Some(Counts {
            cpu_ns: 1_000_000_000_000,
            ..Counts::default()
        }),
        ..TIME
    };
    assert!(script.run(&wanted).is_err());
    assert!(script.rounds.is_empty());
}

/// A trace and its program: finalists of the trace, and others, show whether it has the program's order.
#[test]
fn a_trace_must_have_the_order_of_its_program() {
    let space = [
        ("best", 0.8),
        ("good", 0.9),
        ("fair", 0.97),
        ("none", 1.0),
        ("bad", 1.1),
        ("worst", 1.3),
    ];
    let space = space.map(|(bundle, time)| truth(bundle, time));
    let wanted = Wanted {
        is_stand_in: true,
        ..TIME
    };
    let order = |is_reversed: bool| {
        let mut script = script(&space, 11);
        script.is_reversed = is_reversed;
        let tuned = script.run(&wanted).unwrap();
        let raced = script.rounds.last().unwrap().1.clone();
        assert!(raced.contains(&"own+worst".to_owned()), "{raced:?}");
        (tuned.order.unwrap(), winners(&tuned))
    };
    let (same, found) = order(false);
    assert!(same.settings >= LEAST_IN_ORDER && same.rank_correlation > 0.9);
    assert!(!found.is_empty());
    let (opposite, found) = order(true);
    assert!(opposite.rank_correlation < -0.9, "{opposite:?}");
    assert!(found.is_empty(), "{found:?}");
    let tuned = script(&space, 11).run(&TIME).unwrap();
    assert_eq!(tuned.order, None);
    // A trace on which nothing helps says as much of the program as one on which something does.
    let harmful = space.map(|one| truth(one.bundle, one.time + 0.5));
    let tuned = script(&harmful, 11).run(&wanted).unwrap();
    assert!(winners(&tuned).is_empty() && tuned.order.unwrap().rank_correlation > 0.9);
}

/// Each finalist is of another allocator, which stands beside it as it is: those count for the order, too.
#[test]
fn allocators_as_they_are_have_their_place_in_the_order() {
    let space = [("a", 0.8), ("b", 0.85), ("c", 0.9), ("own", 1.2)];
    let mut script = script(&space.map(|(bundle, time)| truth(bundle, time)), 11);
    let settings = space.map(|(allocator, _)| Setting {
        name: format!("{allocator}+{allocator}"),
        allocator: allocator.into(),
        ..planted(allocator, Moved::Time)
    });
    let defaults = ["own", "a", "b", "c"].map(Setting::none);
    let wanted = Wanted {
        is_stand_in: true,
        ..TIME
    };
    let tuned = tune(
        &defaults,
        settings.into(),
        &wanted,
        &mut script,
        &mut |_| {},
    );
    let tuned = tuned.unwrap();
    let as_they_are = tuned.confirmed.iter().filter(|row| row.setting.is_none());
    assert_eq!(as_they_are.count(), 3);
    assert!(tuned.confirmed.iter().all(|row| row.search.is_some()));
    assert!(tuned.order.unwrap().settings > LEAST_IN_ORDER);
}

/// Another allocator helps, and its settings do nothing.
#[test]
fn a_setting_is_confirmed_only_beside_its_allocator_as_it_is() {
    for seed in 1..=40 {
        let mut script = script(&[], seed);
        script.truths = ["first", "second", "third"]
            .map(|bundle| truth(bundle, 1.0))
            .into();
        script.other = 0.8;
        let of_other = |truth: &Truth| Setting {
            name: format!("other+{}", truth.bundle),
            allocator: "other".into(),
            ..planted(truth.bundle, Moved::Time)
        };
        let settings = script.truths.iter().map(of_other).collect();
        let defaults = ["own", "other"].map(Setting::none);
        let tuned = tune(&defaults, settings, &TIME, &mut script, &mut |_| {}).unwrap();
        assert_eq!(winners(&tuned), ["other"], "seed {seed}");
    }
}

#[test]
fn what_sleeps_takes_its_time_of_the_budget() {
    let mut script = script(&space(), 7);
    let short = Wanted {
        budget_s: 90.0,
        ..TIME
    };
    assert!(!winners(&script.run(&short).unwrap()).is_empty());
    for wall_s in [2, 4, 60] {
        script.wall_ns = wall_s * 1_000_000_000;
        script.rounds.clear();
        let refused = script.run(&short).unwrap_err().to_string();
        assert!(refused.starts_with("--budget: "), "{refused}");
        assert!(script.rounds.is_empty());
    }
}

#[test]
fn without_a_number_to_judge_by_there_is_no_race() {
    let of = |goal| Wanted { goal, ..TIME };
    let limited = |wanted: Wanted, goal| Wanted {
        at_most: Some(AtMost { goal, ratio: 1.02 }),
        ..wanted
    };
    let paced_in = |paced: &'static [Stage]| Script {
        paced,
        ..script(&space(), 7)
    };
    let mut paced = paced_in(&[Stage::Search, Stage::Confirm]);
    for wanted in [TIME, limited(of(Goal::Memory), Goal::Time)] {
        let error = paced.run(&wanted).unwrap_err().to_string();
        assert!(error.starts_with("its time is fixed"), "{error}");
    }
    assert_eq!(paced.rounds.len(), 2);
    assert!(paced.run(&of(Goal::Memory)).is_ok());
    // Another client confirms, and that one has a fixed time.
    let error = paced_in(&[Stage::Confirm]).run(&TIME).unwrap_err();
    assert!(error.to_string().starts_with("its time is fixed"));
    for wanted in [of(Goal::Idle), limited(TIME, Goal::Idle)] {
        let mut script = script(&space(), 7);
        let error = script.run(&wanted).unwrap_err().to_string();
        assert!(
            error.starts_with("no process told its memory at its end"),
            "{error}"
        );
        // What is resident at the end is in no count: nothing has left for its counts.
        assert!(script.rounds[0].1.contains(&"own+counted".to_owned()));
        assert_eq!(script.rounds.len(), 1);
    }
}

#[test]
fn what_is_not_looked_at_is_measured_before_the_race_is_planned() {
    let mut script = script(&space(), 7);
    script.counts = false;
    let tuned = script.run(&TIME).unwrap();
    assert_eq!(script.rounds[0], (Stage::Search, Vec::new()));
    assert_eq!(winners(&tuned), ["own+faster"]);
    // No count shows that a setting does nothing.
    assert_eq!(fate(&tuned, "counted"), &Fate::Left);
}
