//! What the programs of `binary-trees` must print (BT), and how many nodes they allocate.

use super::Expected;
use std::collections::BTreeMap;
use std::fmt::Write;

const LEAST_DEPTH: u32 = 4;
/// The largest depth whose sizes are still exact, far beyond what any machine holds.
const DEEPEST: u64 = 40;

/// The parameter of the smallest run, whose time is the start of the runtime.
pub const SMALLEST: u64 = LEAST_DEPTH as u64 + 2;
/// A small parameter, with enough nodes that start-up does not matter to a count.
pub const SMALL: u64 = 12;

/// Returns the number of nodes of a complete tree.
fn nodes(depth: u32) -> u64 {
    (1 << (depth + 1)) - 1
}

/// Returns the output for parameter `n`, with `longlived-extra` more levels in the long-lived tree.
pub fn expected(parameters: &BTreeMap<String, String>) -> Result<Expected, String> {
    let number = |name: &str| match parameters.get(name).map(|value| value.parse::<u64>()) {
        Some(Ok(number)) if number <= DEEPEST => Ok(Some(number as u32)),
        Some(_) => Err(format!("`{name}` must be a whole number up to {DEEPEST}")),
        None => Ok(None),
    };
    let n = number("n")?.ok_or("there is no parameter `n`")?;
    let extra = number("longlived-extra")?.unwrap_or(0);
    let deepest = n.max(LEAST_DEPTH + 2);
    let mut text = format!(
        "stretch tree of depth {}\t check: {}\n",
        deepest + 1,
        nodes(deepest + 1)
    );
    let mut operations = nodes(deepest + 1) + nodes(deepest + extra);
    for depth in (LEAST_DEPTH..=deepest).step_by(2) {
        let trees = 1 << (deepest - depth + LEAST_DEPTH);
        let _ = writeln!(
            text,
            "{trees}\t trees of depth {depth}\t check: {}",
            trees * nodes(depth)
        );
        operations += trees * nodes(depth);
    }
    let _ = writeln!(
        text,
        "long lived tree of depth {deepest}\t check: {}",
        nodes(deepest + extra)
    );
    Ok(Expected { text, operations })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(n: &str, extra: &str) -> Expected {
        let pair = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
        expected(&[("n", n), ("longlived-extra", extra)].map(pair).into()).unwrap()
    }

    /// The expected numbers were computed by hand.
    #[test]
    fn the_nodes_are_those_counted_by_hand() {
        let (twenty, twenty_one) = (of("20", "0"), of("21", "0"));
        assert_eq!(
            (twenty.operations, twenty_one.operations),
            (306_883_246, 613_766_494)
        );
        for line in [
            "stretch tree of depth 21\t check: 4194303\n",
            "1048576\t trees of depth 4\t check: 32505856\n",
            "16\t trees of depth 20\t check: 33554416\n",
            "long lived tree of depth 20\t check: 2097151\n",
        ] {
            assert!(twenty.text.contains(line), "{line}");
        }
        assert!(
            twenty_one
                .text
                .contains("32\t trees of depth 20\t check: 67108832\n")
        );
    }

    #[test]
    fn a_small_n_counts_as_the_smallest_and_an_extra_level_doubles_the_long_lived_tree() {
        assert_eq!(of("1", "0").text, of("6", "0").text);
        assert!(
            of("16", "1")
                .text
                .ends_with("long lived tree of depth 16\t check: 262143\n")
        );
        assert_eq!(of("16", "1").operations - of("16", "0").operations, 131_072);
        assert!(expected(&BTreeMap::new()).is_err());
    }
}
