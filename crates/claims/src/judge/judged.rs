//! A claim and its verdict.

use crate::document::Measure;
use heapmark_core::analyse::Spread;
use heapmark_core::report::text::list;
use serde::Serialize;

/// The verdict on a claim. The highest verdict among the parts decides, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every part of the claim holds.
    Holds,
    /// Too close to call, or too few samples.
    Unclear,
    /// Something that the claim needs is missing, or what was measured cannot show it.
    NotTestable,
    /// Some part of the claim does not hold.
    DoesNotHold,
}

impl Verdict {
    /// The verdict's word for tables.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::Unclear => "unclear",
            Verdict::NotTestable => "not testable here",
        }
    }
}

/// A claim and its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedClaim {
    /// The claim's number: `BT-1`.
    pub id: String,
    /// The short name of the claim's document.
    pub document: String,
    /// The claim, in our words.
    pub says: String,
    /// The document's evidence for the claim.
    pub evidence: String,
    /// The verdict on the claim.
    pub verdict: Verdict,
    /// The comparisons that the verdict rests on. Never empty.
    pub parts: Vec<JudgedPart>,
    /// Rows that "all" leaves out, since no run has them.
    pub missing: Vec<String>,
    /// Further notes for the reader.
    pub notes: Vec<String>,
    /// Parameters whose values differ from the document's.
    pub sizes: Vec<String>,
    /// The thread counts of the claim's comparisons.
    pub threads: Vec<u32>,
    /// The most threads in the document for this claim.
    pub document_threads: u32,
    /// The machine whose runs decided, if several were measured.
    pub machine: Option<String>,
    /// Measures of the claim's rows that show why it does not hold; only if it does not.
    pub measured: Vec<Number>,
    /// Whether the claim is a comparison that others published, and not a claim of a reference
    /// document.
    pub is_comparison: bool,
    /// Why the claim may not hold, which is a supposition; set only if it does not.
    pub explain: Option<String>,
    /// What a measurement has shown of why the claim does not hold; set only if it does not.
    pub explained: Option<String>,
    /// What was found with allocators configured like the document's versions; set only if the
    /// claim does not hold as it is, or is unclear, and such rows were measured.
    pub as_then: Option<AsThen>,
}

impl JudgedClaim {
    /// The verdict in words, as in `does not hold at 1 and 2 threads (document: 10)`.
    pub fn verdict_words(&self) -> String {
        let word = self.verdict.word();
        let Some(most) = self.threads.iter().max() else {
            return word.into();
        };
        if self.verdict == Verdict::NotTestable {
            return word.into();
        }
        let noun = if *most == 1 { "thread" } else { "threads" };
        let counts = list(&self.threads);
        let of_document = match self.document_threads {
            // For single comparisons, the thread count is not known.
            0 => String::new(),
            theirs if theirs == *most => String::new(),
            theirs => format!(" (document: {theirs})"),
        };
        format!("{word} at {counts} {noun}{of_document}")
    }
}

/// A claim checked with allocators configured like those of the document.
#[derive(Clone, Debug, Serialize)]
pub struct AsThen {
    /// The allocators that are compared.
    pub rows: Vec<String>,
    /// The verdict with these allocators.
    pub verdict: Verdict,
}

/// One comparison of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedPart {
    /// The verdict on this comparison alone.
    pub verdict: Verdict,
    /// The place, as in `churn@2`; empty if nothing was compared.
    pub place: String,
    /// A sentence about the comparison, with its numbers.
    pub said: Vec<Said>,
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// Some words.
    Words(String),
    /// A measured number.
    Number(Number),
}

/// The median and the range of one value per process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Number {
    /// The row as the run names it, or two rows with ` / ` between them.
    pub row: String,
    /// The measure; `None` for a quotient.
    pub measure: Option<Measure>,
    /// The median over processes.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The number of processes.
    pub samples: usize,
    /// One value per process; for a quotient, one ratio per shared block or, without any, the
    /// dividend's values. Empty for a number about several rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// For a quotient whose rows share no blocks: the divisor's values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub divisor: Option<Vec<f64>>,
    /// The blocks of the values, if each value belongs to one.
    #[serde(skip)]
    pub blocks: Option<ValueBlocks>,
}

/// The blocks that some values of one run belong to.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueBlocks {
    /// The seed of the run: blocks of two runs have nothing in common.
    pub run: u64,
    /// The number of each value's block.
    pub of: Vec<u32>,
}

impl Number {
    /// Makes a number from a row's values; `None` without values.
    pub fn of(row: String, measure: Option<Measure>, values: Vec<f64>) -> Option<Number> {
        let Spread { median, min, max } = Spread::of(&values)?;
        Some(Number {
            row,
            measure,
            median,
            min,
            max,
            samples: values.len(),
            values,
            divisor: None,
            blocks: None,
        })
    }

    /// A number without a row and without a range.
    pub fn bare(value: f64, samples: usize) -> Number {
        Number {
            row: String::new(),
            measure: None,
            median: value,
            min: value,
            max: value,
            samples,
            values: Vec::new(),
            divisor: None,
            blocks: None,
        }
    }
}

/// The number of processes of the value that has the fewest; 0 without values.
pub fn fewest_samples<'a>(numbers: impl IntoIterator<Item = &'a Number>) -> usize {
    numbers
        .into_iter()
        .map(|number| number.samples)
        .min()
        .unwrap_or(0)
}

impl From<&str> for Said {
    fn from(words: &str) -> Said {
        Said::Words(words.into())
    }
}

impl From<String> for Said {
    fn from(words: String) -> Said {
        Said::Words(words)
    }
}

impl From<Number> for Said {
    fn from(number: Number) -> Said {
        Said::Number(number)
    }
}
