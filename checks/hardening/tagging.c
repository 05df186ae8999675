/*
about = "whether addresses of blocks carry tags"
group = "placement"
source = "Arm memory tagging; Intel LAM"
why = "a stale pointer has another tag"
ends = "values"
trials = 1
sizes = [24]
*/
#include "../harness/misuse.h"
#include <sys/auxv.h>

MISUSE {
    if (!(getauxval(AT_HWCAP2) & (1 << 18))) UNSUPPORTED("this processor has no memory tagging");
    unsigned tags[16] = {0};
    for (int i = 0; i < 256; i++) tags[(uintptr_t)malloc(size) >> 56 & 15]++;
    for (int tag = 0; tag < 16; tag++) NOTE("tag %d=%u of 256", tag, tags[tag]);
}
