/* Forgets each aligned block that is freed. */
#define FORGETS_ALIGNED
#include "own_aligned.c"
