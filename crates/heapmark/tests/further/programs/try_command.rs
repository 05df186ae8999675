//! `heapmark try` on real programs and on planted ones: what differs, breaks off, hangs, hides from the proof or outlives itself
//! must be said for what it is.

use super::out_of_reach::compile;
use crate::support::home::record;
use crate::support::live::processes_of;
use crate::support::tried::{SMALL, note, run};
use crate::support::{End, Place, copy_program, head, of_purpose, samples, word};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Tries a command under both.
fn tried(place: &Place, flags: &[&str], command: &[&str]) -> (End, Vec<Value>) {
    let honest = format!("glibc,honest={}", place.fake("honest").display());
    run(place, &[&["-a", &honest], flags, &["--"], command].concat())
}

/// What became of the other library's check, in words.
fn outcome(records: &[Value]) -> String {
    let outcome = record(records, "check", "honest")["outcome"].clone();
    let words = ["kind", "what", "why", "signal", "code"]
        .map(|key| outcome[key].as_str().unwrap_or_default().to_owned());
    words
        .join(" ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn shell(line: &str) -> [&str; 3] {
    ["/bin/sh", "-c", line]
}

#[test]
fn every_process_of_a_tree_is_measured_and_proven() {
    let place = Place::new();
    let line = "seq 3 | cat; /bin/true; exec python3 -c 'print([str(i) for i in range(1000)][-1])'";
    let (end, records) = tried(&place, &["--check-output"], &shell(line));
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    for allocator in ["glibc", "honest"] {
        let own = |purpose| {
            of_purpose(&records, purpose)
                .into_iter()
                .filter(|it| it["allocator"] == allocator)
                .count()
        };
        assert_eq!((own("check"), own("sample")), (1, 2), "{allocator}");
    }
    for one in of_purpose(&records, "sample") {
        let (measurement, proof) = (&one["measurement"], &one["proof"]);
        let owner = &proof["objects"][proof["owners"]["malloc"].as_u64().unwrap() as usize];
        let file = if one["allocator"] == "honest" {
            "libhonest.so"
        } else {
            "libc.so.6"
        };
        assert!(word(owner, "path").ends_with(file), "{owner}");
        assert!(
            measurement["figures"]["processes"].as_f64().unwrap() >= 5.0,
            "sh, seq, cat, true, python3"
        );
        let (tree, largest) = (
            &measurement["peak_rss_bytes"],
            &measurement["figures"]["largest_process_rss_bytes"],
        );
        assert!(
            tree.as_f64() >= largest.as_f64() && largest.as_f64().unwrap() > 1e6,
            "{measurement}"
        );
        let iteration = &measurement["iterations"][0];
        assert!(
            iteration["wall_ns"].as_u64().unwrap() > 0 && iteration["user_ns"].as_u64().is_some()
        );
    }
    let check = &record(&records, "check", "glibc")["measurement"];
    assert!(
        check["figures"]["malloc_calls_per_cpu_s"].as_f64().unwrap() > 0.0,
        "{check}"
    );
    let missed = check["notes"]["peak_pss_missed"].is_string();
    assert!(
        missed || check["figures"]["peak_pss_bytes"].as_f64().unwrap() > 0.0,
        "seen, or not said: {check}"
    );
    let digest = word(&check["notes"], "digest");
    assert!(digest.ends_with(" of 10 bytes printed"), "{digest}");
    assert!(word(&check["notes"], "live_at_end_of").contains("python3"));
    assert_eq!(
        check["notes"].as_object().unwrap().len(),
        2 + usize::from(missed),
        "no silent ones, none left behind: {check}"
    );
    for text in [
        &end.stdout,
        &fs::read_to_string(place.at("run/report.html")).unwrap(),
    ] {
        assert!(text.contains("sh -c") && !text.contains("ns/op"), "{text}");
    }
}

#[test]
fn what_differs_under_an_allocator_is_a_wrong_result() {
    let place = Place::new();
    let (end, records) = tried(
        &place,
        &["--check-output"],
        &shell("echo same; echo ${LD_PRELOAD%%witness*} | grep -c honest; true"),
    );
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let what = "line 2 of the output: \"1\\n\", but \"0\\n\" under glibc";
    assert_eq!(outcome(&records), format!("wrong-result {what}"));
    assert!(
        of_purpose(&records, "sample")
            .iter()
            .all(|sample| sample["allocator"] == "glibc")
    );
    // Only the first process under it prints something else.
    let first = "case $LD_PRELOAD in *honest*) [ -e seen ] || { echo > seen; echo other; };; esac; echo same";
    let flags = ["--check-output", "--warmup", "1"];
    let (_, records) = tried(&place, &flags, &shell(first));
    let what = "line 1 of the output: \"other\\n\", but \"same\\n\" under glibc";
    assert_eq!(outcome(&records), format!("wrong-result {what}"));
    // From the first process under it on, all print something else, the baseline's as well.
    let changed = "case $LD_PRELOAD in *honest*) echo > other;; esac; ls other 2> log; echo same";
    let (end, records) = tried(&place, &["--check-output"], &shell(changed));
    let what = "what it prints is not the same each time under glibc either (line 1 of the output: \"other\\n\", but";
    let said = outcome(&records);
    assert!(
        end.code == Some(4) && said.starts_with(&format!("unsupported {what}")),
        "{said}"
    );
    let (_, records) = tried(&place, &[], &shell("echo $LD_PRELOAD"));
    assert_eq!(outcome(&records), "ok", "the same output was not asked for");
    let leave = "case $LD_PRELOAD in *honest*) exit 4;; esac; exit 3";
    let (_, records) = tried(&place, &["--expect-exit", "3"], &shell(leave));
    assert_eq!(outcome(&records), "wrong-result exit code 4, under glibc 3");
    assert_eq!(
        record(&records, "check", "glibc")["outcome"]["kind"],
        "ok",
        "it is what was expected"
    );
}

#[test]
fn a_command_that_fails_is_measured_only_where_it_is_meant_to_fail() {
    let place = Place::new();
    let fails = shell("echo well >&2; echo 'cannot open it' >&2; exit 2");
    let (end, records) = tried(&place, &[], &fails);
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    let said =
        "ended with exit code 2 under glibc: cannot open it; if it is meant to: --expect-exit 2";
    assert!(end.stderr.contains(said), "{}", end.stderr);
    assert!(
        of_purpose(&records, "sample").is_empty() && !end.says("wall s"),
        "{}",
        end.stdout
    );

    let (end, records) = tried(&place, &["--expect-exit", "2"], &fails);
    assert_eq!(
        (end.code, outcome(&records).as_str()),
        (Some(0), "ok"),
        "{}",
        end.stderr
    );
    assert!(
        end.says("ends with exit code 2 each time, as it is meant to: cannot open it"),
        "{}",
        end.stdout
    );
    assert_eq!(
        head(&place.at("run"))["plan"]["cases"][0]["target"]["command"]["expect_exit"],
        2
    );
    let (end, _) = tried(&place, &["--expect-exit", "3"], &fails);
    assert_eq!(end.code, Some(2));
    assert!(
        end.stderr.contains("cannot open it; --expect-exit says 3"),
        "{}",
        end.stderr
    );
}

#[test]
fn an_allocator_under_which_other_programs_are_executed_is_a_wrong_result() {
    let place = Place::new();
    let skips =
        shell("case $LD_PRELOAD in *honest*) exit 0;; esac; /bin/true; /bin/true; seq 1; exit 0");
    let (end, records) = tried(&place, &[], &skips);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let said = outcome(&records);
    assert!(
        said.starts_with("wrong-result other programs than under glibc each time: "),
        "{said}"
    );
    assert!(
        said.contains("true 0x, not 2x") && said.contains("seq 0x, not 1x"),
        "{said}"
    );
    assert!(
        of_purpose(&records, "sample")
            .iter()
            .all(|sample| sample["allocator"] == "glibc")
    );
    let (end, records) = tried(&place, &["--tree-may-differ"], &skips);
    assert_eq!(
        (end.code, outcome(&records).as_str()),
        (Some(0), "ok"),
        "{}",
        end.stderr
    );
}

#[test]
fn a_tree_that_is_another_each_time_under_the_baseline_is_no_fault_of_a_candidate() {
    let place = Place::new();
    // One more program in each process, under every allocator.
    let grows = "n=0; test -e times && read n < times; n=$((n+1)); echo $n > times; \
                 while [ $n -gt 0 ]; do /bin/true; n=$((n-1)); done; exit 0";
    let (end, records) = tried(&place, &[], &shell(grows));
    assert_eq!(
        (end.code, outcome(&records).as_str()),
        (Some(0), "ok"),
        "{}",
        end.stderr
    );
}

#[test]
fn a_crash_behind_a_shell_that_ends_well_is_no_time() {
    let place = Place::new();
    // Its children always end by a signal or by _exit, under every allocator.
    let source = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <signal.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/stat.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(int count, char **words) {
            (void)count;
            const char *how = words[1];
            if (dlsym(RTLD_DEFAULT, "own_malloc")) {
                if (!strcmp(how, "crash")) abort();
                if (!strcmp(how, "leave")) _exit(0);
                if (!strcmp(how, "pipe")) raise(SIGPIPE);
                // Only the check is well.
                if (!strcmp(how, "later") && mkdir("begun", 0700)) abort();
            }
            if (strcmp(how, "children")) return 0;
            for (int i = 0; i < 2; i++) {
                if (fork()) wait(NULL);
                else if (i) _exit(0);
                else abort();
            }
            return 0;
        }
    "#;
    compile(&place, "worker", source, &[]);
    let (end, records) = tried(&place, &[], &shell("./worker crash | wc -l"));
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    let said = outcome(&records);
    assert!(said.starts_with("wrong-result "), "{said}");
    // Whether the shell itself is one of them depends on the shell.
    let what = " of its processes ended by themselves under glibc each time, ";
    assert!(said.contains(what), "{said}");
    assert!(
        of_purpose(&records, "sample")
            .iter()
            .all(|sample| sample["allocator"] == "glibc")
    );
    assert!(end.says("crashed or left by _exit"), "{}", end.stdout);
    let (end, records) = tried(&place, &[], &shell("./worker later | wc -l"));
    assert_eq!(outcome(&records), "ok", "{}{}", end.stdout, end.stderr);
    let kinds: BTreeSet<&str> = of_purpose(&records, "sample")
        .into_iter()
        .filter(|sample| sample["allocator"] == "honest")
        .map(|sample| word(&sample["outcome"], "kind"))
        .collect();
    assert_eq!(kinds, ["wrong-result"].into(), "{}", end.stdout);
    let (end, records) = tried(&place, &[], &shell("./worker leave | wc -l"));
    assert!(outcome(&records).contains(what), "{}", end.stderr);
    // The last one ends as if it had lost its reader, which may be by chance.
    for line in ["well", "children", "pipe"].map(|how| format!("./worker {how} | wc -l")) {
        let (end, records) = tried(&place, &[], &shell(&line));
        assert_eq!(
            (end.code, outcome(&records).as_str()),
            (Some(0), "ok"),
            "{line}: {}",
            end.stderr
        );
    }
}

const SET: [(&str, &str); 4] = [
    ("MALLOC_CONF", "narenas:1"),
    ("MALLOC_ARENA_MAX", "2"),
    (
        "GLIBC_TUNABLES",
        "glibc.malloc.tcache_count=0:glibc.pthread.stack_cache_size=4096",
    ),
    ("OTHER", "hush"),
];

/// Tries a command that writes down its settings, under glibc and a library that does so, too, with all those set.
fn with_settings(place: &Place, flags: &[&str]) -> (End, Vec<Value>) {
    let both = format!(
        "glibc,glibc-arena1,settings={}",
        place.fake("settings").display()
    );
    let line = "test \"$OTHER\" = hush && env | grep -E '^(MALLOC_|GLIBC_)' >> seen; exit 0";
    let mut command =
        place.heapmark(&[&SMALL[..], &["-a", &both], flags, &["--"], &shell(line)].concat());
    let end = End::of(command.envs(SET).output().unwrap());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    (end, samples(&place.at("run")))
}

#[test]
fn settings_of_allocators_in_the_users_environment_reach_no_row_and_are_named() {
    let place = Place::new();
    let (end, _) = with_settings(&place, &[]);
    let said = "Left out of your environment, since they configure allocators: \
                GLIBC_TUNABLES (glibc.malloc.tcache_count=0), MALLOC_ARENA_MAX, MALLOC_CONF.";
    assert!(end.stderr.contains(said), "{}", end.stderr);
    assert_eq!(
        end.stderr.matches("MALLOC_CONF").count(),
        1,
        "{}",
        end.stderr
    );
    let lines = |file: &str| -> BTreeSet<String> {
        fs::read_to_string(place.at(file))
            .unwrap()
            .lines()
            .map(String::from)
            .collect()
    };
    // What is no allocator's stays, and a row's own setting stands beside it.
    let rest = "GLIBC_TUNABLES=glibc.pthread.stack_cache_size=4096";
    assert_eq!(lines("settings"), [rest.to_owned()].into());
    assert_eq!(
        lines("seen"),
        [rest.to_owned(), format!("{rest}:glibc.malloc.arena_max=1")].into()
    );
    let stored = &head(&place.at("run"))["plan"]["cases"][0]["target"]["command"]["taken_out"];
    let wanted = serde_json::json!({
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0", "MALLOC_ARENA_MAX": "2", "MALLOC_CONF": "narenas:1"
    });
    assert_eq!(
        *stored, wanted,
        "names and values of those, and of no other"
    );
}

#[test]
fn the_row_as_called_and_no_other_has_the_users_settings() {
    let place = Place::new();
    let (end, records) = with_settings(&place, &["--keep-env"]);
    let seen = fs::read_to_string(place.at("seen")).unwrap();
    let own = of_purpose(&records, "check")
        .into_iter()
        .chain(of_purpose(&records, "sample"));
    let as_called = own
        .filter(|record| record["allocator"] == "as-called")
        .count();
    assert_eq!(
        (as_called, seen.matches("MALLOC_CONF=narenas:1").count()),
        (3, 3),
        "{seen}"
    );
    assert_eq!(
        seen.matches("glibc.malloc.tcache_count=0").count(),
        3,
        "{seen}"
    );
    assert!(
        !fs::read_to_string(place.at("settings"))
            .unwrap()
            .contains("MALLOC_CONF")
    );
    assert!(note(&records, "as-called", "served_by").ends_with("libc.so.6"));
    assert!(
        end.says("as-called is the command with all of its user's environment"),
        "{}",
        end.stdout
    );
}

#[test]
fn output_without_a_reader_is_swallowed_and_much_output_is_compared_with_the_baselines() {
    let place = Place::new();
    // Some programs do less where they see /dev/null.
    let (end, records) = tried(
        &place,
        &[],
        &shell("test /dev/stdout -ef /dev/null && kill -ABRT $$; seq 9"),
    );
    assert_eq!(
        (end.code, outcome(&records).as_str()),
        (Some(0), "ok"),
        "{}",
        end.stderr
    );
    let much = |last: &str| {
        format!("head -c 90000000 /dev/zero; case $LD_PRELOAD in *honest*) {last};; esac")
    };
    let (end, records) = tried(&place, &["--check-output"], &shell(&much(":")));
    assert_eq!(
        (end.code, outcome(&records).as_str()),
        (Some(0), "ok"),
        "{}",
        end.stderr
    );
    let (_, records) = tried(&place, &["--check-output"], &shell(&much("echo")));
    let what =
        "the output behind its first 64 MiB: 90000001 bytes in all, but 90000000 under glibc";
    assert_eq!(outcome(&records), format!("wrong-result {what}"));
}

#[test]
fn no_timed_process_waits_for_a_reader_of_its_output() {
    let place = Place::new();
    let (end, records) = tried(
        &place,
        &["--check-output"],
        &shell("if test -p /dev/stdout; then echo x >> read; else echo x >> unread; fi"),
    );
    assert_eq!(
        (end.code, outcome(&records).as_str()),
        (Some(0), "ok"),
        "{}",
        end.stderr
    );
    let lines = |name: &str| fs::read_to_string(place.at(name)).unwrap().lines().count();
    // The reference and the check of each allocator.
    assert_eq!(lines("read"), 1 + 2);
    // The counted and the traced one, and two samples of each allocator; a side of a duet starts another process if
    // the first one has not worked for as long.
    assert!(lines("unread") >= 2 + 2 * 2, "{}", lines("unread"));
}

#[test]
fn crashes_and_hangs_are_what_they_are_and_nothing_is_left() {
    let place = Place::new();
    let under = |what: &str| format!("case $LD_PRELOAD in *honest*) {what};; esac");
    let (_, records) = tried(&place, &[], &shell(&under("kill -SEGV $$")));
    assert_eq!(outcome(&records), "crash SIGSEGV");
    copy_program("/bin/sleep", place.at("nap"));
    let hang = under("setsid ./nap 86400 & ./nap 86400");
    let (_, records) = tried(&place, &["--timeout", "10"], &shell(&hang));
    assert_eq!(outcome(&records), "hang");
    assert_eq!(
        processes_of(&place.at("nap")),
        0,
        "neither the child nor the one that left the group"
    );
}

#[test]
fn what_outlives_the_command_is_ended_and_said() {
    let place = Place::new();
    copy_program("/bin/sleep", place.at("nap"));
    let (end, records) = tried(
        &place,
        &[],
        &shell("setsid ./nap 86400 >/dev/null 2>&1 & exit 0"),
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert_eq!(note(&records, "honest", "left_behind"), "1");
    assert!(end.says("outlived the command"), "{}", end.stdout);
    assert_eq!(processes_of(&place.at("nap")), 0);
}

#[test]
fn a_peak_of_pss_that_was_not_seen_is_left_out_and_said() {
    let place = Place::new();
    // So many mappings that each look takes long, and the next is far away; then much is resident, and the process is gone.
    let ends = "import mmap, os, time\nkept = [mmap.mmap(-1, 4096) for i in range(20000)]\ntime.sleep(0.7)\n\
                flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE\n\
                held = mmap.mmap(-1, 24 << 20, flags=flags)\nos._exit(0)";
    let (end, records) = tried(
        &place,
        &["--name", "short"],
        &["/usr/bin/python3", "-c", ends],
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    for allocator in ["glibc", "honest"] {
        let measured = &record(&records, "check", allocator)["measurement"];
        let (pss, rss) = (
            &measured["figures"]["peak_pss_bytes"],
            &measured["figures"]["largest_process_rss_bytes"],
        );
        // What python shares with others is a few MiB.
        assert!(
            pss.as_f64()
                .is_none_or(|pss| pss > rss.as_f64().unwrap() * 0.7),
            "{measured}"
        );
        assert_eq!(
            pss.is_null(),
            measured["notes"]["peak_pss_missed"].is_string(),
            "{measured}"
        );
        assert!(
            !pss.is_null() || end.says("peak PSS is left out"),
            "{}",
            end.stdout
        );
    }
}

#[test]
fn a_library_that_does_not_serve_is_found_out() {
    let place = Place::new();
    // EI_OSABI: the dynamic linker ignores such a library, and glibc serves.
    let mut bytes = fs::read(place.fake("honest")).unwrap();
    bytes[7] = 97;
    fs::write(place.at("libidle.so"), bytes).unwrap();
    let (end, records) = run(
        &place,
        &[
            "-a",
            &format!("glibc,idle={}", place.text("libidle.so")),
            "--",
            "/bin/true",
        ],
    );
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let outcome = &record(&records, "check", "idle")["outcome"];
    assert_eq!(outcome["kind"], "not-loaded");
    assert!(
        word(outcome, "why").contains("libidle.so was not loaded"),
        "{outcome}"
    );
}

#[test]
fn a_library_that_changes_how_it_is_scheduled_has_no_numbers_and_a_command_that_does_has() {
    let place = Place::new();
    let humble = format!("glibc,humble={}", place.fake("humble").display());
    let (end, records) = run(&place, &["-a", &humble, "--", "/bin/true"]);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    let humbled = record(&records, "check", "humble");
    assert_eq!(humbled["outcome"]["kind"], "unsupported", "{humbled}");
    let why = humbled["outcome"]["why"].as_str().unwrap();
    assert!(why.contains("scheduled as SCHED_OTHER at nice 7"), "{why}");
    let (end, records) = tried(&place, &[], &["nice", "-n", "3", "/bin/true"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert_eq!(outcome(&records), "ok");
}

#[test]
fn a_child_that_another_allocator_serves_is_named() {
    let place = Place::new();
    let other = place.fake("honest").with_file_name("libother.so");
    fs::copy(place.fake("honest"), &other).unwrap();
    let line = format!(
        "LD_PRELOAD={}:${{LD_PRELOAD##*:}} /bin/true",
        other.display()
    );
    let (_, records) = tried(
        &place,
        &[],
        &shell(&format!("case $LD_PRELOAD in *honest*) {line};; esac")),
    );
    let said = outcome(&records);
    assert!(
        said.starts_with("not-loaded") && said.contains("libhonest.so was not loaded in /"),
        "{said}"
    );
    assert!(said.contains("true (process "), "{said}");
}

#[test]
fn who_cannot_be_proven_is_named_and_refused_where_it_is_the_command_itself() {
    let place = Place::new();
    fs::write(place.at("still.c"), "int main(void) { return 0; }\n").unwrap();
    let built = Command::new("cc")
        .args(["-static", "-o"])
        .args([place.at("still"), place.at("still.c")])
        .status();
    assert!(built.unwrap().success());
    let (end, _) = tried(&place, &[], &["./still"]);
    assert_eq!(end.code, Some(2));
    assert!(
        end.stderr
            .contains("still: static: it has no dynamic linker"),
        "{}",
        end.stderr
    );
    assert!(!place.at("run").exists(), "nothing was measured");

    let (end, records) = tried(&place, &[], &shell("./still; env -u LD_PRELOAD /bin/true"));
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let unproven = note(&records, "glibc", "unproven");
    assert!(
        unproven.contains("still (static")
            && unproven.contains("true (it was started without LD_PRELOAD)"),
        "{unproven}"
    );
    assert!(end.says("out of reach of any allocator"), "{}", end.stdout);
}

/// A program as user 65534, below one of root's, under glibc and another library. Where the cache of built libraries is closed to others,
/// that user may not read the witness.
fn as_another_user(place: &Place, library: &str, cache_mode: u32) -> (End, Vec<Value>) {
    let _ = fs::remove_dir_all(place.at("run"));
    let open =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    fs::create_dir_all(place.at("cache")).unwrap();
    open(place.at("").as_path(), 0o755);
    open(&place.at("cache"), cache_mode);
    let both = format!("glibc,{library}");
    let calls = "len([str(i) for i in range(50000)])";
    let command = [
        "setpriv",
        "--reuid",
        "65534",
        "--clear-groups",
        "/usr/bin/python3",
        "-c",
        calls,
    ];
    let mut heapmark = place.heapmark(&[&SMALL[..], &["-a", &both, "--"], &command].concat());
    heapmark
        .env("HEAPMARK_CACHE", place.at("cache"))
        .env("PYTHONMALLOC", "malloc");
    let end = End::of(heapmark.output().unwrap());
    (
        end,
        if place.at("run/samples.jsonl").exists() {
            samples(&place.at("run"))
        } else {
            Vec::new()
        },
    )
}

#[test]
fn programs_that_run_as_another_user_are_proven() {
    if !rustix_is_root() {
        return;
    }
    let place = Place::new();
    let honest = format!("honest={}", place.fake("honest").display());
    let (end, records) = as_another_user(&place, &honest, 0o755);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    for one in of_purpose(&records, "sample") {
        assert_eq!(
            one["measurement"]["figures"]["processes"], 2.0,
            "setpriv and what it executes: {one}"
        );
    }
    assert_eq!(
        (
            note(&records, "glibc", "unproven"),
            note(&records, "glibc", "silent")
        ),
        ("", "")
    );
    let rate =
        record(&records, "check", "glibc")["measurement"]["figures"]["malloc_calls_per_cpu_s"]
            .as_f64()
            .unwrap();
    assert!(
        rate > 10_000.0,
        "python's calls are counted, and not only those of setpriv: {rate}"
    );
    // One that only this user may read does not serve there, and that is found.
    fs::create_dir(place.at("closed")).unwrap();
    fs::copy(place.at("libhonest.so"), place.at("closed/libhidden.so")).unwrap();
    fs::set_permissions(place.at("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    let (end, records) = as_another_user(
        &place,
        &format!("hidden={}", place.text("closed/libhidden.so")),
        0o755,
    );
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let outcome = &record(&records, "check", "hidden")["outcome"];
    assert_eq!(outcome["kind"], "not-loaded", "{outcome}");
    assert!(
        word(outcome, "why").contains("was not loaded in /usr/bin/python3"),
        "{outcome}"
    );
}

#[test]
fn why_a_program_of_another_user_said_nothing_is_what_the_kernel_knew_and_no_guess() {
    if !rustix_is_root() {
        return;
    }
    let place = Place::new();
    let honest = format!("honest={}", place.fake("honest").display());
    let (end, records) = as_another_user(&place, &honest, 0o700);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let why = note(&records, "glibc", "unproven");
    assert!(
        why.contains("python3") && why.contains("(its LD_PRELOAD was not loaded, as user 65534"),
        "{why}"
    );
    assert!(!why.contains("started without"), "{why}");
}

#[test]
fn a_privileged_command_is_refused() {
    if !rustix_is_root() {
        return;
    }
    let place = Place::new();
    let copy = place.at("privileged");
    let other_user = 65534;
    copy_program("/bin/true", &copy);
    std::os::unix::fs::chown(&copy, Some(other_user), Some(other_user)).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
    let (end, _) = tried(&place, &[], &["./privileged"]);
    assert_eq!(end.code, Some(2));
    assert!(end.stderr.contains("set-user-ID"), "{}", end.stderr);
}

/// Only root can give a file away.
fn rustix_is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

#[test]
fn a_process_of_a_command_that_takes_no_turns_runs_again_by_its_name() {
    let place = Place::new();
    let [honest, walker] =
        ["honest", "list_walker"].map(|name| place.fake(name).display().to_string());
    let libraries = format!("glibc,honest={honest},walker={walker}");
    let (end, records) = run(&place, &["-a", &libraries, "--", "/bin/true"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let cell = word(of_purpose(&records, "sample")[0], "cell");
    let end = place.run(&["try", "--resume", "run", "--cell", cell]);
    assert_eq!(end.code, Some(0), "{cell}: {}", end.stderr);
}

#[test]
fn a_command_that_does_not_run_under_the_baseline_is_not_measured() {
    let place = Place::new();
    let (end, records) = tried(&place, &[], &shell("kill -ABRT $$"));
    assert_eq!(end.code, Some(1));
    assert!(
        end.stderr
            .contains("cannot be tried: under glibc it ended crash: SIGABRT"),
        "{}",
        end.stderr
    );
    assert!(of_purpose(&records, "sample").is_empty());
    // Output that differs from run to run can be held against nothing.
    let (end, records) = tried(&place, &["--check-output"], &shell("echo $$"));
    assert_eq!(end.code, Some(1));
    assert!(
        end.stderr
            .contains("cannot be tried under glibc: line 1 of the output"),
        "{}",
        end.stderr
    );
    assert!(
        end.stderr.contains("leave out --check-output"),
        "{}",
        end.stderr
    );
    assert!(of_purpose(&records, "sample").is_empty());
}

/// A shell starts its command as its terminal's foreground, and is stopped where that is another's.
#[test]
fn a_command_that_waits_for_its_terminal_is_not_waited_for() {
    let place = Place::new();
    for line in ["read x < /dev/tty", "bash -ic true; true"] {
        let tried = format!(
            "{} try -q --blocks 6 -a glibc -- sh -c '{line}'",
            env!("CARGO_BIN_EXE_heapmark")
        );
        let mut terminal = std::process::Command::new("script");
        let output = terminal
            .args(["-qec", &tried, "/dev/null"])
            .current_dir(place.at("."))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            !output.status.success() && said.contains("reads from its terminal or changes it"),
            "{said}"
        );
    }
}

#[test]
fn prepare_stdin_and_the_environment_reach_the_command_and_no_secret_is_stored() {
    let place = Place::new();
    fs::write(place.at("input"), "one\ntwo\n").unwrap();
    let line = "test \"$(cat)\" = \"$(printf 'one\\ntwo')\" && test \"$SECRET\" = hush && test -e fresh && rm fresh && echo x >> ran";
    let honest = format!("glibc,honest={}", place.fake("honest").display());
    let flags = [
        "-a",
        &honest,
        "--prepare",
        "touch fresh; echo x >> prepared",
        "--stdin",
        "input",
        "--warmup",
        "1",
        "--name",
        "mine",
    ];
    let mut command = place.heapmark(&[&SMALL[..], &flags, &["--"], &shell(line)].concat());
    let end = End::of(
        command
            .env("SECRET", "hush")
            .env("LD_PRELOAD", "/lib/x86_64-linux-gnu/libm.so.6")
            .output()
            .unwrap(),
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(
        end.stderr
            .contains("since they configure allocators: LD_PRELOAD."),
        "{}",
        end.stderr
    );
    let lines = |name: &str| fs::read_to_string(place.at(name)).unwrap().lines().count();
    // The reference, the counted and the traced one, and one whose calls are slowed if they took 1 % of
    // its time; of each allocator a warm-up, a check and two samples.
    let baseline = samples(&place.at("run"));
    let figures = &record(&baseline, "check", "glibc")["measurement"]["figures"];
    let slowed = usize::from(figures.get("slower_calls_ratio").is_some());
    let all = 3 + slowed + 2 * 4;
    assert_eq!((lines("ran"), lines("prepared")), (all, all));
    let stored = fs::read_to_string(place.at("run/samples.jsonl")).unwrap()
        + &fs::read_to_string(place.at("run/run.json")).unwrap();
    assert!(
        !stored.contains(": \"hush\"") && !stored.contains("SECRET\":"),
        "the user's variables are not ours to keep"
    );
    assert_eq!(
        word(
            record(&samples(&place.at("run")), "check", "honest"),
            "workload"
        ),
        "mine"
    );

    let (end, _) = tried(
        &place,
        &["--prepare", "echo why >&2; exit 7"],
        &["/bin/true"],
    );
    assert_eq!(end.code, Some(1));
    assert!(
        end.stderr.contains("--prepare: exit status: 7: why"),
        "{}",
        end.stderr
    );
}

#[test]
fn what_prepare_leaves_running_keeps_no_run_waiting_and_ends_with_its_process() {
    let place = Place::new();
    let flags = ["--prepare", "sleep 600 & echo $! >> started"];
    let line = "kill -0 \"$(tail -n 1 started)\"";
    let (end, _) = tried(&place, &flags, &shell(line));
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let started = fs::read_to_string(place.at("started")).unwrap();
    assert!(started.lines().count() > 3, "{started}");
    for process in started.lines() {
        let is_there = Path::new(&format!("/proc/{process}")).exists();
        assert!(!is_there, "{process} of {started}");
    }
}

#[test]
fn a_prepare_that_does_not_end_is_ended_with_what_it_has_started() {
    let place = Place::new();
    let prepare = "sleep 60 & echo $! > started; wait";
    let flags = ["--timeout", "2", "--prepare", prepare];
    let (end, records) = tried(&place, &flags, &["/bin/true"]);
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    let said = "--prepare took longer than 2 s (--timeout)";
    assert!(end.stderr.contains(said), "{}", end.stderr);
    assert!(of_purpose(&records, "sample").is_empty());
    let started = fs::read_to_string(place.at("started")).unwrap();
    let is_there = Path::new(&format!("/proc/{}", started.trim())).exists();
    assert!(!is_there, "{started}");
}

#[test]
fn what_cannot_be_started_is_said_in_one_line() {
    let place = Place::new();
    fs::write(place.at("text"), "x").unwrap();
    let made = Command::new("mkfifo").arg(place.at("fifo")).status();
    assert!(made.unwrap().success());
    let honest = format!("honest={}", place.fake("honest").display());
    for (arguments, says) in [
        (
            ["-a", &honest, "--", "no-such-command"].as_slice(),
            "no-such-command: no such command in PATH",
        ),
        (&["-a", &honest, "--", "./text"], "not executable"),
        (
            &["-a", "own", "--", "true"],
            "true is linked to no allocator of its own",
        ),
        (&["-a", &honest, "--stdin", "gone", "--", "true"], "--stdin"),
        (
            &["-a", &honest, "--stdin", "fifo", "--", "true"],
            "fifo: it can be read once",
        ),
        (
            &[
                "--variant-env",
                "one=PATH=/a",
                "--variant-env",
                "two=",
                "--",
                "true",
            ],
            "heapmark finds true by its own PATH",
        ),
        (
            &[
                "--server",
                "true {port}",
                "--client",
                "true",
                "--ready",
                "started",
            ],
            "{port} needs a port",
        ),
        (
            &["-a", &honest, "--name", "No Name", "--", "true"],
            "--name \"No Name\"",
        ),
        (
            &[
                "-a", &honest, "--server", "'", "--client", "true", "--ready", "7",
            ],
            "a quote that does not end",
        ),
    ] {
        let (end, _) = run(&place, arguments);
        assert_eq!(end.code, Some(2), "{arguments:?}: {}", end.stderr);
        assert!(
            end.stderr.contains(says) && end.stderr.lines().count() == 1,
            "{arguments:?}: {}",
            end.stderr
        );
    }
    assert_eq!(place.run(&["try"]).code, Some(2));
}
