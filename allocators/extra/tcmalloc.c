/* Hidden functions of tcmalloc: a purge, and the kind of caches that this process uses. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

size_t MallocExtension_Internal_ReleaseMemoryToSystem(size_t bytes);
bool MallocExtension_Internal_GetPerCpuCachesActive(void);

__attribute__((visibility("default"))) size_t tcmalloc_release_all(void) {
  return MallocExtension_Internal_ReleaseMemoryToSystem(SIZE_MAX);
}

/* The first allocation decides. */
__attribute__((visibility("default"))) const char *tcmalloc_caches(void) {
  free(malloc(1));
  return MallocExtension_Internal_GetPerCpuCachesActive() ? "per-CPU caches" : "per-thread caches";
}
