//! Everything that is wrong with the data files, collected and shown together.

use std::path::Path;

/// What was found so far.
#[derive(Default)]
pub struct Problems(Vec<String>);

impl Problems {
    /// Notes one: where, what, and how to mend it.
    pub fn add(&mut self, path: &Path, what: &str) {
        self.0.push(format!("{}: {what}", path.display()));
    }

    /// An error that names them all, if there are any.
    pub fn into_result(self) -> anyhow::Result<()> {
        match self.0.len() {
            0 => Ok(()),
            1 => anyhow::bail!("{}", self.0[0]),
            many => anyhow::bail!("{many} problems in data files:\n{}", self.0.join("\n")),
        }
    }
}

/// ` (did you mean `x`?)` where something known is near enough, otherwise nothing.
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    known
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 4))
        .min()
        .map(|(_, name)| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}
