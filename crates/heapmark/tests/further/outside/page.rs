//! `heapmark report` on real runs, and its page in a real browser: nothing fails, nothing is fetched, everything is drawn, switched,
//! downloaded and readable. Each of these checks also meets a page that was damaged so that it must complain.

use crate::support::stored::measured_on;
use crate::support::{Place, node};
use heapmark_trace::{Event, Head, Token, Writer};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use Depth::{Brief, Thorough};

/// One run of each kind of chart, and a page with all of them.
fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Place::new();
        let honest = format!("glibc,honest={}", place.fake("honest").display());
        let small = [
            "--blocks",
            "6",
            "-t",
            "1,2,3",
            "-w",
            "churn,same-thread",
            "--set",
            "churn.objects=5000",
            "--set",
            "same-thread.volume=1000000",
        ];
        let quick = [
            "--target-ms",
            "2",
            "--no-repeat",
            "--no-aa-copy",
            "-a",
            &honest,
        ];
        let kinds: [(&str, &[&str]); 3] = [
            ("run", &[]),
            ("calls", &["--latency"]),
            (
                "series",
                &[
                    "--series",
                    "1ms",
                    "-w",
                    "memory",
                    "-t",
                    "2",
                    "--set",
                    "memory.objects=20000",
                ],
            ),
        ];
        for (name, flags) in kinds {
            let end = place.run(&[&["run", "-o", name], &small[..], &quick[..], flags].concat());
            assert_eq!(end.code, Some(0), "{name}: {}\n{}", end.stdout, end.stderr);
        }
        let shapes = ["-w", "ladder,stranded", "--set", "ladder.volume=2097152"];
        let once = ["--blocks", "1", "-a", &honest];
        let end = place.run(&[&["run", "-o", "shapes"], &shapes[..], &once[..]].concat());
        assert_eq!(end.code, Some(0), "{}\n{}", end.stdout, end.stderr);
        let batches = ["-w", "batch-order,batch-order-half"];
        let set = ["--set", "batch-order*.pairs=100", "--no-repeat"];
        let end =
            place.run(&[&["run", "-o", "batches"], &batches[..], &set[..], &once[..]].concat());
        assert_eq!(end.code, Some(0), "{}\n{}", end.stdout, end.stderr);
        let end = place.run(&[
            "report", "run", "calls", "series", "shapes", "batches", "-o", "all.html",
        ]);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        noted(&place);
        place
    })
}

/// A run of as many allocators as heapmark measures by default.
fn many(place: &Place) {
    let honest = format!("glibc,honest={}", place.fake("honest").display());
    let copies = (1..12).map(|n| format!(",allocator{n}={}", place.fake("honest").display()));
    let many = honest + &copies.collect::<String>();
    let few = ["-t", "1,2", "-w", "churn", "--blocks", "6"];
    let cheap = "--target-ms 1 --no-repeat --set churn.objects=2000 -a";
    let cheap: Vec<&str> = cheap.split(' ').chain([many.as_str()]).collect();
    let end = place.run(&[&["run", "-o", "many"], &few[..], &cheap[..]].concat());
    assert_eq!(end.code, Some(0), "{}\n{}", end.stdout, end.stderr);
}

/// A run of allocators that were checked before: one fails, two differ in what they detect.
fn noted(place: &Place) {
    let library = |name: &str, file: PathBuf| format!("{name}={}", file.display());
    let all = [
        library("honest", place.fake("honest")),
        library("wrong", place.fake("sets_errno")),
        library("stops", place.answering("stops")),
        library("absorbs", place.answering("absorbs")),
    ];
    let all = all.join(",");
    let only = [
        "--only",
        "free-errno,double-free,bad-free-stack,over-8-usable",
    ];
    let end =
        place.run_with_own_cache(&[&["check", "-a", &all, "-o", "of-checks"], &only[..]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let all = format!("glibc,{all}");
    let few = ["-t", "1,2", "-w", "churn", "--set", "churn.objects=200"];
    let own = ["run", "-o", "noted", "-a", &all, "--blocks", "6"];
    let quick = ["--target-ms", "2", "--no-repeat", "--no-aa-copy"];
    let end = place.run_with_own_cache(&[&own[..], &few, &quick].concat());
    assert_eq!(end.code, Some(0), "{}\n{}", end.stdout, end.stderr);
}

fn browser() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let files = names
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |folder| folder.join(name)));
    files
        .into_iter()
        .find(|file| file.is_file())
        .expect("no Chromium on PATH: scripts/setup.sh test brings it")
}

/// In how many ways a page is looked at.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    /// Wide and light, narrow and dark.
    Brief,
    /// Each width in each scheme.
    Thorough,
}

/// What a browser finds wrong with each of these pages.
fn look(depth: Depth, member: &str, pages: &[PathBuf]) -> Vec<Value> {
    let mut node = node("look.mjs");
    let word = if depth == Brief { "brief" } else { "thorough" };
    node.arg(browser()).arg(word).arg(member).args(pages);
    let output = node
        .output()
        .unwrap_or_else(|why| panic!("node: {why}: scripts/setup.sh test brings it"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_page_of_real_runs_has_no_fault_in_a_browser() {
    real_runs(Brief);
}

#[test]
#[ignore = "make test-all"]
fn nor_in_another_width_or_scheme() {
    real_runs(Thorough);
    several_machines(Thorough);
}

fn real_runs(depth: Depth) {
    if depth == Thorough {
        many(place());
    }
    // What the page of one run has, that of all runs has, too.
    let alone = ["noted/report.html", "all.html"];
    let also = ["run/report.html", "many/report.html"]
        .into_iter()
        .filter(|_| depth == Thorough);
    let pages: Vec<PathBuf> = alone
        .into_iter()
        .chain(also)
        .map(|page| place().at(page))
        .collect();
    let noted = fs::read_to_string(place().at("noted/report.html")).unwrap();
    for section in ["hardening", "checked"] {
        assert!(
            noted.contains(&format!("<section id=\"{section}\"")),
            "{section}"
        );
    }
    let found = look(depth, "honest", &pages);
    assert_eq!(found.len(), pages.len());
    found.iter().for_each(without_fault);
    for page in pages {
        let bytes = fs::metadata(&page).unwrap().len();
        assert!(bytes < MOST_BYTES, "{}: {bytes}", page.display());
    }
}

/// A page can be mailed.
const MOST_BYTES: u64 = 2_500_000;

fn without_fault(faults: &Value) {
    let kinds = faults.as_object().unwrap();
    assert!(
        kinds.len() >= 15 && kinds.values().all(|all| all.as_array().unwrap().is_empty()),
        "{faults:#}"
    );
}

#[test]
fn pages_of_several_machines_have_no_fault_in_a_browser() {
    several_machines(Brief);
}

fn several_machines(depth: Depth) {
    let place = Place::new();
    let machines = ["a", "b", "c"];
    for machine in machines {
        measured_on(&place, machine, "honest");
    }
    let side_by_side = |output| {
        let end = place.run(&[&["report"], &machines[..], &["-o", output]].concat());
        (end.code, end.stderr)
    };
    assert_eq!(side_by_side("all.html").0, Some(0));
    let mut pages = vec![place.at("all-pooled.html")];
    // A link to a name that means something else in a link.
    assert_eq!(side_by_side("#1.html").0, Some(0));
    let text = fs::read_to_string(place.at("#1.html")).unwrap();
    assert!(text.contains("%231-pooled.html\">"), "the page has no link");
    // Nothing is written if one of the two is there already.
    fs::write(place.at("other-pooled.html"), "mine").unwrap();
    let (code, why) = side_by_side("other.html");
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("other-pooled.html is there already"), "{why}");
    assert!(!place.at("other.html").exists());
    let pooled = ["campaign", "pool", "a", "b", "c", "--to", "page", "-o"];
    let end = place.run(&[&pooled[..], &["pool.html"]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    if depth == Thorough {
        pages.extend(["all.html", "pool.html"].map(|page| place.at(page)));
    }
    let found = look(depth, "mine", &pages);
    assert_eq!(found.len(), pages.len());
    found.iter().for_each(without_fault);
    // Of two machines nothing follows for a third.
    let end = place.run(&["report", "a", "b", "-o", "two.html"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(!place.at("two-pooled.html").exists());
}

#[test]
fn a_page_of_a_trace_has_no_fault_in_a_browser() {
    let place = Place::new();
    let mut head = Head::default();
    // A program's path may be longer than a phone is wide.
    head.set("argv.0", "/a".repeat(100));
    let mut file = fs::File::create(place.at("a.trace")).unwrap();
    let mut writer = Writer::new(&mut file, &head).unwrap();
    let mut write = |thread, event| writer.write(thread, &event).unwrap();
    for index in 0..2000 {
        write(
            0,
            Event::Malloc {
                size: index * 37 % 5000,
                operator: false,
            },
        );
        write(0, Event::Clock { ns: index * 5000 });
        let token = Token { thread: 0, index };
        if index % 3 > 0 {
            write((index % 2) as u32, Event::Free { token });
        }
    }
    writer.finish().unwrap();
    let end = place.run(&["trace", "stats", "a.trace", "--to", "page", "-o", "a.html"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    look(Brief, "bytes", &[place.at("a.html")])
        .iter()
        .for_each(without_fault);
}

/// A result with an allocator that fails some checks.
fn checks() -> Place {
    let place = Place::new();
    let allocators = format!(
        "glibc,honest={},wrong={}",
        place.fake("honest").display(),
        place.fake("misaligner").display()
    );
    let only = [
        "--only",
        "alignment,errno,malloc-zero-distinct",
        "--output",
        "out",
    ];
    let end = place.run(&[&["check", "-a", &allocators], &only[..]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(end.stderr.contains("out/check.html"), "{}", end.stderr);
    place
}

#[test]
fn a_page_of_checks_has_no_fault_in_a_browser_and_report_makes_it_again() {
    let place = checks();
    let page = place.at("out/check.html");
    let sound = fs::read_to_string(&page).unwrap();
    let first = sound.split("<tr><th scope=\"row\">").nth(1).unwrap();
    assert!(
        first.starts_with("<a href=\"#under-wrong\">wrong"),
        "{first}"
    );
    let scripts = sound.matches("<script").count();
    assert_eq!(scripts, 1, "no chart, only buttons that copy commands");
    // A finding that its cell does not lead to, and one that cannot be seen there.
    let row = "<tr id=\"under-wrong-alignment\">";
    let damage = ["<tr>", "<tr id=\"under-wrong-alignment\" hidden>"];
    // Of pages with this name only the links are looked at.
    let pages = damage.map(|broken| {
        assert!(sound.contains(row), "{row}");
        let folder = place.at(&broken.len().to_string());
        fs::create_dir(&folder).unwrap();
        let file = folder.join("links.html");
        fs::write(&file, sound.replace(row, broken)).unwrap();
        file
    });
    let all = [vec![page.clone()], pages.to_vec()].concat();
    let [honest, damaged @ ..] = &look(Brief, "honest", &all)[..] else {
        panic!("no page was looked at")
    };
    without_fault(honest);
    assert_eq!(damaged.len(), pages.len());
    for faults in damaged {
        assert!(
            !faults["links"].as_array().unwrap().is_empty(),
            "{faults:#}"
        );
    }

    // Beside them, what documents say of hardening.
    let claimed = place.run(&[
        "check",
        "-a",
        "glibc",
        "--only",
        "double free",
        "-o",
        "claimed",
    ]);
    assert_eq!(claimed.code, Some(0), "{}", claimed.stderr);
    let claims = place.at("claimed/check.html");
    let text = fs::read_to_string(&claims).unwrap();
    assert!(text.contains("What documents say of hardening"), "{text}");
    look(Brief, "claims", &[claims])
        .iter()
        .for_each(without_fault);

    fs::remove_file(&page).unwrap();
    let end = place.run(&["report", "out"]);
    assert_eq!(
        (end.code, end.stderr.trim()),
        (Some(0), "out/check.html"),
        "{}",
        end.stderr
    );
    assert_eq!(fs::read_to_string(&page).unwrap(), sound);
    let end = place.run(&["report", "out", "-o", "-"]);
    assert_eq!(end.stdout, sound);
    place.run(&["report", "out", "-o", "own.html"]);
    let end = place.run(&["report", "out", "-o", "own.html"]);
    end.is_one_line(2);
}

#[test]
#[ignore = "make test-all"]
fn a_damaged_page_is_seen_to_be_damaged() {
    let page = fs::read_to_string(place().at("run/report.html")).unwrap();
    let csp = page
        .lines()
        .find(|line| line.contains("Content-Security-Policy"))
        .unwrap();
    // What is broken, and the kind of complaint that has to come of it.
    let damage = [
        (
            "errors",
            "\"use strict\";",
            "\"use strict\"; console.error(\"planted\");",
        ),
        (
            "requests",
            csp,
            "<img alt=\"\" src=\"http://127.0.0.1:9/planted.png\">",
        ),
        (
            "undrawn",
            "const trace = structuredClone(drawn);",
            "const trace = { ...structuredClone(drawn), visible: false };",
        ),
        ("unswitched", "off[kind].add(key)", "off[kind]"),
        ("downloads", "return Plotly.downloadImage(", "return void ("),
        ("words", "rows * 28 + 76", "rows * 8 + 76"),
        (
            "access",
            "{ \"aria-label\": \"Workload\", onchange",
            "{ onchange",
        ),
        ("contrast", "--soft: #545c66", "--soft: #a0a6ae"),
        ("colours", "--c1: #dd7008", "--c1: #0d46b0"),
        ("ranking", "<i class=\"reach\"", "<i class=\"reach\" hidden"),
        ("head", "<h1>heapmark: ", "<h1>run, "),
        (
            "sticky",
            "position: sticky; left: 0; z-index: 1;",
            "z-index: 1;",
        ),
        (
            "wrapped",
            "td.number, td.word, td.verdict { white-space: nowrap; }",
            "td { overflow-wrap: anywhere; }",
        ),
        ("labels", "text: name, x: inside(", "text: \"\", x: inside("),
        (
            "scriptless",
            "<table class=\"ranking",
            "<table hidden class=\"ranking",
        ),
        ("links", "<section id=\"trust\"", "<section id=\"distrust\""),
        (
            "figures",
            "hovermode: \"closest\"",
            "hoverMode: \"closest\"",
        ),
    ];
    let doctored = damage.map(|(kind, sound, broken)| {
        assert!(page.contains(sound), "{kind}: {sound}");
        let file = place().at(&format!("{kind}.html"));
        fs::write(&file, page.replace(sound, broken)).unwrap();
        file
    });
    for ((kind, ..), faults) in damage.iter().zip(look(Thorough, "honest", &doctored)) {
        assert!(
            !faults[kind].as_array().unwrap().is_empty(),
            "{kind}: {faults:#}"
        );
    }
}

#[test]
fn a_run_says_where_its_page_is_and_report_writes_where_it_is_told() {
    let place = place();
    assert!(place.at("run/report.html").is_file());
    fs::remove_file(place.at("series/report.html")).unwrap();
    let end = place.run(&["report", "series"]);
    assert_eq!(
        (end.code, end.stderr.trim()),
        (Some(0), "series/report.html"),
        "{}",
        end.stderr
    );
    assert!(place.at("series/report.html").is_file());
    let end = place.run(&["report", "run", "calls"]);
    assert_eq!(
        (end.code, end.stderr.trim()),
        (Some(0), "report.html"),
        "{}",
        end.stderr
    );
    let end = place.run(&["report", "run", "-o", "-"]);
    assert!(
        end.stdout.starts_with("<!doctype html>") && end.stdout.trim_end().ends_with("</html>")
    );
    assert_eq!(
        end.stdout,
        fs::read_to_string(place.at("run/report.html")).unwrap()
    );
    let end = place.run(&["report", "nowhere"]);
    assert_eq!(end.code, Some(2));
    assert!(end.stderr.contains("no run in nowhere"), "{}", end.stderr);
}
