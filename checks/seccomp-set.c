/*
about = "the library works if system calls that it could do without are refused"
group = "environment"
standing = "robust"
source = "tcmalloc issue 81, gperftools issue 1275, jemalloc issue 430, firecracker issue 982"
why = "sandboxes allow the usual calls: mmap, munmap, brk, madvise, mprotect, mremap, futex"
full = true
*/
#include "harness/check.h"
#include "harness/forbid.h"
#include "harness/traffic.h"
#include <pthread.h>
#include <sys/wait.h>

static void *body(void *unused) {
    for (size_t size = 1; size < 32 << 20; size = size * 2 + 1) free(memset(malloc(size), 1, size < 16 ? size : 16));
    return unused;
}

CHECK {
    static const struct { int call; const char *name; } calls[] = {
        {SYS_getrandom, "getrandom"}, {SYS_sched_getaffinity, "sched_getaffinity"}, {SYS_sched_yield, "sched_yield"},
        {SYS_getcpu, "getcpu"}, {SYS_gettid, "gettid"}, {SYS_getpid, "getpid"}, {SYS_membarrier, "membarrier"},
        {SYS_sysinfo, "sysinfo"}, {SYS_uname, "uname"}, {SYS_prctl, "prctl"}, {SYS_mincore, "mincore"}, {SYS_msync, "msync"},
        {SYS_rt_sigaction, "rt_sigaction"}, {SYS_sigaltstack, "sigaltstack"}, {SYS_clock_gettime, "clock_gettime"},
        {SYS_nanosleep, "nanosleep"}, {SYS_readlinkat, "readlinkat"}, {SYS_rseq, "rseq"}, {SYS_pkey_alloc, "pkey_alloc"},
        {SYS_memfd_create, "memfd_create"}, {SYS_getrusage, "getrusage"}, {SYS_prlimit64, "prlimit64"}, {SYS_mremap, "mremap"}};
    char *again = getenv("AGAIN");
    pthread_t thread;
    if (again) _exit(pthread_create(&thread, NULL, body, NULL) ? 1 : (body(NULL), pthread_join(thread, NULL), traffic()));
    for (size_t which = 0; which < sizeof calls / sizeof *calls; which++) {
        int status = 0;
        pid_t child = fork();
        if (child < 0) UNSUPPORTED("no process");
        if (child == 0) forbid(calls[which].call, EPERM), AGAIN("under the filter");
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) == 77) UNSUPPORTED("system calls cannot be filtered here");
        EXPECT(status == 0, "without %s a process ended with signal %d, exit code %d", calls[which].name, WTERMSIG(status), WEXITSTATUS(status));
    }
}

#ifdef PLANTED
#include <sys/syscall.h>
__attribute__((constructor)) static void start(void) {
    if (syscall(SYS_getcpu, NULL, NULL, NULL) < 0) abort();
}
#endif
