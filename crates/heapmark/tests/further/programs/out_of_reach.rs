//! Programs that nothing can be preloaded into: `record` and `try` say so before anything runs, in one line with the reason.

use crate::support::{Place, copy_program};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

const NOTHING: &str = "int main(void) { return 0; }\n";

/// A program of these lines of C.
pub fn compile(place: &Place, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let file = place.at(&format!("{name}.c"));
    fs::write(&file, source).unwrap();
    let end = Command::new("cc")
        .args(flags)
        .arg("-o")
        .args([place.at(name), file])
        .output()
        .unwrap();
    assert!(
        end.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&end.stderr)
    );
    place.at(name)
}

fn executable(place: &Place, name: &str, content: &[u8]) {
    fs::write(place.at(name), content).unwrap();
    fs::set_permissions(place.at(name), fs::Permissions::from_mode(0o755)).unwrap();
}

/// A program with the privileges of another user: an installed one; for root, which has all
/// privileges, one that is given away.
fn privileged(place: &Place) -> String {
    if !rustix::process::geteuid().is_root() {
        return "/bin/su".into();
    }
    copy_program("/bin/true", place.at("privileged"));
    std::os::unix::fs::chown(place.at("privileged"), Some(65534), Some(65534)).unwrap();
    fs::set_permissions(place.at("privileged"), fs::Permissions::from_mode(0o4755)).unwrap();
    "./privileged".into()
}

#[test]
fn who_cannot_be_recorded_or_tried_is_told_before_it_runs() {
    let place = Place::new();
    compile(&place, "static", NOTHING, &["-static"]);
    // What Go's linker leaves in each program, with cgo or without.
    let go =
        format!("__attribute__((section(\".go.buildinfo\"), used)) static int go = 1;\n{NOTHING}");
    compile(&place, "go", &go, &["-static"]);
    compile(
        &place,
        "musl",
        NOTHING,
        &["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"],
    );
    let own = "#include <stddef.h>\nvoid *malloc(size_t size) { return size ? NULL : NULL; }\n";
    compile(&place, "own", &format!("{own}{NOTHING}"), &["-fno-builtin"]);
    for sanitizer in ["address", "thread"] {
        compile(
            &place,
            sanitizer,
            NOTHING,
            &[&format!("-fsanitize={sanitizer}")],
        );
    }
    // The header of a program for i386, and nothing behind it.
    let mut header = [0; 52];
    header[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    (
        header[16], header[18], header[20], header[40], header[42], header[46],
    ) = (2, 3, 1, 52, 32, 40);
    executable(&place, "small", &header);
    executable(
        &place,
        "script",
        format!("#!{}\n", place.text("static")).as_bytes(),
    );
    executable(&place, "text", b"neither a script \0 nor a program\n");
    let privileged = privileged(&place);
    for (program, why) in [
        (
            "./static",
            "static: it has no dynamic linker that could preload",
        ),
        (
            "./script",
            "static: it has no dynamic linker that could preload",
        ),
        ("./go", "a static Go program: it has no dynamic linker"),
        (
            "./musl",
            "linked to musl: libraries for glibc cannot be preloaded into it",
        ),
        (
            "./own",
            "defines a malloc of its own, which comes before any that is preloaded",
        ),
        (
            "./address",
            "which serves malloc itself: build the program without -fsanitize",
        ),
        (
            "./thread",
            "which serves malloc itself: build the program without -fsanitize",
        ),
        ("./small", "made for I386 (32 bit)"),
        (&privileged, "runs with the privileges of its file"),
        ("./text", "no program that this machine knows"),
    ] {
        for command in [
            &["record", "--", program][..],
            &["try", "-o", "run", "--", program],
        ] {
            let end = place.run(command);
            assert_eq!(
                (end.code, end.stderr.lines().count()),
                (Some(2), 1),
                "{command:?}: {}",
                end.stderr
            );
            assert!(end.stderr.contains(why), "{command:?}: {}", end.stderr);
        }
        assert!(!place.at("run").exists(), "{program}: nothing was measured");
    }
}

#[test]
fn what_lies_beside_malloc_is_told_and_the_rest_recorded() {
    let place = Place::new();
    let go =
        format!("__attribute__((section(\".go.buildinfo\"), used)) static int go = 1;\n{NOTHING}");
    compile(&place, "cgo", &go, &[]);
    let end = place.run(&["record", "--", "./cgo"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(
        end.stderr.contains("cgo has Go's own allocator inside"),
        "{}",
        end.stderr
    );
    assert!(place.at("cgo.trace").exists());
}
