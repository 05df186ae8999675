//! A claim and its result.

use crate::document::Measure;
use heapmark_core::analyse::Spread;
use heapmark_core::report::text::list;
use serde::Serialize;

/// The verdict on a claim. In the order in which parts of a claim decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every part of it holds.
    Holds,
    /// Too close to call, or too few samples.
    Unclear,
    /// Something that it needs is missing, or what was measured cannot show it.
    NotTestable,
    /// Some part of it does not hold.
    DoesNotHold,
}

impl Verdict {
    /// The word for tables.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::Unclear => "unclear",
            Verdict::NotTestable => "not testable here",
        }
    }
}

/// A claim and its result.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedClaim {
    /// `BT-1`.
    pub id: String,
    /// Short name of its document.
    pub document: String,
    /// The claim.
    pub says: String,
    /// The document's evidence for it.
    pub evidence: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The comparisons that the verdict rests on. Never empty.
    pub parts: Vec<JudgedPart>,
    /// Rows that "all" leaves out, since they are missing.
    pub missing: Vec<String>,
    /// Further notes for the reader.
    pub notes: Vec<String>,
    /// Parameters that differ from the document's.
    pub sizes: Vec<String>,
    /// Thread counts of its comparisons.
    pub threads: Vec<u32>,
    /// The most threads of the document for it.
    pub document_threads: u32,
    /// The machine that decided, if several were measured.
    pub machine: Option<String>,
    /// Measures of its rows that show why it does not hold; only if it does not.
    pub measured: Vec<Number>,
    /// Whether it is a comparison that others published, and no claim of a reference document.
    pub is_comparison: bool,
    /// Why it may not hold, which is a supposition; set only if it does not.
    pub explain: Option<String>,
    /// What was found with allocators set as the document's versions were; set only if the claim
    /// does not hold as it is, or is unclear, and such rows were measured.
    pub as_then: Option<AsThen>,
}

impl JudgedClaim {
    /// `does not hold at 1 and 2 threads (document: 10)`.
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
            // Not known of single comparisons.
            0 => String::new(),
            theirs if theirs == *most => String::new(),
            theirs => format!(" (document: {theirs})"),
        };
        format!("{word} at {counts} {noun}{of_document}")
    }
}

/// A claim checked with allocators set as those of the document were.
#[derive(Clone, Debug, Serialize)]
pub struct AsThen {
    /// The allocators that are compared.
    pub rows: Vec<String>,
    /// The verdict with them.
    pub verdict: Verdict,
}

/// One comparison of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedPart {
    /// The verdict of this part alone.
    pub verdict: Verdict,
    /// `churn@2`; empty if nothing was compared.
    pub place: String,
    /// A sentence with its numbers.
    pub said: Vec<Said>,
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// Text.
    Words(String),
    /// A measured number.
    Number(Number),
}

/// The median and range of one value per process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Number {
    /// The row as the run names it, or two with ` / ` between.
    pub row: String,
    /// The measure; `None` for a quotient.
    pub measure: Option<Measure>,
    /// Median over processes.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Processes.
    pub samples: usize,
    /// One per process; of a quotient, those of the dividend. Empty for a number about several rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// Of a quotient whose rows share no blocks: those of the divisor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub divisor: Option<Vec<f64>>,
    /// The block of each value, if it has one.
    #[serde(skip)]
    pub blocks: Option<ValueBlocks>,
}

/// The blocks of some values of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueBlocks {
    /// The seed of the run: blocks of two runs have nothing in common.
    pub run: u64,
    /// One per value.
    pub of: Vec<u32>,
}

impl Number {
    /// `None` without values.
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

    /// A value without a row and without a range.
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

/// The processes of the number that has the fewest; 0 without numbers.
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
