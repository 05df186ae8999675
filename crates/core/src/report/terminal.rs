//! The tables of a run for a terminal: plain words, fitted to its width. Colour only repeats what
//! the words state.

use super::legend::legend;
use super::machine::{lines_of_prices, machine_line};
use super::screen::{BOLD, RED, Screen, YELLOW};
use super::sheet::{self, Column, Sheet, Spare};
use super::text::plain;
use super::{conclusion, sheets};
use crate::analyse::{Analysis, Conclusion, Failure};
use crate::execute::last_useful_line;
use comfy_table::{CellAlignment, ColumnConstraint, Width};

/// All tables, the processes that did not end `ok`, the legend and the verdict.
pub fn terminal(analysis: &Analysis, screen: Screen) -> String {
    let mut lines = Vec::new();
    let mut dropped = Vec::new();
    for sheet in sheets::all(analysis) {
        lines.push(sheet_text(sheet, screen, &mut dropped));
    }
    // The candidates over all cases, if there are several.
    let overall = sheet::overall(analysis);
    if !overall.is_empty() {
        let heading = screen.wrap(&sheet::overall_heading(analysis), 2);
        lines.push(screen.paint(BOLD, &heading));
        for (name, ratio) in overall {
            lines.push(format!("  {:<20}  {ratio}", plain(&name)));
        }
        lines.push(String::new());
    }
    if let Some(line) = conclusion::interference(analysis) {
        lines.extend([screen.wrap(&line, 2), String::new()]);
    }
    if !analysis.failures.is_empty() {
        lines.extend(failures(analysis, screen));
        lines.push(String::new());
    }
    let mut remarks = legend(analysis);
    if !dropped.is_empty() {
        remarks.push(format!(
            "Too narrow for: {}. A wider terminal and the exports have it.",
            dropped.join(", ")
        ));
    }
    remarks.extend(conclusion::unplanned(analysis));
    remarks.extend(machine_line(analysis));
    remarks.extend(lines_of_prices(analysis));
    lines.extend(remarks.iter().map(|line| screen.wrap(line, 2)));
    lines.extend(last_lines(
        &conclusion::conclusion(analysis),
        analysis,
        screen,
    ));
    lines.join("\n") + "\n"
}

/// One table.
pub fn sheet_text(sheet: Sheet, screen: Screen, dropped: &mut Vec<String>) -> String {
    let mut lines = vec![screen.paint(BOLD, &plain(&sheet.heading))];
    let above = sheet.above.iter();
    lines.extend(above.map(|line| screen.wrap(&format!("  {line}"), 2)));
    let (columns, below) =
        if screen.width < CARDS_BELOW && too_wide(&sheet.columns, width_of, screen.width) {
            lines.extend(cards(&sheet.columns, screen));
            (Vec::new(), Vec::new())
        } else {
            fitting(sheet.columns, screen.width, dropped)
        };
    if !columns.is_empty() {
        lines.push(table(&columns, screen));
    }
    lines.extend(below.iter().map(|note| screen.wrap(note, 4)));
    lines.extend(
        sheet
            .floors
            .iter()
            .map(|floor| plain(&format!("  {floor}"))),
    );
    let trust = sheet.trust.iter().map(|line| (line, 4));
    let caution = sheet.caution.iter().map(|line| (line, 2));
    for (line, indent) in trust.chain(caution) {
        lines.push(screen.wrap(&format!("  {line}"), indent));
    }
    for row in &sheet.numberless {
        let line = screen.wrap(&format!("  {}: {}", row.allocator, row.reason), 4);
        lines.push(if row.failed {
            screen.paint(RED, &line)
        } else {
            line
        });
    }
    lines.join("\n") + "\n"
}

/// On narrower screens a table that is too wide becomes cards, which show all its numbers.
const CARDS_BELOW: usize = 60;

/// Each row as a card: its name, then a line for each of its numbers.
fn cards(columns: &[Column], screen: Screen) -> Vec<String> {
    let Some((names, numbers)) = columns.split_first() else {
        return Vec::new();
    };
    let titles: Vec<String> = numbers.iter().map(|column| plain(&column.title)).collect();
    let width = titles
        .iter()
        .map(|title| title.chars().count())
        .max()
        .unwrap_or_default();
    let mut lines = Vec::new();
    for (row, name) in names.cells.iter().enumerate() {
        lines.push(format!("  {}", plain(name)));
        for (title, column) in titles.iter().zip(numbers) {
            let cell = plain(&column.cells[row]);
            if !cell.is_empty() {
                let line = format!("    {title:<width$}  {cell}");
                lines.push(screen.wrap(&line, width + 6));
            }
        }
    }
    lines
}

/// If the columns are too wide, moves the notes below the table, then removes spare columns, the
/// last ones first.
fn fitting(
    mut columns: Vec<Column>,
    width: usize,
    dropped: &mut Vec<String>,
) -> (Vec<Column>, Vec<String>) {
    let mut below = Vec::new();
    if too_wide(&columns, width_of, width)
        && let Some(notes) = columns.pop_if(|column| column.notes)
    {
        // Rows with the same notes share a line.
        let mut said: Vec<(&String, Vec<&str>)> = Vec::new();
        let noted = columns[0].cells.iter().zip(&notes.cells);
        for (name, note) in noted.filter(|(_, note)| !note.is_empty()) {
            match said.iter_mut().find(|(known, _)| *known == note) {
                Some((_, names)) => names.push(name),
                None => said.push((note, vec![name.as_str()])),
            }
        }
        below = said
            .iter()
            .map(|(note, names)| format!("  {}: {note}", names.join(", ")))
            .collect();
    }
    let needs: [fn(&Column) -> usize; 2] = [width_of, least_width_of];
    for (spare, of) in [Spare::Early, Spare::Late].into_iter().zip(needs) {
        while too_wide(&columns, of, width)
            && let Some(place) = columns.iter().rposition(|column| column.spare == spare)
        {
            let title = columns.remove(place).title;
            if !dropped.contains(&title) {
                dropped.push(title);
            }
        }
    }
    (columns, below)
}

fn too_wide(columns: &[Column], of: fn(&Column) -> usize, width: usize) -> bool {
    columns.iter().map(|one| of(one) + GAP).sum::<usize>() > width
}

/// Two characters before each column.
const GAP: usize = 2;

fn width_of(column: &Column) -> usize {
    widest(column, [column.title.as_str()])
}

/// With the words of the heading on separate lines.
fn least_width_of(column: &Column) -> usize {
    widest(column, plain(&column.title).split(' '))
}

fn widest<'a>(column: &'a Column, title: impl IntoIterator<Item = &'a str>) -> usize {
    column
        .cells
        .iter()
        .map(String::as_str)
        .chain(title)
        .map(|text| plain(text).chars().count())
        .max()
        .unwrap_or_default()
}

/// The width of each column: headings break between words before any word is broken. `None` if even
/// that is too wide.
fn widths(columns: &[Column], width: usize) -> Option<Vec<usize>> {
    let mut widths: Vec<usize> = columns.iter().map(least_width_of).collect();
    let left = width.checked_sub(widths.iter().map(|own| own + GAP).sum())?;
    let whole: Vec<usize> = columns.iter().map(width_of).collect();
    // Spare width goes where most is missing, so that no heading takes more lines than it must.
    for _ in 0..left {
        let Some(place) = (0..columns.len())
            .filter(|place| widths[*place] < whole[*place])
            .max_by_key(|place| whole[*place] - widths[*place])
        else {
            break;
        };
        widths[place] += 1;
    }
    Some(widths)
}

fn table(columns: &[Column], screen: Screen) -> String {
    let mut table = screen.table(columns.iter().map(|column| plain(&column.title)));
    for row in 0..columns[0].cells.len() {
        table.add_row(columns.iter().map(|column| plain(&column.cells[row])));
    }
    let widths = widths(columns, screen.width);
    for (place, (column, style)) in columns.iter().zip(table.column_iter_mut()).enumerate() {
        style.set_padding((GAP as u16, 0));
        if column.number {
            style.set_cell_alignment(CellAlignment::Right);
        }
        if let Some(widths) = &widths {
            let width = (widths[place] + GAP).min(u16::MAX.into()) as u16;
            style.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        }
    }
    table.trim_fmt()
}

/// The conclusion, which stands apart from what is above it.
pub fn last_lines(sentences: &str, analysis: &Analysis, screen: Screen) -> [String; 2] {
    let colour = match analysis.conclusion {
        Conclusion::Fastest(_) => BOLD,
        _ => YELLOW,
    };
    [
        String::new(),
        screen.paint(colour, &screen.wrap(sentences, 0)),
    ]
}

/// The processes that did not end `ok`, if there are any.
pub fn failures(analysis: &Analysis, screen: Screen) -> Vec<String> {
    if analysis.failures.is_empty() {
        return Vec::new();
    }
    let lines = analysis
        .failures
        .iter()
        .flat_map(|failure| failure_lines(failure, screen));
    [screen.paint(RED, "Not ok")]
        .into_iter()
        .chain(lines)
        .collect()
}

fn failure_lines(failure: &Failure, screen: Screen) -> Vec<String> {
    let more = match failure.cells.len() {
        0 | 1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    let cell = failure.cells.first().map_or("", |cell| cell);
    let mut lines = vec![screen.wrap(&format!("  {cell}{more}: {}", failure.outcome), 4)];
    if let Some(last) = last_useful_line(&failure.stderr) {
        lines.push(screen.wrap(&format!("    stderr: {last}"), 6));
    }
    lines
}
