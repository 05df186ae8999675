// Binary trees in D. A tree is released by becoming unreachable; the collector marks and sweeps while the program is
// stopped, and moves nothing. Nodes are objects of a class, two words of header and two references, or, with
// -d-version=PlainStruct, only two pointers.

module trees;

import probe : Probe;
import std.algorithm : max;
import std.conv : ConvException, to;
import std.stdio : stderr, writefln;

version (PlainStruct) {
    struct Node {
        Node* left, right;
    }

    alias Tree = Node*;
} else {
    final class Node {
        Node left, right;

        this(Node left, Node right) {
            this.left = left;
            this.right = right;
        }
    }

    alias Tree = Node;
}

Tree build(int depth) {
    if (depth == 0)
        return new Node(null, null);
    auto left = build(depth - 1);
    auto right = build(depth - 1);
    return new Node(left, right);
}

int check(Tree tree) {
    return tree.left is null ? 1 : 1 + check(tree.left) + check(tree.right);
}

void run(int n, ref Probe probe) {
    enum minDepth = 4;
    const maxDepth = max(n, minDepth + 2);
    const stretch = maxDepth + 1;
    writefln("stretch tree of depth %d\t check: %d", stretch, build(stretch).check);
    auto longLived = build(maxDepth);
    for (int depth = minDepth; depth <= maxDepth; depth += 2) {
        const iterations = 1 << (maxDepth - depth + minDepth);
        long sum = 0;
        foreach (_; 0 .. iterations)
            sum += probe.timed!build(depth).check;
        writefln("%d\t trees of depth %d\t check: %d", iterations, depth, sum);
    }
    writefln("long lived tree of depth %d\t check: %d", maxDepth, longLived.check);
}

int main(string[] words) {
    const probing = words.length == 3 && words[2] == "--probe";
    int n = -1;
    if (words.length == 2 || probing) {
        try
            n = words[1].to!int;
        catch (ConvException)
            n = -1;
    }
    if (n < 0) {
        stderr.writeln("usage: trees N [--probe], where N is a whole number");
        return 2;
    }
    auto probe = Probe(probing);
    run(n, probe);
    if (probing)
        probe.report();
    return 0;
}
