//! The proof of who serves malloc: it can fail, and what it stores is true.

use crate::support::stored::{change_head, forget_guest};
use crate::support::{End, Place, SMALL, glibc_again, head, of_purpose, samples, word};
use heapmark::build::GUEST;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// A guest that preloads a library behind heapmark's back.
fn planted_guest(place: &Place) -> std::path::PathBuf {
    let (wrapper, fake) = (place.at("guest"), place.fake("honest"));
    let text = format!(
        "#!/bin/sh\nLD_PRELOAD='{}' exec '{}' \"$@\"\n",
        fake.display(),
        GUEST.find().unwrap().display()
    );
    fs::write(&wrapper, text).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    wrapper
}

fn run_planted(place: &Place, args: &[&str]) -> End {
    End::of(
        place
            .heapmark(args)
            .env("HEAPMARK_GUEST", planted_guest(place))
            .output()
            .unwrap(),
    )
}

fn is_refused_by_the_control(place: &Place, end: &End) {
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    let words = "the guest without any preload must be served by the C library, but: not-loaded: ";
    let served = format!(
        "is served by {}, not by the C library. No number",
        place.at("libhonest.so").display()
    );
    assert!(
        end.stderr.contains(words) && end.stderr.contains(&served),
        "{}",
        end.stderr
    );
    let records = samples(&place.at("run"));
    assert!(
        records.iter().all(|record| record["purpose"] == "control"),
        "it went on: {records:?}"
    );
    assert!(
        records
            .iter()
            .all(|record| record.get("measurement").is_none()),
        "{records:?}"
    );
}

#[test]
fn a_preload_behind_heapmarks_back_ends_the_run_and_stays_its_end() {
    let place = Place::new();
    let args = [
        &["run", "-o", "run", "-a", "glibc,null", "--blocks", "1"],
        &SMALL[..],
    ]
    .concat();
    is_refused_by_the_control(&place, &run_planted(&place, &args));
    assert_eq!(samples(&place.at("run")).len(), 1);
    is_refused_by_the_control(&place, &run_planted(&place, &["run", "--resume", "run"]));

    // With a good guest the same run can be had.
    change_head(&place.at("run"), forget_guest);
    let end = place.run(&["run", "--resume", "run"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(place.rows("run").iter().all(|row| row["samples"] == "1"));
}

#[test]
fn a_preload_that_comes_after_the_control_is_seen_in_each_process() {
    let place = Place::new();
    let word_of = format!("mine={}", place.fake("slow").display());
    assert_eq!(
        place
            .run_small("run", &["-a", &word_of, "--blocks", "1"])
            .code,
        Some(0)
    );
    change_head(&place.at("run"), forget_guest);
    for cell in ["churn@1/b00/glibc", "churn@1/b00/mine"] {
        let end = run_planted(&place, &["run", "--resume", "run", "--cell", cell]);
        assert_eq!(end.code, Some(4), "{}", end.stderr);
        let last = end.stdout.lines().last().unwrap();
        assert!(last.starts_with("outcome: not-loaded: "), "{cell}: {last}");
    }
}

/// Device and inode as the proof has them.
fn identity(file: &Path) -> (u64, u64) {
    let metadata = fs::metadata(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    (metadata.dev(), metadata.ino())
}

#[test]
fn every_good_process_has_proved_that_the_library_owns_malloc_and_free() {
    let place = Place::new();
    place.ready(&["mimalloc3", "jemalloc"]);
    each_has_proved_itself(&place, &["mimalloc3", "jemalloc"]);
}

#[test]
#[should_panic(expected = "libc served 100 %")]
fn one_library_under_two_names_proves_itself_once() {
    each_has_proved_itself(&Place::new(), &[&glibc_again()]);
}

fn each_has_proved_itself(place: &Place, others: &[&str]) {
    let mine = format!("mine={}", place.fake("honest").display());
    let words = [&["glibc", &mine], others].concat();
    let end = place.run_small("run", &["-a", &words.join(","), "--blocks", "2"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);

    let (head, records) = (head(&place.at("run")), samples(&place.at("run")));
    let file_of = |allocator: &str| {
        let known = head["allocators"].as_array().unwrap();
        let info = known
            .iter()
            .find(|info| info["name"] == *allocator)
            .unwrap();
        info["files"][0].as_str().map(String::from)
    };
    let good = [
        of_purpose(&records, "check"),
        of_purpose(&records, "sample"),
    ]
    .concat();
    assert_eq!(good.len(), words.len() * 3);
    for record in good {
        assert_eq!(record["outcome"]["kind"], "ok");
        let allocator = word(record, "allocator");
        for function in ["malloc", "free"] {
            let owner = record["proof"]["owners"][function].as_u64().unwrap() as usize;
            let object = &record["proof"]["objects"][owner];
            let path = word(object, "path");
            let proved = (
                object["device"].as_u64().unwrap(),
                object["inode"].as_u64().unwrap(),
            );
            match file_of(allocator) {
                Some(file) => assert_eq!(proved, identity(Path::new(&file)), "{allocator}: {path}"),
                None => {
                    assert_eq!(proved, identity(Path::new(path)), "{allocator}");
                    assert!(
                        path.contains("libc.so") || path.contains("musl"),
                        "{allocator}: {path}"
                    );
                }
            }
        }
    }
}
