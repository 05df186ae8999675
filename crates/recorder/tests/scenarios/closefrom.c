/* Behaves like a daemon: closes everything, opens a file of its own under the free number,
   continues. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    free(malloc(8501));
    for (int number = 3; number < 1024; number++)
        close(number);
    int own = open("own", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(own, "mine", 4) != 4)
        return 1;
    for (int i = 0; i < 200000; i++)
        free(malloc(8502));
    char back[8];
    if (pread(own, back, 8, 0) != 4 || memcmp(back, "mine", 4))
        return 2;
    return 0;
}
