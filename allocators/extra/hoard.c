/* The page-aligned functions that Hoard lacks, built on its memalign. libc's would return blocks of libc's heap, which
   Hoard's free cannot take. */

#include <stddef.h>
#include <unistd.h>

void *memalign(size_t alignment, size_t size);

void *valloc(size_t size) {
  return memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

void *pvalloc(size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t whole = (size + page - 1) & ~(page - 1);
  return whole < size ? NULL : memalign(page, whole);
}
