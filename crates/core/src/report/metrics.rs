//! The metrics as a table of a document.

use super::render::escaped;
use super::text;
use crate::metric;

/// A row for each metric.
pub fn metrics() -> String {
    let mut page =
        String::from("| metric | unit | better | judged | meaning |\n|---|---|---|---|---|\n");
    for metric in metric::all() {
        let alias = text::enclosed(", `", metric.alias.unwrap_or_default(), "`");
        let meaning = escaped(metric.about);
        page += &format!(
            "| `{}`{alias} | {} | {} | {} | {meaning} |\n",
            metric.key,
            metric.unit.word(),
            metric.better.word(),
            metric.judged.word()
        );
    }
    page
}
