//! Holds the order of the core's stages: a stage uses only stages to its left in
//! `execute < store < metric < analyse < session, report < cmd`. Catalogue, builds, plans and observations are crates below it, features
//! are crates above it, of which only `claims` and `tune` use another one, and nothing of the host enters the guest. Reads the sources as
//! text.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Stages of one step do not know each other.
const LADDER: [&[&str]; 6] = [
    &["execute"],
    &["store"],
    &["metric"],
    &["analyse"],
    &["session", "report"],
    &["cmd"],
];

/// Crates below and a module of one, with the same paths here.
const BELOW: [&str; 5] = ["file", "catalog", "build", "plan", "observe"];

/// The crates of the host. Cargo refuses that one of the first uses a later one that uses it.
pub const HOST: [&str; 13] = [
    "catalog", "build", "plan", "observe", "core", "check", "capture", "pool", "history", "which",
    "tune", "claims", "heapmark",
];

/// Crates of features, each with the features that it may use.
const FEATURES: [(&str, &[&str]); 7] = [
    ("check", &[]),
    ("capture", &[]),
    ("pool", &[]),
    ("history", &[]),
    ("which", &[]),
    ("tune", &["which"]),
    ("claims", &["check"]),
];

fn step(module: &str) -> Option<usize> {
    LADDER.iter().position(|step| step.contains(&module))
}

/// Modules that stand behind `crate::`: in a path, or in the braces of `use crate::{…}`.
fn uses(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let code = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    for (at, start) in code.match_indices("crate::") {
        // `$crate` and `my_crate` are other words.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + start.len()..];
        found.extend(
            rest.strip_prefix('{')
                .map_or_else(|| vec![name(rest)], heads),
        );
    }
    found
}

fn name(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// The first name of each path in `a::b, c::{d, e}, f}`.
fn heads(group: &str) -> Vec<String> {
    let (mut depth, mut names, mut fresh) = (0, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && !c.is_whitespace() => {
                names.push(name(&group[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

/// What `text`, a file of `module`, uses and must not.
fn faults(module: &str, text: &str) -> Vec<String> {
    let own = step(module);
    uses(text)
        .into_iter()
        .filter(|used| used != module && !BELOW.contains(&used.as_str()))
        .filter_map(|used| match (step(&used), own) {
            (None, _) => Some(format!("{module} uses crate::{used}, which is no stage")),
            (Some(theirs), Some(own)) if theirs >= own => {
                Some(format!("{module} uses {used}, which is not to its left"))
            }
            _ => None,
        })
        .collect()
}

pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

pub fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}

/// The source files of the host, each with the name of its crate and its path there.
pub fn host_files() -> Vec<(PathBuf, PathBuf)> {
    let of = |name: &str| {
        let source = crates().join(name).join("src");
        let place = |file: &Path| Path::new(name).join(file.strip_prefix(&source).unwrap());
        let files = rust_files(&source).into_iter();
        files.map(|file| (place(&file), file)).collect::<Vec<_>>()
    };
    HOST.into_iter().flat_map(of).collect()
}

#[test]
fn every_stage_uses_only_stages_to_its_left() {
    let source = crates().join("core/src");
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for file in rust_files(&source) {
        let inside = file.strip_prefix(&source).unwrap();
        let module = inside
            .components()
            .next()
            .unwrap()
            .as_os_str()
            .to_str()
            .unwrap()
            .trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        assert!(
            step(module).is_some(),
            "{module} has no place in the ladder"
        );
        seen.insert(module.to_string());
        let text = fs::read_to_string(&file).unwrap();
        all.extend(
            faults(module, &text)
                .into_iter()
                .map(|fault| format!("{}: {fault}", inside.display())),
        );
    }
    assert_eq!(all, Vec::<String>::new());
    let planned: BTreeSet<String> = LADDER
        .concat()
        .iter()
        .map(|name| name.to_string())
        .collect();
    assert_eq!(seen, planned, "the ladder names what there is");
}

#[test]
fn the_checker_sees_planted_steps_to_the_right() {
    assert_eq!(
        faults(
            "execute",
            "use crate::catalog::Catalog;\nuse crate::execute::Job;"
        ),
        Vec::<String>::new()
    );
    assert_eq!(
        faults("execute", "use crate::store::Store;"),
        ["execute uses store, which is not to its left"]
    );
    assert_eq!(
        faults("execute", "fn f() -> crate::cmd::Exit { todo!() }"),
        ["execute uses cmd, which is not to its left"]
    );
    assert_eq!(
        faults("report", "use crate::session;"),
        ["report uses session, which is not to its left"]
    );
    assert_eq!(
        faults("cmd", "use crate::helpers::join;"),
        ["cmd uses crate::helpers, which is no stage"]
    );
    let group = "use crate::{\n    catalog::{self, Tier},\n    report,\n};";
    assert_eq!(
        faults("store", group),
        ["store uses report, which is not to its left"]
    );
    assert_eq!(
        faults("store", "// as crate::cmd does\nuse crate::plan;"),
        Vec::<String>::new()
    );
}

#[test]
fn no_process_is_signalled_by_a_number_that_may_be_anothers_by_then() {
    let by_number = |text: &str| text.contains("libc::kill(") || text.contains("kill_process(");
    let files = host_files()
        .into_iter()
        .filter(|(_, file)| by_number(&fs::read_to_string(file).unwrap()));
    let files: Vec<String> = files
        .map(|(place, _)| place.display().to_string())
        .collect();
    // A process that is traced keeps its number until its tracer has waited for it, in the same thread.
    assert_eq!(files, ["core/execute/exec_tracer.rs"]);
}

#[test]
fn the_guest_knows_nothing_of_the_host() {
    for file in rust_files(&crates().join("guest/src")) {
        let text = fs::read_to_string(&file).unwrap();
        let host = text.lines().find(|line| line.contains("heapmark::"));
        assert_eq!(host, None, "{}", file.display());
    }
    let dependencies = dependencies("guest");
    assert_eq!(dependencies, ["heapmark-wire", "libc"]);
}

/// Features among these dependencies that a feature may not use.
fn strangers(feature: &str, dependencies: &[String]) -> Vec<String> {
    let allowed = FEATURES
        .iter()
        .find(|(name, _)| *name == feature)
        .unwrap()
        .1;
    let features = FEATURES.iter().map(|(name, _)| name);
    features
        .filter(|name| dependencies.contains(&format!("heapmark-{name}")))
        .filter(|name| !allowed.contains(name))
        .map(|name| format!("{feature} uses {name}"))
        .collect()
}

#[test]
fn no_feature_but_claims_uses_another_one() {
    for (feature, _) in FEATURES {
        assert_eq!(strangers(feature, &dependencies(feature)), [""; 0]);
    }
    let planted = ["heapmark-core", "heapmark-pool", "heapmark-check"].map(String::from);
    assert_eq!(strangers("claims", &planted), ["claims uses pool"]);
}

#[test]
fn the_core_uses_no_feature() {
    let known = dependencies("core");
    let mut features = FEATURES.iter().map(|(name, _)| format!("heapmark-{name}"));
    assert_eq!(features.find(|it| known.contains(it)), None);
}

#[test]
fn the_wire_has_no_dependencies() {
    assert_eq!(dependencies("wire"), Vec::<String>::new());
}

fn dependencies(name: &str) -> Vec<String> {
    let manifest: toml::Table = fs::read_to_string(crates().join(name).join("Cargo.toml"))
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(
        manifest["package"]["name"].as_str(),
        Some(format!("heapmark-{name}").as_str())
    );
    let listed = |key: &str| {
        manifest
            .get(key)
            .and_then(|table| table.as_table())
            .cloned()
            .unwrap_or_default()
    };
    assert!(
        listed("target").is_empty(),
        "dependencies of one target are dependencies, too"
    );
    [listed("dependencies"), listed("build-dependencies")]
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .collect()
}
