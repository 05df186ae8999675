//! Checks that compare values, or quotients of values, with bounds.

use super::super::evidence::{Lack, Spot};
use super::super::judged::{Number, Said, fewest_samples};
use super::super::order::{between, quotient, verdict};
use super::CheckedPlaces;
use super::rows::times;
use crate::document::{Over, Take};
use heapmark_stats::median;

impl CheckedPlaces<'_> {
    /// Checks that a value, or its quotient, lies between two bounds.
    pub fn between(
        &mut self,
        who: &[String],
        except: &[String],
        [low, high]: [f64; 2],
        over: Option<&Over>,
        take: Take,
    ) {
        let mut all = Vec::new();
        for spot in self.spots() {
            for (row, number) in self.chosen(who, except, &spot) {
                let found = match over {
                    Some(over) => self.divided(&row, number, &spot, over),
                    None => Ok((number.clone(), said![number])),
                };
                match found {
                    Ok((value, sentence)) => all.push((spot.clone(), value, sentence)),
                    Err(lack) if who.is_empty() && !matches!(lack, Lack::Other(_)) => {
                        self.findings.missing.insert(row);
                    }
                    Err(lack) => self.lack(lack),
                }
            }
        }
        // If values are missing, the largest or the middle of the others may not be that of all.
        if !matches!(take, Take::Each) && !self.parts.is_empty() {
            return;
        }
        all.sort_by(|(_, a, _), (_, b, _)| a.median.total_cmp(&b.median));
        let taken = match take {
            Take::Each => all,
            Take::Largest => all.pop().into_iter().collect(),
            Take::Middle if all.is_empty() => all,
            Take::Middle => vec![all.swap_remove((all.len() - 1) / 2)],
        };
        for (spot, value, sentence) in taken {
            self.found(between(&value, low, high), spot, sentence);
        }
    }

    /// The value over the check's divisor, and a sentence about the quotient.
    fn divided(
        &self,
        row: &str,
        number: Number,
        spot: &Spot,
        over: &Over,
    ) -> Result<(Number, Vec<Said>), Lack> {
        let others = over.workloads.as_ref();
        let workload = others.and_then(|others| self.paired(spot, others));
        let threads = over.threads.unwrap_or(spot.threads);
        let other = Spot {
            threads,
            ..spot.on(workload.unwrap_or(&spot.workload))
        };
        self.comparable(spot, &other, over)?;
        let divisor = over.who.as_deref().unwrap_or(row);
        let mut theirs = self.number(divisor, &other).map_err(|lack| match lack {
            // The divisor's place is missing, not this row.
            Lack::Missing(words) if self.evidence.case(&other).is_none() => Lack::Other(words),
            lack => lack,
        })?;
        if theirs.min <= 0.0 {
            return Err(Lack::Other(format!(
                "{} has a value of {} on {other}: a quotient of it shows nothing",
                theirs.row, theirs.min
            )));
        }
        let mut value = quotient(&number, &theirs);
        if theirs.row == number.row {
            theirs.row.clear();
        }
        let mut sentence = said![number, "over", theirs];
        if other != *spot {
            sentence.push(format!("on {other}").into());
        }
        sentence.extend(["is".into(), times(value.clone())]);
        if over.per_thread {
            let linear = f64::from(spot.threads) / f64::from(threads);
            for value in [&mut value.median, &mut value.min, &mut value.max] {
                *value /= linear;
            }
            value.values.iter_mut().for_each(|value| *value /= linear);
            sentence.push(format!("for {linear} times the threads").into());
        }
        Ok((value, sentence))
    }

    /// Fails if a place is divided by itself, or by a place with another size than the claim means:
    /// the quotient would show nothing.
    fn comparable(&self, spot: &Spot, other: &Spot, over: &Over) -> Result<(), Lack> {
        if over.threads == Some(spot.threads) {
            return Err(Lack::Other(format!(
                "{spot} is all that fits the cores: there is nothing to compare it with"
            )));
        }
        if spot.workload == other.workload {
            self.of_one_size([spot, other])?;
        }
        let Some(name) = &over.one_more else {
            return Ok(());
        };
        let value = |spot: &Spot| -> Option<i64> {
            self.evidence.case(spot)?.parameters.get(name)?.parse().ok()
        };
        match value(spot).zip(value(other)) {
            Some((ours, theirs)) if ours == theirs + 1 => Ok(()),
            Some((ours, theirs)) => Err(Lack::Other(format!(
                "{name} is {ours} on {spot} and {theirs} on {other}: it must be larger by one on the first"
            ))),
            None => Err(Lack::Missing(format!("{} is in no run", other.workload))),
        }
    }

    /// Checks that no workload is far above the median workload.
    pub fn flat(&mut self, who: &[String], except: &[String], factor: f64) {
        let spots = self.spots();
        // If one workload is missing, another one may be in the middle.
        let Some(first) = spots.first().filter(|_| self.parts.is_empty()) else {
            return;
        };
        for (row, _) in self.chosen(who, except, first) {
            let numbers: Vec<(&Spot, Number)> = spots
                .iter()
                .filter_map(|spot| Some((spot, self.named(&row, spot)?)))
                .collect();
            if numbers.len() < spots.len() {
                continue;
            }
            let highest = numbers
                .iter()
                .max_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
            let both = highest.zip(middle(&numbers));
            let Some(((spot, highest), middle)) = both.filter(|_| numbers.len() > 2) else {
                self.lack(format!("{row} has values for fewer than three workloads"));
                continue;
            };
            let away = quotient(highest, middle);
            let verdict = between(&away, 0.0, factor);
            let sentence = said![
                highest.clone(),
                "is",
                times(away),
                "times the middle one,",
                middle.clone()
            ];
            self.found(verdict, spot, sentence);
        }
    }

    /// Checks that rows are closer together than in another workload.
    pub fn levels(&mut self, than: &[String]) {
        for spot in self.spots() {
            let Some(other) = self.paired(&spot, than) else {
                continue;
            };
            let other = spot.on(other);
            let here = self.everyone(&[], &spot);
            let there = self.everyone(&[], &other);
            let (here, there): (Vec<Number>, Vec<Number>) = here
                .into_iter()
                .filter_map(|(row, ours)| {
                    let (_, theirs) = there.iter().find(|(other, _)| *other == row)?;
                    Some((ours, theirs.clone()))
                })
                .unzip();
            let Some((near, wide)) = apart(&here).zip(apart(&there)) else {
                self.lack(format!(
                    "fewer than two rows have values on {spot} and {other}"
                ));
                continue;
            };
            let samples = fewest_samples(here.iter().chain(&there));
            let share = near / wide;
            let verdict = verdict(samples, share < 0.9, share > 1.1);
            let sentence = said![
                "from the fastest row to the slowest it is a factor of",
                Number::bare(near, samples),
                format!(", on {other}"),
                Number::bare(wide, samples)
            ];
            self.found(verdict, spot, sentence);
        }
    }
}

/// The value with the middle median.
fn middle<'s>(numbers: &'s [(&Spot, Number)]) -> Option<&'s Number> {
    let numbers = || numbers.iter().map(|(_, number)| number);
    let medians: Vec<f64> = numbers().map(|number| number.median).collect();
    let middle = median(&medians)?;
    let distance = |number: &Number| (number.median - middle).abs();
    numbers().min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// The highest median over the lowest.
fn apart(numbers: &[Number]) -> Option<f64> {
    let medians = || numbers.iter().map(|number| number.median);
    let low = medians().min_by(f64::total_cmp)?;
    let high = medians().max_by(f64::total_cmp)?;
    (numbers.len() > 1 && low > 0.0).then_some(high / low)
}
