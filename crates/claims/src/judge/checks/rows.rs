//! Checks that compare rows at one place.

use super::super::judged::{Number, Said, Verdict};
use super::super::order::{Order, lies, order, quotient};
use super::CheckedPlaces;

impl CheckedPlaces<'_> {
    /// Checks that each of `who` has the wanted order relative to each of `than`. With `is_apart`,
    /// the verdict is unclear unless the range of the row in `who` lies wholly above the other
    /// row's.
    pub fn against(
        &mut self,
        who: &[String],
        than: &[String],
        except: &[String],
        wanted: Order,
        is_apart: bool,
    ) {
        let others: Vec<String> = who.iter().chain(except).cloned().collect();
        for spot in self.spots() {
            let rivals = if than.is_empty() {
                self.everyone(&others, &spot)
            } else {
                self.chosen(than, &[], &spot)
            };
            let named = who.iter().filter_map(|row| self.named(row, &spot));
            for ours in named.collect::<Vec<_>>() {
                for (_, theirs) in &rivals {
                    let verdict = match lies(&ours, wanted, theirs) {
                        Verdict::Holds if is_apart && ours.min <= theirs.max => Verdict::Unclear,
                        verdict => verdict,
                    };
                    self.found(verdict, &spot, sentence(&ours, theirs));
                }
            }
        }
    }

    /// Judges each of `who` by how many times as bad as the best row it is.
    pub fn beside_best(
        &mut self,
        who: &[String],
        except: &[String],
        verdict: impl Fn(&Number) -> Verdict,
    ) {
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
            let numbers = all.into_iter().map(|(_, number)| number);
            let best = numbers.reduce(|best, number| {
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
                let row = &best.row;
                self.lack(format!("no other row than {row} was measured on {spot}"));
                continue;
            }
            for (_, number) in chosen {
                // How many times worse than the best row, whether less or more is better.
                let away = if more {
                    quotient(&best, &number)
                } else {
                    quotient(&number, &best)
                };
                let verdict = verdict(&away);
                let words = if number == best {
                    said![number, "is the best itself"]
                } else {
                    said![number, "is", times(away), "times the best,", best.clone()]
                };
                self.found(verdict, &spot, words);
            }
        }
    }
}

fn sentence(ours: &Number, theirs: &Number) -> Vec<Said> {
    let words = match order(ours, theirs) {
        Order::Below => "is below",
        Order::Above => "is above",
        Order::Level => "cannot be told from",
    };
    said![ours.clone(), words, theirs.clone()]
}

/// A quotient without its rows' names, for a sentence that already names them.
pub fn times(mut quotient: Number) -> Said {
    quotient.row.clear();
    quotient.into()
}
