// What glibc 2.17 lacks and objects of this system's g++ and libstdc++ call: floor.sh adds it to what libraries are linked with.
// Hidden, so that none of it is found by another library.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

// Since 2.32. Nobody tells us, so no atomic operation is left out.
char __libc_single_threaded = 0;

// Since 2.25.
ssize_t getrandom(void *buffer, size_t length, unsigned flags) {
    return syscall(SYS_getrandom, buffer, length, flags);
}

// Since 2.25.
int getentropy(void *buffer, size_t length) {
    if (length > 256) {
        errno = EIO;
        return -1;
    }
    for (char *at = buffer; length > 0;) {
        ssize_t got = getrandom(at, length, 0);
        if (got < 0 && errno != EINTR) {
            return -1;
        }
        at += got < 0 ? 0 : got;
        length -= got < 0 ? 0 : got;
    }
    return 0;
}

// Since 2.36. libstdc++ names it; heapmark's libraries draw no such number.
uint32_t arc4random(void) {
    uint32_t number;
    if (getentropy(&number, sizeof number) != 0) {
        abort();
    }
    return number;
}

// Since 2.18. The linker's --wrap leads here; the weak reference is glibc's own function if it has one.
typedef void destructor(void *);
extern int __real___cxa_thread_atexit_impl(destructor *, void *, void *) __attribute__((weak));

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread struct pending {
    destructor *destroy;
    void *object;
} pending[16];
static __thread size_t count;

static void destroy_all(void *unused) {
    (void)unused;
    while (count > 0) {
        struct pending last = pending[--count];
        last.destroy(last.object);
    }
}

static void make_key(void) { pthread_key_create(&key, destroy_all); }

int __wrap___cxa_thread_atexit_impl(destructor *destroy, void *object, void *library) {
    if (__real___cxa_thread_atexit_impl) {
        return __real___cxa_thread_atexit_impl(destroy, object, library);
    }
    pthread_once(&once, make_key);
    if (count == sizeof pending / sizeof *pending) {
        return -1;
    }
    pending[count++] = (struct pending){destroy, object};
    return pthread_setspecific(key, pending);
}
