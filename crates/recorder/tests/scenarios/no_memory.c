/* Allocates until there is no more memory, and continues with what it has. */
#include <stdlib.h>

int main(void) {
    for (int i = 0; i < 100000; i++)
        free(malloc(9301));
    void *last = NULL;
    for (void **block; (block = malloc(9302)); last = block)
        *block = last;
    for (int i = 0; i < 400000; i++)
        if (malloc(1 << 20))
            return 1;
    while (last) {
        void *before = *(void **)last;
        free(last);
        last = before;
    }
    for (int i = 0; i < 400000; i++)
        free(malloc(9303));
    return 0;
}
