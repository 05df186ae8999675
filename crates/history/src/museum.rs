//! `heapmark museum`: regressions of allocators that shipped, each as a small history: the good
//! release, the bad one, and the one that fixed the regression.

use crate::command::{Length, asked, grow, opened, runs, sides, worse};
use crate::folder::History;
use crate::report;
use crate::series;
use anyhow::{Context, Result};
use heapmark_core::analyse::compare::Side;
use heapmark_core::analyse::{Ratio, Verdict};
use heapmark_core::catalog::{did_you_mean, joined};
use heapmark_core::cmd::output::AnswerFormat;
use heapmark_core::cmd::{Exit, catalog, note, print, screen};
use heapmark_core::file::{self, PUBLIC, WithPath};
use heapmark_core::report::render;
use heapmark_core::report::text::typed;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// In place of a thread, for a regression that nobody has published.
#[cfg(test)]
const FOUND_HERE: &str = "found with heapmark";
const EXHIBITS: &str = include_str!("../../../museum/museum.toml");
/// Where the histories of exhibits are stored unless `-o` says otherwise.
const MUSEUM: &str = "heapmark-museum";
/// In place of names: each exhibit that can be measured.
const ALL: &str = "all";

/// Show regressions of allocators that shipped: with which workload a suite could have seen them
#[derive(clap::Args)]
pub struct MuseumArgs {
    /// Exhibits to measure; without a name only those that were measured are shown, and `all` measures all
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Directory of the museum
    #[arg(short, long, value_name = "DIR", default_value = MUSEUM)]
    output: PathBuf,
    /// What is printed at the end
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: AnswerFormat,
}

/// The file that lists the exhibits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    exhibit: Vec<Exhibit>,
}

/// A regression that shipped in a release.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Exhibit {
    /// The exhibit's name on the command line.
    pub name: String,
    /// The family of allocators.
    pub family: String,
    /// The last good release.
    pub good: String,
    /// The bad release, in the notation of `good`.
    pub bad: String,
    /// A later release that is good again.
    #[serde(default)]
    pub mended: Option<String>,
    /// What happens, in a few words.
    pub about: String,
    /// Where the regression was published, or `found with heapmark`.
    pub thread: String,
    /// When the regression was published: a year, or a year and a month.
    pub date: String,
    /// The effect as it was published.
    pub published: String,
    /// Flags of `heapmark history` with which the regression shows.
    #[serde(default)]
    pub work: Vec<String>,
    /// The metric in which the regression shows: the bad release takes more of it.
    #[serde(default)]
    pub metric: String,
    /// The number of blocks, if it is not that of `heapmark history`.
    #[serde(default)]
    pub blocks: Option<u32>,
    /// Why the regression is not measured, in place of `work`.
    #[serde(default)]
    pub why_not: Option<String>,
}

/// What an exhibit shows on this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Exhibited {
    /// The exhibit was not measured here.
    NotMeasured,
    /// The exhibit cannot be measured.
    NotPossible {
        /// Why the exhibit cannot be measured.
        why: String,
    },
    /// A release has no numbers.
    Failed {
        /// Why the release has no numbers.
        why: String,
    },
    /// The bad release takes more, beyond chance and the threshold.
    Shown {
        /// The bad release's value over the good one's.
        ratio: Ratio,
        /// Whether a later release takes less again.
        mended: bool,
    },
    /// The releases do not differ as the exhibit says.
    NotShown {
        /// The bad release's value over the good one's.
        ratio: Ratio,
    },
}

impl Exhibit {
    /// The exhibit's releases as names of allocators.
    pub fn versions(&self) -> Vec<String> {
        let all = [Some(&self.good), Some(&self.bad), self.mended.as_ref()];
        let all = all.into_iter().flatten();
        all.map(|version| format!("{}@{version}", self.family))
            .collect()
    }

    /// The command that measures the exhibit alone, in the directory that this museum has for it.
    pub fn command(&self, museum: &Path) -> String {
        let blocks = self.blocks.map(|blocks| format!(" --blocks {blocks}"));
        format!(
            "heapmark history -a {} -o {} {}{}",
            self.versions().join(","),
            typed([&*museum.join(&self.name).to_string_lossy()]),
            self.work.join(" "),
            blocks.unwrap_or_default()
        )
    }

    /// The exhibit's history in the museum's directory, if it has one.
    fn history(&self, dir: &Path) -> Result<Option<History>> {
        History::read(&dir.join(&self.name))
    }

    /// What the exhibit shows, with differences of more than 1 %.
    fn shown(&self, dir: &Path) -> Result<Exhibited> {
        if let Some(why) = &self.why_not {
            return Ok(Exhibited::NotPossible { why: why.clone() });
        }
        let history = self.history(dir)?;
        let Some(history) = history.filter(|history| history.runs.iter().any(|run| run.whole))
        else {
            return Ok(Exhibited::NotMeasured);
        };
        let runs = runs(&history, &dir.join(&self.name))?;
        Ok(self.outcome(&sides(&runs)))
    }

    /// What runs show of the exhibit's own releases; their history may have others between these.
    fn outcome(&self, runs: &[Side]) -> Exhibited {
        let versions = self.versions();
        let results = series::told(runs, &versions, heapmark_core::analyse::THRESHOLD);
        let mut of_metric = results
            .series
            .iter()
            .filter(|series| series.metric.key == self.metric);
        let step = |from: &str| {
            of_metric
                .clone()
                .find_map(|series| series.steps.iter().find(|step| step.from == from))
        };
        let Some(worse) = step(&versions[0]).filter(|step| step.to == versions[1]) else {
            let mut failed = results.failed.iter();
            let why = failed.find(|(name, _)| versions.contains(name));
            let why = why.map(|(name, why)| format!("{name}: {why}"));
            let has_metric = of_metric.next().is_some();
            return Exhibited::Failed {
                why: why.unwrap_or_else(|| match has_metric {
                    true => "a release has no numbers".into(),
                    false => format!("nothing measured {}", self.metric),
                }),
            };
        };
        let better = step(&versions[1]).is_some_and(|step| step.verdict == Verdict::Faster);
        match worse.verdict {
            Verdict::Slower => Exhibited::Shown {
                ratio: worse.ratio,
                mended: better,
            },
            _ => Exhibited::NotShown { ratio: worse.ratio },
        }
    }
}

/// The exhibits, in the order of the file.
fn exhibits() -> Result<Vec<Exhibit>> {
    let file: File = toml::from_str(EXHIBITS).context("museum/museum.toml")?;
    Ok(file.exhibit)
}

/// The exhibits that are named, or all.
fn chosen<'e>(all: &'e [Exhibit], names: &[String]) -> Result<Vec<&'e Exhibit>> {
    let (all_of_them, names): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| *name == ALL);
    let mut chosen = Vec::new();
    for name in names {
        let Some(exhibit) = all.iter().find(|one| one.name == *name) else {
            let hint = did_you_mean(name, all.iter().map(|one| one.name.as_str()));
            let names = joined(all.iter().map(|one| &one.name), ", ");
            refuse!("no exhibit `{name}`{hint}: there are {names}");
        };
        if let Some(why) = &exhibit.why_not {
            refuse!("{name} is not measured: {why}");
        }
        chosen.push(exhibit);
    }
    Ok(match all_of_them.is_empty() {
        true => chosen,
        false => all.iter().collect(),
    })
}

/// Runs the command.
pub fn run(args: MuseumArgs) -> Result<Exit> {
    let all = exhibits()?;
    let chosen = chosen(&all, &args.names)?;
    let chosen = chosen.into_iter().filter(|one| one.why_not.is_none());
    let exit = one_by_one(chosen, |exhibit| measure(exhibit, &args.output))?;
    if matches!(exit, Exit::Interrupted) {
        return Ok(exit);
    }
    let shown: Vec<(Exhibit, Exhibited)> = all
        .into_iter()
        .map(|exhibit| {
            let shown = exhibit.shown(&args.output)?;
            Ok((exhibit, shown))
        })
        .collect::<Result<_>>()?;
    if shown
        .iter()
        .any(|(_, shown)| matches!(shown, Exhibited::Shown { .. } | Exhibited::NotShown { .. }))
    {
        let page = args.output.join("museum.html");
        let text = report::museum_page(&shown, &args.output);
        file::replace(&page, text.as_bytes(), PUBLIC).with_path("cannot write", &page)?;
        note(format!("the museum as a page: {}", page.display()));
    }
    match args.format {
        AnswerFormat::Json => print(report::museum_json(&shown, &args.output))?,
        AnswerFormat::Text => print(render::terminal(&report::museum(&shown), screen()))?,
    }
    Ok(exit)
}

/// Measures exhibits one after the other, until a signal ends one. Returns the worst of their ends.
fn one_by_one<'e>(
    exhibits: impl Iterator<Item = &'e Exhibit>,
    mut measure: impl FnMut(&Exhibit) -> Result<Exit>,
) -> Result<Exit> {
    let mut exit = Exit::Done;
    for exhibit in exhibits {
        exit = worse(exit, measure(exhibit)?);
        if matches!(exit, Exit::Interrupted) {
            break;
        }
    }
    Ok(exit)
}

/// Measures what is not measured yet of an exhibit.
fn measure(exhibit: &Exhibit, museum: &Path) -> Result<Exit> {
    note(format!("{}: {}", exhibit.name, exhibit.command(museum)));
    let dir = museum.join(&exhibit.name);
    let mut history = opened(&dir, String::new(), exhibit.work.clone(), &[])?;
    let length = Length {
        blocks: exhibit.blocks,
        budget: None,
    };
    let versions = asked(&exhibit.versions(), catalog()?)?;
    grow(&mut history, &versions, &dir, &length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{HistoryArgs, work};
    use crate::fake_run::FakeRun;
    use heapmark_core::catalog::Catalog;
    use heapmark_core::cmd::parsed;
    use heapmark_core::metric;
    use std::collections::BTreeSet;

    #[test]
    fn each_exhibit_can_be_measured_by_its_line_or_says_why_not() {
        let catalog = Catalog::load().unwrap();
        let all = exhibits().unwrap();
        let names: BTreeSet<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.len() >= 16, "{}", all.len());
        for exhibit in &all {
            let name = &exhibit.name;
            let has_thread = exhibit.thread.starts_with("https://");
            assert!(has_thread || exhibit.thread == FOUND_HERE, "{name}");
            assert!(exhibit.date.starts_with("20"), "{name}");
            if exhibit.why_not.is_some() {
                assert!(
                    exhibit.work.is_empty() && exhibit.metric.is_empty(),
                    "{name}"
                );
                continue;
            }
            let versions = asked(&exhibit.versions(), &catalog).unwrap();
            assert_eq!(versions.len(), exhibit.versions().len(), "{name}");
            assert!(
                metric::judged().any(|one| one.key == exhibit.metric),
                "{name}"
            );
            let mut words = exhibit.work.iter();
            let workloads = words.find(|word| *word == "-w").and_then(|_| words.next());
            for workload in workloads.unwrap().split(',') {
                catalog.workloads(workload).unwrap();
            }
            // Whoever types the command goes on with what the museum has measured.
            let command = exhibit.command(Path::new("elsewhere"));
            assert!(command.contains(&format!(" -o elsewhere/{name} ")));
            let quoted = exhibit.command(Path::new("a place"));
            assert!(quoted.contains(&format!(" -o 'a place/{name}' ")));
            let flags: Vec<String> = command.split(' ').skip(2).map(str::to_owned).collect();
            let args: HistoryArgs = parsed(&flags).unwrap();
            assert_eq!(work(&args), exhibit.work, "{name}");
        }
    }

    #[test]
    fn lines_to_copy_go_on_in_the_museum_that_was_named() {
        let all = exhibits().unwrap().into_iter();
        let shown: Vec<(Exhibit, Exhibited)> = all
            .map(|exhibit| (exhibit, Exhibited::NotMeasured))
            .collect();
        let measured = shown.iter().find(|(one, _)| one.why_not.is_none());
        let museum = Path::new("elsewhere");
        let line = measured.unwrap().0.command(museum);
        assert!(report::museum_json(&shown, museum).contains(&line));
        let page = report::museum_page(&shown, museum);
        assert!(page.contains("-o elsewhere") && !page.contains("-o heapmark-museum"));
    }

    #[test]
    fn a_museum_ends_as_the_worst_of_its_exhibits() {
        let all = exhibits().unwrap();
        let ended = |ends: &[Exit]| {
            let mut each = ends.iter();
            let end_of = |_: &Exhibit| Ok(*each.next().unwrap());
            one_by_one(all.iter().take(ends.len()), end_of).unwrap() as u8
        };
        let failed = Exit::NotAllOk as u8;
        assert_eq!(ended(&[Exit::NotAllOk, Exit::Done]), failed);
        assert_eq!(ended(&[Exit::Done, Exit::NotAllOk]), failed);
        assert_eq!(ended(&[Exit::Done, Exit::Done]), Exit::Done as u8);
    }

    #[test]
    fn an_exhibit_is_shown_whatever_its_history_has_between_its_releases() {
        let exhibit = Exhibit {
            family: "f".into(),
            good: "1".into(),
            bad: "3".into(),
            mended: Some("4".into()),
            metric: "ns_per_op".into(),
            why_not: None,
            ..exhibits().unwrap().remove(0)
        };
        let run = FakeRun::new(&["f@4", "f@1", "f@2", "f@3"], &["larson"], 12);
        let run = run.fill(|_, name, block| match name {
            "f@3" => 60.0 + 0.01 * f64::from(block % 5),
            _ => 50.0 + 0.01 * f64::from(block % 3),
        });
        let side = Side {
            head: &run.run,
            records: &run.records,
        };
        let shown = exhibit.outcome(&[side]);
        assert!(
            matches!(shown, Exhibited::Shown { mended: true, .. }),
            "{shown:?}"
        );
        let why = "f@1: crash".into();
        let failed = [(exhibit, Exhibited::Failed { why })];
        let told = report::museum_page(&failed, Path::new("elsewhere"));
        assert!(
            told.contains("0 not shown, 1 failed, 0 not measured"),
            "{told}"
        );
    }

    #[test]
    fn all_may_be_named_beside_others_that_there_are() {
        let all = exhibits().unwrap();
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            chosen(&all, &names).map(|chosen| chosen.len())
        };
        assert_eq!(named(&[ALL, "fan-in"]).unwrap(), all.len());
        assert!(named(&[ALL, "fan-out"]).is_err());
        assert_eq!(named(&[]).unwrap(), 0);
    }
}
