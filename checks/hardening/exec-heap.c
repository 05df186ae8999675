/*
about = "the rights of the memory that blocks lie in"
group = "placement"
source = "W^X"
why = "memory that can be written and run is where an attack ends"
ends = "values"
trials = 1
*/
#include "../harness/misuse.h"

MISUSE {
    char *block = take(size), line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *from, *end, rights[8];
        if (sscanf(line, "%p-%p %7s", (void **)&from, (void **)&end, rights) == 3 && block >= from && block < end)
            NOTE("rights=%.3s", rights);
    }
}
