// Fibres of Boost.Context, which switches stacks itself and unwinds those that have not run to
// their end.
#include <boost/context/fiber.hpp>
#include <cstdlib>
#include <utility>
#include <vector>

namespace context = boost::context;

struct Block {
    void *place = std::malloc(6511);
    ~Block() { std::free(place); }
};

int main() {
    std::vector<context::fiber> fibres;
    for (int own = 0; own < 50; own++)
        fibres.emplace_back([own](context::fiber &&outside) {
            Block block;
            for (int round = 0; own == 0 || round < 2000; round++) {
                int *number = new int(round);
                outside = std::move(outside).resume();
                delete number;
            }
            return std::move(outside);
        });
    for (int round = 0; round < 2001; round++)
        for (auto &fibre : fibres)
            fibre = std::move(fibre).resume();
}
