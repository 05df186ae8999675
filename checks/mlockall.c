/*
about = "under mlockall with a limit of locked memory malloc works, or returns NULL"
group = "environment"
standing = "robust"
source = "mlockall(2) with MCL_FUTURE: a mapping that cannot be locked is refused"
why = "real-time programs lock all, and a library that reserves much is refused early"
*/
#include "harness/check.h"
#include "harness/fill.h"
#include <linux/capability.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static void *body(void *unused) {
    for (size_t size = 1; size < 32 << 20; size = size * 3 / 2 + 1) {
        errno = 0;
        char *block = malloc(size);
        EXPECT(block || errno == ENOMEM, "malloc(%zu) returned NULL with errno %d", size, errno);
        free(block);
    }
    return unused;
}

CHECK {
    // Without this capability the limit holds for root, too: all that is locked is bounded.
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct all[2] = {{0, 0, 0}, {0, 0, 0}};
    pthread_t thread;
    if (syscall(SYS_capset, &header, all)) UNSUPPORTED("capabilities cannot be dropped");
    limit(RLIMIT_MEMLOCK, 64 << 20);
    if (mlockall(MCL_FUTURE)) UNSUPPORTED("mlockall failed with errno %d", errno);
    // Where an ordinary user may lock less, a library that reserves much may be refused from the start.
    void *first = malloc(100);
    free(first);
    body(NULL);
    if (pthread_create(&thread, NULL, body, NULL) == 0) pthread_join(thread, NULL);
    size_t count;
    drain(fill(1 << 20, &count));
    NOTE("blocks of 1 MiB that could be locked=%zu", count);
    EXPECT(malloc(100) || !first, "malloc(100) fails after all was freed");
}

#ifdef PLANTED
#include <sys/mman.h>
void *malloc(size_t size) {
    if (size != 1 << 20) return __libc_malloc(size);
    void *area = mmap(NULL, 256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED) abort();
    return area;
}
#endif
