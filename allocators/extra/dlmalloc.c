/* Two functions of the malloc family that are newer than dlmalloc, built on its own functions. */

#include <errno.h>
#include <stddef.h>

void *memalign(size_t alignment, size_t size);
void *realloc(void *block, size_t size);

void *aligned_alloc(size_t alignment, size_t size) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    errno = EINVAL;
    return NULL;
  }
  return memalign(alignment, size);
}

void *reallocarray(void *block, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(block, bytes);
}
