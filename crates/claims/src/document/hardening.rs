//! What documents claim about the hardening of allocators: the keys of `claims/hardening/*.toml`,
//! and their consistency. Defines which checks show a feature; only a result shows whether they do.

use super::data::fault_at;
use heapmark_check::definition::{Check, Form, MisuseOutcome};
use heapmark_core::catalog::Catalog;
use heapmark_core::catalog::faults::{self, Fault, Faults, suggestion};
use heapmark_core::catalog::folder;
use heapmark_core::catalog::malloc_api::matches;
use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

static HARDENING: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../claims/hardening");

/// A document that says how allocators are hardened.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HardeningDocument {
    /// The file's name: `isoalloc`.
    #[serde(skip)]
    pub name: String,
    /// The document's short name, a prefix of the numbers of its claims: `IA`.
    pub short: String,
    /// The document's title.
    pub title: String,
    /// The address of the document.
    pub source: String,
    /// The document's version or commit.
    pub version: String,
    /// When the document was written, or read if that is not known.
    pub date: String,
    /// A remark for readers of the document's claims.
    pub remark: Option<String>,
    /// The allocators that the document names.
    pub allocators: BTreeMap<String, NamedAllocator>,
    /// The features that the document claims.
    pub features: Vec<Feature>,
}

/// An allocator that a document names, and its entries in the catalogue.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedAllocator {
    /// Names or patterns of the allocator's entries in its default configuration; empty if we have
    /// none.
    #[serde(default)]
    pub ours: Vec<String>,
    /// Entries with the document's hardening switched on.
    #[serde(default)]
    pub configured: Vec<String>,
    /// Set if the catalogue has no such allocator: users supply it under one of the names in
    /// `ours`.
    #[serde(default)]
    pub brought: bool,
}

/// Something that a document claims about allocators, in our words, and what shows it.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Feature {
    /// The feature's name, mostly the document's.
    pub name: String,
    /// What an allocator with the feature does.
    pub says: String,
    /// The claim about each allocator; no entry if the document leaves it open.
    pub claimed: BTreeMap<String, Claimed>,
    /// The entries that have this feature switched on, if they are not those in the allocator's
    /// `configured`.
    #[serde(default)]
    pub with: BTreeMap<String, Vec<String>>,
    /// The signs that show the feature.
    #[serde(default)]
    pub shown_by: Vec<Sign>,
    /// How many of the signs are needed to show the feature.
    #[serde(default)]
    pub needs: Signs,
    /// Why no check shows the feature, if none does.
    pub no_check: Option<String>,
    /// Why an allocator without the feature may look as if it had the feature.
    pub also_without: Option<String>,
    /// Why an allocator with the feature may not look as if it had the feature.
    pub also_with: Option<String>,
}

/// A claim about an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claimed {
    /// The allocator has the feature.
    Yes,
    /// The allocator has the feature if it is configured so.
    Option,
    /// The allocator has the feature in functions of its own.
    Interface,
    /// The allocator does not have the feature.
    No,
}

impl Claimed {
    /// The claim in words.
    pub fn words(self) -> &'static str {
        match self {
            Claimed::Yes => "has it",
            Claimed::Option => "has it as an option",
            Claimed::Interface => "has it by functions of its own",
            Claimed::No => "lacks it",
        }
    }
}

/// How many signs show a feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signs {
    /// Each cell of each sign.
    #[default]
    All,
    /// One cell of any of the signs.
    Any,
}

/// The cells of a check, and what they look like under an allocator that has the feature.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sign {
    /// The check's name.
    pub check: String,
    /// The block sizes of the cells that count; empty for all.
    #[serde(default)]
    pub sizes: Vec<u64>,
    /// The forms of the cells that count; empty for all.
    #[serde(default)]
    pub forms: Vec<Form>,
    /// The outcomes that show the feature.
    #[serde(default)]
    pub outcomes: Vec<MisuseOutcome>,
    /// The name of a value that shows the feature, in place of outcomes.
    pub value: Option<String>,
    /// The words that the named value may be.
    #[serde(default)]
    pub is: Vec<String>,
    /// The least that the named value's largest number may be, in place of words.
    pub at_least: Option<f64>,
    /// The most that the named value's largest number may be, in place of words.
    pub at_most: Option<f64>,
    /// Whether one process in many is enough, since chance decides.
    #[serde(default)]
    pub by_chance: bool,
}

impl HardeningDocument {
    /// Reads the documents that the binary carries, with the user's on top, in the order of their
    /// names.
    pub fn load(catalog: &Catalog, checks: &[Check]) -> Result<Vec<HardeningDocument>, Faults> {
        let mut faults = Vec::new();
        let texts = folder::texts(&HARDENING, "claims/hardening", &mut faults);
        let documents = texts
            .iter()
            .filter_map(|(file, text)| parse(file, text, catalog, checks, &mut faults))
            .collect();
        faults::none(faults)?;
        Ok(documents)
    }

    /// The number of a feature: `IA-7`.
    pub fn id(&self, place: usize) -> String {
        format!("{}-{}", self.short, place + 1)
    }

    /// The entries that a claim is about. An entry with an option switched on has all other
    /// features, too.
    pub fn entries<'a>(&'a self, feature: &'a Feature, allocator: &str) -> Vec<&'a str> {
        let Some(named) = self.allocators.get(allocator) else {
            return Vec::new();
        };
        let ours = match feature.claimed.get(allocator) {
            Some(Claimed::Option) => &[][..],
            _ => named.ours.as_slice(),
        };
        let configured = feature.with.get(allocator).unwrap_or(&named.configured);
        ours.iter().chain(configured).map(String::as_str).collect()
    }

    /// Why an entry that does not show a feature does not contradict the claim.
    pub fn also_with<'a>(&self, feature: &'a Feature, allocator: &str) -> Option<&'a str> {
        let is_option = feature.claimed.get(allocator) == Some(&Claimed::Option);
        match is_option && !feature.with.contains_key(allocator) {
            true => Some("not seen, but which option it is the document does not say"),
            false => feature.also_with.as_deref(),
        }
    }
}

impl Sign {
    /// Whether the sign is about cells of this size and form.
    pub fn covers(&self, size_bytes: u64, form: Form) -> bool {
        (self.sizes.is_empty() || self.sizes.contains(&size_bytes))
            && (self.forms.is_empty() || self.forms.contains(&form))
    }
}

/// Reads the file of a document.
fn parse(
    file: &str,
    text: &str,
    catalog: &Catalog,
    checks: &[Check],
    faults: &mut Vec<Fault>,
) -> Option<HardeningDocument> {
    let name = Path::new(file).file_stem()?.to_string_lossy().into_owned();
    let mut document: HardeningDocument = faults::read(file, text, faults)?;
    document.name = name;
    let mut checker = HardeningChecker {
        document: &document,
        file,
        text,
        catalog,
        checks,
        faults,
    };
    checker.check();
    Some(document)
}

/// A document, what it is checked against, and the faults so far. An unknown name would make a
/// claim untestable for ever.
struct HardeningChecker<'a> {
    document: &'a HardeningDocument,
    file: &'a str,
    text: &'a str,
    catalog: &'a Catalog,
    checks: &'a [Check],
    faults: &'a mut Vec<Fault>,
}

impl HardeningChecker<'_> {
    fn check(&mut self) {
        let document = self.document;
        for (name, allocator) in &document.allocators {
            if !allocator.brought {
                self.entries("allocators", name, &allocator.ours);
                self.entries("allocators", name, &allocator.configured);
            }
        }
        for (place, feature) in document.features.iter().enumerate() {
            let name = &feature.name;
            if document.features[..place]
                .iter()
                .any(|other| other.name == *name)
            {
                let what = format!("`{name}` occurs twice");
                self.add("name", name, "", &what, "name each feature once");
            }
            self.feature(feature);
        }
    }

    fn feature(&mut self, feature: &Feature) {
        let name = &feature.name;
        let known = self.document.allocators.keys().map(String::as_str);
        for allocator in feature.claimed.keys().chain(feature.with.keys()) {
            if !known.clone().any(|key| key == allocator) {
                let what = format!("the document has no allocator `{allocator}`");
                let mend = suggestion(allocator, known.clone(), "add it to [allocators]");
                self.add("claimed", name, allocator, &what, &mend);
            }
        }
        for (allocator, entries) in &feature.with {
            let named = self.document.allocators.get(allocator);
            if named.is_none_or(|named| !named.brought) {
                self.entries("with", name, entries);
            }
        }
        if feature.shown_by.is_empty() != feature.no_check.is_some() {
            let what = "it needs either checks or a reason why there is none";
            let mend = "set one of `shown-by` and `no-check`";
            self.add("shown-by", name, "", what, mend);
        }
        for sign in &feature.shown_by {
            self.sign(name, sign);
        }
    }

    fn sign(&mut self, feature: &str, sign: &Sign) {
        let checks = self.checks.iter().filter(|check| check.is_wrong());
        let Some(check) = checks.clone().find(|check| check.name == sign.check) else {
            let what = format!("there is no check of hardening `{}`", sign.check);
            let known = checks.map(|check| check.name.as_str());
            let mend = suggestion(&sign.check, known, "see docs/CHECK.md");
            return self.add("shown-by", feature, &sign.check, &what, &mend);
        };
        let cells = check.cells(true);
        let has = |size: Option<u64>, form: Option<Form>| {
            let is_it = |cell: &(u64, Form)| {
                size.is_none_or(|size| size == cell.0) && form.is_none_or(|form| form == cell.1)
            };
            cells.iter().any(is_it)
        };
        let sizes = sign.sizes.iter().filter(|size| !has(Some(**size), None));
        let sizes = sizes.map(|size| format!("{size} bytes"));
        let forms = sign.forms.iter().filter(|form| !has(None, Some(**form)));
        let forms = forms.map(Form::to_string);
        let value = sign.value.iter().filter(|value| !check.notes(value));
        let value = value.map(|value| format!("value `{value}`"));
        let missing: Vec<String> = sizes.chain(forms).chain(value).collect();
        for missing in missing {
            let what = format!("{} has no {missing}", sign.check);
            let mend = format!("see checks/hardening/{}.c", sign.check);
            self.add("shown-by", feature, &sign.check, &what, &mend);
        }
        let compares = !sign.is.is_empty() || sign.at_least.is_some() || sign.at_most.is_some();
        if sign.value.is_some() != compares || (sign.outcomes.is_empty() && sign.value.is_none()) {
            let what = format!("nothing of {} would be looked at", sign.check);
            let mend = "set `outcomes`, or `value` and one of `is`, `at-least` and `at-most`";
            self.add("shown-by", feature, &sign.check, &what, mend);
        }
    }

    fn entries(&mut self, key: &str, after: &str, patterns: &[String]) {
        let known = self
            .catalog
            .allocators
            .iter()
            .map(|allocator| allocator.name.as_str());
        for pattern in patterns {
            if !known.clone().any(|name| matches(pattern, name)) {
                let what = format!("there is no allocator `{pattern}`");
                let mend = suggestion(pattern, known.clone(), "see `heapmark list allocators`");
                self.add(key, after, &format!("\"{pattern}\""), &what, &mend);
            }
        }
    }

    fn add(&mut self, key: &str, after: &str, at: &str, what: &str, mend: &str) {
        let key = format!("{key} of {after}");
        let place = (after, at);
        self.faults
            .push(fault_at(self.file, self.text, place, key, what, mend));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapmark_check::definition;

    const ENTRY: &str = r#"
short = "XX"
title = "a page"
source = "example.org"
version = "1"
date = "2020"

[allocators]
"glc" = { ours = ["glibc"], configured = ["glibc-perturb"] }
"own" = { ours = ["mine"], brought = true }
"far" = {}

[[features]]
name = "double free"
says = "noticed at once"
claimed = { glc = "yes", own = "no", far = "option" }
shown-by = [{ check = "double-free", sizes = [24], outcomes = ["stopped"] }]

[[features]]
name = "wiping"
says = "old bytes are gone"
claimed = { glc = "option" }
shown-by = [{ check = "uaf-read", value = "old bytes", at-most = 10 }]

[[features]]
name = "sealing"
says = "its state is read-only"
claimed = { glc = "interface" }
no-check = "no check looks at it"
"#;

    fn read(text: &str) -> (Option<HardeningDocument>, String) {
        let catalog = Catalog::load().unwrap();
        let mut faults = Vec::new();
        let checks = definition::all().unwrap();
        let file = "claims/hardening/xx.toml";
        let document = parse(file, text, &catalog, &checks, &mut faults);
        (document, Faults(faults).to_string())
    }

    #[test]
    fn a_claim_is_about_the_entries_that_have_what_it_says() {
        let (document, faults) = read(ENTRY);
        let document = document.unwrap();
        assert_eq!(faults, "");
        let of =
            |place: usize, allocator: &str| document.entries(&document.features[place], allocator);
        assert_eq!(of(0, "glc"), ["glibc", "glibc-perturb"]);
        assert_eq!(of(1, "glc"), ["glibc-perturb"]);
        assert!(of(0, "far").is_empty());
        assert_eq!(document.id(1), "XX-2");
    }

    #[test]
    fn what_is_unknown_is_refused_with_file_and_line() {
        for (old, new, says) in [
            (
                "check = \"double-free\"",
                "check = \"duoble-free\"",
                "no check of hardening `duoble-free` (line 17); did you mean `double-free`?",
            ),
            (
                "\"glibc\"]",
                "\"gilbc\"]",
                "no allocator `gilbc` (line 9); did you mean `glibc`?",
            ),
            (
                "\"stopped\"",
                "\"stoped\"",
                "stoped: unknown (line 17); did you mean `stopped`?",
            ),
            (
                "own = \"no\"",
                "won = \"no\"",
                "no allocator `won` (line 16); did you mean `own`?",
            ),
            (
                "own = \"no\"",
                "own = \"not\"",
                "not: unknown (line 16); did you mean `no`?",
            ),
            (
                "sizes = [24]",
                "sizes = [25]",
                "double-free has no 25 bytes (line 17)",
            ),
            (
                "\"old bytes\"",
                "\"odd bytes\"",
                "uaf-read has no value `odd bytes` (line 23)",
            ),
            (
                ", at-most = 10",
                "",
                "nothing of uaf-read would be looked at (line 23)",
            ),
            (
                "no-check = \"no check looks at it\"",
                "",
                "either checks or a reason why there is none (line 26)",
            ),
            (
                "name = \"wiping\"",
                "name = \"double free\"",
                "`double free` occurs twice",
            ),
            (
                "says = \"noticed",
                "say = \"noticed",
                "say: unknown (line 15); did you mean `says`?",
            ),
        ] {
            assert!(ENTRY.contains(old), "{old}");
            let (_, found) = read(&ENTRY.replace(old, new));
            let file = found.starts_with("claims/hardening/xx.toml: ");
            assert!(found.contains(says) && file, "{new}: {found}");
        }
    }

    #[test]
    fn the_table_of_isoalloc_is_whole_and_most_of_it_has_a_check() {
        let checks = definition::all().unwrap();
        let documents = HardeningDocument::load(&Catalog::load().unwrap(), &checks).unwrap();
        let table = documents
            .iter()
            .find(|document| document.name == "isoalloc")
            .unwrap();
        assert_eq!((table.features.len(), table.allocators.len()), (24, 10));
        let features = table.features.iter();
        let with_check = features
            .filter(|feature| !feature.shown_by.is_empty())
            .count();
        assert!(with_check >= 15, "{with_check}");
        for document in &documents {
            for feature in &document.features {
                assert!(!feature.claimed.is_empty(), "{}", feature.name);
            }
        }
    }
}
