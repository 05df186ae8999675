//! Checks that compare values, or quotients of values, with bounds.

use super::super::evidence::{Lack, Spot};
use super::super::judged::{Number, Said, Verdict};
use super::super::order::{LEAST_SAMPLES, between, quotient};
use super::CheckedPlaces;
use super::rows::times;
use crate::catalog::claim::{Over, Take};
use heapmark_stats::median;

impl CheckedPlaces<'_> {
    /// A value, or its quotient, lies between two bounds.
    pub(super) fn between(
        &mut self,
        who: &[String],
        except: &[String],
        [low, high]: [f64; 2],
        over: Option<&Over>,
        take: Take,
    ) {
        let mut all: Vec<(String, Number, Vec<Said>)> = Vec::new();
        for spot in self.spots() {
            for (row, number) in self.chosen(who, except, &spot) {
                let Some(over) = over else {
                    all.push((spot.to_string(), number.clone(), vec![number.into()]));
                    continue;
                };
                match self.divided(&row, &number, &spot, over) {
                    Ok((value, said)) => all.push((spot.to_string(), value, said)),
                    Err(lack) if who.is_empty() && !matches!(lack, Lack::Other(_)) => {
                        self.missing.insert(row);
                    }
                    Err(lack) => self.lack(&lack),
                }
            }
        }
        all.sort_by(|(_, a, _), (_, b, _)| a.median.total_cmp(&b.median));
        let taken = match take {
            Take::Each => all,
            Take::Largest => all.pop().into_iter().collect(),
            Take::Middle if all.is_empty() => all,
            Take::Middle => vec![all.swap_remove((all.len() - 1) / 2)],
        };
        for (place, value, said) in taken {
            self.found(between(&value, low, high), &place, said);
        }
    }

    /// The value over the check's divisor, and a sentence about it.
    fn divided(
        &self,
        row: &str,
        number: &Number,
        spot: &Spot,
        over: &Over,
    ) -> Result<(Number, Vec<Said>), Lack> {
        let place = self
            .workloads
            .iter()
            .position(|workload| *workload == spot.workload)
            .unwrap_or(0);
        let workload = over
            .workloads
            .as_ref()
            .and_then(|workloads| workloads.get(place));
        let threads = over.threads.unwrap_or(spot.threads);
        let other = Spot {
            workload: workload.unwrap_or(&spot.workload).clone(),
            threads,
            ..spot.clone()
        };
        self.comparable(spot, &other, over)?;
        let theirs = self.number(over.who.as_deref().unwrap_or(row), &other)?;
        let mut value = quotient(number, &theirs);
        let row = if theirs.row == number.row {
            String::new()
        } else {
            theirs.row.clone()
        };
        let mut said = vec![
            number.clone().into(),
            "over".into(),
            Number { row, ..theirs }.into(),
        ];
        if other.workload != spot.workload || threads != spot.threads {
            said.push(format!("on {other}").as_str().into());
        }
        said.extend(["is".into(), times(&value)]);
        if over.per_thread {
            let linear = f64::from(spot.threads) / f64::from(threads);
            let shares = [value.median, value.min, value.max].map(|value| value / linear);
            [value.median, value.min, value.max] = shares;
            said.push(format!("for {linear} times the threads").as_str().into());
        }
        Ok((value, said))
    }

    /// A place divided by itself, or by one with another size than the claim means, shows nothing.
    fn comparable(&self, spot: &Spot, other: &Spot, over: &Over) -> Result<(), Lack> {
        if over.threads.is_some_and(|threads| threads == spot.threads) {
            return Err(Lack::Other(format!(
                "{spot} is all that fits the cores: there is nothing to compare it with"
            )));
        }
        let Some(name) = &over.one_more else {
            return Ok(());
        };
        let value = |spot: &Spot| {
            self.evidence
                .case(spot)?
                .parameters
                .get(name)?
                .parse::<i64>()
                .ok()
        };
        match (value(spot), value(other)) {
            (Some(ours), Some(theirs)) if ours == theirs + 1 => Ok(()),
            (Some(ours), Some(theirs)) => Err(Lack::Other(format!(
                "{name} is {ours} on {spot} and {theirs} on {other}: it must be larger by one on the first"
            ))),
            _ => Err(Lack::Workload(other.workload.clone())),
        }
    }

    /// No workload is far above the median workload.
    pub(super) fn flat(&mut self, who: &[String], except: &[String], factor: f64) {
        let spots = self.spots();
        let Some(first) = spots.first() else { return };
        for (row, _) in self.chosen(who, except, first) {
            let numbers: Vec<(&Spot, Number)> = spots
                .iter()
                .filter_map(|spot| Some((spot, self.named(&row, spot)?)))
                .collect();
            let Some((_, middle)) = middle(&numbers).filter(|_| numbers.len() > 2) else {
                self.lack(&Lack::Other(format!(
                    "{row} has values for fewer than three workloads"
                )));
                continue;
            };
            let highest = numbers
                .iter()
                .max_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
            if let Some((spot, highest)) = highest {
                let away = quotient(highest, &middle);
                let said = vec![
                    highest.clone().into(),
                    "is".into(),
                    times(&away),
                    "times the middle one,".into(),
                    middle.into(),
                ];
                self.found(between(&away, 0.0, factor), &spot.to_string(), said);
            }
        }
    }

    /// Rows are closer together than in another workload.
    pub(super) fn levels(&mut self, than: &[String]) {
        for spot in self.spots() {
            let place = self
                .workloads
                .iter()
                .position(|workload| *workload == spot.workload)
                .unwrap_or(0);
            let Some(other) = than.get(place).map(|workload| Spot {
                workload: workload.clone(),
                ..spot.clone()
            }) else {
                continue;
            };
            let (here, there) = (self.everyone(&[], &spot), self.everyone(&[], &other));
            let both = |(row, number): &(String, Number)| {
                let theirs = there.iter().find(|(other, _)| other == row)?;
                Some((number.clone(), theirs.1.clone()))
            };
            let (here, there): (Vec<Number>, Vec<Number>) = here.iter().filter_map(both).unzip();
            let (Some(near), Some(wide)) = (apart(&here), apart(&there)) else {
                self.lack(&Lack::Other(format!(
                    "fewer than two rows have values on {spot} and {other}"
                )));
                continue;
            };
            let samples = here
                .iter()
                .chain(&there)
                .map(|number| number.samples)
                .min()
                .unwrap_or(0);
            let verdict = match near / wide {
                _ if samples < LEAST_SAMPLES => Verdict::Unclear,
                share if share < 0.9 => Verdict::Holds,
                share if share > 1.1 => Verdict::DoesNotHold,
                _ => Verdict::Unclear,
            };
            let plain = |median| {
                Said::Number(Number {
                    row: String::new(),
                    measure: None,
                    median,
                    min: median,
                    max: median,
                    samples,
                })
            };
            let said = vec![
                "from the fastest row to the slowest it is a factor of".into(),
                plain(near),
                format!(", on {other}").as_str().into(),
                plain(wide),
            ];
            self.found(verdict, &spot.to_string(), said);
        }
    }
}

/// The value with the middle median.
fn middle<'s>(numbers: &[(&'s Spot, Number)]) -> Option<(&'s Spot, Number)> {
    let medians: Vec<f64> = numbers.iter().map(|(_, number)| number.median).collect();
    let middle = median(&medians)?;
    let distance = |number: &Number| (number.median - middle).abs();
    numbers
        .iter()
        .min_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)))
        .cloned()
}

/// The highest median over the lowest.
fn apart(numbers: &[Number]) -> Option<f64> {
    let medians = || numbers.iter().map(|number| number.median);
    let (low, high) = (
        medians().min_by(f64::total_cmp)?,
        medians().max_by(f64::total_cmp)?,
    );
    (numbers.len() > 1 && low > 0.0).then_some(high / low)
}
