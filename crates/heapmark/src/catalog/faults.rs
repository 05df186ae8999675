//! All faults in the data, reported together: file, key, fault and remedy. Reads nothing itself.

use std::fmt;

/// One thing wrong in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file as the user knows it: `allocators/mimalloc3.toml` or a path in the user's folder.
    pub file: String,
    /// The key, dotted from the top; empty if the fault is in the file as a whole.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub mend: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.key.is_empty() { "" } else { ": " };
        write!(
            f,
            "{}: {}{colon}{}; {}",
            self.file, self.key, self.what, self.mend
        )
    }
}

/// All faults of a folder, in the order of its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// Reads one TOML document; serde's error becomes a fault that names the key and, for a misspelt
/// one, its neighbour.
pub fn parse<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, Fault> {
    toml::from_str(text).map_err(|error| {
        let message = error.message().trim().replace('\n', " ");
        let line = error
            .span()
            .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let mut quoted = message.split('`').skip(1).step_by(2);
        let (key, mend) =
            if message.starts_with("unknown field") || message.starts_with("unknown variant") {
                let wrong = quoted.next().unwrap_or_default().to_string();
                let known: Vec<&str> = quoted.collect();
                let mend = match nearest(&wrong, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("use one of {}", known.join(", ")),
                };
                (wrong, mend)
            } else if message.starts_with("missing field") {
                let key = quoted.next().unwrap_or_default().to_string();
                let mend = format!("add `{key} = …`");
                (key, mend)
            } else {
                (
                    String::new(),
                    "see README.md in that folder for what may stand there".into(),
                )
            };
        let what = match line {
            Some(line) if !key.is_empty() && message.starts_with("missing") => {
                format!("missing (line {line})")
            }
            Some(line) if !key.is_empty() => format!("unknown (line {line})"),
            Some(line) => format!("{message} (line {line})"),
            None => message,
        };
        Fault {
            file: file.into(),
            key,
            what,
            mend,
        }
    })
}

/// The name among `known` that is closest to `wrong`.
pub fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 4))
        .min()
        .map(|(_, name)| name)
}

/// ` (did you mean `x`?)` for messages on the command line; empty if no name is near.
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
