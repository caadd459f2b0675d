/* (b) What an entry takes in memory. Each row has a process of its own: the heap keeps what was freed. */
#include "cache/parts.h"

typedef struct bytes_row {
    const char *what;
    hf_evict kind;
    int64_t bytes_max;
    uint32_t count; /* puts */
} bytes_row;

static const bytes_row BYTES_ROWS[] = {
    {"S3-FIFO, no bound", HF_EVICT_S3FIFO, HF_UNLIMITED, MANY},
    {"S3-FIFO, at its bound, with ghosts", HF_EVICT_S3FIFO, 192 * (int64_t)MANY, 3 * MANY},
    {"LRU, no bound", HF_EVICT_LRU, HF_UNLIMITED, MANY},
};

static void bytes_of(const bytes_row *one)
{
    char key[KEY_LEN];
    char value[VALUE_LEN] = {1};
    int64_t before = bench_rss();
    hf_cache *cache = NULL;
    if (hf_cache_new(&cache, .runtime = runtime, .evict = one->kind, .count_max = HF_UNLIMITED,
                     .bytes_max = one->bytes_max) != HF_OK) {
        fail(hf_error_text());
    }
    for (uint32_t i = 0; i < one->count; i++) {
        key_of(i, key);
        ours_put(cache, key, value);
    }
    hf_cache_counts counts;
    if (hf_cache_stats(cache, &counts) != HF_OK) {
        fail(hf_error_text());
    }
    double each = (double)(bench_rss() - before) / (double)counts.count - KEY_LEN - VALUE_LEN;
    row(one->what, each, "B", "as counted", (double)counts.bytes / (double)counts.count - KEY_LEN - VALUE_LEN, each,
        one->kind == HF_EVICT_S3FIFO ? ROW_AT_MOST : ROW_NO_BAR, 76);
}

void bytes_row_number(size_t index)
{
    bytes_of(&BYTES_ROWS[index % (sizeof BYTES_ROWS / sizeof *BYTES_ROWS)]);
}

void part_bytes(void)
{
    char self[2048] = {0};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
        fail("no /proc/self/exe");
    }
    row_head("(b) bytes of an entry beside its key of 16 B and its value of 100 B; hf_value takes 28 of them");
    for (size_t i = 0; i < sizeof BYTES_ROWS / sizeof *BYTES_ROWS; i++) {
        char command[4096];
        (void)snprintf(command, sizeof command, "'%s' bytes-%zu", self, i);
        if (system(command) != 0) {
            fail("a row failed");
        }
    }
    row("", NAN, "B", "Caffeine", peer("bytes.caffeine"), NAN, ROW_NO_BAR, 0);
    row("", NAN, "B", "memcached", peer("bytes.memcached"), NAN, ROW_NO_BAR, 0);
}
