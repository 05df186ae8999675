/* As late_sleeper, but each such free ends the process. */
#include <stdlib.h>
#define LATE abort()
#include "late_sleeper.c"
