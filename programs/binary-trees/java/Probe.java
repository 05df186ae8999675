import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.function.IntFunction;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;

// The timings of the probing process (--probe): buildings by the clock, and every pause of the collector from the virtual
// machine's flight recorder. All five collectors write the same event each time they stop the program.
final class Probe {
    private final long[] longestNs = new long[64]; // by depth
    private final Recording recording = new Recording();

    Probe() {
        recording.enable("jdk.GCPhasePause").withoutThreshold();
        recording.start();
    }

    // Calls build(depth), and keeps the longest time of each depth.
    <T> T timed(IntFunction<T> build, int depth) {
        long start = System.nanoTime();
        T tree = build.apply(depth);
        longestNs[depth] = Math.max(longestNs[depth], System.nanoTime() - start);
        return tree;
    }

    // Prints the figures to stderr.
    void report() {
        for (int depth = 0; depth < longestNs.length; depth++) {
            if (longestNs[depth] > 0) {
                figure("depth_" + depth + "_longest_build_ns", longestNs[depth]);
            }
        }
        List<RecordedEvent> events;
        try (recording) {
            recording.stop();
            Path file = Files.createTempFile("pauses", ".jfr");
            try {
                recording.dump(file);
                events = RecordingFile.readAllEvents(file);
            } finally {
                Files.delete(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        LongSummaryStatistics pauses = events.stream().mapToLong(e -> e.getDuration().toNanos()).summaryStatistics();
        figure("pauses", pauses.getCount());
        figure("pause_total_ns", pauses.getSum());
        if (pauses.getCount() > 0) {
            figure("pause_mean_ns", Math.round(pauses.getAverage()));
            figure("pause_max_ns", pauses.getMax());
        }
    }

    private static void figure(String name, long value) {
        System.err.println("figure=" + name + " " + value);
    }
}
