"""Writes SIZE classes of C++ with comments, and a Doxyfile."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

settings = ["INPUT = classes.h", "GENERATE_HTML = NO", "GENERATE_LATEX = NO", "GENERATE_TAGFILE = /dev/stdout", "QUIET = YES", "WARNINGS = NO", "WARN_IF_DOC_ERROR = NO",
            "EXTRACT_ALL = YES", "HAVE_DOT = NO", "NUM_PROC_THREADS = 1"]
with open("Doxyfile", "w") as file:
    file.write("\n".join(settings) + "\n")
words = ["node", "value", "table", "counts", "returns", "each", "range", "index", "of", "the", "a", "which", "is"]
says = lambda count: " ".join(draw.choice(words) for _ in range(count))
with open("classes.h", "w") as file:
    for at in range(size):
        bases = sorted({draw.randrange(at) for _ in range(draw.randrange(3))}) if at else []
        head = " : " + ", ".join("public Class%d" % base for base in bases) if bases else ""
        file.write("/** %s\n *\n * %s. See Class%d.\n */\nclass Class%d%s {\npublic:\n" % (says(8), says(40), draw.randrange(size), at, head))
        for method in range(draw.randrange(5, 25)):
            file.write("    /// %s\n    /// @param first %s\n    /// @return %s\n" % (says(9), says(6), says(5)))
            file.write("    template <class T> T method%d(const Class%d &first, int second = %d) const;\n" % (method, draw.randrange(at + 1), method))
        file.write("private:\n    long field_; ///< %s\n};\n" % says(7))
