/* Fakes an allocator that keeps all that was freed until the kernel gives no more, and then gives it back. */
#include "each_mapped.h"

static void *no_mapping(size_t bytes) {
    struct head *head = __atomic_exchange_n(&kept, NULL, __ATOMIC_ACQ_REL), *next;
    for (; head; head = next) {
        next = head->next;
        munmap(head, head->bytes);
    }
    return map(bytes);
}
