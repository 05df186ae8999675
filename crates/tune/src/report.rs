//! What a tuning prints: the answer, the confirmed settings, those without effect, and lines to
//! copy.

use crate::copied::CopiedLine;
use crate::judged::{Confirmation, GOALS, Goal};
use crate::search::{Confirmed, Entry, Fate, Together, Tuned};
use crate::setting::Setting;
use heapmark_core::analyse::Ratio;
use heapmark_core::report::document::{Block, Cell, Mark, Note, Sheet};
use heapmark_core::report::sheet::SheetOf;
use heapmark_core::report::text::{cut, list};
use heapmark_core::report::units;
use serde::Serialize;

/// The most characters of an allocator's message that are shown.
const LONGEST: usize = 150;

/// The content of the report, for the renderers and for programs.
#[derive(Serialize)]
pub struct TuneReport<'a> {
    /// The command, as it was typed.
    pub command: String,
    /// What the confirmation ran on, if not on `command`.
    pub held_out: Option<String>,
    /// The trace that the search measured, if a command confirms.
    pub searched_on: Option<String>,
    /// The quantity that was to be reduced.
    pub goal: Goal,
    /// The default: an allocator without settings.
    pub default: &'a str,
    /// The result of the search and the confirmation.
    #[serde(flatten)]
    pub tuned: &'a Tuned,
    /// Lines to copy, which set the best setting.
    pub copy: Vec<CopiedLine>,
    /// The surroundings for which the answer holds.
    pub valid_for: Vec<String>,
    /// The run of the confirmation or, without one, the last run of the search.
    pub run: Option<String>,
}

/// Returns the tables of a tuning, and their notes.
pub fn told(told: &TuneReport) -> Vec<Block> {
    let tuned = told.tuned;
    let mut blocks = vec![Block::Text(Note::marked(conclusion(told), Mark::Strong))];
    if !tuned.confirmed.is_empty() {
        blocks.push(Block::Sheet(confirmed(tuned)));
    }
    blocks.push(Block::notes(order(told)));
    blocks.push(Block::notes(notes(tuned, told.goal)));
    if !told.copy.is_empty() {
        let lines = told
            .copy
            .iter()
            .map(|entry| format!("{}: {}", entry.place, entry.line));
        blocks.push(Block::notes(lines.collect::<Vec<String>>()));
    }
    let mut last = vec![format!("valid for {}", told.valid_for.join(", "))];
    last.extend(
        told.run
            .iter()
            .map(|run| format!("stored: heapmark show {run}")),
    );
    blocks.push(Block::notes(last));
    blocks
}

/// The answer in a sentence.
pub fn conclusion(told: &TuneReport) -> String {
    let what = told.goal.word();
    let over = |ratio: Option<&Ratio>| ratio.map(units::interval).unwrap_or_default();
    let Some(best) = told.tuned.winners().next() else {
        return format!(
            "nothing found: no setting takes certainly less {what} than {} as it is",
            told.default
        );
    };
    let on = match &told.held_out {
        Some(line) => format!(" on {line}"),
        None => String::new(),
    };
    format!(
        "{} ({}) takes {} of the {what} of {} as it is, confirmed{on}",
        best.setting.name,
        words(&best.setting),
        over(best.ratios.get(&told.goal)),
        told.default
    )
}

/// Returns a note on whether the trace orders settings as the program does.
pub fn order(told: &TuneReport) -> Option<Note> {
    /// From this rank correlation on, a trace may choose for its program.
    const ENOUGH: f64 = 0.5;
    let trace = told.searched_on.as_deref()?;
    let Some(order) = told.tuned.order else {
        return Some(Note::marked(
            format!(
                "too few settings have numbers on {trace} and on the program to compare their order"
            ),
            Mark::Doubt,
        ));
    };
    let found = format!(
        "rank correlation of {} settings on {trace} and on the program: {:.2}",
        order.settings, order.rank_correlation
    );
    Some(match order.rank_correlation >= ENOUGH {
        true => found.into(),
        false => Note::marked(
            format!("{found}: search on the program, without -w"),
            Mark::Doubt,
        ),
    })
}

pub fn words(setting: &Setting) -> String {
    match setting.is_none() {
        true => "as it is".into(),
        false => setting.words(),
    }
}

pub fn confirmed(tuned: &Tuned) -> Sheet {
    let heading = "confirmed in new pairs, over the default [95 %]";
    // Settings that were measured for their order only are in no table.
    let rows = tuned.confirmed.iter();
    let rows = rows.filter(|row| row.confirmation.is_some() || row.setting.is_none());
    let mut table = SheetOf::new(heading, rows);
    table.add("setting", |row: &Confirmed| row.setting.name.as_str());
    table.add("helps", |row| match &row.confirmation {
        Some(Confirmation::Confirmed) => Cell {
            mark: Mark::Faster,
            ..Cell::from("yes")
        },
        Some(Confirmation::NotConfirmed(why)) => Cell {
            mark: Mark::Unclear,
            ..Cell::text(why.as_str())
        },
        None => Cell::default(),
    });
    table.add("search", |row| {
        row.search.map(|ratio| Cell::ratio(ratio.ratio))
    });
    for (goal, title) in GOALS.into_iter().zip(["time", "peak", "at end"]) {
        table.add(title, |row| row.ratios.get(&goal).copied());
    }
    table.sheet
}

pub fn notes(tuned: &Tuned, goal: Goal) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    let decoys = tuned.decoys.iter().filter_map(|decoy| decoy.get(&goal));
    let decoys: Vec<String> = decoys.map(units::interval).collect();
    if !decoys.is_empty() {
        notes.push(format!("two copies of the default: {}", decoys.join(", ")).into());
    }
    let names = |is_it: &dyn Fn(&&Entry) -> bool| {
        let entries = tuned.entries.iter().filter(is_it);
        entries
            .map(|entry| entry.setting.name.clone())
            .collect::<Vec<String>>()
    };
    for entry in &tuned.entries {
        let name = &entry.setting.name;
        match &entry.fate {
            Fate::NotArrived(why) => {
                let words = format!("{name} did not arrive: {}", cut(why, LONGEST));
                notes.push(Note::marked(words, Mark::Failed));
            }
            Fate::Failed(why) => {
                notes.push(Note::marked(format!("{name}: {why}"), Mark::Failed));
            }
            _ => {}
        }
    }
    let none = names(&|entry| entry.fate == Fate::NoEffect);
    if !none.is_empty() {
        notes.push(format!("no effect on any count: {}", list(none)).into());
    }
    let left = names(&|entry| entry.fate == Fate::Left);
    if !left.is_empty() {
        notes.push(format!("not among the best in the search: {}", list(left)).into());
    }
    let is_entry = |name: &str| tuned.entries.iter().any(|it| it.setting.name == name);
    // A pair that is better has become an entry of its own.
    let worse = tuned.together.iter().filter(|it| !is_entry(&it.both));
    let worse: Vec<String> = worse.map(|it| it.both.clone()).collect();
    if !worse.is_empty() {
        notes.push(format!("no better together: {}", list(worse)).into());
    }
    let of_knobs = |it: &&Together| it.apart.iter().all(|(name, _)| !is_entry(name));
    notes.extend(tuned.together.iter().filter(of_knobs).map(apart));
    notes
}

/// Returns the note on the knobs of a bundle: `together: bundle 0.81 [0.80, 0.82]; alone: a 0.90 [...], b 1.02 [...]`.
fn apart(combination: &Together) -> Note {
    let apart = combination.apart.iter();
    let apart = apart.map(|(name, ratio)| format!("{name} {}", units::interval(ratio)));
    format!(
        "together: {} {}; alone: {}",
        combination.both,
        units::interval(&combination.ratio),
        apart.collect::<Vec<String>>().join(", ")
    )
    .into()
}
