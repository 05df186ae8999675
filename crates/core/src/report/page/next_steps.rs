//! Commands for what a reader may want to do next.

use super::section::Section;
use super::series_legend::{LegendRun, SeriesLegend};
use crate::analyse::{Analysis, Verdict, distinct};
use crate::plan::Case;
use crate::report::document::Sheet;
use crate::report::text::{join, typed};
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
    let more = again(head, blocks * 2).filter(|_| is_unclear);
    [
        again(head, blocks).map(|command| ("measure these cases again", command)),
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

/// The command that measures the cases of a run again. `None` if no selection of workloads and threads gives these cases, for libraries
/// that only the user of the run can name, and for any run but one of plain times: the flags of the others are not reproduced here.
fn again(head: &RunFile, blocks: u32) -> Option<String> {
    let plan = &head.plan;
    let workloads = distinct(plan.cases.iter().map(|case| case.workload.as_str()));
    let threads = distinct(plan.cases.iter().map(|case| case.threads));
    let is_private = head.is_private() || head.allocators.iter().any(|info| info.tier == "user");
    // A suite chooses the rounds of a trace in its own way.
    let is_plain = |case: &Case| case.factor.is_none() && !case.beside && !case.is_replay();
    let is_plain_run =
        plan.mode.spec().plain && plan.huge_pages.is_machines() && plan.cases.iter().all(is_plain);
    if is_private || !is_plain_run || workloads.len() * threads.len() != plan.cases.len() {
        return None;
    }
    let workloads = join(workloads.into_iter().map(quoted), ",");
    let allocators = join(plan.allocators.iter().map(|name| quoted(name)), ",");
    let threads = join(threads, ",");
    let baseline = quoted(&plan.baseline);
    let set = head
        .set
        .iter()
        .map(|change| format!(" --set {}", quoted(change)));
    let set: String = set.collect();
    Some(format!(
        "heapmark run -w {workloads} -t {threads}{set} -a {allocators} --baseline {baseline} --preset {} --blocks {blocks} --seed {}",
        quoted(&head.preset),
        plan.seed
    ))
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
