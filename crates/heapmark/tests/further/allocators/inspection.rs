//! Libraries with one fault each: the check for it fires, and a library that cannot be used is refused with its reason.

use heapmark::build::{self, State, entry_faults, inspect};
use heapmark::catalog::Allocator;
use heapmark::catalog::allocator::Recipe;
use heapmark::catalog::{allocators, malloc_api};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

static ALL: LazyLock<Vec<Allocator>> = LazyLock::new(|| allocators::load_with(None).unwrap());

/// A shared library (or what `flags` make of it) from a few lines of C.
fn planted(folder: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (text, file) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&text, source).unwrap();
    let status = Command::new("cc")
        .args(["-fPIC", "-fno-builtin"])
        .args(flags)
        .arg(&text)
        .arg("-o")
        .arg(&file)
        .status();
    assert!(status.unwrap().success());
    file
}

#[test]
fn the_checks_see_planted_faults() {
    let folder = tempfile::tempdir().unwrap();
    let source = "void *malloc(unsigned long n){return 0;} void stray(void){} __thread int v; int *at(void){return &v;}";
    let file = planted(folder.path(), "libplanted.so", source, &["-shared"]);
    let inspection = inspect(&file).unwrap();
    assert!(
        !inspection.exports.contains("free"),
        "a missing free shows in the exports and is no refusal"
    );

    let mut entry = ALL
        .iter()
        .find(|allocator| allocator.name == "mimalloc3")
        .unwrap()
        .clone();
    entry.left_to_libc.clear();
    let faults = entry_faults::completeness(&entry, &inspection.exports);
    assert_eq!(faults.len(), malloc_api::required().count() - 1);
    assert!(
        faults[0].contains("does not define calloc"),
        "{}",
        faults[0]
    );

    let recipe = Recipe {
        exports: vec!["at".into(), "v".into(), "ghost_*".into()],
        ..Recipe::default()
    };
    let faults = entry_faults::purity(&recipe, &inspection).join("\n");
    assert!(
        faults.contains("exports stray") && faults.contains("`ghost_*`"),
        "{faults}"
    );
    assert!(!faults.contains("exports at"), "{faults}");

    assert!(
        inspect::dynamic_tls(&file)
            .unwrap()
            .unwrap()
            .contains("__tls_get_addr")
    );
    let object = planted(folder.path(), "planted.o", source, &["-c"]);
    assert!(inspect::dynamic_tls(&object).unwrap().is_some());
    let object = planted(
        folder.path(),
        "initial.o",
        source,
        &["-c", "-ftls-model=initial-exec"],
    );
    assert_eq!(inspect::dynamic_tls(&object).unwrap(), None);
    #[cfg(target_arch = "x86_64")]
    {
        let object = planted(
            folder.path(),
            "descriptor.so",
            source,
            &["-shared", "-mtls-dialect=gnu2"],
        );
        assert!(
            inspect::dynamic_tls(&object)
                .unwrap()
                .unwrap()
                .contains("relocations")
        );
    }
}

#[test]
fn every_refusal_has_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let refused = |path: &Path, why: &str| {
        let error = inspect(path).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    let malloc = "void *malloc(unsigned long n){return 0;} int main(void){return 0;}";
    let good = planted(folder.path(), "good.so", malloc, &["-shared"]);
    assert!(inspect(&good).is_ok());

    refused(&at("none.so"), "there is no such file");
    refused(folder.path(), "not a regular file");
    refused(
        Path::new("/opt/with space.so"),
        "takes no path with a space",
    );
    refused(
        Path::new("/opt/with:colon.so"),
        "takes no path with a space",
    );
    std::fs::write(at("script.so"), "INPUT(-lfoo)\n").unwrap();
    refused(&at("script.so"), "not an ELF file");
    std::fs::write(at("empty.so"), "").unwrap();
    refused(&at("empty.so"), "not an ELF file");

    let mut bytes = std::fs::read(&good).unwrap();
    std::fs::write(at("cut.so"), &bytes[..100]).unwrap();
    refused(&at("cut.so"), "cut off or damaged");
    std::os::unix::fs::symlink(at("loop.so"), at("loop.so")).unwrap();
    refused(&at("loop.so"), "leads back to itself");
    // e_machine of PowerPC.
    bytes[18..20].copy_from_slice(&20u16.to_le_bytes());
    std::fs::write(at("other.so"), &bytes).unwrap();
    refused(&at("other.so"), "made for PowerPc");

    refused(
        &planted(folder.path(), "program", malloc, &["-pie"]),
        "not a shared library",
    );
    refused(
        &planted(folder.path(), "fixed", malloc, &["-no-pie"]),
        "not a shared library",
    );
    refused(
        &planted(folder.path(), "object.o", malloc, &["-c"]),
        "not a shared library",
    );
    refused(
        &planted(folder.path(), "none.so", "int x;", &["-shared"]),
        "exports no malloc",
    );

    for path in [
        at("nowhere.so"),
        folder.path().into(),
        at("script.so"),
        at("other.so"),
        at("object.o"),
        at("none.so"),
    ] {
        let line = inspect(&path).unwrap_err().to_string();
        assert!(
            line.starts_with(path.to_str().unwrap()) && line.contains("; ") && !line.contains('\n'),
            "{line}"
        );
    }
}

#[test]
fn a_path_on_the_command_line_is_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let file = planted(
        folder.path(),
        "libmine.so",
        "void *malloc(unsigned long n){return 0;}",
        &["-shared"],
    );
    let allocator = build::user(file.to_str().unwrap(), &ALL).unwrap().unwrap();
    assert_eq!(allocator.name, "mine");
    let State::Ready(library) = build::state(&allocator, &ALL) else {
        panic!("not ready")
    };
    assert_eq!(library.files, [file.canonicalize().unwrap()]);
    assert_eq!(library.exports, BTreeSet::from(["malloc".to_string()]));

    let allocator = build::user("./no/such/lib.so.1=", &ALL)
        .unwrap_err()
        .to_string();
    assert!(allocator.contains("is not a name"), "{allocator}");
    let absent = build::user("gone=/no/such/libgone.so", &ALL)
        .unwrap()
        .unwrap();
    assert!(
        matches!(build::state(&absent, &ALL), State::Refused { why } if why.contains("there is no such file"))
    );
}
