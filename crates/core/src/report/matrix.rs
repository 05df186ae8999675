//! The first answer of a run of several cases: one matrix of allocators against workloads, what it
//! comes to over all cases, and what to do next. The full tables are in `terminal`.

use super::conclusion::{self, kernel_of};
use super::legend::{failed_checks_in_brief, marked};
use super::machine::{machine_line, machine_name, price_warning};
use super::screen::{BOLD, GREEN, RED, Screen, YELLOW};
use super::sheet::{Floors, bound, floors};
use super::text::{count, list, plain};
use super::units;
use super::{factor, operations, terminal};
use crate::analyse::{
    Analysis, MemoryShape, Overall, Role, Table, TableRow, Verdict, distinct, held,
};
use crate::store::RunFile;
use std::path::Path;

/// Lines in which a heading may be broken; longer ones are cut.
const MOST_HEADING_LINES: usize = 5;
/// A word of a heading that is longer is broken.
const MOST_WORD: usize = 7;
/// Before each column.
const GAP: usize = 1;

/// A table in the making: a heading in lines, and a cell for each allocator.
pub struct Column {
    heading: Vec<String>,
    cells: Vec<Cell>,
    /// Characters before it.
    pub gap: usize,
    /// Whether it is left out of a screen on which not all fit.
    spare: bool,
}

/// Text and its colour.
pub struct Cell {
    text: String,
    colour: Option<&'static str>,
}

/// The matrix of a run, its sentences and what to do next; `None` if it has no two cases that could
/// be put side by side: then its tables are short enough. `place` is the run's directory.
pub fn matrix(run: &RunFile, analysis: &Analysis, place: &Path, screen: Screen) -> Option<String> {
    let (table, is_wide) = table(analysis, screen)?;
    let mut lines = vec![
        screen.paint(BOLD, &screen.wrap(&head(run, analysis), 2)),
        table,
        String::new(),
    ];
    let mut remarks = legend(analysis, is_wide || analysis.held.is_empty());
    remarks.extend(cautions(analysis));
    remarks.extend(order_by_user_time(analysis));
    remarks.extend(marked(analysis));
    remarks.extend(failed_checks_in_brief(analysis));
    remarks.extend(analysis.cases.iter().filter_map(factor::line));
    remarks.extend(aa_copy(analysis));
    remarks.extend(conclusion::interference(analysis));
    remarks.extend(machine_line(analysis));
    remarks.extend(analysis.prices.as_ref().and_then(price_warning));
    remarks.extend(conclusion::unplanned(analysis));
    lines.extend(remarks.iter().map(|line| screen.wrap(line, 2)));
    lines.extend(absent(analysis).iter().map(|line| screen.wrap(line, 2)));
    lines.extend(terminal::failures(analysis, screen));
    let mut sentences = conclusion::conclusion(analysis);
    if analysis.held.is_empty() {
        sentences += &conclusion::smallest(analysis);
    }
    lines.extend(terminal::last_lines(&sentences, analysis, screen));
    for next in [
        "Next: heapmark try -- COMMAND tells the same of your own program.".to_owned(),
        format!("All numbers: heapmark show {}", place.display()),
    ] {
        lines.push(screen.wrap(&next, 2));
    }
    Some(lines.join("\n") + "\n")
}

/// The table of [`matrix`] of a run that goes on: so far `done` blocks, of as many as `of` says. It
/// has no sentence that answers, since verdicts are made for the end of a run.
pub fn provisional(analysis: &Analysis, done: u32, of: &str, screen: Screen) -> Option<String> {
    let head = format!("Provisional, after {done} of {of} blocks; the answer follows:");
    let (table, _) = table(analysis, screen)?;
    Some([screen.paint(BOLD, &screen.wrap(&head, 2)), table].join("\n") + "\n")
}

/// The table, and whether the screen is wide enough for all its columns.
fn table(analysis: &Analysis, screen: Screen) -> Option<(String, bool)> {
    let fits = analysis.overall.len() > 1
        && analysis.later_rounds.is_none()
        && analysis.cases.iter().all(Table::times_operations)
        && !operations::any_judged_figure(analysis);
    if !fits {
        return None;
    }
    let names = names(analysis, &analysis.cases);
    let mut columns = vec![allocators(&names)];
    columns.extend(over_all(&names, analysis));
    columns.extend(analysis.cases.iter().map(|case| of_case(&names, case)));
    let all = columns.iter().map(|column| column.width() + column.gap);
    let is_wide = all.sum::<usize>() <= screen.width;
    columns.retain(|column| is_wide || !column.spare);
    Some((bands(&columns, screen), is_wide))
}

/// Rows of the matrix: the fastest over all cases first, then those that are not in all of them.
pub fn names<'a>(
    analysis: &'a Analysis,
    cases: impl IntoIterator<Item = &'a Table>,
) -> Vec<&'a str> {
    let ranked = analysis.overall.iter().map(|one| one.allocator.as_str());
    let others = cases
        .into_iter()
        .flat_map(|case| &case.rows)
        .filter(|row| row.role.ranks())
        .map(|row| row.allocator.as_str());
    distinct(ranked.chain(others))
}

/// `heapmark 0.1.0, suite quick, 10 blocks on AMD EPYC (2 CPUs), Linux 6.1`.
fn head(run: &RunFile, analysis: &Analysis) -> String {
    format!(
        "heapmark {}, suite {}, {} on {}",
        run.heapmark,
        run.suite,
        count(analysis.planned_blocks, "block"),
        machine_name(&run.machine)
    )
}

fn allocators(names: &[&str]) -> Column {
    let cells = names.iter().map(|name| Cell::of(plain(name)));
    Column {
        heading: Vec::new(),
        cells: cells.collect(),
        gap: 0,
        spare: false,
    }
}

/// What all cases come to, in time and in memory.
fn over_all(names: &[&str], analysis: &Analysis) -> Vec<Column> {
    let base = &analysis.baseline;
    let of = |name: &str| analysis.overall.iter().find(|one| one.allocator == name);
    let column = |heading: &[&str], text: &dyn Fn(&str) -> Option<String>| Column {
        heading: heading.iter().map(|line| line.to_string()).collect(),
        cells: (names.iter())
            .map(|name| text(name).unwrap_or_else(|| "-".into()))
            .map(Cell::of)
            .collect(),
        gap: GAP,
        spare: false,
    };
    let over_baseline = |name: &str, ratio: Option<String>| {
        if name == base && of(name).is_some() {
            Some("1".to_owned())
        } else {
            ratio
        }
    };
    let cases = analysis
        .overall
        .iter()
        .map(|one| one.cases)
        .max()
        .unwrap_or_default();
    let number = cases.to_string();
    let cases = if cases == 1 { "case" } else { "cases" };
    let has_held = !analysis.held.is_empty();
    let mut columns = vec![
        column(&["all", &number, cases], &|name| {
            over_baseline(name, of(name).map(|one| units::ratio(one.ratio)))
        }),
        Column {
            spare: has_held,
            ..column(&["95%"], &|name| {
                let one = of(name)?;
                Some(half_width(one, one.interval?))
            })
        },
        column(&["next", "run"], &|name| {
            let one = of(name)?;
            Some(half_width(one, one.run_to_run?))
        }),
        Column {
            spare: has_held,
            ..column(&["user", "time"], &|name| {
                over_baseline(name, of(name)?.user_ratio.map(short))
            })
        },
    ];
    if !has_held {
        columns.push(column(&["mem"], &|name| {
            over_baseline(name, of(name)?.memory.map(|memory| short(memory.ratio)))
        }));
    }
    columns.push(column(&["kern"], &|name| {
        let share = of(name)?.kernel_share?;
        Some(format!("{:.0}%", 100.0 * share))
    }));
    if !has_held {
        return columns;
    }
    columns.extend([
        column(&["peak", "/live"], &|name| {
            analysis.held_by(name)?.peak.map(short)
        }),
        column(&["pool"], &|name| {
            analysis.held_by(name)?.worst().map(short)
        }),
    ]);
    if !held::none_returns(&analysis.held) {
        columns.push(column(&["idle", "back"], &|name| {
            Some(format!("{:.0}%", 100.0 * analysis.held_by(name)?.returned?))
        }));
    }
    columns
}

/// How far an interval reaches from the ratio.
fn half_width(one: &Overall, (low, high): (f64, f64)) -> String {
    let half = (high / one.ratio - 1.0).max(1.0 - low / one.ratio);
    format!("±{:.0}%", (100.0 * half).ceil())
}

fn of_case(names: &[&str], case: &Table) -> Column {
    Column {
        heading: heading(case),
        cells: names
            .iter()
            .map(|name| case.row(name).map_or_else(|| Cell::of("-".into()), cell))
            .collect(),
        gap: GAP,
        spare: false,
    }
}

/// The words of the workload's name in lines, and its threads.
fn heading(case: &Table) -> Vec<String> {
    let name = plain(case.workload.trim_start_matches("trace:"));
    let mut lines = Vec::new();
    for word in name.split('-') {
        let letters: Vec<char> = word.chars().collect();
        if letters.len() <= MOST_WORD {
            lines.push(word.to_owned());
            continue;
        }
        let mut pieces: Vec<String> = letters
            .chunks(MOST_WORD - 1)
            .map(|piece| piece.iter().collect())
            .collect();
        let last = pieces.len() - 1;
        pieces[..last].iter_mut().for_each(|piece| piece.push('-'));
        lines.extend(pieces);
    }
    lines.truncate(MOST_HEADING_LINES);
    let mark = if case.oversubscribed { "!" } else { "" };
    lines.push(format!("{} thr{mark}", case.threads));
    lines
}

pub fn cell(row: &TableRow) -> Cell {
    if row.failed.as_ref().is_some_and(|it| !it.first.is_absent()) {
        return Cell::painted("fail".into(), RED);
    }
    let Some(ratio) = row.time().ratio else {
        return Cell::of("-".into());
    };
    if row.role == Role::Baseline {
        return Cell::of("1".into());
    }
    let text = format!("{}{}", mark(row), short(ratio.ratio));
    match row.time().verdict {
        Some(Verdict::Faster) => Cell::painted(text, GREEN),
        Some(Verdict::Slower) => Cell::painted(text, YELLOW),
        _ => Cell::of(text),
    }
}

/// `~` if the two are not told apart, `…` if there are too few blocks to do so, `?` if nothing is
/// claimed, or a bound.
fn mark(row: &TableRow) -> &'static str {
    match row.time().verdict {
        Some(Verdict::Unclear { .. }) => "~",
        Some(Verdict::TooFew { .. }) => "…",
        Some(Verdict::AaCopyDiffers) => "?",
        _ => bound(row).trim_end(),
    }
}

fn measured(analysis: &Analysis) -> impl Iterator<Item = &TableRow> {
    let rows = analysis.rows();
    rows.filter(|row| row.role == Role::Candidate && row.has_run())
}

/// The meaning of the marks that are there.
pub fn marks(analysis: &Analysis) -> impl Iterator<Item = String> {
    let is_there = |sign: &str| measured(analysis).any(|row| mark(row) == sign);
    let base = &analysis.baseline;
    let all = [
        ("~", format!("~ not told apart from {base}")),
        ("…", "… too few blocks yet to tell".to_owned()),
        (
            "?",
            format!("? a copy of {base} differs from it there, so nothing is claimed"),
        ),
    ];
    let there = all.into_iter().filter(move |(sign, _)| is_there(sign));
    there.map(|(_, words)| words)
}

/// Two decimals: `0.98`; fewer for large ratios.
pub fn short(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 9.995 => format!("{ratio:.2}"),
        ratio if ratio < 99.5 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}

impl Cell {
    pub fn of(text: String) -> Cell {
        Cell { text, colour: None }
    }

    fn painted(text: String, colour: &'static str) -> Cell {
        Cell {
            text,
            colour: Some(colour),
        }
    }
}

impl Column {
    /// One that stays on any screen.
    pub fn new(heading: &str, cells: Vec<Cell>) -> Column {
        Column {
            heading: heading.split('-').map(str::to_owned).collect(),
            cells,
            gap: GAP,
            spare: false,
        }
    }

    fn width(&self) -> usize {
        self.cells
            .iter()
            .map(|cell| &cell.text)
            .chain(&self.heading)
            .map(|text| text.chars().count())
            .max()
            .unwrap_or_default()
    }
}

/// The columns side by side; those for which the screen is too narrow follow below, behind the
/// allocators again.
pub fn bands(columns: &[Column], screen: Screen) -> String {
    let [first, rest @ ..] = columns else {
        return String::new();
    };
    let mut bands: Vec<Vec<&Column>> = Vec::new();
    let mut used = 0;
    for column in rest {
        let width = column.width() + column.gap;
        if bands.is_empty() || used + width > screen.width {
            bands.push(vec![first]);
            used = first.width();
        }
        used += width;
        bands.last_mut().expect("one was just added").push(column);
    }
    let texts: Vec<String> = bands.iter().map(|band| band_text(band, screen)).collect();
    texts.join("\n\n")
}

fn band_text(columns: &[&Column], screen: Screen) -> String {
    let high = columns
        .iter()
        .map(|column| column.heading.len())
        .max()
        .unwrap_or_default();
    let mut lines = Vec::new();
    for place in 0..high {
        let words = columns.iter().map(|column| {
            // Headings end where the cells begin.
            let above = high - column.heading.len();
            let word = place.checked_sub(above).map(|own| &column.heading[own]);
            (word.map_or("", String::as_str), None)
        });
        lines.push(line(columns, words, screen));
    }
    for row in 0..columns[0].cells.len() {
        let cells = columns
            .iter()
            .map(|column| &column.cells[row])
            .map(|cell| (cell.text.as_str(), cell.colour));
        lines.push(line(columns, cells, screen));
    }
    lines.join("\n")
}

/// Names are left-aligned, all else right. Painted after it was aligned: escape sequences have no
/// width.
fn line<'a>(
    columns: &[&Column],
    cells: impl Iterator<Item = (&'a str, Option<&'static str>)>,
    screen: Screen,
) -> String {
    let mut line = String::new();
    for (place, (column, (text, colour))) in columns.iter().zip(cells).enumerate() {
        let width = column.width();
        let aligned = match place {
            0 => format!("{text:<width$}"),
            _ => format!("{text:>width$}"),
        };
        line += &" ".repeat(column.gap);
        line += &colour.map_or(aligned.clone(), |colour| screen.paint(colour, &aligned));
    }
    line.trim_end().to_owned()
}

/// The meaning of the columns that are there.
fn legend(analysis: &Analysis, has_all: bool) -> Vec<String> {
    let base = &analysis.baseline;
    let mut cells = format!("Time over {base}'s, below 1 is faster");
    marks(analysis).for_each(|words| cells += &format!("; {words}"));
    if measured(analysis).any(|numbers| numbers.ratio_is_bound) {
        cells += "; <=, >= bounds, since the harness takes more than half of the faster time";
    }
    let harness = match floors(analysis) {
        Floors::OfAll => "the harness left out",
        Floors::OfSome => "the harness left out where its time is known",
        Floors::None => "the harness included",
    };
    let mut all = format!("all: geometric mean, {harness}");
    if has_all {
        all += ", its 95 % interval";
    }
    all += "; next run: how far that of this machine may be from it";
    if has_all {
        all += "; user time: the same without the kernel's";
    }
    if analysis.held.is_empty() {
        all += &format!("; mem: memory over {base}'s");
    }
    all += "; kern: the kernel's share of the time";
    let mut lines = vec![format!("{cells}. {all}.")];
    lines.extend(analysis.held.first().map(|held| {
        let returned = if held::none_returns(&analysis.held) {
            "Asleep, none returns memory of a burst"
        } else {
            "Idle back: what sleep returns of a burst"
        };
        format!(
            "peak/live: highest resident heap over most live bytes, mean of {}; pool: the worse of \
             {} and {}, over what can be live. {returned}.",
            count(held.replays, "replay"),
            kernel_of(MemoryShape::Pool),
            kernel_of(MemoryShape::FanIn)
        )
    }));
    if analysis.cases.iter().any(|case| case.oversubscribed) {
        lines.push("!: more threads than CPUs; the scheduler is measured too.".into());
    }
    lines
}

/// What cases must not be read without, each text once.
fn cautions(analysis: &Analysis) -> Vec<String> {
    let texts = analysis
        .cases
        .iter()
        .filter_map(|case| case.caution.as_ref());
    distinct(texts)
        .into_iter()
        .map(|text| {
            let cases = analysis
                .cases
                .iter()
                .filter(|case| case.caution.as_ref() == Some(text));
            let names = distinct(cases.map(|case| case.workload.trim_start_matches("trace:")));
            format!("{}: {text}", list(names))
        })
        .collect()
}

/// The order by user time, if it is another one than by wall time.
fn order_by_user_time(analysis: &Analysis) -> Option<String> {
    let by_user: Option<Vec<(f64, &str)>> = (analysis.overall.iter())
        .map(|one| Some((one.user_ratio?, one.allocator.as_str())))
        .collect();
    let mut by_user = by_user?;
    by_user.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let by_user: Vec<&str> = by_user.into_iter().map(|(_, name)| name).collect();
    let by_wall = analysis.overall.iter().map(|one| one.allocator.as_str());
    (!by_wall.eq(by_user.iter().copied())).then(|| {
        format!(
            "Order by user time, the kernel left out: {}.",
            by_user.join(", ")
        )
    })
}

/// Allocators that this machine cannot run, each reason once.
pub fn absent(analysis: &Analysis) -> Vec<String> {
    let reasons = analysis.rows().filter_map(|row| {
        let absent = row.failed.as_ref().filter(|it| it.first.is_absent())?;
        Some(format!("{}: {}", row.allocator, absent.summary()))
    });
    distinct(reasons)
}

/// What the run calls a difference between equals.
fn aa_copy(analysis: &Analysis) -> Option<String> {
    let (least, most) = analysis.copies()?;
    let base = &analysis.baseline;
    Some(format!(
        "A/A: a copy of {base} takes {least:.3} to {most:.3} of {base}'s time in these cases."
    ))
}
