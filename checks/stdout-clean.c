/*
about = "the library writes nothing to standard output and standard error: at its start, as memory runs out, at its end"
group = "environment"
standing = "robust"
source = "jemalloc and tcmalloc print as memory runs out"
why = "the output of a program is the input of another, and its two streams may be a protocol"
*/
#include "harness/check.h"
#include "harness/fill.h"
#include <sys/wait.h>

CHECK {
    if (getenv("AGAIN")) {
        size_t count;
        limit(RLIMIT_DATA, 256 << 20);
        drain(fill(1 << 20, &count));
        exit(0);
    }
    char text[200] = "";
    int ends[2], status = 0;
    if (pipe(ends)) UNSUPPORTED("no pipe");
    pid_t child = fork();
    if (child < 0) UNSUPPORTED("no process");
    if (child == 0) {
        dup2(ends[1], 1), dup2(ends[1], 2);
        AGAIN("with a pipe");
    }
    close(ends[1]);
    size_t has = 0;
    for (ssize_t more; (more = read(ends[0], text + (has < 150 ? has : 150), 49)) > 0;) has += more;
    waitpid(child, &status, 0);
    if (strchr(text, '\n')) *strchr(text, '\n') = 0;
    EXPECT(has == 0, "it wrote %zu bytes: %s", has, text);
    NOTE("end=%s", status ? "not by itself" : "clean");
}

#ifdef PLANTED
void *malloc(size_t size) {
    void *block = __libc_malloc(size);
    if (!block && write(2, "out of memory\n", 14) < 0) abort();
    return block;
}
#endif
