//! Checks that a document's file is consistent and fits the catalogue: an unknown name would make a
//! claim untestable for ever.

use super::{Claim, Document, Figure};
use crate::catalog::faults::{Fault, nearest};
use crate::catalog::{Catalog, Workload};

/// Adds each fault with its line.
pub(super) fn check(
    document: &Document,
    file: &str,
    text: &str,
    catalog: &Catalog,
    faults: &mut Vec<Fault>,
) {
    let mut reader = Reader {
        document,
        file,
        text,
        catalog,
        faults,
    };
    reader.rows();
    document
        .figures
        .iter()
        .for_each(|figure| reader.figure(figure));
    for (place, claim) in document.claims.iter().enumerate() {
        let (id, number) = (
            &claim.id,
            claim.id.strip_prefix(&format!("{}-", document.short)),
        );
        if number.is_none_or(|number| number.parse::<u32>().is_err()) {
            let mend = format!(
                "number them {}-1, {}-2, ...",
                document.short, document.short
            );
            reader.add(
                "id",
                id,
                "",
                &format!("`{id}` is no number of this document"),
                mend,
            );
        }
        if document.claims[..place].iter().any(|other| other.id == *id) {
            reader.add(
                "id",
                id,
                "",
                &format!("`{id}` occurs twice"),
                "number each claim once".into(),
            );
        }
        reader.claim(claim);
    }
}

struct Reader<'a> {
    document: &'a Document,
    file: &'a str,
    text: &'a str,
    catalog: &'a Catalog,
    faults: &'a mut Vec<Fault>,
}

impl Reader<'_> {
    /// Finds the fault at the text `at`, not before the entry named by `after`.
    fn add(&mut self, key: &str, after: &str, at: &str, what: &str, mend: String) {
        let start = self.text.find(&format!("\"{after}\"")).unwrap_or(0);
        let at = self.text[start..].find(at).map_or(start, |at| start + at);
        let line = self.text[..at].matches('\n').count() + 1;
        let (file, key) = (self.file.into(), format!("{key} of {after}"));
        self.faults.push(Fault {
            file,
            key,
            what: format!("{what} (line {line})"),
            mend,
        });
    }

    fn rows(&mut self) {
        for (name, row) in &self.document.rows {
            let allocators = self
                .catalog
                .allocators
                .iter()
                .map(|allocator| &allocator.name);
            let programs = self
                .catalog
                .workloads
                .iter()
                .flat_map(|workload| &workload.rows)
                .map(|row| &row.name);
            let known: Vec<&String> = allocators.chain(programs).collect();
            let found = row
                .ours
                .iter()
                .any(|pattern| known.iter().any(|name| matches(pattern, name)));
            if !row.brought && !found {
                let what = format!(
                    "no allocator and no program's row is called `{}`",
                    row.ours.join("` or `")
                );
                self.add(
                    "ours",
                    name,
                    "",
                    &what,
                    "mend the name, or say `brought = true`".into(),
                );
            }
            row.workload
                .iter()
                .for_each(|workload| self.workload("workload", name, workload));
        }
    }

    fn figure(&mut self, figure: &Figure) {
        self.workload("workload", &figure.title, &figure.workload);
        let columns = figure.threads.len() * figure.measures.len();
        for row in &figure.rows {
            self.row("row", &figure.title, &row.row);
            if row.values.len() != columns {
                let what = format!(
                    "`{}` has {} values for {columns} columns",
                    row.row,
                    row.values.len()
                );
                self.add(
                    "values",
                    &figure.title,
                    &format!("row = \"{}\"", row.row),
                    &what,
                    "give one for each thread count and measure".into(),
                );
            }
        }
        if !figure.rows.iter().any(|row| row.row == figure.reference) {
            let what = format!("`{}` is no row of the table", figure.reference);
            self.add(
                "reference",
                &figure.title,
                "reference",
                &what,
                "name one that is".into(),
            );
        }
    }

    fn claim(&mut self, claim: &Claim) {
        claim
            .workloads
            .iter()
            .for_each(|workload| self.workload("workloads", &claim.id, workload));
        if claim.workloads.is_empty() || claim.checks.is_empty() {
            self.add(
                "checks",
                &claim.id,
                "checks",
                "nothing would be looked at",
                "give it workloads and checks".into(),
            );
        }
        for check in &claim.checks {
            check
                .rows()
                .into_iter()
                .for_each(|row| self.row("checks", &claim.id, row));
            check
                .workloads()
                .into_iter()
                .for_each(|workload| self.workload("checks", &claim.id, workload));
            let own = check
                .at()
                .workloads
                .as_ref()
                .unwrap_or(&claim.workloads)
                .len();
            if let Some(paired) = check.paired().filter(|paired| paired.len() != own) {
                let what = format!("{} workloads beside {own}", paired.len());
                self.add(
                    "checks",
                    &claim.id,
                    "checks",
                    &what,
                    "name one for each".into(),
                );
            }
        }
        for distribution in &claim.distributions {
            for workload in claim
                .workloads
                .iter()
                .filter_map(|name| find(self.catalog, name))
            {
                if let Err(why) = workload.value("distribution", distribution) {
                    self.add(
                        "distributions",
                        &claim.id,
                        "distributions",
                        &why,
                        "name what its workloads can have".into(),
                    );
                }
            }
        }
    }

    fn workload(&mut self, key: &str, after: &str, name: &str) {
        if find(self.catalog, name).is_none() {
            let mend = near(
                name,
                self.catalog
                    .workloads
                    .iter()
                    .map(|workload| workload.name.as_str()),
            );
            let mend = mend.unwrap_or_else(|| "see `heapmark list workloads`".into());
            self.add(
                key,
                after,
                &format!("\"{name}\""),
                &format!("there is no workload `{name}`"),
                mend,
            );
        }
    }

    fn row(&mut self, key: &str, after: &str, name: &str) {
        if !self.document.rows.contains_key(name) {
            let mend = near(name, self.document.rows.keys().map(String::as_str));
            let mend = mend.unwrap_or_else(|| "add it to [rows]".into());
            self.add(
                key,
                after,
                &format!("\"{name}\""),
                &format!("the document has no row `{name}`"),
                mend,
            );
        }
    }
}

fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(name, known).map(|near| format!("did you mean `{near}`?"))
}

fn find<'a>(catalog: &'a Catalog, name: &str) -> Option<&'a Workload> {
    catalog
        .workloads
        .iter()
        .find(|workload| workload.name == name)
}

fn matches(pattern: &str, name: &str) -> bool {
    super::super::malloc_api::matches(pattern, name)
}
