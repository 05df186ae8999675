//! What `heapmark record` says of a whole tree of processes: other users' are on record, what is not is named with the reason, and why a
//! recording ended is said by every command that knows.

use crate::support::{files, mallocs};
use heapmark::build::RECORDER;
use heapmark_wire::capture::{CHUNK_BYTES, FIRST_BYTES};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A folder that others may enter, since some of these programs run as another user.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    home
}

fn heapmark(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    command.current_dir(folder).args(words).stdin(Stdio::null());
    command
}

fn run(folder: &Path, words: &[&str]) -> Output {
    heapmark(folder, words).output().unwrap()
}

fn said(end: &Output) -> String {
    String::from_utf8_lossy(&end.stderr).into_owned()
}

fn compile(folder: &Path, name: &str, flags: &[&str], source: &str) {
    let file = folder.join(format!("{name}.c"));
    std::fs::write(&file, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-fno-builtin", "-pthread"])
        .args(flags)
        .arg("-o")
        .args([folder.join(name), file]);
    let end = compiler.output().unwrap();
    assert!(end.status.success(), "{}", said(&end));
}

/// Files with this ending, in folders of the folder, too.
fn ending(folder: &Path, end: &str) -> Vec<PathBuf> {
    let all = files(folder).into_iter().map(|name| folder.join(name));
    all.filter(|path| path.extension().is_some_and(|found| found == end))
        .collect()
}

/// Calls of malloc of 4321 bytes in all traces.
fn calls(folder: &Path) -> usize {
    let traces = ending(folder, "trace");
    traces.iter().map(|trace| mallocs(trace, 4321)).sum()
}

/// The recorder as others can read it, wherever it lies; `None` where this user cannot become another.
fn of_root(folder: &Path) -> Option<PathBuf> {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not tested: only root may become another user");
        return None;
    }
    let copy = folder.join("libheapmark_recorder.so");
    std::fs::copy(RECORDER.find().unwrap(), &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(copy)
}

/// Blocks that are allocated and freed. A capture has three bytes or more for the one and one for the other: the events do
/// not fit into two chunks.
const CALLS: usize = 100_000;
const _: () = assert!(4 * CALLS > FIRST_BYTES + CHUNK_BYTES);

const MANY: &str =
    "#define _GNU_SOURCE\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n#include <time.h>\n\
     #include <fcntl.h>\n#include <sys/wait.h>\n
static void pause_ms(long ms) { struct timespec t = {ms / 1000, ms % 1000 * 1000000}; nanosleep(&t, 0); }
static void work(int count) { for (int i = 0; i < count; i++) free(malloc(4321)); }\n";

#[test]
fn a_process_of_another_user_is_on_record_and_its_capture_is_not_theirs_to_read() {
    let home = home();
    let Some(recorder) = of_root(home.path()) else {
        return;
    };
    compile(
        home.path(),
        "many",
        &[],
        &format!("{MANY} int main(void) {{ work(100000); return 7; }}"),
    );
    std::fs::create_dir(home.path().join("private")).unwrap();
    std::fs::set_permissions(
        home.path().join("private"),
        std::fs::Permissions::from_mode(0o700),
    )
    .unwrap();
    let words = ["record", "-o", "private/a.trace", "--raw", "--"];
    let other = ["setpriv", "--reuid", "65534", "--clear-groups", "./many"];
    let end = heapmark(home.path(), &[&words[..], &other].concat())
        .env("HEAPMARK_RECORDER", recorder)
        .output()
        .unwrap();
    assert_eq!(end.status.code(), Some(7), "{}", said(&end));
    assert!(!said(&end).contains("unrecorded"), "{}", said(&end));
    let folder = home.path().join("private");
    let captures = ending(&folder, "cap");
    assert_eq!(
        captures.len(),
        2,
        "setpriv, and what it became: {captures:?}"
    );
    for capture in &captures {
        let file = capture.metadata().unwrap();
        assert_eq!((file.mode() & 0o777, file.uid()), (0o600, 0), "{capture:?}");
        let end = run(&folder, &["trace", "finish", capture.to_str().unwrap()]);
        assert_eq!(end.status.code(), Some(0), "{}", said(&end));
    }
    assert_eq!(calls(&folder), 100_000);
}

#[test]
fn a_recorder_that_another_user_may_not_read_is_the_reason_that_is_given() {
    let home = home();
    let Some(recorder) = of_root(home.path()) else {
        return;
    };
    compile(
        home.path(),
        "many",
        &[],
        &format!("{MANY} int main(void) {{ work(10); pause_ms(3000); return 7; }}"),
    );
    let closed = home.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    let hidden = closed.join("libheapmark_recorder.so");
    std::fs::rename(recorder, &hidden).unwrap();
    let words = [
        "record",
        "--",
        "setpriv",
        "--reuid",
        "65534",
        "--clear-groups",
        "./many",
    ];
    let end = heapmark(home.path(), &words)
        .env("HEAPMARK_RECORDER", &hidden)
        .output()
        .unwrap();
    assert_eq!(end.status.code(), Some(7), "{}", said(&end));
    let why = format!(
        "it ran as user 65534, and others may not read the recorder: {} is closed",
        closed.display()
    );
    let program = home.path().canonicalize().unwrap().join("many");
    let line = format!("ran unrecorded: {}: {why}", program.display());
    assert!(said(&end).contains(&line), "{}", said(&end));
}

#[test]
fn a_process_that_gives_up_its_rights_is_on_record_to_its_end() {
    let home = home();
    let Some(recorder) = of_root(home.path()) else {
        return;
    };
    let body = format!(
        "int main(void) {{ work(10); if (setuid(65534)) return 1; work({CALLS}); return 7; }}"
    );
    compile(home.path(), "worker", &[], &format!("{MANY} {body}"));
    let end = heapmark(home.path(), &["record", "--", "./worker"])
        .env("HEAPMARK_RECORDER", recorder)
        .output()
        .unwrap();
    assert_eq!(end.status.code(), Some(7), "{}", said(&end));
    assert!(!said(&end).contains("ended early"), "{}", said(&end));
    assert_eq!(calls(home.path()), CALLS + 10);
}

#[test]
fn a_sandboxed_process_that_would_be_ended_for_asking_does_not_ask() {
    let home = home();
    let Some(recorder) = of_root(home.path()) else {
        return;
    };
    // Gives up its rights, then allows no sockets: a process that makes one is killed.
    let body = format!(
        "#include <stddef.h>\n#include <sys/prctl.h>\n#include <sys/syscall.h>\n#include <linux/filter.h>\n#include <linux/seccomp.h>\n
        int main(void) {{
            struct sock_filter rules[] = {{
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, {}, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            }};
            struct sock_fprog program = {{4, rules}};
            work(10);
            if (setuid(65534) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 1;
            if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 2;
            work(60000);
            return 7;
        }}",
        libc::SYS_socket
    );
    compile(home.path(), "caged", &[], &format!("{MANY} {body}"));
    let end = heapmark(home.path(), &["record", "--", "./caged"])
        .env("HEAPMARK_RECORDER", recorder)
        .output()
        .unwrap();
    assert_eq!(end.status.code(), Some(7), "{}", said(&end));
    let gave_up = "recording ended early: the program gave up the right to write its file";
    assert!(said(&end).contains(gave_up), "{}", said(&end));
}

#[test]
fn programs_of_the_tree_that_ran_unrecorded_are_named_with_the_reason() {
    let home = home();
    compile(
        home.path(),
        "static",
        &["-static"],
        &format!("{MANY} int main(void) {{ pause_ms(3000); return 0; }}"),
    );
    compile(
        home.path(),
        "plain",
        &[],
        &format!("{MANY} int main(void) {{ pause_ms(3000); return 0; }}"),
    );
    let line = "./static; env -u LD_PRELOAD ./plain; ./plain; kill -9 $$";
    let end = run(
        home.path(),
        &["record", "-o", "out.trace", "--", "/bin/sh", "-c", line],
    );
    assert_eq!(end.status.code(), Some(128 + 9), "{}", said(&end));
    let words = said(&end);
    let place = home.path().canonicalize().unwrap();
    let named =
        |name: &str, why: &str| format!("ran unrecorded: {}: {why}", place.join(name).display());
    assert!(
        words.contains(&named(
            "static",
            "static: it has no dynamic linker that could preload\n"
        )),
        "{words}"
    );
    assert!(
        words.contains(&named(
            "plain",
            "it was started without the recorder in LD_PRELOAD\n"
        )),
        "{words}"
    );
    assert_eq!(
        words.matches("ran unrecorded").count(),
        2,
        "the other `plain` is on record: {words}"
    );
    assert!(
        words.contains("ended without its destructors")
            && !words.contains("all its events are there"),
        "{words}"
    );
    // Where nothing ran unrecorded, it is said that all is there.
    let end = run(
        home.path(),
        &[
            "record",
            "-o",
            "all.trace",
            "--",
            "/bin/sh",
            "-c",
            "./plain; kill -9 $$",
        ],
    );
    assert!(
        said(&end).contains("all its events are there") && !said(&end).contains("unrecorded"),
        "{}",
        said(&end)
    );
}

#[test]
fn a_program_that_lived_too_short_to_be_looked_at_is_named_too() {
    let home = home();
    compile(
        home.path(),
        "short",
        &["-static"],
        "int main(void) { return 0; }",
    );
    let spawns = "#include <spawn.h>\n#include <sys/wait.h>\nextern char **environ; int main(void) { pid_t pid; int s;
        char *words[] = {\"short\", 0}; if (posix_spawn(&pid, \"./short\", 0, 0, words, environ)) return 1;
        waitpid(pid, &s, 0); words[0] = \"none\"; execv(\"./none\", words); return 0; }";
    compile(home.path(), "spawns", &[], spawns);
    let line = "./short; ./short; ./spawns; env -i ./spawns; true";
    let end = run(
        home.path(),
        &["record", "-o", "out.trace", "--", "/bin/sh", "-c", line],
    );
    assert!(end.status.success(), "{}", said(&end));
    let place = home.path().canonicalize().unwrap();
    let words = said(&end);
    let short = format!(
        "ran unrecorded: {}: static: it has no dynamic linker that could preload (3 times)",
        place.join("short").display()
    );
    assert!(words.contains(&short), "{words}");
    let without = "it was started without the recorder in LD_PRELOAD";
    assert!(
        words.contains(&format!(
            "ran unrecorded: {}: {without}",
            place.join("spawns").display()
        )),
        "{words}"
    );
    assert_eq!(
        words.matches("ran unrecorded").count(),
        2,
        "what failed is no program: {words}"
    );
}

#[test]
fn children_that_were_forked_and_called_nothing_are_not_taken_for_unrecorded_ones() {
    let home = home();
    // The parent outlives its child.
    let body =
        "int main(void) { work(10); if (!fork()) { pause_ms(300); _exit(0); } wait(0); return 0; }";
    compile(home.path(), "forks", &[], &format!("{MANY} {body}"));
    let end = run(home.path(), &["record", "--", "./forks"]);
    assert!(
        end.status.success() && !said(&end).contains("unrecorded"),
        "{}",
        said(&end)
    );
}

#[test]
fn an_idle_process_takes_little_of_the_disk() {
    let home = home();
    let line = "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/echo x; done";
    let end = run(
        home.path(),
        &["record", "--raw", "--", "/bin/sh", "-c", line],
    );
    assert!(end.status.success(), "{}", said(&end));
    let captures = ending(home.path(), "cap");
    assert!(captures.len() > 10, "{captures:?}");
    for capture in captures {
        let bytes = capture.metadata().unwrap().blocks() * 512;
        assert!(bytes <= 64 << 10, "{capture:?}: {bytes} bytes");
    }
}

#[test]
fn why_a_recording_ended_is_said_by_every_command_that_knows() {
    let home = home();
    compile(
        home.path(),
        "many",
        &[],
        &format!("{MANY} int main(void) {{ work(1000000); return 7; }}"),
    );
    let why = "recording ended early: --max-bytes was reached";
    let end = run(
        home.path(),
        &["record", "--raw", "--max-bytes", "1M", "--", "./many"],
    );
    assert!(
        end.status.code() == Some(7) && said(&end).contains(why),
        "{}",
        said(&end)
    );
    let capture = ending(home.path(), "cap").remove(0);
    let finished = run(
        home.path(),
        &[
            "trace",
            "finish",
            capture.to_str().unwrap(),
            "-o",
            "a.trace",
        ],
    );
    assert!(
        finished.status.success() && said(&finished).contains(why),
        "{}",
        said(&finished)
    );
    for command in ["check", "stats"] {
        let end = run(home.path(), &["trace", command, "a.trace"]);
        assert!(
            end.status.success() && String::from_utf8_lossy(&end.stdout).contains(why),
            "{command}: {end:?}"
        );
    }
}

#[test]
fn the_signal_that_ended_a_program_is_named_and_stays_in_the_trace() {
    let home = home();
    let body = "#include <signal.h>\nint main(void) { work(10); raise(SIGSEGV); return 0; }";
    compile(home.path(), "crash", &[], &format!("{MANY} {body}"));
    let end = run(home.path(), &["record", "--", "./crash"]);
    assert_eq!(
        end.status.code(),
        Some(128 + libc::SIGSEGV),
        "{}",
        said(&end)
    );
    assert!(
        said(&end).contains("it was killed by SIGSEGV"),
        "{}",
        said(&end)
    );
    let stats = run(home.path(), &["trace", "stats", "crash.trace"]);
    assert!(
        String::from_utf8_lossy(&stats.stdout).contains("the program was killed by SIGSEGV"),
        "{stats:?}"
    );
    let end = run(
        home.path(),
        &["record", "--raw", "-o", "raw.trace", "--", "./crash"],
    );
    assert!(
        said(&end).contains("it was killed by SIGSEGV"),
        "{}",
        said(&end)
    );
}

#[test]
fn when_the_duration_is_over_it_is_said_and_not_only_at_the_end() {
    let home = home();
    compile(
        home.path(),
        "server",
        &[],
        &format!("{MANY} int main(void) {{ for (;;) {{ work(1); pause_ms(1); }} }}"),
    );
    let mut command = heapmark(
        home.path(),
        &["record", "--duration", "300ms", "--", "./server"],
    );
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut words = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut words, &mut line).unwrap();
    assert!(
        line.contains("--duration is over") && child.try_wait().unwrap().is_none(),
        "{line}"
    );
    // The program notices at one of its next calls.
    let capture = || {
        ending(home.path(), "cap")
            .iter()
            .find_map(|path| std::fs::read(path).ok())
            .unwrap()
    };
    while !capture().windows(12).any(|part| part == b"end=duration") {
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(&child, libc::SIGTERM);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut words, &mut rest).unwrap();
    assert!(
        rest.contains("recording ended early: --duration was over"),
        "{rest}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(128 + libc::SIGTERM));
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: a child of ours that is not yet waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

#[test]
fn signals_that_turn_over_logs_reach_the_program_and_leave_heapmark_alone() {
    let home = home();
    let body = "#include <signal.h>\n#include <fcntl.h>\nstatic volatile int seen;
        static void note(int signal) { seen |= signal == SIGUSR1 ? 1 : 2; }
        int main(void) {
            signal(SIGUSR1, note); signal(SIGUSR2, note);
            close(open(\"ready\", O_CREAT | O_WRONLY, 0600));
            while (seen != 3) { work(1); pause_ms(1); }
            return 5;
        }";
    compile(home.path(), "rotates", &[], &format!("{MANY} {body}"));
    let mut child = heapmark(home.path(), &["record", "--", "./rotates"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !home.path().join("ready").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, libc::SIGUSR1);
    signal(&child, libc::SIGUSR2);
    let end = child.wait().unwrap();
    assert_eq!((end.code(), end.signal()), (Some(5), None));
    assert!(home.path().join("rotates.trace").exists());
}

#[test]
fn where_a_full_disk_could_end_the_program_captures_lie_elsewhere() {
    let home = home();
    let place = |name: &str| home.path().join(name);
    std::fs::create_dir(place("disk")).unwrap();
    std::fs::File::create(place("image"))
        .unwrap()
        .set_len(150 << 20)
        .unwrap();
    let good = |command: &mut Command| command.output().is_ok_and(|end| end.status.success());
    let is_mounted = good(Command::new("mkfs.btrfs").arg(place("image")))
        && good(
            Command::new("mount")
                .args(["-o", "loop"])
                .args([place("image"), place("disk")]),
        );
    if !is_mounted {
        eprintln!("not tested: no btrfs can be made or mounted here");
        return;
    }
    compile(
        home.path(),
        "many",
        &[],
        &format!("{MANY} int main(void) {{ work(1000); return 7; }}"),
    );
    let end = run(
        home.path(),
        &["record", "-o", "disk/a.trace", "--", "./many"],
    );
    let calls = calls(&place("disk"));
    // Lazily: a process that another test starts just now still has what was open here, until it runs its program.
    assert!(good(
        Command::new("umount").arg("--lazy").arg(place("disk"))
    ));
    assert_eq!(
        (end.status.code(), calls),
        (Some(7), 1000),
        "{}",
        said(&end)
    );
    assert!(
        said(&end).contains("disk is on btrfs") && said(&end).contains(": captures lie in "),
        "{}",
        said(&end)
    );
}

#[test]
fn a_daemon_of_another_user_is_on_record_and_one_that_calls_nothing_is_named() {
    let home = home();
    let Some(recorder) = of_root(home.path()) else {
        return;
    };
    let daemon = |calls: u32| {
        format!(
            "{MANY} int main(void) {{
                int end = open(\"end\", 0);
                if (setuid(65534)) return 1;
                if (fork()) _exit(0);
                setsid();
                work({calls});
                char byte;
                for (int i = 0; i < 60000 && read(end, &byte, 1) == 0; i++) pause_ms(10);
                return 0;
            }}"
        )
    };
    for (name, count) in [("busy", 10), ("idle", 0)] {
        compile(home.path(), name, &[], &daemon(count));
        let output = format!("{name}.trace");
        let name = format!("./{name}");
        let words = ["record", "--children", "-o", &output, "--", &name];
        let mut command = heapmark(home.path(), &words);
        // The daemon goes on until something is written there.
        std::fs::write(home.path().join("end"), "").unwrap();
        // A daemon keeps what it has inherited: a pipe would be read until its end.
        let log = std::fs::File::create(home.path().join("log")).unwrap();
        let end = command
            .env("HEAPMARK_RECORDER", &recorder)
            .stdout(Stdio::null())
            .stderr(log)
            .status()
            .unwrap();
        std::fs::write(home.path().join("end"), "now").unwrap();
        let words = std::fs::read_to_string(home.path().join("log")).unwrap();
        assert!(end.success(), "{words}");
        let goes_on = words.contains("processes of the program go on: captures are kept");
        let named = words.contains("/idle: it goes on (process ");
        assert_eq!((goes_on, named), (true, count == 0), "{words}");
        assert_eq!(
            words.contains("all its events are there"),
            count > 0,
            "{words}"
        );
    }
    // The busy one may have called after `record` had ended: its capture is kept, and has all.
    let whole = home.path().join("whole");
    std::fs::create_dir(&whole).unwrap();
    crate::support::live::wait_for("all calls of the daemon", || {
        for (number, capture) in ending(home.path(), "cap").iter().enumerate() {
            let trace = whole.join(format!("{number}.trace"));
            let [capture, trace] = [capture, &trace].map(|path| path.to_str().unwrap());
            run(
                home.path(),
                &["trace", "finish", "--force", capture, "-o", trace],
            );
        }
        calls(&whole) == 10
    });
}
