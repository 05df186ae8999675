//! Files that import each other cannot be read one by one, so there are few, and no large circle. A name that many types
//! have names none of them.

use crate::support::repository;
use std::fs;
use std::path::Path;
use std::process::Command;

/// At most so many circles, and files in one.
const MOST: usize = 3;

/// What `scripts/code-size.py` prints of a checkout in lines that begin with `what`, without it.
fn printed(checkout: &Path, what: &str) -> Vec<String> {
    let end = Command::new("python3")
        .args([&repository().join("scripts/code-size.py"), checkout])
        .output()
        .expect("python3 reads the sources");
    assert!(end.status.success(), "{end:?}");
    let text = String::from_utf8(end.stdout).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix(what));
    lines.map(String::from).collect()
}

/// `of 2 in CRATE: a, b`.
fn circles(checkout: &Path) -> Vec<String> {
    printed(checkout, "cycle ")
}

/// Names of types that are defined more than twice, each with its count.
fn overused(checkout: &Path) -> Vec<String> {
    printed(checkout, "types defined more than twice: ")
}

fn is_large(circle: &str) -> bool {
    circle.split(", ").count() > MOST
}

#[test]
fn few_files_import_each_other() {
    let circles = circles(&repository());
    assert!(circles.len() <= MOST, "{circles:#?}");
    assert!(
        !circles.iter().any(|circle| is_large(circle)),
        "{circles:#?}"
    );
}

#[test]
fn no_name_is_that_of_three_types() {
    assert_eq!(overused(&repository()), ["none"]);
}

#[test]
fn a_planted_name_of_three_types_is_found() {
    let checkout = Path::new(env!("CARGO_TARGET_TMPDIR")).join("names");
    let source = checkout.join("crates/planted/src");
    fs::create_dir_all(&source).unwrap();
    let write = |name: &str, text: &str| fs::write(source.join(name), text).unwrap();
    write("lib.rs", "mod a;\nmod b;\nstruct Same;\nstruct Other;\n");
    write("a.rs", "pub enum Same {}\n");
    write("b.rs", "pub struct Other;\n");
    assert_eq!(overused(&checkout), ["none"]);
    write("b.rs", "pub type Same = u8;\npub struct Other;\n");
    assert_eq!(overused(&checkout), ["Same 3"]);
}

#[test]
fn a_planted_circle_of_four_files_is_found() {
    let checkout = Path::new(env!("CARGO_TARGET_TMPDIR")).join("circles");
    let source = checkout.join("crates/planted/src");
    fs::create_dir_all(&source).unwrap();
    let write = |name: &str, text: &str| fs::write(source.join(name), text).unwrap();
    write("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use a::A;\n");
    write("a.rs", "use crate::b::B;\npub struct A(B);\n");
    write("b.rs", "use super::c::{self, C};\npub struct B(C);\n");
    write("c.rs", "pub struct C;\nfn d() -> crate::d::D { todo!() }\n");
    write("d.rs", "pub struct D;\n");
    assert_eq!(circles(&checkout), Vec::<String>::new());
    // Through the door.
    write("d.rs", "use crate::A;\npub struct D(A);\n");
    let found = circles(&checkout);
    assert_eq!(found, ["of 4 in planted: a, b, c, d"]);
    assert!(is_large(&found[0]));
}
