/*
about = "how much memory is held after 64 blocks of 4 MiB were freed"
group = "memory"
standing = "observe"
source = "malloc_trim(3), the decay of jemalloc, the purge delay of mimalloc"
why = "buffers of requests, images and frames"
full = true
seconds = 30
*/
#include "harness/check.h"
#include "harness/resident.h"
#include "harness/give_back.h"

CHECK {
    give_back(64, 4 << 20);
}

#ifdef PLANTED

#endif
