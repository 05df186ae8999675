/* Fakes an allocator that has free blocks of many sizes in memory, 4 MiB of each, before the program asks for its first. */
#include "own.h"
#include <string.h>

__attribute__((constructor)) static void rise(void) {
    for (int class = 5; class <= 22; class++) {
        size_t bytes = ((size_t)1 << class) - 16;
        void *last = NULL;
        for (size_t taken = 0; taken < (size_t)4 << 20; taken += bytes) {
            void **block = own_malloc(bytes);
            memset(block, 1, bytes);
            *block = last;
            last = block;
        }
        while (last) {
            void *before = *(void **)last;
            own_free(last);
            last = before;
        }
    }
}
