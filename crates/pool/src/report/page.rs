//! The page of runs that are pooled: does what was found on some machines hold on the next one?

use crate::judge::{Pool, PooledRow};
use crate::report::{conclusion, name_of, notes_of};
use heapmark_core::analyse::distinct;
use heapmark_core::metric::{Metric, Unit};
use heapmark_core::plan::row_name;
use heapmark_core::report::document::{Cell, Mark, Sheet, Value};
use heapmark_core::report::matrix::{heat, way};
use heapmark_core::report::page::head::{Head, facts};
use heapmark_core::report::page::section::{Data, PageLink, Plot, Section, Trace, View};
use heapmark_core::report::page::series_legend::{LegendEntry, in_chart};
use heapmark_core::report::page::{axes, dot_plot, figure, lay_out};
use heapmark_core::report::sheet::SheetOf;
use heapmark_core::report::text::{count, join};
use heapmark_core::report::units::{self, bounds};
use heapmark_core::store::RunFile;
use heapmark_stats::Transfer;
use serde_json::json;

/// What is pooled, and by which metric.
#[derive(Clone, Copy)]
struct Pooled<'a> {
    pool: &'a Pool,
    by: &'a Metric,
    /// The run that the others repeat.
    first: &'a RunFile,
}

/// Makes the page as HTML; `first` is the run that the others repeat.
pub fn pooled(pool: &Pool, by: &Metric, first: &RunFile) -> String {
    let pooled = Pooled { pool, by, first };
    let head = Head {
        verdict: conclusion(pool, by, &first.plan.baseline),
        says: format!(
            "heapmark {}, suite {}, {} of {}",
            first.heapmark,
            first.suite,
            count(runs(pool), "run"),
            count(pool.machines.len(), "machine")
        ),
        ..Head::default()
    };
    let entries: Vec<LegendEntry> = pooled
        .allocators()
        .into_iter()
        .map(|name| LegendEntry {
            name: name.into(),
            companion: false,
        })
        .collect();
    let sections = vec![
        pooled.matrix(),
        pooled.forest(),
        pooled.notes(),
        pooled.machines(),
    ];
    lay_out(
        &pooled.title(),
        &[head],
        &entries,
        vec!["pool".into()],
        sections,
    )
}

/// The section that leads to the pooled page, a file of the same folder, from the page of these runs, some of which are pooled.
pub fn link(file: &str, pooled: usize, runs: usize) -> Section {
    let which = match pooled {
        pooled if pooled == runs => "These runs repeat".to_owned(),
        pooled => format!("Of these runs, {pooled} repeat"),
    };
    let text = format!(
        "{which} each other on several machines. What they say together, and of a machine that was not measured, is another page."
    );
    let escaped = [('%', "%25"), ('#', "%23"), ('?', "%3F")]
        .iter()
        .fold(file.to_owned(), |name, (letter, code)| {
            name.replace(*letter, code)
        });
    Section {
        link: Some(PageLink {
            href: format!("./{escaped}"),
            words: file.to_owned(),
        }),
        ..Section::of_views(
            "pooled",
            "What holds on the next machine",
            &text,
            Vec::new(),
        )
    }
}

fn runs(pool: &Pool) -> usize {
    pool.machines.iter().map(|machine| machine.runs.len()).sum()
}

impl<'a> Pooled<'a> {
    /// The title of the page: `heapmark campaign: suite quick on 5 machines, 2026-01-01`.
    fn title(&self) -> String {
        let date = self.first.started.split('T').next().unwrap_or_default();
        format!(
            "heapmark campaign: suite {} on {}, {date}",
            self.first.suite,
            count(self.pool.machines.len(), "machine")
        )
    }

    /// The names of the allocators, in the order of the first run.
    fn allocators(&self) -> Vec<&'a str> {
        let named = |name: &&str| self.pool.rows.iter().any(|row| row.allocator == **name);
        let all = self
            .first
            .allocators
            .iter()
            .map(|allocator| allocator.name.as_str());
        all.filter(named).collect()
    }

    /// The rows of each workload and number of threads, in the order of the first run.
    fn cases(&self) -> Vec<(String, Vec<&'a PooledRow>)> {
        let rows = || self.pool.rows.iter();
        let cases = distinct(rows().map(|row| (row.workload.as_str(), row.threads)));
        let of = |(workload, threads): (&str, u32)| {
            let of_case = rows().filter(|row| row.workload == workload && row.threads == threads);
            let heading = format!("{workload}, {}", count(threads, "thread"));
            (heading, of_case.collect())
        };
        cases.into_iter().map(of).collect()
    }

    fn matrix(&self) -> Section {
        let cases = self.cases();
        let mut table = SheetOf::new("", &cases);
        table.add("case", |(heading, _)| heading);
        for name in self.allocators() {
            table.add(name, |(_, rows)| {
                match rows.iter().find(|row| row.allocator == name) {
                    Some(row) => cell(row),
                    None => Cell {
                        mark: Mark::Gap,
                        words: "not pooled".into(),
                        ..Cell::default()
                    },
                }
            });
        }
        table.sheet.is_matrix = true;
        let text = format!(
            "The {} over that of {}, the mean of all machines. In colour: sure to be so on the next type of machines, too, or the next machine if all are of one type; grey with ~: it is not; \
             ≠: the machines contradict each other; -: no ratio that can be pooled.",
            self.by.noun, self.first.plan.baseline
        );
        Section {
            text: vec![text],
            ..Section::of_tables("matrix", "Every case", [table.sheet])
        }
    }

    fn forest(&self) -> Section {
        let workloads = distinct(self.pool.rows.iter().map(|row| row.workload.as_str()));
        let cases = self.cases();
        let view = |workload: &str| {
            let mut data = Data::default();
            let of_workload = cases
                .iter()
                .filter(|(_, rows)| rows[0].workload == workload);
            let plots = of_workload.map(|(heading, rows)| self.plot(heading, rows, &mut data));
            View {
                workload: Some(workload.to_owned()),
                plots: plots.collect(),
                data,
            }
        };
        let text = "One mark for each machine, then the 95 % interval of the mean of all such machines, then that of the next machine, which \
                    is the wider one: where it crosses 1, the next machine may disagree. Half and twice are equally far from 1.";
        let views = workloads.into_iter().map(view);
        Section::of_views("machines", "Machine by machine", text, views.collect())
    }

    fn plot(&self, heading: &str, rows: &[&PooledRow], data: &mut Data) -> Plot {
        let mut extent = Vec::new();
        let mut traces = Vec::new();
        let mut ranked: Vec<&PooledRow> = rows.to_vec();
        ranked.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
        for row in ranked {
            let (mean_low, mean_high) = row.mean.unzip();
            let (next_low, next_high) = row.next.unzip();
            for on in &row.on {
                data.row(json!({
                    "allocator": row.allocator,
                    "threads": row.threads,
                    "machine": on.machine,
                    "ratio": on.ratio,
                    "ratio_low": on.interval.map(|interval| interval.0),
                    "ratio_high": on.interval.map(|interval| interval.1),
                    "verdict": on.verdict.word_of(self.by),
                    "mean": row.ratio,
                    "mean_low": mean_low,
                    "mean_high": mean_high,
                    "next_low": next_low,
                    "next_high": next_high,
                    "verdict_of_all": row.word,
                }));
            }
            let intervals = [row.mean, row.next].into_iter().flatten();
            extent.extend(intervals.flat_map(|(low, high)| [low, high]));
            extent.extend(row.on.iter().map(|on| on.ratio));
            traces.extend(self.traces(row));
        }
        let title = format!("{} / {}", self.by.noun, in_chart(&self.first.plan.baseline));
        let plot = Plot::new(
            heading,
            traces,
            axes::ratios(&title, &extent),
            axes::names(),
        );
        plot.with_line_at_one("x")
    }

    /// Returns the marks of the machines, of the mean and of the next machine, one below the other.
    fn traces(&self, row: &PooledRow) -> Vec<Trace> {
        let name = in_chart(&row.allocator);
        let ratios: Vec<f64> = row.on.iter().map(|on| on.ratio).collect();
        let words = row.on.iter().map(|on| {
            let interval = on.interval.map(bounds).unwrap_or_default();
            let (machine, ratio) = (on.machine, units::ratio(on.ratio));
            let word = on.verdict.word_of(self.by);
            format!("<b>{name}</b> on machine {machine}<br>{ratio} {interval} {word}")
        });
        let machines = figure::scatter(&name, "markers", &ratios, vec![&name; ratios.len()]);
        let machines = figure::with_hover_text(machines, Vec::from_iter(words));
        let mut traces = vec![self.trace(row, machines)];
        let word = &row.word;
        for (what, interval) in [("mean", row.mean), ("next machine", row.next)] {
            let Some((low, high)) = interval else {
                continue;
            };
            let label = format!("{name}: {what}");
            let within = bounds((low, high));
            // The mean of the machines, if that of several types is another one.
            let middle = match what {
                "mean" => row.ratio,
                _ => (low * high).sqrt(),
            };
            let words = format!("{} {within} {word}", units::ratio(middle));
            let drawn = dot_plot::mark(&label, middle, interval, &words);
            traces.push(self.trace(row, drawn));
        }
        traces
    }

    fn trace(&self, row: &PooledRow, drawn: serde_json::Value) -> Trace {
        let mut names = self.allocators().into_iter();
        Trace::new(names.position(|name| name == row.allocator), 0, drawn)
    }

    /// Returns a section on rows whose machines contradict each other, and on what would help if
    /// nothing can be said.
    fn notes(&self) -> Section {
        let rows = self.pool.rows.iter().flat_map(|row| {
            let notes = notes_of(row, self.by).into_iter();
            notes.map(move |note| vec![name_of(row), note])
        });
        let table = Sheet::of_text("", &["row", "what the machines say"], rows);
        let known: Vec<&PooledRow> = self.pool.rows.iter().collect();
        let spread = |row: &&PooledRow| row.spreads.is_some();
        let heading = "Standard deviations of ratios";
        let mut spreads = SheetOf::new(heading, known.iter().copied().filter(spread));
        let share = |share: Option<f64>| Some((share?, Unit::Share));
        spreads.add("row", name_of);
        spreads.add("between machines", |row| share(Some(row.spreads?.machines)));
        spreads.add("between runs", |row| share(row.spreads?.runs));
        spreads.add("between blocks", |row| share(Some(row.spreads?.blocks)));
        let mut spreads = spreads.sheet;
        spreads.folded = true;
        let heading = "Types of machines, each of which counts once";
        let typed = |row: &&PooledRow| row.next_type.is_some();
        let mut types = SheetOf::new(heading, known.iter().copied().filter(typed));
        types.add("row", name_of);
        types.add("types", |row| row.types.len() as u64);
        types.add("mean ratio of the next type", |row| {
            row.next_type.map(bounds)
        });
        let types = types.sheet;
        let memory = self.pool.memory.iter().map(|row| {
            let by_cpus = row.bytes.iter().map(|(cpus, bytes)| {
                format!("{} with {}", units::bytes(*bytes), count(*cpus, "CPU"))
            });
            let name = row_name(&row.workload, row.threads, &row.allocator);
            vec![name, join(by_cpus, ", ")]
        });
        let mut memory = Sheet::of_text("Memory by usable CPUs", &["row", "median"], memory);
        memory.folded = true;
        let tables = [table, types, memory, spreads];
        Section::of_tables(
            "differing",
            "Where machines differ, and what would help",
            tables,
        )
    }

    fn machines(&self) -> Section {
        let machines = self.pool.machines.iter().map(|machine| {
            vec![
                machine.number.to_string(),
                self.pool.types[machine.machine_type - 1].name.clone(),
                join(facts(&machine.facts), ", "),
                machine.blocks.to_string(),
                join(machine.runs.iter().cloned(), ", "),
            ]
        });
        let refused = self.pool.refused.iter().map(|refused| {
            let machine = join(facts(&refused.facts), ", ");
            vec![refused.run.clone(), machine, refused.why.clone()]
        });
        let left_out = self.pool.left_out.iter();
        let left_out = left_out.map(|entry| vec![entry.row.clone(), entry.why.clone()]);
        let mut tables = [
            Sheet::of_text(
                "Machines",
                &["machine", "type", "what it is", "blocks", "runs"],
                machines,
            ),
            Sheet::of_text("Refused runs", &["run", "machine", "why"], refused),
            Sheet::of_text("Rows that are left out", &["row", "why"], left_out),
        ];
        for table in &mut tables {
            table.folded = table.rows.len() > MOST_OPEN;
        }
        Section::of_tables("trust", "Machines, and what does not count", tables)
    }
}

/// The most lines of a table that is open at first.
const MOST_OPEN: usize = 20;

fn cell(row: &PooledRow) -> Cell {
    let (mark, sign) = match row.transfer {
        Transfer::Lower | Transfer::Higher => (way(row.ratio), ""),
        Transfer::Same => (Mark::Same, ""),
        Transfer::DiffersByMachine => (Mark::Unclear, "≠"),
        _ => (Mark::Unclear, "~"),
    };
    let next = row
        .next
        .map(|interval| format!("; next machine {}", bounds(interval)));
    Cell {
        sign,
        mark,
        heat: heat(mark, row.ratio),
        words: format!(
            "{}: mean of {}{}",
            row.word,
            count(row.on.len(), "machine"),
            next.unwrap_or_default()
        ),
        ..Value::Short(row.ratio).into()
    }
}
