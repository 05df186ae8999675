//! All faults in the data, reported together: file, key, fault and remedy. Reads nothing itself.

use super::joined;
use std::fmt;

/// A fault in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The file as the user knows it: `allocators/mimalloc3.toml` or a path in the user's folder.
    pub file: String,
    /// The key, dotted from the top; empty if the fault is in the file as a whole.
    pub key: String,
    /// What is wrong with the file or the key.
    pub what: String,
    /// How to mend the fault.
    pub mend: String,
}

impl Fault {
    /// Creates a fault in a key of a file, with its remedy.
    pub fn new(
        file: impl Into<String>,
        key: impl Into<String>,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) -> Fault {
        Fault {
            file: file.into(),
            key: key.into(),
            what: what.into(),
            mend: mend.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let colon = if self.key.is_empty() { "" } else { ": " };
        write!(
            f,
            "{}: {}{colon}{}; {}",
            self.file, self.key, self.what, self.mend
        )
    }
}

/// All faults in a folder, in the order of its files.
#[derive(Debug)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&joined(&self.0, "\n"))
    }
}

impl std::error::Error for Faults {}

/// Fails if there are any faults.
pub fn none(faults: Vec<Fault>) -> Result<(), Faults> {
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Faults(faults))
    }
}

/// Reads one TOML document; serde's error becomes a fault that names the key and, for a misspelt
/// key, the one that was probably meant.
pub fn parse<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, Fault> {
    toml::from_str(text).map_err(|error| {
        let message = error.message().trim().replace('\n', " ");
        let mut quoted = message.split('`').skip(1).step_by(2);
        let (key, what, mend) =
            if message.starts_with("unknown field") || message.starts_with("unknown variant") {
                let wrong = quoted.next().unwrap_or_default();
                let known: Vec<&str> = quoted.collect();
                let all = format!("use one of {}", known.join(", "));
                (wrong, "unknown", suggestion(wrong, known.into_iter(), all))
            } else if message.starts_with("missing field") {
                let key = quoted.next().unwrap_or_default();
                (key, "missing", format!("add `{key} = …`"))
            } else {
                let mend = "see README.md in that folder for what may stand there";
                ("", message.as_str(), mend.into())
            };
        let what = match error.span() {
            Some(span) => {
                let above = text[..span.start.min(text.len())].matches('\n').count();
                format!("{what} (line {})", above + 1)
            }
            None => message.clone(),
        };
        Fault::new(file, key, what, mend)
    })
}

/// Reads one TOML document as [`parse`] does, but adds a fault to `faults`.
pub fn read<T: serde::de::DeserializeOwned>(
    file: &str,
    text: &str,
    faults: &mut Vec<Fault>,
) -> Option<T> {
    parse(file, text).map_err(|fault| faults.push(fault)).ok()
}

/// Returns the remedy for a wrong name: the name that was probably meant, or else the text
/// `otherwise`.
pub fn suggestion<'a>(
    wrong: &str,
    known: impl Iterator<Item = &'a str>,
    otherwise: impl Into<String>,
) -> String {
    nearest(wrong, known).map_or_else(
        || otherwise.into(),
        |near| format!("did you mean `{near}`?"),
    )
}

/// Returns the name among `known` that is closest to `wrong`.
pub fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 4))
        .min()
        .map(|(_, name)| name)
}

/// Returns ` (did you mean `x`?)` for messages on the command line; empty if no name is near.
pub fn did_you_mean<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(wrong, known)
        .map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Entry {
        #[allow(dead_code)]
        about: String,
    }

    #[test]
    fn a_misspelt_key_names_its_neighbour() {
        let fault = parse::<Entry>("x.toml", "abuot = \"a\"\n").unwrap_err();
        assert_eq!(
            fault.to_string(),
            "x.toml: abuot: unknown (line 1); did you mean `about`?"
        );
    }

    #[test]
    fn a_missing_key_is_named() {
        let fault = parse::<Entry>("x.toml", "").unwrap_err();
        assert_eq!(
            (fault.key.as_str(), fault.mend.as_str()),
            ("about", "add `about = …`")
        );
    }

    #[test]
    fn a_key_at_the_start_of_a_line_is_on_that_line() {
        let fault = parse::<Entry>("x.toml", "\n\nabuot = \"a\"\n").unwrap_err();
        assert!(fault.what.contains("line 3"), "{fault}");
    }

    #[test]
    fn broken_toml_says_the_line() {
        let fault = parse::<Entry>("x.toml", "about = \"a\"\nb = = 1\n").unwrap_err();
        assert!(fault.what.contains("line 2"), "{fault}");
    }

    #[test]
    fn far_names_are_not_suggested() {
        assert_eq!(
            nearest("jemaloc", ["jemalloc", "hoard"].into_iter()),
            Some("jemalloc")
        );
        assert_eq!(nearest("xyz", ["jemalloc", "hoard"].into_iter()), None);
    }
}
