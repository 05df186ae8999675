//! Summaries of the values of many processes, or of many trials within one process.

use crate::definition::Gather;
use std::collections::BTreeMap;

/// The fixed seed of resampling, so that the same samples always have the same interval.
const SEED: u64 = 1;

/// The rate in a line `TIMES TRIALS NAME` of a process that made many trials.
pub fn rate(line: &str) -> Option<String> {
    let mut words = line.splitn(3, ' ');
    let mut number = || words.next()?.parse::<u32>().ok();
    let (times, trials) = (number()?, number()?);
    let name = words.next()?;
    let (low, high) = heapmark_stats::wilson(times, trials)?;
    let share = f64::from(times) / f64::from(trials);
    // A rare share is given by its first two digits.
    let percent = |share: f64| match share * 100.0 {
        rare if (1e-9..1.0).contains(&rare) => {
            let digits = format!("{rare:.1e}").parse::<f64>();
            digits.unwrap_or(rare).to_string()
        }
        percent => format!("{percent:.1}"),
    };
    let [share, low, high] = [share, low, high].map(percent);
    Some(format!("{name}={share} % [{low} to {high}] of {trials}"))
}

/// Summarizes the samples of many processes.
pub fn gathered(gather: Gather, samples: &[&str]) -> Vec<String> {
    if samples.is_empty() {
        return Vec::new();
    }
    match gather {
        Gather::Distinct => vec![different(&times(samples), samples.len())],
        Gather::Bits => {
            let numbers: Vec<u64> = samples
                .iter()
                .filter_map(|sample| sample.parse().ok())
                .collect();
            let first = numbers.first().copied().unwrap_or(0);
            let varying = numbers
                .iter()
                .fold(0, |bits, number| bits | (number ^ first));
            let lowest = match varying {
                0 => "none".into(),
                bits => bits.trailing_zeros().to_string(),
            };
            vec![
                format!("varying bits={}", varying.count_ones()),
                format!("lowest varying bit={lowest}"),
            ]
        }
        Gather::Entropy => entropy(samples),
    }
}

/// How often each value occurs.
fn times<'a>(samples: &[&'a str]) -> BTreeMap<&'a str, u32> {
    let mut times = BTreeMap::new();
    for sample in samples {
        *times.entry(*sample).or_default() += 1;
    }
    times
}

fn different(times: &BTreeMap<&str, u32>, processes: usize) -> String {
    format!("different={} values of {processes} processes", times.len())
}

/// How often the best guess is right, and how many bits the samples hold. A sample in words comes
/// from a process in which nothing could be guessed: such samples are counted, and if they are more
/// than half, the others are too few for a number.
fn entropy(samples: &[&str]) -> Vec<String> {
    let is_number = |sample: &&&str| sample.parse::<i64>().is_ok();
    let numbers: Vec<&str> = samples.iter().filter(is_number).copied().collect();
    let words: Vec<&str> = samples
        .iter()
        .filter(|sample| !is_number(sample))
        .copied()
        .collect();
    let all = samples.len();
    let mut lines: Vec<String> = times(&words)
        .iter()
        .map(|(words, processes)| format!("{words} in {processes} of {all} processes"))
        .collect();
    if numbers.len() * 2 < all {
        return lines;
    }
    let times = times(&numbers);
    let counts: Vec<u32> = times.values().copied().collect();
    let Some(shannon) = heapmark_stats::shannon(&counts, SEED) else {
        return lines;
    };
    // This number of processes cannot show more bits.
    let is_bound = shannon.bits > 0.95 * (numbers.len() as f64).log2();
    lines.push(different(&times, numbers.len()));
    lines.push(match is_bound {
        true => format!("Shannon bits=>= {:.1}", shannon.bits),
        false => format!(
            "Shannon bits={:.1} [{:.1} to {:.1}]",
            shannon.bits, shannon.interval.low, shannon.interval.high
        ),
    });
    lines.extend(best_guess(&numbers, is_bound));
    lines
}

/// How often a guess is right: the most frequent value of the first half of the samples is tried on
/// the second half. In the half from which it is chosen, its share would be too large.
fn best_guess(numbers: &[&str], is_bound: bool) -> Vec<String> {
    let (first, second) = numbers.split_at(numbers.len() / 2);
    let times = times(first);
    let Some((guess, _)) = times.iter().max_by_key(|(_, times)| **times) else {
        return Vec::new();
    };
    let hits = second.iter().filter(|sample| *sample == guess).count() as u32;
    let all = second.len() as u32;
    let (low, high) = heapmark_stats::wilson(hits, all).unwrap_or((0.0, 1.0));
    let share = f64::from(hits) / f64::from(all);
    let bits = match is_bound || hits == 0 {
        true => format!(">= {:.1}", (1.0 / high).log2()),
        false => format!("{:.1}", (1.0 / share).log2()),
    };
    vec![
        format!(
            "best guess={:.1} % [{:.1} to {:.1}]",
            share * 100.0,
            low * 100.0,
            high * 100.0
        ),
        format!("min-entropy bits={bits}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_trials_have_their_interval() {
        let shown = |line: &str| rate(line).unwrap();
        assert_eq!(shown("0 200 ended"), "ended=0.0 % [0.0 to 1.9] of 200");
        assert_eq!(shown("100 200 ended"), "ended=50.0 % [43.1 to 56.9] of 200");
        let rare = shown("12 90000 reads that end it");
        assert_eq!(rare, "reads that end it=0.013 % [0.0076 to 0.023] of 90000");
        assert_eq!(rate("0 0 of none"), None);
    }

    #[test]
    fn samples_of_many_processes_are_gathered() {
        let same = ["7"; 8];
        assert_eq!(
            gathered(Gather::Distinct, &same),
            ["different=1 values of 8 processes"]
        );
        assert!(gathered(Gather::Entropy, &same).contains(&"min-entropy bits=0.0".into()));
        let bits = gathered(Gather::Bits, &["16", "48", "16"]);
        assert_eq!(bits, ["varying bits=1", "lowest varying bit=5"]);
        let all: Vec<String> = (0..64).map(|number| number.to_string()).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert!(gathered(Gather::Entropy, &all).contains(&"Shannon bits=>= 6.0".into()));
        let two = gathered(Gather::Entropy, &["1", "1", "1", "2"]);
        assert!(two[1].starts_with("Shannon bits=1.0 ["), "{two:?}");
        assert!(gathered(Gather::Bits, &[]).is_empty());
    }

    #[test]
    fn the_best_guess_of_one_half_is_tried_on_the_other() {
        // Among many values, the most frequent one is so by chance.
        let values = (0_u32..200).map(|number| number.saturating_sub(2).to_string());
        let values: Vec<String> = values.collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let lines = gathered(Gather::Entropy, &values);
        assert_eq!(lines[2], "best guess=0.0 % [0.0 to 3.7]");
        assert_eq!(lines[3], "min-entropy bits=>= 4.8");
        let lines = gathered(Gather::Entropy, &["1", "1", "2", "1", "2", "1", "2", "3"]);
        assert!(lines[2].starts_with("best guess=25.0 % ["), "{lines:?}");
        assert_eq!(lines[3], "min-entropy bits=2.0");
    }

    #[test]
    fn processes_in_which_nothing_could_be_guessed_are_counted_apart() {
        let never = "not reused within 9 allocations";
        let all = [never; 4];
        let line = format!("{never} in 4 of 4 processes");
        assert_eq!(gathered(Gather::Entropy, &all), [line]);
        let most = gathered(Gather::Entropy, &[never, never, never, "0"]);
        assert_eq!(most, [format!("{never} in 3 of 4 processes")]);
        let few = gathered(Gather::Entropy, &[never, "0", "0", "0"]);
        assert_eq!(few[0], format!("{never} in 1 of 4 processes"));
        assert_eq!(few[1], "different=1 values of 3 processes");
        assert_eq!(few[2], "Shannon bits=0.0 [0.0 to 0.0]");
    }
}
