// Binary trees in Java. A tree is released by becoming unreachable; the collector, which moves live nodes, is chosen on
// the command line of the virtual machine. Nodes are two references and a header: 24 bytes, 32 with ZGC.
// --longlived-extra=1 builds the long-lived tree one level deeper than it prints, as published results for Java did.

final class Trees {
    private record Node(Node left, Node right) {
        static Node build(int depth) {
            if (depth == 0) {
                return new Node(null, null);
            }
            Node left = build(depth - 1);
            Node right = build(depth - 1);
            return new Node(left, right);
        }

        int check() {
            return left == null ? 1 : 1 + left.check() + right.check();
        }
    }

    private static void run(int n, int extra, Probe probe) {
        final int minDepth = 4;
        int maxDepth = Math.max(n, minDepth + 2);
        int stretch = maxDepth + 1;
        System.out.printf("stretch tree of depth %d\t check: %d%n", stretch, Node.build(stretch).check());
        Node longLived = Node.build(maxDepth + extra);
        for (int depth = minDepth; depth <= maxDepth; depth += 2) {
            int iterations = 1 << (maxDepth - depth + minDepth);
            long sum = 0;
            for (int i = 0; i < iterations; i++) {
                Node tree = probe == null ? Node.build(depth) : probe.timed(Node::build, depth);
                sum += tree.check();
            }
            System.out.printf("%d\t trees of depth %d\t check: %d%n", iterations, depth, sum);
        }
        // The extra level is visible only in the check.
        System.out.printf("long lived tree of depth %d\t check: %d%n", maxDepth, longLived.check());
    }

    public static void main(String[] arguments) {
        int n = -1;
        int extra = 0;
        boolean probing = false;
        try {
            n = Integer.parseInt(arguments[0]);
            for (int i = 1; i < arguments.length; i++) {
                switch (arguments[i]) {
                    case "--longlived-extra=0" -> extra = 0;
                    case "--longlived-extra=1" -> extra = 1;
                    case "--probe" -> probing = true;
                    default -> n = -1;
                }
            }
        } catch (ArrayIndexOutOfBoundsException | NumberFormatException e) {
            n = -1;
        }
        if (n < 0) {
            System.err.println("usage: Trees N [--longlived-extra=0|1] [--probe], where N is a whole number");
            System.exit(2);
        }
        Probe probe = probing ? new Probe() : null;
        run(n, extra, probe);
        if (probing) {
            probe.report();
        }
    }
}
