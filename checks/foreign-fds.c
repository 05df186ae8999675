/*
about = "a program may close all files that it has not opened, and the library uses none of the numbers"
group = "environment"
standing = "robust"
source = "close_range(2), as daemons and shells call it"
why = "a library that keeps a descriptor then reads or writes a file of the program"
*/
#include "harness/check.h"
#include "harness/traffic.h"
#include <pthread.h>
#include <sys/mman.h>

static void *body(void *unused) {
    for (size_t size = 1; size < 32 << 20; size = size * 2 + 1) free(malloc(size));
    return unused;
}

CHECK {
    if (sysconf(_SC_OPEN_MAX) <= 1000) UNSUPPORTED("no more than 1000 files may be open");
    int own = memfd_create("own", 0);
    if (own < 0) UNSUPPORTED("no memory files");
    body(NULL);
    // Each number below 900 is now the program's own file, of 5 bytes, at its begin.
    for (int file = 3; file < 900; file++)
        if (file != own) dup2(own, file);
    if (write(own, "hello", 5) != 5 || lseek(own, 0, SEEK_SET)) UNSUPPORTED("a memory file cannot be written");
    for (int times = 0; times < 20; times++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, body, NULL)) UNSUPPORTED("no thread");
        pthread_join(thread, NULL);
    }
    EXPECT(traffic() == 0, "malloc failed");
    malloc_trim(0);
    for (int file = 3; file < 900; file++) EXPECT(lseek(file, 0, SEEK_CUR) == 0, "file %d of the program was used or closed", file);
    EXPECT(lseek(own, 0, SEEK_END) == 5, "a file of the program was written to");
}

#ifdef PLANTED
#include <fcntl.h>
static int random_file;
__attribute__((constructor)) static void start(void) { random_file = open("/dev/urandom", O_RDONLY); }
void *malloc(size_t size) {
    char byte;
    if (size == 1 << 20 && read(random_file, &byte, 1) < 0) abort();
    return __libc_malloc(size);
}
#endif
