//! The tables of a run for a terminal: plain words, fitted to its width. Colour only repeats what
//! the words state.

use super::conclusion;
use super::legend::legend;
use super::machine::machine_line;
use super::screen::{BOLD, RED, Screen, YELLOW};
use super::sheet::{self, Column, Sheet, Spare};
use super::sheets;
use super::text::{count, plain, wrap};
use crate::analyse::{Analysis, Conclusion, Failure};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};

/// All tables, the processes that did not end `ok`, the legend and the verdict.
pub fn terminal(analysis: &Analysis, screen: Screen) -> String {
    let mut out = String::new();
    let mut dropped = Vec::new();
    for sheet in sheets::all(analysis) {
        out.push_str(&sheet_text(sheet, screen, &mut dropped));
        out.push('\n');
    }
    out.push_str(&overall(analysis, screen));
    if let Some(line) = conclusion::interference(analysis) {
        out.push_str(&format!("{}\n\n", wrap(&plain(&line), screen.width, 2)));
    }
    if !analysis.failures.is_empty() {
        out.push_str(&format!("{}\n", screen.paint(RED, "Not ok")));
        for failure in &analysis.failures {
            out.push_str(&failure_text(failure, screen));
        }
        out.push('\n');
    }
    for line in legend(analysis)
        .iter()
        .map(|line| plain(line))
        .chain(remarks(analysis, &dropped))
    {
        out.push_str(&format!("{}\n", wrap(&line, screen.width, 2)));
    }
    let colour = if matches!(analysis.conclusion, Conclusion::Fastest(_)) {
        BOLD
    } else {
        YELLOW
    };
    let sentence = wrap(&plain(&conclusion::conclusion(analysis)), screen.width, 0);
    out.push_str(&format!("\n{}\n", screen.paint(colour, &sentence)));
    out
}

/// Remarks about this page and this run, after the legend.
fn remarks(analysis: &Analysis, dropped: &[String]) -> Vec<String> {
    let mut remarks = Vec::new();
    if !dropped.is_empty() {
        remarks.push(format!(
            "Too narrow for: {}. A wider terminal and the exports have it.",
            dropped.join(", ")
        ));
    }
    if analysis.unplanned > 0 {
        remarks.push(format!(
            "{} of no planned row: ignored.",
            count(analysis.unplanned, "record")
        ));
    }
    remarks.extend(machine_line(analysis));
    remarks
}

/// One table.
pub(super) fn sheet_text(sheet: Sheet, screen: Screen, dropped: &mut Vec<String>) -> String {
    let mut out = format!("{}\n", screen.paint(BOLD, &plain(&sheet.heading)));
    let (columns, below) = fitting(sheet.columns, screen.width, dropped);
    if !columns.is_empty() {
        out.push_str(&format!("{}\n", table(&columns, screen.width)));
    }
    for note in below {
        out.push_str(&format!("{}\n", wrap(&note, screen.width, 4)));
    }
    for floor in &sheet.floors {
        out.push_str(&format!("  {}\n", plain(floor)));
    }
    for line in &sheet.trust {
        out.push_str(&format!(
            "{}\n",
            wrap(&format!("  {}", plain(line)), screen.width, 4)
        ));
    }
    if let Some(caution) = &sheet.caution {
        out.push_str(&format!(
            "{}\n",
            wrap(&format!("  {}", plain(caution)), screen.width, 2)
        ));
    }
    for row in &sheet.numberless {
        let line = wrap(
            &format!("  {}: {}", plain(&row.allocator), plain(&row.reason)),
            screen.width,
            4,
        );
        out.push_str(&format!(
            "{}\n",
            if row.failed {
                screen.paint(RED, &line)
            } else {
                line
            }
        ));
    }
    out
}

/// If the columns are too wide, moves the notes below the table, then removes spare columns, the
/// last ones first.
fn fitting(
    mut columns: Vec<Column>,
    width: usize,
    dropped: &mut Vec<String>,
) -> (Vec<Column>, Vec<String>) {
    let sum = |columns: &[Column], of: fn(&Column) -> usize| {
        columns.iter().map(|one| of(one) + GAP).sum::<usize>()
    };
    let too_wide = |columns: &[Column]| sum(columns, width_of) > width;
    let mut below = Vec::new();
    if too_wide(&columns)
        && let Some(notes) = columns.pop_if(|column| column.notes)
    {
        // Rows with the same notes share a line.
        let mut said: Vec<(&String, Vec<String>)> = Vec::new();
        for (name, note) in columns[0]
            .cells
            .iter()
            .zip(&notes.cells)
            .filter(|(_, note)| !note.is_empty())
        {
            match said.iter_mut().find(|(known, _)| *known == note) {
                Some((_, names)) => names.push(plain(name)),
                None => said.push((note, vec![plain(name)])),
            }
        }
        below = said
            .iter()
            .map(|(note, names)| format!("  {}: {}", names.join(", "), plain(note)))
            .collect();
    }
    let needs: [fn(&Column) -> usize; 2] = [width_of, least_width_of];
    for (spare, of) in [Spare::Early, Spare::Late].into_iter().zip(needs) {
        while sum(&columns, of) > width
            && let Some(place) = columns.iter().rposition(|column| column.spare == spare)
        {
            let column = columns.remove(place);
            if !dropped.contains(&column.title) {
                dropped.push(column.title);
            }
        }
    }
    (columns, below)
}

/// Two characters before each column.
const GAP: usize = 2;

fn width_of(column: &Column) -> usize {
    let texts = column.cells.iter().chain([&column.title]);
    texts
        .map(|text| plain(text).chars().count())
        .max()
        .unwrap_or(0)
}

/// With the words of the heading on separate lines.
fn least_width_of(column: &Column) -> usize {
    let title = plain(&column.title);
    let cells = column.cells.iter().map(|cell| plain(cell).chars().count());
    cells
        .chain(title.split(' ').map(|word| word.chars().count()))
        .max()
        .unwrap_or(0)
}

/// The width of each column: headings break between words before any word is broken. `None` if even
/// that is too wide.
fn widths(columns: &[Column], width: usize) -> Option<Vec<usize>> {
    let mut widths: Vec<usize> = columns.iter().map(least_width_of).collect();
    let left = width.checked_sub(widths.iter().map(|own| own + GAP).sum())?;
    let whole: Vec<usize> = columns.iter().map(width_of).collect();
    // Spare width goes where most is missing, so that no heading takes more lines than it must.
    for _ in 0..left {
        let missing = widths
            .iter()
            .zip(&whole)
            .map(|(own, whole)| whole - own)
            .enumerate();
        let Some((place, _)) = missing
            .filter(|(_, missing)| *missing > 0)
            .max_by_key(|(_, missing)| *missing)
        else {
            break;
        };
        widths[place] += 1;
    }
    Some(widths)
}

fn table(columns: &[Column], width: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).force_no_tty();
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width.min(u16::MAX.into()) as u16);
    table.set_header(columns.iter().map(|column| plain(&column.title)));
    for row in 0..columns[0].cells.len() {
        table.add_row(columns.iter().map(|column| plain(&column.cells[row])));
    }
    let widths = widths(columns, width);
    for (place, column) in columns.iter().enumerate() {
        if let Some(style) = table.column_mut(place) {
            style.set_padding((GAP as u16, 0));
            style.set_cell_alignment(if column.number {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            });
            if let Some(own) = widths.as_ref().map(|widths| widths[place] + GAP) {
                style.set_constraint(ColumnConstraint::Absolute(Width::Fixed(
                    own.min(u16::MAX.into()) as u16,
                )));
            }
        }
    }
    table.trim_fmt()
}

/// The candidates over all cases, if there are several.
fn overall(analysis: &Analysis, screen: Screen) -> String {
    let lines = sheet::overall(analysis);
    if lines.is_empty() {
        return String::new();
    }
    let heading = wrap(&plain(&sheet::overall_heading(analysis)), screen.width, 2);
    let mut out = format!("{}\n", screen.paint(BOLD, &heading));
    lines.iter().for_each(|(name, ratio)| {
        out.push_str(&format!("  {:<width$}  {ratio}\n", plain(name), width = 20))
    });
    out.push('\n');
    out
}

fn failure_text(failure: &Failure, screen: Screen) -> String {
    let more = match failure.cells.len() {
        0 | 1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    let cell = failure.cells.first().map_or("", |cell| cell);
    let line = format!(
        "  {}{more}: {}",
        plain(cell),
        plain(&failure.outcome.to_string())
    );
    let mut out = format!("{}\n", wrap(&line, screen.width, 4));
    if let Some(last) = failure.stderr.lines().rfind(|line| !line.trim().is_empty()) {
        out.push_str(&format!(
            "{}\n",
            wrap(&format!("    stderr: {}", plain(last)), screen.width, 6)
        ));
    }
    out
}
