//! Checks that the programs and allocators that a workload names exist and are of the right kind.

use super::allocator::Allocator;
use super::faults::{Fault, nearest};
use super::program::{Program, Serves};
use super::workload::{ProgramRow, Workload};

impl Workload {
    pub(super) fn check_names(
        &self,
        programs: &[Program],
        allocators: &[Allocator],
        faults: &mut Vec<Fault>,
    ) {
        let main = self.program.iter().map(|name| ("program", name, None));
        for (key, name, row) in main.chain(
            self.rows
                .iter()
                .map(|row| ("rows.program", &row.program, Some(row))),
        ) {
            let mut add = |key: &str, what: String, mend: String| {
                faults.push(Fault {
                    file: format!("workload {}", self.name),
                    key: key.into(),
                    what,
                    mend,
                });
            };
            if let Some(name) = row.and_then(|row: &ProgramRow| row.allocator.as_ref())
                && !allocators.iter().any(|allocator| allocator.name == *name)
            {
                let names = allocators.iter().map(|allocator| allocator.name.as_str());
                add(
                    "rows.allocator",
                    format!("there is no allocator `{name}`"),
                    mend(name, names, "allocators"),
                );
            }
            let Some(program) = programs.iter().find(|program| program.name == *name) else {
                let names = programs.iter().map(|program| program.name.as_str());
                add(
                    key,
                    format!("there is no program `{name}`"),
                    mend(name, names, "programs"),
                );
                continue;
            };
            if program.allocator == Serves::None {
                let what = format!("`{name}` has memory of its own: no allocator changes it");
                match row {
                    None => add(
                        key,
                        what,
                        "make it a row: `[[rows]]` with `name` and `program`".into(),
                    ),
                    Some(row) if row.allocator.is_some() => {
                        add(
                            "rows.allocator",
                            what,
                            format!("remove it from row {}", row.name),
                        );
                    }
                    Some(_) => {}
                }
            }
            let known = |word: &str| {
                self.parameters.contains_key(word)
                    || row.is_some_and(|row| row.parameters.contains_key(word))
            };
            for word in program.placeholders().filter(|word| !known(word)) {
                let mend = format!("give the row `parameters = {{ {word} = ... }}`");
                add(key, format!("`{name}` needs the parameter `{word}`"), mend);
            }
        }
    }
}

fn mend<'a>(name: &str, known: impl Iterator<Item = &'a str>, list: &str) -> String {
    nearest(name, known).map_or(format!("see `heapmark list {list}`"), |near| {
        format!("did you mean `{near}`?")
    })
}
