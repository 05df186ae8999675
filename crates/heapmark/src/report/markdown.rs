//! The tables of a run as Markdown: the content of the terminal, for an issue or a page.

use super::conclusion;
use super::legend::legend;
use super::machine::machine_line;
use super::sheet::{self, Column, Sheet};
use super::sheets;
use super::text::{count, markdown as escape};
use crate::analyse::{Analysis, Failure};
use crate::store::RunFile;

/// The verdict first, then where it was measured, all tables, the processes that did not end `ok`,
/// and the legend.
pub fn markdown(run: &RunFile, analysis: &Analysis) -> String {
    let mut out = format!(
        "**{}**\n\n{}\n",
        escape(&conclusion::conclusion(analysis)),
        escape(&conclusion::head(run))
    );
    for sheet in sheets::all(analysis) {
        out.push_str(&format!("\n## {}\n\n", escape(&sheet.heading)));
        out.push_str(&sheet_text(&sheet));
    }
    out.extend(conclusion::interference(analysis).map(|line| format!("\n{}\n", escape(&line))));
    let overall = sheet::overall(analysis);
    if !overall.is_empty() {
        out.push_str(&format!(
            "\n## {}\n\n",
            escape(&sheet::overall_heading(analysis))
        ));
        out.push_str(&line(
            ["allocator", "ratio [95 %]"].map(String::from).into_iter(),
        ));
        out.push_str(&line([":--", ":--"].map(String::from).into_iter()));
        overall.iter().for_each(|(name, ratio)| {
            out.push_str(&line([escape(name), escape(ratio)].into_iter()))
        });
    }
    if !analysis.failures.is_empty() {
        out.push_str("\n## Not ok\n\n");
        out.extend(analysis.failures.iter().map(failure_line));
    }
    out.push_str("\n## Legend\n\n");
    out.extend(
        legend(analysis)
            .iter()
            .map(|line| format!("- {}\n", escape(line))),
    );
    if analysis.unplanned > 0 {
        out.push_str(&format!(
            "- {} of no planned row: ignored.\n",
            count(analysis.unplanned, "record")
        ));
    }
    out.extend(machine_line(analysis).map(|line| format!("\n{}\n", escape(&line))));
    if !run.machine.is_empty() {
        out.push_str("\n## Machine\n\n");
        out.extend(
            run.machine
                .iter()
                .map(|(key, value)| format!("- {}: {}\n", escape(key), escape(value))),
        );
    }
    out
}

/// One table.
pub(super) fn sheet_text(sheet: &Sheet) -> String {
    let mut out = String::new();
    if !sheet.columns.is_empty() {
        out.push_str(&line(
            sheet.columns.iter().map(|column| escape(&column.title)),
        ));
        out.push_str(&line(
            sheet
                .columns
                .iter()
                .map(|column| if column.number { "--:" } else { ":--" }.to_owned()),
        ));
        for row in 0..sheet.columns[0].cells.len() {
            out.push_str(&line(
                sheet
                    .columns
                    .iter()
                    .map(|column: &Column| escape(&column.cells[row])),
            ));
        }
        out.push('\n');
    }
    out.extend(
        sheet
            .trust
            .iter()
            .map(|line| format!("- {}\n", escape(line))),
    );
    out.extend(
        sheet
            .caution
            .iter()
            .map(|caution| format!("{}\n\n", escape(caution))),
    );
    out.extend(
        sheet
            .floors
            .iter()
            .map(|floor| format!("- {}\n", escape(floor))),
    );
    out.extend(sheet.numberless.iter().map(|row| {
        format!(
            "- {}: **{}**\n",
            escape(&row.allocator),
            escape(&row.reason)
        )
    }));
    out
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn failure_line(failure: &Failure) -> String {
    let cells: Vec<String> = failure.cells.iter().map(|cell| escape(cell)).collect();
    let stderr = match failure.stderr.trim() {
        "" => String::new(),
        text => format!(" (stderr: {})", escape(text)),
    };
    format!(
        "- {}: {}{stderr}\n",
        cells.join(", "),
        escape(&failure.outcome.to_string())
    )
}
