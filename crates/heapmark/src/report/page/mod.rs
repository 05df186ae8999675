//! Tables -> one HTML page that needs nothing but itself: charts, tables, and the words that stand above and below them.
//!
//! Three parts that know little of each other. The sections make values: what is drawn, what is said. The template lays words and
//! tables out, and makes every string from outside harmless. The script draws the charts from JSON; it alone knows colours.

mod axes;
mod beside;
mod cast;
mod counts;
mod dots;
mod forest;
mod heat;
mod latency;
mod literature;
mod memory;
mod pareto;
mod scaling;
mod section;
mod strips;
mod thin;
mod traced;
mod views;
mod whole;
mod words;

#[cfg(test)]
mod tests;

pub(super) use traced::traced;

use super::text::plain;
use super::{sentence, trial, verdict};
use crate::analyse::analyse;
use crate::analyse::claims::Judged;
use crate::store::{Record, RunFile, Series};
use cast::{Cast, Member, Told};
use minijinja::value::Serde;
use minijinja::{Environment, context};
use section::Section;
use serde::Serialize;
use serde_json::{Value, json};

/// A run as it goes onto a page.
pub struct PageRun<'a> {
    /// What people call it: its directory.
    pub name: String,
    /// Its head.
    pub head: &'a RunFile,
    /// What it measured.
    pub records: &'a [Record],
    /// Memory over time, one of each row that has it.
    pub series: Vec<Series>,
}

/// A page of one run, or of several side by side, and what the claims of the reference documents come to in them.
pub fn page(runs: &[PageRun], judged: &[Judged]) -> String {
    let told = runs.iter().map(|run| Told { run, analysis: analyse(run.head, run.records) });
    let cast = Cast::new(told.collect());
    let heads = cast.runs.iter().enumerate().map(|(run, told)| Head {
        label: (cast.runs.len() > 1).then(|| cast.title(run)),
        verdict: verdict(&told.analysis),
        says: plain(&sentence::head(told.run.head)),
    });
    let runs = (0..cast.runs.len()).map(|run| cast.title(run)).collect();
    lay_out(&title(&cast), &heads.collect::<Vec<_>>(), &cast.members, runs, &sections(&cast, judged))
}

/// What stands on top of a page, of each run.
#[derive(Serialize)]
struct Head {
    label: Option<String>,
    verdict: String,
    says: String,
}

/// A page of any sections.
fn lay_out(title: &str, heads: &[Head], members: &[Member], runs: Vec<String>, sections: &[Section]) -> String {
    let mut environment = Environment::new();
    environment.add_template("page.html", include_str!("page.html")).expect("our own template has no fault");
    let template = environment.get_template("page.html").expect("it was just added");
    let laid_out = context! {
        title => title,
        runs => Serde(heads),
        sections => sections.iter().map(laid_out).collect::<Vec<_>>(),
        charts => sections.iter().any(|section| !section.views.is_empty()),
        data => data(members, runs, sections),
        style => include_str!("page.css"),
        script => include_str!("page.js"),
        plotly => plotly_script(),
    };
    template.render(laid_out).expect("every value of the template is there")
}

/// All that have something to say, in the order of the page.
fn sections(cast: &Cast, judged: &[Judged]) -> Vec<Section> {
    let mut sections = vec![
        words::trust(cast),
        beside::section(cast),
        forest::section(cast),
        pareto::section(cast),
        scaling::section(cast),
        heat::section(cast),
        memory::section(cast),
        latency::section(cast),
        counts::section(cast),
        strips::section(cast),
        words::not_ok(cast),
        whole::section(cast),
        literature::section(judged),
        words::results(cast),
        words::method(cast),
    ];
    sections.retain(|section| !section.views.is_empty() || !section.tables.is_empty());
    sections
}

fn title(cast: &Cast) -> String {
    let name = |told: &Told| match trial::of(&told.analysis) {
        Some((_, tried)) => plain(&trial::heading(tried)),
        None => plain(&told.run.name),
    };
    format!("heapmark: {}", cast.runs.iter().map(name).collect::<Vec<_>>().join(", "))
}

/// What the template reads of a section: the charts are the script's.
fn laid_out(section: &Section) -> minijinja::Value {
    context! {
        id => section.id,
        heading => &section.heading,
        text => &section.text,
        tables => Serde(&section.tables),
        legend => &section.legend,
        charts => !section.views.is_empty(),
    }
}

/// What the script reads. No `<` is left in it that could end the element it stands in.
fn data(members: &[Member], runs: Vec<String>, sections: &[Section]) -> String {
    let charted = sections.iter().filter(|section| !section.views.is_empty());
    let charts: serde_json::Map<String, Value> =
        charted.map(|section| (section.id.to_owned(), json!(section.views))).collect();
    let member = |member: &Member| json!({ "name": plain(&member.name), "companion": member.companion });
    let members: Vec<Value> = members.iter().map(member).collect();
    json!({ "members": members, "runs": runs, "charts": charts }).to_string().replace('<', "\\u003c")
}

/// The script that draws, as its crate brings it. The crate adds one for formulas after it, which no chart here has.
fn plotly_script() -> String {
    let elements = plotly::Plot::offline_js_sources();
    let script = elements.split_once("</script>").map_or("", |(first, _)| first);
    script.split_once('>').map_or("", |(_, text)| text).to_owned()
}

/// A number of a table; an empty cell where it is none.
fn number(value: f64) -> Value {
    json!(value)
}
