//! A document for a terminal: plain words, fitted to its width. Colour only repeats what the words
//! state.

use crate::report::document::{Alignment, Block, Cell, Mark, Sheet};
use crate::report::screen::{BOLD, GREEN, RED, Screen, YELLOW};
use crate::report::text::{count, join, plain, wrap};

/// Renders the blocks for a terminal, with an empty line between two.
pub fn terminal(blocks: &[Block], screen: Screen) -> String {
    let blocks = blocks.iter().filter(|block| !block.is_empty());
    join(blocks.map(|block| of_block(block, screen)), "\n\n") + "\n"
}

fn of_block(block: &Block, screen: Screen) -> String {
    match block {
        Block::Text(note) => painted(note.mark, &screen.wrap(&note.text, 0), screen),
        Block::Notes(notes) => {
            let heading = heading(&notes.heading.text, notes.heading.mark, screen);
            let indent = if heading.is_some() { "  " } else { "" };
            let lines = notes.lines.iter();
            let lines = lines.map(|line| {
                let text = screen.wrap(&format!("{indent}{}", line.text), 2 + indent.len());
                painted(line.mark, &text, screen)
            });
            join(heading.iter().cloned().chain(lines), "\n")
        }
        Block::Sheet(of) => sheet(of, screen),
    }
}

fn heading(text: &str, mark: Mark, screen: Screen) -> Option<String> {
    let mark = match mark {
        Mark::None => Mark::Strong,
        other => other,
    };
    (!text.is_empty()).then(|| painted(mark, &screen.wrap(text, 2), screen))
}

fn painted(mark: Mark, text: &str, screen: Screen) -> String {
    let colour = match mark {
        Mark::Strong => BOLD,
        Mark::Faster => GREEN,
        Mark::Doubt | Mark::Slower => YELLOW,
        Mark::Failed => RED,
        _ => return text.to_owned(),
    };
    screen.paint(colour, text)
}

fn sheet(sheet: &Sheet, screen: Screen) -> String {
    let mut lines = Vec::from_iter(heading(&sheet.heading, Mark::None, screen));
    let indent = if lines.is_empty() { "" } else { "  " };
    let line = |text: &str, indentation| screen.wrap(&format!("{indent}{text}"), indentation);
    lines.extend(sheet.above.iter().map(|above| line(above, 2)));
    if !sheet.rows.is_empty() {
        let layout = Layout::new(sheet, indent.len(), screen);
        lines.extend(layout.lines());
        let left_out = sheet.columns.len() - layout.places.len();
        let remark = || format!("{} on a wider screen.", count(left_out, "more column"));
        lines.extend((left_out > 0).then(|| line(&remark(), 2 + indent.len())));
    }
    let notes = sheet.notes.iter();
    lines.extend(notes.map(|note| painted(note.mark, &line(&note.text, 2 + indent.len()), screen)));
    lines.join("\n")
}

/// On screens with fewer columns than this, a table that is too wide becomes cards.
const CARDS_BELOW: usize = 60;
/// The least width of a column of sentences that are broken.
const LEAST_TEXT: usize = 16;

/// A column of a table.
struct TextColumn {
    title: String,
    alignment: Alignment,
    cells: Vec<String>,
    /// The width without any line break.
    whole: usize,
    /// The width with all allowed line breaks, below which the column cannot be shown.
    least: usize,
}

/// A table on its way to a screen. All tables follow one rule. Columns stand two characters apart, or one in a matrix that fits only so.
/// Titles and sentences break between words before columns move. Spare columns without room are left out, and a line reports that; other
/// columns follow below, again behind the names of the rows. On a very narrow screen each row is a card.
struct Layout<'a> {
    sheet: &'a Sheet,
    columns: Vec<TextColumn>,
    /// Places of the columns that are shown.
    places: Vec<usize>,
    /// Spaces before the first column.
    indent: usize,
    screen: Screen,
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn widest<'t>(texts: impl IntoIterator<Item = &'t str>) -> usize {
    texts.into_iter().map(width).max().unwrap_or_default()
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

impl TextColumn {
    fn new(sheet: &Sheet, place: usize) -> TextColumn {
        let title = join(sheet.columns[place].split('\n').map(plain), "\n");
        let separator = if title.contains('\n') { '\n' } else { ' ' };
        let alignment = sheet.alignment(place);
        let cells = texts(sheet, place);
        let widest_cell = widest(cells.iter().map(String::as_str));
        let least_cell = match alignment {
            // Lines break only between words.
            Alignment::Text => {
                let words = cells.iter().map(|cell| wrap(cell, 1, 0));
                let widest_word = words.map(|words| widest(words.lines())).max();
                widest_cell
                    .min(LEAST_TEXT)
                    .max(widest_word.unwrap_or_default())
            }
            Alignment::Word | Alignment::Number => widest_cell,
        };
        TextColumn {
            whole: widest_cell.max(widest(title.lines())),
            least: least_cell.max(widest(title.split(separator))),
            title,
            alignment,
            cells,
        }
    }

    /// The lines of a title. A title that has line breaks is broken only there.
    fn title(&self, width: usize) -> Vec<String> {
        match self.title.contains('\n') {
            true => lines(&self.title),
            false => lines(&wrap(&self.title, width, 0)),
        }
    }

    fn cell(&self, row: usize, width: usize) -> Vec<String> {
        match self.alignment {
            Alignment::Text => lines(&wrap(&self.cells[row], width, 0)),
            Alignment::Word | Alignment::Number => vec![self.cells[row].clone()],
        }
    }
}

/// The cells of a column as text, behind their bars.
fn texts(sheet: &Sheet, place: usize) -> Vec<String> {
    let cells = || sheet.rows.iter().map(|row| &row[place]);
    let texts: Vec<String> = cells().map(|cell| plain(&cell.to_string())).collect();
    if cells().all(|cell| cell.bar.is_none()) {
        return texts;
    }
    let width = widest(texts.iter().map(String::as_str));
    let behind_bar = |(cell, text): (&Cell, &String)| {
        let bar = bar(cell.bar.unwrap_or_default());
        format!("{bar:<BAR_COLUMNS$} {text:>width$}")
    };
    cells().zip(&texts).map(behind_bar).collect()
}

/// Characters of the longest bar.
const BAR_COLUMNS: usize = 6;

/// A bar of this share of [`BAR_COLUMNS`], to an eighth of a character.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share * (BAR_COLUMNS * 8) as f64).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// The width of each column: the room that is left goes to the columns that are broken most.
fn widths(columns: &[&TextColumn], left: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.least).collect();
    for _ in 0..left {
        let missing = |place: &usize| columns[*place].whole - widths[*place];
        let most = (0..widths.len()).max_by_key(missing);
        let Some(place) = most.filter(|place| missing(place) > 0) else {
            break;
        };
        widths[place] += 1;
    }
    widths
}

impl Layout<'_> {
    fn new(sheet: &Sheet, indent: usize, screen: Screen) -> Layout<'_> {
        let places = 0..sheet.columns.len();
        let columns = places.clone().map(|place| TextColumn::new(sheet, place));
        let mut layout = Layout {
            sheet,
            columns: columns.collect(),
            places: places.collect(),
            indent,
            screen,
        };
        let mut kept = layout.places.clone();
        let mut spare = sheet.spare.iter();
        while !layout.fits(&kept, layout.least_gap()) {
            let Some(place) = spare.next() else {
                return layout;
            };
            kept.retain(|other| other != place);
        }
        layout.places = kept;
        layout
    }

    /// The least number of spaces between two columns.
    fn least_gap(&self) -> usize {
        if self.sheet.is_matrix { 1 } else { 2 }
    }

    fn fits(&self, places: &[usize], gap: usize) -> bool {
        self.needs(places, gap) <= self.screen.width
    }

    fn lines(&self) -> Vec<String> {
        let places = &self.places;
        let mut gaps = (self.least_gap()..=2).rev();
        if let Some(gap) = gaps.find(|gap| self.fits(places, *gap)) {
            return self.band(places, gap);
        }
        let (heads, others) = places.split_at(self.sheet.heads.clamp(1, places.len()));
        let mut bands: Vec<Vec<usize>> = Vec::new();
        for place in others {
            match bands.last_mut() {
                Some(band) if self.fits(&[&band[..], &[*place]].concat(), 2) => band.push(*place),
                _ => bands.push([heads, &[*place]].concat()),
            }
        }
        if self.screen.width < CARDS_BELOW || !bands.iter().all(|band| self.fits(band, 2)) {
            return self.cards();
        }
        let bands: Vec<Vec<String>> = bands.iter().map(|band| self.band(band, 2)).collect();
        bands.join(&String::new())
    }

    /// The width of these columns if all are as narrow as they can be.
    fn needs(&self, places: &[usize], gap: usize) -> usize {
        let widths = places.iter().map(|place| self.columns[*place].least + gap);
        self.indent + widths.sum::<usize>() - gap
    }

    /// Columns side by side. Rows that have nothing in them are left out.
    fn band(&self, places: &[usize], gap: usize) -> Vec<String> {
        let columns: Vec<&TextColumn> = places.iter().map(|place| &self.columns[*place]).collect();
        let left = self.screen.width.saturating_sub(self.needs(places, gap));
        let widths = widths(&columns, left);
        let row = |cells: Vec<Vec<String>>, marks: &[Mark]| -> Vec<String> {
            let high = cells.iter().map(Vec::len).max().unwrap_or_default();
            let line = |part: usize| {
                let texts = columns.iter().enumerate().map(|(place, column)| {
                    let text = cells[place].get(part).map_or("", String::as_str);
                    let room = " ".repeat(widths[place] - width(text));
                    let text = painted(marks[place], text, self.screen);
                    match column.alignment {
                        Alignment::Number => room + &text,
                        Alignment::Text | Alignment::Word => text + &room,
                    }
                });
                let line = " ".repeat(self.indent) + &join(texts, &" ".repeat(gap));
                line.trim_end().to_owned()
            };
            (0..high).map(line).collect()
        };
        let titles = columns.iter().zip(&widths);
        let mut titles: Vec<Vec<String>> = titles.map(|(one, width)| one.title(*width)).collect();
        // Titles end where the cells begin.
        let high = titles.iter().map(Vec::len).max().unwrap_or_default();
        for title in &mut titles {
            title.splice(..0, vec![String::new(); high - title.len()]);
        }
        let mut lines = row(titles, &vec![Mark::None; columns.len()]);
        for (place, row_cells) in self.sheet.rows.iter().enumerate() {
            let cells = columns.iter().zip(&widths);
            let cells: Vec<_> = cells.map(|(one, width)| one.cell(place, *width)).collect();
            let is_empty = |cell: &Vec<String>| cell.iter().all(String::is_empty);
            if columns.len() == 1 || !cells[1..].iter().all(is_empty) {
                let marks: Vec<Mark> = places
                    .iter()
                    .map(|column| row_cells[*column].mark)
                    .collect();
                lines.extend(row(cells, &marks));
            }
        }
        lines
    }

    /// Each row as a card: its name, then a line for each of its numbers.
    fn cards(&self) -> Vec<String> {
        let (names, others) = self.columns.split_first().expect("a table has columns");
        let titles: Vec<String> = others.iter().map(|one| plain(&one.title)).collect();
        let width = widest(titles.iter().map(String::as_str));
        let mut lines = Vec::new();
        for (row, name) in names.cells.iter().enumerate() {
            lines.push(format!("  {name}"));
            for (title, column) in titles.iter().zip(others) {
                let cell = &column.cells[row];
                if !cell.is_empty() {
                    let line = format!("    {title:<width$}  {cell}");
                    lines.push(self.screen.wrap(&line, width + 6));
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::{bar, terminal};
    use crate::report::Screen;
    use crate::report::document::{Block, Sheet};

    #[test]
    fn a_word_that_is_longer_than_a_sentences_least_width_widens_its_column() {
        let long = "x".repeat(60);
        let rows =
            ["a", "b"].map(|name| vec![name.into(), format!("one {long}"), "two ".repeat(40)]);
        let sheet = Sheet::of_text("", &["name", "found", "why"], rows);
        let screen = Screen {
            width: 100,
            colour: false,
        };
        assert_eq!(
            terminal(&[Block::Sheet(sheet)], screen)
                .matches(&long)
                .count(),
            2
        );
    }

    #[test]
    fn a_bar_is_drawn_to_an_eighth_of_a_character() {
        assert_eq!(bar(1.0), "██████");
        assert_eq!(bar(0.25), "█▌");
        assert_eq!(bar(0.0), "");
    }
}
