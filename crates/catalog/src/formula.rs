//! The formulas of workload files: `threads = "producers + producers * consumers"`.

/// Evaluates a formula, which is a sum of products of parameters and whole numbers.
pub fn evaluate(formula: &str, value: impl Fn(&str) -> Option<u64>) -> Result<u64, String> {
    let factor = |word: &str| {
        let word = word.trim();
        word.parse().ok().or_else(|| value(word)).ok_or_else(|| {
            format!("`{formula}`: `{word}` is no number and no parameter with a number")
        })
    };
    formula.split('+').try_fold(0u64, |sum, term| {
        let product = term.split('*').try_fold(1u64, |product, word| {
            product
                .checked_mul(factor(word)?)
                .ok_or_else(|| format!("`{formula}` is too large"))
        })?;
        sum.checked_add(product)
            .ok_or_else(|| format!("`{formula}` is too large"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str) -> Option<u64> {
        [("k", 4), ("m", 5)]
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    #[test]
    fn sums_of_products_are_worked_out() {
        assert_eq!(evaluate("k + k*m", value), Ok(24));
        assert_eq!(evaluate("2 * k", value), Ok(8));
        assert_eq!(evaluate("m", value), Ok(5));
        assert!(
            evaluate("k + n", value)
                .unwrap_err()
                .contains("`n` is no number")
        );
        assert!(evaluate("", value).is_err());
        assert!(
            evaluate("18446744073709551615 * k", value)
                .unwrap_err()
                .contains("too large")
        );
    }
}
