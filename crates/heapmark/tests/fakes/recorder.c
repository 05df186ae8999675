/* Fakes no fault: writes the environment it finds itself in to the file that RECORD_TO names. */
#include "own.h"
#include <stdio.h>
#include <stdlib.h>

extern char **environ;

__attribute__((constructor)) static void record(void) {
    const char *path = getenv("RECORD_TO");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    for (char **variable = environ; *variable; variable++) fprintf(file, "%s\n", *variable);
    fclose(file);
}
