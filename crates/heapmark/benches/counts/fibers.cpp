// Fibres that allocate between two switches, on two threads.
#include <boost/fiber/all.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

static void work() {
    std::vector<boost::fibers::fiber> fibers;
    for (int number = 0; number < 50; number++)
        fibers.emplace_back([number] {
            for (int step = 0; step < 200; step++) {
                auto text = std::make_unique<std::string>(100 + number, 'x');
                boost::this_fiber::yield();
            }
        });
    for (auto &fiber : fibers)
        fiber.join();
}

int main() {
    std::thread other(work);
    work();
    other.join();
}
