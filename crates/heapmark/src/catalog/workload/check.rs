//! The checks of a workload, each fault with its key and its remedy.

use super::{Iterations, Preset, Rounds, Workload, plain};
use crate::catalog::allocators::is_name;
use crate::catalog::faults::{Fault, nearest};
use crate::catalog::time;

/// Takes a fault: its key, the fault, its remedy.
type Add<'a> = &'a mut dyn FnMut(String, &str, String);

impl Workload {
    pub(super) fn check(&self, file: &str, faults: &mut Vec<Fault>) {
        let mut add = |key: String, what: &str, mend: String| {
            faults.push(Fault {
                file: file.into(),
                key: format!("{}: {key}", self.name),
                what: what.into(),
                mend,
            });
        };
        self.check_rows(&mut add);
        self.check_kernel(&mut add);
        if let Some(Err(why)) = self.series.as_deref().map(time::interval) {
            add("series".into(), &why, "mend the value".into());
        }
        self.check_presets(&mut add);
    }

    fn check_rows(&self, add: Add) {
        match (&self.kernel, &self.program) {
            (None, None) if self.rows.is_empty() => {
                add(
                    "kernel".into(),
                    "nothing runs it",
                    "add `kernel`, `program` or `[[rows]]`".into(),
                );
            }
            (Some(_), Some(_)) => add(
                "program".into(),
                "has a kernel, too",
                "keep one of the two".into(),
            ),
            _ => {}
        }
        for row in &self.rows {
            let twice = self
                .rows
                .iter()
                .filter(|other| other.name == row.name)
                .count()
                > 1;
            let known = |c: char| c.is_ascii_alphanumeric() || "-_.+:()# ".contains(c);
            if twice || row.name.is_empty() || !row.name.chars().all(known) {
                let mend = "use letters, digits, spaces and `-_.+:()#`, each name once".into();
                add(
                    "rows.name".into(),
                    &format!("`{}` cannot name a row", row.name),
                    mend,
                );
            } else if is_name(&row.name) {
                let mend = "give it a capital letter, a space or a colon".into();
                add(
                    "rows.name".into(),
                    &format!("`{}` could be an allocator's name", row.name),
                    mend,
                );
            }
        }
    }

    fn check_kernel(&self, add: Add) {
        match self
            .kernel
            .as_deref()
            .map(|name| (name, heapmark_guest::kernels::find(name)))
        {
            None => {}
            Some((kernel, None)) => {
                let known = || {
                    heapmark_guest::kernels::ALL
                        .iter()
                        .map(|kernel| kernel.name)
                };
                let mend = nearest(kernel, known()).map(|near| format!("did you mean `{near}`?"));
                let mend = mend.unwrap_or_else(|| {
                    format!("use one of {}", known().collect::<Vec<_>>().join(", "))
                });
                add(
                    "kernel".into(),
                    &format!("there is no kernel `{kernel}`"),
                    mend,
                );
            }
            Some((_, Some(kernel))) => {
                let derived = self.parameters.contains_key("distribution");
                let missing = |name: &&&str| {
                    !(self.parameters.contains_key(**name) || derived && **name == "classes")
                };
                for name in kernel.parameters.iter().filter(missing) {
                    let mend = format!("add `[parameters.{name}]`");
                    add(
                        format!("parameters.{name}"),
                        "missing, and the kernel needs it",
                        mend,
                    );
                }
            }
        }
    }

    fn check_presets(&self, add: Add) {
        for preset in ["quick", "paper"]
            .iter()
            .filter(|preset| !self.presets.contains_key(**preset))
        {
            add(
                format!("presets.{preset}"),
                "missing",
                "every workload has the presets `quick` and `paper`".into(),
            );
        }
        for (preset, values) in &self.presets {
            self.check_rounds(preset, add);
            let key = |name: &str| format!("presets.{preset}.parameters.{name}");
            for name in self
                .parameters
                .keys()
                .filter(|name| !values.parameters.contains_key(*name))
            {
                add(key(name), "no value", "give it one".into());
            }
            for (name, value) in &values.parameters {
                if let Err(why) = self.value(name, &plain(value)) {
                    add(key(name), &why, "mend the value".into());
                }
            }
            if let Some(Err(why)) = self.values(preset).and_then(|values| self.threads(&values)) {
                add(
                    "threads".into(),
                    &why,
                    "name parameters that are numbers".into(),
                );
            }
        }
    }

    /// Reused memory is another experiment, which needs a name of its own.
    fn check_rounds(&self, preset: &str, add: Add) {
        let Preset {
            cold, iterations, ..
        } = self.presets[preset];
        let (what, mend) = match self.rounds {
            Rounds::First if cold > 0 => (
                "discards the first round, which is what the workload is about",
                "0",
            ),
            Rounds::First if iterations != Iterations::Fixed(1) => {
                ("measures rounds that reuse memory", "1")
            }
            Rounds::Reuse if cold == 0 => ("measures the first round, which reuses nothing", "1"),
            _ => return,
        };
        let key = if what.starts_with("measures rounds") {
            "iterations"
        } else {
            "cold"
        };
        let mend = format!(
            "make it {mend}, or say `rounds = \"reuse\"` (`continued` if each goes on where the last one ended)"
        );
        add(format!("presets.{preset}.{key}"), what, mend);
    }
}
