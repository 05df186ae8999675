// Replaces the two operators from which all others are built, as programs with a pool of their own
// do; but not the sized ones.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

static char pool[1 << 18];
static std::size_t used;
static int given, taken;

void *operator new(std::size_t size) {
    given++;
    char *block = pool + used;
    used += (size + 15) & ~std::size_t{15};
    return block;
}

void operator delete(void *block) noexcept {
    char *at = static_cast<char *>(block);
    if (at < pool || at >= pool + sizeof pool)
        std::abort();
    taken++;
}

int main() {
    for (int i = 0; i < 10; i++) {
        operator delete(operator new(3101), std::size_t{3101});
        operator delete[](operator new[](3102));
        operator delete(operator new(3103, std::nothrow), std::nothrow);
    }
    // This one is not replaced.
    operator delete(operator new(3104, std::align_val_t{64}), std::align_val_t{64});
    std::printf("%d %d\n", given, taken);
    return 0;
}
