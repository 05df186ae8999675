/* Fakes a library that cannot be loaded because another one is gone: linked with ghost.c, which is then removed. The
   dynamic linker says so on stderr and does not start the process. */
#include "own.h"

int ghost(void);

void *malloc(size_t size) { return ghost() ? NULL : own_malloc(size); }
