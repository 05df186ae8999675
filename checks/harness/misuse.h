// What a check of hardening is written with: a program that uses its allocator wrongly. docs/CHECK.md explains its parts.
#include "check.h"

// The body of such a check. It ends before the exercise, which the harness makes.
#define MISUSE                                                                                                        \
    static void heapmark_body(void);                                                                                  \
    static void heapmark_run(void) { heapmark_misuse(heapmark_body); }                                                \
    HEAPMARK_ENTRY(heapmark_run);                                                                                     \
    static void heapmark_body(void)

// Makes all that is around a body, and ends the process.
void heapmark_misuse(void (*body)(void));

extern size_t size;   // What this process is about: blocks of so many bytes.
extern bool informed; // Whether the attacker copies bytes of genuine neighbours instead of making them up.
extern bool wrong;    // Whether the misuse happens: not in the benign twin.

// A block that is filled with bytes of its own. The harness checks at all times that no other block overlaps it, and at the end
// that its bytes are its own.
char *take(size_t bytes);
char *own(char *block, size_t bytes); // The same of a block that another call made.
void disown(char *block);             // It is not checked any more.
void hold(char *block, size_t bytes); // A live block with other bytes, which are not compared.
void give(char *block);               // Frees it.

void misuse(void);                           // From here on the program is wrong: an end is the answer to that.
void exercise(void);                         // Many correct calls; the body may ask for some before its own end,
void pairs(int count);                       // or for so many of a malloc and its free; of large blocks, a sixteenth.
void target(const void *from, size_t bytes); // A fault at these addresses is the hardware's answer. No bytes: none.
void chosen(const void *from, size_t bytes); // Memory of the attacker's choice: no block may lie in it,
void victim(const void *from, size_t bytes); // and nothing may be written here.
void spill(void);                            // Looks whether bytes of other blocks were changed by now.
uint64_t chance(uint64_t below);

// Bad accesses, each a loop of our own, and a target: a fault lies in the check, not in the C library.
void poke(char *to, size_t bytes);                   // Bytes that are made up.
void flip(char *at, size_t bytes);                   // All bits of what is there.
void copy(char *to, const char *from, size_t bytes); // Bytes of another block.

// Without a fault: whether a byte can be read, and what can be read there.
bool is_mapped(const void *byte);
void peek(char *to, const char *from, size_t bytes);

// A function of C++ by its symbol; without the library that has them the check does not apply.
void *operator_of(const char *name);

// What one of many processes is to add to what they say together.
#define SAMPLE(...) heapmark_say("sample", __VA_ARGS__)

// Of trials within one process: how many ended so; said with its interval.
#define RATE(what, times, of) heapmark_say("rate", "%ld %ld %s", (long)(times), (long)(of), what)

// A process of its own, a copy of this one, for checks that try much: 0 in it, which calls leave() at its end. Its parent gets
// the word for how it ended: fine, stopped, fault or hang (1 s of processor time, or 2 s). In a benign twin only fine goes on.
const char *apart(void);
void leave(void);

// Of a process of its own: what its blocks show at its end; in its parent then, the most that was gained: 1 nothing, 2 an
// overlap, 3 a block in chosen memory, 4 a write to memory of the victim.
void look(void);
int gained(void);
