/*
about = "how much memory is held after 200000 blocks of 1 KiB were freed, and no block above them lives"
group = "memory"
standing = "observe"
source = "malloc_trim(3), the decay of jemalloc, the purge delay of mimalloc"
why = "servers that have had a peak"
full = true
seconds = 30
*/
#include "harness/check.h"
#include "harness/resident.h"
#include "harness/give_back.h"

CHECK {
    give_back(200000, 1 << 10);
}

#ifdef PLANTED

#endif
