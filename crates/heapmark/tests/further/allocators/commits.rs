//! Commits of a repository as allocators, and short names of the catalogue's.

use crate::support::{End, Place, SMALL, head, plan};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

const OWN: &str = "command = \"echo x >> ../builds; cc -shared -fPIC -fno-builtin -O1 -o out.so honest.c own.c\"\nlibrary = \"out.so\"\n";

fn git(repository: &Path, arguments: &[&str]) -> String {
    git_with_input(repository, arguments, "")
}

fn git_with_input(repository: &Path, arguments: &[&str], input: &str) -> String {
    let file = repository.with_extension("input");
    fs::write(&file, input).unwrap();
    let mut git = Command::new("git");
    git.arg("-C").arg(repository);
    git.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]);
    git.args(arguments).stdin(fs::File::open(&file).unwrap());
    let output = git.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Commits everything in the folder, and returns the commit.
fn commit(repository: &Path) -> String {
    git(repository, &["add", "-A"]);
    git(repository, &["commit", "-q", "-m", "x"]);
    git(repository, &["rev-parse", "HEAD"])
}

/// A repository with two commits of a small allocator.
fn repository(place: &Place, own: &str) -> (PathBuf, [String; 2]) {
    let repository = place.at("repository");
    fs::create_dir(&repository).unwrap();
    let fakes = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fakes");
    for file in ["own.h", "own.c", "honest.c"] {
        fs::copy(fakes.join(file), repository.join(file)).unwrap();
    }
    fs::write(repository.join("heapmark.toml"), own).unwrap();
    git(&repository, &["init", "-q"]);
    let first = commit(&repository);
    let source = repository.join("honest.c");
    let text = fs::read_to_string(&source).unwrap() + "int second_state = 2;\n";
    fs::write(source, text).unwrap();
    let second = commit(&repository);
    (repository, [first, second])
}

fn run(place: &Place, run: &str, words: &[&str]) -> End {
    place.run_small(run, &[words, &["--blocks", "1"]].concat())
}

#[test]
fn two_commits_are_built_once_and_compared() {
    let place = Place::new();
    // Counts how often it is built, since the cache is other tests' too.
    let builds = place.at("builds");
    let own = OWN.replace("../builds", builds.to_str().unwrap()) + "wrapper = true\n";
    let (repository, commits) = repository(&place, &own);
    let [old, new] = ["old=HEAD~1", "new=HEAD"].map(|word| {
        let (name, revision) = word.split_once('=').unwrap();
        format!("{name}=git:{}@{revision}", repository.display())
    });
    let both = format!("{old},{new}");
    let end = run(&place, "run", &["-a", &both, "--baseline", "old"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let head_of_run = head(&place.at("run"));
    let mut subjects = head_of_run["subjects"].as_array().unwrap().iter();
    let is_wrapper = |subject: &Value| subject["allocator"]["wrapper"] == json!(true);
    assert!(subjects.any(is_wrapper), "{}", head_of_run["subjects"]);
    let of = |name: &str| {
        let mut all = head_of_run["allocators"].as_array().unwrap().iter();
        all.find(|info| info["name"] == name).unwrap()
    };
    assert_eq!(plan(&place.at("run")).baseline, "old");
    assert_eq!(of("old")["origin"], format!("commit {}", commits[0]));
    assert_eq!(of("new")["origin"], format!("commit {}", commits[1]));
    assert_ne!(of("old")["sha256"], of("new")["sha256"]);
    let built = || fs::read_to_string(&builds).unwrap().lines().count();
    assert_eq!(built(), 2);

    // Under other names, and with a change that no commit has.
    fs::write(repository.join("honest.c"), "broken").unwrap();
    let word = format!("third=git:{}", repository.display());
    let end = run(&place, "again", &["-a", &word, "--baseline", "glibc"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.stderr.contains("not committed"), "{}", end.stderr);
    assert_eq!(built(), 2);
}

#[test]
fn a_commits_command_gets_no_flags_of_the_callers() {
    let place = Place::new();
    let seen = place.at("seen");
    let echo = format!(
        "echo compiler $CC, flags $CFLAGS$MAKEFLAGS$EXTRA > {}",
        seen.display()
    );
    let (repository, _) = repository(&place, &OWN.replace("echo x >> ../builds", &echo));
    // Nothing is left of this name behind the prefix of libraries.
    let word = format!("git:{}", place.at("lib").display());
    fs::rename(repository, place.at("lib")).unwrap();
    let words = ["run", "-o", "run", "-a", &word, "--blocks", "1"];
    let mut command = place.heapmark(&[&words[..], &SMALL[..]].concat());
    command.env("CFLAGS", "-O0").env("CC", "cc -g3");
    command.env("MAKEFLAGS", " -- EXTRA=1").env("EXTRA", "1");
    let end = End::of(command.output().unwrap());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let said = "CFLAGS, -g3 of CC: not taken";
    assert!(end.stderr.contains(said), "{}", end.stderr);
    assert_eq!(fs::read_to_string(seen).unwrap(), "compiler cc, flags\n");
    let all = head(&place.at("run"))["allocators"].clone();
    let mut rows = all.as_array().unwrap().iter();
    let row = rows.find(|row| row["name"] == "lib-head").unwrap();
    let file = row["files"][0].as_str().unwrap();
    assert!(file.contains("/libraries/repository-"), "{file}");
}

#[test]
fn a_commit_without_a_command_is_built_by_the_recipe_whose_files_it_has() {
    let place = Place::new();
    let repository = place.at("my-mimalloc");
    let sources = heapmark::build::pin("libmimalloc-sys2", None)
        .and_then(|pin| heapmark::build::sources_of(&pin))
        .unwrap();
    let copy = Command::new("cp")
        .arg("-r")
        .arg(sources.join("c_src/mimalloc"))
        .arg(&repository)
        .status();
    assert!(copy.unwrap().success());
    git(&repository, &["init", "-q"]);
    let hash = commit(&repository);
    let word = format!("git:{}", repository.display());
    let end = run(&place, "run", &["-a", &word]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let head = head(&place.at("run"));
    let mut all = head["allocators"].as_array().unwrap().iter();
    let info = all.find(|info| info["name"] == "my-mimalloc-head").unwrap();
    assert_eq!(info["family"], "mimalloc");
    assert_eq!(info["origin"], format!("commit {hash}"));
    assert_eq!(info["purge"], "called");
}

#[test]
fn what_is_wrong_with_a_commit_is_said() {
    let place = Place::new();
    let (repository, _) = repository(&place, OWN);
    let path = repository.display().to_string();
    let refused = |word: &str, told: &[&str]| {
        let end = run(&place, "run", &["-a", word]);
        assert_eq!(end.code, Some(2), "{}", end.stderr);
        for told in told {
            assert!(end.stderr.contains(told), "no `{told}` in {}", end.stderr);
        }
    };
    refused(
        &format!("mine=git:{path}@no-such"),
        &["no commit `no-such`", &path],
    );
    refused(
        &format!("mine=git:{}", place.text("nowhere")),
        &["nowhere is no git repository"],
    );
    for (own, told) in [
        ("command = \"true\"", "missing field `library`"),
        ("command = 1\nlibrary = \"x\"", "`command` and `library`"),
        ("comand = \"x\"", "unknown field `comand`"),
    ] {
        fs::write(repository.join("heapmark.toml"), own).unwrap();
        commit(&repository);
        refused(&format!("mine=git:{path}"), &["heapmark.toml", told]);
    }
    fs::remove_file(repository.join("heapmark.toml")).unwrap();
    commit(&repository);
    refused(
        &format!("mine=git:{path}"),
        &["neither a heapmark.toml nor", "library = "],
    );
    // Older commits take the file that lies there now.
    let failing = |own: &str, told: &str| {
        fs::write(repository.join("heapmark.toml"), own).unwrap();
        let end = run(&place, told, &["-a", &format!("mine=git:{path}")]);
        assert_eq!(end.code, Some(4), "{}", end.stderr);
        assert!(end.stderr.contains(told), "no `{told}` in {}", end.stderr);
    };
    failing(
        "command = \"echo broken; exit 3\"\nlibrary = \"x.so\"",
        "broken",
    );
    failing("command = \"true\"\nlibrary = \"x.so\"", "has made no x.so");
    failing(
        "command = \"true\"\nlibrary = \"/lib/x86_64-linux-gnu/libc.so.6\"",
        "is not in the repository's folder",
    );
}

/// Has a repository name this command wherever git would run one: as monitor, filter, hook, pager, signer, transport of
/// what is missing.
fn plant(repository: &Path, command: &str) {
    let own = repository.join(".git");
    let hooks = own.join("hooks");
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "core.alternateRefsCommand",
        "diff.external",
        "diff.x.textconv",
        "filter.x.clean",
        "filter.x.smudge",
        "gpg.program",
    ] {
        git(repository, &["config", key, command]);
    }
    for (key, value) in [
        ("core.hooksPath", hooks.to_str().unwrap()),
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("filter.x.required", "true"),
        ("log.showSignature", "true"),
        ("protocol.ext.allow", "always"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", &format!("ext::{command}")),
    ] {
        git(repository, &["config", key, value]);
    }
    for hook in [
        "post-index-change",
        "reference-transaction",
        "post-checkout",
    ] {
        fs::copy(command, hooks.join(hook)).unwrap();
    }
    fs::create_dir_all(own.join("info")).unwrap();
    fs::write(own.join("info/attributes"), "* filter=x diff=x\n").unwrap();
}

#[test]
fn nothing_of_a_repository_runs_but_the_build_that_was_asked_for() {
    let place = Place::new();
    let (repository, _) = repository(&place, OWN);
    let object = git(&repository, &["rev-parse", "HEAD:own.h"]);
    let (command, ran) = (place.at("command"), place.at("ran"));
    fs::write(
        &command,
        format!("#!/bin/sh\necho $0 >> {}\ncat\n", ran.display()),
    )
    .unwrap();
    fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).unwrap();
    plant(&repository, command.to_str().unwrap());
    // As after a copy: git cannot tell from the times whether it has changed.
    let source = repository.join("honest.c");
    let file = fs::File::options().append(true).open(&source).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let index = || fs::read(repository.join(".git/index")).unwrap();
    let before = index();
    let word = format!("mine=git:{}", repository.display());
    let of = [&["run", "-o", "run", "-a", &word], &SMALL[..]].concat();
    let ends = |dry: &[&str], code: i32, told: &str| {
        let mut heapmark = place.heapmark(&[&of, dry].concat());
        // Of another repository, as in one of git's hooks.
        for name in ["GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"] {
            heapmark.env(name, place.at("nowhere"));
        }
        let end = End::of(heapmark.output().unwrap());
        assert_eq!(end.code, Some(code), "{}", end.stderr);
        assert!(end.stderr.contains(told), "{}", end.stderr);
        assert!(!end.stderr.contains("not committed"), "{}", end.stderr);
        let ran = fs::read_to_string(&ran).unwrap_or_default();
        assert_eq!(ran, "", "{dry:?}");
        assert!(index() == before, "{dry:?}");
    };
    ends(&["--dry-run"], 0, "");
    ends(&["--blocks", "1"], 0, "");
    fs::remove_dir_all(place.at("run")).unwrap();
    // Another commit, which was not built yet and lacks a file that a transport would bring.
    let (first, rest) = object.split_at(2);
    fs::remove_file(repository.join(".git/objects").join(first).join(rest)).unwrap();
    let tree = git(&repository, &["rev-parse", "HEAD^{tree}"]);
    let commit = git_with_input(&repository, &["commit-tree", &tree], "another");
    fs::remove_file(&ran).unwrap_or_default();
    let word = format!("mine=git:{}@{commit}", repository.display());
    let end = run(&place, "run", &["-a", &word]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    assert!(end.stderr.contains("own.h is not in"), "{}", end.stderr);
    assert!(!ran.exists());
}

#[test]
fn a_commit_writes_nothing_outside_its_folder() {
    let place = Place::new();
    let (repository, _) = repository(&place, OWN);
    let file = git(&repository, &["rev-parse", "HEAD:own.h"]);
    let outside = place.at("outside");
    fs::create_dir(&outside).unwrap();
    let link = git_with_input(
        &repository,
        &["hash-object", "-w", "--stdin"],
        outside.to_str().unwrap(),
    );
    let tree = |entries: &str| git_with_input(&repository, &["mktree"], entries);
    let inner = tree(&format!("100644 blob {file}\tplanted\n"));
    let own = git(&repository, &["rev-parse", "HEAD:heapmark.toml"]);
    for (name, told, entries) in [
        (
            "above",
            "is no path below",
            format!("040000 tree {inner}\t..\n"),
        ),
        (
            "linked",
            "File exists",
            format!("120000 blob {link}\ta\n040000 tree {inner}\ta\n"),
        ),
    ] {
        let tree = tree(&format!("100644 blob {own}\theapmark.toml\n{entries}"));
        let commit = git_with_input(&repository, &["commit-tree", &tree], name);
        let word = format!("mine=git:{}@{commit}", repository.display());
        let end = run(&place, name, &["-a", &word]);
        assert_eq!(end.code, Some(4), "{}", end.stderr);
        assert!(end.stderr.contains(told), "{}", end.stderr);
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn of_a_build_that_prints_much_the_log_has_the_beginning_and_the_end() {
    let place = Place::new();
    let print = "echo begun; head -c 9000000 /dev/zero | tr '\\\\0' x; echo; echo ended; exit 3";
    let own = format!("command = \"{print}\"\nlibrary = \"x.so\"\n");
    let (repository, _) = repository(&place, &own);
    let word = format!("mine=git:{}", repository.display());
    let mut heapmark = place.heapmark(&[&["run", "-a", &word], &SMALL[..]].concat());
    let heapmark = heapmark.env("HEAPMARK_CACHE", place.at("cache"));
    let end = End::of(heapmark.output().unwrap());
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    assert!(end.stderr.contains("ended"), "{}", end.stderr);
    let mut shelf = fs::read_dir(place.at("cache/libraries")).unwrap();
    let log = shelf.find_map(|entry| {
        let path = entry.unwrap().path();
        (path.extension()? == "log").then(|| fs::read_to_string(path).unwrap())
    });
    let log = log.unwrap();
    assert!(log.len() < 2_000_000, "{}", log.len());
    for told in ["begun", "bytes are left out", "ended"] {
        assert!(log.contains(told), "no {told}");
    }
}

#[test]
fn short_names_and_families_mean_allocators() {
    let place = Place::new();
    let named = |words: &[&str]| {
        let end = place.run(&[&["run", "-w", "churn", "--dry-run"], words].concat());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        let mut lines = end.stdout.lines();
        let line = lines.find_map(|line| line.strip_prefix("allocators "));
        // Whether they are built depends on what other tests have built.
        line.unwrap()
            .trim()
            .replace(" (not built yet)", "")
            .replace(", not built yet)", ")")
    };
    assert_eq!(
        named(&["-a", "mimalloc"]),
        "mimalloc2, mimalloc3, glibc (baseline)"
    );
    assert_eq!(
        named(&["-a", "je,rp"]),
        "jemalloc, rpmalloc, glibc (baseline)"
    );
    assert_eq!(
        named(&["-a", "je", "--baseline", "mi2"]),
        "jemalloc, mimalloc2 (baseline)"
    );
    let end = place.run(&["run", "-w", "churn", "--baseline", "mi", "--dry-run"]);
    assert_eq!(end.code, Some(2));
    assert!(
        end.stderr.contains("`mi` means mimalloc2 and mimalloc3"),
        "{}",
        end.stderr
    );
}
