/* As slow.c, but only some ten times slower than others: CPU time shows that, too, and tests end earlier. */
#define TURNS 1000
#include "slow.c"
