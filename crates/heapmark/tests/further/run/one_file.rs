//! The binary is all of heapmark: alone in a folder, under a home without anything, on a machine without a compiler, with what it carries
//! damaged, and in the layout of a distribution.

use crate::support::tried::TRUE;
use crate::support::{End, SMALL, is_root, repository};
use heapmark::build::{GUEST, REACH, TIMER, WITNESS, in_path};
use heapmark::catalog::{Catalog, Source};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A machine that has nothing of heapmark but the binary, in `bin`.
struct Machine(TempDir);

impl Machine {
    fn new() -> Machine {
        // On the file system of the binary, which is large: a link is a copy.
        let machine = Machine(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        for name in ["bin", "home", "work"] {
            fs::create_dir(machine.at(name)).unwrap();
        }
        fs::hard_link(env!("CARGO_BIN_EXE_heapmark"), machine.at("bin/heapmark")).unwrap();
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn heapmark(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.at("bin/heapmark"));
        command
            .args(args)
            .env_clear()
            // No compiler, nor anything else.
            .env("PATH", self.at("bin"))
            .env("HOME", self.at("home"))
            .current_dir(self.at("work"));
        command
    }

    fn run(&self, args: &[&str]) -> End {
        End::of(self.heapmark(args).output().unwrap())
    }

    fn run_anew(&self, args: &[&str]) -> End {
        let _ = fs::remove_dir_all(self.at("work/tried"));
        self.run(args)
    }

    /// A guest that leaves a file where it ran.
    fn marking_guest(&self, path: &str, mark: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let (mark, guest) = (self.at(mark), GUEST.find().unwrap());
        let text = format!(
            "#!/bin/sh\n: > {}\nexec {} \"$@\"\n",
            mark.display(),
            guest.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn has_unpacked(&self, name: &str) -> bool {
        let mut folders = fs::read_dir(self.at("home/.cache/heapmark/carried")).unwrap();
        folders.any(|folder| folder.unwrap().path().join(name).exists())
    }

    /// The only file of this name that was unpacked.
    fn unpacked(&self, name: &str) -> PathBuf {
        let folders = fs::read_dir(self.at("home/.cache/heapmark/carried")).unwrap();
        let files = folders.map(|folder| folder.unwrap().path().join(name));
        let files: Vec<PathBuf> = files.filter(|file| file.exists()).collect();
        let [file] = &files[..] else {
            panic!("{files:?}")
        };
        file.clone()
    }
}

const RECORD: [&str; 5] = ["record", "-o", "a.trace", "--force", "--"];

#[test]
fn a_copied_binary_is_all_that_is_needed() {
    let machine = Machine::new();
    let run = ["run", "-o", "measured", "-a", "glibc", "--blocks", "1"];
    let replay = [
        "replay", "a.trace", "-o", "replayed", "-a", "glibc", "--blocks", "1",
    ];
    for args in [
        &["run", "--dry-run", "-w", "churn,trace:clustalo-align"][..],
        &[&run[..], &SMALL].concat(),
        &TRUE,
        &[
            "try", "-o", "aged", "-a", "glibc", "--blocks", "1", "--age", "50", "--", "/bin/ls",
            "/",
        ],
        &[&RECORD[..], &["/bin/ls", "/"]].concat(),
        &[&replay[..], &["--target-ms", "1", "--no-repeat"]].concat(),
    ] {
        let end = machine.run(args);
        assert_eq!(end.code, Some(0), "{args:?}: {}{}", end.stdout, end.stderr);
        // Of the library that looks for compilers.
        assert!(!end.stderr.contains("cargo:"), "{}", end.stderr);
    }
}

#[test]
fn a_damaged_unpacked_file_is_unpacked_again() {
    let machine = Machine::new();
    let record = [&RECORD[..], &["/bin/true"]].concat();
    for (name, args) in [
        ("heapmark-guest", &record[..]),
        ("libheapmark_recorder.so", &record),
        ("witness.so", &TRUE),
    ] {
        assert_eq!(machine.run_anew(args).code, Some(0));
        let file = machine.unpacked(name);
        let whole = fs::read(&file).unwrap();
        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        for damaged in [&changed[..], &whole[..whole.len() / 2], b""] {
            fs::write(&file, damaged).unwrap();
            let end = machine.run_anew(args);
            assert_eq!(end.code, Some(0), "{name}: {}", end.stderr);
            assert!(fs::read(&file).unwrap() == whole, "{name} stays damaged");
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(machine.run_anew(args).code, Some(0));
        assert_ne!(fs::metadata(&file).unwrap().permissions().mode() & 0o100, 0);
    }
}

#[test]
fn the_environment_goes_before_the_layout_of_a_distribution_and_that_before_what_is_carried() {
    let machine = Machine::new();
    machine.marking_guest("lib/heapmark/heapmark-guest", "installed");
    let end = machine.run(&TRUE);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(machine.at("installed").exists(), "another guest ran");
    assert!(!machine.has_unpacked("heapmark-guest"));

    fs::remove_file(machine.at("installed")).unwrap();
    let named = machine.marking_guest("named-guest", "named");
    let mut command = machine.heapmark(&["list", "allocators"]);
    let end = End::of(command.env("HEAPMARK_GUEST", named).output().unwrap());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(machine.at("named").exists() && !machine.at("installed").exists());
}

#[test]
fn what_others_can_exchange_beside_the_program_is_not_started() {
    let machine = Machine::new();
    let guest = machine.marking_guest("lib/heapmark/heapmark-guest", "started");
    let unused = |by: &str| {
        let end = machine.run_anew(&TRUE);
        assert_eq!(end.code, Some(0), "{by}: {}", end.stderr);
        assert!(!machine.at("started").exists(), "{by}");
        let said = format!(
            "warning: {} is not used: {by}, so it can be exchanged",
            machine.at("lib/heapmark").display()
        );
        let lines = end.stderr.lines().filter(|line| *line == said);
        assert_eq!(lines.count(), 1, "{said}: {}", end.stderr);
    };
    let others = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        format!("others can write in {}", path.display())
    };
    for (path, closed) in [(machine.at("lib"), 0o755), (guest.clone(), 0o755)] {
        unused(&others(&path, closed | 0o002));
        let mut command = machine.heapmark(&["list", "allocators"]);
        let end = End::of(command.env("HEAPMARK_GUEST", &guest).output().unwrap());
        end.is_one_line(1);
        assert!(end.stderr.contains("HEAPMARK_GUEST="), "{}", end.stderr);
        others(&path, closed);
    }
    // A planted file in a sticky folder, such as /tmp.
    if !is_root() {
        return eprintln!("skipped: a file of another user (needs root)");
    }
    others(&machine.at("lib"), 0o1777);
    for path in [&guest, &machine.at("lib/heapmark")] {
        chown(path, Some(65_534), Some(65_534)).unwrap();
        unused(&format!("{} belongs to user 65534", path.display()));
        chown(path, Some(0), Some(0)).unwrap();
    }
    assert_eq!(machine.run_anew(&TRUE).code, Some(0));
    assert!(machine.at("started").exists());
}

#[test]
fn nothing_is_unpacked_of_what_a_distribution_installs() {
    let machine = Machine::new();
    fs::create_dir_all(machine.at("lib/heapmark")).unwrap();
    for file in [&GUEST, &WITNESS, &TIMER, &REACH] {
        let path = file.find().unwrap();
        let name = path.file_name().unwrap();
        fs::copy(&path, machine.at("lib/heapmark").join(name)).unwrap();
    }
    let end = machine.run(&TRUE);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(!machine.at("home/.cache/heapmark/carried").exists());

    // It is the installed witness that is believed: one that is silent proves nothing.
    let silent = TIMER.find().unwrap();
    fs::copy(silent, machine.at("lib/heapmark/witness.so")).unwrap();
    let end = machine.run_anew(&TRUE);
    assert_ne!(end.code, Some(0), "{}", end.stdout);
    assert!(
        end.stderr.contains("not-loaded: no process of the command"),
        "{}",
        end.stderr
    );
}

#[test]
fn a_tarball_has_all_and_its_checksums_and_says_which_glibc_it_needs() {
    let machine = Machine::new();
    let dist = |program: PathBuf| {
        let mut script = Command::new(repository().join("scripts/dist.sh"));
        script
            .arg(machine.at("dist"))
            .env("HEAPMARK", program)
            // Of dpkg-deb; how small the package is does not matter here.
            .env("DPKG_DEB_COMPRESSOR_LEVEL", "1");
        End::of(script.output().unwrap())
    };
    let end = dist(machine.at("none"));
    end.is_one_line(1);
    // As it is shipped; the debug information of tests would take a minute to pack.
    let program = machine.at("stripped");
    let mut strip = Command::new("strip");
    strip
        .arg("-o")
        .arg(&program)
        .arg(machine.at("bin/heapmark"));
    assert!(strip.status().unwrap().success());
    let end = dist(program);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let made: Vec<(&str, &str)> = end
        .stdout
        .lines()
        .map(|line| line.split_once(" needs ").unwrap())
        .collect();
    let (tarball, needs) = made[0];

    let shell = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(machine.at("work"));
        End::of(shell.output().unwrap())
    };
    let end = shell(&format!(
        "tar --strip-components 1 -xzf {tarball} && sha256sum -c SHA256SUMS"
    ));
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    for name in [
        "bin/heapmark",
        "share/man/man1/heapmark-run.1",
        "LICENSE-MIT",
        "NEEDS",
    ] {
        assert!(end.says(&format!("./{name}: OK")), "{}", end.stdout);
    }
    // The dynamic linker's own words: the newest version of a symbol that the program and its guest want.
    let guest = GUEST.find().unwrap();
    let versions = format!(
        "objdump -p bin/heapmark {} | grep -oE 'GLIBC_[0-9.]+' | sort -V | tail -n 1",
        guest.display()
    );
    let newest = shell(&versions).stdout.trim().replace("GLIBC_", "glibc ");
    assert_eq!(needs, format!("{newest} or newer"));
    let end = shell("./bin/heapmark --version");
    assert!(end.stdout.starts_with("heapmark "), "{}", end.stderr);
    let end = shell("echo >> NEEDS; sha256sum -c --quiet SHA256SUMS");
    assert!(end.says("./NEEDS: FAILED"), "{}", end.stdout);

    if in_path("dpkg-deb").is_none() {
        return assert_eq!(made.len(), 1);
    }
    let package = made[1].0;
    let end = shell(&format!(
        "dpkg-deb -x {package} unpacked && dpkg-deb -f {package} Depends && unpacked/usr/bin/heapmark --version"
    ));
    let glibc = newest.trim_start_matches("glibc ");
    let expected = format!("libc6 (>= {glibc}), libgcc-s1\nheapmark ");
    assert!(
        end.stdout.starts_with(&expected),
        "{}{}",
        end.stdout,
        end.stderr
    );
    for file in [
        "man/man1/heapmark-run.1.gz",
        "bash-completion/completions/heapmark",
        "doc/heapmark/LICENSE-MIT",
    ] {
        assert!(
            machine.at("work/unpacked/usr/share").join(file).is_file(),
            "{file}"
        );
    }
    // What the package wants is all that the program is linked to.
    let linked =
        shell("objdump -p unpacked/usr/bin/heapmark | awk '$1 == \"NEEDED\" { print $2 }'");
    for library in linked.stdout.lines() {
        let known = ["libc.so.", "libm.so.", "ld-linux", "libgcc_s.so."];
        assert!(
            known.iter().any(|one| library.starts_with(one)),
            "{library}"
        );
    }
    let folder = package.rsplit_once('/').unwrap().0;
    let check = format!("cd {folder} && sha256sum -c --quiet *.sha256");
    assert_eq!(shell(&check).code, Some(0));
    assert_ne!(shell(&format!("echo >> {package}; {check}")).code, Some(0));
}

#[test]
fn the_recipe_of_an_image_takes_what_is_there() {
    let at = |name: &str| fs::read_to_string(repository().join(name)).unwrap();
    let recipe = at("Containerfile");
    let crates = at("Cargo.toml");
    let (_, rest) = crates.split_once("rust-version = \"").unwrap();
    let rust = rest.split_once('"').unwrap().0;
    assert!(recipe.contains(&format!("\nFROM rust:{rust}-")), "{rust}");
    let packages = recipe
        .split_whitespace()
        .filter(|word| word.starts_with("lib"));
    let packages: Vec<&str> = packages.collect();
    assert!(packages.len() > 2, "{packages:?}");
    let catalog = Catalog::load().unwrap();
    let packaged: Vec<&str> = catalog
        .allocators
        .iter()
        .filter_map(|one| match &one.source {
            Source::System { package, .. } => Some(package.as_str()),
            _ => None,
        })
        .collect();
    for package in packages {
        assert!(packaged.contains(&package), "{package}");
    }
}

#[test]
fn what_cannot_be_found_or_unpacked_is_one_line() {
    let machine = Machine::new();
    let said = |variable: &str, value: PathBuf| {
        let mut command = machine.heapmark(&[&RECORD[..], &["/bin/true"]].concat());
        let end = End::of(command.env(variable, value).output().unwrap());
        end.is_one_line(1);
        end.stderr
    };
    for variable in ["HEAPMARK_GUEST", "HEAPMARK_RECORDER"] {
        let said = said(variable, machine.at("gone"));
        let expected = format!("{variable}: no file {}", machine.at("gone").display());
        assert!(said.contains(&expected), "{said}");
    }
    fs::write(machine.at("file"), "").unwrap();
    let said = said("HEAPMARK_CACHE", machine.at("file/cache"));
    assert!(
        said.contains("cannot unpack ") && said.contains("HEAPMARK_CACHE names"),
        "{said}"
    );
}

/// The shelf of a distribution's libraries with one of them, which this machine's compiler has built.
fn with_a_prebuilt_library(machine: &Machine, shelf: &str) -> PathBuf {
    let place = crate::support::Place::new();
    place.ready(&["dlmalloc"]);
    let end = place.run(&["list", "allocators", "--format", "json"]);
    let listed: Vec<Value> = serde_json::from_str(&end.stdout).unwrap();
    let entry = listed.iter().find(|it| it["name"] == "dlmalloc").unwrap();
    assert_eq!(
        (&entry["state"], &entry["built"]),
        (&json!("ready"), &json!("built here"))
    );
    let library = Path::new(entry["files"][0].as_str().unwrap());
    let folder = library.parent().unwrap();
    let to = machine.at(shelf).join(folder.file_name().unwrap());
    fs::create_dir_all(&to).unwrap();
    for file in fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    to
}

impl Machine {
    /// The state of dlmalloc, by whom it was built, and why it is not ready.
    fn dlmalloc(&self) -> [String; 3] {
        let end = self.run(&["list", "allocators", "--format", "json"]);
        let listed: Vec<Value> = serde_json::from_str(&end.stdout).unwrap();
        let entry = listed.iter().find(|it| it["name"] == "dlmalloc").unwrap();
        ["state", "built", "why"].map(|key| entry[key].as_str().unwrap_or_default().to_owned())
    }
}

#[test]
fn prebuilt_libraries_beside_the_program_need_no_compiler_and_are_proven_as_others() {
    let machine = Machine::new();
    let [state, _, why] = machine.dlmalloc();
    assert_eq!(state, "absent", "{why}");
    assert!(machine.run(&["--version"]).says("no prebuilt allocators"));

    let folder = with_a_prebuilt_library(&machine, "lib/heapmark/libraries");
    let [state, built, _] = machine.dlmalloc();
    assert_eq!(state, "ready");
    assert!(built.starts_with("prebuilt by "), "{built}");
    let said = machine.run(&["--version"]).stdout;
    assert!(
        said.ends_with("\nprebuilt allocators: dlmalloc\n"),
        "{said}"
    );
    let tried = [
        "try",
        "-o",
        "tried",
        "-a",
        "glibc,dlmalloc",
        "--blocks",
        "1",
        "--",
        "/bin/true",
    ];
    let end = machine.run(&tried);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(
        end.stderr.contains(&format!("{built}: dlmalloc")),
        "{}",
        end.stderr
    );
    let stored: Value =
        serde_json::from_str(&fs::read_to_string(machine.at("work/tried/run.json")).unwrap())
            .unwrap();
    let mut infos = stored["allocators"].as_array().unwrap().iter();
    let info = infos.find(|it| it["name"] == "dlmalloc").unwrap();
    assert!(info["origin"].as_str().unwrap().ends_with(&built), "{info}");
    let file = folder.join("libdlmalloc.so");
    // What its record says of glibc is what the dynamic linker would say.
    let output = Command::new("objdump")
        .arg("-p")
        .arg(&file)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.split_whitespace();
    let numbers = |version: &str| {
        version
            .split('.')
            .map(|it| it.parse().unwrap())
            .collect::<Vec<u32>>()
    };
    let newest = words
        .filter_map(|word| word.strip_prefix("GLIBC_"))
        .max_by_key(|it| numbers(it));
    let record = fs::read_to_string(folder.join("built.toml")).unwrap();
    assert!(
        record.contains(&format!("glibc = \"{}\"", newest.unwrap())),
        "{record}"
    );
    assert_eq!(info["files"][0], json!(file.canonicalize().unwrap()));
}

#[test]
fn a_library_that_another_compiler_left_in_the_cache_is_used_and_named() {
    let machine = Machine::new();
    let folder = with_a_prebuilt_library(&machine, "home/.cache/heapmark/libraries");
    let [state, built, _] = machine.dlmalloc();
    assert_eq!(state, "ready");
    assert!(built.starts_with("built by "), "{built}");
    // One that has changed is as none.
    fs::write(folder.join("libdlmalloc.so.sha256"), "").unwrap();
    assert_eq!(machine.dlmalloc()[0], "absent");
}

#[test]
fn a_prebuilt_library_that_is_damaged_or_of_another_recipe_is_refused() {
    let machine = Machine::new();
    let folder = with_a_prebuilt_library(&machine, "lib/heapmark/libraries");
    let change = |name: &str, changed: &dyn Fn(Vec<u8>) -> Vec<u8>, said: &str| {
        let file = folder.join(name);
        let whole = fs::read(&file).unwrap();
        fs::write(&file, changed(whole.clone())).unwrap();
        let [state, built, why] = machine.dlmalloc();
        assert_eq!((state.as_str(), built.as_str()), ("refused", ""), "{name}");
        assert!(why.contains(said), "{said}: {why}");
        assert!(why.contains("install heapmark-allocators"), "{why}");
        assert!(!why.contains('\n'), "{why}");
        fs::write(&file, whole).unwrap();
    };
    let replaced = |from: &'static str, to: &'static str| {
        move |text: Vec<u8>| {
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains(from), "{text}");
            text.replacen(from, to, 1).into_bytes()
        }
    };
    let library = "libdlmalloc.so";
    let damaged = |mut bytes: Vec<u8>| {
        *bytes.last_mut().unwrap() ^= 1;
        bytes
    };
    change(library, &damaged, "is not as it was built");
    // Of another processor: e_machine of its header.
    let foreign = |mut bytes: Vec<u8>| {
        bytes[18] = 0xf3;
        bytes
    };
    change(library, &foreign, "made for Riscv64");
    change(library, &|_| Vec::new(), "not an ELF file");
    change(
        "built.toml",
        &replaced("recipe = \"", "recipe = \"0"),
        "another version of heapmark",
    );
    change(
        "built.toml",
        &replaced("recipe =", "recept ="),
        "built.toml",
    );
    let at = |name: &str| folder.join(name);
    let whole = ["libdlmalloc.so", "libdlmalloc.so.sha256"].map(|name| fs::read(at(name)).unwrap());
    // Of a glibc that is not there yet, and whole.
    let newer = &whole[0];
    let name = b"GLIBC_2.";
    let places = (0..newer.len() - name.len()).filter(|at| newer[*at..].starts_with(name));
    let mut patched = newer.clone();
    for place in places {
        patched[place + 6] = b'9';
    }
    fs::write(at(library), &patched).unwrap();
    let sum = "sha256sum libdlmalloc.so > libdlmalloc.so.sha256";
    let mut shell = Command::new("sh");
    assert!(
        shell
            .args(["-c", sum])
            .current_dir(&folder)
            .status()
            .unwrap()
            .success()
    );
    let [state, _, why] = machine.dlmalloc();
    assert_eq!(state, "refused");
    assert!(why.contains("it needs glibc 9."), "{why}");
    fs::write(at(library), &whole[0]).unwrap();
    fs::write(at("libdlmalloc.so.sha256"), &whole[1]).unwrap();
    assert_eq!(machine.dlmalloc()[0], "ready");

    fs::remove_file(folder.join(library)).unwrap();
    let [state, _, why] = machine.dlmalloc();
    assert_eq!(state, "refused");
    assert!(why.contains("there is no such file"), "{why}");
}
