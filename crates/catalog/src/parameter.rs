//! A parameter of a workload: its meaning and its allowed values.

use serde::Deserialize;

/// A parameter and its allowed values.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Parameter {
    /// What the parameter means.
    pub about: String,
    /// The form of the parameter's values, which implies the unit.
    pub kind: Kind,
    /// The allowed words if `kind` is `choice`.
    #[serde(default)]
    pub choices: Vec<String>,
}

/// Forms of parameters' values.
#[derive(Clone, Copy, Deserialize)]
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
    /// A number above 0 and at most 1.
    Fraction,
    /// `true` or `false`.
    Flag,
    /// One of the words in `choices`.
    Choice,
    /// An absolute path; empty for none.
    Path,
}

impl Kind {
    /// Returns the unit shown in lists.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Bytes => "bytes",
            Kind::Seconds => "s",
            _ => "",
        }
    }
}

impl Parameter {
    /// Checks whether `value` is allowed; if not, the error describes what would be.
    pub fn accepts(&self, value: &str) -> Result<(), String> {
        let whole = value.parse::<u64>();
        let real = value.parse::<f64>();
        // The whole path must fit into a line.
        let is_path = value.starts_with('/') && !value.contains('\n');
        let (good, expected) = match self.kind {
            Kind::Bytes | Kind::Number => (whole.is_ok(), "a whole number, 0 or more"),
            Kind::Count => (whole.is_ok_and(|n| n > 0), "a whole number, 1 or more"),
            Kind::Seconds => (
                real.is_ok_and(|s| (0.0..1e6).contains(&s)),
                "a number of seconds, 0 or more",
            ),
            Kind::Fraction => (
                real.is_ok_and(|f| f > 0.0 && f <= 1.0),
                "a number above 0, at most 1",
            ),
            Kind::Flag => (value.parse::<bool>().is_ok(), "true or false"),
            Kind::Path => (value.is_empty() || is_path, "an absolute path, or nothing"),
            Kind::Choice => {
                // `*.csv` is any file with that extension.
                let is = |choice: &String| match choice.strip_prefix('*') {
                    Some(ending) => is_path && value.ends_with(ending),
                    None => choice == value,
                };
                return self
                    .choices
                    .iter()
                    .any(is)
                    .then_some(())
                    .ok_or_else(|| self.choices.join(" or "));
            }
        };
        good.then_some(()).ok_or_else(|| expected.into())
    }
}
