/* Starts so many threads that each allocate, and adds a line to a file: how many heaps glibc's arenas have, how many arenas jemalloc says
 * that it has (0: it does not serve), and how many CPUs there are by the mask, by the list of those online, by glibc, and in four files. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

static pthread_barrier_t all;

static void *allocates(void *nothing) {
    char *volatile block = malloc(1000);
    block[0] = 1;
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    return nothing;
}

/* Mappings without a file that begin where those of arenas do, and that are reserved, what follows included, for as long. (By chance a
 * stack begins there, too.) */
static int heaps(void) {
    const unsigned long whole = 64 << 20;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[5000];
    unsigned long heap = 0, used = 0;
    int count = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end, inode;
        char can[5];
        if (sscanf(line, "%lx-%lx %4s %*s %*s %lu", &start, &end, can, &inode) != 4) abort();
        count += heap && start == used && end - heap >= whole && !strcmp(can, "---p");
        heap = start % whole == 0 && inode == 0 && !strcmp(can, "rw-p") ? start : 0;
        used = end;
    }
    fclose(maps);
    return count;
}

/* Lines of a file that begin so. */
static int lines(const char *path, const char *start) {
    FILE *file = fopen(path, "r");
    char line[70000];
    int count = 0;
    while (fgets(line, sizeof line, file)) count += !strncmp(line, start, strlen(start));
    fclose(file);
    return count;
}

int main(int count, char **words) {
    int threads = count == 3 ? atoi(words[1]) : 0;
    unsigned arenas = 0, last;
    size_t size = sizeof arenas;
    pthread_barrier_init(&all, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, allocates, NULL)) return 1;
        pthread_detach(thread);
    }
    pthread_barrier_wait(&all);
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 2;
    if (mallctl && mallctl("opt.narenas", &arenas, &size, NULL, 0)) return 3;
    FILE *online = fopen("/sys/devices/system/cpu/online", "r");
    if (!online || fscanf(online, "0-%u", &last) != 1) return 4;
    FILE *seen = fopen(words[2], "a");
    fprintf(seen, "%d %u %d %u %ld %ld %d %d\n", heaps(), arenas, CPU_COUNT(&set), last + 1, sysconf(_SC_NPROCESSORS_ONLN),
            sysconf(_SC_NPROCESSORS_CONF), lines("/proc/stat", "cpu") - 1, lines("/proc/cpuinfo", "processor"));
    fclose(seen);
    /* A file that can be read and nothing else, and one that is not there. */
    if (fopen("/sys/devices/system/cpu/cpu1000/online", "r") || !fopen("/etc/passwd", "r")) return 5;
    pthread_barrier_wait(&all);
    return 0;
}
