//! Units chosen for the readers of a screen. Files have fixed units and must not use this.

use crate::analyse::Ratio;
use crate::metric::Unit;

/// A unit and its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintedUnit {
    /// The name as it is printed.
    pub name: &'static str,
    /// The size in the base unit.
    pub size: f64,
}

/// Names as they are printed, with their sizes in the base unit.
type Units = [(&'static str, f64); 4];

const TIMES: Units = [
    ("ns/op", 1.0),
    ("us/op", 1e3),
    ("ms/op", 1e6),
    ("s/op", 1e9),
];

const RATES: Units = [
    ("ops/s", 1e-6),
    ("kops/s", 1e-3),
    ("Mops/s", 1.0),
    ("Gops/s", 1e3),
];

const BYTES: Units = [
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1024.0 * 1024.0),
    ("GiB", 1024.0 * 1024.0 * 1024.0),
];

impl PrintedUnit {
    /// The digits of a value in this unit; the value itself is in the base unit.
    pub fn digits(self, value: f64) -> String {
        digits(value / self.size)
    }

    /// The value with the unit: `14.0 MiB`.
    pub fn text(self, value: f64) -> String {
        format!("{} {}", self.digits(value), self.name)
    }
}

/// A value as a cell of a table.
pub fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Bytes => bytes(value),
        Unit::Share => percent(value),
        Unit::Times => times(value),
        // Many clocks count whole nanoseconds.
        Unit::Ns if value < 1e3 && value.fract() == 0.0 => format!("{value:.0} ns"),
        Unit::Ns => duration(value),
        Unit::Count if value.fract() == 0.0 => format!("{value:.0}"),
        _ => digits(value),
    }
}

/// The unit for a column of times in nanoseconds per operation.
pub fn time(smallest: f64) -> PrintedUnit {
    fitting(TIMES, smallest)
}

/// The unit for a column of rates in millions of operations per second.
pub fn rate(smallest: f64) -> PrintedUnit {
    fitting(RATES, smallest)
}

/// `14.0 ms`, from a time in nanoseconds.
pub fn duration(ns: f64) -> String {
    time(ns).text(ns).replace("/op", "")
}

/// A size as text: `14.0 MiB`.
pub fn bytes(bytes: f64) -> String {
    size(bytes).text(bytes)
}

/// The unit for an axis of sizes in bytes.
pub fn size(bytes: f64) -> PrintedUnit {
    fitting(BYTES, bytes)
}

/// The largest unit of which the value is at least one.
fn fitting(units: Units, value: f64) -> PrintedUnit {
    let (name, size) = units
        .into_iter()
        .rfind(|(_, size)| value.abs() >= *size)
        .unwrap_or(units[0]);
    PrintedUnit { name, size }
}

/// A number with its digits in groups: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    super::text::join(groups.map(String::from_utf8_lossy), ",")
}

/// Three significant digits; all digits before the point.
pub fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        ..0.001 => return format!("{value:.1e}"),
        ..0.009995 => 5,
        ..0.09995 => 4,
        ..0.9995 => 3,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A ratio in a table: `0.704`, `1.250`, `12.3`.
pub fn ratio(ratio: f64) -> String {
    if (0.01..9.9995).contains(&ratio) {
        format!("{ratio:.3}")
    } else {
        digits(ratio)
    }
}

/// Two decimals: `0.98`; fewer for large ratios.
pub fn short(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 9.995 => format!("{ratio:.2}"),
        ratio if ratio < 99.5 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}

/// A ratio with its interval: `0.704 [0.690, 0.719]`.
pub fn interval(of: &Ratio) -> String {
    let estimate = ratio(of.ratio);
    match of.interval {
        Some(ends) => format!("{estimate} {}", bounds(ends)),
        None => format!("{estimate} [n = {}]", of.pairs),
    }
}

/// The bounds of an interval: `[0.690, 0.719]`.
pub fn bounds(ends: (f64, f64)) -> String {
    bounds_in(ends, ratio)
}

/// The bounds in two decimals.
pub fn short_bounds(ends: (f64, f64)) -> String {
    bounds_in(ends, short)
}

fn bounds_in((low, high): (f64, f64), digits: fn(f64) -> String) -> String {
    format!("[{}, {}]", digits(low), digits(high))
}

/// A ratio in a phrase, with these digits: `0.36 of glibc's time [0.34, 0.37]`, `1.26 times glibc's CPU time [1.20, 1.30]`.
pub fn over(of: &Ratio, what: &str, digits: fn(f64) -> String) -> String {
    let joint = if of.ratio < 1.0 { "of" } else { "times" };
    let interval = of
        .interval
        .map(|ends| format!(" {}", bounds_in(ends, digits)));
    format!(
        "{} {joint} {what}{}",
        digits(of.ratio),
        interval.unwrap_or_default()
    )
}

/// A ratio in a sentence or as a factor: `1.42x`.
pub fn times(ratio: f64) -> String {
    format!("{}x", digits(ratio))
}

/// A share of 0 to 1: `12 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit_the_smallest_value() {
        assert_eq!(
            (time(0.4).name, time(12.0).name, time(1200.0).name),
            ("ns/op", "ns/op", "us/op")
        );
        assert_eq!((rate(200.0).name, rate(0.2).name), ("Mops/s", "kops/s"));
        assert_eq!(
            (bytes(512.0), bytes(14.0 * 1024.0 * 1024.0)),
            ("512 B".into(), "14.0 MiB".into())
        );
    }

    #[test]
    fn three_digits() {
        let shown = [
            0.0, 0.00042, 0.0042, 0.01234, 0.1234, 0.9996, 1.234, 9.996, 12.34, 1234.5,
        ]
        .map(digits);
        assert_eq!(
            shown,
            [
                "0", "4.2e-4", "0.00420", "0.0123", "0.123", "1.00", "1.23", "10.0", "12.3", "1234"
            ]
        );
        assert_eq!(
            (ratio(0.70419), ratio(12.34), times(1.4159)),
            ("0.704".into(), "12.3".into(), "1.42x".into())
        );
        assert_eq!(
            (percent(0.0123), percent(0.5)),
            ("1.2 %".into(), "50 %".into())
        );
    }
}
