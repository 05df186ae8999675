/* Looks at the machine as it is loaded: three more calls of the kernel. */
#include "own.h"
#include <fcntl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

__attribute__((constructor)) static void look(void) {
    struct sysinfo machine;
    close(open("/proc/cpuinfo", O_RDONLY));
    sysinfo(&machine);
}
