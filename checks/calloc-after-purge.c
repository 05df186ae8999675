/*
about = "calloc returns zeros after memory was given back, and in a child"
group = "contents"
standing = "std"
source = "ISO C17, 7.22.3.2; MADV_FREE in madvise(2)"
why = "pages that were given back lazily may still have their bytes"
*/
#include "harness/check.h"
#include <sys/wait.h>

static void zeros(const char *when) {
    for (size_t size = 1000; size <= 16 << 20; size *= 4) {
        unsigned char *block = calloc(1, size);
        size_t place = 0;
        while (place < size && block[place] == 0) place++;
        EXPECT(place == size, "byte %zu of a calloc of %zu bytes %s is %d", place, size, when, block[place]);
        memset(block, 0xa7, size);
        free(block);
    }
}

CHECK {
    for (int round = 0; round < 3; round++) {
        zeros("after frees");
        malloc_trim(0);
        zeros("after malloc_trim");
        usleep(50000);
        zeros("after 50 ms");
        int status = 0;
        pid_t child = fork();
        if (child < 0) UNSUPPORTED("no process");
        if (child == 0) zeros("in a child"), _exit(0);
        waitpid(child, &status, 0);
        EXPECT(status == 0, "the child ended with signal %d, exit code %d", WTERMSIG(status), WEXITSTATUS(status));
    }
}

#ifdef PLANTED
static char *kept;
int malloc_trim(size_t pad) { return (void)pad, kept = __libc_malloc(16 << 20), memset(kept, 0xa7, 16 << 20), 1; }
void *calloc(size_t count, size_t size) {
    char *taken = kept;
    if (!taken || count * size < 1 << 20 || count * size > 16 << 20) return __libc_calloc(count, size);
    kept = NULL;
    return taken;
}
#endif
