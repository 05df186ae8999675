/* Programs whose memory depends on what they write, on the thread that they run on, or on how they set up glibc's heap.

     heap written KIB    blocks of that size, all written
     heap zeroed BYTES   the same by calloc
     heap pairs          two large blocks again and again, by the main thread
     heap worker         the same, by a thread beside it
     heap kept           the same, after glibc has been told to keep what is freed
     heap load           blocks of which nearly all are freed
     heap trimmed        the same, then malloc_trim
     heap leaves         blocks of which none is freed, and an end without `exit` */
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 1500, SMALL = 60000, PAIRS = 2000 };

static char *block[SMALL];

static void *fill(size_t bytes, void *(*make)(size_t, size_t)) {
    for (int i = 0; i < BLOCKS; i++) memset(block[i] = make(1, bytes), 1, bytes);
    for (int i = 0; i < 5 * BLOCKS; i++) {
        int at = i * 7919 % BLOCKS;
        free(block[at]);
        memset(block[at] = make(1, bytes), 1, bytes);
    }
    return 0;
}

static void *by_malloc(size_t count, size_t bytes) { return malloc(count * bytes); }

static void *pairs(void *unused) {
    for (int i = 0; i < PAIRS; i++) {
        char *one = malloc(100 << 10), *two = malloc(200 << 10);
        memset(one, 1, 100 << 10);
        memset(two, 1, 200 << 10);
        free(one);
        free(two);
    }
    return unused;
}

static void load(void) {
    for (int i = 0; i < SMALL; i++) memset(block[i] = malloc(500), 1, 500);
    for (int i = 0; i < SMALL; i++)
        if (i % 500) free(block[i]);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    size_t size = count > 2 ? strtoul(words[2], NULL, 10) : 0;
    if (!strcmp(what, "written")) fill(size << 10, by_malloc);
    if (!strcmp(what, "zeroed")) fill(size, calloc);
    if (!strcmp(what, "pairs")) pairs(NULL);
    if (!strcmp(what, "worker")) {
        pthread_t thread;
        return pthread_create(&thread, NULL, pairs, NULL) || pthread_join(thread, NULL);
    }
    if (!strcmp(what, "kept")) {
        mallopt(M_MMAP_THRESHOLD, 32 << 20);
        mallopt(M_TRIM_THRESHOLD, 1 << 30);
        mallopt(M_TOP_PAD, 16 << 20);
        pairs(NULL);
    }
    if (!strcmp(what, "load") || !strcmp(what, "trimmed")) load();
    if (!strcmp(what, "trimmed")) malloc_trim(0);
    if (!strcmp(what, "leaves")) {
        fill(40 << 10, by_malloc);
        _exit(0);
    }
    return 0;
}
