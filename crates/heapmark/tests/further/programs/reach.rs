//! How much of a command an allocator reaches, on programs that take their memory elsewhere: what is
//! not reached is said, by `try` and by `record`.

use crate::support::tried::{note, run};
use crate::support::{End, Place, words};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Compiles a file; `how` are the compiler and its flags.
fn build(place: &Place, name: &str, source: &str, how: &[&str]) {
    let file = place.at(&format!("{name}.source"));
    fs::write(&file, source).unwrap();
    let language = if how[0] == "c++" { "c++" } else { "c" };
    let mut compiler = Command::new(how[0]);
    compiler
        .args(["-O1", "-fno-builtin", "-x", language])
        .arg(&file);
    compiler
        .args(["-x", "none"])
        .args(&how[1..])
        .arg("-o")
        .arg(place.at(name));
    let end = compiler.current_dir(place.at(".")).output().unwrap();
    assert!(
        end.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&end.stderr)
    );
}

/// Tries a program under glibc.
fn tried(place: &Place, command: &[&str]) -> (End, Vec<Value>) {
    let (end, records) = run(place, &[&["-a", "glibc", "--"], command].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    (end, records)
}

fn says(end: &End, what: &str) {
    let told = words(&format!("{}{}", end.stdout, end.stderr));
    assert!(told.contains(what), "no {what} in {told}");
}

/// A program that opens a library and has it work. A thousand blocks cross the border if it gets the word `mix`. With another
/// word it lives until `record`, which looks at least once a second, has seen it.
const OPENS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    int mixes = words[1] && !strcmp(words[1], "mix");
    void *opened = dlopen("./libwork.so", RTLD_NOW | FLAGS);
    void (*work)(long) = (void (*)(long))dlsym(opened, "work");
    void *(*make)(void) = (void *(*)(void))dlsym(opened, "make");
    for (int i = 0; mixes && i < 1000; i++) free(make());
    work(1000000);
    if (count > 1 && !mixes) sleep(2);
    return count < 1;
}
"#;

const WORK: &str = r#"
#include <stdlib.h>
static void *held[64];
void *make(void) { return malloc(100); }
void work(long times) {
    for (long i = 0; i < times; i++) {
        free(held[i % 64]);
        held[i % 64] = malloc(1 + i % 500);
    }
}
"#;

/// Memory of its own, and it ends a process that frees what it did not give, or says another size.
const STRICT: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char room[256 << 20] __attribute__((aligned(16)));
static size_t at;
static void fail(const char *why) { if (write(2, why, strlen(why)) > 0) abort(); }
void *malloc(size_t size) {
    size_t *block = (size_t *)(room + __atomic_fetch_add(&at, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED));
    *block = size;
    return block + 2;
}
void free(void *block) {
    if (block && ((char *)block < room || (char *)block >= room + sizeof room)) fail("not mine\nNOTE: see above\n");
}
void _ZdlPvm(void *block, size_t size) {
    if (block && ((size_t *)block)[-2] != size) fail("wrong size\nNOTE: see above\n");
}
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *old, size_t size) {
    void *block = malloc(size);
    if (old) memcpy(block, old, ((size_t *)old)[-2] < size ? ((size_t *)old)[-2] : size);
    return block;
}
void *memalign(size_t align, size_t size) { return align <= 16 ? malloc(size) : NULL; }
void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }
int posix_memalign(void **block, size_t align, size_t size) { return !(*block = memalign(align, size)); }
"#;

fn with_plugin(place: &Place, flags: &str) {
    build(place, "libwork.so", WORK, &["cc", "-shared", "-fPIC"]);
    let flags = format!("-DFLAGS={flags}");
    build(place, "opens", OPENS, &["cc", &flags, "-ldl"]);
}

#[test]
fn a_library_that_is_opened_with_deepbind_is_named_by_try_and_record() {
    let place = Place::new();
    with_plugin(&place, "RTLD_DEEPBIND");
    let (end, records) = tried(&place, &["./opens"]);
    says(
        &end,
        "No row's allocator reaches all of it: it does not serve ",
    );
    let beyond = note(&records, "glibc", "beyond");
    assert!(
        beyond.contains("libwork.so in ") && beyond.contains("RTLD_DEEPBIND"),
        "{beyond}"
    );
    let end = place.run(&["record", "./opens", "stay"]);
    says(&end, "ran unrecorded: ");
    says(&end, "libwork.so in ");

    with_plugin(&place, "0");
    let (end, records) = tried(&place, &["./opens"]);
    assert_eq!(note(&records, "glibc", "beyond"), "", "{}", end.stdout);
    let end = place.run(&["record", "--force", "./opens"]);
    assert!(!end.stderr.contains("unrecorded"), "{}", end.stderr);
}

#[test]
fn blocks_that_cross_between_two_heaps_stand_beside_the_crash_with_the_line_that_says_why() {
    let place = Place::new();
    with_plugin(&place, "RTLD_DEEPBIND");
    build(&place, "libstrict.so", STRICT, &["cc", "-shared", "-fPIC"]);
    let both = format!("glibc,strict={}", place.text("libstrict.so"));
    let (end, _) = run(&place, &["-a", &both, "--", "./opens", "mix"]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    says(
        &end,
        "SIGABRT in phase run. The program frees blocks that its malloc did not give: they cross between ",
    );
    says(&end, "libwork.so and the rest of the program");
    says(&end, "stderr: not mine");
    // Without a crossing nothing crashes, and nothing is blamed.
    let (end, _) = run(&place, &["-a", &both, "--", "./opens"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(!end.says("frees blocks"), "{}", end.stdout);
}

#[test]
fn deletes_of_another_size_are_counted_and_stand_beside_the_crash() {
    let place = Place::new();
    let source = r#"
struct Plain { long number; ~Plain() {} };
struct More : Plain { char text[150]; };
int main(int count, char **) {
    for (int i = 0; i < 5000; i++) {
        Plain *one = count > 1 ? new Plain : new More;
        one->number = i;
        delete one;
    }
}
"#;
    build(
        &place,
        "deletes",
        source,
        &["c++", "-std=c++17", "-fsized-deallocation", "-O0"],
    );
    build(&place, "libstrict.so", STRICT, &["cc", "-shared", "-fPIC"]);
    let both = format!("glibc,strict={}", place.text("libstrict.so"));
    let (end, records) = run(&place, &["-a", &both, "--", "./deletes"]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    says(
        &end,
        "deletes blocks with another size than they have, 5000 times",
    );
    says(&end, "stderr: wrong size");
    let check = crate::support::home::record(&records, "check", "glibc");
    assert_eq!(
        check["measurement"]["figures"]["deletes_of_other_size"],
        5000.0
    );
    let (end, _) = run(&place, &["-a", &both, "--", "./deletes", "rightly"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

/// 64 MiB by mmap and not a call of malloc but by the C library.
const MAPS: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(void) {
    size_t bytes = 64 << 20;
    char *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < bytes; i += 4096) room[i] = 1;
    free(malloc(100));
    return 0;
}
"#;

#[test]
fn memory_that_is_not_mallocs_is_said_above_the_table_and_few_calls_are_counted() {
    let place = Place::new();
    build(&place, "maps", MAPS, &["cc"]);
    let (end, records) = tried(&place, &["./maps"]);
    says(&end, "of its 64.0 MiB of memory come from malloc");
    says(
        &end,
        "less than 0.1 % of its CPU time under glibc, in 2 calls in all",
    );
    let figures =
        &crate::support::home::record(&records, "check", "glibc")["measurement"]["figures"];
    assert_eq!(figures["malloc_calls"], 2.0, "{figures}");
    let place_of = |words: &str| end.stdout.find(words).unwrap();
    assert!(place_of("No row's") < place_of("verdict"), "{}", end.stdout);
    // The same bytes from malloc.
    let source = MAPS.replace(
        "= mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)",
        "= malloc(bytes)",
    );
    build(&place, "mallocs", &source, &["cc"]);
    let (end, _) = tried(&place, &["./mallocs"]);
    says(&end, "memory from malloc: at most 64.0 MiB of 64.0 MiB");
    assert!(!end.says("No row's"), "{}", end.stdout);
}

#[test]
fn memory_below_64_mib_that_is_not_mallocs_is_said_by_record_too() {
    let place = Place::new();
    build(
        &place,
        "maps",
        &MAPS.replace("64 << 20", "8 << 20"),
        &["cc"],
    );
    let end = place.run(&["record", "./maps"]);
    says(&end, "in memory came from malloc");
}

#[test]
fn a_malloc_that_only_the_program_sees_is_said_before_it_runs() {
    let place = Place::new();
    let source = "static char room[1 << 16];\n\
        __attribute__((noinline)) static void *malloc(unsigned long n) { room[n] = 1; return room + n; }\n\
        int main(int count, char **words) { return malloc(count) == words; }\n";
    build(&place, "hides", source, &["cc"]);
    let (end, _) = tried(&place, &["./hides"]);
    says(&end, "hides has a malloc of its own inside");
    let end = place.run(&["record", "./hides"]);
    says(&end, "hides has a malloc of its own inside");
}

#[test]
fn a_tree_in_which_one_program_has_its_own_malloc_is_measured() {
    let place = Place::new();
    let own = "#include <stddef.h>\nstatic char room[1 << 20];\nstatic size_t at;\n\
        void *malloc(size_t n) { void *block = room + at; at += (n + 15) & ~15ul; return block; }\n\
        void free(void *block) { (void)block; }\n\
        void *calloc(size_t count, size_t n) { return malloc(count * n); }\n\
        void *realloc(void *old, size_t n) { return old ? NULL : malloc(n); }\n\
        int main(void) { return !malloc(100); }\n";
    build(&place, "owns", own, &["cc"]);
    let (end, _) = tried(&place, &["/bin/sh", "-c", "./owns; /bin/true"]);
    says(
        &end,
        "out of reach of any allocator, and the same in every row: ",
    );
    says(&end, "owns (it defines a malloc of its own)");
}

/// A library that counts what it passes on.
const PASSES: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
long passed;
void *malloc(size_t size) {
    static void *(*next)(size_t);
    if (!next) next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    passed++;
    return next(size);
}
"#;

#[test]
fn it_is_what_a_library_defines_that_makes_it_an_allocator_and_not_its_name() {
    let place = Place::new();
    let flags = ["cc", "-L.", "-Wl,-rpath,$ORIGIN"];
    build(
        &place,
        "libmine.so",
        PASSES,
        &["cc", "-shared", "-fPIC", "-ldl"],
    );
    let program = "#include <stdlib.h>\nextern long passed;\n\
        int main(void) { free(malloc(100)); return passed < 0; }\n";
    build(
        &place,
        "counts",
        program,
        &[&flags[..], &["-lmine"]].concat(),
    );
    let (end, _) = run(&place, &["-a", "own,glibc", "--", "./counts"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    says(
        &end,
        "libmine.so. An allocator that is preloaded comes before it",
    );
    // In a tree the way out is named.
    let (end, _) = run(
        &place,
        &["-a", "glibc", "--", "/bin/sh", "-c", "./counts; exit 0"],
    );
    assert_eq!(end.code, Some(1), "{}{}", end.stdout, end.stderr);
    says(&end, "libmine.so, not by the C library in ");
    says(&end, "--baseline mimalloc3");
    // A collector of that name that maps its memory.
    let collector = "void *GC_malloc(unsigned long size) { return (void *)size; }\n";
    build(&place, "libgc.so.1", collector, &["cc", "-shared", "-fPIC"]);
    let program = "void *GC_malloc(unsigned long);\nint main(void) { return !GC_malloc(1); }\n";
    build(
        &place,
        "collects",
        program,
        &[&flags[..], &["-l:libgc.so.1"]].concat(),
    );
    let (end, _) = tried(&place, &["./collects"]);
    assert!(!end.stderr.contains("is linked to"), "{}", end.stderr);
    // One that only a library needs comes after the C library, which serves.
    build(
        &place,
        "libuses.so",
        "int uses(void) { return 0; }\n",
        &[
            "cc",
            "-shared",
            "-fPIC",
            "-Wl,--no-as-needed",
            "-L.",
            "-lmine",
            "-Wl,-rpath,$ORIGIN",
        ],
    );
    let program = "int uses(void);\nint main(void) { return uses(); }\n";
    build(
        &place,
        "loads",
        program,
        &[&flags[..], &["-luses"]].concat(),
    );
    let (end, _) = tried(&place, &["./loads"]);
    says(&end, "libmine.so, which defines malloc but serves nothing");
}

#[test]
fn functions_with_symbol_versions_serve_nothing_and_that_is_the_reason() {
    let place = Place::new();
    fs::write(
        place.at("map"),
        "OWN_1 { global: malloc; free; calloc; realloc; local: *; };\n",
    )
    .unwrap();
    build(
        &place,
        "libversions.so",
        STRICT,
        &["cc", "-shared", "-fPIC", "-Wl,--version-script=map"],
    );
    let both = format!("glibc,versions={}", place.text("libversions.so"));
    for command in [
        &[
            "try",
            "-o",
            "run",
            "--blocks",
            "1",
            "-a",
            &both,
            "--",
            "/bin/true",
        ][..],
        &[
            "run",
            "-o",
            "guest",
            "-w",
            "same-thread",
            "-t",
            "1",
            "--blocks",
            "1",
            "-a",
            &both,
        ],
    ] {
        let end = place.run(command);
        assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
        says(&end, "not-loaded 1 of 1: malloc is served by /");
        says(
            &end,
            "and so is all else that the library exports: programs ask for other versions of these symbols",
        );
    }
}
