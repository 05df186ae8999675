//! The page of a result of `heapmark check`: allocators against groups of checks, the checks that
//! some do not pass, what a program may rely on under each allocator, and what standards leave
//! open.

use crate::definition::Check;
use crate::file::{CheckFile, CheckResult, CheckedAllocator};
use crate::report::{
    LEFT_OPEN, about_of, applying, ended, failing, left_open, matrix, place_of, told_of,
    worst_first,
};
use heapmark_core::analyse::distinct;
use heapmark_core::report::document::{Cell, Sheet};
use heapmark_core::report::known_faults::{day, standing};
use heapmark_core::report::page::head::{Head, facts};
use heapmark_core::report::page::lay_out;
use heapmark_core::report::page::section::Section;
use heapmark_core::report::page::text_sections::{allocators_table, machine_table};
use heapmark_core::report::text::{count, join, list};
use heapmark_core::store::{CheckVerdict, Standing};

/// The page, with `more` sections from other crates. What a check is about comes from the check's
/// own file: the result may be from another version.
pub fn checked(file: &CheckFile, checks: &[Check], more: Vec<Section>) -> String {
    let mut ranked = worst_first(file);
    // Checks of hardening alone do not show what a program may rely on.
    ranked.retain(|one| !one.results.is_empty());
    let mut sections = vec![groups(file, &ranked), not_passed(&ranked, checks)];
    if ranked.is_empty() {
        sections.clear();
    }
    sections.extend(ranked.iter().map(|one| under(one, checks)));
    let open = left_open(file, checks);
    sections.extend(more);
    let open = folded("Values", open);
    sections.push(Section::of_tables("open", LEFT_OPEN, [open]));
    sections.push(method(file));
    sections.push(next());
    let says = format!(
        "heapmark {}, {}, preset {}, started {}",
        file.heapmark,
        count(names_of_checks(file).len(), "check"),
        file.preset,
        file.started.split('.').next().unwrap_or_default()
    );
    let head = Head {
        verdict: verdict(&ranked),
        machine: join(facts(&file.machine), ", "),
        says,
        ..Head::default()
    };
    lay_out(&title(file), &[head], &[], Vec::new(), sections)
}

/// The page's title, as in `heapmark check: 13 allocators on AMD EPYC, 2026-01-01`.
fn title(file: &CheckFile) -> String {
    let what = match file.allocators.as_slice() {
        [one] => one.info.name.clone(),
        all => count(all.len(), "allocator"),
    };
    let cpu = file.machine.get("cpu_model");
    let cpu = cpu.map(|cpu| format!(" on {cpu}")).unwrap_or_default();
    let unfinished = if file.unfinished {
        ", stopped before its end"
    } else {
        ""
    };
    let day = day(&file.started);
    format!("heapmark check: {what}{cpu}, {day}{unfinished}")
}

/// The names of the checks that a result has.
pub fn names_of_checks(file: &CheckFile) -> Vec<&str> {
    let results = file.allocators.iter().flat_map(|one| &one.results);
    let hardening = file.allocators.iter().flat_map(|one| &one.hardening);
    let hardening = hardening.map(|result| result.check.as_str());
    distinct(results.map(|result| result.check.as_str()).chain(hardening))
}

/// A sentence on the allocators that pass all that a standard demands, then one on the allocator
/// with the most findings.
fn verdict(ranked: &[&CheckedAllocator]) -> String {
    if ranked.is_empty() {
        return "Only hardening was checked: check.json has the outcome of each program.".into();
    }
    let breaks =
        |one: &CheckedAllocator| failing(one).any(|result| result.standing == Standing::Std);
    let has_std =
        |one: &CheckedAllocator| applying(one).any(|result| result.standing == Standing::Std);
    let keeping = ranked.iter().filter(|one| !breaks(one) && has_std(one));
    let keeping: Vec<&str> = keeping.map(|one| one.info.name.as_str()).collect();
    let what = "what was checked of ISO C, C++ and POSIX";
    let first = match keeping.len() {
        0 if !ranked.iter().any(|one| breaks(one)) => {
            "Nothing was checked of ISO C, C++ and POSIX.".into()
        }
        0 => format!("No allocator passes all of {what}."),
        1 => format!("{} passes all of {what}.", keeping[0]),
        _ => format!("{} pass all of {what}.", list(&keeping)),
    };
    // Allocators with the most findings come first.
    match ranked.first().map(|one| (failing(one).count(), one)) {
        None | Some((0, _)) => first,
        Some((most, one)) => format!(
            "{first} The most checks, {most} of {}, fail under {}.",
            applying(one).count(),
            one.info.name
        ),
    }
}

fn groups(file: &CheckFile, ranked: &[&CheckedAllocator]) -> Section {
    Section {
        text: vec![
            "Checks that pass, of those that apply; allocators with the most findings first. A number leads to what failed. \
             Facts about these libraries, each alone, and no score; nothing here is about security."
                .into(),
        ],
        ..Section::of_tables(
            "groups",
            "Allocators and groups of checks",
            [matrix(file, ranked)],
        )
    }
}

/// Each check that some allocators do not pass.
fn not_passed(ranked: &[&CheckedAllocator], checks: &[Check]) -> Section {
    let results = ranked.iter().flat_map(|one| &one.results);
    let all = distinct(results.map(|result| result.check.as_str()));
    let rows = all.into_iter().filter_map(|name| {
        let is_under = |one: &&&CheckedAllocator| failing(one).any(|result| result.check == name);
        let under = ranked.iter().filter(is_under);
        let names = list(under.map(|one| &one.info.name));
        let [about, why, source] = told_of(checks, name);
        (!names.is_empty()).then(|| vec![name.into(), about, why, source, names])
    });
    let columns = ["check", "must hold", "why", "source", "not under"];
    let table = Sheet::of_text("", &columns, rows);
    Section::of_tables("findings", "What some do not pass", [table])
}

/// What a program may rely on under an allocator.
fn under(one: &CheckedAllocator, checks: &[Check]) -> Section {
    let about = |result: &CheckResult| about_of(checks, &result.check);
    let mut last = "";
    let mut rows = Vec::new();
    for result in failing(one) {
        // Results are sorted by group.
        let is_first = last != result.group;
        last = &result.group;
        let name = Cell {
            id: is_first.then(|| place_of(one, Some(last))),
            ..Cell::text(&result.check)
        };
        let rest = [
            about(result),
            standing(result.standing).to_owned(),
            found(result),
            result.again.clone(),
        ];
        rows.push([name].into_iter().chain(rest.map(Cell::text)));
    }
    let columns = ["check", "must hold", "who says so", "found", "again"];
    let broken = Sheet::new("A program may not rely on", &columns, rows);
    let passed = applying(one).filter(|result| !result.verdict.is_finding());
    let kept = passed.clone();
    let kept = kept.map(|result| vec![result.group.clone(), result.check.clone(), about(result)]);
    let columns = ["group", "check", "what holds"];
    let kept = folded("A program may rely on", Sheet::of_text("", &columns, kept));
    let is_unknown = |result: &&CheckResult| {
        matches!(
            result.verdict,
            CheckVerdict::Unsupported | CheckVerdict::Error
        )
    };
    let unknown = one.results.iter().filter(is_unknown);
    let unknown = unknown.map(|result| vec![result.check.clone(), about(result), found(result)]);
    let columns = ["check", "must hold", "why not"];
    let unknown = folded("Not known", Sheet::of_text("", &columns, unknown));
    let info = &one.info;
    Section {
        text: vec![format!(
            "{} of {} that apply pass. Version {}, from {}.",
            passed.count(),
            count(applying(one).count(), "check"),
            info.version,
            info.origin
        )],
        ..Section::of_tables(
            &place_of(one, None),
            &format!("Under {}", info.name),
            [broken, kept, unknown],
        )
    }
}

/// A table that is closed at first.
fn folded(heading: &str, sheet: Sheet) -> Sheet {
    Sheet {
        heading: heading.into(),
        folded: true,
        ..sheet
    }
}

/// The most reasons that a table shows; check.json has all of them.
const MOST_REASONS: usize = 2;

/// How a check ended, how often, and why.
fn found(result: &CheckResult) -> String {
    let reasons = &result.reasons;
    let more = match reasons.len().saturating_sub(MOST_REASONS) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let first = reasons.iter().take(MOST_REASONS);
    format!("{}: {}{more}", ended(result), join(first, "; "))
}

fn method(file: &CheckFile) -> Section {
    let infos = file.allocators.iter().map(|one| &one.info);
    let tables = [
        folded("Machine", machine_table("", &file.machine)),
        folded("Allocators", allocators_table("", infos)),
    ];
    Section::of_tables("method", "Machine and allocators", tables)
}

fn next() -> Section {
    let rows = [
        [
            "make one check again",
            "heapmark check -a ALLOCATOR --only CHECK",
        ],
        [
            "get a check as a C program that needs no heapmark",
            "heapmark check --program CHECK",
        ],
        [
            "hold what documents say of hardening against this result",
            "heapmark claims DIR",
        ],
        [
            "see what a new release changes",
            "heapmark check diff OLD NEW",
        ],
        [
            "fail a CI job by findings",
            "heapmark check -a mine=/path/libmine.so --fail-on std",
        ],
    ];
    let rows = rows.map(|row| row.map(String::from).to_vec());
    let table = Sheet::of_text("", &["to", "command"], rows);
    Section::of_tables("next", "What next", [table])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::all;
    use serde_json::json;

    #[test]
    fn what_failed_holds_or_is_not_known_stands_apart_and_names_from_outside_are_harmless() {
        let result = |check: &str, group: &str, standing: &str, verdict: &str, reason: &str| {
            json!({"check": check, "group": group, "standing": standing, "verdict": verdict, "times": [1, 2],
                   "reasons": [reason], "notes": ["value=7"], "again": format!("heapmark check --only {check}")})
        };
        let allocator = |name: &str, results: Vec<serde_json::Value>| {
            json!({"name": name, "family": "", "tier": "", "origin": "a package", "version": "1.2", "files": [],
                   "sha256": ["a1b2"], "build_ids": ["c3d4"], "left_to_libc": [], "purge": "none", "purged_as": null,
                   "results": results})
        };
        let right = vec![
            result("free-errno", "errno", "std", "pass", ""),
            result("errno-success", "errno", "observe", "pass", ""),
        ];
        let wrong = vec![
            result("no-longer-there", "errno", "std", "hang", "<script>"),
            result("no-longer-open", "errno", "observe", "fail", "no value"),
            result(
                "free-errno",
                "errno",
                "std",
                "error",
                "lib.so was not loaded",
            ),
        ];
        let machine = json!({"cpu_model": "CPU", "kernel": "6.1", "c_library": "2.36-9"});
        let file = json!({"schema": 1, "heapmark": "", "started": "2026-01-02T03", "preset": "quick", "machine": machine,
                          "allocators": [allocator("right", right), allocator("wrong", wrong)]});
        let mut file: CheckFile = serde_json::from_value(file).unwrap();
        let page = checked(&file, &all().unwrap(), Vec::new());
        let section = |id: &str| {
            let (_, rest) = page.split_once(&format!("<section id=\"{id}\"")).unwrap();
            rest.split_once("</section>").unwrap().0
        };
        assert!(page.find("#under-wrong").unwrap() < page.find("#under-right").unwrap());
        assert!(page.contains("right passes all of what was checked of ISO C, C++ and POSIX. The most checks, 1 of 1, fail under wrong."));
        let groups = section("groups");
        assert!(
            groups.contains("<a href=\"#under-wrong-errno\">0&#x2f;1</a>"),
            "{groups}"
        );
        assert!(groups.contains(">1&#x2f;1<"), "{groups}");
        let wrong = section("under-wrong");
        let row = wrong.split("id=\"under-wrong-errno\"").nth(1).unwrap();
        assert!(row.contains("hang 1 of 2 times: &lt;script&gt;"), "{row}");
        assert!(
            row.contains("heapmark check --only no-longer-there"),
            "{row}"
        );
        assert!(
            row.split_once("Not known")
                .unwrap()
                .1
                .contains("lib.so was not loaded")
        );
        let right = section("under-right");
        assert!(right.contains("A program may rely on") && right.contains("free keeps errno"));
        assert!(!right.contains("A program may not rely on") && !right.contains("Not known"));
        assert!(section("findings").contains("no-longer-there"));
        assert!(!section("findings").contains("no-longer-open"));
        let open = section("open");
        assert!(open.contains("value=7") && open.contains("no-longer-open"));
        let method = section("method");
        for known in ["c3d4", "a1b2", "2.36-9"] {
            assert!(method.contains(known), "{known}: {method}");
        }
        for result in file.allocators.iter_mut().flat_map(|one| &mut one.results) {
            result.standing = Standing::Gnu;
        }
        let page = checked(&file, &all().unwrap(), Vec::new());
        assert!(page.contains("Nothing was checked of ISO C, C++ and POSIX. The most checks,"));
    }
}
