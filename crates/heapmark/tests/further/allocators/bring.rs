//! Allocators that the user brings, and that nothing of the user's own environment reaches a measured process.

use crate::support::{End, Place, SMALL, head, of_purpose, plan, samples, word};
use heapmark::build::{self, State};
use heapmark::catalog::allocators;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs it, and it must be measured under this name.
fn is_measured(place: &Place, word: &str, name: &str) {
    let run = format!("run-{name}");
    let words: Vec<&str> = word.split(' ').collect();
    let end = place.run_small(&run, &[&["-a"], &words[..], &["--blocks", "2"]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let rows = place.rows(&run);
    let row = rows
        .iter()
        .find(|row| row["allocator"] == name)
        .unwrap_or_else(|| panic!("no {name} in {rows:?}"));
    assert_eq!(
        (row["outcome"].as_str(), row["samples"].as_str()),
        ("ok", "2"),
        "{row:?}"
    );
    assert_eq!(
        plan(&place.at(&run)).allocators.len(),
        2,
        "the baseline rides along"
    );
}

/// An entry in the user's folder for this library.
fn entry(place: &Place, name: &str, library: &Path, more: &str) {
    let folder = place.at("config/heapmark/allocators");
    fs::create_dir_all(&folder).unwrap();
    let source = format!(
        "source = {{ kind = \"path\", files = [\"{}\"] }}",
        library.display()
    );
    let text = format!(
        "name = \"{name}\"\nfamily = \"mine\"\nabout = \"mine\"\ntier = \"user\"\n{source}\n{more}\n"
    );
    fs::write(folder.join(format!("{name}.toml")), text).unwrap();
}

#[test]
fn a_library_is_measured_by_its_path() {
    let place = Place::new();
    place.fake("honest");
    is_measured(&place, "./libhonest.so", "honest");
}

#[test]
fn a_library_is_measured_by_a_name_and_its_path() {
    let place = Place::new();
    is_measured(
        &place,
        &format!("foo-2={}", place.fake("honest").display()),
        "foo-2",
    );
}

#[test]
fn a_library_is_measured_by_an_entry_in_the_users_folder() {
    let place = Place::new();
    entry(&place, "mine", &place.fake("honest"), "");
    is_measured(&place, "mine", "mine");
}

#[test]
fn a_broken_entry_is_told_by_file_and_key() {
    let place = Place::new();
    entry(&place, "mine", &place.fake("honest"), "tire = 1");
    let folder = place.at("config/heapmark/allocators");
    let pipe = Command::new("mkfifo")
        .arg(folder.join("pipe.toml"))
        .status();
    assert!(pipe.unwrap().success());
    let end = place.run_small("run", &["-a", "glibc", "--blocks", "1"]);
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    for told in [
        "allocators/mine.toml",
        "tire",
        "did you mean `tier`?",
        "allocators/pipe.toml: it is no regular file; make it readable, or remove it",
    ] {
        assert!(end.stderr.contains(told), "no `{told}` in {}", end.stderr);
    }
    // What refers to entries is not blamed for theirs.
    assert!(!end.stderr.contains("releases/"), "{}", end.stderr);
    assert!(!place.at("run").exists());
}

#[test]
fn a_path_that_preload_cannot_take_is_refused_in_words() {
    let place = Place::new();
    fs::copy(place.fake("honest"), place.at("my lib.so")).unwrap();
    let end = place.run_small(
        "run",
        &[
            "-a",
            &format!("mine={}", place.text("my lib.so")),
            "--blocks",
            "2",
        ],
    );
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    assert!(
        end.stderr.contains("LD_PRELOAD takes no path with a space"),
        "{}",
        end.stderr
    );
    let row = &place.rows("run")[0];
    assert_eq!(
        (row["allocator"].as_str(), row["outcome"].as_str()),
        ("mine", "not-loaded")
    );
    assert!(
        row["detail"].contains("LD_PRELOAD takes no path with a space"),
        "{row:?}"
    );
}

#[test]
fn two_libraries_of_one_name_are_refused() {
    let place = Place::new();
    place.fake("honest");
    fs::create_dir(place.at("other")).unwrap();
    fs::copy(place.at("libhonest.so"), place.at("other/libhonest.so")).unwrap();
    let pairs = [
        "./libhonest.so,other/libhonest.so",
        "foo=./libhonest.so,foo=other/libhonest.so",
        "mimalloc3,mimalloc3=./libhonest.so --replace",
        "foo=./libhonest.so --baseline foo=other/libhonest.so",
    ];
    for words in pairs {
        let words: Vec<&str> = words.split(' ').collect();
        let end = place.run_small("run", &[&["-a"], &words[..], &["--blocks", "1"]].concat());
        assert_eq!(end.code, Some(2), "{words:?}: {}", end.stderr);
        assert!(
            end.stderr.contains("two allocators have the name `"),
            "{}",
            end.stderr
        );
        assert!(end.stderr.contains("NAME=/path/lib.so"), "{}", end.stderr);
        assert!(!place.at("run").exists());
    }
}

/// A library with memory of its own that exports these functions, which do nothing.
fn exporting(place: &Place, name: &str, functions: &[&str]) -> PathBuf {
    let (source, library) = (
        place.at(&format!("{name}.c")),
        place.at(&format!("lib{name}.so")),
    );
    let functions = functions
        .iter()
        .map(|name| format!("int {name}(void) {{ return 0; }}\n"));
    fs::write(&source, functions.collect::<String>()).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-fno-builtin", "-o"]).args([
        &library,
        &source,
        &crate::support::source("own"),
    ]);
    assert!(cc.status().unwrap().success());
    library
}

#[test]
fn a_library_under_a_name_of_the_catalogue_is_refused_unless_it_is_to_replace_it() {
    let place = Place::new();
    let library = place.fake("honest");
    fs::copy(&library, place.at("libjemalloc.so.2")).unwrap();
    let refused = |args: &[&str]| {
        let end = place.run(args);
        assert_eq!(end.code, Some(2), "{args:?}: {}", end.stderr);
        assert_eq!(end.stderr.lines().count(), 1, "{}", end.stderr);
        assert!(!place.at("run").exists() && !place.at("heapmark-results").exists());
        end.stderr
    };
    for words in [
        &["run", "-a", "jemalloc=./libhonest.so,glibc"][..],
        &["run", "-a", "./libjemalloc.so.2"],
        &["run", "--baseline", "jemalloc=./libhonest.so"],
        &["try", "-a", "jemalloc=./libhonest.so,glibc", "--", "true"],
    ] {
        let told = refused(words);
        assert!(
            told.contains("`jemalloc` is a name of the catalogue"),
            "{told}"
        );
        assert!(told.contains("--replace"), "{told}");
    }
    let told = refused(&["check", "-a", "jemalloc=./libhonest.so"]);
    assert!(!told.contains("--replace"), "check has none: {told}");
    is_measured(&place, "jemalloc=./libhonest.so --replace", "jemalloc");
    let run = head(&place.at("run-jemalloc"));
    assert_eq!(
        word(&run["allocators"][0], "origin"),
        "path",
        "the row says that it is the user's"
    );
}

#[test]
fn the_floors_name_is_never_taken_and_its_guard_stays() {
    let place = Place::new();
    place.fake("honest");
    for more in [&[][..], &["--replace"]] {
        let end = place.run(&[&["run", "-a", "null=./libhonest.so,glibc"], more].concat());
        assert_eq!(end.code, Some(2), "{}", end.stderr);
        assert!(
            end.stderr
                .contains("`null` is the harness's own floor and is never replaced"),
            "{}",
            end.stderr
        );
    }
    entry(&place, "null", &place.at("libhonest.so"), "replace = true");
    let end = place.run_small("run", &["-a", "glibc", "--blocks", "1"]);
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    assert!(
        end.stderr
            .contains("allocators/null.toml: name: `null` is the harness's own floor"),
        "{}",
        end.stderr
    );
}

#[test]
fn an_entry_in_the_users_folder_replaces_ours_only_if_it_says_so() {
    let place = Place::new();
    let library = place.fake("honest");
    entry(&place, "rpmalloc", &library, "");
    let end = place.run_small("run", &["-a", "rpmalloc", "--blocks", "1"]);
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    for told in [
        "allocators/rpmalloc.toml",
        "`rpmalloc` is a name of heapmark's own catalogue",
        "replace = true",
    ] {
        assert!(end.stderr.contains(told), "no `{told}` in {}", end.stderr);
    }
    entry(&place, "rpmalloc", &library, "replace = true");
    is_measured(&place, "rpmalloc", "rpmalloc");
    entry(&place, "mine", &library, "replace = true");
    let end = place.run(&["list", "allocators"]);
    assert!(
        end.stderr.contains("there is no `mine` to replace"),
        "{}",
        end.stderr
    );
}

#[test]
fn a_library_by_path_is_purged_as_the_family_that_it_is_known_by() {
    let place = Place::new();
    let all = allocators::load_with(None).unwrap();
    let purged_as = |name: &str, functions: &[&str]| {
        let word = format!("{name}={}", exporting(&place, name, functions).display());
        let allocator = build::user(&word, &[]).unwrap().unwrap();
        let State::Ready(library) = build::state(&allocator, &all) else {
            panic!("{word} is not ready")
        };
        library.purged_as
    };
    for (name, functions, family) in [
        ("nothing-known", &["f"][..], None),
        ("mi", &["mi_collect"], Some("mimalloc")),
        ("je", &["mallctl", "mallopt"], Some("jemalloc")),
        // Many have this one, and mean what libc means by it.
        ("trim", &["malloc_trim"], Some("glibc")),
        (
            "hardened",
            &["malloc_trim", "malloc_object_size"],
            Some("hardened_malloc"),
        ),
        (
            "scudo-like",
            &["mallopt", "__scudo_print_stats"],
            Some("scudo"),
        ),
        ("mallopt", &["mallopt"], None),
        // Its malloc_trim asks for nothing back, and what would is not exported.
        (
            "tc",
            &[
                "malloc_trim",
                "MallocExtension_Internal_ReleaseMemoryToSystem",
            ],
            None,
        ),
        ("both", &["mi_collect", "mallctl"], None),
    ] {
        assert_eq!(purged_as(name, functions).as_deref(), family, "{name}");
    }
}

#[test]
fn families_are_known_by_functions_of_theirs_and_purged_in_one_way() {
    let all = allocators::load_with(None).unwrap();
    let known: Vec<_> = all
        .iter()
        .filter(|entry| !entry.known_by.is_empty())
        .collect();
    for (place, one) in known.iter().enumerate() {
        for other in &known[..place] {
            let (purge, known) = (format!("{:?}", other.purge), &other.known_by);
            if one.family == other.family {
                assert_eq!(
                    (format!("{:?}", one.purge), &one.known_by),
                    (purge, known),
                    "{}",
                    one.name
                );
            } else {
                assert_ne!(&one.known_by, known, "{} and {}", one.name, other.name);
            }
        }
    }
}

#[test]
fn the_row_of_a_library_by_path_says_as_what_it_is_purged() {
    let place = Place::new();
    exporting(&place, "collecting", &["mi_collect"]);
    place.fake("honest");
    entry(
        &place,
        "own-way",
        &place.at("libcollecting.so"),
        "purge = { kind = \"call\", symbol = \"mi_collect\" }",
    );
    let words = "./libcollecting.so,./libhonest.so,own-way,glibc";
    let flags = [
        "-w",
        "same-thread",
        "-t",
        "1",
        "--blocks",
        "1",
        "--no-floor",
        "--no-aa-copy",
    ];
    let end = place.run(
        &[
            &["run", "-o", "run", "--no-repeat", "-a", words],
            &flags[..],
        ]
        .concat(),
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let note = |row: &str| {
        // Notes stand in the last column, of a narrow table in one below it.
        let start = format!("  {row} ");
        end.stdout
            .lines()
            .rfind(|line| line.starts_with(&start))
            .unwrap_or_else(|| panic!("no {row} in {}", end.stdout))
    };
    assert!(
        note("collecting").ends_with(", purged as mimalloc"),
        "{}",
        end.stdout
    );
    assert!(note("honest").contains("not purged"), "{}", end.stdout);
    assert!(!note("own-way").contains("purged as"), "{}", end.stdout);
    assert!(
        place
            .full("run")
            .contains("purged as: the library was given by its path"),
        "{}",
        end.stdout
    );
    for record in of_purpose(&samples(&place.at("run")), "sample") {
        let purge = if record["allocator"] == "honest" {
            "none"
        } else {
            "called"
        };
        assert_eq!(record["measurement"]["purge"], purge, "{}", record["cell"]);
    }
}

#[test]
fn the_callers_environment_does_not_reach_a_measured_process() {
    let place = Place::new();
    let (recorder, told) = (place.fake("recorder"), place.at("told"));
    entry(
        &place,
        "recorder",
        &recorder,
        &format!("[environment]\nRECORD_TO = \"{}\"", told.display()),
    );
    let args = [
        &["run", "-o", "run", "-a", "recorder", "--blocks", "2"],
        &SMALL[..],
    ]
    .concat();
    let mut command = place.heapmark(&args);
    command
        .env("MALLOC_CONF", "narenas:1")
        .env("MALLOC_ARENA_MAX", "1")
        .env("MIMALLOC_VERBOSE", "1")
        .env("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")
        .env("LD_PRELOAD", place.fake("honest"));
    let end = End::of(command.output().unwrap());
    assert_eq!(end.code, Some(0), "{}", end.stderr);

    let preload = format!("LD_PRELOAD={}", recorder.canonicalize().unwrap().display());
    let expected = BTreeSet::from([preload, format!("RECORD_TO={}", told.display())]);
    let text = fs::read_to_string(&told).unwrap();
    let (padding, others): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| {
        line.strip_prefix("HEAPMARK_PADDING=")
            .is_some_and(|x| x.trim_matches('x').is_empty())
    });
    // A check and two samples, and a process for each kind of call that few workloads make.
    assert_eq!(
        padding.len(),
        3 + heapmark_guest::corners::ALL.len(),
        "{text}"
    );
    assert_eq!(
        others
            .iter()
            .map(|line| line.to_string())
            .collect::<BTreeSet<_>>(),
        expected
    );

    let records = samples(&place.at("run"));
    for record in records
        .iter()
        .filter(|record| record["allocator"] == "recorder")
    {
        let stored = record["environment"].as_object().unwrap();
        let mut lines: BTreeSet<String> = stored
            .iter()
            .map(|(name, value)| format!("{name}={}", value.as_str().unwrap()))
            .collect();
        lines.retain(|line| !line.starts_with("HEAPMARK_PADDING="));
        assert_eq!(lines, expected, "what is stored is what the process had");
    }
    for record in of_purpose(&records, "sample")
        .iter()
        .filter(|record| record["allocator"] == "glibc")
    {
        let names: Vec<&String> = record["environment"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["HEAPMARK_PADDING"]);
    }
    assert_eq!(head(&place.at("run"))["plan"]["baseline"], "glibc");
}

#[test]
fn an_allocator_that_this_kernel_breaks_is_unsupported() {
    let place = Place::new();
    let library = place.fake("honest");
    let why = "it crashes, see issue 7";
    let not_on = |range: &str| format!("not-on-linux = [{{ from = {range}, why = \"{why}\" }}]");
    entry(&place, "broken", &library, &not_on("\"2.6\""));
    entry(
        &place,
        "mended",
        &library,
        &not_on("\"2.6\", before = \"2.6.39\""),
    );
    is_measured(&place, "mended", "mended");
    let end = place.run_small("run", &["-a", "broken", "--blocks", "1"]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let told = "on Linux since 2.6 (here ";
    for part in ["broken: unsupported: ", told, why] {
        assert!(end.stderr.contains(part), "no `{part}` in {}", end.stderr);
    }
    let row = &place.rows("run")[0];
    assert_eq!(
        (row["allocator"].as_str(), row["outcome"].as_str()),
        ("broken", "unsupported"),
        "{row:?}"
    );
    assert!(row["detail"].contains(told), "{row:?}");
    // In place of an entry of ours, and in commands that run nothing.
    let file = place.at("config/heapmark/allocators/broken.toml");
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replace("\"broken\"", "\"tcmalloc-percpu\"");
    let text = text.replace("tier = \"user\"", "tier = \"main\"") + "replace = true\n";
    fs::write(file.with_file_name("tcmalloc-percpu.toml"), text).unwrap();
    fs::remove_file(&file).unwrap();
    let end = place.run(&["list", "allocators", "--format", "json"]);
    let listed: Vec<serde_json::Value> = serde_json::from_str(&end.stdout).unwrap();
    let mut listed = listed.iter();
    let percpu = listed.find(|it| it["name"] == "tcmalloc-percpu").unwrap();
    assert_eq!(word(percpu, "state"), "unsupported");
    assert!(word(percpu, "why").contains(told), "{percpu}");
    let end = place.run_small("check", &["-a", "mended,tcmalloc-percpu", "--dry-run"]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let told = "tcmalloc-percpu cannot be measured: on Linux since 2.6";
    assert!(end.stderr.contains(told), "{}", end.stderr);
}
