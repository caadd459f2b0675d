/* (c) How often there is a hit. */
#include "cache/parts.h"

#include "../../tests/support/requests.h"

static double ratio_of(const requests_row *one, hf_evict kind, hf_value *value)
{
    enum { COUNT = 1000000, WARM = 200000 };
    requests r;
    hf_cache *cache = NULL;
    if (!requests_init(&r, one->kind, one->skew, one->key_count, COUNT) ||
        hf_cache_new(&cache, .runtime = runtime, .evict = kind, .count_max = one->size, .bytes_max = HF_UNLIMITED) !=
            HF_OK) {
        fail("no cache");
    }
    int found = 0;
    for (int i = 0; i < COUNT; i++) {
        uint32_t key = requests_next(&r);
        if (hf_cache_get(cache, &key, sizeof key, NULL) == HF_OK) {
            found += i >= WARM;
        } else if (hf_cache_put(cache, &key, sizeof key, value, NULL) != HF_OK) {
            fail(hf_error_text());
        }
    }
    requests_deinit(&r);
    if (hf_cache_free(cache) != HF_OK) {
        fail(hf_error_text());
    }
    return (double)found / (COUNT - WARM);
}

static void ratio_rows(const requests_row *one, double lru, double s3fifo, double best)
{
    bool is_loop = one->kind == REQUESTS_LOOP;
    row(one->what, s3fifo, "", "best static set", best, is_loop ? s3fifo : s3fifo / best,
        is_loop || one->of_best_min > 0 ? ROW_AT_LEAST : ROW_NO_BAR, is_loop ? 0.6 : one->of_best_min);
    row("", s3fifo, "", "LRU", lru, s3fifo - lru, ROW_AT_LEAST, -0.01);
}

void part_ratio(void)
{
    hf_value *value = NULL;
    if (hf_value_copy("v", 1, &value) != HF_OK) {
        fail("no memory");
    }
    row_head("(c) hit ratios of S3-FIFO; 100,000 keys; compared: of the best, and more than LRU");
    for (size_t i = 0; i < sizeof REQUESTS_ROWS / sizeof *REQUESTS_ROWS; i++) {
        const requests_row *one = &REQUESTS_ROWS[i];
        requests r;
        if (!requests_init(&r, one->kind, one->skew, one->key_count, 1)) {
            fail("no memory");
        }
        double best = requests_best(&r, one->size);
        requests_deinit(&r);
        ratio_rows(one, ratio_of(one, HF_EVICT_LRU, value), ratio_of(one, HF_EVICT_S3FIFO, value), best);
    }
    hf_value_unref(value);
}
