/* Codecs: the service has only what the codec made, and clients, workflows and activities have only what was there before. */
#include "unit/worker/play.h"

#include "base/base.h"
#include "client/errand.h"
#include "history/limits.h"

#include <stdlib.h>

#define SECRET "swordfish"

static size_t growth;  /* bytes that the codec adds */
static bool is_broken; /* it decodes nothing */

static hf_status twist(hf_payload in, size_t add, size_t drop, hf_payload *ret_out)
{
    size_t len = in.len + add - drop;
    char *bytes = calloc(1, len + 1);
    for (size_t i = 0; i < (in.len < len ? in.len : len); i++) {
        bytes[i] = (char)(((const char *)in.data)[i] ^ 0x55);
    }
    hf_status status = hf_payload_copy(hf_payload_of_bytes(bytes, len), ret_out);
    free(bytes);
    return status;
}

static hf_status encode(void *state, hf_payload in, hf_payload *ret_out)
{
    HF_CHECK(state == &growth);
    return twist(in, growth, 0, ret_out);
}

static hf_status decode(void *state, hf_payload in, hf_payload *ret_out)
{
    HF_CHECK(state == &growth);
    return is_broken ? HF_ERR_DENIED : twist(in, 0, growth, ret_out);
}

static const hf_codec TWIST = {
    .encoding = "binary/twist", .encode = encode, .decode = decode, .state = &growth, .with_failures = true};

static hf_status open_with_codec(hf_service **ret_service)
{
    return hf_open("memory:", ret_service, .codec = &TWIST);
}

/* ---- A run --------------------------------------------------------------------------------------------------------- */

static hf_status act(hf_payload in, hf_payload *ret_out)
{
    HF_CHECK(strcmp(in.encoding, HF_ENCODING_JSON_TEXT) == 0 && strcmp(in.data, "\"" SECRET "\"") == 0);
    HF_CHECK(hf_activity_info()->last.data == NULL || strstr(hf_activity_info()->last.data, SECRET) != NULL);
    if (hf_activity_info()->attempt == 1) {
        HF_TRY(hf_activity_heartbeat(hf_payload_of_json("\"" SECRET "\"")));
        return hf_activity_fail("the word is " SECRET, .type = "Retry", .details = in);
    }
    return hf_payload_copy(in, ret_out);
}

static hf_status fail_finally(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    return hf_activity_fail("the word is " SECRET, .type = "Final", .is_final = true, .details = in);
}

static hf_status flow(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_payload_free) hf_payload back = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload signal = hf_payload_none();
    HF_CHECK(strcmp(in.data, "\"" SECRET "\"") == 0);
    HF_TRY(hf_activity_run("act", in, &back, .start_to_close = hf_seconds(9), .heartbeat = hf_seconds(5)));
    HF_CHECK(strcmp(back.data, "\"" SECRET "\"") == 0);
    HF_TRY(hf_signal_wait("word", &signal));
    HF_CHECK(strcmp(signal.data, "\"" SECRET "\"") == 0);
    if (hf_activity_run("fail", in, ret_out, .start_to_close = hf_seconds(9)) == HF_ERR_EVICTED) {
        return HF_ERR_EVICTED;
    }
    HF_CHECK(strcmp(hf_error()->cause->message, "the word is " SECRET) == 0);
    HF_CHECK(strcmp(hf_error()->cause->details.data, "\"" SECRET "\"") == 0);
    return HF_ERR_FAILED;
}

static hf_status add(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "flow", flow));
    HF_TRY(hf_worker_add_activity(worker, "fail", fail_finally, .on_fiber = true));
    return hf_worker_add_activity(worker, "act", act, .on_fiber = true);
}

/* What the service has, without a codec. */
static void look_at_history(play *p, hf_execution *execution)
{
    hf_errand e;
    hf_errand_begin(&e, "look", hf_str_of(hf_execution_id(execution)));
    hf_pb_workflow_execution which = {.workflow_id = hf_str_of(hf_execution_id(execution))};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &which};
    hf_guard bare; /* without the codec */
    hf_guard_init_over(&bare, p->service, "");
    bare.service.codec = NULL;
    if (HF_CHECK(hf_errand_ask(&e, &bare.service, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request) == HF_OK)) {
        const hf_pb_get_workflow_execution_history_response *response = e.call.response;
        HF_CHECK(response->history.len > 500);
        HF_CHECK(memmem(response->history.data, response->history.len, SECRET, strlen(SECRET)) == NULL);
        HF_CHECK(memmem(response->history.data, response->history.len, "binary/twist", 12) != NULL);
        HF_CHECK(memmem(response->history.data, response->history.len, "Encoded failure", 15) != NULL);
    }
    HF_CHECK(hf_errand_end(&e) == HF_OK);
}

static hf_status ask(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(hf_start(p->service, "flow", hf_payload_of_json("\"" SECRET "\""), &execution, .task_queue = "orders"));
    HF_TRY(hf_signal(execution, "word", hf_payload_of_json("\"" SECRET "\"")));
    HF_CHECK(hf_result(execution, NULL) == HF_ERR_FAILED);
    HF_CHECK_SAY(strcmp(hf_error_text(), "activity 'fail' failed; because the word is " SECRET) == 0, "%s",
                 hf_error_text());
    HF_CHECK(strcmp(hf_error()->cause->details.data, "\"" SECRET "\"") == 0);
    look_at_history(p, execution);
    return HF_OK;
}

static void the_service_has_only_what_the_codec_made(void **state)
{
    (void)state;
    growth = 30;
    play_on((play_options){.add = add, .body = ask, .open = open_with_codec});
    play_on((play_options){.add = add, .body = ask, .open = open_with_codec, .worker = {.cached_max = HF_OFF}});
}

/* ---- Updates ------------------------------------------------------------------------------------------------------- */

/* The requests and outcomes of updates are messages inside messages: the codec must find their payloads there. */
static hf_status validate_word(void *arg, hf_payload in)
{
    (void)arg;
    HF_CHECK(strstr(in.data, SECRET) != NULL);
    return strcmp(in.data, "\"" SECRET "\"") == 0
               ? HF_OK
               : hf_raise_typed(HF_ERR_FAILED, "Refused", "%s is not " SECRET, (const char *)in.data);
}

static hf_status take_word(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    HF_AUTO(hf_payload_free) hf_payload trace = hf_payload_none();
    HF_CHECK(strcmp(in.data, "\"" SECRET "\"") == 0);
    HF_TRY(hf_header_get("trace", &trace));
    HF_CHECK(strcmp(trace.data, "\"" SECRET "\"") == 0);
    HF_TRY(hf_sleep(hf_seconds(1))); /* so that the step that accepted it is replayed without a cache */
    return hf_payload_copy(in, ret_out);
}

static hf_status fail_word(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    (void)ret_out;
    HF_CHECK(strcmp(in.data, "\"" SECRET "\"") == 0);
    return hf_raise_typed(HF_ERR_FAILED, "Word", "the word is " SECRET);
}

static hf_status listen_to_updates(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_TRY(hf_on_update("take", take_word, .validator = validate_word));
    HF_TRY(hf_on_update("fail", fail_word));
    return hf_signal_wait("end", NULL);
}

static hf_status add_updates(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "listen", listen_to_updates);
}

static hf_status send_updates(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    const hf_payload word = hf_payload_of_json("\"" SECRET "\"");
    const hf_entry header[] = {{"trace", word}, {NULL, hf_payload_none()}};
    HF_TRY(hf_start(p->service, "listen", hf_payload_none(), &execution, .task_queue = "orders"));
    HF_TRY(hf_update(execution, "take", word, &out, .header = header));
    HF_CHECK_SAY(strcmp(out.data, "\"" SECRET "\"") == 0, "%s", (const char *)out.data);
    HF_CHECK(hf_update(execution, "take", hf_payload_of_json("\"no " SECRET "\""), NULL) == HF_ERR_FAILED);
    HF_CHECK_SAY(strcmp(hf_error()->message, "\"no " SECRET "\" is not " SECRET) == 0, "%s", hf_error_text());
    HF_CHECK(hf_update(execution, "fail", word, NULL) == HF_ERR_FAILED);
    HF_CHECK_SAY(strcmp(hf_error()->message, "the word is " SECRET) == 0, "%s", hf_error_text());
    HF_TRY(hf_signal(execution, "end", hf_payload_none()));
    HF_TRY(hf_result(execution, NULL));
    look_at_history(p, execution);
    return HF_OK;
}

static void the_service_has_only_what_the_codec_made_of_updates(void **state)
{
    (void)state;
    growth = 30;
    play_on((play_options){.add = add_updates, .body = send_updates, .open = open_with_codec});
    play_on((play_options){
        .add = add_updates, .body = send_updates, .open = open_with_codec, .worker = {.cached_max = HF_OFF}});
}

/* ---- Bounds -------------------------------------------------------------------------------------------------------- */

static hf_status give_back(hf_payload in, hf_payload *ret_out)
{
    *ret_out = in;
    return HF_OK;
}

static hf_status add_echo(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "echo", give_back);
}

static char large[HF_PAYLOAD_LEN_MAX + 1];

static hf_status send_large(play *p)
{
    for (size_t more = 0; more < 2; more++) {
        HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        hf_status status = hf_start(p->service, "echo", hf_payload_of_bytes(large, HF_PAYLOAD_LEN_MAX + more),
                                    &execution, .task_queue = "orders");
        HF_CHECK(status == (more == 0 ? HF_OK : HF_ERR_TOO_BIG));
        if (status == HF_OK) {
            HF_TRY(hf_result(execution, &out));
            HF_CHECK(out.len == HF_PAYLOAD_LEN_MAX);
        }
    }
    growth = HF_CODEC_GROWTH_MAX + 1;
    HF_CHECK(hf_start(p->service, "echo", hf_payload_of_bytes(large, 10), NULL, .task_queue = "orders") ==
             HF_ERR_TOO_BIG);
    growth = HF_CODEC_GROWTH_MAX;
    return HF_OK;
}

static void the_bound_is_on_plain_bytes(void **state)
{
    (void)state;
    growth = HF_CODEC_GROWTH_MAX;
    play_on((play_options){.add = add_echo, .body = send_large, .open = open_with_codec});
}

/* ---- A codec that fails -------------------------------------------------------------------------------------------- */

static hf_status heal(void *arg)
{
    (void)arg;
    HF_TRY(hf_sleep(hf_minutes(1)));
    is_broken = false;
    return HF_OK;
}

static hf_status wait_for_the_key(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    is_broken = true;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, heal, NULL));
    HF_TRY(hf_start(p->service, "echo", hf_payload_of_json("\"" SECRET "\""), &execution, .task_queue = "orders"));
    hf_status status = hf_result(execution, &out);
    HF_CHECK_SAY(status == HF_OK && out.data != NULL && strcmp(out.data, "\"" SECRET "\"") == 0, "%s", hf_error_text());
    return hf_join(scope);
}

static void a_task_that_cannot_be_decoded_is_tried_again(void **state)
{
    (void)state;
    growth = 0;
    play_on((play_options){.add = add_echo, .body = wait_for_the_key, .open = open_with_codec});
}

/* ---- zstd ---------------------------------------------------------------------------------------------------------- */

static void zstd_compresses_what_pays(void **state)
{
    (void)state;
    const hf_codec *zstd = hf_codec_zstd();
    static char bytes[100000];
    static const struct {
        size_t len;
        bool is_random;
        bool is_encoded;
    } ROWS[] = {{HF_CODEC_FROM_LEN - 1, false, false},
                {HF_CODEC_FROM_LEN, false, true},
                {sizeof bytes, false, true},
                {sizeof bytes, true, false}};
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        uint64_t random = 1;
        for (size_t k = 0; k < ROWS[i].len; k++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            bytes[k] = ROWS[i].is_random ? (char)(random >> 56) : 'x';
        }
        hf_payload out = hf_payload_none();
        hf_payload back = hf_payload_none();
        assert_int_equal(zstd->encode(zstd->state, hf_payload_of_bytes(bytes, ROWS[i].len), &out), HF_OK);
        assert_int_equal(out.data != NULL, ROWS[i].is_encoded);
        if (out.data != NULL) {
            assert_true(out.len < ROWS[i].len / 10);
            assert_int_equal(zstd->decode(zstd->state, out, &back), HF_OK);
            assert_int_equal(back.len, ROWS[i].len);
            assert_memory_equal(back.data, bytes, back.len);
            hf_payload cut = hf_payload_of_bytes(out.data, out.len - 1);
            hf_payload none = hf_payload_none();
            assert_int_equal(zstd->decode(zstd->state, cut, &none), HF_ERR_INVALID);
        }
        hf_payload_free(&out);
        hf_payload_free(&back);
    }
    /* A frame that claims 1 TiB. */
    static const unsigned char BOMB[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0};
    hf_payload none = hf_payload_none();
    assert_int_equal(zstd->decode(zstd->state, hf_payload_of_bytes(BOMB, sizeof BOMB), &none), HF_ERR_INVALID);
    assert_int_equal(zstd->decode(zstd->state, hf_payload_of_bytes("junk", 4), &none), HF_ERR_INVALID);
}

static void a_codec_needs_all_of_its_parts(void **state)
{
    (void)state;
    hf_service *service = NULL;
    hf_codec half = TWIST;
    half.decode = NULL;
    assert_int_equal(hf_open("memory:", &service, .codec = &half), HF_ERR_MISUSE);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(the_service_has_only_what_the_codec_made),
        cmocka_unit_test(the_service_has_only_what_the_codec_made_of_updates),
        cmocka_unit_test(the_bound_is_on_plain_bytes),
        cmocka_unit_test(a_task_that_cannot_be_decoded_is_tried_again),
        cmocka_unit_test(zstd_compresses_what_pays),
        cmocka_unit_test(a_codec_needs_all_of_its_parts),
    };
    return hf_test_main("codec", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
