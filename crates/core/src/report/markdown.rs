//! The tables of a run as Markdown: the content of the terminal, for an issue or a page.

use super::legend::legend;
use super::machine::{lines_of_prices, machine_line};
use super::sheet::{self, Sheet};
use super::text::{enclosed, join, markdown as escape};
use super::{conclusion, hardening, sheets};
use crate::analyse::Analysis;
use crate::store::RunFile;

/// The verdict first, then where it was measured, all tables, the processes that did not end `ok`,
/// and the legend.
pub fn markdown(run: &RunFile, analysis: &Analysis) -> String {
    let mut out = format!(
        "**{}**\n\n{}\n",
        escape(&conclusion::conclusion(analysis)),
        escape(&conclusion::head(run, analysis))
    );
    for sheet in sheets::all(analysis) {
        out += &format!("\n{}", sheet_text(&sheet));
    }
    if let Some(sheet) = hardening::sheet(analysis) {
        out += &format!("\n{}", sheet_text(&sheet));
    }
    if let Some(line) = conclusion::interference(analysis) {
        out += &format!("\n{}\n", escape(&line));
    }
    let overall = sheet::overall(analysis);
    if !overall.is_empty() {
        let heading = escape(&sheet::overall_heading(analysis));
        out += &format!("\n## {heading}\n\n| allocator | ratio [95 %] |\n| :-- | :-- |\n");
        out.extend(overall.iter().map(|(name, ratio)| row([name, ratio])));
    }
    if !analysis.failures.is_empty() {
        out += "\n## Not ok\n\n";
    }
    for failure in &analysis.failures {
        let cells = escape(&failure.cells.join(", "));
        let outcome = escape(&failure.outcome.to_string());
        let stderr = enclosed(" (stderr: ", &escape(failure.stderr.trim()), ")");
        out += &format!("- {cells}: {outcome}{stderr}\n");
    }
    out += "\n## Legend\n\n";
    out.extend(legend(analysis).iter().map(bullet));
    out.extend(conclusion::unplanned(analysis).map(bullet));
    for line in machine_line(analysis)
        .into_iter()
        .chain(lines_of_prices(analysis))
    {
        out += &format!("\n{}\n", escape(&line));
    }
    if !run.machine.is_empty() {
        out += "\n## Machine\n\n";
        for (key, value) in &run.machine {
            out += &bullet(format!("{key}: {value}"));
        }
    }
    out
}

/// One table and its heading.
pub fn sheet_text(sheet: &Sheet) -> String {
    let mut out = format!("## {}\n\n", escape(&sheet.heading));
    if let Some(above) = &sheet.above {
        out += &format!("{}\n\n", escape(above));
    }
    let columns = &sheet.columns;
    if let Some(first) = columns.first() {
        out += &row(columns.iter().map(|column| &column.title));
        out += &row(columns
            .iter()
            .map(|column| if column.number { "--:" } else { ":--" }));
        for place in 0..first.cells.len() {
            out += &row(columns.iter().map(|column| &column.cells[place]));
        }
        out += "\n";
    }
    out.extend(sheet.trust.iter().map(bullet));
    if let Some(caution) = &sheet.caution {
        out += &format!("{}\n\n", escape(caution));
    }
    out.extend(sheet.floors.iter().map(bullet));
    for row in &sheet.numberless {
        let allocator = escape(&row.allocator);
        let reason = escape(&row.reason);
        out += &format!("- {allocator}: **{reason}**\n");
    }
    out
}

/// A line of a table.
pub fn row(cells: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let cells = cells.into_iter().map(|cell| escape(cell.as_ref()));
    format!("| {} |\n", join(cells, " | "))
}

fn bullet(line: impl AsRef<str>) -> String {
    format!("- {}\n", escape(line.as_ref()))
}
