//! A row's value of a metric, and how two such values are compared by their ranges.

use super::ratio::Ratio;
use super::spread::Spread;
use super::verdict::Verdict;
use crate::metric::{Judged, Metric};
use heapmark_wire::limit_search::STEP;
use serde::{Serialize, Serializer};

/// A row's value of a metric.
#[derive(Clone, Debug, Serialize)]
pub struct TableCell {
    /// The metric, which is serialized as its key.
    #[serde(serialize_with = "key")]
    pub metric: &'static Metric,
    /// The function that the value is about, if the row has several.
    pub label: String,
    /// The spread of the values of the row's processes.
    pub spread: Spread,
    /// The number of values behind the spread.
    pub n: u64,
    /// The single values behind the spread; only of a metric that is judged by ranges.
    #[serde(skip)]
    pub values: Vec<f64>,
    /// The ratio to the baseline's values in the same blocks.
    pub ratio: Option<Ratio>,
    /// The verdict on the ratio, if rows are judged by the metric.
    pub verdict: Option<Verdict>,
}

fn key<S: Serializer>(metric: &&'static Metric, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(metric.key)
}

impl TableCell {
    /// The cell of some values, not yet compared. `None` if there are no values, or one of them is not finite.
    pub fn new(metric: &'static Metric, values: &[f64]) -> Option<TableCell> {
        Some(TableCell {
            metric,
            label: String::new(),
            spread: Spread::of(values)?,
            n: values.len() as u64,
            values: match metric.judged {
                Judged::ByRange => values.to_vec(),
                _ => Vec::new(),
            },
            ratio: None,
            verdict: None,
        })
    }
}

/// The least difference that matters, as a share.
pub const THRESHOLD: f64 = 0.01;

/// Fewer processes than this show no range, unless the value is exact.
const LEAST: u64 = 3;

/// The verdict on values that hardly vary: their ranges are compared, without a test. They are
/// different only if they lie further apart than either is wide. In simulations with normal,
/// uniform and heavy-tailed scatter, this rule calls up to 1.4 % of equals different with 3
/// processes on each side, and 0.02 % with 5 (3.2 % and 0.3 % if values fall into two modes at
/// random); with 2 processes, it would be 13 %.
pub fn by_range(ours: &TableCell, theirs: &TableCell, threshold: f64, exact: bool) -> Verdict {
    let unclear = Verdict::Unclear { blocks_more: None };
    let processes = ours.n.min(theirs.n);
    if !exact && processes < LEAST {
        return Verdict::TooFew {
            blocks_more: Some((LEAST - processes) as u32),
        };
    }
    let logs = |spread: &Spread| {
        (
            spread.min.max(f64::MIN_POSITIVE).ln(),
            spread.max.max(f64::MIN_POSITIVE).ln(),
        )
    };
    let (least, most) = logs(&ours.spread);
    let (other_least, other_most) = logs(&theirs.spread);
    let width = (most - least).max(other_most - other_least);
    let gap = (least - other_most).max(other_least - most);
    let small = threshold.max(resolution(ours.metric)).ln_1p();
    if most.max(other_most) - least.min(other_least) <= small {
        return Verdict::Same;
    }
    if gap <= 0.0 || gap < width {
        return unclear;
    }
    match (gap > small, least > other_most) {
        (false, _) => Verdict::Small,
        (true, true) => Verdict::Slower,
        (true, false) => Verdict::Faster,
    }
}

/// Returns the resolution of a metric, as a share: a search ends between two limits that differ by
/// a step, or a little more, as both are whole pages.
fn resolution(metric: &Metric) -> f64 {
    match metric.key {
        "smallest_limit_bytes" => (STEP - 1.0) * 1.25,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric;

    fn cell(min: f64, max: f64, n: u64) -> TableCell {
        let metric = metric::named("instructions");
        let spread = Spread {
            median: (min + max) / 2.0,
            min,
            max,
        };
        TableCell {
            metric,
            label: String::new(),
            spread,
            n,
            values: Vec::new(),
            ratio: None,
            verdict: None,
        }
    }

    #[test]
    fn ranges_that_lie_further_apart_than_they_are_wide_are_different() {
        let word =
            |min, max| by_range(&cell(min, max, 5), &cell(100.0, 101.0, 5), 0.01, false).word();
        assert_eq!(word(103.0, 104.0), "slower");
        assert_eq!(word(90.0, 91.0), "faster");
        assert_eq!(word(100.5, 100.9), "same");
        assert_eq!(word(99.0, 110.0), "unclear");
        assert_eq!(
            word(103.0, 110.0),
            "unclear",
            "as wide as that they may lie anywhere"
        );
        let close = by_range(&cell(100.6, 100.7, 5), &cell(100.0, 100.1, 5), 0.005, false);
        assert_eq!(close.word(), "small");
    }

    #[test]
    fn too_few_processes_show_no_range_unless_the_value_is_exact() {
        let word =
            |n, exact| by_range(&cell(120.0, 120.0, n), &cell(100.0, 100.0, n), 0.01, exact).word();
        assert_eq!(
            (word(2, false), word(3, false)),
            ("too few blocks", "slower")
        );
        assert_eq!(word(1, true), "slower");
    }
}
