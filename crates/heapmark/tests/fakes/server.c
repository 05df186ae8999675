/* A server that answers each connection with as many x as it was sent bytes, and does in between what its second argument says. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void allocate(int times) {
    for (int i = 0; i < times; i++) free(malloc(100));
}

/* Uses CPU time, and no memory. */
static void spin(long ms) {
    struct timespec now;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
}

static long used_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void answer(int connection, size_t bytes) {
    char letters[100];
    memset(letters, 'x', bytes);
    if (write(connection, letters, bytes) < 0) _exit(1);
}

/* Answers with less if it has no 8 MiB for each byte. */
static size_t in_room(size_t bytes) {
    char *room = malloc(bytes << 23);
    if (!room) return 1;
    memset(room, 1, bytes << 23);
    free(room);
    return bytes;
}

static void crash(int signal) {
    (void)signal;
    abort();
}

int main(int count, char **words) {
    if (count != 3) return 2;
    int (*is)(const char *, const char *) = strcmp;
    const char *way = words[2];
    if (!is(way, "allocates-at-start")) allocate(1000000);
    if (!is(way, "starts-programs") && system("./still")) return 3;
    if (!is(way, "crashes-at-its-end")) signal(SIGTERM, crash);
    if (!is(way, "goes-to-the-background") && daemon(1, 0)) return 3;

    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int here = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(here, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(here, (struct sockaddr *)&place, sizeof place) || listen(here, 10)) return 4;
    for (int asked = 0;; wait(NULL)) {
        char bytes[100];
        int connection = accept(here, NULL, NULL);
        ssize_t count = read(connection, bytes, sizeof bytes);
        // A client that sends nothing only tests whether the server is there.
        if (count > 0) {
            if (!is(way, "ends-with-its-client") && ++asked == 20) return 0;
            if (!is(way, "allocates-at-start")) spin(used_ms() + 5);
            if (!is(way, "allocates-when-asked")) allocate(100000);
            if (!is(way, "starts-programs") && system("env -u LD_PRELOAD /bin/true")) return 5;
            if (!is(way, "needs-room")) count = (ssize_t)in_room((size_t)count);
            if (is(way, "forks")) {
                answer(connection, (size_t)count);
            } else if (fork() == 0) {
                allocate(10000);
                spin(20);
                answer(connection, (size_t)count);
                _exit(0);
            }
        }
        close(connection);
    }
}
