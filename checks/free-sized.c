/*
about = "free_sized and free_aligned_sized free what malloc and aligned_alloc made"
group = "sizes"
standing = "std"
source = "ISO C23, 7.24.3.4, 7.24.3.5"
why = "programs that know the size may say it"
*/
#include "harness/check.h"

extern void free_sized(void *block, size_t size) __attribute__((weak));
extern void free_aligned_sized(void *block, size_t alignment, size_t size) __attribute__((weak));

CHECK {
    if (!free_sized || !free_aligned_sized) UNSUPPORTED("neither the allocator nor the C library has free_sized");
    free(malloc(1));
    free_sized(NULL, 0);
    for (int times = 0; times < 2; times++) EXPECT(malloc(1), "malloc(1) returned NULL after free_sized(NULL, 0)");
    for (size_t size = 1; size <= 64 << 20; size = size * 3 / 2 + 1) {
        unsigned char *kept = memset(malloc(size), 7, size);
        free_sized(memset(malloc(size), 1, size), size);
        free_sized(memset(calloc(size, 1), 1, size), size);
        free_sized(memset(realloc(malloc(1), size), 1, size), size);
        void *block = aligned_alloc(64, (size + 63) & ~(size_t)63);
        free_aligned_sized(block, 64, (size + 63) & ~(size_t)63);
        EXPECT(kept[0] == 7 && kept[size - 1] == 7, "a live block of %zu bytes has changed", size);
        free(kept);
    }
}

#ifdef PLANTED
void free_sized(void *block, size_t size) {
    if (size > 5000) __builtin_trap();
    free(block);
}
void free_aligned_sized(void *block, size_t alignment, size_t size) { (void)alignment, (void)size, free(block); }
#endif
