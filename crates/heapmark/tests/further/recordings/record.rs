//! `heapmark record`: the program is as it was, and a trace lies there afterwards.

use crate::support::files;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn record(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    command
        .current_dir(folder)
        .arg("record")
        .args(arguments)
        .output()
        .unwrap()
}

fn trace(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    let end = command
        .current_dir(folder)
        .arg("trace")
        .args(arguments)
        .output()
        .unwrap();
    assert!(end.status.success(), "{}", words(&end));
    String::from_utf8(end.stdout).unwrap()
}

fn words(end: &Output) -> String {
    String::from_utf8_lossy(&end.stderr).into_owned()
}

/// What `heapmark trace finish` of captures prints, which begin with what their parents had.
fn inherited(home: &Path, captures: &[String]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    let end = command
        .current_dir(home)
        .args(["trace", "finish"])
        .args(captures)
        .output()
        .unwrap();
    let said = words(&end);
    assert_eq!(end.status.code(), Some(0), "{said}");
    assert!(
        !said.contains("objects ended that had begun before the recording"),
        "{said}"
    );
    said
}

/// A program whose calls are known.
fn compile(folder: &Path, name: &str, source: &str) {
    let file = folder.join(format!("{name}.c"));
    std::fs::write(&file, source).unwrap();
    let end = Command::new("cc")
        .arg("-fno-builtin")
        .arg("-o")
        .arg(folder.join(name))
        .arg(&file)
        .output()
        .unwrap();
    assert!(end.status.success(), "{}", words(&end));
    std::fs::remove_file(file).unwrap();
}

/// `own.so`, an allocator that hands on to the next.
fn own_library(folder: &Path) -> PathBuf {
    let (library, source) = (
        folder.join("own.so"),
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fakes/forward.c"),
    );
    let end = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source)
        .output()
        .unwrap();
    assert!(end.status.success(), "{}", words(&end));
    library
}

const THOUSAND: &str = "#include <stdlib.h>\n#include <stdio.h>\n
int main(int count, char **words) {
    for (int i = 0; i < 1000; i++) free(malloc(4321));
    char line[100];
    if (count > 1 && fgets(line, 100, stdin)) printf(\"%s %s\", words[1], line);
    return 7;
}\n";

#[test]
fn the_program_keeps_its_words_its_streams_and_its_exit_code() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "thousand", THOUSAND);
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    command
        .current_dir(home.path())
        .args(["record", "--", "./thousand", "two words"]);
    std::fs::write(home.path().join("input"), "a line\n").unwrap();
    let end = command
        .stdin(std::fs::File::open(home.path().join("input")).unwrap())
        .output()
        .unwrap();
    assert_eq!(end.status.code(), Some(7), "{}", words(&end));
    assert_eq!(String::from_utf8_lossy(&end.stdout), "two words a line\n");
    let said = words(&end);
    assert!(
        said.contains("~ns/event") && said.contains("  thousand.trace\n"),
        "as the user would call it: {said}"
    );
    assert_eq!(files(home.path()), ["input", "thousand", "thousand.trace"]);
    let dump = trace(home.path(), &["dump", "thousand.trace"]);
    assert_eq!(
        dump.matches("size=4321").count(),
        1000,
        "{}",
        &dump[..dump.len().min(2000)]
    );
    trace(home.path(), &["check", "thousand.trace"]);
}

/// `nohup` has both go on without their terminal.
#[test]
fn what_the_program_is_to_ignore_it_ignores() {
    let home = tempfile::tempdir().unwrap();
    let line = "trap '' HUP USR1; exec \"$0\" record -o a.trace grep SigIgn /proc/self/status";
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", line, env!("CARGO_BIN_EXE_heapmark")]);
    let end = shell.current_dir(home.path()).output().unwrap();
    let said = String::from_utf8(end.stdout).unwrap();
    let ignored = said.split_whitespace().nth(1).expect(&said);
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    // The bits of signals 1 and 10.
    assert_eq!(ignored & 0x201, 0x201, "{said}");
}

#[test]
fn other_names_have_other_folders_of_children() {
    let home = tempfile::tempdir().unwrap();
    let shell = ["sh", "-c", "/bin/echo x; true"];
    let recorded = |flags: &[&str]| {
        let end = record(home.path(), &[flags, &shell].concat());
        assert_eq!(end.status.code(), Some(0), "{}", words(&end));
    };
    recorded(&["--children", "-o", "app.trace"]);
    let of_app = || files(&home.path().join("app.children"));
    let before = of_app();
    assert!(!before.is_empty());
    recorded(&["--children", "-o", "app.two"]);
    recorded(&["--force", "-o", "app.two"]);
    assert_eq!(of_app(), before);
    assert!(files(&home.path().join("app.two.children")).is_empty());
}

#[test]
fn what_an_event_costs_is_measured_once_and_again_where_what_was_kept_is_damaged_or_of_another_clock()
 {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "thousand", THOUSAND);
    let cache = home.path().join("cache");
    let costs = |clock: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
        command
            .current_dir(home.path())
            .env("HEAPMARK_CACHE", &cache)
            .env("HEAPMARK_RECORD_CLOCK", clock);
        let end = command
            .args(["record", "--force", "--", "./thousand"])
            .output()
            .unwrap();
        assert_eq!(end.status.code(), Some(7), "{}", words(&end));
        let said = words(&end);
        let row = said
            .lines()
            .find(|line| line.trim_start().starts_with("thousand "))
            .unwrap_or_else(|| panic!("{said}"));
        row.split_whitespace().nth(5).unwrap().to_owned()
    };
    let kept = || {
        let names = files(&cache.join("recorder"))
            .into_iter()
            .filter(|name| name.ends_with(".json"));
        names
            .map(|name| cache.join("recorder").join(name))
            .collect::<Vec<_>>()
    };
    costs("");
    let [first] = &kept()[..] else {
        panic!("{:?}", kept())
    };
    let planted = r#"{"alone_ns":4321.0,"threaded_ns":1.0,"counter_ns":1.0}"#;
    std::fs::write(first, planted).unwrap();
    assert_eq!(costs(""), "4321", "what is kept is told");
    assert_ne!(costs("counter"), "4321", "another clock is another cost");
    assert_eq!(kept().len(), 2);
    std::fs::write(first, &planted[..20]).unwrap();
    assert_ne!(costs(""), "4321");
    let whole = std::fs::read_to_string(first).unwrap();
    assert!(
        whole.contains("counter_ns") && !whole.contains("4321"),
        "{whole}"
    );
    // What is kept says nothing of this folder.
    let line = format!(
        "ulimit -f 100; exec {} record -- ./thousand",
        env!("CARGO_BIN_EXE_heapmark")
    );
    let mut shell = Command::new("/bin/sh");
    let end = shell
        .current_dir(home.path())
        .env("HEAPMARK_CACHE", &cache)
        .arg("-c")
        .arg(line)
        .output()
        .unwrap();
    assert_eq!(end.status.code(), Some(1), "{}", words(&end));
    assert!(
        words(&end).contains("nothing can be recorded into"),
        "{}",
        words(&end)
    );
}

#[test]
fn children_have_traces_of_their_own_and_the_shells_is_the_main_one() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "thousand", THOUSAND);
    let end = record(
        home.path(),
        &[
            "--children",
            "-o",
            "out.trace",
            "--",
            "/bin/sh",
            "-c",
            "./thousand; ./thousand; kill -9 $$",
        ],
    );
    assert_eq!(end.status.code(), Some(128 + 9), "{}", words(&end));
    let names = files(home.path());
    assert_eq!(
        names
            .iter()
            .filter(|name| name.ends_with("-thousand.trace"))
            .count(),
        2,
        "{names:?}"
    );
    assert!(
        names.contains(&"out.trace".to_string())
            && !names.iter().any(|name| name.ends_with(".cap")),
        "{names:?}"
    );
    assert!(
        words(&end).contains("it ended without its destructors"),
        "{}",
        words(&end)
    );
    assert!(
        words(&end).contains("it was killed by SIGKILL") && !words(&end).contains("memory"),
        "{}",
        words(&end)
    );
}

#[test]
fn traces_of_more_processes_than_files_may_be_open_are_all_made() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "thousand", THOUSAND);
    let line = format!(
        "ulimit -n 64; exec {} record --children -o out.trace -- /bin/sh -c \
         'i=0; while [ $i -lt 70 ]; do ./thousand; i=$((i + 1)); done'",
        env!("CARGO_BIN_EXE_heapmark")
    );
    let mut shell = Command::new("/bin/sh");
    let end = shell
        .current_dir(home.path())
        .arg("-c")
        .arg(line)
        .output()
        .unwrap();
    assert_eq!(end.status.code(), Some(0), "{}", words(&end));
    let names = files(home.path());
    let made = names
        .iter()
        .filter(|name| name.ends_with("-thousand.trace"));
    assert_eq!(made.count(), 70, "{names:?}");
}

#[test]
fn the_program_behind_a_wrapper_is_the_main_one_and_others_are_counted() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "many", &THOUSAND.replace("1000", "100000"));
    let line = "./many; /bin/true; true";
    let end = record(
        home.path(),
        &["-o", "out.trace", "--", "/bin/sh", "-c", line],
    );
    let said = words(&end);
    assert_eq!(end.status.code(), Some(0), "{said}");
    let dump = trace(home.path(), &["dump", "out.trace"]);
    assert_eq!(dump.matches("size=4321").count(), 100_000);
    assert!(
        said.contains("2 other processes of the program, with "),
        "{said}"
    );
    assert_eq!(
        files(home.path()),
        ["many", "out.trace"],
        "captures are gone"
    );
}

#[test]
fn a_version_managers_script_is_named_with_the_program_behind_it() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "thousand", THOUSAND);
    let at = |name: &str| home.path().join(name).display().to_string();
    let script = |name: &str, text: &str| {
        std::fs::write(at(name), text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(at(name), mode).unwrap();
    };
    let (own, manager) = (at("thousand"), at("pyenv"));
    let which = format!("case $1 in which) echo {own};; exec) exec {own};; esac");
    script("pyenv", &format!("#!/bin/sh\n{which}\n"));
    script(
        "shim",
        &format!("#!/bin/sh\nexec \"{manager}\" exec \"$0\" \"$@\"\n"),
    );
    let end = record(home.path(), &["--", "./shim"]);
    let said = words(&end);
    assert_eq!(end.status.code(), Some(7), "{said}");
    let advice = format!(
        "is a shell script of {manager}, which finds the program and then becomes it: name {own} instead"
    );
    assert!(said.contains(&advice), "{said}");
    assert_eq!(
        trace(home.path(), &["dump", "shim.trace"])
            .matches("size=4321")
            .count(),
        1000
    );
}

#[test]
fn a_folder_that_somebody_has_locked_is_written_to() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "thousand", THOUSAND);
    let locked = std::fs::File::open(home.path()).unwrap();
    locked.lock().unwrap();
    let end = record(home.path(), &["--", "./thousand"]);
    assert_eq!(end.status.code(), Some(7), "{}", words(&end));
    assert!(home.path().join("thousand.trace").exists());
}

#[test]
fn captures_lie_where_nobody_else_can_put_one() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "thousand", THOUSAND);
    let end = record(home.path(), &["--raw", "--", "./thousand"]);
    assert_eq!(end.status.code(), Some(7), "{}", words(&end));
    let capture = files(home.path())
        .into_iter()
        .find(|name| name.ends_with(".cap"))
        .unwrap();
    let folder = home
        .path()
        .join(capture)
        .parent()
        .unwrap()
        .metadata()
        .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&folder.permissions());
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_daemon_that_calls_first_when_its_parent_is_gone_keeps_what_it_inherits() {
    let home = tempfile::tempdir().unwrap();
    let source = "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n
        int main(void) {
            static void *kept[1000];
            for (int i = 0; i < 1000; i++) kept[i] = malloc(4321);
            if (fork()) _exit(0);
            while (access(\"go\", F_OK)) usleep(10000);
            for (int i = 0; i < 1000; i++) free(kept[i]);
            return fclose(fopen(\"gone\", \"w\"));
        }\n";
    compile(home.path(), "late", source);
    // The daemon must hold no pipe of ours.
    let log = std::fs::File::create(home.path().join("log")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    let end = command
        .current_dir(home.path())
        .args(["record", "--", "./late"])
        .stdout(std::process::Stdio::null())
        .stderr(log)
        .status()
        .unwrap();
    let said = std::fs::read_to_string(home.path().join("log")).unwrap();
    assert!(
        end.success() && said.contains("captures are kept in"),
        "{said}"
    );
    std::fs::write(home.path().join("go"), "").unwrap();
    crate::support::live::wait_for("the daemon", || home.path().join("gone").exists());
    let captures = || -> Vec<String> {
        files(home.path())
            .into_iter()
            .filter(|name| name.ends_with(".cap"))
            .collect()
    };
    crate::support::live::wait_for("its capture", || captures().len() == 2);
    let said = inherited(home.path(), &captures());
    assert!(
        said.contains("1000 objects come from the parent process"),
        "{said}"
    );
}

#[test]
fn an_allocator_serves_and_captures_can_be_kept() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "thousand", THOUSAND);
    own_library(home.path());
    let end = record(
        home.path(),
        &["--raw", "-a", "own=./own.so", "--", "./thousand"],
    );
    assert_eq!(end.status.code(), Some(7), "{}", words(&end));
    let names = files(home.path());
    let capture = names.iter().find(|name| name.ends_with(".cap")).unwrap();
    let finished = trace(home.path(), &["finish", capture, "-o", "own.trace"]);
    assert!(finished.contains("own.trace"), "{finished}");
    let stats = trace(home.path(), &["stats", "--to", "json", "own.trace"]);
    assert!(
        stats.contains("/own.so"),
        "the library that served is on record: {stats}"
    );
}

#[test]
fn a_program_is_called_what_it_was_started_as_wherever_its_file_is() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "thousand", THOUSAND);
    std::os::unix::fs::symlink("thousand", home.path().join("server")).unwrap();
    let end = record(
        home.path(),
        &[
            "--children",
            "-o",
            "out.trace",
            "--",
            "/bin/sh",
            "-c",
            "./server; true",
        ],
    );
    assert_eq!(end.status.code(), Some(0), "{}", words(&end));
    assert!(
        files(home.path())
            .iter()
            .any(|name| name.ends_with("-server.trace")),
        "{:?}",
        files(home.path())
    );
    let said = words(&end);
    assert!(
        said.lines()
            .any(|line| line.trim_start().starts_with("server ")),
        "{said}"
    );
}

#[test]
fn a_program_is_told_the_word_that_it_was_started_by() {
    let home = tempfile::tempdir().unwrap();
    compile(
        home.path(),
        "said",
        "#include <stdio.h>\nint main(int c, char **words) { return c < 1 || puts(words[0]) < 0; }\n",
    );
    let script = home.path().join("script");
    std::fs::write(&script, "#!/bin/sh\necho $0\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for word in ["./said", "././said", "said", "./script"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
        command
            .current_dir(home.path())
            .args(["record", "--", word]);
        let path = format!(
            "{}:{}",
            home.path().display(),
            std::env::var("PATH").unwrap()
        );
        let end = command.env("PATH", path).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&end.stdout),
            format!("{word}\n"),
            "{}",
            words(&end)
        );
    }
}

#[test]
fn a_daemon_begins_with_what_the_process_had_that_made_it() {
    let home = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recorder/tests/scenarios/daemon.c");
    compile(
        home.path(),
        "daemon",
        &std::fs::read_to_string(source).unwrap(),
    );
    for word in ["once", "daemon"] {
        // The output is at its end when the daemon is.
        let end = record(
            home.path(),
            &[
                "--raw",
                "-o",
                &format!("{word}.trace"),
                "--",
                "./daemon",
                word,
            ],
        );
        assert_eq!(end.status.code(), Some(0), "{}", words(&end));
        let captures = files(home.path())
            .into_iter()
            .filter(|name| name.starts_with(&format!("{word}.trace.")) && name.ends_with(".cap"));
        let captures: Vec<String> = captures.collect();
        let said = inherited(home.path(), &captures);
        assert!(
            said.contains("objects come from the parent process"),
            "{said}"
        );
    }
}

#[test]
fn calls_that_an_allocator_makes_of_itself_more_often_than_the_program_are_told_of() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "thousand", THOUSAND);
    let source = "#include <stddef.h>\n
        void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);\n
        void free(void *block) { __libc_free(block); }\n
        void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }\n
        void *realloc(void *block, size_t size) { return __libc_realloc(block, size); }\n
        static __thread int within;\n
        void *malloc(size_t size) {
            if (!within++)
                for (int i = 0; i < 10; i++) free(malloc(16));
            within--;
            return __libc_malloc(size);
        }\n";
    let file = home.path().join("own.c");
    std::fs::write(&file, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-fno-builtin", "-shared", "-fPIC", "-o"])
        .args([home.path().join("own.so"), file]);
    assert!(compiler.status().unwrap().success());
    let end = record(home.path(), &["-a", "own=./own.so", "--", "./thousand"]);
    assert_eq!(end.status.code(), Some(7), "{}", words(&end));
    assert!(
        words(&end)
            .contains("calls were made within calls of the allocator, more than are on record"),
        "{}",
        words(&end)
    );
    let end = record(home.path(), &["--", "./thousand"]);
    assert!(
        !words(&end).contains("calls were made within calls"),
        "{}",
        words(&end)
    );
}

#[test]
fn recording_that_ends_early_says_so_and_the_program_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let source = THOUSAND.replace("1000", "1000000");
    compile(home.path(), "many", &source);
    let end = record(home.path(), &["--max-bytes", "1M", "--", "./many"]);
    assert_eq!(end.status.code(), Some(7), "{}", words(&end));
    assert!(
        words(&end).contains("recording ended early: --max-bytes was reached"),
        "{}",
        words(&end)
    );
}

#[test]
fn memory_that_does_not_come_from_malloc_is_told_of_a_process_that_is_mostly_that() {
    let home = tempfile::tempdir().unwrap();
    let source = |malloc: bool| {
        let block = if malloc {
            "malloc(bytes)".to_string()
        } else {
            "mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)"
                .to_string()
        };
        format!(
            "#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n
            int main(void) {{ size_t bytes = 100 << 20; return *(char *)memset({block}, 0, bytes); }}\n"
        )
    };
    for (name, malloc) in [("pool", false), ("plain", true)] {
        compile(home.path(), name, &source(malloc));
        let end = record(home.path(), &["--", &format!("./{name}")]);
        assert_eq!(end.status.code(), Some(0), "{}", words(&end));
        assert_eq!(
            words(&end).contains("in memory came from malloc: the rest"),
            !malloc,
            "{}",
            words(&end)
        );
    }
}

#[test]
fn a_program_that_is_killed_for_a_forbidden_call_is_told_of_its_sandbox() {
    let home = tempfile::tempdir().unwrap();
    compile(
        home.path(),
        "caged",
        &THOUSAND
            .replace("return 7;", "kill(getpid(), SIGSYS); return 7;")
            .replace(
                "#include <stdio.h>",
                "#include <stdio.h>\n#include <signal.h>\n#include <unistd.h>",
            ),
    );
    let end = record(home.path(), &["--", "./caged"]);
    assert_eq!(
        end.status.code(),
        Some(128 + libc::SIGSYS),
        "{}",
        words(&end)
    );
    assert!(
        words(&end).contains("it was killed by SIGSYS: it forbids calls of the system (seccomp)"),
        "{}",
        words(&end)
    );
    assert_eq!(
        trace(home.path(), &["dump", "caged.trace"])
            .matches("size=4321")
            .count(),
        1000
    );
}

#[test]
fn a_program_that_heapmark_has_no_threads_to_watch_is_ended() {
    let home = tempfile::tempdir().unwrap();
    let source = "#include <fcntl.h>\n#include <unistd.h>\n
        int main(void) { sleep(2); return open(\"went-on\", O_CREAT | O_WRONLY, 0600) < 0; }\n";
    compile(home.path(), "sleeper", source);
    // The first or the second thread that a process wants while it has a child is refused.
    let source = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <errno.h>\n#include <pthread.h>\n\
                  #include <stdlib.h>\n#include <sys/wait.h>\n
        int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
            static int wanted;
            siginfo_t child;
            if (!waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) && ++wanted == atoi(getenv(\"REFUSED\")))
                return EAGAIN;
            int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, \"pthread_create\");
            return next(thread, attributes, start, argument);
        }\n";
    let (library, file) = (
        home.path().join("refuses.so"),
        home.path().join("refuses.c"),
    );
    std::fs::write(&file, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &file]);
    assert!(compiler.arg("-ldl").status().unwrap().success());
    for refused in ["1", "2"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
        let end = command
            .current_dir(home.path())
            .env("LD_PRELOAD", &library)
            .env("REFUSED", refused)
            .args(["record", "--", "./sleeper"])
            .output()
            .unwrap();
        let said = words(&end);
        assert_eq!(end.status.code(), Some(1), "{said}");
        assert!(said.contains("cannot start a thread"), "{said}");
        assert!(!home.path().join("went-on").exists(), "{refused}: {said}");
    }
}

#[test]
fn who_else_is_preloaded_is_on_record_and_who_comes_first_is_told() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "thousand", THOUSAND);
    let library = own_library(home.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    command
        .current_dir(home.path())
        .env("LD_PRELOAD", &library)
        .args(["record", "-o", "a.trace", "--", "./thousand"]);
    let end = command.output().unwrap();
    assert_eq!(end.status.code(), Some(7), "{}", words(&end));
    assert!(
        !words(&end).contains("before the recorder"),
        "{}",
        words(&end)
    );
    assert!(trace(home.path(), &["stats", "--to", "json", "a.trace"]).contains("/own.so"));
    let line = format!(
        "LD_PRELOAD={}:$LD_PRELOAD exec ./thousand",
        library.display()
    );
    let end = record(
        home.path(),
        &["-o", "b.trace", "--", "/bin/sh", "-c", &line],
    );
    assert_eq!(end.status.code(), Some(7), "{}", words(&end));
    let said = format!("{} serves malloc before the recorder", library.display());
    assert!(words(&end).contains(&said), "{}", words(&end));
}

#[test]
fn what_a_library_frees_past_the_recorder_is_not_taken_for_a_wrong_order() {
    let home = tempfile::tempdir().unwrap();
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recorder/tests/scenarios");
    for (name, source, flags) in [
        ("deep.so", "deep_library.c", &["-shared", "-fPIC"][..]),
        ("deep", "deep.c", &[]),
    ] {
        let mut compiler = Command::new("cc");
        compiler
            .arg("-fno-builtin")
            .args(flags)
            .arg("-o")
            .args([home.path().join(name), scenarios.join(source)]);
        assert!(compiler.arg("-ldl").status().unwrap().success());
    }
    let end = record(home.path(), &["--", "./deep"]);
    let said = words(&end);
    assert_eq!(end.status.code(), Some(0), "{said}");
    assert!(
        said.contains(": 1000 objects ended that had begun before the recording, or unseen by it"),
        "{said}"
    );
    assert!(
        said.contains(
            ": 999 objects ended unseen (something frees past the recorder: RTLD_DEEPBIND?)"
        ),
        "{said}"
    );
    assert!(
        !said.contains("WARNING") && !said.contains("put right"),
        "{said}"
    );
    trace(home.path(), &["check", "deep.trace"]);
}

#[test]
fn what_cannot_be_recorded_is_said_in_one_line() {
    let home = tempfile::tempdir().unwrap();
    let source = home.path().join("none.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let end = Command::new("cc")
        .args(["-static", "-o"])
        .arg(home.path().join("static"))
        .arg(&source)
        .output()
        .unwrap();
    assert!(end.status.success(), "{}", words(&end));
    let cases: &[(&[&str], i32, &str)] = &[
        (
            &["--", "./static"],
            2,
            "it has no dynamic linker that could preload",
        ),
        (&["--", "./missing"], 2, "./missing: No such file"),
        (
            &["--", "no-such-command-anywhere"],
            2,
            "no such command in PATH",
        ),
        (
            &["-a", "no-such-allocator", "--", "/bin/true"],
            2,
            "no-such-allocator",
        ),
        (
            &["--max-bytes", "many", "--", "/bin/true"],
            2,
            "expected a size",
        ),
        (
            &["--duration", "0s", "--", "/bin/true"],
            2,
            "expected a time",
        ),
        (
            &["-o", "no such folder/x.trace", "--", "/bin/true"],
            1,
            "no such folder",
        ),
        (
            &["-o", "/proc/x.trace", "--", "/bin/true"],
            1,
            "nothing can be recorded into /proc: no room",
        ),
        (
            &["-o", "/", "--", "/bin/true"],
            2,
            "that is a folder; name a file in it",
        ),
        (
            &["-o", ".", "--", "/bin/true"],
            2,
            "that is a folder; name a file in it",
        ),
        (&[], 2, "COMMAND"),
    ];
    for (arguments, code, part) in cases {
        let end = record(home.path(), arguments);
        let said = words(&end);
        assert_eq!(end.status.code(), Some(*code), "{arguments:?}: {said}");
        assert!(
            said.contains(part) && !said.contains("panicked"),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn without_room_for_a_recording_nothing_is_begun_and_nothing_is_left() {
    let home = tempfile::tempdir().unwrap();
    compile(home.path(), "thousand", THOUSAND);
    let mut shell = Command::new("/bin/sh");
    // In units of 512 bytes: less than the first chunk.
    let line = format!(
        "ulimit -f 100; exec {} record -- ./thousand",
        env!("CARGO_BIN_EXE_heapmark")
    );
    let end = shell
        .current_dir(home.path())
        .arg("-c")
        .arg(line)
        .output()
        .unwrap();
    assert_eq!(
        (end.status.code(), words(&end).lines().count()),
        (Some(1), 1),
        "{}",
        words(&end)
    );
    assert!(
        words(&end).contains("nothing can be recorded into"),
        "{}",
        words(&end)
    );
    assert_eq!(files(home.path()), ["thousand"]);
}
