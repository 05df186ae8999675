//! Checks that compare rows at one place.

use super::super::judged::{Number, Said, Verdict};
use super::super::order::{Order, between, lies, order, quotient};
use super::CheckedPlaces;

impl CheckedPlaces<'_> {
    /// Each of `who` has less than each of `than`.
    pub(super) fn below(&mut self, who: &[String], than: &[String], except: &[String]) {
        self.against(who, than, except, Order::Below);
    }

    /// Each of `who` has more than each of `than`.
    pub(super) fn above(&mut self, who: &[String], than: &[String], except: &[String]) {
        self.against(who, than, except, Order::Above);
    }

    fn against(&mut self, who: &[String], than: &[String], except: &[String], wanted: Order) {
        let others: Vec<String> = who.iter().chain(except).cloned().collect();
        for spot in self.spots() {
            let rivals = if than.is_empty() {
                self.everyone(&others, &spot)
            } else {
                self.chosen(than, &[], &spot)
            };
            for ours in who
                .iter()
                .filter_map(|row| self.named(row, &spot))
                .collect::<Vec<_>>()
            {
                for (_, theirs) in &rivals {
                    let verdict = lies(&ours, wanted, theirs);
                    let said = sentence(&ours, order(&ours, theirs), theirs);
                    self.found(verdict, &spot.to_string(), said);
                }
            }
        }
    }

    /// The row has the highest median, and no other range touches its own.
    pub(super) fn worst(&mut self, who: &str) {
        for spot in self.spots() {
            let rivals = self.everyone(&[who.to_string()], &spot);
            let Some(ours) = self.named(who, &spot) else {
                continue;
            };
            for (_, theirs) in &rivals {
                let verdict = match lies(&ours, Order::Above, theirs) {
                    Verdict::Holds if ours.min <= theirs.max => Verdict::Unclear,
                    verdict => verdict,
                };
                self.found(
                    verdict,
                    &spot.to_string(),
                    sentence(&ours, order(&ours, theirs), theirs),
                );
            }
        }
    }

    /// Each of `who` is within `factor` of the best.
    pub(super) fn near(&mut self, who: &[String], except: &[String], factor: f64) {
        self.beside_best(who, except, 0.0, factor);
    }

    /// Each of `who` is beyond `factor` of the best.
    pub(super) fn far(&mut self, who: &[String], factor: f64) {
        self.beside_best(who, &[], factor, f64::INFINITY);
    }

    fn beside_best(&mut self, who: &[String], except: &[String], low: f64, high: f64) {
        for spot in self.spots() {
            let all = self.everyone(&[], &spot);
            let chosen: Vec<(String, Number)> = match who {
                [] => all
                    .iter()
                    .filter(|(row, _)| !except.contains(row))
                    .cloned()
                    .collect(),
                who => self.chosen(who, &[], &spot),
            };
            let more = self.measure.more_is_better();
            let best = all
                .into_iter()
                .map(|(_, number)| number)
                .reduce(|best, number| {
                    if (number.median < best.median) != more {
                        number
                    } else {
                        best
                    }
                });
            let Some(best) = best.filter(|_| !chosen.is_empty()) else {
                continue;
            };
            if chosen.iter().all(|(_, number)| *number == best) {
                let row = best.row.clone();
                self.lack(&super::Lack::Other(format!(
                    "no other row than {row} was measured on {spot}"
                )));
                continue;
            }
            for (_, number) in chosen {
                // How many times worse than the best, for either direction of better.
                let away = if more {
                    quotient(&best, &number)
                } else {
                    quotient(&number, &best)
                };
                let said = match number == best {
                    true => vec![number.clone().into(), "is the best itself".into()],
                    false => {
                        vec![
                            number.clone().into(),
                            "is".into(),
                            times(&away),
                            "times the best,".into(),
                            best.clone().into(),
                        ]
                    }
                };
                self.found(between(&away, low, high), &spot.to_string(), said);
            }
        }
    }
}

fn sentence(ours: &Number, order: Order, theirs: &Number) -> Vec<Said> {
    let words = match order {
        Order::Below => "is below",
        Order::Above => "is above",
        Order::Level => "cannot be told from",
    };
    vec![ours.clone().into(), words.into(), theirs.clone().into()]
}

/// A quotient whose rows are already named beside it.
pub(super) fn times(quotient: &Number) -> Said {
    Said::Number(Number {
        row: String::new(),
        ..quotient.clone()
    })
}
