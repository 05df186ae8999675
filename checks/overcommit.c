/*
about = "how much memory the kernel must be able to provide: at rest, and for 100 MiB that are asked for"
group = "environment"
standing = "observe"
source = "vm.overcommit_memory=2; VmFlags ac in proc(5); hardened_malloc issue 235"
why = "a kernel that never overcommits counts private writable memory, used or not"
*/
#include "harness/check.h"

// KiB of the mappings that count, which are those with the flag ac.
static long commit(void) {
    char line[512];
    long size = 0, all = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    if (!maps) UNSUPPORTED("no /proc/self/smaps");
    while (fgets(line, sizeof line, maps)) {
        if (strncmp(line, "Size:", 5) == 0) size = strtol(line + 5, NULL, 10);
        if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " ac")) all += size;
    }
    fclose(maps);
    return all;
}

CHECK {
    long before = commit();
    NOTE("commit at rest=%ld KiB", before);
    for (int which = 0; which < 1600; which++) malloc(64 << 10);
    NOTE("for 100 MiB in blocks of 64 KiB=%ld MiB", (commit() - before) >> 10);
    before = commit();
    malloc(100 << 20);
    NOTE("for a block of 100 MiB=%ld MiB", (commit() - before) >> 10);
}

#ifdef PLANTED

#endif
