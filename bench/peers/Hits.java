// Hits of Caffeine, for the table of `./dev bench depot`. Called as
//
//   java -cp caffeine.jar:CLASSES Hits FOLDER SECONDS WARM_UP_SECONDS
//
// FOLDER has the requests that `cache draw` wrote. Prints lines of "metric<TAB>value". Keys are strings of 16 characters; those of the
// requests are equal to those in the cache, but other objects.
import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;

import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

public final class Hits {
    private static final int KEY_LEN = 16;
    private static final int VALUE_LEN = 100;
    private static final int MANY = 1000000;
    private static final int SAMPLES = 3;

    private static volatile int seen;

    private static final class Reader extends Thread {
        final Cache<String, byte[]> cache;
        final String[] keys;
        final int from;
        final long nanos;
        long count;
        long cpu;

        Reader(Cache<String, byte[]> cache, String[] keys, int from, double seconds) {
            this.cache = cache;
            this.keys = keys;
            this.from = from;
            this.nanos = (long) (seconds * 1e9);
        }

        @Override
        public void run() {
            long until = System.nanoTime() + nanos;
            int at = from;
            int sum = 0;
            do {
                for (int i = 0; i < 1024; i++) {
                    byte[] value = cache.getIfPresent(keys[at]);
                    if (value == null) {
                        throw new IllegalStateException("a key is missing");
                    }
                    sum += value[0];
                    at = at + 1 < keys.length ? at + 1 : 0;
                }
                count += 1024;
            } while (System.nanoTime() < until);
            seen = sum;
            cpu = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        }
    }

    private static String[] read(Path file) throws Exception {
        byte[] bytes = Files.readAllBytes(file);
        String[] keys = new String[bytes.length / KEY_LEN];
        for (int i = 0; i < keys.length; i++) {
            keys[i] = new String(bytes, i * KEY_LEN, KEY_LEN, StandardCharsets.ISO_8859_1);
        }
        return keys;
    }

    // Nanoseconds per hit, of all threads together: processor time, divided by the threads.
    private static double measure(Cache<String, byte[]> cache, String[] keys, int threads, double seconds)
            throws Exception {
        Reader[] readers = new Reader[threads];
        for (int i = 0; i < threads; i++) {
            readers[i] = new Reader(cache, keys, (int) ((long) i * keys.length / 2), seconds);
            readers[i].start();
        }
        long count = 0;
        long cpu = 0;
        for (Reader reader : readers) {
            reader.join();
            count += reader.count;
            cpu += reader.cpu;
        }
        return (double) cpu / threads / count;
    }

    private static long used() {
        Runtime runtime = Runtime.getRuntime();
        for (int i = 0; i < 3; i++) {
            System.gc();
        }
        return runtime.totalMemory() - runtime.freeMemory();
    }

    public static void main(String[] args) throws Exception {
        double seconds = Double.parseDouble(args[1]);
        double warmUp = Double.parseDouble(args[2]);
        long before = used();
        Cache<String, byte[]> cache = Caffeine.newBuilder().maximumSize(2 * MANY).build();
        for (int i = 0; i < MANY; i++) {
            cache.put(String.format("user:%011d", i), new byte[VALUE_LEN]);
        }
        cache.cleanUp();
        System.out.printf("bytes.caffeine\t%.1f%n", (double) (used() - before) / MANY - KEY_LEN - VALUE_LEN);
        for (String kind : new String[] {"hot", "zipf"}) {
            String[] keys = read(Paths.get(args[0], kind + ".keys"));
            for (int threads = 1; threads <= 2; threads++) {
                measure(cache, keys, threads, warmUp);
                double best = Double.POSITIVE_INFINITY;
                for (int i = 0; i < SAMPLES; i++) {
                    best = Math.min(best, measure(cache, keys, threads, seconds));
                }
                System.out.printf("hit.%s.%d.caffeine\t%.2f%n", kind, threads, best);
            }
        }
    }
}
