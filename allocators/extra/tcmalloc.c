/* A purge that can be found by name: tcmalloc's own entry point is hidden. */

#include <stddef.h>
#include <stdint.h>

size_t MallocExtension_Internal_ReleaseMemoryToSystem(size_t bytes);

__attribute__((visibility("default"))) size_t tcmalloc_release_all(void) {
  return MallocExtension_Internal_ReleaseMemoryToSystem(SIZE_MAX);
}
