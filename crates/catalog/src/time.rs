//! The notation of times on the command line and in workload files: `90s`, `1.5h`, `500us`,
//! `1h 30min`.

use std::time::Duration;

/// Parses the time in a text. A bare number is in units of `bare_s` seconds; returns `None` if the
/// text is no time.
pub fn time(text: &str, bare_s: f64) -> Option<Duration> {
    match text.trim().parse::<f64>() {
        Ok(number) => Duration::try_from_secs_f64(number * bare_s).ok(),
        Err(_) => text
            .trim()
            .parse::<jiff::SignedDuration>()
            .ok()?
            .try_into()
            .ok(),
    }
}

/// Parses a time within bounds; the error is a message about the expected form.
pub fn between(
    text: &str,
    bare: (&str, f64),
    least: Duration,
    most: Duration,
) -> Result<Duration, String> {
    let (unit, bare_s) = bare;
    time(text, bare_s).filter(|time| (least..=most).contains(time)).ok_or_else(|| {
        format!("expected a time from {least:?} to {most:?}, as 500ms, 90s, 5min, 2h; a bare number means {unit}")
    })
}

/// The default unit of a bare number: its name, and its length in seconds.
pub const SECONDS: (&str, f64) = ("seconds", 1.0);

/// Parses the time from one point of a series to the next. Below a tenth of a millisecond, sampling
/// would take all the time.
pub fn interval(text: &str) -> Result<Duration, String> {
    between(
        text,
        SECONDS,
        Duration::from_micros(100),
        Duration::from_secs(3600),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_or_the_one_of_its_flag() {
        for (text, seconds) in [
            ("90s", 90.0),
            ("5min", 300.0),
            ("2h", 7200.0),
            ("1ms", 0.001),
            ("500us", 0.0005),
            ("1.5h", 5400.0),
            ("1h 30min", 5400.0),
            (" 2 min ", 120.0),
            ("7", 7.0),
            ("0.25", 0.25),
        ] {
            assert_eq!(
                time(text, 1.0),
                Some(Duration::from_secs_f64(seconds)),
                "{text}"
            );
        }
        assert_eq!(time("5", 60.0), Some(Duration::from_secs(300)));
        for bad in [
            "", "ms", "-1", "-1ms", "nan", "inf", "1e300", "5 apples", "min 5",
        ] {
            assert_eq!(time(bad, 1.0), None, "{bad}");
        }
    }

    #[test]
    fn intervals_have_a_sensible_length() {
        assert_eq!(interval("1ms"), Ok(Duration::from_millis(1)));
        assert_eq!(interval("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(interval("2s"), Ok(Duration::from_secs(2)));
        for bad in ["ms", "10us", "2h", "", "-1ms"] {
            assert!(
                interval(bad).unwrap_err().contains("from 100µs to 3600s"),
                "{bad}"
            );
        }
    }
}
