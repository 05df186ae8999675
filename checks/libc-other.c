/*
about = "whether the library can be loaded beside musl, another C library"
group = "environment"
standing = "observe"
source = "users of Alpine Linux"
why = "a library that was built for glibc needs names that musl does not have"
*/
#include "harness/check.h"
#include <sys/wait.h>

CHECK {
    const char *loader = "/lib/ld-musl-x86_64.so.1", *library = getenv("LD_PRELOAD");
    if (access(loader, X_OK)) UNSUPPORTED("musl is not installed");
    if (!library || !*library) UNSUPPORTED("it is the C library itself");
    int status = 0;
    pid_t child = fork();
    // It resolves all names of the library, and ends.
    if (child == 0) unsetenv("LD_PRELOAD"), execl(loader, loader, "--list", library, (char *)NULL), _exit(127);
    waitpid(child, &status, 0);
    NOTE("beside musl=%s", status == 0 ? "all names are found" : "names are missing");
}

#ifdef PLANTED

#endif
