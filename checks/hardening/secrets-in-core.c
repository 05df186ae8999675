/*
about = "whether blocks are left out of core files and wiped on fork"
group = "fork"
source = "MADV_DONTDUMP, MADV_WIPEONFORK"
why = "core files are sent to others"
ends = "values"
trials = 1
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = take(size), line[512];
    bool is_here = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *from, *end;
        if (sscanf(line, "%p-%p", (void **)&from, (void **)&end) == 2) is_here = block >= from && block < end;
        if (!is_here || strncmp(line, "VmFlags:", 8) != 0) continue;
        NOTE("in core files=%s", strstr(line, " dd") ? "no" : "yes");
        NOTE("wiped on fork=%s", strstr(line, " wf") ? "yes" : "no");
    }
}
