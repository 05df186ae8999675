/* Is in this process alone: what it starts is not under this library. */
#include "own.h"
#include <stdlib.h>

__attribute__((constructor)) static void hide(void) { unsetenv("LD_PRELOAD"); }
