// Runs one check in a process of its own: heapmark-check NAME FILE-DESCRIPTOR, and of hardening, misuse.c's words. Exit codes:
// 0 it ran to its end, 77 it cannot apply, 120 it was called wrongly, 121 it could not keep or write what it had to. heapmark
// gives a verdict from them and from the lines in the file.
#include "check.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <sys/mman.h>

// The linker makes these names for the sections; those in C++ have a program without the second one.
extern const struct heapmark_check __start_heapmark_checks[] __attribute__((weak));
extern const struct heapmark_check __stop_heapmark_checks[] __attribute__((weak));
extern const struct heapmark_check __start_heapmark_misuses[] __attribute__((weak));
extern const struct heapmark_check __stop_heapmark_misuses[] __attribute__((weak));

__attribute__((weak)) void heapmark_misuse(void (*body)(void), volatile uint64_t *page, char **words);

// Whether a path is that of NAME.c or NAME.cc.
static bool is(const char *path, const char *name) {
    const char *file = strrchr(path, '/');
    size_t length = strlen(name);
    file = file ? file + 1 : path;
    return strncmp(file, name, length) == 0 && strncmp(file + length, ".c", 2) == 0;
}

static int report;
char **heapmark_words;

void heapmark_say(const char *kind, const char *format, ...) {
    char line[512];
    int used = snprintf(line, sizeof line, "%s=", kind);
    va_list values;
    va_start(values, format);
    int more = vsnprintf(line + used, sizeof line - used - 1, format, values);
    va_end(values);
    used += more < (int)sizeof line - used - 1 ? more : (int)sizeof line - used - 2;
    line[used++] = '\n';
    if (write(report, line, used) != used) _exit(121);
}

// The object that serves a function: if it is not the allocator that was asked for, nothing else counts.
static void owner(const char *name, void *function) {
    Dl_info where;
    heapmark_say("owner", "%s %s", name, dladdr(function, &where) ? where.dli_fname : "?");
}

// An allocator may be several libraries: heapmark looks for each of them.
static int object(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (info->dlpi_name[0] == '/') heapmark_say("object", "%s", info->dlpi_name);
    for (int which = 0; which < info->dlpi_phnum; which++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[which];
        uintptr_t from = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && part->p_flags & PF_X)
            heapmark_say("code", "%zu %zu %s", from, from + part->p_memsz, info->dlpi_name);
    }
    return 0;
}

static int run(const char *name, char **misuse) {
    for (const struct heapmark_check *check = __start_heapmark_checks; check < __stop_heapmark_checks; check++) {
        if (is(check->file, name)) {
            check->run();
            heapmark_say("end", "reached");
            return 0;
        }
    }
    for (const struct heapmark_check *check = __start_heapmark_misuses; check < __stop_heapmark_misuses; check++) {
        if (!misuse || !is(check->file, name)) continue;
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(misuse[0]), 0);
        if (page == MAP_FAILED) return 121;
        heapmark_misuse(check->run, page, &misuse[1]);
    }
    return 120;
}

int main(int words, char **word) {
    if (words != 3 && words != 8) return 120;
    char **misuse = words == 8 ? &word[3] : NULL;
    heapmark_words = word;
    // Far away: checks may close what they have not opened. A process that starts afresh finds the file where it was.
    report = fcntl(atoi(word[2]), F_DUPFD_CLOEXEC, 1000);
    if (report < 0) report = atoi(word[2]);
    // A check may also go on without the allocator, to load it later.
    if (getenv("AGAIN") && !getenv("LD_PRELOAD")) return run(word[1], misuse);
    dl_iterate_phdr(object, NULL);
    owner("malloc", dlsym(RTLD_DEFAULT, "malloc"));
    owner("calloc", dlsym(RTLD_DEFAULT, "calloc"));
    owner("realloc", dlsym(RTLD_DEFAULT, "realloc"));
    owner("free", dlsym(RTLD_DEFAULT, "free"));
#ifdef WITHOUT_CXX
    UNSUPPORTED("heapmark was built without a compiler of C++");
#endif
    return run(word[1], misuse);
}
