/* Does not survive in a forked child. */
#include <pthread.h>
#include <stdlib.h>

__attribute__((constructor)) static void make(void) { pthread_atfork(0, 0, abort); }
