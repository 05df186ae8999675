//! A document as Markdown, for an issue or a page.

use crate::report::document::{Alignment, Block, Mark, Note, Sheet};
use crate::report::text::{join, plain};

/// Renders the blocks as Markdown.
pub fn markdown(blocks: &[Block]) -> String {
    let blocks = blocks.iter().filter(|block| !block.is_empty());
    join(blocks.map(of_block), "\n")
}

fn of_block(block: &Block) -> String {
    match block {
        Block::Text(note) => text(note) + "\n",
        Block::Notes(notes) => {
            let lines = notes.lines.iter().map(|line| bullet(&text(line)));
            heading(&notes.heading.text) + &join(lines, "")
        }
        Block::Sheet(of) => sheet(of),
    }
}

fn sheet(sheet: &Sheet) -> String {
    let mut out = heading(&sheet.heading);
    if let Some(above) = &sheet.above {
        out += &format!("{}\n\n", escaped(above));
    }
    if !sheet.rows.is_empty() {
        out += &row(&sheet.columns);
        out += &row(
            (0..sheet.columns.len()).map(|place| match sheet.alignment(place) {
                Alignment::Number => "--:",
                Alignment::Text | Alignment::Word => ":--",
            }),
        );
        out.extend(sheet.rows.iter().map(row));
    }
    if !sheet.rows.is_empty() && !sheet.notes.is_empty() {
        out += "\n";
    }
    out.extend(sheet.notes.iter().map(|note| bullet(&text(note))));
    out
}

fn heading(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("## {}\n\n", escaped(text)),
    }
}

/// The text of a note, which is bold if the note has a mark.
fn text(note: &Note) -> String {
    match note.mark {
        Mark::None => escaped(&note.text),
        _ => format!("**{}**", escaped(&note.text)),
    }
}

fn bullet(line: &str) -> String {
    format!("- {line}\n")
}

/// A line of a table.
pub fn row(cells: impl IntoIterator<Item = impl ToString>) -> String {
    let cells = cells.into_iter().map(|cell| escaped(&cell.to_string()));
    format!("| {} |\n", join(cells, " | "))
}

/// [`plain`], with every character that Markdown or HTML would interpret escaped by a backslash or
/// an entity.
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in plain(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '$' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn markup_is_text() {
        assert_eq!(escaped("a|b_<c>\n# `x`"), "a\\|b\\_&lt;c&gt; \\# \\`x\\`");
    }
}
