/* Task tokens: only those that were given out are accepted. */
#include "engine/history_page.h"
#include "engine/token.h"
#include "fixture.h"

static void mutate(hf_rng *rng, char *bytes, size_t *len, hf_str other)
{
    switch (hf_rng_below(rng, 5)) {
    case 0: /* bits */
        for (uint64_t i = hf_rng_below(rng, 4); i < 4; i++) {
            bytes[hf_rng_below(rng, *len)] ^= (char)(1 << hf_rng_below(rng, 8));
        }
        break;
    case 1: /* bytes */
        for (uint64_t i = hf_rng_below(rng, 8); i < 8; i++) {
            bytes[hf_rng_below(rng, *len)] = (char)hf_rng_next(rng);
        }
        break;
    case 2: { /* a part of another token */
        size_t at = (size_t)hf_rng_below(rng, *len);
        memcpy(bytes + at, other.data + at, (size_t)hf_rng_below(rng, *len - at) + 1);
        break;
    }
    case 3: /* shorter, longer */
        *len = (size_t)hf_rng_below(rng, *len + 8);
        break;
    default: /* a number counts on */
        bytes[2 + hf_rng_below(rng, 36)]++;
        break;
    }
}

static void no_forged_token_is_accepted(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1; apoll as=a; signal wf s; poll as=b");
    const hf_str tokens[] = {hf_rig_task(&rig, "w")->task_token, hf_rig_activity(&rig, "a")->task_token,
                             hf_rig_task(&rig, "b")->task_token};
    hf_rng rng = {42};
    uint64_t tried = 0;
    uint64_t count = hf_test_seeds(1000000);
    while (tried < count) {
        char bytes[HF_TOKEN_LEN + 8] = {0};
        size_t len = HF_TOKEN_LEN;
        size_t which = (size_t)hf_rng_below(&rng, HF_COUNT_OF(tokens));
        memcpy(bytes, tokens[which].data, len);
        mutate(&rng, bytes, &len, tokens[(which + 1 + hf_rng_below(&rng, 2)) % HF_COUNT_OF(tokens)]);
        hf_str forged = hf_str_of_len(bytes, len);
        bool is_real = false;
        for (size_t i = 0; i < HF_COUNT_OF(tokens); i++) {
            is_real = is_real || hf_str_equal(forged, tokens[i]);
        }
        if (is_real) {
            continue;
        }
        hf_token token;
        tried++;
        if (hf_token_decode(rig.core, forged, &token)) {
            fail_msg("mutation %llu was accepted", (unsigned long long)tried);
        }
    }
    print_message("%llu mutations, 0 accepted\n", (unsigned long long)tried);
}

static void a_forged_token_is_an_invalid_argument(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll");
    char *token = (char *)(uintptr_t)hf_rig_task(&rig, "w")->task_token.data;
    token[10]++;
    hf_rig_do(&rig, "complete done => invalid; fail => invalid");
    token[10]--;
    hf_rig_do(&rig, "complete done");
    assert_true(hf_rig_probe(&rig, HF_PROBE_FORGED_TOKEN) == 2);
}

/* Sealed with the right key, and not by us. */
static void a_token_that_names_what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const hf_page PAGES[] = {
        {1, 0, 0, 0, 0, false},  {1, -3, 0, 0, 0, false},        {1, INT64_MAX, 0, 0, 0, false},
        {1, 1, -1, 0, 0, false}, {1, 1, INT64_MAX, 0, 0, false}, {0, 1, 0, 0, 0, false},
        {-1, 1, 0, 0, 0, false}, {INT64_MAX, 1, 0, 0, 0, false}, {1, 1, 0, -1, 0, false}};
    char bytes[HF_TOKEN_LEN];
    hf_str sealed = hf_str_of_len(bytes, sizeof bytes);
    for (size_t i = 0; i < HF_COUNT_OF(PAGES); i++) {
        hf_page page = {0};
        hf_page_encode(rig.core, &PAGES[i], bytes);
        print_message("page %zu\n", i);
        assert_false(hf_page_decode(rig.core, sealed, &page));
    }
    static const hf_token TOKENS[] = {{true, 0, 1, 0, 1, 0, false},         {false, -1, 1, 2, 1, 0, false},
                                      {true, INT64_MAX, 1, 0, 1, 0, false}, {true, 1, -1, 0, 1, 0, false},
                                      {false, 1, 1, -2, 1, 0, false},       {true, 1, 1, 0, -1, 0, false}};
    for (size_t i = 0; i < HF_COUNT_OF(TOKENS); i++) {
        hf_token token = {0};
        hf_token_encode(rig.core, &TOKENS[i], bytes);
        print_message("token %zu\n", i);
        assert_false(hf_token_decode(rig.core, sealed, &token));
    }
}

static void a_token_is_good_in_its_namespace_only(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete ns=other done => not_found; complete activity a1; apoll;"
                    "acomplete ns=other => not_found; acomplete");
}

static void a_token_of_one_kind_is_not_one_of_the_other(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf; poll; complete activity a1; apoll; signal wf s; poll as=w2; complete of=a done => not_found;"
              "fail of=a => not_found; acomplete of=w2 => not_found; heartbeat of=w2 => not_found;"
              "acancel of=w2 => not_found; afail of=w2 => not_found; complete of=w2; acomplete");
}

static void a_token_of_another_store_is_refused(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll");
    char bytes[HF_TOKEN_LEN];
    memcpy(bytes, hf_rig_task(&rig, "w")->task_token.data, sizeof bytes);
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){0});
    rig.options.seed[0]++; /* the same seed would make the same key */
    rig.core->mac_key[0]++;
    hf_token token;
    assert_false(hf_token_decode(rig.core, hf_str_of_len(bytes, sizeof bytes), &token));
}

static void a_token_of_a_run_that_was_taken_back_is_too_late(void **state)
{
    (void)state;
    rig.hold = true;
    hf_rig_do(&rig, "start wf => again; poll in_process run_ahead"); /* out ahead of the commit, which fails */
    assert_true(hf_rig_commit(&rig, true));
    hf_rig_crash(&rig);
    hf_rig_call *slot = hf_rig_slot(&rig, "late");
    hf_pb_respond_workflow_task_completed_request *request = HF_RIG_REQUEST(slot, respond_workflow_task_completed);
    request->namespace = HF_STR(HF_RIG_NS);
    request->task_token = hf_rig_task(&rig, "w")->task_token;
    hf_rig_send(&rig, slot, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, request);
    rig.hold = false;
    hf_rig_do(&rig, "start other"); /* the number is given to another run */
    assert_true(slot->done && slot->call.status == HF_ERR_NOT_FOUND);
    hf_rig_do(&rig, "complete done => not_found; poll as=x; complete of=x done");
}

static void a_token_names_what_it_was_made_of(void **state)
{
    (void)state;
    const hf_token made = {.kind = HF_TASK_ACTIVITY,
                           .run = INT64_MAX / 2 - 1,
                           .scheduled_id = INT64_MAX - 1,
                           .started_id = 7,
                           .attempt = INT32_MAX,
                           .stamp = INT64_MIN};
    char bytes[HF_TOKEN_LEN];
    hf_token read = {0};
    hf_token_encode(rig.core, &made, bytes);
    assert_true(hf_token_decode(rig.core, hf_str_of_len(bytes, sizeof bytes), &read));
    assert_true(read.kind == HF_TASK_ACTIVITY && read.run == made.run && read.scheduled_id == made.scheduled_id &&
                read.started_id == 7 && read.attempt == INT32_MAX && read.stamp == INT64_MIN);
}

static const struct CMUnitTest TESTS[] = {
    TEST(no_forged_token_is_accepted),
    TEST(a_forged_token_is_an_invalid_argument),
    TEST(a_token_that_names_what_cannot_be_is_refused),
    TEST(a_token_is_good_in_its_namespace_only),
    TEST(a_token_of_one_kind_is_not_one_of_the_other),
    TEST(a_token_of_another_store_is_refused),
    TEST(a_token_names_what_it_was_made_of),
    TEST(a_token_of_a_run_that_was_taken_back_is_too_late),
};

int main(int argc, char **argv)
{
    return hf_test_main("token", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
