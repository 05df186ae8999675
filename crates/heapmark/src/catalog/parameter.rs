//! A parameter of a workload: its meaning and its allowed values.

use serde::Deserialize;

/// A parameter and its allowed values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Parameter {
    /// Its meaning.
    pub about: String,
    /// The form of its values; the unit follows from it.
    pub kind: Kind,
    /// The allowed words if `kind` is `choice`.
    #[serde(default)]
    pub choices: Vec<String>,
}

/// Forms of parameter values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A size in bytes, below 2^32 except for volumes.
    Bytes,
    /// A count, at least 1.
    Count,
    /// Any non-negative integer.
    Number,
    /// A duration in seconds, fractions allowed.
    Seconds,
    /// Above 0, at most 1.
    Fraction,
    /// `true` or `false`.
    Flag,
    /// One of some words.
    Choice,
    /// An absolute path; empty for none.
    Path,
}

impl Kind {
    /// The unit shown in lists.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Bytes => "bytes",
            Kind::Seconds => "s",
            Kind::Count
            | Kind::Number
            | Kind::Fraction
            | Kind::Flag
            | Kind::Choice
            | Kind::Path => "",
        }
    }
}

impl Parameter {
    /// Whether `value` is allowed; if not, what would be.
    pub fn accepts(&self, value: &str) -> Result<(), String> {
        let (good, expected) = match self.kind {
            Kind::Bytes | Kind::Number => (
                value.parse::<u64>().is_ok(),
                "a whole number, 0 or more".into(),
            ),
            Kind::Count => (
                value.parse::<u64>().is_ok_and(|n| n > 0),
                "a whole number, 1 or more".into(),
            ),
            Kind::Seconds => (
                value.parse::<f64>().is_ok_and(|s| (0.0..1e6).contains(&s)),
                "a number of seconds, 0 or more".into(),
            ),
            Kind::Fraction => (
                value.parse::<f64>().is_ok_and(|f| f > 0.0 && f <= 1.0),
                "a number above 0, at most 1".into(),
            ),
            Kind::Flag => (value.parse::<bool>().is_ok(), "true or false".into()),
            Kind::Path => {
                let good = value.is_empty() || value.starts_with('/') && !value.contains('\n');
                (good, "an absolute path, or nothing".into())
            }
            Kind::Choice => {
                // `*.csv` is any file with that extension, if the whole path fits into a line.
                let is = |choice: &String| match choice.strip_prefix('*') {
                    Some(ending) => {
                        value.starts_with('/') && value.ends_with(ending) && !value.contains('\n')
                    }
                    None => choice == value,
                };
                (self.choices.iter().any(is), self.choices.join(" or "))
            }
        };
        if good { Ok(()) } else { Err(expected) }
    }
}
