/*
about = "after how many calls a freed address returns"
group = "reuse"
source = "DieHarder; scudo's quarantine"
why = "0 is last in, first out: a stale pointer meets the next block; a large number is a quarantine or chance"
ends = "values"
trials = 1
*/
#include "../harness/misuse.h"

MISUSE {
    static char *kept[65536];
    int most = size > 65536 ? 1000 : 65536, pairs = 0, mallocs = 0;
    char *block = malloc(size), *new = NULL;
    for (free(block); pairs < most && (new = malloc(size)) != block; pairs++) free(new);
    NOTE("pairs of malloc and free until it returns=%s%d", pairs == most ? ">= " : "", pairs);
    block = malloc(size);
    for (free(block); mallocs < most && (kept[mallocs] = malloc(size)) != block; mallocs++) {}
    NOTE("mallocs until it returns=%s%d", mallocs == most ? ">= " : "", mallocs);
}
