// Binary trees in C: every node is one malloc, and a tree is released by hand, child by child, before its parent.
// Linked only against libc, so the malloc that is preloaded serves all of it.

#include "probe.h"

struct node {
    struct node *left, *right;
};

static struct node *build(int depth) {
    struct node *left = NULL, *right = NULL;
    if (depth > 0) {
        left = build(depth - 1);
        right = build(depth - 1);
    }
    struct node *node = malloc(sizeof *node);
    // To the compiler this could now be any pointer, so it cannot remove the call together with its free.
    __asm__ volatile("" : "+r"(node) : : "memory");
    if (node == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    node->left = left;
    node->right = right;
    return node;
}

static long checksum(const struct node *node) {
    return node->left == NULL ? 1 : 1 + checksum(node->left) + checksum(node->right);
}

static void release(struct node *node) {
    if (node->left != NULL) {
        release(node->left);
        release(node->right);
    }
    free(node);
}

static long build_check_release(int depth) {
    uint64_t start = probe_clock();
    struct node *tree = build(depth);
    probe_built(depth, start);
    long check = checksum(tree);
    start = probe_clock();
    release(tree);
    probe_released(depth, start);
    return check;
}

int main(int argc, char **argv) {
    int max = probe_arguments(argc, argv);

    printf("stretch tree of depth %d\t check: %ld\n", max + 1, build_check_release(max + 1));

    struct node *long_lived = build(max);

    for (int depth = MIN_DEPTH; depth <= max; depth += 2) {
        long trees = 1L << (max - depth + MIN_DEPTH), sum = 0;
        for (long i = 0; i < trees; i++)
            sum += build_check_release(depth);
        printf("%ld\t trees of depth %d\t check: %ld\n", trees, depth, sum);
    }

    // Never released: the process ends with it.
    printf("long lived tree of depth %d\t check: %ld\n", max, checksum(long_lived));
    probe_report(max);
}
