/* The file is unreachable from here on. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
    free(malloc(8601));
    mkdir("empty", 0700);
    if (chroot("empty"))
        return 1;
    for (int i = 0; i < 400000; i++)
        free(malloc(8602));
    return 0;
}
