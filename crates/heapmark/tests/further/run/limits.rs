//! Files that others made and places that others reach: what would take all memory, or start what they like, is refused in one line.

use crate::support::campaign::planned;
use crate::support::live::{processes_of, wait_for};
use crate::support::stored::stored;
use crate::support::{End, Place, SMALL, copy_program, is_root};
use heapmark::build::GUEST;
use heapmark_trace::{Event, Head, Writer};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A user other than this one.
const ANOTHER: u32 = 12_345;

/// heapmark with so much address space.
fn within(place: &Place, mib: u64, args: &[&str]) -> End {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -v $1; shift; exec timeout -s KILL 300 \"$@\"",
        "sh",
        &(mib << 10).to_string(),
    ]);
    command
        .arg(env!("CARGO_BIN_EXE_heapmark"))
        .args(args)
        .current_dir(place.at("."))
        .env("HOME", place.at("."));
    End::of(command.output().unwrap())
}

#[test]
fn a_small_trace_of_more_live_objects_than_memory_has_room_for_is_refused_before_it_is_taken() {
    let place = Place::new();
    let mut file = File::create(place.at("bomb.trace")).unwrap();
    let mut writer = Writer::new(&mut file, &Head::default()).unwrap();
    for _ in 0..8_000_000 {
        writer
            .write(
                0,
                &Event::Malloc {
                    size: 1,
                    operator: false,
                },
            )
            .unwrap();
    }
    writer.finish().unwrap();
    assert!(place.at("bomb.trace").metadata().unwrap().len() < 10_000);
    let commands: [&[&str]; 4] = [
        &["trace", "check", "bomb.trace"],
        &["trace", "stats", "bomb.trace"],
        &[
            "trace",
            "cut",
            "bomb.trace",
            "--events",
            "7999999..",
            "-o",
            "cut.trace",
        ],
        &["replay", "bomb.trace", "-a", "glibc", "-o", "run"],
    ];
    for args in commands {
        let end = within(&place, 400, args);
        assert!(
            matches!(end.code, Some(1 | 2)),
            "{args:?}: {:?}: {}",
            end.code,
            end.stderr
        );
        let said = end.stderr.lines().next().unwrap_or_default();
        for words in [
            "bomb.trace",
            "objects live at once, and more begin: ",
            " MiB of memory are needed, and ",
        ] {
            assert!(
                said.contains(words),
                "{args:?}: no {words:?} in {}",
                end.stderr
            );
        }
        assert!(end.stderr.len() < 1000, "{}", end.stderr);
    }
    assert!(!place.at("cut.trace").exists() && !place.at("run").exists());
}

#[test]
fn a_line_of_samples_without_an_end_takes_no_memory_and_is_left_out() {
    let place = stored();
    let rows = place.run(&["export", "run", "--to", "csv-rows"]).stdout;
    let mut samples = OpenOptions::new()
        .append(true)
        .open(place.at("run/samples.jsonl"))
        .unwrap();
    samples.write_all(b"{").unwrap();
    // A hole takes no disk.
    let end = samples.seek(SeekFrom::End(0)).unwrap();
    samples.set_len(end + (480 << 20)).unwrap();
    samples.write_all(b"\n").unwrap();
    let end = within(&place, 440, &["export", "run", "--to", "csv-rows"]);
    assert_eq!((end.code, end.stdout), (Some(0), rows), "{}", end.stderr);
    assert_eq!(
        end.stderr.trim(),
        "run/samples.jsonl: torn or damaged lines, left out: 1"
    );
}

#[test]
fn a_stored_file_that_is_none_is_refused_at_once() {
    let place = stored();
    planned(&place, "1");
    fs::create_dir(place.at("camp/beat")).unwrap();
    fs::create_dir(place.at("check")).unwrap();
    let files: [(&str, &[&str], &str); 9] = [
        ("run/run.json", &["show", "run"], "run"),
        ("run/samples.jsonl", &["show", "run"], "run/samples.jsonl"),
        (
            "run/samples.jsonl",
            &["run", "--resume", "run"],
            "run/samples.jsonl",
        ),
        (
            "run/machine/before.json",
            &["show", "run"],
            "machine/before.json",
        ),
        (
            "run/series/churn@1_b00_glibc.csv",
            &["show", "run"],
            "gone or damaged",
        ),
        (
            "camp/plan.json",
            &["campaign", "status", "camp"],
            "plan.json",
        ),
        ("camp/beat/0-1.json", &["campaign", "status", "camp"], ""),
        ("check/check.json", &["claims", "check"], ""),
        ("a.cap", &["trace", "finish", "a.cap"], "a.cap"),
    ];
    type Plant = fn(&Path);
    let plants: [(&str, Plant); 4] = [
        ("a pipe", |path| {
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        }),
        ("a link to a device", |path| {
            symlink("/dev/zero", path).unwrap()
        }),
        ("a link to itself as it was", |path| {
            symlink(path.with_extension("kept"), path).unwrap()
        }),
        // A hole takes no disk.
        ("a hole", |path| {
            File::create(path).unwrap().set_len(100 << 30).unwrap()
        }),
    ];
    for (file, command, said) in files {
        let (path, kept) = (place.at(file), place.at(file).with_extension("kept"));
        let was_there = fs::rename(&path, &kept).is_ok();
        for (what, plant) in plants {
            plant(&path);
            let end = within(&place, 1000, command);
            let is_refused = match end.code {
                Some(0) => end.stderr.contains("gone or damaged"),
                code => matches!(code, Some(1 | 2 | 4)),
            };
            assert!(
                is_refused,
                "{file}: {what}: {:?} {}{}",
                end.code, end.stdout, end.stderr
            );
            assert!(end.stderr.contains(said), "{file}: {what}: {}", end.stderr);
            fs::remove_file(&path).unwrap();
        }
        if was_there {
            fs::rename(&kept, &path).unwrap();
        }
    }
}

#[test]
fn what_goes_on_with_a_run_writes_nowhere_else() {
    let place = stored();
    fs::create_dir(place.at("theirs")).unwrap();
    fs::rename(place.at("run/machine"), place.at("machine")).unwrap();
    symlink("../theirs", place.at("run/machine")).unwrap();
    let end = place.run(&["run", "--resume", "run"]);
    end.is_one_line(1);
    assert!(
        end.stderr.contains("run/machine is a link"),
        "{}",
        end.stderr
    );
    assert_eq!(fs::read_dir(place.at("theirs")).unwrap().count(), 0);
}

#[test]
fn a_run_of_another_user_is_read_and_not_gone_on_with() {
    if !is_root() {
        return;
    }
    let place = stored();
    chown(place.at("run/run.json"), Some(ANOTHER), None).unwrap();
    let end = place.run(&["run", "--resume", "run"]);
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    let said =
        "run/run.json belongs to user 12345, and going on with it starts what its run.json names";
    assert!(
        end.stderr.contains(said) && end.stderr.lines().count() == 1,
        "{}",
        end.stderr
    );
    assert_eq!(
        place.run(&["export", "run", "--to", "csv-rows"]).code,
        Some(0)
    );
}

fn with_cache(place: &Place, cache: &Path, args: &[&str]) -> End {
    End::of(
        place
            .heapmark(args)
            .env("HEAPMARK_CACHE", cache)
            .output()
            .unwrap(),
    )
}

#[test]
fn a_cache_that_others_could_exchange_is_refused() {
    let place = Place::new();
    fs::create_dir(place.at("open")).unwrap();
    fs::set_permissions(place.at("open"), Permissions::from_mode(0o777)).unwrap();
    let run = [
        &["run", "-o", "run", "-a", "glibc", "--blocks", "1"],
        &SMALL[..],
    ]
    .concat();
    for args in [&["build", "rpmalloc"][..], &run] {
        let end = with_cache(&place, &place.at("open/cache"), args);
        assert_eq!(end.code, Some(1), "{args:?}: {}", end.stderr);
        let said = format!(
            "others can write in {}, so what heapmark starts or preloads from {} could be exchanged",
            place.text("open"),
            place.text("open/cache")
        );
        assert!(end.stderr.contains(&said), "{args:?}: {}", end.stderr);
        assert!(!place.at("open/cache").exists());
    }
}

#[test]
fn a_cache_of_another_user_is_refused() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    let place = Place::new();
    fs::create_dir(place.at("home")).unwrap();
    let list = || with_cache(&place, &place.at("home/cache"), &["list", "allocators"]);
    assert_eq!(list().stderr, "");
    for owned in ["home/cache", "home"] {
        chown(place.at(owned), Some(ANOTHER), Some(ANOTHER)).unwrap();
        let end = list();
        end.is_one_line(1);
        let said = format!("{} belongs to user 12345, so what", place.text(owned));
        assert!(end.stderr.contains(&said), "{}", end.stderr);
        chown(place.at(owned), Some(0), Some(0)).unwrap();
    }
    assert_eq!(list().code, Some(0));
}

#[test]
fn what_others_can_exchange_in_a_cache_is_refused() {
    let place = Place::new();
    let mut list = Command::new("sh");
    list.args(["-c", "umask 0; exec \"$0\" list allocators"])
        .arg(env!("CARGO_BIN_EXE_heapmark"))
        .env("HEAPMARK_CACHE", place.at("cache"));
    fs::create_dir(place.at("cache")).unwrap();
    let end = End::of(list.output().unwrap());
    end.is_one_line(1);
    let said = format!("others can write in {}", place.text("cache/carried"));
    assert!(end.stderr.contains(&said), "{}", end.stderr);

    for folder in ["linked", "open"] {
        fs::create_dir(place.at(folder)).unwrap();
    }
    fs::set_permissions(place.at("open"), Permissions::from_mode(0o777)).unwrap();
    symlink(place.at("open"), place.at("linked/libraries")).unwrap();
    let end = with_cache(&place, &place.at("linked"), &["build", "rpmalloc"]);
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    let said = format!("others can write in {}, so", place.text("open"));
    assert!(end.stderr.contains(&said), "{}", end.stderr);
}

/// A folder that all users may write to, with a program of this name that leaves `started`.
fn planted(place: &Place, name: &str) {
    fs::create_dir_all(place.at("open")).unwrap();
    let program = place.at("open").join(name);
    fs::write(
        &program,
        format!("#!/bin/sh\n: > {}\n", place.text("started")),
    )
    .unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(place.at("open"), Permissions::from_mode(0o777)).unwrap();
}

#[test]
fn a_folder_of_path_that_others_can_write_to_replaces_no_program() {
    let place = Place::new();
    for name in ["dpkg-query", "getconf"] {
        planted(&place, name);
    }
    let path = std::env::var("PATH").unwrap();
    let list = |first: &str| {
        let mut list = place.heapmark(&["list", "allocators"]);
        list.env("PATH", format!("{first}:{path}"));
        End::of(list.current_dir(place.at("open")).output().unwrap())
    };
    for first in [&place.text("open"), ".", ""] {
        let end = list(first);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        assert!(!place.at("started").exists(), "{first}");
        let said = format!("and others can write in {}: programs", place.text("open"));
        assert!(end.stderr.contains(&said), "{said}: {}", end.stderr);
    }
    fs::set_permissions(place.at("open"), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(list(&place.text("open")).stderr, "");
    assert!(place.at("started").exists(), "it would have been started");
}

#[test]
fn data_files_that_others_can_exchange_are_refused() {
    let place = Place::new();
    let files = [
        ("allocators", "allocators/mine.toml"),
        ("languages", "programs/mine/program.toml"),
        ("programs", "real-programs/mine/program.toml"),
    ];
    for (list, file) in files {
        let path = place.at("config/heapmark").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "x = ").unwrap();
        let fault = || {
            let end = place.run(&["list", list]);
            assert_ne!(end.code, Some(0), "{file}");
            end.stderr
        };
        let refused = format!("others can write in {}", path.display());
        assert!(!fault().contains(&refused), "{file}");
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        assert!(fault().contains(&refused), "{file}: {}", fault());
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn too_little_stack_or_memory_is_an_error() {
    let limited = |limit: &str, args: &str| {
        let mut command = Command::new("sh");
        let script = format!("ulimit {limit}; exec \"$0\" {args}");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_heapmark")]);
        End::of(command.env_remove("RUST_BACKTRACE").output().unwrap())
    };
    let end = limited("-s 64", "list workloads");
    end.is_one_line(1);
    assert!(end.stderr.contains("ulimit -s"), "{}", end.stderr);
    let within = |steps: u32, args: &str| limited(&format!("-v {}", steps << 9), args);
    // With less the kernel or the dynamic linker cannot start it.
    let (mut too_little, mut enough) = (0, 1 << 10);
    while enough - too_little > 1 {
        let middle = (too_little + enough) / 2;
        match within(middle, "--version").code {
            Some(0) => enough = middle,
            _ => too_little = middle,
        }
    }
    let ends = (0..12).map(|more| within(enough + more, "list workloads"));
    let failed: Vec<End> = ends.filter(|end| end.code != Some(0)).collect();
    for end in &failed {
        assert_eq!(end.code, Some(1), "{}", end.stderr);
    }
    let is_of_memory = |end: &End| end.stderr.contains("raise its limit (ulimit -v)");
    assert!(failed.iter().any(is_of_memory), "{}", failed.len());
}

#[test]
fn configuration_of_cargo_above_the_cache_starts_nothing() {
    let place = Place::new();
    let script = |name: &str, text: &str| {
        fs::create_dir_all(place.at("shared/.cargo")).unwrap();
        fs::write(place.at(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(place.at(name), Permissions::from_mode(0o755)).unwrap();
        place.text(name)
    };
    let rustc = script(
        "shared/rustc",
        &format!("touch {}; exec rustc \"$@\"", place.text("started")),
    );
    fs::write(
        place.at("shared/.cargo/config.toml"),
        format!("[build]\nrustc = {rustc:?}\n"),
    )
    .unwrap();
    // Nothing needs to be compiled.
    let cc = script(
        "cc",
        "case \"$*\" in *--version*) echo cc 1 ;; *) exit 1 ;; esac",
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    command
        .args(["build", "rpmalloc"])
        .env("HEAPMARK_CACHE", place.at("shared/cache"))
        .envs([("CC", &cc), ("CXX", &cc)]);
    let end = End::of(command.output().unwrap());
    assert!(
        end.code == Some(1) && end.stderr.contains("compiling rpmalloc"),
        "the sources were found: {}",
        end.stderr
    );
    assert!(!place.at("started").exists());
}

#[test]
fn what_a_launcher_cannot_end_is_said_and_not_waited_for() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    fs::set_permissions(place.at("."), Permissions::from_mode(0o755)).unwrap();
    let source =
        "#include <unistd.h>\nint main(void) { if (setuid(0)) return 1; for (;;) pause(); }\n";
    fs::write(place.at("stays.c"), source).unwrap();
    let built = Command::new("cc")
        .arg("-o")
        .args([place.at("stays"), place.at("stays.c")])
        .status()
        .unwrap();
    assert!(built.success());
    fs::set_permissions(place.at("stays"), Permissions::from_mode(0o4755)).unwrap();
    copy_program(GUEST.find().unwrap(), place.at("guest"));
    // The launcher is the user `nobody`, and what its command leaves behind has become root.
    let mut command = Command::new(place.at("guest"));
    command.args([
        "launch",
        "1",
        "inherit",
        "--",
        "/bin/sh",
        "-c",
        "./stays & sleep 0.5",
    ]);
    command
        .current_dir(place.at("."))
        .uid(65_534)
        .gid(65_534)
        .stdout(Stdio::piped());
    let mut launcher = command.spawn().unwrap();
    wait_for("the launcher", || launcher.try_wait().unwrap().is_some());
    let stays = processes_of(&place.at("stays"));
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let runs_it =
            fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == place.at("stays"));
        if let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
            .filter(|_| runs_it)
        {
            // SAFETY: a plain system call on a process of this test alone.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
    let said = std::io::read_to_string(launcher.stdout.take().unwrap()).unwrap();
    // A folder may be mounted so that no program becomes another user.
    assert!(
        stays == 0 || said.lines().any(|line| line == "left_behind=1"),
        "{stays}: {said}"
    );
}
