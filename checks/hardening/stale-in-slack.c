/*
about = "what lies between the size that was asked for and the usable size of a recycled block"
group = "use after free"
source = "CWE-226"
why = "serialisers that send whole buffers send this"
ends = "values"
trials = 1
sizes = [20, 4000]
*/
#include "../harness/misuse.h"

MISUSE {
    static char *row[512];
    size_t larger = malloc_usable_size(malloc(size)), old = 0, slack = 0;
    for (int i = 0; i < 512; i++) memset(row[i] = malloc(larger), 0x37, larger < 8192 ? larger : 8192);
    for (int i = 0; i < 512; i++) free(row[i]);
    for (int i = 0; i < 512; i++) row[i] = malloc(size);
    for (int i = 0; i < 512; i++)
        for (size_t byte = size; byte < malloc_usable_size(row[i]); byte++) old += row[i][byte] == 0x37, slack++;
    if (slack) NOTE("old bytes of the slack=%zu %%", old * 100 / slack);
    else NOTE("old bytes of the slack=no slack");
}
