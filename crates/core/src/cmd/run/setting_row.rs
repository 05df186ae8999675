//! Rows that another command makes: allocators with variables of their own.

use crate::catalog::settings;
use crate::execute::Subject;
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// A row made from an allocator of -a and environment variables of its own.
#[derive(Clone, Debug, Default)]
pub struct SettingRow {
    /// The row's name.
    pub name: String,
    /// The name of the row's allocator.
    pub allocator: String,
    /// The row's environment variables.
    pub environment: BTreeMap<String, String>,
}

impl SettingRow {
    /// The row's subject: one of these allocators with its variables.
    pub fn subject(&self, allocators: &[Subject]) -> Result<Subject> {
        let mut all = allocators.iter();
        let known = all.find(|subject| subject.allocator.name == self.allocator);
        let mut subject = known
            .with_context(|| format!("{}: no allocator {}", self.name, self.allocator))?
            .clone();
        subject.allocator.name.clone_from(&self.name);
        let environment = &mut subject.allocator.environment;
        for (name, value) in &self.environment {
            let first = environment.remove(name);
            let both = first.map(|first| settings::joined(name, &first, value));
            environment.insert(name.clone(), both.unwrap_or_else(|| value.clone()));
        }
        Ok(subject)
    }
}

/// The baseline and these rows; all allocators if there are no rows.
pub fn in_place(
    mut subjects: Vec<Subject>,
    rows: &[SettingRow],
    baseline: &str,
) -> Result<Vec<Subject>> {
    let made = rows.iter().map(|row| row.subject(&subjects));
    let made = made.collect::<Result<Vec<Subject>>>()?;
    if !rows.is_empty() {
        subjects.retain(|subject| subject.allocator.name == baseline);
        subjects.extend(made);
    }
    Ok(subjects)
}
