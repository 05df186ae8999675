/* Fakes a library that takes less of the processor than it was given: raising a nice value needs no privilege. */
#include <sys/resource.h>

__attribute__((constructor)) static void start(void) { setpriority(PRIO_PROCESS, 0, 7); }
