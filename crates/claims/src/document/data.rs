//! Checks that a document's file is consistent and fits the catalogue: an unknown name would make a
//! claim untestable for ever.

use super::{Claim, Document, PublishedFigure};
use heapmark_core::catalog::Catalog;
use heapmark_core::catalog::faults::{Fault, suggestion};
use heapmark_core::catalog::malloc_api::matches;
use heapmark_core::catalog::real_program::{self, RealProgram};
use std::sync::LazyLock;

/// A document, what it is checked against, and the faults so far.
pub struct DocumentChecker<'a> {
    pub document: &'a Document,
    pub file: &'a str,
    pub text: &'a str,
    pub catalog: &'a Catalog,
    pub faults: &'a mut Vec<Fault>,
}

/// Returns a fault at the line with the text `at`, searched from the entry named by `after`
/// onwards.
pub fn fault_at(
    file: &str,
    text: &str,
    (after, at): (&str, &str),
    key: String,
    what: &str,
    mend: &str,
) -> Fault {
    let start = text.find(&format!("\"{after}\"")).unwrap_or(0);
    let at = text[start..].find(at).map_or(start, |at| start + at);
    let line = text[..at].matches('\n').count() + 1;
    Fault::new(file, key, format!("{what} (line {line})"), mend)
}

/// The real programs, read once, and only if a document names something that is no workload.
static REAL_PROGRAMS: LazyLock<Vec<RealProgram>> =
    LazyLock::new(|| real_program::load().unwrap_or_default());

fn is_real_program(name: &str) -> bool {
    REAL_PROGRAMS.iter().any(|program| program.name == name)
}

impl DocumentChecker<'_> {
    /// Adds each fault of the document, with its line.
    pub fn check(&mut self) {
        let document = self.document;
        self.rows();
        for figure in &document.figures {
            self.figure(figure);
        }
        let short = &document.short;
        for (place, claim) in document.claims.iter().enumerate() {
            let id = &claim.id;
            let number = id.strip_prefix(&format!("{short}-"));
            if number.is_none_or(|number| number.parse::<u32>().is_err()) {
                let what = format!("`{id}` is no number of this document");
                let mend = format!("number them {short}-1, {short}-2, ...");
                self.add("id", id, "", &what, &mend);
            }
            if document.claims[..place].iter().any(|other| other.id == *id) {
                let what = format!("`{id}` occurs twice");
                self.add("id", id, "", &what, "number each claim once");
            }
            self.claim(claim);
        }
    }

    fn add(&mut self, key: &str, after: &str, at: &str, what: &str, mend: &str) {
        let key = format!("{key} of {after}");
        let fault = fault_at(self.file, self.text, (after, at), key, what, mend);
        self.faults.push(fault);
    }

    fn rows(&mut self) {
        let catalog = self.catalog;
        for (name, row) in &self.document.rows {
            let allocators = catalog.allocators.iter().map(|allocator| &allocator.name);
            let programs = catalog.workloads.iter().flat_map(|workload| &workload.rows);
            let mut known = allocators.chain(programs.map(|program| &program.name));
            let ours = |name: &String| row.ours.iter().any(|pattern| matches(pattern, name));
            if !row.brought && !known.any(ours) {
                let patterns = row.ours.join("` or `");
                let what = format!("no allocator and no program's row is called `{patterns}`");
                let mend = "mend the name, or say `brought = true`";
                self.add("ours", name, "", &what, mend);
            }
            if let Some(then) = row
                .as_then
                .as_ref()
                .filter(|then| catalog.allocator(then).is_err())
            {
                let what = format!("no allocator is called `{then}`");
                self.add("as-then", name, "", &what, "mend the name");
            }
            self.workloads("workload", name, &row.workload);
        }
    }

    fn figure(&mut self, figure: &PublishedFigure) {
        let title = &figure.title;
        self.workloads("workload", title, [&figure.workload]);
        let columns = figure.threads.len() * figure.measures.len();
        for row in &figure.rows {
            let name = &row.row;
            let count = row.values.len();
            self.row("row", title, name);
            if count != columns {
                let at = format!("row = \"{name}\"");
                let what = format!("`{name}` has {count} values for {columns} columns");
                let mend = "give one for each thread count and measure";
                self.add("values", title, &at, &what, mend);
            }
        }
        let reference = &figure.reference;
        if !figure.rows.iter().any(|row| row.row == *reference) {
            let what = format!("`{reference}` is no row of the table");
            self.add("reference", title, "reference", &what, "name one that is");
        }
    }

    fn claim(&mut self, claim: &Claim) {
        let id = &claim.id;
        self.workloads("workloads", id, &claim.workloads);
        if claim.workloads.is_empty() || claim.checks.is_empty() {
            let mend = "give it workloads and checks";
            self.add("checks", id, "checks", "nothing would be looked at", mend);
        }
        for check in &claim.checks {
            for row in check.rows() {
                self.row("checks", id, row);
            }
            self.workloads("checks", id, check.workloads());
            let count = check
                .at()
                .workloads
                .as_ref()
                .unwrap_or(&claim.workloads)
                .len();
            let paired = check.paired().map(Vec::len);
            if let Some(paired) = paired.filter(|paired| *paired != count) {
                let what = format!("{paired} workloads beside {count}");
                self.add("checks", id, "checks", &what, "name one for each");
            }
        }
        for distribution in &claim.distributions {
            for name in &claim.workloads {
                let mut workloads = self.catalog.workloads.iter();
                let workload = workloads.find(|workload| workload.name == *name);
                let value = workload.map(|workload| workload.value("distribution", distribution));
                if let Some(Err(why)) = value {
                    let mend = "name what its workloads can have";
                    self.add("distributions", id, "distributions", &why, mend);
                }
            }
        }
    }

    fn workloads<'n>(
        &mut self,
        key: &str,
        after: &str,
        names: impl IntoIterator<Item = &'n String>,
    ) {
        let workloads = self.catalog.workloads.iter();
        let known = workloads.map(|workload| workload.name.as_str());
        for name in names {
            if !known.clone().any(|known| known == name) && !is_real_program(name) {
                let what = format!("there is no workload `{name}`");
                let mend = suggestion(name, known.clone(), "see `heapmark list workloads`");
                self.add(key, after, &format!("\"{name}\""), &what, &mend);
            }
        }
    }

    fn row(&mut self, key: &str, after: &str, name: &str) {
        let rows = &self.document.rows;
        if !rows.contains_key(name) {
            let what = format!("the document has no row `{name}`");
            let known = rows.keys().map(String::as_str);
            let mend = suggestion(name, known, "add it to [rows]");
            self.add(key, after, &format!("\"{name}\""), &what, &mend);
        }
    }
}
