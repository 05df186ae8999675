/*
about = "how large a core file with 1 MiB of live blocks is"
group = "environment"
standing = "observe"
source = "core(5); VmFlags dd in proc(5): not dumped"
why = "crash reports are stored and sent"
*/
#include "harness/check.h"

CHECK {
    for (int which = 0; which < 1024; which++) memset(malloc(1024), 1, 1024);
    char line[512];
    long touched = 0, dumped = 0, excluded = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    if (!maps) UNSUPPORTED("no /proc/self/smaps");
    while (fgets(line, sizeof line, maps)) {
        if (strncmp(line, "Anonymous:", 10) == 0) touched = strtol(line + 10, NULL, 10);
        if (strncmp(line, "VmFlags:", 8) == 0) *(strstr(line, " dd") ? &excluded : &dumped) += touched;
    }
    fclose(maps);
    NOTE("dumped=%ld KiB", dumped);
    NOTE("excluded=%ld KiB", excluded);
}

#ifdef PLANTED

#endif
