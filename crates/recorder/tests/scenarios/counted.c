/* Counts its calls in a file as it goes. The argument decides how it ends: at once, or never. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **words) {
    int file = open("count", O_RDWR | O_CREAT, 0600);
    if (count < 2 || ftruncate(file, 8))
        return 1;
    volatile long *done = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    long most = atol(words[1]);
    while (most == 0 || *done < most) {
        free(malloc(9001));
        *done += 1;
    }
    _exit(0);
}
