//! What a report contains: blocks of text, and tables of values with their units. A document has no width, no colour and no escapes: only
//! the renderers add these. Strings from outside are unchanged.

use super::units;
use crate::analyse::{Ratio, TableCell, Verdict};
use crate::metric::{Metric, Unit};
use serde::{Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};

/// A part of a document.
pub enum Block {
    /// A paragraph.
    Text(Note),
    /// Lines that belong together.
    Notes(Notes),
    /// A table.
    Sheet(Sheet),
}

/// Lines below a heading, or without one.
#[derive(Default)]
pub struct Notes {
    /// The heading; empty if there is none.
    pub heading: Note,
    /// The lines, of one or a few sentences each.
    pub lines: Vec<Note>,
}

/// Text and its importance.
#[derive(Clone, Default, Serialize)]
pub struct Note {
    /// The text in plain words.
    pub text: String,
    /// The importance, which a colour may repeat.
    pub mark: Mark,
}

/// The meaning of a cell or a note, in a word; colours only repeat it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// An ordinary cell.
    #[default]
    None,
    /// The document's main point.
    Strong,
    /// A reason to doubt.
    Doubt,
    /// A value that is less than the one it is compared with.
    Faster,
    /// A value that is more than the one it is compared with.
    Slower,
    /// No difference that matters.
    Same,
    /// A difference that is neither certain nor excluded.
    Unclear,
    /// The verdict is withheld: nothing is claimed.
    Withheld,
    /// The row that the others are compared with.
    Baseline,
    /// No number, although nothing has failed.
    Gap,
    /// Something has failed.
    Failed,
}

/// A table, and what must be read with it.
#[derive(Default, Serialize)]
pub struct Sheet {
    /// The heading, such as `larson, 2 threads (oversubscribed)`.
    pub heading: String,
    /// A text above the table, which must be known before the first number is read.
    pub above: Option<String>,
    /// A title for each column. A screen breaks titles at their line breaks, if they have any.
    pub columns: Vec<String>,
    /// The rows; the first cell of each names what the row is about.
    pub rows: Vec<Vec<Cell>>,
    /// Notes below the table.
    pub notes: Vec<Note>,
    /// Whether a page shows the table only on request.
    pub folded: bool,
    /// Whether a page shows the cells as coloured fields.
    pub is_matrix: bool,
    /// How many of the first columns name what a row is about; 0 means one.
    pub heads: usize,
    /// The columns that a narrow screen leaves out, by index, in the order in which they are left out.
    #[serde(skip)]
    pub spare: Vec<usize>,
}

/// A value, and what readers are told about it.
#[derive(Clone, Default, Serialize)]
pub struct Cell {
    /// A sign before the value: `<= `, `~`.
    pub sign: &'static str,
    /// The value shown.
    pub value: Value,
    /// The meaning of the value, in a word.
    pub mark: Mark,
    /// The strength of the cell's colour on a page, in percent.
    pub heat: u32,
    /// The cell's tooltip on a page.
    pub words: String,
    /// The id of the part of a page that says more about the cell.
    pub href: Option<String>,
    /// The cell's own id on a page.
    pub id: Option<String>,
    /// The length of the cell's bar, over the longest bar of the column.
    pub bar: Option<f64>,
}

/// The content of a cell.
#[derive(Clone, Default)]
pub enum Value {
    /// A value that is not known.
    #[default]
    Nothing,
    /// A name or a verdict, which is never broken.
    Word(String),
    /// Sentences, which may be broken between words.
    Text(String),
    /// A number with its unit.
    Number(f64, Unit),
    /// A number in the unit of its column's title.
    Digits(f64),
    /// The ratio of two numbers.
    Ratio(f64),
    /// A ratio in a column with many others, shown in two decimals.
    Short(f64),
    /// A ratio with its interval.
    Interval(Ratio),
}

/// How a column is aligned and broken.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Alignment {
    /// Aligned left, broken between words.
    Text,
    /// Aligned left, never broken.
    Word,
    /// Aligned right, never broken.
    Number,
}

impl Block {
    /// A paragraph.
    pub fn text(text: impl Into<String>) -> Block {
        Block::Text(text.into().into())
    }

    /// Lines without a heading.
    pub fn notes(lines: impl IntoIterator<Item: Into<Note>>) -> Block {
        Block::lines("", Mark::None, lines)
    }

    /// Lines below a heading.
    pub fn lines(
        heading: impl Into<String>,
        mark: Mark,
        lines: impl IntoIterator<Item: Into<Note>>,
    ) -> Block {
        Block::Notes(Notes {
            heading: Note::marked(heading, mark),
            lines: lines.into_iter().map(Into::into).collect(),
        })
    }

    /// Returns whether the block shows nothing.
    pub fn is_empty(&self) -> bool {
        match self {
            Block::Text(note) => note.text.is_empty(),
            Block::Notes(notes) => notes.lines.is_empty(),
            Block::Sheet(sheet) => sheet.rows.is_empty() && sheet.notes.is_empty(),
        }
    }
}

impl Note {
    /// Text with a mark.
    pub fn marked(text: impl Into<String>, mark: Mark) -> Note {
        Note {
            text: text.into(),
            mark,
        }
    }
}

impl Sheet {
    /// A table of these columns.
    pub fn new<R: IntoIterator<Item: Into<Cell>>>(
        heading: impl Into<String>,
        columns: &[&str],
        rows: impl IntoIterator<Item = R>,
    ) -> Sheet {
        let row = |cells: R| cells.into_iter().map(Into::into).collect();
        Sheet {
            heading: heading.into(),
            columns: columns.iter().map(|title| title.to_string()).collect(),
            rows: rows.into_iter().map(row).collect(),
            ..Sheet::default()
        }
    }

    /// A table whose cells are sentences.
    pub fn of_text(
        heading: impl Into<String>,
        columns: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Sheet {
        let cells = |row: Vec<String>| row.into_iter().map(Cell::text);
        Sheet::new(heading, columns, rows.into_iter().map(cells))
    }

    /// Adds notes below the table.
    pub fn remark(&mut self, lines: impl IntoIterator<Item = String>) {
        self.notes.extend(lines.into_iter().map(Note::from));
    }

    /// The alignment of a column, which is that of its first cell with a value.
    pub fn alignment(&self, column: usize) -> Alignment {
        let alignment = |row: &Vec<Cell>| match &row.get(column)?.value {
            Value::Text(_) => Some(Alignment::Text),
            Value::Number(..) | Value::Digits(_) | Value::Ratio(_) | Value::Short(_) => {
                Some(Alignment::Number)
            }
            Value::Interval(_) => Some(Alignment::Word),
            Value::Word(_) | Value::Nothing => None,
        };
        if self.is_matrix && column > 0 {
            return Alignment::Number;
        }
        let mut rows = self.rows.iter();
        rows.find_map(alignment).unwrap_or(Alignment::Word)
    }
}

impl Cell {
    /// A cell with sentences.
    pub fn text(text: impl Into<String>) -> Cell {
        Value::Text(text.into()).into()
    }

    /// A cell with the ratio of two numbers.
    pub fn ratio(ratio: f64) -> Cell {
        Value::Ratio(ratio).into()
    }

    /// The verdict on a value and its ratio; nothing for a row that is not judged. A verdict that is unclear only among so many rows, with
    /// an interval that excludes 1, says so: `faster? (+14)`.
    pub fn verdict(verdict: Option<Verdict>, by: &Metric, ratio: Option<Ratio>) -> Cell {
        let Some(verdict) = verdict else {
            return "".into();
        };
        let more = match verdict {
            Verdict::Unclear { blocks_more } | Verdict::TooFew { blocks_more } => blocks_more,
            _ => None,
        };
        let word = match (verdict, ratio.and_then(|ratio| ratio.side())) {
            (Verdict::Unclear { .. }, Some(Ordering::Less)) => {
                Verdict::Faster.word_of(by).to_owned() + "?"
            }
            (Verdict::Unclear { .. }, Some(_)) => Verdict::Slower.word_of(by).to_owned() + "?",
            (Verdict::TooFew { .. }, _) if more.is_some() => "too few".to_owned(),
            _ => verdict.word_of(by).to_owned(),
        };
        let more = more.map(|more| format!(" (+{more})"));
        let word = word + &more.unwrap_or_default();
        Cell {
            mark: Mark::of(verdict),
            ..word.into()
        }
    }
}

impl Mark {
    /// The mark of a verdict.
    pub fn of(verdict: Verdict) -> Mark {
        match verdict {
            Verdict::Faster => Mark::Faster,
            Verdict::Slower => Mark::Slower,
            Verdict::Same | Verdict::Small => Mark::Same,
            Verdict::TooFew { .. } | Verdict::Unclear { .. } => Mark::Unclear,
            Verdict::AaCopyDiffers => Mark::Withheld,
        }
    }
}

impl Display for Cell {
    fn fmt(&self, out: &mut Formatter) -> fmt::Result {
        write!(out, "{}{}", self.sign, self.value)
    }
}

impl Display for Value {
    fn fmt(&self, out: &mut Formatter) -> fmt::Result {
        out.write_str(&match self {
            Value::Nothing => "-".into(),
            Value::Word(text) | Value::Text(text) => text.into(),
            Value::Number(number, unit) => units::value(*unit, *number),
            Value::Digits(number) => units::digits(*number),
            Value::Ratio(ratio) => units::ratio(*ratio),
            Value::Short(ratio) => units::short(*ratio),
            Value::Interval(ratio) => units::interval(ratio),
        })
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<String> for Note {
    fn from(text: String) -> Note {
        Note::marked(text, Mark::None)
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Cell {
        Cell {
            value,
            ..Cell::default()
        }
    }
}

impl From<String> for Cell {
    fn from(word: String) -> Cell {
        Value::Word(word).into()
    }
}

impl From<&str> for Cell {
    fn from(word: &str) -> Cell {
        word.to_owned().into()
    }
}

impl From<&String> for Cell {
    fn from(word: &String) -> Cell {
        word.clone().into()
    }
}

impl From<(f64, Unit)> for Cell {
    fn from((number, unit): (f64, Unit)) -> Cell {
        Value::Number(number, unit).into()
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Cell {
        (count as f64, Unit::Count).into()
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        Value::Digits(number).into()
    }
}

impl From<Ratio> for Cell {
    fn from(ratio: Ratio) -> Cell {
        Value::Interval(ratio).into()
    }
}

impl From<&TableCell> for Cell {
    fn from(cell: &TableCell) -> Cell {
        (cell.spread.median, cell.metric.unit).into()
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(known: Option<T>) -> Cell {
        known.map_or_else(Cell::default, Into::into)
    }
}
