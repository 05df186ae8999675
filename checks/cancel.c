/*
about = "a thread that is to be cancelled is not cancelled inside malloc and free"
group = "threads"
standing = "std"
source = "POSIX.1-2024, 2.9.5.2: malloc is no point of cancellation"
why = "a lock of the allocator would be held for ever"
*/
#include "harness/check.h"
#include <pthread.h>

static volatile size_t reached;

static void *body(void *unused) {
    static void *blocks[40];
    pthread_cancel(pthread_self());
    for (size_t size = 1, count = 0; size <= 8 << 20; size = size * 3 / 2 + 1, count++) {
        void **place = &blocks[count % 40];
        reached = size;
        free(*place);
        *place = count % 3 ? malloc(size) : calloc(size, 1);
        *place = realloc(*place, size + 5000);
        void *aligned;
        if (posix_memalign(&aligned, 4096, size) == 0) free(aligned);
    }
    reached = 0;
    pthread_testcancel();
    return unused;
}

CHECK {
    for (int times = 0; times < 5; times++) {
        pthread_t thread;
        void *ended = NULL;
        if (pthread_create(&thread, NULL, body, NULL)) UNSUPPORTED("no thread");
        pthread_join(thread, &ended);
        EXPECT(reached == 0, "the thread was cancelled in one of the calls for %zu bytes", reached);
        EXPECT(ended == PTHREAD_CANCELED, "the thread was not cancelled at all");
    }
}

#ifdef PLANTED
#include <fcntl.h>
void *malloc(size_t size) {
    if (size > 100000) close(open("/dev/null", O_RDONLY));
    return __libc_malloc(size);
}
#endif
