/* Goes to the background, where its launcher's end does not matter, forks once more, and works there. */
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    free(malloc(100));
    if (daemon(1, 0))
        return 1;
    usleep(200000);
    int child = fork();
    for (int i = 0; i < 20000; i++)
        free(malloc(i));
    return child < 0;
}
