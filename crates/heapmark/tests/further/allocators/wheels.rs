//! Allocators out of Python wheels: fetched once, compared before each use, and missed in one line.

use crate::support::{End, Place, SMALL, files, word};
use heapmark::build;
use heapmark::catalog::{Allocator, allocators};
use indicatif::{MultiProgress, ProgressDrawTarget};
use serde_json::Value;
use std::fs;

/// heapmark where no package index answers, with a cache of its own.
fn offline(place: &Place, args: &[&str]) -> End {
    let mut command = place.heapmark(args);
    command
        .env("HEAPMARK_CACHE", place.at("cache"))
        .env("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        .env("PIP_FIND_LINKS", "");
    End::of(command.output().unwrap())
}

fn state(place: &Place) -> String {
    let end = offline(place, &["list", "allocators", "--format", "json"]);
    let listed: Vec<Value> = serde_json::from_str(&end.stdout).unwrap();
    let mut listed = listed.iter();
    let entry = listed.find(|entry| entry["name"] == "tbbmalloc").unwrap();
    word(entry, "state").to_owned()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_wheel_is_fetched_once_and_compared_before_each_use() {
    let place = Place::new();
    let end = offline(&place, &["build", "tbbmalloc"]);
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    let told = "downloading tbb 2023.2.0 with pip failed: No matching distribution found for \
                tbb==2023.2.0 (is there a network?)";
    let failed = |line: &&str| line.contains("tbbmalloc") && line.contains(told);
    assert_eq!(
        end.stderr.lines().filter(failed).count(),
        1,
        "{}",
        end.stderr
    );
    // As after a fetch: what all tests share has it.
    let all = allocators::load_with(None).unwrap();
    let tbbmalloc = |it: &&Allocator| it.name == "tbbmalloc";
    let tbbmalloc = all.iter().find(tbbmalloc).unwrap();
    let hidden = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
    let built = build::build(&[tbbmalloc], &all, 1, &hidden).remove(0);
    let library = built.result.unwrap();
    // One of its files needs the other, which is preloaded, and not a system's of the same name.
    assert_eq!((library.files.len(), &library.needs[..]), (2, &[][..]));
    let from = library.files[0].parent().unwrap();
    let to = place.at("cache/libraries").join(from.file_name().unwrap());
    fs::create_dir_all(&to).unwrap();
    assert_eq!(files(from).len(), 3, "two libraries and their checksums");
    for file in files(from) {
        fs::copy(from.join(&file), to.join(&file)).unwrap();
    }
    assert_eq!(state(&place), "ready");
    let run = ["run", "-o", "run", "-a", "tbbmalloc", "--blocks", "1"];
    let end = offline(&place, &[&run[..], &SMALL[..]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let rows = place.rows("run");
    let row = rows.iter().find(|row| row["allocator"] == "tbbmalloc");
    assert_eq!(row.unwrap()["outcome"], "ok", "{rows:?}");
    let changed = to.join("libtbbmalloc.so.2");
    let mut bytes = fs::read(&changed).unwrap();
    bytes.push(0);
    fs::write(&changed, bytes).unwrap();
    assert_eq!(state(&place), "not built");
}
