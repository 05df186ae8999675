// Binary trees in C++: smart pointers release a whole tree when its last owner is destroyed. Compile-time options choose
// the owner of a node:
//   -DUNIQUE            unique_ptr
//   -DSHARED_VALUE      shared_ptr; the walk takes it by value, which counts every node up and down once
//   -DSHARED_REFERENCE  shared_ptr; the walk takes it by reference and counts nothing
//
// make_shared, the usual way: node and counts are one block of 48 bytes instead of two blocks. libstdc++ counts without
// atomic instructions while a process has one thread, as here.

#include "probe.hpp"
#include <cstdio>
#include <memory>
#include <utility>

struct Node;

#if defined(UNIQUE)
using Tree = std::unique_ptr<Node>;
using Walked = const Tree &;
#elif defined(SHARED_VALUE)
using Tree = std::shared_ptr<Node>;
using Walked = Tree;
#elif defined(SHARED_REFERENCE)
using Tree = std::shared_ptr<Node>;
using Walked = const Tree &;
#else
#error "say which smart pointer: -DUNIQUE, -DSHARED_VALUE or -DSHARED_REFERENCE"
#endif

struct Node {
    Tree left, right;
};

static Tree make_node(Tree left, Tree right) {
#if defined(UNIQUE)
    return std::make_unique<Node>(std::move(left), std::move(right));
#else
    return std::make_shared<Node>(std::move(left), std::move(right));
#endif
}

static Tree build(int depth) {
    if (depth == 0)
        return make_node(nullptr, nullptr);
    Tree left = build(depth - 1); // not as arguments, whose order would be the compiler's choice
    Tree right = build(depth - 1);
    return make_node(std::move(left), std::move(right));
}

static long checksum(Walked tree) {
    return tree->left == nullptr ? 1 : 1 + checksum(tree->left) + checksum(tree->right);
}

static long build_check_release(Probe &probe, int depth) {
    auto start = probe.clock();
    Tree tree = build(depth);
    probe.built(depth, start);
    long check = checksum(tree);
    start = probe.clock();
    tree.reset();
    probe.released(depth, start);
    return check;
}

int main(int argc, char **argv) {
    Probe probe(argc, argv);
    const int min = Probe::min_depth, max = probe.max_depth();

    std::printf("stretch tree of depth %d\t check: %ld\n", max + 1, build_check_release(probe, max + 1));

    // Never released: without its one owner the process ends with it.
    Tree &long_lived = *new Tree(build(max));

    for (int depth = min; depth <= max; depth += 2) {
        long trees = 1L << (max - depth + min), sum = 0;
        for (long i = 0; i < trees; i++)
            sum += build_check_release(probe, depth);
        std::printf("%ld\t trees of depth %d\t check: %ld\n", trees, depth, sum);
    }

    std::printf("long lived tree of depth %d\t check: %ld\n", max, checksum(long_lived));
    probe.report();
}
