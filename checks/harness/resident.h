#include <fcntl.h>
// Bytes in memory, read without a buffer on the heap.
static size_t resident(void) {
    char text[64] = " ";
    int file = open("/proc/self/statm", O_RDONLY);
    if (read(file, text, sizeof text - 1) < 0) return 0;
    close(file);
    return strtoul(strchr(text, ' '), NULL, 10) * getpagesize();
}
