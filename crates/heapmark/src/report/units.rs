//! Units chosen for the readers of a screen. Files have fixed units and must not use this.

/// A unit and its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintedUnit {
    /// As it is printed.
    pub name: &'static str,
    /// In the base unit.
    pub size: f64,
}

const TIMES: [PrintedUnit; 4] = [
    PrintedUnit {
        name: "ns/op",
        size: 1.0,
    },
    PrintedUnit {
        name: "us/op",
        size: 1e3,
    },
    PrintedUnit {
        name: "ms/op",
        size: 1e6,
    },
    PrintedUnit {
        name: "s/op",
        size: 1e9,
    },
];

const RATES: [PrintedUnit; 4] = [
    PrintedUnit {
        name: "ops/s",
        size: 1e-6,
    },
    PrintedUnit {
        name: "kops/s",
        size: 1e-3,
    },
    PrintedUnit {
        name: "Mops/s",
        size: 1.0,
    },
    PrintedUnit {
        name: "Gops/s",
        size: 1e3,
    },
];

const BYTES: [PrintedUnit; 4] = [
    PrintedUnit {
        name: "B",
        size: 1.0,
    },
    PrintedUnit {
        name: "KiB",
        size: 1024.0,
    },
    PrintedUnit {
        name: "MiB",
        size: 1024.0 * 1024.0,
    },
    PrintedUnit {
        name: "GiB",
        size: 1024.0 * 1024.0 * 1024.0,
    },
];

/// For a column of times in nanoseconds per operation.
pub fn time(smallest: f64) -> PrintedUnit {
    fitting(&TIMES, smallest)
}

/// For a column of rates in millions of operations per second.
pub fn rate(smallest: f64) -> PrintedUnit {
    fitting(&RATES, smallest)
}

/// `14.0 ms`, from a time in nanoseconds.
pub fn duration(ns: f64) -> String {
    let unit = fitting(&TIMES, ns);
    format!(
        "{} {}",
        digits(ns / unit.size),
        unit.name.trim_end_matches("/op")
    )
}

/// `14.0 MiB`.
pub fn bytes(bytes: f64) -> String {
    let unit = size(bytes);
    format!("{} {}", digits(bytes / unit.size), unit.name)
}

/// For an axis of sizes in bytes.
pub fn size(bytes: f64) -> PrintedUnit {
    fitting(&BYTES, bytes)
}

/// The largest unit of which the value is at least one.
fn fitting(units: &[PrintedUnit; 4], value: f64) -> PrintedUnit {
    units
        .iter()
        .rev()
        .copied()
        .find(|unit| value >= unit.size)
        .unwrap_or(units[0])
}

/// Three significant digits; all digits before the point.
pub fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        size if size < 0.001 => return format!("{value:.1e}"),
        size if size < 0.009995 => 5,
        size if size < 0.09995 => 4,
        size if size < 0.9995 => 3,
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
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
