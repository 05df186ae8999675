//! One workload as data: the keys of `workloads/*/*.toml`. Defaults live in these files only; kernels and programs have
//! none.

use super::allocators::is_name;
use super::did_you_mean;
use super::faults::{self, Fault, nearest};
use super::formula;
use super::parameter::Parameter;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A workload file: what runs it, its parameters, its presets, and variants under other values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    name: String,
    kernel: Option<String>,
    program: Option<String>,
    #[serde(default)]
    rows: Vec<Row>,
    document: String,
    section: String,
    about: String,
    shows: String,
    hides: String,
    operation: String,
    threads: Option<String>,
    series: Option<String>,
    caution: Option<String>,
    parameters: BTreeMap<String, Parameter>,
    presets: BTreeMap<String, Preset>,
    #[serde(default)]
    variants: Vec<Variant>,
}

/// Other values for some parameters, under a name of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Variant {
    name: String,
    about: String,
    operation: Option<String>,
    rows: Option<Vec<Row>>,
    #[serde(default)]
    presets: BTreeMap<String, BTreeMap<String, toml::Value>>,
}

/// What can be measured: a workload or a variant of one, with everything written out.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Name on the command line and in every table.
    pub name: String,
    /// The workload that it is a variant of.
    pub variant_of: Option<String>,
    /// The kernel that every allocator runs.
    pub kernel: Option<String>,
    /// Or the program that every allocator runs.
    pub program: Option<String>,
    /// Further rows of its tables, which no preloaded allocator changes.
    pub rows: Vec<Row>,
    /// Reference document: BT, MM, RP, ZA or LL.
    pub document: String,
    /// Section of the specification.
    pub section: String,
    /// What it does, in a line.
    pub about: String,
    /// What its numbers say.
    pub shows: String,
    /// What they do not say.
    pub hides: String,
    /// What one operation is.
    pub operation: String,
    /// Worker threads, where they follow from the parameters: a sum of products. `-t` says nothing to it then.
    pub threads: Option<String>,
    /// The interval of its memory over time, where that is always recorded.
    pub series: Option<String>,
    /// What nobody should read its table without.
    pub caution: Option<String>,
    /// Parameters by name.
    pub parameters: BTreeMap<String, Parameter>,
    /// Presets by name.
    pub presets: BTreeMap<String, Preset>,
}

/// A row of a table that is no allocator: a program with memory of its own, run once per block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Row {
    /// Its name in tables and cells: `PMDK:zalloc`.
    pub name: String,
    /// The program that runs it.
    pub program: String,
    /// What it is, in a line, where the name does not say it.
    #[serde(default)]
    pub about: String,
    /// The allocator that it always runs under; otherwise nothing is preloaded.
    pub allocator: Option<String>,
    /// Parameters of the program besides those of the workload, or with other values.
    #[serde(default, deserialize_with = "plain_values")]
    pub parameters: BTreeMap<String, String>,
    /// Set in the measured process, besides the program's own.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Figures that must have these values; otherwise the row is not what its name says, and has no number.
    #[serde(default)]
    pub expects: BTreeMap<String, f64>,
}

/// Values for all parameters, and how a process repeats the workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Preset {
    /// Warm-up iterations before the measured ones.
    pub cold: u32,
    /// Measured iterations of one process.
    pub iterations: Iterations,
    /// Value of every parameter.
    pub parameters: BTreeMap<String, toml::Value>,
}

/// Measured iterations of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Iterations {
    /// As many as fill the target time on the baseline.
    Calibrated(Calibrated),
    /// This many, as the reference document has it.
    Fixed(u32),
}

/// The word `calibrated`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calibrated {
    /// Found by a pilot process.
    Calibrated,
}

/// Reads one file into its workload and variants.
pub fn parse(file_name: &str, text: &str, faults: &mut Vec<Fault>) -> Vec<Workload> {
    let file: File = match faults::parse(file_name, text) {
        Ok(file) => file,
        Err(fault) => {
            faults.push(fault);
            return Vec::new();
        }
    };
    let main = Workload {
        name: file.name,
        variant_of: None,
        kernel: file.kernel,
        program: file.program,
        rows: file.rows,
        document: file.document,
        section: file.section,
        about: file.about,
        shows: file.shows,
        hides: file.hides,
        operation: file.operation,
        threads: file.threads,
        series: file.series,
        caution: file.caution,
        parameters: file.parameters,
        presets: file.presets,
    };
    let mut all = vec![main.clone()];
    for variant in file.variants {
        let mut workload =
            Workload { name: variant.name, about: variant.about, variant_of: Some(main.name.clone()), ..main.clone() };
        workload.operation = variant.operation.unwrap_or(workload.operation);
        workload.rows = variant.rows.unwrap_or(workload.rows);
        for (preset, values) in variant.presets {
            match workload.presets.get_mut(&preset) {
                Some(preset) => preset.parameters.extend(values),
                None => faults.push(Fault {
                    file: file_name.into(),
                    key: format!("variants.{}.presets.{preset}", workload.name),
                    what: "the workload itself has no such preset".into(),
                    mend: "add it to `presets`, or remove it here".into(),
                }),
            }
        }
        all.push(workload);
    }
    for workload in &all {
        workload.check(file_name, faults);
    }
    all
}

impl Workload {
    fn check(&self, file: &str, faults: &mut Vec<Fault>) {
        let mut add = |key: String, what: &str, mend: String| {
            faults.push(Fault { file: file.into(), key: format!("{}: {key}", self.name), what: what.into(), mend });
        };
        match (&self.kernel, &self.program) {
            (None, None) if self.rows.is_empty() => {
                add("kernel".into(), "nothing runs it", "add `kernel`, `program` or `[[rows]]`".into());
            }
            (Some(_), Some(_)) => add("program".into(), "has a kernel, too", "keep one of the two".into()),
            _ => {}
        }
        for row in &self.rows {
            let twice = self.rows.iter().filter(|other| other.name == row.name).count() > 1;
            let known = |c: char| c.is_ascii_alphanumeric() || "-_.+:()# ".contains(c);
            if twice || row.name.is_empty() || !row.name.chars().all(known) {
                let mend = "use letters, digits, spaces and `-_.+:()#`, each name once".into();
                add("rows.name".into(), &format!("`{}` cannot name a row", row.name), mend);
            } else if is_name(&row.name) {
                let mend = "give it a capital letter, a space or a colon".into();
                add("rows.name".into(), &format!("`{}` could be an allocator's name", row.name), mend);
            }
        }
        match self.kernel.as_deref().map(|name| (name, heapmark_guest::kernels::find(name))) {
            None => {}
            Some((kernel, None)) => {
                let known = || heapmark_guest::kernels::ALL.iter().map(|kernel| kernel.name);
                let mend = nearest(kernel, known()).map(|near| format!("did you mean `{near}`?"));
                let mend = mend.unwrap_or_else(|| format!("use one of {}", known().collect::<Vec<_>>().join(", ")));
                add("kernel".into(), &format!("there is no kernel `{kernel}`"), mend);
            }
            Some((_, Some(kernel))) => {
                let derived = self.parameters.contains_key("distribution");
                let missing = |name: &&&str| !(self.parameters.contains_key(**name) || derived && **name == "classes");
                for name in kernel.parameters.iter().filter(missing) {
                    let mend = format!("add `[parameters.{name}]`");
                    add(format!("parameters.{name}"), "missing, and the kernel needs it", mend);
                }
            }
        }
        if let Some(Err(why)) = self.series.as_deref().map(formula::interval) {
            add("series".into(), &why, "mend the value".into());
        }
        for preset in ["quick", "paper"].iter().filter(|preset| !self.presets.contains_key(**preset)) {
            add(format!("presets.{preset}"), "missing", "every workload has the presets `quick` and `paper`".into());
        }
        for (preset, values) in &self.presets {
            let key = |name: &str| format!("presets.{preset}.parameters.{name}");
            for name in self.parameters.keys().filter(|name| !values.parameters.contains_key(*name)) {
                add(key(name), "no value", "give it one".into());
            }
            for (name, value) in &values.parameters {
                if let Err(why) = self.value(name, &plain(value)) {
                    add(key(name), &why, "mend the value".into());
                }
            }
            if let Some(Err(why)) = self.values(preset).and_then(|values| self.threads(&values)) {
                add("threads".into(), &why, "name parameters that are numbers".into());
            }
        }
    }

    /// Whether `value` may stand in the parameter `name`.
    pub fn value(&self, name: &str, value: &str) -> Result<(), String> {
        let Some(parameter) = self.parameters.get(name) else {
            let hint = did_you_mean(name, self.parameters.keys().map(String::as_str));
            return Err(format!("workload {} has no parameter `{name}`{hint}", self.name));
        };
        parameter.accepts(value).map_err(|expected| format!("`{name}` = `{value}`: expected {expected}"))
    }

    /// The thread count that these parameters imply; `None` where it is free.
    pub fn threads(&self, values: &BTreeMap<String, String>) -> Option<Result<u32, String>> {
        let formula = self.threads.as_deref()?;
        let threads = formula::evaluate(formula, |name| values.get(name)?.parse().ok());
        Some(threads.and_then(|threads| match u32::try_from(threads) {
            Ok(threads @ 1..=4096) => Ok(threads),
            _ => Err(format!("{threads} threads: from 1 to 4096 are possible")),
        }))
    }

    /// The parameters of a preset, written out.
    pub fn values(&self, preset: &str) -> Option<BTreeMap<String, String>> {
        let preset = self.presets.get(preset)?;
        Some(preset.parameters.iter().map(|(name, value)| (name.clone(), plain(value))).collect())
    }
}

/// Values that may be written without quotes.
fn plain_values<'de, D: serde::Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let values = BTreeMap::<String, toml::Value>::deserialize(from)?;
    Ok(values.iter().map(|(name, value)| (name.clone(), plain(value))).collect())
}

/// A TOML value without quotes, as kernels and command lines write it.
fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        let mut faults = Vec::new();
        parse("x.toml", text, &mut faults);
        faults::Faults(faults).to_string()
    }

    const CHURN: &str = include_str!("../../../../workloads/llheap/churn.toml");

    #[test]
    fn variants_take_what_they_do_not_change_from_their_workload() {
        let mut faults = Vec::new();
        let all = parse("x.toml", CHURN, &mut faults);
        assert_eq!(faults, []);
        let private = &all[1];
        assert_eq!((private.name.as_str(), private.kernel.as_deref()), ("churn-private", Some("churn")));
        let values = private.values("quick").unwrap();
        assert_eq!((values["sharing"].as_str(), values["objects"].as_str()), ("private", "100000"));
    }

    #[test]
    fn rows_of_programs_may_stand_alone_and_a_variant_may_have_others_or_none() {
        let rows = "[[rows]]\nname = \"PMDK:zalloc\"\nprogram = \"zalloc-pmdk\"\n";
        let alone = CHURN
            .replace("kernel = \"churn\"\n", "")
            .replace("[parameters.spots]", &format!("{rows}[parameters.spots]"));
        let mut faults = Vec::new();
        let all = parse("x.toml", &alone, &mut faults);
        assert_eq!(faults, []);
        assert_eq!((all[0].kernel.as_ref(), all[0].rows.len(), all[1].rows.len()), (None, 1, 1));
        let none = alone.replace("name = \"churn-private\"", "name = \"churn-private\"\nrows = []");
        assert!(problems(&none).contains("churn-private: kernel: nothing runs it"));
        assert!(problems(&alone.replace("PMDK:zalloc", "pmdk")).contains("could be an allocator's name"));
        assert!(problems(&alone.replace("PMDK:zalloc", "PMDK/zalloc")).contains("cannot name a row"));
        assert!(
            problems(&alone.replace("about = \"all", "kernel = \"churn\"\nprogram = \"x\"\nabout = \"all"))
                .contains("keep one")
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        assert!(problems(&CHURN.replace("kernel = \"churn\"", "kernel = \"chrun\"")).contains("did you mean `churn`"));
        assert!(problems(&CHURN.replace("step = 50", "stepp = 50")).contains("parameters.step: no value"));
        assert!(
            problems(&CHURN.replace("sharing = \"shared\"", "sharing = \"no\"")).contains("expected shared or private")
        );
        assert!(problems(&CHURN.replace("spots = 16", "spots = 0")).contains("1 or more"));
        assert!(
            problems(&CHURN.replace("[presets.paper]", "[presets.papers]")).contains("presets `quick` and `paper`")
        );
        assert!(problems(&CHURN.replace("hides =", "hide =")).contains("hide: unknown"));
        let with = |line: &str| problems(&CHURN.replace("hides =", &format!("{line}\nhides =")));
        assert!(with("threads = \"spots * sharing\"").contains("`sharing` is no number"));
        assert!(with("threads = \"objects\"").contains("from 1 to 4096"));
        assert!(with("series = \"soon\"").contains("no interval"));
    }
}
