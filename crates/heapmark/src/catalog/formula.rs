//! Two small notations of workload files: `threads = "producers + producers * consumers"` and `series = "1ms"`.

use std::time::Duration;

/// A sum of products of parameters and whole numbers.
pub fn evaluate(formula: &str, value: impl Fn(&str) -> Option<u64>) -> Result<u64, String> {
    let factor = |word: &str| {
        let word = word.trim();
        let known = word.parse().ok().or_else(|| value(word));
        known.ok_or_else(|| format!("`{formula}`: `{word}` is no number and no parameter with a number"))
    };
    formula.split('+').try_fold(0u64, |sum, term| {
        let product = term.split('*').try_fold(1u64, |product, word| {
            product.checked_mul(factor(word)?).ok_or_else(|| format!("`{formula}` is too large"))
        })?;
        sum.checked_add(product).ok_or_else(|| format!("`{formula}` is too large"))
    })
}

/// The time from one point of a series to the next: `1ms`, `500us`, `2s`.
pub fn interval(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_us = match &text[digits.len()..] {
        "us" => 1,
        "ms" => 1000,
        "s" => 1_000_000,
        _ => 0,
    };
    let us = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_us));
    // Below a tenth of a millisecond nothing but looking would be left.
    us.filter(|us| (100..=3_600_000_000).contains(us))
        .map(Duration::from_micros)
        .ok_or_else(|| format!("`{text}` is no interval: give one from 100us to 3600s, for instance 1ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str) -> Option<u64> {
        [("k", 4), ("m", 5)].into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    #[test]
    fn sums_of_products_are_worked_out() {
        assert_eq!(evaluate("k + k*m", value), Ok(24));
        assert_eq!(evaluate("2 * k", value), Ok(8));
        assert_eq!(evaluate("m", value), Ok(5));
        assert!(evaluate("k + n", value).unwrap_err().contains("`n` is no number"));
        assert!(evaluate("", value).is_err());
        assert!(evaluate("18446744073709551615 * k", value).unwrap_err().contains("too large"));
    }

    #[test]
    fn intervals_have_a_unit_and_a_sensible_length() {
        assert_eq!(interval("1ms"), Ok(Duration::from_millis(1)));
        assert_eq!(interval("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(interval("2s"), Ok(Duration::from_secs(2)));
        for bad in ["1", "ms", "1 ms", "10us", "2h", "", "-1ms"] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }
}
