// Runs one check in a process of its own: heapmark-check NAME FILE-DESCRIPTOR, and further words that some checks need. Exit codes:
// 0 it ran to its end, 77 it cannot apply, 120 it was called wrongly, 121 it could not keep or write what it had to. heapmark
// gives a verdict from them and from the lines in the file.
#include "check.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <sys/stat.h>

// The linker makes these names for the section.
extern const struct heapmark_check __start_heapmark_checks[] __attribute__((weak));
extern const struct heapmark_check __stop_heapmark_checks[] __attribute__((weak));

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

// A function, and the index of the object that serves it.
struct owner {
    uintptr_t function;
    int index, found;
};

// As the guest says it, since one function of heapmark reads both. An allocator may be several libraries: heapmark looks for each.
static int object(struct dl_phdr_info *info, size_t size, void *data) {
    struct owner *owner = data;
    struct stat file;
    (void)size;
    if (!owner->function && stat(info->dlpi_name, &file) == 0)
        heapmark_say("object", "%d %ju %ju - %s", owner->index, (uintmax_t)file.st_dev, (uintmax_t)file.st_ino, info->dlpi_name);
    for (int which = 0; which < info->dlpi_phnum; which++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[which];
        uintptr_t from = info->dlpi_addr + part->p_vaddr, end = from + part->p_memsz;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        if (!owner->function) heapmark_say("code", "%zu %zu %s", from, end, info->dlpi_name);
        if (from <= owner->function && owner->function < end) owner->found = owner->index;
    }
    owner->index++;
    return 0;
}

// If another object than the allocator that was asked for serves a function, nothing else counts.
static void say_owner(const char *name) {
    struct owner owner = {.function = (uintptr_t)dlsym(RTLD_DEFAULT, name), .found = -1};
    dl_iterate_phdr(object, &owner);
    heapmark_say("owner", "%s %d", name, owner.found);
}

static int run(const char *name) {
    for (const struct heapmark_check *check = __start_heapmark_checks; check < __stop_heapmark_checks; check++) {
        if (is(check->file, name)) {
            check->run();
            heapmark_say("end", "reached");
            return 0;
        }
    }
    return 120;
}

int main(int words, char **word) {
    if (words < 3) return 120;
    heapmark_words = word;
    // Far away: checks may close what they have not opened. A process that starts afresh finds the file where it was.
    report = fcntl(atoi(word[2]), F_DUPFD_CLOEXEC, 1000);
    if (report < 0) report = atoi(word[2]);
    // A check may also go on without the allocator, to load it later.
    if (getenv("AGAIN") && !getenv("LD_PRELOAD")) return run(word[1]);
    dl_iterate_phdr(object, &(struct owner){0});
    say_owner("malloc");
    say_owner("calloc");
    say_owner("realloc");
    say_owner("free");
#ifdef WITHOUT_CXX
    UNSUPPORTED("heapmark was built without a compiler of C++");
#endif
    return run(word[1]);
}
