/* Fakes no fault: an allocator that is only some 20 times slower than others. */
#include "forward.h"

void *malloc(size_t size) {
    for (volatile int i = 0; i < 1000; i++) {
    }
    return __libc_malloc(size);
}
