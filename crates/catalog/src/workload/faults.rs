//! Checks the definition of a workload, and reports each fault with its key and its remedy.

use super::{Better, Iterations, Preset, Rounds, Workload};
use crate::faults::{Fault, suggestion};
use heapmark_guest::kernels;

/// A function that takes a fault's key, its description and its remedy.
type Add<'a> = &'a mut dyn FnMut(&str, &str, &str);

impl Workload {
    pub(super) fn check(&self, file: &str, faults: &mut Vec<Fault>) {
        let mut add = |key: &str, what: &str, mend: &str| {
            faults.push(Fault::new(
                file,
                format!("{}: {key}", self.name),
                what,
                mend,
            ));
        };
        self.check_rows(&mut add);
        self.check_kernel(&mut add);
        if let Some(Err(why)) = self.series.as_deref().map(crate::time::interval) {
            add("series", &why, "mend the value");
        }
        self.check_figures(&mut add);
        self.check_presets(&mut add);
    }

    fn check_rows(&self, add: Add) {
        match (&self.kernel, &self.program) {
            (None, None) if self.rows.is_empty() => add(
                "kernel",
                "nothing runs it",
                "add `kernel`, `program` or `[[rows]]`",
            ),
            (Some(_), Some(_)) => add("program", "has a kernel, too", "keep one of the two"),
            _ => {}
        }
        for row in &self.rows {
            let name = &row.name;
            let twice = self.rows.iter().filter(|other| other.name == *name).count() > 1;
            let known = |c: char| c.is_ascii_alphanumeric() || "-_.+:()# ".contains(c);
            if twice || name.is_empty() || !name.chars().all(known) {
                add(
                    "rows.name",
                    &format!("`{name}` cannot name a row"),
                    "use letters, digits, spaces and `-_.+:()#`, each name once",
                );
            } else if crate::allocators::is_name(name) {
                add(
                    "rows.name",
                    &format!("`{name}` could be an allocator's name"),
                    "give it a capital letter, a space or a colon",
                );
            }
        }
    }

    fn check_kernel(&self, add: Add) {
        let Some(name) = &self.kernel else {
            return;
        };
        let Some(kernel) = kernels::find(name) else {
            let known: Vec<&str> = kernels::ALL.iter().map(|kernel| kernel.name).collect();
            let all = format!("use one of {}", known.join(", "));
            return add(
                "kernel",
                &format!("there is no kernel `{name}`"),
                &suggestion(name, known.into_iter(), all),
            );
        };
        let has = |name: &str| self.parameters.contains_key(name);
        for name in kernel.parameters {
            // Some parameters of a kernel are computed from another one, which the user chooses.
            let from = match *name {
                "classes" => "distribution",
                "lifetimes" => "model",
                name => name,
            };
            if !has(name) && !has(from) {
                add(
                    &format!("parameters.{name}"),
                    "missing, and the kernel needs it",
                    &format!("add `[parameters.{name}]`"),
                );
            }
        }
        // All other kernels have threads beside the main thread, whatever the job requests.
        if has("thread") && !kernel.parameters.contains(&"thread") {
            add(
                "parameters.thread",
                &format!("kernel `{name}` never works on the main thread alone"),
                "remove it",
            );
        }
    }

    /// Checks the figures by themselves; `metric::check` compares their names with those of other
    /// metrics.
    fn check_figures(&self, add: Add) {
        for figure in &self.figures {
            let key = format!("figures.{}", figure.key);
            let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            if figure.key.is_empty() || !figure.key.chars().all(known) {
                add(
                    &key,
                    "cannot name a figure",
                    "use lower-case letters, digits and `_`",
                );
            }
            if figure.judged && figure.better == Better::Neither {
                add(
                    &key,
                    "rows are judged by it, and neither direction is better",
                    "make `better` `lower` or `higher`, or remove `judged`",
                );
            }
        }
    }

    fn check_presets(&self, add: Add) {
        for preset in ["quick", "paper"] {
            if !self.presets.contains_key(preset) {
                add(
                    &format!("presets.{preset}"),
                    "missing",
                    "every workload has the presets `quick` and `paper`",
                );
            }
        }
        for (name, preset) in &self.presets {
            self.check_rounds(name, preset, add);
            let key = |parameter: &str| format!("presets.{name}.parameters.{parameter}");
            let values = &preset.parameters;
            for parameter in self.parameters.keys() {
                if !values.contains_key(parameter) {
                    add(&key(parameter), "no value", "give it one");
                }
            }
            for (parameter, value) in values {
                if let Err(why) = self.value(parameter, value) {
                    add(&key(parameter), &why, "mend the value");
                }
            }
            for (key, count) in [
                ("threads", self.threads(values)),
                ("at-once", self.at_once(values)),
            ] {
                if let Some(Err(why)) = count {
                    add(key, &why, "name parameters that are numbers");
                }
            }
        }
    }

    /// Checks the rounds: measuring reused memory is a different experiment, which needs a name of
    /// its own.
    fn check_rounds(&self, name: &str, preset: &Preset, add: Add) {
        let (key, what, mend) = match self.rounds {
            Rounds::First if preset.cold > 0 => (
                "cold",
                "discards the first round, which is what the workload is about",
                "0",
            ),
            Rounds::First if preset.iterations != Iterations::Fixed(1) => {
                ("iterations", "measures rounds that reuse memory", "1")
            }
            Rounds::Reuse if preset.cold == 0 => (
                "cold",
                "measures the first round, which reuses nothing",
                "1",
            ),
            _ => return,
        };
        let mend = format!(
            "make it {mend}, or say `rounds = \"reuse\"` (`continued` if each goes on where the last one ended)"
        );
        add(&format!("presets.{name}.{key}"), what, &mend);
    }
}
