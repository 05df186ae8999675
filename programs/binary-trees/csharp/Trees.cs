// Binary trees in C#. A tree is released by becoming unreachable, for the generational collector to find: young nodes are
// copied, old ones marked and swept, mostly concurrently. Nodes are two references and a header: 32 bytes.

using System;

sealed class Node {
    readonly Node left, right;

    Node(Node left, Node right) {
        this.left = left;
        this.right = right;
    }

    public static Node Build(int depth) {
        if (depth == 0) return new Node(null, null);
        var left = Build(depth - 1);
        var right = Build(depth - 1);
        return new Node(left, right);
    }

    public int Check() {
        return left == null ? 1 : 1 + left.Check() + right.Check();
    }
}

static class Trees {
    static void Run(int n, Probe probe) {
        const int minDepth = 4;
        int maxDepth = Math.Max(n, minDepth + 2);
        int stretch = maxDepth + 1;
        Console.WriteLine("stretch tree of depth {0}\t check: {1}", stretch, Node.Build(stretch).Check());
        var longLived = Node.Build(maxDepth);
        for (int depth = minDepth; depth <= maxDepth; depth += 2) {
            int iterations = 1 << (maxDepth - depth + minDepth);
            long sum = 0;
            for (int i = 0; i < iterations; i++) {
                var tree = probe == null ? Node.Build(depth) : probe.Timed(Node.Build, depth);
                sum += tree.Check();
            }
            Console.WriteLine("{0}\t trees of depth {1}\t check: {2}", iterations, depth, sum);
        }
        Console.WriteLine("long lived tree of depth {0}\t check: {1}", maxDepth, longLived.Check());
    }

    static int Main(string[] words) {
        bool probing = words.Length == 2 && words[1] == "--probe";
        int n = -1;
        if (words.Length == 1 || probing) {
            if (!int.TryParse(words[0], out n)) n = -1;
        }
        if (n < 0) {
            Console.Error.WriteLine("usage: trees.exe N [--probe], where N is a whole number");
            return 2;
        }
        var probe = probing ? new Probe() : null;
        Run(n, probe);
        if (probing) probe.Report();
        return 0;
    }
}
