/* Looks for more files of the kernel as it is loaded than are kept by name. */
#include "own.h"
#include <fcntl.h>
#include <stdio.h>

__attribute__((constructor)) static void look(void) {
    char path[64];
    for (int number = 0; number < 130; number++) {
        snprintf(path, sizeof path, "/proc/self/none-%d", number);
        open(path, O_RDONLY);
    }
}
