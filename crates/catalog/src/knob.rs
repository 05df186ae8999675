//! Settings of allocators that are worth a try, as data: the tables `[[knobs]]` of `allocators/*.toml`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A setting of an allocator, and the values that are worth a try.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Knob {
    /// The knob's name: a variable's name, or a setting's name within a variable's list.
    pub name: String,
    /// The variable that is a list of settings; empty if the knob is a variable itself.
    #[serde(default)]
    pub list: String,
    /// The value that applies if the knob is not set, in words.
    pub default: String,
    /// Other values. Knobs of a bundle are set together, first with the first value of each, then
    /// with the second ones.
    pub values: Vec<String>,
    /// The bundle, whose knobs are set together: one of them alone would not have the intended effect.
    pub bundle: String,
    /// The kind of the knob's values.
    pub kind: KnobKind,
    /// What the knob can change, if it has an effect.
    pub moves: Vec<Moved>,
    /// Whether the value that took effect can be read in a process.
    pub read_back: bool,
    /// The C call that sets the knob, with `{}` for the value.
    #[serde(default)]
    pub call: String,
}

/// The kind of a knob's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnobKind {
    /// A plain number, neither a time nor a size.
    #[default]
    Count,
    /// A time, in the allocator's own unit.
    Time,
    /// A size in bytes.
    Size,
    /// One of a few words.
    Switch,
}

/// What a knob may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moved {
    /// How long calls take, which no count shows.
    Time,
    /// Page faults.
    Faults,
    /// The peak of the resident set.
    Peak,
}

/// Returns the sign between a name and its value in a variable's list of settings, and the sign
/// between two settings; `None` for a variable that is one setting.
pub fn signs(variable: &str) -> Option<(char, char)> {
    match variable {
        "GLIBC_TUNABLES" | "SCUDO_OPTIONS" => Some(('=', ':')),
        // The list of jemalloc, whatever prefix the variable's name has.
        _ if variable.ends_with("MALLOC_CONF") => Some((':', ',')),
        _ => None,
    }
}

/// Returns the variables that make these settings.
pub fn variables<'k>(
    settings: impl IntoIterator<Item = (&'k Knob, &'k str)>,
) -> BTreeMap<String, String> {
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    for (knob, value) in settings {
        let Some((is, and)) = signs(&knob.list) else {
            variables.insert(knob.name.clone(), value.to_owned());
            continue;
        };
        let list = variables.entry(knob.list.clone()).or_default();
        if !list.is_empty() {
            list.push(and);
        }
        *list += &format!("{}{is}{value}", knob.name);
    }
    variables
}

/// Returns the faults in an entry's knobs: the knob, what is wrong with it, and how to mend that.
pub fn knob_faults(knobs: &[Knob]) -> Vec<(String, &'static str, &'static str)> {
    let mut faults = Vec::new();
    for (place, knob) in knobs.iter().enumerate() {
        let mut add = |what, mend| faults.push((knob.name.clone(), what, mend));
        let is_number = |value: &String| value.parse::<i64>().is_ok();
        if !knob.list.is_empty() && signs(&knob.list).is_none() {
            add(
                "`list` is no variable that holds a list of settings",
                "name GLIBC_TUNABLES, SCUDO_OPTIONS or one that ends with MALLOC_CONF",
            );
        }
        if knob.values.is_empty() || knob.moves.is_empty() {
            add("nothing to try", "name `values`, and what they can move");
        }
        if knob.kind != KnobKind::Switch && !knob.values.iter().all(is_number) {
            add(
                "a value is no number",
                "write a number, or kind = \"switch\"",
            );
        }
        let others = &knobs[..place];
        if others.iter().any(|other| other.name == knob.name) {
            add("two have this name", "write one with the values of both");
        }
        let is_uneven =
            |other: &Knob| other.bundle == knob.bundle && other.values.len() != knob.values.len();
        if others.iter().any(is_uneven) {
            add(
                "another number of values than the rest of its bundle has",
                "give each knob of the bundle a value for each try",
            );
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(name: &str, list: &str, values: &[&str]) -> Knob {
        Knob {
            name: name.into(),
            list: list.into(),
            values: values.iter().map(ToString::to_string).collect(),
            bundle: "b".into(),
            moves: vec![Moved::Time],
            ..Knob::default()
        }
    }

    #[test]
    fn settings_of_one_list_stand_in_one_variable() {
        let [a, b] = ["glibc.malloc.top_pad", "glibc.malloc.arena_max"]
            .map(|name| knob(name, "GLIBC_TUNABLES", &["1"]));
        let jemalloc = ["narenas", "tcache"].map(|name| knob(name, "_RJEM_MALLOC_CONF", &["1"]));
        let rate = knob("TCMALLOC_RELEASE_RATE", "", &["1"]);
        let [c, d] = &jemalloc;
        let all = variables([(&a, "1"), (&b, "2"), (c, "3"), (d, "false"), (&rate, "5")]);
        let all: Vec<(&str, &str)> = all
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        assert_eq!(
            all,
            [
                (
                    "GLIBC_TUNABLES",
                    "glibc.malloc.top_pad=1:glibc.malloc.arena_max=2"
                ),
                ("TCMALLOC_RELEASE_RATE", "5"),
                ("_RJEM_MALLOC_CONF", "narenas:3,tcache:false"),
            ]
        );
    }

    #[test]
    fn a_bundle_has_as_many_values_of_each_and_numbers_where_they_are_meant() {
        let good = [knob("a", "", &["1", "2"]), knob("b", "", &["3", "4"])];
        assert_eq!(knob_faults(&good), []);
        let bad = [
            knob("a", "", &["1", "x"]),
            knob("a", "", &["3"]),
            knob("c", "", &[]),
            knob("d", "OPTIONS", &["1", "2"]),
        ];
        let faults = knob_faults(&bad);
        let found: Vec<&str> = faults.iter().map(|(_, what, _)| *what).collect();
        let uneven = "another number of values than the rest of its bundle has";
        assert_eq!(
            found,
            [
                "a value is no number",
                "two have this name",
                uneven,
                "nothing to try",
                uneven,
                "`list` is no variable that holds a list of settings",
                uneven
            ]
        );
    }
}
