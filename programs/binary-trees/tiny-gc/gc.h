// tiny-gc (own): a small mark-and-sweep collector of our own, on top of malloc, for one thread on 64-bit Linux. Its
// interface is a subset of the Boehm-Demers-Weiser collector's, whose words are used here, so that one source compiles
// with either.
//
// An object lives as long as a word that is equal to its address is on the stack, in a register, in the static data of
// the program or of a library, or in a live object. Not scanned: memory from malloc itself and thread-local variables.
// Addresses inside an object do not count.

#ifndef GC_H
#define GC_H

#include <stddef.h>

#define GC_INIT() GC_init()
#define GC_MALLOC(bytes) GC_malloc(bytes)
#define GC_FREE(object) GC_free(object)

// Call once, before anything else, from the main thread.
void GC_init(void);

// Zeroed memory, aligned to 16 bytes, or NULL if there is none. May collect first.
void *GC_malloc(size_t bytes);

// Releases an object now; it must not be used afterwards. Ignores NULL; any other non-object ends the process.
void GC_free(void *object);

void GC_gcollect(void);

// The argument if it is an object's address, otherwise NULL.
void *GC_base(void *address);

// The number of collections so far.
size_t GC_get_gc_no(void);

// Bytes held from malloc for objects; and the unused part of them: 0, free memory is malloc's.
size_t GC_get_heap_size(void);
size_t GC_get_free_bytes(void);

// Called when a collection begins and when it has ended.
typedef enum { GC_EVENT_START, GC_EVENT_END } GC_EventType;
typedef void (*GC_on_collection_event_proc)(GC_EventType event);
void GC_set_on_collection_event(GC_on_collection_event_proc callback);

// Options of the Boehm collector that have no effect here. The divisor: a collection comes when half as many bytes as
// are live were newly allocated.
enum { GC_FREE_SPACE_DIVISOR = 2 };
static inline size_t GC_get_free_space_divisor(void) { return GC_FREE_SPACE_DIVISOR; }
static inline int GC_is_incremental_mode(void) { return 0; }
static inline void GC_set_all_interior_pointers(int on) { (void)on; }
static inline void GC_start_mark_threads(void) {}
static inline int GC_get_parallel(void) { return 0; }

#endif
