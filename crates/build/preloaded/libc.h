/* For libraries that intercept calls which glibc serves: glibc's functions under their own names, and posix_memalign, which
 * is made of memalign. */
#include <errno.h>
#include <stdlib.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *memalign(size_t align, size_t size);

int posix_memalign(void **block, size_t align, size_t size) {
    if (align < sizeof(void *) || align & (align - 1)) return EINVAL;
    void *got = memalign(align, size);
    if (!got) return ENOMEM;
    *block = got;
    return 0;
}
