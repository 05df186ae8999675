//! `heapmark try --cargo`: builds of a Rust project that stays as it is.

use crate::support::home::record;
use crate::support::rust_project::{find_cargo, write_project};
use crate::support::tried::SMALL;
use crate::support::{End, Place, files, word};
use std::fs;
use std::process::Command;

/// A Rust project under git.
fn project(place: &Place) {
    write_project(&place.at("project"));
    git(
        place,
        "git init -q -b main && cargo generate-lockfile --offline -q && git add -A",
    );
    git(
        place,
        "git -c user.name=A -c user.email=a@example.org commit -q -m x",
    );
}

fn git(place: &Place, line: &str) -> String {
    let mut shell = Command::new("sh");
    let output = shell
        .args(["-c", line])
        .current_dir(place.at("project"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Tries it with a cache of its own, which goes with the place.
fn tried(place: &Place, flags: &[&str]) -> End {
    tried_in(place, "project", flags)
}

fn tried_in(place: &Place, folder: &str, flags: &[&str]) -> End {
    // The run is stored outside of the project.
    let outside = SMALL.map(|word| if word == "run" { "../run" } else { word });
    let mut heapmark = place.heapmark(&[&outside[..], &["--cargo"], flags].concat());
    heapmark.env("HEAPMARK_CACHE", place.at("cache"));
    find_cargo(&mut heapmark);
    End::of(heapmark.current_dir(place.at(folder)).output().unwrap())
}

#[test]
fn a_project_is_built_from_a_copy_and_stays_as_it_is() {
    let place = Place::new();
    project(&place);
    // The system's allocator needs no crate, so this is all offline; alone it is compared with nothing.
    let end = tried(&place, &["--global-allocators", "system"]);
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(
        end.stderr.contains("one is compared with nothing"),
        "{}",
        end.stderr
    );
    assert_eq!(git(&place, "git status --porcelain --ignored"), "");
    // Two rows of one build are none, and their variables make two.
    let settings = ["--variant-env", "system=A=1", "--variant-env", "other=A=2"];
    let end = tried(
        &place,
        &[&["--global-allocators", "system"], &settings[..]].concat(),
    );
    assert!(
        end.stderr
            .contains("--variant-env other: no --variant has this name"),
        "{}",
        end.stderr
    );

    // What another heapmark may be measuring stays as it is.
    let builds = || {
        let mut all = files(&place.at("cache/cargo"));
        all.retain(|path| path.contains("/bin/"));
        let read = |path: &String| fs::read(place.at("cache/cargo").join(path)).unwrap();
        all.iter().map(read).collect::<Vec<_>>()
    };
    let before = builds();
    assert!(!before.is_empty());
    let main = place.at("project/app/src/main.rs");
    let text = fs::read_to_string(&main).unwrap();
    fs::write(&main, text.replace("{} {}", "{}, {}")).unwrap();
    tried(&place, &["--global-allocators", "system"]);
    let after = builds();
    assert!(after.len() > before.len());
    assert!(before.iter().all(|build| after.contains(build)));

    // A project may name its target; then cargo puts the executable elsewhere.
    let version = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let version = String::from_utf8(version).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let config = format!("[build]\ntarget = {:?}\n", host.unwrap());
    fs::create_dir(place.at("project/.cargo")).unwrap();
    fs::write(place.at("project/.cargo/config.toml"), config).unwrap();
    fs::write(&main, text.replace("{} {}", "{}; {}")).unwrap();
    tried(&place, &["--global-allocators", "system"]);
    assert!(builds().len() > after.len());
}

#[test]
fn a_project_that_cannot_be_built_so_is_told_why_in_one_line() {
    let place = Place::new();
    project(&place);
    let why = |flags: &[&str]| {
        let end = tried(&place, flags);
        end.is_one_line(2);
        end.stderr
    };
    assert!(
        why(&["--global-allocators", "system,mymalloc"])
            .contains("there are system, mimalloc, jemalloc, snmalloc")
    );
    assert!(why(&["--bin", "other"]).contains("has no such binary: -p PACKAGE --bin NAME"));
    let main = place.at("project/app/src/main.rs");
    let text = fs::read_to_string(&main).unwrap();
    let own = "#[global_allocator]\nstatic A: std::alloc::System = std::alloc::System;\n";
    fs::write(&main, text.clone() + own).unwrap();
    assert!(why(&[]).contains("app/src/main.rs sets its own #[global_allocator]"));
    fs::write(&main, &text).unwrap();
    fs::create_dir_all(place.at("project/app/src/bin")).unwrap();
    fs::write(place.at("project/app/src/bin/other.rs"), "fn main() {}\n").unwrap();
    assert!(why(&[]).contains("has several binaries, of which --bin must name one: app, other"));
    fs::create_dir_all(place.at("beside/src")).unwrap();
    fs::write(place.at("beside/src/lib.rs"), "").unwrap();
    fs::write(
        place.at("beside/Cargo.toml"),
        "[package]\nname = \"beside\"\nversion = \"0.1.0\"\n",
    )
    .unwrap();
    let manifest = place.at("project/lib/Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(
        &manifest,
        text + "[dependencies]\nbeside = { path = \"../../beside\" }\n",
    )
    .unwrap();
    assert!(why(&["--bin", "app"]).contains("beside is a dependency outside of the workspace"));
    let end = tried_in(&place, ".", &[]);
    let none = "--cargo: error: could not find `Cargo.toml`";
    assert!(end.stderr.contains(none), "{}", end.stderr);
}

#[test]
#[ignore = "make test-all"]
fn each_global_allocator_is_built_in_and_proven() {
    let place = Place::new();
    project(&place);
    let end = tried(&place, &["--check-output"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = crate::support::samples(&place.at("run"));
    for (row, part) in [
        ("mimalloc", "mimalloc ("),
        ("jemalloc", "jemalloc (5."),
        ("snmalloc", "snmalloc ("),
    ] {
        let served = word(
            &record(&records, "check", row)["measurement"]["notes"],
            "served_by",
        )
        .to_owned();
        assert!(
            served.contains(part) && served.contains("crate "),
            "{row}: {served}"
        );
    }
    assert!(end.says("variant time / system"), "{}", end.stdout);
    assert_eq!(git(&place, "git status --porcelain --ignored"), "");
}
