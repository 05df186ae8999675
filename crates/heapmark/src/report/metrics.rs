//! The metrics as a table of a document.

use super::text;
use crate::metric;

/// For docs/METRICS.md: a test compares it.
pub fn metrics() -> String {
    let mut page =
        String::from("| metric | unit | better | judged | meaning |\n|---|---|---|---|---|\n");
    for metric in metric::all() {
        let alias = metric
            .alias
            .map_or(String::new(), |alias| format!(", `{alias}`"));
        let meaning = text::markdown(metric.about);
        let words = [
            metric.unit.word(),
            metric.better.word(),
            metric.judged.word(),
        ]
        .join(" | ");
        page.push_str(&format!(
            "| `{}`{alias} | {words} | {meaning} |\n",
            metric.key
        ));
    }
    page
}
