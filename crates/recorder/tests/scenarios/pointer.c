/* Takes malloc's address: a program that lies at fixed addresses has a stub of its own there. */
#include <stdlib.h>

int main(void) {
    void *(*volatile taken)(size_t) = malloc;
    free(taken(9201));
    return 0;
}
