//! Checks that the programs and allocators that a workload names exist and are of the right kind.

use super::faults::{Fault, suggestion};
use super::program::{Program, Serves};
use super::workload::{ProgramRow, Workload};

impl Workload {
    pub(super) fn check_names(
        &self,
        programs: &[Program],
        allocators: &[super::allocator::Allocator],
        faults: &mut Vec<Fault>,
    ) {
        let mut add = |key: &str, what: String, mend: String| {
            faults.push(Fault::new(
                format!("workload {}", self.name),
                key,
                what,
                mend,
            ));
        };
        let main = self.program.iter().map(|name| ("program", name, None));
        let rows = self.rows.iter();
        for (key, name, row) in
            main.chain(rows.map(|row| ("rows.program", &row.program, Some(row))))
        {
            if let Some(name) = row.and_then(|row: &ProgramRow| row.allocator.as_ref())
                && !allocators.iter().any(|allocator| allocator.name == *name)
            {
                let names = allocators.iter().map(|allocator| allocator.name.as_str());
                add(
                    "rows.allocator",
                    format!("there is no allocator `{name}`"),
                    suggestion(name, names, "see `heapmark list allocators`"),
                );
            }
            let Some(program) = programs.iter().find(|program| program.name == *name) else {
                let names = programs.iter().map(|program| program.name.as_str());
                add(
                    key,
                    format!("there is no program `{name}`"),
                    suggestion(name, names, "see `heapmark list languages`"),
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
                    Some(row) if row.allocator.is_some() => add(
                        "rows.allocator",
                        what,
                        format!("remove it from row {}", row.name),
                    ),
                    Some(_) => {}
                }
            }
            let known = |word: &str| {
                self.parameters.contains_key(word)
                    || row.is_some_and(|row| row.parameters.contains_key(word))
            };
            for word in program.placeholders().filter(|word| !known(word)) {
                add(
                    key,
                    format!("`{name}` needs the parameter `{word}`"),
                    format!("give the row `parameters = {{ {word} = ... }}`"),
                );
            }
        }
    }
}
