/* Asks for huge pages for all of its memory. */
#define OWN_ADVICE MADV_HUGEPAGE
#include "own.c"
