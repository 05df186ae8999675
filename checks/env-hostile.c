/*
about = "rubbish in the variables of allocators, also 20 KB of it, ends no process"
group = "environment"
standing = "robust"
source = "CVE-2023-4911 (glibc's tunables); each allocator's documents"
why = "a variable that was meant for another version or another library"
*/
#include "harness/check.h"
#include "harness/traffic.h"
#include <sys/wait.h>

CHECK {
    const char *names[] = {"GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "MALLOC_CHECK_", "MALLOC_CONF", "_RJEM_MALLOC_CONF", "JE_MALLOC_CONF",
                           "TCMALLOC_SAMPLE_PARAMETER", "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", "TCMALLOC_RELEASE_RATE",
                           "MIMALLOC_ARENA_RESERVE", "MIMALLOC_PURGE_DELAY", "MIMALLOC_RESERVE_HUGE_OS_PAGES", "MIMALLOC_VERBOSE",
                           "SCUDO_OPTIONS", "GWP_ASAN_OPTIONS", "SNMALLOC_OPTIONS", "TBB_MALLOC_USE_HUGE_PAGES", "RPMALLOC_OPTIONS"};
    const char *rubbish[] = {"", "x", "=,:;%n%s", "-1", "99999999999999999999", "glibc.malloc.arena_max=-1:a=b", "LONG"};
    if (getenv("AGAIN")) _exit(traffic());
    char *text = memset(calloc(1, 20001), 'A', 20000);
    for (int which = 0; which < 7; which++) {
        int status = 0;
        pid_t child = fork();
        if (child < 0) UNSUPPORTED("no process");
        for (size_t name = 0; child == 0 && name < sizeof names / sizeof *names; name++)
            setenv(names[name], which == 6 ? text : rubbish[which], 1);
        if (child == 0) AGAIN("with rubbish");
        waitpid(child, &status, 0);
        EXPECT(status == 0, "with all variables \"%s\" a process ended with signal %d, exit code %d", rubbish[which], WTERMSIG(status), WEXITSTATUS(status));
    }
}

#ifdef PLANTED
__attribute__((constructor)) static void start(void) {
    char name[64];
    if (getenv("MALLOC_CONF")) strcpy(name, getenv("MALLOC_CONF"));
    if (getenv("MALLOC_CONF") && atoi(name) < 0) abort();
}
#endif
