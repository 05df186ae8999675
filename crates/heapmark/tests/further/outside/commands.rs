//! Every command line of README and documents can be typed. It runs by `sh` as it stands, with a stand-in for `heapmark` that
//! turns measuring into a dry run, in a folder that has what the lines name.

use crate::support::stored::{change_lines, copy, unpacked};
use crate::support::{Place, commands, files, repository};
use clap::error::ErrorKind;
use heapmark::cli;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// What a reader fills in, and what the test fills in for it; the longest first.
const PLACEHOLDERS: [(&str, &str); 31] = [
    (
        "here=PATH,prebuilt=PATH",
        "here=old/libmine.so,prebuilt=new/libmine.so",
    ),
    ("RUN --to csv-latency", "latency --to csv-latency"),
    ("RUN... ", "latest "),
    ("CAPTURE...", "app.cap"),
    ("TRACE...", "app.trace"),
    ("PROGRAM ARGUMENTS...", "true"),
    ("CMD ARGS...", "true"),
    (
        "--server ... --client ... --ready PORT",
        "--server true --client true --ready 7391",
    ),
    (
        "--server ... --client ...",
        "--server true --client true --ready 7391",
    ),
    ("...", ""),
    ("[-o DIR]", ""),
    ("[NAME]", ""),
    ("[RUN]", ""),
    ("[--format json]", "--format json"),
    ("[K]", "8"),
    ("OLD NEW", "run-1 run-2"),
    ("A..B", "0..10"),
    ("COMMAND", "true"),
    ("HABIT", "once"),
    ("WORD", "block"),
    (" PID", " 1"),
    ("SHELL", "bash"),
    ("WORKLOAD", "churn"),
    ("-w NAME", "-w churn"),
    ("METRIC", "cpu"),
    ("TRACE", "app.trace"),
    ("TIME", "1ms"),
    ("FORMAT", "json"),
    ("NAME", "big-arenas"),
    ("DIR", "run-1"),
    ("RUN", "run-1"),
];

/// `heapmark` as the lines call it: what measures is a dry run. Of what builds or asks only the flags are tried, by `refused`:
/// each call leaves its words in a file of its own, with a zero byte behind each.
const STAND_IN: &str = r#"#!/bin/sh
leave() {
    printf '%s\0' "$@" > "$CALLS/$$" || exit 1
    exit 0
}
case $1 in
    run | replay | try)
        case " $* " in
            *" --dry-run "*) exec "$HEAPMARK" "$@" ;;
            *" --cell "* | *" --format "*) leave "$@" ;;
        esac
        command=$1
        shift
        exec "$HEAPMARK" "$command" --dry-run "$@" ;;
    noise | selftest | check | build | clean | fetch | open | man) leave "$@" ;;
    which | history | museum | tune)
        case " $* " in
            *" -- "*) leave "$1" ;;
        esac
        leave "$@" ;;
    campaign) leave campaign "$2" ;;
    trace) case $2 in finish | import) leave trace "$2" ;; esac ;;
esac
exec "$HEAPMARK" "$@"
"#;

/// A command line, and where it stands.
struct Line {
    place: String,
    text: String,
    /// In running text a command may stand without its arguments.
    is_mention: bool,
}

/// The lines of a page that begin with `heapmark`: in blocks, and in the text between backticks.
fn lines_of(name: &str, page: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut fenced = false;
    let mut pages = page.lines().enumerate();
    while let Some((number, line)) = pages.next() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let mut texts = Vec::new();
        let is_mention = !fenced && !line.starts_with("    ");
        if is_mention {
            texts.extend(line.split('`').skip(1).step_by(2).map(str::to_string));
        } else {
            let mut text = line.trim().to_string();
            while text.ends_with('\\') {
                text.pop();
                text += pages.next().expect("a line goes on").1.trim();
            }
            texts.push(without_remark(&text).to_string());
        }
        for text in texts {
            // Not the head of a printed table, `heapmark 0.1.0, ...`.
            let command = text.strip_prefix("heapmark ");
            if command.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase())) {
                let place = format!("{name}:{}", number + 1);
                found.push(Line {
                    place,
                    text,
                    is_mention,
                });
            }
        }
    }
    found
}

/// A remark begins with `#`, or stands in a column of its own.
fn without_remark(text: &str) -> &str {
    let text = text.split("  #").next().unwrap();
    text.split("   ").next().unwrap().trim()
}

fn pages() -> Vec<(String, String)> {
    let mut names = vec![
        "README.md".into(),
        "CONTRIBUTING.md".into(),
        "allocators/README.md".into(),
        "claims/README.md".into(),
        "programs/README.md".into(),
    ];
    for entry in fs::read_dir(repository().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Written by `make reproduction`, with the paths of its runs.
        if name.ends_with(".md") && name != "REPRODUCTION.md" {
            names.push(format!("docs/{name}"));
        }
    }
    names.sort();
    let read = |name: String| {
        let text = fs::read_to_string(repository().join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// The help of every command, as a page: printed by the program for one of each first word, as it is defined for the others.
fn help_pages(place: &Place) -> Vec<(String, String)> {
    let mut pages = Vec::new();
    let mut printed = BTreeSet::new();
    for (command, definition) in commands() {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = if printed.insert(words[0].to_owned()) {
            let end = place.run(&words);
            assert_eq!(end.code, Some(0), "{}", end.stderr);
            end.stdout
        } else {
            let below = definition.get_after_help();
            below.map(ToString::to_string).unwrap_or_default()
        };
        let examples = help.split("Examples:").nth(1);
        let examples = examples.unwrap_or_else(|| panic!("{command} --help has no examples"));
        pages.push((format!("{command} --help"), examples.to_owned()));
    }
    pages
}

/// A folder in which the lines can be typed.
fn desk() -> &'static Place {
    static DESK: LazyLock<Place> = LazyLock::new(laid_out);
    &DESK
}

fn laid_out() -> Place {
    let place = unpacked();
    let library = place.fake("honest");
    for name in ["path/libmine.so", "old/libmine.so", "new/libmine.so"] {
        fs::create_dir_all(place.at(name).parent().unwrap()).unwrap();
        fs::copy(&library, place.at(name)).unwrap();
    }
    fs::create_dir_all(place.at("config/heapmark/allocators")).unwrap();
    for name in ["big-arenas", "my-jemalloc"] {
        let entry = format!(
            "name = '{name}'\nfamily = '{name}'\nabout = 'mine'\ntier = 'user'\nsource = {{ kind = 'path', files = ['{}'] }}\n",
            library.display()
        );
        let file = format!("config/heapmark/allocators/{name}.toml");
        fs::write(place.at(&file), entry).unwrap();
    }
    let end = place.run_small("run-1", &["-a", "glibc,big-arenas", "--blocks", "6"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    copy(&place.at("run-1"), &place.at("run-2"));
    // Two runs with the same samples are not compared.
    change_lines(&place.at("run-2"), |record| record["run"] = json!(2));
    let only = ["--only", "double-free", "-o", "checked"];
    let end = place.run(&[&["check", "-a", "glibc"], &only[..]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    fs::create_dir(place.at("heapmark-results")).unwrap();
    for name in [
        "heapmark-results/2026-01-01-1",
        "result",
        "ll",
        "za",
        "field",
    ] {
        symlink(place.at("run-1"), place.at(name)).unwrap();
    }
    let executable = |name: &str, text: &str| {
        fs::write(place.at(name), text).unwrap();
        fs::set_permissions(place.at(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    fs::create_dir(place.at("bin")).unwrap();
    executable("bin/heapmark", STAND_IN);
    executable("server", "#!/bin/sh\n");
    executable("daemon", "#!/bin/sh\n");
    executable("your-program", "#!/bin/sh\n");
    // Programs that the lines name and that the tests do not need.
    for name in ["jq", "make"] {
        symlink("/bin/true", place.at("bin").join(name)).unwrap();
    }
    for name in ["build.py", "script.py", "rows.py", "big.json"] {
        fs::write(place.at(name), "").unwrap();
    }
    let own = "command = 'make'\nlibrary = 'libfoo.so'\n";
    fs::create_dir(place.at("libfoo")).unwrap();
    fs::write(place.at("libfoo/heapmark.toml"), own).unwrap();
    let script = "git init -q -b main && git add -A && git -c user.name=A -c user.email=a@example.org commit -q -m x";
    let mut shell = Command::new("sh");
    let made = shell.args(["-c", script]).current_dir(place.at("libfoo"));
    assert!(made.status().unwrap().success());
    fs::write(place.at("words.cpp"), "int main() {}").unwrap();
    fs::write(place.at("sizes.csv"), "size,count\n16,3\n").unwrap();
    let joint = "size,lifetime_bytes,weight\n16,1000,3\n";
    fs::write(place.at("app.csv"), joint).unwrap();
    let end = place.run(&["record", "-o", "app.trace", "ls"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    for name in ["build", "rows", "python"] {
        fs::copy(place.at("app.trace"), place.at(&format!("{name}.trace"))).unwrap();
    }
    place
}

/// What is wrong with the words of a call: read with `--help` behind them, they must ask for the help.
fn refused(words: &str) -> Option<String> {
    let words = words.split_terminator('\0').chain(["--help"]);
    let line = ["heapmark"].into_iter().chain(words);
    match cli::definition().try_get_matches_from(line) {
        Err(help) if help.kind() == ErrorKind::DisplayHelp => None,
        Err(mistake) => Some(mistake.to_string()),
        Ok(_) => Some("--help behind these words is not heapmark's".into()),
    }
}

/// What `sh` says of a line, the `number`-th: its exit code, and the line as it was typed with what went to stderr.
fn typed(place: &Place, number: usize, text: &str) -> (Option<i32>, String) {
    let mut text = text.replace("=/path/", &format!("={}/path/", place.text(".")));
    for (word, filled) in PLACEHOLDERS {
        text = text.replace(word, filled);
    }
    // Lines that name the same file are typed in other folders.
    text = text.replace(" -o ", &format!(" -o new-{number}-"));
    let path = format!("{}:{}", place.text("bin"), std::env::var("PATH").unwrap());
    let heapmark = place.heapmark(&[]);
    let environment = heapmark.get_envs();
    let calls = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &text])
        .env_clear()
        .envs(environment.filter_map(|(name, value)| Some((name, value?))))
        .env("PATH", path)
        .env("HEAPMARK", env!("CARGO_BIN_EXE_heapmark"))
        .env("CALLS", calls.path())
        .current_dir(place.at("."))
        .stdin(Stdio::null());
    let output = shell.output().unwrap();
    let mut code = output.status.code();
    let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
    for call in files(calls.path()) {
        let words = fs::read_to_string(calls.path().join(call)).unwrap();
        if let Some(mistake) = refused(&words) {
            code = Some(2);
            said += &mistake;
        }
    }
    (code, format!("{text}\n{said}"))
}

/// Whether a line has ended as its page says.
fn is_fine(line: &Line, code: Option<i32>, said: &str) -> bool {
    match code {
        Some(0) => true,
        Some(3) => line.text.contains("--fail-on"),
        Some(5) => line.text.contains("--strict"),
        Some(2) if line.is_mention => {
            line.text.split(' ').count() == 2
                || said.contains(" is missing")
                || said.contains("a value is required for")
        }
        _ => false,
    }
}

#[test]
fn every_command_line_of_the_documents_can_be_typed() {
    let place = desk();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for (name, page) in pages().into_iter().chain(help_pages(place)) {
        for line in lines_of(&name, &page) {
            if !seen.insert(line.text.clone()) {
                continue;
            }
            let (code, said) = typed(place, seen.len(), &line.text);
            if !is_fine(&line, code, &said) {
                wrong.push(format!("{}: exit code {code:?}: {said}", line.place));
            }
        }
    }
    assert!(seen.len() > 100, "only {} lines were found", seen.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_line_that_cannot_be_typed_is_found() {
    let page = "Text with `heapmark list workloads`, `heapmark compare --by` and\n```\nheapmark 0.1.0, suite\n\
                heapmark run -w churn \\\n    --nope   # a flag\nheapmark try\nheapmark check --nope | cat\n\
                heapmark build --nope; heapmark noise\nheapmark run --cell a --nope\n```\n\
                and `heapmark show --nope` and `heapmark check --only`\n";
    let found = lines_of("page", page);
    let place = desk();
    let ends = found.iter().map(|line| {
        let (code, said) = typed(place, 0, &line.text);
        (line.text.as_str(), is_fine(line, code, &said))
    });
    let wanted = [
        ("heapmark list workloads", true),
        ("heapmark compare --by", true),
        ("heapmark run -w churn --nope", false),
        ("heapmark try", false),
        ("heapmark check --nope | cat", false),
        ("heapmark build --nope; heapmark noise", false),
        ("heapmark run --cell a --nope", false),
        ("heapmark show --nope", false),
        ("heapmark check --only", true),
    ];
    assert_eq!(ends.collect::<Vec<_>>(), wanted);
    assert_eq!(found[2].place, "page:4");
}
