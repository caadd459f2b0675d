/* The pipeline of the examples, unmodified, on a disk that gives short reads, fails, fills up
 * and loses power. In all cases success means that the output is complete, right and safe,
 * and a run after a restart succeeds. */
#include "sim/example.h"

#include "../../examples/05_pipeline.c"

#undef main

enum { SEEDS = 1000, INPUT_LINES_MAX = 60, FILE_LEN_MAX = 8192 };

typedef enum trouble { NO_TROUBLE, ERRORS, FULL_DISK, POWER_CUT, TROUBLE_COUNT } trouble;

typedef struct texts {
    char input[FILE_LEN_MAX];
    size_t input_len;
    char output[FILE_LEN_MAX]; /* as the pipeline should write it */
    size_t output_len;
} texts;

static trouble trouble_of(uint64_t seed)
{
    return (trouble)(seed % TROUBLE_COUNT);
}

static void make_texts(hf_rng *rng, texts *t)
{
    *t = (texts){.input_len = 0};
    int count = (int)hf_rng_below(rng, INPUT_LINES_MAX + 1);
    for (int i = 1; i <= count; i++) {
        int len = (int)hf_rng_below(rng, 60);
        t->output_len += (size_t)snprintf(t->output + t->output_len, sizeof t->output - t->output_len, "%4d  ", i);
        for (int k = 0; k < len; k++) {
            char letter = (char)('a' + hf_rng_below(rng, 26));
            t->input[t->input_len++] = letter;
            t->output[t->output_len++] = k == 0 ? (char)(letter - 'a' + 'A') : letter;
        }
        t->input[t->input_len++] = '\n';
        t->output[t->output_len++] = '\n';
    }
}

static hf_sim_options options_of(uint64_t seed, hf_rng *rng, const texts *t)
{
    hf_sim_options options = {.short_io_permille = (int)hf_rng_below(rng, 800)};
    int64_t needed = (int64_t)(t->input_len + t->output_len);
    switch (trouble_of(seed)) {
    case ERRORS:
        options.eio_permille = (int)hf_rng_below(rng, 30);
        break;
    case FULL_DISK: /* sometimes just large enough */
        options.disk_len_max = (int64_t)t->input_len + 1 + (int64_t)hf_rng_below(rng, t->output_len * 5 / 4 + 1);
        options.disk_len_max += options.disk_len_max > needed ? 1000 : 0;
        break;
    case POWER_CUT:
        options.crash_after = 1 + (int64_t)hf_rng_below(rng, 120);
        break;
    case NO_TROUBLE:
    case TROUBLE_COUNT:
        break;
    }
    return options;
}

static bool is_expected(trouble which, hf_status status)
{
    switch (which) {
    case ERRORS:
    case POWER_CUT:
        return status == HF_OK || status == HF_ERR_IO;
    case FULL_DISK:
        return status == HF_OK || status == HF_ERR_FULL;
    case NO_TROUBLE:
    case TROUBLE_COUNT:
        break;
    }
    return status == HF_OK;
}

static void check_output(hf_env *env, const texts *t, const char *when)
{
    char *bytes = NULL;
    size_t len = 0;
    if (HF_CHECK_SAY(hf_sim_file_get(env, "out", &bytes, &len) == HF_OK, "%s: no output", when)) {
        HF_CHECK_SAY(len == t->output_len, "%s: %zu bytes instead of %zu", when, len, t->output_len);
        HF_CHECK_SAY(len != t->output_len || memcmp(bytes, t->output, len) == 0, "%s: wrong bytes", when);
    }
    hf_text_free(bytes);
}

static hf_status run_app(hf_env *env, int threads)
{
    hf_runtime_options options = hf_sim_runtime_options(env, threads);
    pipeline p = {.input = "in", .output = "out"};
    example_forget();
    return hf_run_with(app, &p, &options);
}

static unsigned runs[TROUBLE_COUNT][2]; /* failed, succeeded: shows that the faults are neither harmless nor too hard */

static uint64_t once(uint64_t seed)
{
    static texts t;
    hf_rng rng = {.state = seed};
    make_texts(&rng, &t);
    int threads = 1 + (int)hf_rng_below(&rng, 4);
    hf_env *env = hf_sim_begin_with(seed, options_of(seed, &rng, &t));
    HF_CHECK(hf_sim_file_put(env, "in", t.input, t.input_len) == HF_OK);
    if (seed % 3 == 0) { /* an old file is there: its bytes must not remain */
        HF_CHECK(hf_sim_file_put(env, "out", "old", 3) == HF_OK);
    }

    hf_status status = run_app(env, threads);
    HF_CHECK_SAY(is_expected(trouble_of(seed), status), "%s", hf_status_name(status));
    HF_CHECK(hf_sim_errors_logged() == 0);
    runs[trouble_of(seed)][status == HF_OK]++;
    if (status == HF_OK) {
        check_output(env, &t, "after success");
    }
    if (trouble_of(seed) == POWER_CUT) {
        HF_CHECK(hf_sim_restart(env) == HF_OK);
        if (status == HF_OK) {
            check_output(env, &t, "after success and a restart");
        }
        HF_CHECK(run_app(env, threads) == HF_OK);
        check_output(env, &t, "after the run that followed the restart");
    }
    uint64_t hash = 0;
    hf_sim_end(env, &hash);
    return hash;
}

static void one(uint64_t seed)
{
    uint64_t hash = once(seed);
    if (example_is_repeated(seed)) {
        HF_CHECK(once(seed) == hash);
    }
}

static void success_means_complete_right_and_safe(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"no trouble", "errors", "full disk", "power cut"};
    hf_each_seed("the pipeline", SEEDS, one);
    for (size_t i = 0; i < TROUBLE_COUNT; i++) {
        print_message("  %s: %u runs succeeded, %u failed\n", NAMES[i], runs[i][1], runs[i][0]);
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(success_means_complete_right_and_safe),
};

int main(int argc, char **argv)
{
    return hf_test_main("pipeline_sim", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
