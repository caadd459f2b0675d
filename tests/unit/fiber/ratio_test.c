/* Hit ratios of both kinds of eviction, for the same requests. A miss puts the key. */
/* labels: plainonly */
#include "support/requests.h"
#include "support/support.h"

enum { REQUESTS = 500000, WARM = 100000 };

/* The part of the requests that were hits, after the first WARM. */
static hf_status hit_ratio(const requests_row *row, hf_evict kind, hf_value *value, double *ret_ratio)
{
    HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
    requests r;
    HF_CHECK(requests_init(&r, row->kind, row->skew, row->key_count, REQUESTS));
    HF_TRY(hf_cache_new(&cache, .evict = kind, .count_max = row->size, .bytes_max = HF_UNLIMITED));
    int hits = 0;
    for (int i = 0; i < REQUESTS; i++) {
        uint32_t key = requests_next(&r);
        if (hf_cache_get(cache, &key, sizeof key, NULL) == HF_OK) {
            hits += i >= WARM;
        } else {
            HF_TRY(hf_cache_put(cache, &key, sizeof key, value, NULL));
        }
    }
    requests_deinit(&r);
    *ret_ratio = (double)hits / (REQUESTS - WARM);
    return HF_OK;
}

static hf_status measure(void *arg)
{
    (void)arg;
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_value_copy("v", 1, &value));
    for (size_t i = 0; i < sizeof REQUESTS_ROWS / sizeof *REQUESTS_ROWS; i++) {
        const requests_row *row = &REQUESTS_ROWS[i];
        double lru = 0;
        double s3fifo = 0;
        HF_TRY(hit_ratio(row, HF_EVICT_LRU, value, &lru));
        HF_TRY(hit_ratio(row, HF_EVICT_S3FIFO, value, &s3fifo));
        requests r;
        HF_CHECK(requests_init(&r, row->kind, row->skew, row->key_count, REQUESTS));
        double best = requests_best(&r, row->size);
        requests_deinit(&r);
        print_message("%-34s LRU %.3f, S3-FIFO %.3f, best static %.3f\n", row->what, lru, s3fifo, best);
        HF_CHECK(s3fifo >= row->of_best_min * best);
        HF_CHECK(s3fifo >= lru - 0.01);
        HF_CHECK(row->kind != REQUESTS_LOOP || s3fifo >= 0.6);
    }
    return HF_OK;
}

static void s3fifo_hits_as_often_as_it_should(void **state)
{
    (void)state;
    hf_env *env = hf_sim_begin_with(1, (hf_sim_options){.steps_max = INT64_MAX}); /* simulated: the same hashes */
    hf_runtime_options options = hf_sim_runtime_options(env, 1);
    HF_CHECK(hf_run_with(measure, NULL, &options) == HF_OK);
    hf_sim_end(env, NULL);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {cmocka_unit_test(s3fifo_hits_as_often_as_it_should)};
    return hf_test_main("ratio", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
