//! What another user may write to, hold or plant while heapmark runs: no number changes, and nothing of theirs is read.

use crate::support::home::record;
use crate::support::tried::note;
use crate::support::{End, Place, mallocs, of_purpose, samples};
use heapmark_wire::capture::{CHUNK_BYTES, FIRST_BYTES};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// As user 65534, until it is killed: writes whatever could be a report or a number into every file that has heapmark's process
/// number in its name, reads, cuts and removes it, and holds connections to heapmark's sockets. It tells what it could do. A file
/// of the name CONTROL is open to it.
const STRANGER: &str = r##"
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 900 };
static const char *pid, *folder, *control;
static int held[MOST], count, told_control;
/* Addresses of other heapmarks, which other tests run. */
static char others[4096][24];
static int other_count;

static void told(const char *what, const char *path) {
    static char last[9000];
    char line[9000];
    snprintf(line, sizeof line, "%s %s\n", what, path);
    if (strcmp(line, last)) fputs(strcpy(last, line), stdout), fflush(stdout);
}

static void attack(const char *path) {
    static const char words[] = "litter=1 2 3000000000 3000000000 9 9 9 9 9\nfault=evil\nscheduled=1 -20 0 1\nresident=1\n"
        "process=1 1 /evil\nobject=0 1 1 - /evil\nowner=malloc 0\nowner=free 0\nend=1\n+1 0 /evil";
    unsigned long numbers[512];
    for (int i = 0; i < 512; i++) numbers[i] = 1ul << 40;
    told("tried", path);
    int file = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
    if (file >= 0 && write(file, words, sizeof words) > 0) told("wrote", path);
    close(file);
    file = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (file >= 0 && pwrite(file, numbers, sizeof numbers, 0) > 0) told("wrote", path);
    if (file >= 0 && !ftruncate(file, 1)) told("cut", path);
    close(file);
    if (!unlink(path) || !rmdir(path)) told("removed", path);
}

static void look(const char *place) {
    char path[8192], behind[64];
    struct stat found;
    snprintf(behind, sizeof behind, ".%s", pid);
    DIR *all = opendir(place);
    for (struct dirent *one; all && (one = readdir(all));) {
        int is_control = !strcmp(one->d_name, control);
        if (!strstr(one->d_name, ".heapmark-draft-") && !strstr(one->d_name, behind) && !is_control) continue;
        snprintf(path, sizeof path, "%s/%s", place, one->d_name);
        if (lstat(path, &found) || found.st_uid == getuid()) continue;
        if (!is_control || !told_control++) attack(path);
    }
    if (all) closedir(all);
}

static void hold(void) {
    char line[4096], path[8192];
    FILE *sockets = fopen("/proc/net/unix", "r");
    while (sockets && fgets(line, sizeof line, sockets)) {
        char *at = strchr(line, '@');
        if (!at || strlen(at) != 26) continue;
        int is_other = 0;
        for (int i = 0; i < other_count && !is_other; i++) is_other = !memcmp(others[i], at + 1, 24);
        if (is_other) continue;
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        struct ucred peer = {0};
        socklen_t length = sizeof peer;
        memcpy(to.sun_path + 1, at + 1, 24);
        for (int i = 0; i < 100 && count < MOST; i++) {
            int stream = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
            if (connect(stream, (void *)&to, 27) || getsockopt(stream, SOL_SOCKET, SO_PEERCRED, &peer, &length) ||
                peer.pid != atoi(pid)) {
                if (peer.pid && peer.pid != atoi(pid) && other_count < 4096) memcpy(others[other_count++], at + 1, 24);
                close(stream);
                break;
            }
            if (i % 8 == 7) send(stream, "00000000000000000000000000000000\0\0\0\0\0\0\0", 40, MSG_NOSIGNAL);
            held[count++] = stream;
            told("held", "a connection");
        }
    }
    if (sockets) fclose(sockets);
    if (count < MOST) return;
    snprintf(path, sizeof path, "%s/holding", folder);
    close(open(path, O_WRONLY | O_CREAT, 0644));
}

int main(int number, char **words) {
    char path[8192];
    pid = words[1], folder = words[2], control = words[3];
    if (number != 4 || setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)) return 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* What could be taken for heapmark's own, before it begins. */
    snprintf(path, sizeof path, "%s/a.trace.%s.captures", folder, pid);
    if (mkdir(path, 0777)) return 2;
    snprintf(path, sizeof path, "%s/a.children", folder);
    if (mkdir(path, 0777)) return 3;
    strcat(path, "/1-evil.trace");
    if (mkfifo(path, 0666)) return 4;
    snprintf(path, sizeof path, "/dev/shm/.heapmark-draft-%016d", atoi(pid));
    if (symlink("/etc/hostname", path)) return 5;
    told("ready", pid);
    for (;;) {
        look("/dev/shm");
        look("/tmp");
        look(folder);
        hold();
        usleep(1000);
    }
}
"##;

/// Blocks that are allocated and freed. A capture has three bytes or more for the one and one for the other: the events do
/// not fit into two chunks.
const CALLS: usize = 100_000;
const _: () = assert!(4 * CALLS > FIRST_BYTES + CHUNK_BYTES);

/// Without a second user there is nothing to test.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("not tested: only root may become another user");
    }
    is_root
}

fn compiled(place: &Place, name: &str, text: &str) -> PathBuf {
    let (source, program) = (place.at(&format!("{name}.c")), place.at(name));
    fs::write(&source, text).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-fno-builtin", "-o"]);
    assert!(
        compiler
            .args([&program, &source])
            .status()
            .unwrap()
            .success()
    );
    program
}

/// Files in a folder of all users, removed in the end.
struct Planted([PathBuf; 2]);

impl Drop for Planted {
    fn drop(&mut self) {
        for file in &self.0 {
            let _ = fs::remove_file(file);
        }
    }
}

/// Runs heapmark beside the stranger, in a folder in which all may write, with no more than 512 open files.
fn beside_a_stranger(place: &Place, arguments: &[&str], change: impl Fn(&mut Command)) -> End {
    let stranger = compiled(place, "stranger", STRANGER);
    fs::set_permissions(place.at(""), fs::Permissions::from_mode(0o1777)).unwrap();
    // It begins when the stranger knows its process number and is there.
    let wait = "ulimit -Sn 512; read go; exec \"$0\" \"$@\"";
    let own = place.heapmark(arguments);
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", wait])
        .arg(own.get_program())
        .args(own.get_args());
    shell.env_clear().current_dir(place.at(""));
    let variables = own
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    shell.envs(variables);
    change(&mut shell);
    for stream in [Command::stdout, Command::stderr] {
        stream(&mut shell, Stdio::piped());
    }
    let mut heapmark = shell.stdin(Stdio::piped()).spawn().unwrap();
    let pid = heapmark.id().to_string();

    let control = format!("heapmark-control-{pid}");
    let at = Path::new("/dev/shm").join(&control);
    let planted = Planted([
        at.clone(),
        format!("/dev/shm/.heapmark-draft-{pid:0>16}").into(),
    ]);
    fs::write(&at, "").unwrap();
    fs::set_permissions(&at, fs::Permissions::from_mode(0o666)).unwrap();
    let said = place.at("said");
    let mut attack = Command::new(stranger);
    attack.args([&pid, &place.text(""), &control]);
    attack.stdout(File::create(&said).unwrap()).process_group(0);
    let mut attack = attack.spawn().unwrap();
    crate::support::live::wait_for("the stranger", || {
        assert_eq!(attack.try_wait().unwrap(), None, "it cannot begin");
        fs::read_to_string(&said).unwrap().contains("ready")
    });
    writeln!(heapmark.stdin.take().unwrap(), "go").unwrap();
    let end = End::of(heapmark.wait_with_output().unwrap());
    attack.kill().and_then(|()| attack.wait()).unwrap();
    drop(planted);

    let said = fs::read_to_string(said).unwrap();
    let did = |what: &str| said.lines().filter(|line| line.starts_with(what)).count();
    assert!(
        said.contains(&format!("wrote /dev/shm/{control}")),
        "{said}"
    );
    assert!(said.contains("tried /dev/shm/.heapmark-draft-"), "{said}");
    assert!(did("held") > 0, "{said}");
    let could = said.lines().filter(|line| {
        ["wrote", "cut", "removed"]
            .iter()
            .any(|what| line.starts_with(what))
            && !line.ends_with(&control)
    });
    assert_eq!(could.collect::<Vec<_>>(), [""; 0], "{said}");
    end
}

#[test]
fn what_a_stranger_writes_into_is_no_number_of_a_try() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    // The stranger looks once a millisecond: it finds what is there while a process pauses.
    let program = compiled(
        &place,
        "pairs",
        "#include <stdlib.h>\n#include <unistd.h>\nint main(void) {
            static void *volatile kept[1000];
            for (int i = 0; i < 1000; i++) kept[i] = malloc(500);
            for (int i = 0; i < 5000; i++) free(malloc(i % 4 ? 40 : 72));
            usleep(2000);
            return 0;
        }\n",
    );
    let line = format!("{0}; {0}", program.display());
    let small = [
        "try",
        "-o",
        "run",
        "--blocks",
        "1",
        "--no-aa-copy",
        "--no-repeat",
    ];
    let own = ["--age", "50", "-a", "glibc", "--", "/bin/sh", "-c", &line];
    let end = beside_a_stranger(&place, &[&small[..], &own].concat(), |_| {});
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let told = format!("{}{}", end.stdout, end.stderr);
    assert!(!told.contains("evil"), "{told}");
    let records = samples(&place.at("run"));
    assert!(
        !fs::read_to_string(place.at("run/samples.jsonl"))
            .unwrap()
            .contains("evil")
    );
    for one in of_purpose(&records, "sample") {
        let figures = &one["measurement"]["figures"];
        assert_eq!(figures["processes"], 3.0, "{one}");
        if one["workload"].as_str().unwrap().ends_with("-aged") {
            assert_eq!(figures["littered_processes"], 2.0, "{one}");
        }
    }
    for silent in ["unproven", "silent", "unsearched", "untimed"] {
        assert_eq!(note(&records, "glibc", silent), "");
    }
    assert!(
        note(&records, "glibc", "sizes").contains("40:7500"),
        "of both processes"
    );
    let calls =
        record(&records, "check", "glibc")["measurement"]["figures"]["malloc_calls"].as_f64();
    assert!((21_500.0..24_000.0).contains(&calls.unwrap()), "{calls:?}");
}

#[test]
fn a_stranger_who_holds_connections_and_plants_files_takes_nothing_from_a_recording() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let worker = format!(
        "#include <stdlib.h>\n#include <unistd.h>\n
        static void work(int count) {{ for (int i = 0; i < count; i++) free(malloc(4321)); }}
        int main(void) {{
            work(10);
            while (access(\"holding\", F_OK)) usleep(1000);
            if (setuid(65533)) return 1;
            work({CALLS});
            return 7;
        }}\n"
    );
    compiled(&place, "worker", &worker);
    let recorder = place.at("libheapmark_recorder.so");
    fs::copy(heapmark::build::RECORDER.find().unwrap(), &recorder).unwrap();
    fs::set_permissions(&recorder, fs::Permissions::from_mode(0o755)).unwrap();
    let own = ["record", "-o", "a.trace", "--", "./worker"];
    let end = beside_a_stranger(&place, &own, |command| {
        command.env("HEAPMARK_RECORDER", &recorder);
    });
    assert_eq!(end.code, Some(7), "{}{}", end.stdout, end.stderr);
    for word in ["unrecorded", "ended early", "evil", "cannot"] {
        assert!(!end.stderr.contains(word), "{}", end.stderr);
    }
    assert_eq!(mallocs(&place.at("a.trace"), 4321), CALLS + 10);
}
