//! Commands for what a reader may want to do next.

use super::section::Section;
use super::series_legend::{LegendRun, SeriesLegend};
use crate::analyse::{Analysis, Verdict, distinct};
use crate::report::again::again;
use crate::report::document::Sheet;
use crate::report::text::typed;
use crate::store::RunFile;

pub fn section(legend: &SeriesLegend) -> Section {
    let steps = legend.runs.iter().flat_map(steps);
    let rows = distinct(steps.map(|(aim, command)| vec![aim.to_owned(), command]));
    let table = Sheet::of_text("", &["to", "command"], rows);
    Section::of_tables("next", "What next", [table])
}

fn steps(legend_run: &LegendRun) -> Vec<(&'static str, String)> {
    let head = legend_run.run.head;
    let blocks = head.plan.blocks;
    let is_unclear = is_unclear(&legend_run.analysis);
    let more = of_blocks(head, blocks * 2).filter(|_| is_unclear);
    [
        of_blocks(head, blocks).map(|command| ("measure these cases again", command)),
        more.map(|command| ("decide what is unclear, by more blocks", command)),
        (!head.is_private()).then(|| {
            let command = "heapmark try COMMAND".to_owned();
            ("find the best allocator for your own program", command)
        }),
        Some((
            "get all numbers as a file",
            format!("heapmark export {} --to csv", quoted(&legend_run.run.name)),
        )),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The command that measures the cases of a run again in this many blocks. `None` for libraries and commands that only the user of the run
/// can name.
fn of_blocks(head: &RunFile, blocks: u32) -> Option<String> {
    let is_private = head.is_private() || head.allocators.iter().any(|info| info.tier == "user");
    let [blocks, seed] = [blocks.to_string(), head.plan.seed.to_string()];
    let more = ["--blocks".to_owned(), blocks, "--seed".to_owned(), seed];
    (!is_private).then(|| again(head, &more)).flatten()
}

fn is_unclear(analysis: &Analysis) -> bool {
    analysis
        .rows()
        .filter_map(|row| row.time().verdict)
        .any(|verdict| matches!(verdict, Verdict::Unclear { .. } | Verdict::TooFew { .. }))
}

fn quoted(word: &str) -> String {
    typed([word])
}
