//! `heapmark which` of programs whose allocator and settings are known, and its readers of settings against what the
//! allocators themselves say.

use crate::support::live::wait_for;
use crate::support::{End, Place, copy_program, is_root};
use heapmark::build::find_library;
use heapmark::execute::reach::{Mapping, mappings};
use heapmark::which::settings::jemalloc::{Built, complaint, parse};
use heapmark::which::settings::{Judged, glibc, mimalloc};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Takes memory, says so, and waits until its input ends.
const WAITS: &str = "\
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  char *volatile block = malloc(1000);
  block[0] = 1;
  if (write(1, \"ready\\n\", 6) != 6) return 1;
  while (read(0, block, 1) > 0) {}
  return 0;
}
";

/// The same with a malloc that no library sees.
const HIDES: &str = "\
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline, used)) static void *malloc(size_t size) {
  return mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
int main(void) {
  char *volatile block = malloc(1000);
  block[0] = 1;
  if (write(1, \"ready\\n\", 6) != 6) return 1;
  while (read(0, block, 1) > 0) {}
  return 0;
}
";

/// A program that does something else, too, before it says that it is ready.
fn waits_after(statements: &str) -> String {
    let ready = "  if (write";
    WAITS.replacen(ready, &format!("  {statements}\n{ready}"), 1)
}

const JEMALLOC: &str = "libjemalloc.so.2";
const MIMALLOC: &str = "libmimalloc.so.2.0";
const TCMALLOC: &str = "libtcmalloc_minimal.so.4";

fn compile(place: &Place, compiler: &str, name: &str, source: &str, flags: &[&str]) {
    let file = place.at(&format!("{name}.c"));
    fs::write(&file, source).unwrap();
    let end = Command::new(compiler)
        .args(["-O1", "-fno-builtin"])
        .arg(file)
        .args(flags)
        .arg("-o")
        .arg(place.at(name))
        .status()
        .unwrap();
    assert!(end.success(), "{name}");
}

/// A program that waits; it ends with the test.
struct Waiting(Child);

impl Waiting {
    /// Starts one with nothing but these variables, and waits until it has taken memory.
    fn start(place: &Place, name: &str, variables: &[(&str, &str)]) -> Waiting {
        Waiting::by(Command::new(place.at(name)), variables)
    }

    /// Starts one by this command.
    fn by(mut command: Command, variables: &[(&str, &str)]) -> Waiting {
        let mut child = command
            .env_clear()
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "{command:?}");
        Waiting(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn looks(place: &Place, arguments: &[&str]) -> (End, Vec<Value>) {
    let end = place.run(&[&["which", "--format", "json"], arguments].concat());
    let answer: Value = serde_json::from_str(&end.stdout).unwrap_or_default();
    let processes = answer["processes"].as_array().cloned().unwrap_or_default();
    (end, processes)
}

/// Looks at what a command starts, for longer each time until all that is waited for has started: beside load that
/// takes seconds.
fn looks_when(
    place: &Place,
    arguments: &[&str],
    has_started: impl Fn(&End, &[Value]) -> bool,
) -> (End, Vec<Value>) {
    let look = |after: &str| looks(place, &[&["--after", after], arguments].concat());
    let mut found = look("1s");
    for after in ["4s", "16s", "64s"] {
        if has_started(&found.0, &found.1) {
            break;
        }
        found = look(after);
    }
    found
}

/// The command as a user without rights; as the tests' own user, if that is not root.
fn as_nobody(place: &Place, command: &Command) -> Command {
    let open = |folder: &str| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::create_dir_all(place.at(folder)).unwrap();
        fs::set_permissions(place.at(folder), mode).unwrap();
    };
    open("");
    open("nobody");
    let mut other = Command::new("env");
    if is_root() {
        other = Command::new("setpriv");
        other.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    }
    other
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .env("HOME", place.at("nobody"))
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/");
    other
}

fn named<'l>(looks: &'l [Value], name: &str) -> Option<&'l Value> {
    looks.iter().find(|it| it["name"] == name)
}

/// Whether this is a root that may look at processes of others: in a container it mostly is none.
fn may_look_at_all() -> bool {
    let own = rustix::thread::capabilities(None).unwrap();
    own.effective
        .contains(rustix::thread::CapabilitySet::SYS_PTRACE)
}

/// Allocators, each with whose calls it serves.
fn served(look: &Value) -> Vec<(String, String)> {
    let word = |serving: &Value, key: &str| serving[key].as_str().unwrap_or("not known").to_owned();
    let all = look["malloc"].as_array().unwrap().iter();
    all.map(|it| (word(it, "allocator"), word(it, "serves")))
        .collect()
}

/// The allocator that serves first, if it is known.
fn named_allocator(look: &Value) -> Option<&str> {
    look["malloc"][0]["allocator"].as_str()
}

/// States by setting, or by variable if that is one setting.
fn states(look: &Value) -> BTreeMap<String, String> {
    let all = look["settings"].as_array().unwrap().iter();
    all.map(|it| {
        let setting = it["setting"].as_str().unwrap();
        let name = match setting {
            "" => it["place"].as_str().unwrap(),
            setting => setting,
        };
        let state = it["state"].as_str().unwrap();
        (name.to_owned(), state.to_owned())
    })
    .collect()
}

#[test]
fn programs_of_known_truth_are_named_with_the_state_of_their_settings() {
    let place = Place::new();
    compile(&place, "cc", "waits", WAITS, &[]);
    let jemalloc = format!("-l:{JEMALLOC}");
    compile(
        &place,
        "cc",
        "linked",
        WAITS,
        &["-Wl,--no-as-needed", &jemalloc],
    );
    let mallopt = waits_after("extern int mallopt(int, int); mallopt(-8, 64);");
    compile(&place, "cc", "mallopt", &mallopt, &[]);
    compile(&place, "cc", "static", WAITS, &["-static"]);
    compile(&place, "musl-gcc", "musl", WAITS, &[]);
    compile(&place, "cc", "hides", HIDES, &[]);
    compile(&place, "cc", "stripped", HIDES, &["-s"]);
    let all = |allocator: &str| vec![(allocator.to_owned(), "all".to_owned())];
    let beside = |allocator: &str| {
        let libc = ("glibc".to_owned(), "libraries".to_owned());
        vec![(allocator.to_owned(), "program".to_owned()), libc]
    };
    type Case<'a> = (
        &'a str,
        Vec<(&'a str, &'a str)>,
        Vec<(String, String)>,
        Vec<(&'a str, &'a str)>,
    );
    let cases: Vec<Case> = vec![
        (
            "waits",
            vec![
                ("GLIBC_TUNABLES", "glibc.malloc.arena_max=2"),
                ("MALLOC_TOP_PAD_", "4x"),
                ("MALLOC_ARENAS", "1"),
                ("MALLOC_PERTURB_", "256"),
                ("MIMALLOC_PURGE_DELAY", "0"),
            ],
            all("glibc"),
            vec![
                ("glibc.malloc.arena_max", "taken"),
                ("MALLOC_TOP_PAD_", "taken"),
                ("MALLOC_ARENAS", "ignored"),
                ("MALLOC_PERTURB_", "ignored"),
                ("MIMALLOC_PURGE_DELAY", "ignored"),
            ],
        ),
        (
            "waits",
            vec![
                ("LD_PRELOAD", JEMALLOC),
                ("MALLOC_CONF", "narenas:2,dirty_decay_ms:0 ,lg_chunk:21"),
                ("MALLOC_ARENA_MAX", "2"),
            ],
            all("jemalloc"),
            vec![
                ("narenas", "given"),
                ("dirty_decay_ms", "refused"),
                ("lg_chunk", "refused"),
                ("MALLOC_ARENA_MAX", "ignored"),
            ],
        ),
        (
            "waits",
            vec![
                ("LD_PRELOAD", JEMALLOC),
                ("MALLOC_CONF", "background_thread:true;metadata_thp:auto"),
            ],
            all("jemalloc"),
            vec![("background_thread", "refused")],
        ),
        (
            "waits",
            vec![("LD_PRELOAD", JEMALLOC), ("_RJEM_MALLOC_CONF", "narenas:2")],
            all("jemalloc"),
            vec![("_RJEM_MALLOC_CONF", "ignored")],
        ),
        (
            "linked",
            vec![("MALLOC_CONF", "narenas:1")],
            all("jemalloc"),
            vec![("narenas", "given")],
        ),
        (
            "waits",
            vec![
                ("LD_PRELOAD", MIMALLOC),
                ("MIMALLOC_RESET_DELAY", "7"),
                ("MIMALLOC_PURGING", "7"),
                ("MIMALLOC_PAGE_RESET", "yes please"),
            ],
            all("mimalloc"),
            vec![
                ("MIMALLOC_RESET_DELAY", "taken"),
                ("MIMALLOC_PURGING", "ignored"),
                ("MIMALLOC_PAGE_RESET", "refused"),
            ],
        ),
        (
            "waits",
            vec![
                ("LD_PRELOAD", TCMALLOC),
                ("TCMALLOC_RELEASE_RATE", "2.50"),
                ("TCMALLOC_HEAP_LIMIT_MB", "900MB"),
                ("TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", "1"),
                ("TCMALLOC_RELEASE", "1"),
            ],
            all("gperftools"),
            vec![
                ("TCMALLOC_RELEASE_RATE", "taken"),
                ("TCMALLOC_HEAP_LIMIT_MB", "taken"),
                // It takes half a MiB at least.
                ("TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", "changed"),
                ("TCMALLOC_RELEASE", "ignored"),
            ],
        ),
        (
            "waits",
            vec![
                ("LD_PRELOAD", "/opt/none/libjemalloc.so"),
                ("MALLOC_CONF", "narenas:2"),
            ],
            all("glibc"),
            vec![("MALLOC_CONF", "ignored")],
        ),
        (
            "static",
            vec![("MALLOC_ARENA_MAX", "3"), ("LD_PRELOAD", JEMALLOC)],
            all("glibc"),
            vec![("MALLOC_ARENA_MAX", "taken")],
        ),
        (
            "musl",
            vec![("MALLOC_ARENA_MAX", "2")],
            all("musl"),
            vec![("MALLOC_ARENA_MAX", "ignored")],
        ),
        ("hides", vec![], beside("a malloc of its own"), vec![]),
        ("stripped", vec![], beside("not known"), vec![]),
        (
            "mallopt",
            vec![("MALLOC_ARENA_MAX", "2"), ("MALLOC_PERTURB_", "256")],
            all("glibc"),
            vec![
                ("MALLOC_ARENA_MAX", "given"),
                ("MALLOC_PERTURB_", "ignored"),
            ],
        ),
    ];
    let start = |(name, variables, _, _): &Case| Waiting::start(&place, name, variables);
    let programs: Vec<Waiting> = cases.iter().map(start).collect();
    let pids: Vec<String> = programs.iter().map(Waiting::pid).collect();
    let pids: Vec<&str> = pids.iter().map(String::as_str).collect();
    let (end, looks) = looks(&place, &pids);
    assert_eq!(
        (end.code, looks.len()),
        (Some(0), cases.len()),
        "{}",
        end.stderr
    );
    for ((name, variables, truth, settings), look) in cases.iter().zip(&looks) {
        assert_eq!(&served(look), truth, "{name} {variables:?}: {look:#}");
        let settings = settings
            .iter()
            .map(|(name, state)| (name.to_string(), state.to_string()));
        let settings: BTreeMap<String, String> = settings.collect();
        assert_eq!(states(look), settings, "{name} {variables:?}: {look:#}");
    }
    let preload = |at: usize, key: &str| looks[at]["preloads"][0][key].as_str().map(str::to_owned);
    assert!(preload(1, "file").unwrap().contains("libjemalloc"));
    assert!(preload(7, "why").unwrap().contains("there is no such file"));
    assert!(preload(8, "why").unwrap().contains("the program is static"));
    assert_eq!(looks[1]["malloc"][0]["proven"], true);
    assert_eq!(looks[8]["malloc"][0]["proven"], false);
    // All that is held is in one kind, and the process holds something.
    let memory = &looks[0]["memory"];
    let bytes = |key: &str| memory[key].as_u64().unwrap();
    let kinds = [
        "heap_bytes",
        "stack_bytes",
        "file_bytes",
        "shared_bytes",
        "other_bytes",
    ];
    assert_eq!(kinds.map(bytes).iter().sum::<u64>(), bytes("rss_bytes"));
    assert!(bytes("heap_bytes") > 0 && bytes("most_mappings") > bytes("mappings"));

    let says = |expected: &str, pid: &str| place.run(&["which", "--expect", expected, pid]);
    assert_eq!(says("jemalloc", pids[1]).code, Some(0));
    assert_eq!(says("tcmalloc", pids[6]).code, Some(0));
    let end = says("jemalloc", pids[7]);
    assert_eq!(end.code, Some(3));
    assert!(
        end.stderr.contains("expected jemalloc: waits ("),
        "{}",
        end.stderr
    );
    assert!(end.says("names /opt/none/libjemalloc.so: there is no such file"));
    assert_eq!(
        says("glibc", pids[11]).code,
        Some(3),
        "not known is not as expected"
    );
    says("jemaloc", pids[0]).is_one_line(2);
    for version in ["mimalloc2", "mimalloc3-secure"] {
        let end = says(version, pids[5]);
        end.is_one_line(2);
        assert!(end.stderr.contains("--expect mimalloc\n"), "{}", end.stderr);
    }
    for family in ["mimalloc", "mi"] {
        assert_eq!(says(family, pids[5]).code, Some(0), "{family}");
    }
}

#[test]
fn an_allocator_inside_is_not_expected_in_place_of_a_preload_that_failed() {
    let place = Place::new();
    let source = WAITS.replacen(
        "int main",
        "__attribute__((used, noinline)) void *mi_malloc(size_t size) { return malloc(size); }\nint main",
        1,
    );
    compile(&place, "cc", "inside", &source, &[]);
    let plain = Waiting::start(&place, "inside", &[]);
    let missing = [("LD_PRELOAD", "/opt/none/libmimalloc.so")];
    let failed = Waiting::start(&place, "inside", &missing);
    let says = |process: &Waiting| {
        let pid = process.pid();
        let (_, looks) = looks(&place, &[&pid]);
        let inside = ("mimalloc".to_owned(), "callers".to_owned());
        assert!(served(&looks[0]).contains(&inside), "{looks:#?}");
        place.run(&["which", "--expect", "mimalloc", &pid]).code
    };
    assert_eq!((says(&plain), says(&failed)), (Some(0), Some(3)));
}

#[test]
fn what_cannot_be_looked_at_is_one_line() {
    let place = Place::new();
    let says = |pid: &str, words: &str| {
        let end = place.run(&["which", pid]);
        end.is_one_line(2);
        assert!(end.stderr.contains(words), "{}", end.stderr);
    };
    says("4194304", "there is no process 4194304");
    let mut ended = Command::new("true").spawn().unwrap();
    let pid = ended.id().to_string();
    // Not waited for, it stays as a zombie.
    wait_for("its end", || {
        fs::read_to_string(format!("/proc/{pid}/stat"))
            .unwrap()
            .contains(") Z ")
    });
    says(&pid, "has ended and is a zombie");
    ended.wait().unwrap();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero())
            .unwrap();
        wait.recv()
    });
    says(&told.recv().unwrap().to_string(), "is a thread of process");
    drop(go);
    let _ = thread.join().unwrap();
    // A container has none.
    if fs::read_to_string("/proc/2/stat").is_ok_and(|stat| stat.contains("(kthreadd)")) {
        says("2", "is a thread of the kernel");
    }
    for usage in [&["which"][..], &["which", "--watch", "1s"], &["which", "0"]] {
        assert_eq!(place.run(usage).code, Some(2), "{usage:?}");
    }
    assert_eq!(place.run(&["which", "--after", "1s", "1"]).code, Some(2));
    if is_root() {
        let heapmark = place.heapmark(&["which", &std::process::id().to_string()]);
        let end = End::of(as_nobody(&place, &heapmark).output().unwrap());
        end.is_one_line(2);
        let words =
            "belongs to user 0: only that user and root (with CAP_SYS_PTRACE) may look at it";
        assert!(end.stderr.contains(words), "{}", end.stderr);
    }
}

#[test]
fn what_serves_from_a_file_that_may_not_be_read_is_not_known() {
    let place = Place::new();
    compile(&place, "cc", "waits", WAITS, &[]);
    let folder = place.text("");
    let (search, run) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    let jemalloc = format!("-l:{JEMALLOC}");
    let library = find_library(JEMALLOC).unwrap();
    let copied = || fs::copy(&library, place.at(JEMALLOC)).unwrap();
    copied();
    let flags = ["-Wl,--no-as-needed", &search, &run, &jemalloc];
    compile(&place, "cc", "linked", WAITS, &flags);
    let start = |name: &str, variables: &[(&str, &str)]| {
        Waiting::by(as_nobody(&place, &Command::new(place.at(name))), variables)
    };
    let preload = place.text(JEMALLOC);
    let preloaded = start("waits", &[("LD_PRELOAD", &preload)]);
    let linked = start("linked", &[]);
    fs::remove_file(place.at(JEMALLOC)).unwrap();
    for process in [&preloaded, &linked] {
        let which = place.heapmark(&["which", "--expect", "glibc", &process.pid()]);
        let end = End::of(as_nobody(&place, &which).output().unwrap());
        assert_eq!(end.code, Some(3), "{}{}", end.stdout, end.stderr);
        assert!(
            end.says("what serves malloc is not known"),
            "{}",
            end.stdout
        );
        assert!(end.says("its file may not be read"), "{}", end.stdout);
        // As an upgrade replaces it.
        copied();
    }
    let (_, looks) = looks(&place, &[&preloaded.pid(), &linked.pid()]);
    // The kernel shows root the files themselves; in most containers it does not.
    let mut files = fs::read_dir("/proc/self/map_files").unwrap().flatten();
    let may_read = files.any(|file| fs::metadata(file.path()).is_ok());
    for look in &looks {
        let known = may_read.then_some("jemalloc");
        assert_eq!(named_allocator(look), known, "{look:#}");
    }
}

/// The first preload of a process: the mapped file, and why it is not loaded.
fn first_preload(place: &Place, process: &Waiting) -> (Option<String>, Option<String>) {
    let (end, looks) = looks(place, &[&process.pid()]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let word = |key: &str| looks[0]["preloads"][0][key].as_str().map(str::to_owned);
    (word("file"), word("why"))
}

/// A library that only is there.
const NOTHING: &str = "int nothing;\n";

#[test]
fn a_preload_is_found_wherever_its_name_leads() {
    let place = Place::new();
    let shared = ["-shared", "-fPIC"];
    for name in ["waits", "moves"] {
        let source = match name {
            "waits" => WAITS.to_owned(),
            _ => waits_after("if (chdir(\"/\")) return 1;"),
        };
        compile(&place, "cc", name, &source, &[]);
    }
    compile(&place, "cc", "libnone.so", NOTHING, &shared);
    fs::create_dir(place.at("real")).unwrap();
    fs::copy(place.at("libnone.so"), place.at("real/libnone.so.1")).unwrap();
    std::os::unix::fs::symlink(place.at("real/libnone.so.1"), place.at("liblink.so")).unwrap();
    let start = |name: &str, preload: &str| {
        let mut command = Command::new(place.at(name));
        command.current_dir(place.at(""));
        Waiting::by(command, &[("LD_PRELOAD", preload)])
    };
    let is_loaded = |process: &Waiting, file: &str| {
        let found = first_preload(&place, process);
        assert_eq!(found, (Some(place.text(file)), None));
    };
    is_loaded(&start("moves", "./libnone.so"), "libnone.so");
    is_loaded(&start("waits", "$ORIGIN/libnone.so"), "libnone.so");
    let linked = start("waits", &place.text("liblink.so"));
    is_loaded(&linked, "real/libnone.so.1");
    let named = start("waits", &place.text("libnone.so"));
    for name in ["libnone.so", "real/libnone.so.1"] {
        fs::remove_file(place.at(name)).unwrap();
        compile(&place, "cc", name, NOTHING, &shared);
    }
    is_loaded(&linked, "real/libnone.so.1 (deleted)");
    is_loaded(&named, "libnone.so (deleted)");
    let is_missing = |name: &str, preload: &str| {
        let (file, why) = first_preload(&place, &start(name, preload));
        assert_eq!(file, None);
        why.unwrap()
    };
    // From where it was to be loaded is no longer known.
    for preload in ["./other.so", "$ORIGIN/other.so"] {
        assert_eq!(is_missing("moves", preload), "not loaded; why is not known");
    }
    let why = is_missing("moves", "/opt/none/other.so");
    assert!(why.contains("the dynamic linker said so"), "{why}");
}

#[test]
fn a_process_with_another_root_is_read_by_the_files_that_it_maps() {
    if !is_root() {
        println!("skipped: only root may change a process's root");
        return;
    }
    let place = Place::new();
    for folder in ["empty", "root/opt/real", "root/etc"] {
        fs::create_dir_all(place.at(folder)).unwrap();
    }
    let leaves = format!(
        "if (chroot(\"{}\") || chdir(\"/\")) return 1;",
        place.text("empty")
    );
    compile(&place, "cc", "leaves", &waits_after(&leaves), &[]);
    let leaves = Waiting::start(&place, "leaves", &[("LD_PRELOAD", JEMALLOC)]);
    let (_, looks) = looks(&place, &[&leaves.pid()]);
    assert_eq!(named_allocator(&looks[0]), Some("jemalloc"), "{looks:#?}");
    assert_eq!(looks[0]["preloads"][0]["why"], Value::Null);

    // A root with all that the program needs, and a link that leads elsewhere outside of it.
    compile(&place, "cc", "root/waits", WAITS, &[]);
    let shared = ["-shared", "-fPIC"];
    compile(&place, "cc", "root/opt/real/libnone.so", NOTHING, &shared);
    std::os::unix::fs::symlink("/opt/real/libnone.so", place.at("root/opt/liblink.so")).unwrap();
    let waits = Waiting::start(&place, "root/waits", &[]);
    let maps = fs::read_to_string(format!("/proc/{}/maps", waits.pid())).unwrap();
    let files = mappings(&maps).filter(Mapping::begins_a_file);
    for file in files.map(|mapping| mapping.file) {
        let name = Path::new(file).file_name().unwrap();
        let folders = ["root/lib", "root/lib64"];
        for folder in folders.map(|folder| place.at(folder)) {
            fs::create_dir_all(&folder).unwrap();
            fs::copy(file, folder.join(name)).unwrap();
        }
    }
    let list = "# for all: /opt/never.so\n/opt/liblink.so # not this one\n";
    fs::write(place.at("root/etc/ld.so.preload"), list).unwrap();
    let mut command = Command::new("chroot");
    command.args([&place.text("root"), "/waits"]);
    let below = Waiting::by(command, &[("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")]);
    assert_eq!(
        first_preload(&place, &below),
        (Some(place.text("root/opt/real/libnone.so")), None)
    );
    let mut command = Command::new("chroot");
    command.args([&place.text("root"), "/waits"]);
    let search = ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    // This root's folders may have it, and that one's not.
    let named = Waiting::by(command, &[search, ("LD_PRELOAD", "libnever.so")]);
    assert_eq!(
        first_preload(&place, &named),
        (None, Some("not loaded; why is not known".into()))
    );
    let end = place.run(&["which", &below.pid()]);
    assert!(!end.says("never.so"), "{}", end.stdout);
    assert!(
        !end.says("not this one") && !end.says("names #"),
        "{}",
        end.stdout
    );
    assert!(
        end.says("it is loaded, and serves no malloc"),
        "{}",
        end.stdout
    );
}

#[test]
fn a_command_is_looked_at_with_all_that_it_starts_and_ended() {
    let place = Place::new();
    compile(&place, "cc", "waits", WAITS, &[]);
    // Started by one that has it, in one that has not.
    let command = "MALLOC_ARENA_MAX=3 sh -c 'env -u MALLOC_ARENA_MAX ./waits <&9 & echo started >&2; wait' 9<>pipe";
    rustix::fs::mkfifoat(rustix::fs::CWD, place.at("pipe"), 0o600.into()).unwrap();
    let (end, looks) = looks_when(&place, &["--", "sh", "-c", command], |end, looks| {
        named(looks, "waits").is_some() && end.stderr.contains("started")
    });
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.stderr.contains("started"));
    let waits = named(&looks, "waits").unwrap();
    assert_eq!(served(waits), [("glibc".to_owned(), "all".to_owned())]);
    assert_eq!(waits["dropped"][0]["variable"], "MALLOC_ARENA_MAX");
    assert_eq!(waits["dropped"][0]["value"], "3");
    let pid = waits["pid"].as_u64().unwrap();
    assert!(
        !fs::exists(format!("/proc/{pid}")).unwrap(),
        "nothing lives on"
    );
    let end = place.run(&["which", "--", "no-such-program"]);
    end.is_one_line(2);
    if is_root() {
        // A login shell's environment is su's own.
        let command = [
            "--",
            "env",
            "MALLOC_CONF=narenas:2",
            "su",
            "-s",
            "/bin/sh",
            "-",
            "nobody",
            "-c",
            "exec sleep 1000",
        ];
        let closed = "(sleep) belongs to user ";
        let (end, looks) = looks_when(&place, &command, |end, looks| {
            named(looks, "sleep").is_some() || end.stderr.contains(closed)
        });
        let sleeps = named(&looks, "sleep");
        if !may_look_at_all() {
            // As root in most containers.
            assert!(sleeps.is_none(), "{looks:#?}");
            assert!(end.stderr.contains(closed), "{}", end.stderr);
            return;
        }
        let sleeps = sleeps.unwrap_or_else(|| panic!("{looks:#?} {}", end.stderr));
        assert_eq!(sleeps["dropped"][0]["variable"], "MALLOC_CONF");
        assert_eq!(sleeps["dropped"][0]["name"], "su");
        assert_eq!(sleeps["settings"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn what_a_process_with_a_title_was_given_is_not_known() {
    let place = Place::new();
    let title = "extern char **environ; char *end = *environ;\n  \
        for (char **one = environ; *one; one++) for (end = *one; *end; end++) {}\n  \
        for (char *at = *environ; at < end; at++) *at = 0;";
    compile(&place, "cc", "titled", &waits_after(title), &[]);
    compile(&place, "cc", "waits", WAITS, &[]);
    rustix::fs::mkfifoat(rustix::fs::CWD, place.at("pipe"), 0o600.into()).unwrap();
    let command = "export MALLOC_ARENA_MAX=3; ./titled <&9 & ./waits <&9 & wait";
    let started = ["--", "sh", "-c", &format!("exec 9<>pipe; {command}")];
    let has_title = |look: &Value| !look["notes"].as_array().unwrap().is_empty();
    let (_, looks) = looks_when(&place, &started, |_, looks| {
        named(looks, "titled").is_some_and(has_title) && named(looks, "waits").is_some()
    });
    let titled = named(&looks, "titled").unwrap();
    assert_eq!(titled["dropped"].as_array().unwrap().len(), 0, "{titled:#}");
    let note = titled["notes"][0].as_str().unwrap();
    assert!(
        note.contains("it has overwritten its environment"),
        "{note}"
    );
    let waits = named(&looks, "waits").unwrap();
    assert!(!has_title(waits), "{waits:#}");
    assert_eq!(states(waits)["MALLOC_ARENA_MAX"], "taken");
}

#[test]
fn a_command_ends_with_heapmark_however_that_ends() {
    let place = Place::new();
    let command = ["which", "--after", "600s", "--", "sh", "-c"];
    let script = "echo $$ >number; mv number started; exec sleep 600";
    let mut which = place.heapmark(&[&command[..], &[script]].concat());
    let mut which = which.stdout(Stdio::null()).spawn().unwrap();
    wait_for("the command", || place.at("started").exists());
    which.kill().unwrap();
    which.wait().unwrap();
    let pid = fs::read_to_string(place.at("started")).unwrap();
    wait_for("its end", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.is_ok_and(|stat| stat.contains(") Z "))
            || !Path::new("/proc").join(pid.trim()).exists()
    });
}

#[test]
fn a_command_that_may_not_be_ended_is_one_line() {
    if !is_root() {
        println!("skipped: only root can make a program that runs as root");
        return;
    }
    let place = Place::new();
    let source =
        "#include <unistd.h>\nint main(void) { if (setuid(0)) return 1; for (;;) pause(); }\n";
    compile(&place, "cc", "rises", source, &[]);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    fs::set_permissions(place.at("rises"), mode).unwrap();
    // The program keeps what it was handed open.
    let said_after = |after| {
        let stderr = place.at("stderr");
        let which = place.heapmark(&["which", "--after", after, "--", &place.text("rises")]);
        let status = as_nobody(&place, &which)
            .stdout(Stdio::null())
            .stderr(fs::File::create(&stderr).unwrap())
            .status();
        assert_ne!(status.unwrap().code(), None);
        fs::read_to_string(stderr).unwrap()
    };
    let told = "may not be ended by this user: it is still running";
    let mut said = said_after("1s");
    // Beside load it may not have risen yet.
    for after in ["4s", "16s"] {
        if !said.contains(told) {
            said = said_after(after);
        }
    }
    if said.contains("ended before heapmark could look at it") {
        println!("skipped: programs get no privileges of their file here");
        return;
    }
    let (before, _) = said
        .split_once(") may not")
        .unwrap_or_else(|| panic!("{said}"));
    let pid = before.rsplit('(').next().unwrap().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn processes_are_shown_as_one_only_if_they_have_the_same_values() {
    let place = Place::new();
    compile(&place, "cc", "waits", WAITS, &[]);
    let start = |most| Waiting::start(&place, "waits", &[("MALLOC_ARENA_MAX", most)]);
    let all = [start("2"), start("2"), start("64")];
    let [first, second, third] = all.each_ref().map(Waiting::pid);
    let end = place.run(&["which", &first, &second, &third]);
    assert!(
        end.says(&format!("the same holds for {second}")),
        "{}",
        end.stdout
    );
    assert!(end.says(&format!("{first} holds RSS")), "{}", end.stdout);
    assert!(end.says("all 2: RSS from"), "{}", end.stdout);
    assert!(end.says(&format!("waits ({third}): ")), "{}", end.stdout);
}

#[test]
fn a_process_whose_main_thread_has_ended_is_read_by_another() {
    let place = Place::new();
    let source = WAITS
        .replacen("int main(void) {", "static void *work(void *none) {", 1)
        .replacen("return 0;", "exit(0);", 1)
        .replacen("return 1;", "return none;", 1);
    let main = "#include <pthread.h>\n\
        int main(void) { pthread_t it; pthread_create(&it, 0, work, 0); pthread_exit(0); }\n";
    compile(&place, "cc", "leaderless", &(source + main), &["-pthread"]);
    let process = Waiting::start(&place, "leaderless", &[("MALLOC_ARENA_MAX", "2")]);
    let pid = process.pid();
    wait_for("the end of its main thread", || {
        fs::read_to_string(format!("/proc/{pid}/stat"))
            .unwrap()
            .contains(") Z ")
    });
    let (end, looks) = looks(&place, &["--expect", "glibc", &pid]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert_eq!(looks[0]["pid"].to_string(), pid);
    assert_eq!(states(&looks[0])["MALLOC_ARENA_MAX"], "taken");
    assert!(looks[0]["memory"]["rss_bytes"].as_u64().unwrap() > 0);
}

/// A program of 32 bits that calls `pause` again and again: the file's head, its one segment, the code.
#[cfg(target_arch = "x86_64")]
const OF_32_BITS: &[u8] = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\
    \x02\0\x03\0\x01\0\0\0\x54\x80\x04\x08\x34\0\0\0\0\0\0\0\0\0\0\0\x34\0\x20\0\x01\0\0\0\0\0\0\0\
    \x01\0\0\0\0\0\0\0\0\x80\x04\x08\0\x80\x04\x08\x5d\0\0\0\x5d\0\0\0\x05\0\0\0\0\x10\0\0\
    \xb8\x1d\0\0\0\xcd\x80\xeb\xf7";

#[test]
#[cfg(target_arch = "x86_64")]
fn what_serves_a_process_that_cannot_be_judged_is_not_known() {
    let place = Place::new();
    let file = place.at("server32");
    fs::write(&file, OF_32_BITS).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&file, mode).unwrap();
    let Ok(mut child) = Command::new(&file).spawn() else {
        println!("skipped: this kernel runs no programs of 32 bits");
        return;
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let command = ["--expect", "glibc", "--", "sh", "-c", "./server32 & wait"];
    let told = "): no program of 64 bits";
    let (end, looks) = looks_when(&place, &command, |end, _| end.stderr.contains(told));
    assert_eq!(end.code, Some(3), "{}{}", end.stdout, end.stderr);
    assert!(end.stderr.contains(told), "{}", end.stderr);
    assert_eq!(served(&looks[0])[0].0, "glibc", "{looks:?}");
}

#[test]
fn a_process_is_watched_until_it_ends() {
    let place = Place::new();
    compile(&place, "cc", "waits", WAITS, &[]);
    let waits = Waiting::start(&place, "waits", &[]);
    let mut watching = place.heapmark(&[
        "which",
        "--watch",
        "100ms",
        "--format",
        "json",
        &waits.pid(),
    ]);
    let mut watching = watching
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert!(line["memory"]["rss_bytes"].as_u64().unwrap() > 0, "{line}");
    }
    drop(waits);
    let end = End::of(watching.wait_with_output().unwrap());
    assert_eq!(end.code, Some(0));
    assert!(end.stderr.contains("has ended"), "{}", end.stderr);
}

/// What a program prints on stderr with these variables.
fn said(variables: &[(&str, &str)]) -> String {
    let end = Command::new("/bin/ls")
        .arg("/")
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    String::from_utf8_lossy(&end.stderr).into_owned()
}

#[test]
fn the_reader_of_malloc_conf_refuses_what_jemalloc_refuses_in_its_words() {
    let built = Built {
        version: Some((5, 3, 0)),
        has_prof: true,
    };
    for conf in [
        "narenas:2,dirty_decay_ms:1000 ,bogus:1,narenas:0,tcache",
        "background_thread:true;metadata_thp:auto",
        "narenas:2,",
        "narenas:2, tcache:true",
        "narenas=2",
        ":1,narenas:",
        "narenas:default,narenas:0x10,narenas:-1,narenas:1k,narenas:09",
        "dirty_decay_ms:-1,dirty_decay_ms:-2,muzzy_decay_ms:18446744072001,muzzy_decay_ms:18446744072000",
        "thp:al,thp:,thp:x,d:primary,dss:second,metadata_thp:auto,metadata_th:no,percpu_arena:phy",
        "junk:true,junk:yes,zero:1,tcache:false,retain:maybe,zero_realloc:fre,zero_realloc:abort",
        "lg_tcache_max:99,lg_tcache_max:x,tcache_max:1,tcache_nslots_large:9999,lg_tcache_nslots_mul:17",
        "narenas_ratio:0.5,narenas_ratio:.5,narenas_ratio:5.,narenas_ratio:x,narenas_ratio:70000",
        "hpa_dirty_mult:-1,hpa_dirty_mult:-2,hpa_dirty_mult:0.25,hpa_hugification_threshold_ratio:1.5",
        "bin_shards:1-160:16,bin_shards:1-160,slab_sizes:1-4096:17|1:2,slab_sizes:default",
        "oversize_threshold:0,lg_extent_max_active_fit:65,mutex_max_spin:-2,stats_interval_opts:x",
        "prof_final:true,prof_bt_max:3,lg_prof_interval:64,prof_time_resolution:low,prof_leak:x",
        "calloc_madvise_threshold:1,hpa_hugify_style:eager,cache_oblivious:true,hpa_sec_bytes_after_flush:9",
    ] {
        let told = parse(conf, built);
        let unknown = told
            .iter()
            .find(|it| matches!(it.judged, Judged::NotKnown(_)));
        assert_eq!(unknown, None, "{conf}");
        let told: BTreeSet<String> = told.iter().filter_map(complaint).collect();
        let stderr = said(&[("LD_PRELOAD", JEMALLOC), ("MALLOC_CONF", conf)]);
        // A limit by the machine is no refusal.
        let said = stderr
            .lines()
            .filter(|line| !line.contains("Reducing narenas"));
        let said: BTreeSet<String> = said.map(str::to_owned).collect();
        assert_eq!(told, said, "{conf}");
    }
}

#[test]
fn the_reader_of_mimallocs_variables_takes_the_values_that_mimalloc_takes() {
    let names = ["os_tag", "reserve_os_memory", "max_errors"].map(str::to_owned);
    for (name, value) in [
        ("os_tag", "7"),
        ("os_tag", "on"),
        ("os_tag", "No"),
        ("os_tag", "-1"),
        ("os_tag", "7ms"),
        ("os_tag", "0x10"),
        ("reserve_os_memory", "64KiB"),
        ("reserve_os_memory", "1MB"),
        ("reserve_os_memory", "70000"),
        ("reserve_os_memory", "1Q"),
        ("max_errors", ""),
        ("max_errors", " 3"),
    ] {
        let variable = format!("MIMALLOC_{}", name.to_uppercase());
        let variables = [
            ("LD_PRELOAD", MIMALLOC),
            ("MIMALLOC_VERBOSE", "1"),
            (&variable, value),
        ];
        let stderr = said(&variables);
        let is_invalid = stderr.contains(&format!(
            "environment option mimalloc_{name} has an invalid value"
        ));
        let start = format!("mimalloc: option '{name}': ");
        let shown = stderr.lines().find_map(|line| line.strip_prefix(&start));
        match mimalloc::variable(&variable, value, &names).judged {
            Judged::Accepted(taken) => {
                assert!(
                    !is_invalid && shown.unwrap_or(&taken) == taken,
                    "{variable}={value} {taken}: {stderr}"
                );
                assert!(shown.is_some(), "{stderr}");
            }
            Judged::Refused(_) => assert!(is_invalid, "{variable}={value}: {stderr}"),
            other => panic!("{variable}={value}: {other:?}"),
        }
    }
}

#[test]
fn the_reader_of_tunables_takes_the_values_that_the_dynamic_linker_takes() {
    let mut linkers = fs::read_dir("/lib64")
        .unwrap()
        .flatten()
        .map(|it| it.path());
    let linker = linkers.find(|it| it.to_string_lossy().contains("ld-linux"));
    let Some(linker) = linker else {
        return;
    };
    let listed = |tunables: &str| -> BTreeMap<String, u64> {
        let end = Command::new(&linker)
            .arg("--list-tunables")
            .env_clear()
            .env("GLIBC_TUNABLES", tunables)
            .output()
            .unwrap();
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        };
        let text = String::from_utf8_lossy(&end.stdout).into_owned();
        let pairs = text.lines().filter_map(|line| {
            let (name, rest) = line.split_once(": ")?;
            Some((name.to_owned(), number(rest.split(' ').next()?)?))
        });
        pairs.collect()
    };
    let usual = listed("");
    for text in [
        "glibc.malloc.arena_max=2:glibc.malloc.arena_test=0",
        "glibc.malloc.perturb=256:glibc.malloc.mmap_max=-1",
        "glibc.malloc.perturb=255:glibc.malloc.top_pad=0x10:glibc.malloc.hugetlb=1",
        "glibc.malloc.arena_max=010:glibc.malloc.trim_threshold=:glibc.malloc.mxfast=160",
        "glibc.malloc.arenas=2:glibc.malloc.tcache_count=-1:glibc.malloc.tcache_max= 64",
    ] {
        let found = listed(text);
        for setting in glibc::tunables(text, Some((2, 36, 0))) {
            let value = found.get(&setting.name);
            match &setting.judged {
                Judged::Accepted(taken) => {
                    assert_eq!(value, taken.parse().ok().as_ref(), "{setting:?}")
                }
                Judged::Ignored(why) if why.starts_with("malloc takes") => {}
                Judged::Ignored(_) => assert_eq!(value, usual.get(&setting.name), "{setting:?}"),
                other => panic!("{setting:?}: {other:?}"),
            }
        }
    }
}

#[test]
#[ignore = "make test-all"]
fn a_global_allocator_of_rust_and_gos_own_are_named() {
    let place = Place::new();
    fs::create_dir_all(place.at("rust/src")).unwrap();
    let manifest = "[package]\nname = \"rust\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\ntikv-jemallocator = \"0.7\"\n";
    fs::write(place.at("rust/Cargo.toml"), manifest).unwrap();
    let main = "#[global_allocator]\nstatic A: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;\n\
        fn main() {\n    let text = String::from(\"ready\");\n    println!(\"{text}\");\n    let _ = std::io::read_to_string(std::io::stdin());\n}\n";
    fs::write(place.at("rust/src/main.rs"), main).unwrap();
    let mut cargo = Command::new("cargo");
    cargo
        .args(["build", "--quiet"])
        .current_dir(place.at("rust"));
    cargo.env("CARGO_TARGET_DIR", place.at("built"));
    assert!(cargo.status().unwrap().success());
    copy_program(place.at("built/debug/rust"), place.at("static-jemalloc"));
    let go = "package main\nimport (\"fmt\"; \"os\")\nfunc main() {\n  fmt.Println(\"ready\")\n  os.Stdin.Read(make([]byte, 1))\n}\n";
    fs::write(place.at("go.go"), go).unwrap();
    let mut build = Command::new("go");
    build
        .args(["build", "-o", "go", "go.go"])
        .current_dir(place.at(""));
    build
        .env("CGO_ENABLED", "0")
        .env("GOCACHE", place.at("go-cache"));
    assert!(build.status().unwrap().success());
    let conf = [
        ("MALLOC_CONF", "narenas:2"),
        ("_RJEM_MALLOC_CONF", "narenas:3,tcache:false,x:y"),
    ];
    let programs = ["static-jemalloc", "go"].map(|name| Waiting::start(&place, name, &conf));
    let pids = programs.each_ref().map(Waiting::pid);
    let (end, looks) = looks(&place, &pids.each_ref().map(String::as_str));
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let own = &looks[0]["malloc"].as_array().unwrap().iter();
    let own = own
        .clone()
        .find(|it| it["allocator"] == "jemalloc")
        .unwrap();
    assert_eq!(own["how"], "inside", "{:#}", looks[0]);
    assert!(own["version"].as_str().unwrap().starts_with("5."), "{own}");
    let states = states(&looks[0]);
    let state = |name: &str| states[name].as_str();
    // Another prefix, what it has by its symbols, and what it does not know.
    assert_eq!(
        ["MALLOC_CONF", "narenas", "tcache", "x"].map(state),
        ["ignored", "taken", "taken", "refused"]
    );
    assert_eq!(
        served(&looks[1]),
        [("Go's own allocator".to_owned(), "all".to_owned())]
    );
    assert_eq!(
        place.run(&["which", "--expect", "jemalloc", &pids[0]]).code,
        Some(0)
    );
    assert_eq!(
        place.run(&["which", "--expect", "go", &pids[1]]).code,
        Some(0)
    );
}
