// What a printed program needs of the harness, in short. Paragraphs: each begins with the name that it defines, and is printed if the
// program uses it; all but the macros in capital letters are for checks of hardening. A program without heapmark judges less: no
// random bytes, no record of faults.

// size
static size_t size = 24;

// informed
static int informed;

// wrong
static int wrong = 1;

// chance
static size_t chance(size_t below) { return (size_t)rand() % below; }

// misuse
static void misuse(void) { (void)!write(1, "misuse\n", 7); }

// target
#define target(from, bytes)

// fail
static void fail(const char *why) { (void)!write(1, why, strlen(why)), _exit(1); }

// all
static struct { char *at; size_t bytes; } all[9000]; static int count;

// own
static char *own(char *new, size_t bytes) {
    for (int i = 0; i < count; i++)
        if (new < all[i].at + all[i].bytes && all[i].at < new + bytes) fail("a block has two owners\n");
    return all[count].at = memset(new, 0x37, bytes), all[count++].bytes = bytes, new;
}

// take
static char *take(size_t bytes) { return own(malloc(bytes), bytes); }

// disown
static void disown(char *at) { for (int i = 0; i < count; i++) if (all[i].at == at) all[i].bytes = 0, all[i].at = 0; }

// give
static void give(char *at) { disown(at), free(at); }

// peek
static void peek(char *to, const char *from, size_t bytes) {
    for (int ends[2], end = pipe(ends); bytes-- && !end; to++, from++)
        if (write(ends[1], from, 1) == 1) (void)!read(ends[0], to, 1);
}

// is_mapped
static int is_mapped(const char *at) { int ends[2]; return pipe(ends) == 0 && write(ends[1], at, 1) == 1 && !close(ends[0]) && !close(ends[1]); }

// apart
#include <sys/wait.h>
static int status;
static const char *apart(void) {
    if (fork() == 0) return alarm(1), NULL;
    if (wait(&status) < 0) exit(77);
    if (WIFEXITED(status)) return WEXITSTATUS(status) ? "stopped" : "fine";
    return WTERMSIG(status) == 14 ? "hang" : strchr("\4\5\6", WTERMSIG(status)) ? "stopped" : "fault"; // Alarm; ill, trap, abort.
}

// look
#define look()

// gained
static int gained(void) { return WIFEXITED(status) && WEXITSTATUS(status) == 1 ? 2 : 1; }

// leave
#define leave() _exit(0)

// chosen
#define chosen(from, size) (all[count].at = (char *)(from), all[count++].bytes = (size))

// hold
#define hold chosen

// victim
#define victim(from, size) (memset(from, 0x37, size), chosen(from, size))

// spill
static void spill(void) {
    for (int i = 0; i < count; i++)
        for (size_t byte = 0; byte < all[i].bytes; byte++) if (all[i].at[byte] != 0x37) fail("other bytes were changed\n");
}

// poke
static void poke(char *to, size_t bytes) { while (bytes--) ((volatile char *)to)[bytes] = 0x53; }

// flip
static void flip(char *at, size_t bytes) { while (bytes--) ((volatile char *)at)[bytes] ^= 0xff; }

// copy
static void copy(char *to, const char *from, size_t bytes) { while (bytes--) ((volatile char *)to)[bytes] = from[bytes]; }

// EXPECT
#define EXPECT(holds, ...) ((holds) ? (void)0 : (printf(__VA_ARGS__), puts(""), exit(1)))

// NOTE
#define NOTE(...) (printf(__VA_ARGS__), puts(""))

// RATE
#define RATE(what, times, of) printf("%s=%ld of %ld\n", what, (long)(times), (long)(of))

// SAMPLE
#define SAMPLE(...) (printf(__VA_ARGS__), puts(""))

// UNSUPPORTED
#define UNSUPPORTED(...) (printf(__VA_ARGS__), puts(""), exit(77))

// AGAIN
#define AGAIN(value) (setenv("AGAIN", value, 1), execl("/proc/self/exe", "again", NULL), exit(2))

// FIRST
#define FIRST(it) __attribute__((used, section(".preinit_array"))) static void (*first_)(int, char **) = it

// operator_of
#include <dlfcn.h>
static void *operator_of(const char *name) {
    void *libcxx = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL), *found = dlsym(RTLD_DEFAULT, name);
    if (!libcxx || !found) UNSUPPORTED("no %s", name);
    return found;
}

// pairs
static void pairs(int count) { while (count--) free(malloc(size)); }

// exercise
static void exercise(void) { for (int i = 0; i < (size > 16384 ? 40 : 800); i++) take(size); }

// main
int main(int words, char **word) {
    if (words > 1) size = strtoull(word[1], NULL, 10);
    free(malloc(size)), body();
    for (int i = 0; i < (size > 16384 ? 40 : 800); i++) take(size);
}
