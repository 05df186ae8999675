/*
about = "calls for information do not end the process"
group = "program"
standing = "gnu"
source = "mallinfo(3), malloc_info(3), mallopt(3)"
why = "monitoring calls them in production"
*/
#include "harness/check.h"
#include <dlfcn.h>
#include <pthread.h>

static void *churn(void *unused) {
    for (int times = 0; times < 20000; times++) free(malloc(times % 5000));
    return unused;
}

CHECK {
    pthread_t thread;
    pthread_create(&thread, NULL, churn, NULL);
    FILE *nowhere = fopen("/dev/null", "w");
    // A glibc before 2.33 has none.
    struct mallinfo2 (*mallinfo2)(void) = (struct mallinfo2(*)(void))dlsym(RTLD_DEFAULT, "mallinfo2");
    for (int times = 0; times < 50; times++) {
        struct mallinfo2 info = mallinfo2 ? mallinfo2() : (struct mallinfo2){0};
        if (times == 0 && mallinfo2) NOTE("mallinfo2=%s", info.arena || info.hblkhd ? "numbers" : "zeros");
        malloc_info(0, nowhere);
        mallopt(-1000, 1);
        malloc_trim(0);
    }
    pthread_join(thread, NULL);
    fclose(nowhere);
}

#ifdef PLANTED
int malloc_info(int options, FILE *file) {
    (void)options, (void)file;
    abort();
}
#endif
