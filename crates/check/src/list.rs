//! `heapmark list checks`: every check, as values and as a page.

use crate::definition::{self, Check};
use anyhow::Result;
use heapmark_core::report::render::row;
use serde_json::{Value, json};

/// An object for each check.
pub fn listed() -> Result<Vec<Value>> {
    let value = |check: &Check| {
        json!({
            "name": check.name, "group": check.group, "standing": check.standing, "full": check.full,
            "about": check.about, "why": check.why, "source": check.source,
        })
    };
    Ok(definition::all()?.iter().map(value).collect())
}

/// A Markdown page with a table of the checks that pass or fail, and one of the wrong programs.
pub fn page() -> Result<String> {
    let all = definition::all()?;
    let (wrong, right): (Vec<&Check>, Vec<&Check>) = all.iter().partition(|check| check.is_wrong());
    Ok(format!(
        "# Checks\n\nPrinted by `heapmark list checks --markdown` from the files in `checks/`; [CHECK](CHECK.md) says how they run. Standing: \
         **std** ISO C or POSIX demand it, **gnu** no standard does, but programs for Linux rely on it, **robust** quality of the \
         implementation, **observe** standards leave it open. *full*: only with `--preset full`, or by name.\n\n\
         ## What a program may rely on\n\n| check | group, standing | what must hold | why | source |\n|---|---|---|---|---|\n{}\n\
         ## What becomes of a wrong program\n\n| check | group | what the program does, or looks at | what depends on it | source |\n|---|---|---|---|---|\n{}",
        rows(&right),
        rows(&wrong)
    ))
}

fn rows(checks: &[&Check]) -> String {
    let line = |check: &&Check| {
        let standing = json!(check.standing);
        let words = [
            Some(&*check.group),
            standing.as_str(),
            check.full.then_some("full"),
        ];
        let group = Vec::from_iter(words.into_iter().flatten()).join(", ");
        row([
            &*check.name,
            &group,
            &check.about,
            &check.why,
            &check.source,
        ])
    };
    checks.iter().map(line).collect()
}
