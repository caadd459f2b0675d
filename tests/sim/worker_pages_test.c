/* A workflow whose history is longer than a page, on the real worker and engine: its tasks are completed by pages that the
 * worker fetches, when it is evicted at every await as well as when it is kept. */
#include "support/support.h"

#include "base/base.h"
#include "history/limits.h"

#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOB_LEN = 100000, BLOBS = 60 };
_Static_assert((size_t)BLOB_LEN *BLOBS > 2 * HF_HISTORY_PAGE_LEN, "more than two pages");

typedef struct play {
    int cached_max;
    hf_service *service;
    hf_worker *worker;
    long result;
} play;

/* As many letters as fit; the first one tells which call it was. */
static hf_status blob(hf_payload in, hf_payload *ret_out)
{
    char *text = malloc(BLOB_LEN + 1);
    if (text == NULL) {
        return hf_raise(HF_ERR_NOMEM, "no memory for a blob");
    }
    memset(text, 'a' + atoi(in.data) % 26, BLOB_LEN);
    text[0] = text[BLOB_LEN - 1] = '"';
    text[BLOB_LEN] = '\0';
    hf_status status = hf_payload_printf(ret_out, "%s", text);
    free(text);
    return status;
}

/* Returns how many blobs were right. */
static hf_status collect(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    int good = 0;
    for (int i = 0; i < BLOBS; i++) {
        char number[16];
        (void)snprintf(number, sizeof number, "%d", i);
        hf_payload out = {0};
        HF_TRY(hf_activity_run("blob", hf_payload_of_json(number), &out, .start_to_close = hf_seconds(30)));
        good += out.len == BLOB_LEN && ((const char *)out.data)[1] == 'a' + i % 26;
    }
    return hf_payload_printf(ret_out, "%d", good);
}

static hf_status work(void *arg)
{
    play *p = arg;
    return hf_worker_run(p->worker);
}

static hf_status ask(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(p->service, "collect", hf_payload_none(), &execution, .id = "long", .task_queue = "q"));
    HF_TRY(hf_result(execution, &out));
    p->result = strtol(out.data, NULL, 10);
    return HF_OK;
}

static hf_status play_main(void *arg)
{
    play *p = arg;
    HF_TRY(hf_open("memory:", &p->service));
    hf_worker_options options = {.size = sizeof options, .cached_max = p->cached_max};
    HF_TRY(hf_worker_new_with(p->service, "q", &p->worker, &options));
    HF_TRY(hf_worker_add_workflow(p->worker, "collect", collect));
    HF_TRY(hf_worker_add_activity(p->worker, "blob", blob));
    hf_status status = HF_OK;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "play", .join = HF_JOIN_COLLECT));
        HF_TRY(hf_fork(scope, work, p));
        status = ask(p);
        HF_CHECK_SAY(status == HF_OK, "the client ended with %s: %s", hf_status_name(status), hf_error_text());
        HF_TRY(hf_worker_stop(p->worker));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(p->worker));
    HF_TRY(hf_close(p->service));
    return status;
}

static void a_long_history_is_played_from_its_pages(void **state)
{
    (void)state;
    static const int CACHED[] = {HF_OFF, 1};
    for (size_t i = 0; i < HF_COUNT_OF(CACHED); i++) {
        play p = {.cached_max = CACHED[i]};
        assert_int_equal(hf_sim_run(1, 2, play_main, &p, NULL), HF_OK);
        assert_int_equal(p.result, BLOBS);
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_long_history_is_played_from_its_pages),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_pages", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
