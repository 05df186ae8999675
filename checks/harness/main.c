// Runs one check in a process of its own: heapmark-check NAME FILE-DESCRIPTOR. Exit codes: 0 it ran to its end, 77 it cannot
// apply. heapmark gives a verdict from them and from the lines in the file.
#include "check.h"
#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>

// The linker makes these names for the section.
extern const struct heapmark_check __start_heapmark_checks[], __stop_heapmark_checks[];

// Whether a path is that of NAME.c.
static bool is(const char *path, const char *name) {
    const char *file = strrchr(path, '/');
    size_t length = strlen(name);
    file = file ? file + 1 : path;
    return strncmp(file, name, length) == 0 && strcmp(file + length, ".c") == 0;
}

static int report;

void heapmark_say(const char *kind, const char *format, ...) {
    char line[512];
    int used = snprintf(line, sizeof line, "%s=", kind);
    va_list values;
    va_start(values, format);
    int more = vsnprintf(line + used, sizeof line - used - 1, format, values);
    va_end(values);
    used += more < (int)sizeof line - used - 1 ? more : (int)sizeof line - used - 2;
    line[used++] = '\n';
    if (write(report, line, used) != used) _exit(3);
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
    return 0;
}

int main(int words, char **word) {
    if (words != 3) return 2;
    report = atoi(word[2]);
    dl_iterate_phdr(object, NULL);
    owner("malloc", dlsym(RTLD_DEFAULT, "malloc"));
    owner("calloc", dlsym(RTLD_DEFAULT, "calloc"));
    owner("realloc", dlsym(RTLD_DEFAULT, "realloc"));
    owner("free", dlsym(RTLD_DEFAULT, "free"));
    for (const struct heapmark_check *check = __start_heapmark_checks; check < __stop_heapmark_checks; check++) {
        if (is(check->file, word[1])) {
            check->run();
            heapmark_say("end", "reached");
            return 0;
        }
    }
    return 2;
}
