/* Fakes an allocator that keeps its heap in shared pages of a memory file, as those do that map a page at several places. */
#define _GNU_SOURCE
#include "mapped.h"

static int heap_file(void) { return memfd_create("heap", MFD_CLOEXEC); }
