// Each of the twenty operators, with sizes that identify them; then what happens when memory runs
// out.
#include <cstdio>
#include <cstdlib>
#include <new>

struct alignas(64) Wide {
    char bytes[64];
};

int main() {
    using std::align_val_t;
    const align_val_t wide{64};
    operator delete(operator new(3001));
    operator delete[](operator new[](3002));
    operator delete(operator new(3003, std::nothrow), std::nothrow);
    operator delete[](operator new[](3004, std::nothrow), std::nothrow);
    operator delete(operator new(3005), 3005);
    operator delete[](operator new[](3006), 3006);
    operator delete(operator new(3007, wide), wide);
    operator delete[](operator new[](3008, wide), wide);
    operator delete(operator new(3009, wide, std::nothrow), wide, std::nothrow);
    operator delete[](operator new[](3010, wide, std::nothrow), wide, std::nothrow);
    operator delete(operator new(3011, wide), 3011, wide);
    operator delete[](operator new[](3012, wide), 3012, wide);
    delete new Wide;
    ::operator delete(nullptr);
    if (!operator new(0))
        return 1;

    volatile size_t huge = (size_t)1 << 60;
    int caught = 0;
    try {
        (void)operator new(huge);
    } catch (const std::bad_alloc &) {
        caught++;
    }
    try {
        (void)operator new[](huge, wide);
    } catch (const std::bad_alloc &) {
        caught++;
    }
    if (operator new(huge, std::nothrow) || operator new(huge, wide, std::nothrow))
        return 2;
    static int handled;
    std::set_new_handler([] {
        if (++handled == 3)
            throw std::bad_alloc();
    });
    try {
        (void)operator new(huge);
    } catch (const std::bad_alloc &) {
        caught++;
    }
    std::printf("%d %d\n", caught, handled);
    return 0;
}
