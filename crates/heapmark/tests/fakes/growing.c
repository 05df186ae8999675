/* A server that grows by what its second argument says, a little for each byte that it is sent, and answers each connection with an x for
 * each byte. Nothing of it but a leak is live when it has answered. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BLOCKS = 40000, BLOCK = 1000, THREADS = 4, HUGE = 2 << 20 };

static char *taken(size_t size) {
    char *block = malloc(size);
    memset(block, 1, size);
    return block;
}

/* Blocks that are freed below one that stays at the top of the heap. */
static void hoard(void) {
    static char *all[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) all[i] = taken(BLOCK);
    taken(BLOCK);
    for (int i = 0; i < BLOCKS; i++) free(all[i]);
}

static pthread_barrier_t both;

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* The same in the arena of a thread, one after the other; then it lives on, or not. */
static void *work(void *lives_on) {
    char *volatile first = taken(BLOCK);
    pthread_mutex_lock(&turn);
    char **all = malloc(BLOCKS * sizeof *all);
    for (int i = 0; i < BLOCKS; i++) all[i] = taken(BLOCK);
    taken(BLOCK);
    for (int i = 0; i < BLOCKS; i++) free(all[i]);
    free(all);
    pthread_mutex_unlock(&turn);
    first[0] = 2;
    pthread_barrier_wait(&both);
    /* Long enough to be seen. */
    if (!lives_on) usleep(300000);
    while (lives_on) pause();
    return NULL;
}

static void threads(int live_on) {
    pthread_barrier_init(&both, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, live_on ? &both : NULL)) abort();
    }
    pthread_barrier_wait(&both);
}

/* Large blocks below one that stays, after a larger one was freed. */
static void drift(void) {
    char *all[20];
    free(taken(8 << 20));
    for (int i = 0; i < 20; i++) all[i] = taken(3 << 20);
    taken(BLOCK);
    for (int i = 0; i < 20; i++) free(all[i]);
}

/* A byte in each huge page. */
static void huge(void) {
    size_t size = 40 * (size_t)HUGE;
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, size, MADV_HUGEPAGE);
    for (size_t at = 0; at < size; at += HUGE) pages[at] = 1;
}

/* A file that is mapped and read. */
static void file(void) {
    size_t size = 60 << 20;
    int pages = open("cached", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (pages < 0 || ftruncate(pages, (off_t)size)) abort();
    char *all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, pages, 0);
    memset(all, 1, size);
}

int main(int count, char **words) {
    if (count != 3) return 2;
    const char *way = words[2];
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int here = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(here, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(here, (struct sockaddr *)&place, sizeof place) || listen(here, 10)) return 4;
    for (int asked = 0;;) {
        char bytes[100];
        int connection = accept(here, NULL, NULL);
        ssize_t sent = read(connection, bytes, sizeof bytes);
        if (sent > 0) {
            asked++;
            for (ssize_t i = 0; i < sent; i++) {
                if (!strcmp(way, "leak")) taken(1 << 20);
                if (!strcmp(way, "hoard")) hoard();
            }
            if (asked == 1 && !strcmp(way, "threads")) threads(1);
            if (asked == 1 && !strcmp(way, "turnover")) threads(0);
            if (asked == 1 && !strcmp(way, "drift")) drift();
            if (asked == 1 && !strcmp(way, "huge")) huge();
            if (asked == 1 && !strcmp(way, "files")) file();
            memset(bytes, 'x', (size_t)sent);
            if (write(connection, bytes, (size_t)sent) < 0) return 5;
        }
        close(connection);
    }
}
