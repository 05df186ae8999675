/* Fakes an allocator whose functions have a version of their own (versioned.ld): a look-up by name finds them, no program does,
   since programs were linked to libc's versions. */
#include "own.h"

void *malloc(size_t size) { return own_malloc(size); }
