/*
about = "whether the library can be loaded by dlopen beside 400 running threads"
group = "program"
standing = "observe"
source = "the room for static thread-local storage, jemalloc --disable-initial-exec-tls"
why = "plug-ins that bring their own allocator"
full = true
*/
#include "harness/check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static void *(*take)(size_t);
static void (*give)(void *);
static pthread_barrier_t all;

static void *body(void *unused) {
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    for (size_t size = 1; take && size < 5000; size = size * 2 + 1) give(memset(take(size), 1, size));
    return unused;
}

CHECK {
    char *path = getenv("AGAIN"), *preloaded = getenv("LD_PRELOAD");
    if (!path) unsetenv("LD_PRELOAD");
    if (!path) AGAIN(preloaded && *preloaded ? strtok(preloaded, " :") : "libc.so.6");
    pthread_t threads[400];
    pthread_barrier_init(&all, NULL, 401);
    for (int which = 0; which < 400; which++)
        if (pthread_create(&threads[which], NULL, body, NULL)) UNSUPPORTED("%d threads, and no more", which);
    pthread_barrier_wait(&all);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = library ? "loaded" : strrchr(dlerror(), ':');
    if (library) take = dlsym(library, "malloc"), give = dlsym(library, "free");
    NOTE("dlopen beside 400 threads=%s", why ? why : "refused");
    pthread_barrier_wait(&all);
    for (int which = 0; which < 400; which++) pthread_join(threads[which], NULL);
    NOTE("400 threads=%s", library ? "use it" : "cannot use it");
}

#ifdef PLANTED

#endif
