/*
about = "where the next block lies, relative to the last one"
group = "placement"
source = "DieHarder; SlimGuard; Guarder"
why = "the bits that an attacker must guess to hit a neighbour"
ends = "values"
trials = 200
full = true
gather = "entropy"
sizes = [24, 4000]
*/
#include "../harness/misuse.h"

MISUSE {
    char *last = NULL, *next = NULL;
    for (int i = 0; i < 1000; i++) last = malloc(size);
    next = malloc(size);
    SAMPLE("%td", next - last);
}
