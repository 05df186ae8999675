//! Allocators that the user brings, and that nothing of the user's own environment reaches a measured process.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use support::{End, Place, SMALL, head, of_purpose, plan, samples};

/// Runs it, and it must be measured under this name.
fn is_measured(place: &Place, word: &str, name: &str) {
    let run = format!("run-{name}");
    let end = place.run_small(&run, &["-a", word, "--blocks", "2"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let rows = place.rows(&run);
    let row = rows.iter().find(|row| row["allocator"] == name).unwrap_or_else(|| panic!("no {name} in {rows:?}"));
    assert_eq!((row["outcome"].as_str(), row["samples"].as_str()), ("ok", "2"), "{row:?}");
    assert_eq!(plan(&place.at(&run)).allocators.len(), 2, "the baseline rides along");
}

/// An entry in the user's folder for this library.
fn entry(place: &Place, name: &str, library: &Path, more: &str) {
    let folder = place.at("config/heapmark/allocators");
    fs::create_dir_all(&folder).unwrap();
    let source = format!("source = {{ kind = \"path\", files = [\"{}\"] }}", library.display());
    let text = format!("name = \"{name}\"\nfamily = \"mine\"\nabout = \"mine\"\ntier = \"user\"\n{source}\n{more}\n");
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
    is_measured(&place, &format!("foo-2={}", place.fake("honest").display()), "foo-2");
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
    let end = place.run_small("run", &["-a", "glibc", "--blocks", "1"]);
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    for told in ["allocators/mine.toml", "tire", "did you mean `tier`?"] {
        assert!(end.stderr.contains(told), "no `{told}` in {}", end.stderr);
    }
    assert!(!place.at("run").exists());
}

#[test]
fn a_path_that_preload_cannot_take_is_refused_in_words() {
    let place = Place::new();
    fs::copy(place.fake("honest"), place.at("my lib.so")).unwrap();
    let end = place.run_small("run", &["-a", &format!("mine={}", place.text("my lib.so")), "--blocks", "2"]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    assert!(end.stderr.contains("LD_PRELOAD takes no path with a space"), "{}", end.stderr);
    let row = &place.rows("run")[0];
    assert_eq!((row["allocator"].as_str(), row["outcome"].as_str()), ("mine", "not-loaded"));
    assert!(row["detail"].contains("LD_PRELOAD takes no path with a space"), "{row:?}");
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
        "mimalloc3,mimalloc3=./libhonest.so",
    ];
    for words in pairs {
        let end = place.run_small("run", &["-a", words, "--blocks", "1"]);
        assert_eq!(end.code, Some(2), "{words}: {}", end.stderr);
        assert!(end.stderr.contains("two allocators have the name `"), "{}", end.stderr);
        assert!(end.stderr.contains("NAME=/path/lib.so"), "{}", end.stderr);
        assert!(!place.at("run").exists());
    }
}

#[test]
fn the_callers_environment_does_not_reach_a_measured_process() {
    let place = Place::new();
    let (recorder, told) = (place.fake("recorder"), place.at("told"));
    entry(&place, "recorder", &recorder, &format!("[environment]\nRECORD_TO = \"{}\"", told.display()));
    let args = [&["run", "-o", "run", "-a", "recorder", "--blocks", "2"], &SMALL[..]].concat();
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
    let (padding, others): (Vec<&str>, Vec<&str>) = text
        .lines()
        .partition(|line| line.strip_prefix("HEAPMARK_PADDING=").is_some_and(|x| x.trim_matches('x').is_empty()));
    // A check and two samples.
    assert_eq!(padding.len(), 3, "{text}");
    assert_eq!(others.iter().map(|line| line.to_string()).collect::<BTreeSet<_>>(), expected);

    let records = samples(&place.at("run"));
    for record in records.iter().filter(|record| record["allocator"] == "recorder") {
        let stored = record["environment"].as_object().unwrap();
        let mut lines: BTreeSet<String> =
            stored.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
        lines.retain(|line| !line.starts_with("HEAPMARK_PADDING="));
        assert_eq!(lines, expected, "what is stored is what the process had");
    }
    for record in of_purpose(&records, "sample").iter().filter(|record| record["allocator"] == "glibc") {
        let names: Vec<&String> = record["environment"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["HEAPMARK_PADDING"]);
    }
    assert_eq!(head(&place.at("run"))["plan"]["baseline"], "glibc");
}
