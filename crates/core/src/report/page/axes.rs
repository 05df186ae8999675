//! Scales with marks at round numbers, in readable units. A scale is logarithmic if values differ by more than a factor of three: then
//! equal distances are equal ratios.

use crate::report::units;
use serde::Serialize;
use serde_json::{Value, json};

/// A scale is logarithmic if the largest value is more than this many times the smallest.
const LOG_FROM: f64 = 3.0;

/// An axis for ratios: always logarithmic, so that half and twice are equally far from 1.
pub fn ratios(title: &str, values: &[f64]) -> Value {
    let values: Vec<f64> = values.iter().copied().chain([1.0]).collect();
    marked(title, &values, 1.0, true, units::digits)
}

/// An axis for values of zero or more.
pub fn values(title: &str, values: &[f64], word: impl Fn(f64) -> String) -> Value {
    marked(title, values, 1.0, spans_much(values), word)
}

/// An axis for sizes in bytes, whose marks are round numbers in a binary unit.
pub fn sizes(title: &str, bytes: &[f64]) -> Value {
    let unit = units::size(ends(bytes).0).size;
    marked(title, bytes, unit, spans_much(bytes), units::bytes)
}

/// Whether a logarithmic scale, which has no place for a zero, shows the values best.
fn spans_much(values: &[f64]) -> bool {
    let (low, high) = ends(values);
    high / low > LOG_FROM && !has_zero(values)
}

fn has_zero(values: &[f64]) -> bool {
    values.contains(&0.0)
}

/// An axis for values above zero, logarithmic even if they hardly differ.
pub fn logarithmic(title: &str, values: &[f64], word: impl Fn(f64) -> String) -> Value {
    marked(title, values, 1.0, true, word)
}

/// An axis for a few counts that are far apart: each has a mark.
pub fn counts(title: &str, counts: &[u32]) -> Value {
    let words = counts.iter().map(u32::to_string).collect();
    with_marks(of_type(titled(title), "log"), counts, words)
}

/// An axis for shares, from none to all. Markers at the ends are not cut.
pub fn shares(title: &str) -> Value {
    let marks = [0.0, 0.25, 0.5, 0.75, 1.0];
    let words = marks.map(|mark| format!("{:.0} %", 100.0 * mark)).into();
    with_marks(within(titled(title), [-0.03, 1.03]), &marks, words)
}

/// An axis for names.
pub fn names() -> Value {
    of_type(titled(""), "category")
}

/// Returns an axis for names in this order, regardless of the names in the first line.
pub fn ordered(names: Vec<String>) -> Value {
    let mut axis = self::names();
    axis["categoryorder"] = json!("array");
    axis["categoryarray"] = json!(names);
    axis
}

/// A titled axis without marks of its own.
pub fn titled(title: &str) -> Value {
    let mut axis = json!({ "automargin": true });
    if !title.is_empty() {
        axis["title"] = json!({ "text": title });
    }
    axis
}

/// An axis from zero on, without marks of its own.
pub fn from_zero(title: &str) -> Value {
    let mut axis = titled(title);
    axis["rangemode"] = json!("tozero");
    axis
}

/// Limits an axis to a range, which for a logarithmic axis is given in powers of ten.
pub fn within(mut axis: Value, range: [f64; 2]) -> Value {
    axis["range"] = json!(range);
    axis
}

/// The axis with these marks and no others.
pub fn with_marks<T: Serialize>(mut axis: Value, marks: &[T], words: Vec<String>) -> Value {
    axis["tickvals"] = json!(marks);
    axis["ticktext"] = json!(words);
    axis
}

fn of_type(mut axis: Value, kind: &str) -> Value {
    axis["type"] = json!(kind);
    axis
}

/// Round numbers around these ratios, in words.
pub fn round_marks(low: f64, high: f64) -> Vec<(f64, String)> {
    marks(low, high)
        .into_iter()
        .map(|mark| (mark, round(&units::digits(mark))))
        .collect()
}

/// The axis with marks that are round numbers in this unit.
fn marked(
    title: &str,
    values: &[f64],
    unit: f64,
    log: bool,
    word: impl Fn(f64) -> String,
) -> Value {
    let (low, high) = ends(values);
    let from_zero = !log && has_zero(values);
    // The marks are linear, however small the smallest value above zero is.
    let low = if from_zero {
        high / LOG_FROM * 1.01
    } else {
        low
    };
    let zero = from_zero.then_some(0.0).into_iter();
    let above = marks(low / unit, high / unit).into_iter();
    let marks: Vec<f64> = zero.chain(above.map(|mark| mark * unit)).collect();
    let words = marks.iter().map(|mark| round(&word(*mark))).collect();
    let kind = if log { "log" } else { "linear" };
    with_marks(of_type(titled(title), kind), &marks, words)
}

/// `10 ns` from `10.0 ns`: a mark needs no trailing zeros.
fn round(word: &str) -> String {
    let (number, unit) = word
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .map_or((word, ""), |at| word.split_at(at));
    if number.contains('.') {
        let number = number.trim_end_matches('0').trim_end_matches('.');
        format!("{number}{unit}")
    } else {
        word.to_owned()
    }
}

fn ends(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .copied()
        .filter(|value| *value > 0.0 && value.is_finite())
        .fold((f64::INFINITY, 0.0), |(low, high), value| {
            (value.min(low), value.max(high))
        })
}

/// Round numbers from a little below `low` to a little above `high`: four to eight of them.
fn marks(low: f64, high: f64) -> Vec<f64> {
    if !(low.is_finite() && low > 0.0 && high >= low) {
        return Vec::new();
    }
    let decades: f64 = (high / low).log10();
    if decades < LOG_FROM.log10() {
        let step = round_step((high - low).max(low / 10.0) / 4.0);
        let first = (low / step).floor() - 1.0;
        return (0..10)
            .map(|n| (first + f64::from(n)) * step)
            .filter(|mark| *mark > step / 2.0 && *mark <= high + step)
            .collect();
    }
    let digits: &[f64] = match decades {
        few if few < 1.0 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
        some if some < 2.2 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let every = (decades / 7.0).ceil().max(1.0) as i32;
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    (first..=last)
        .filter(|power| power.rem_euclid(every) == 0)
        .flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)))
        .filter(|mark| *mark >= low / 2.0 && *mark <= high * 2.0)
        .collect()
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .find(|digit| digit * power >= step * 0.999)
        .unwrap_or(10.0)
        * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_few_and_around_the_values() {
        for (low, high) in [
            (0.97, 1.04),
            (19.6, 290.0),
            (0.25, 3.8),
            (1.0, 1.0),
            (25.0, 5.2e6),
            (3.0, 8.0),
            (1e-3, 1e9),
        ] {
            let marks = marks(low, high);
            assert!((3..=10).contains(&marks.len()), "{low} {high}: {marks:?}");
            let inside = marks
                .iter()
                .filter(|mark| (low..=high).contains(*mark))
                .count();
            assert!(inside >= 1 || low == high, "{low} {high}: {marks:?}");
        }
        assert_eq!(marks(0.25, 3.8), [0.2, 0.5, 1.0, 2.0, 5.0]);
        assert!(marks(f64::INFINITY, 0.0).is_empty());
        // A zero has a place and a mark.
        for all in [&[0.0, 1e-5, 1e-3][..], &[0.0, 2.0], &[0.0]] {
            let axis = values("", all, units::digits);
            assert_eq!(
                (&axis["type"], &axis["tickvals"][0]),
                (&"linear".into(), &0.0.into())
            );
            let count = axis["tickvals"].as_array().unwrap().len();
            assert!(count >= 3 || all.len() == 1, "{axis}");
        }
        let axis = values("", &[1e-5, 1e-3], units::digits);
        assert_eq!(axis["type"], "log");
        assert_eq!(
            ["10.0 ns", "0.500", "1.20x", "100 MiB"].map(round),
            ["10 ns", "0.5", "1.2x", "100 MiB"]
        );
    }
}
