// What a check is written with. A check is one file of the folder above; docs/CHECK.md explains its parts.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// After each header stand words of programs that need it: `--program` includes no others.
#include <errno.h> // errno ENOMEM EINVAL EPERM ENOENT
#include <malloc.h> // memalign( malloc_usable_size mallinfo malloc_info
#include <stdbool.h> // bool true false
#include <stdint.h> // intptr_t SIZE_MAX PTRDIFF_MAX uint64_t
#include <stdio.h> // printf fopen
#include <stdlib.h> // malloc free exit
#include <string.h> // mem str
#include <unistd.h> // _exit pid_t AGAIN sleep( close( read( write( lseek( dup2( access( pipe( getcwd getpid gettid getpagesize sbrk( sysconf syscall( exec

// A check is found by the name of its file.
struct heapmark_check {
    const char *file;
    void (*run)(void);
};

// All of them are in one section of the program, which is so their list.
#define HEAPMARK_ENTRY(function)                                                                                      \
    __attribute__((used, section("heapmark_checks"))) static const struct heapmark_check heapmark_entry = {           \
        __FILE__, function}

// The body of a check.
#define CHECK                                                                                                         \
    static void heapmark_body(void);                                                                                  \
    HEAPMARK_ENTRY(heapmark_body);                                                                                    \
    static void heapmark_body(void)

// Something that must hold. The words say what was found if it does not; the check goes on.
#define EXPECT(holds, ...) ((holds) ? (void)0 : heapmark_say("reason", __VA_ARGS__))

// What was found where standards leave it open, as `name=value`.
#define NOTE(...) heapmark_say("note", __VA_ARGS__)

// The check cannot apply here: it ends.
#define UNSUPPORTED(...) (heapmark_say("unsupported", __VA_ARGS__), _exit(77))

// The process starts afresh, and keeps what it has set of what survives exec: limits, descriptors, environment, filters of
// system calls. The value is then in its environment, under the name AGAIN.
#define AGAIN(value) (setenv("AGAIN", value, 1), execv("/proc/self/exe", heapmark_words), _exit(120))

// A function of (int words, char **word) that runs before all constructors, also those of libraries.
#ifdef PLANTED
#define FIRST(function) static void (*heapmark_first)(int, char **) __attribute__((unused)) = function
#else
#define FIRST(function) \
    __attribute__((used, section(".preinit_array"))) static void (*heapmark_first)(int, char **) = function
#endif

#ifdef __cplusplus
extern "C" {
#endif

extern char **heapmark_words;

// Writes a line into the file that heapmark reads: what was said before a crash is known. Takes no memory from the heap.
__attribute__((format(printf, 2, 3))) void heapmark_say(const char *kind, const char *format, ...);

#ifdef PLANTED
// glibc's own functions, to which planted faults hand on what they do right.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);
#endif

#ifdef __cplusplus
}
#endif
