/* Payloads on their way through a workflow: what another SDK sends passes unchanged through workflow, activity and result. */
#include "unit/worker/play.h"

#include "base/base.h"

#define FOREIGN "json/protobuf"

/* A list as another SDK would send it, of an encoding that C does not read. */
static hf_status make_list(hf_payload *ret_list)
{
    hf_payload parts[] = {
        {"{\"id\":7}", 8, FOREIGN, NULL}, hf_payload_of_bytes("\0\1", 2), hf_payload_of_json("\"3\"")};
    return hf_payload_list(parts, HF_COUNT_OF(parts), ret_list);
}

static void check_list(hf_payload in, const char *who)
{
    static const char *const ENCODINGS[] = {FOREIGN, HF_ENCODING_BYTES_TEXT, HF_ENCODING_JSON_TEXT};
    if (!HF_CHECK_SAY(hf_payload_count(in) == 3, "%s got %zu payloads", who, hf_payload_count(in))) {
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        HF_AUTO(hf_payload_free) hf_payload part = hf_payload_none();
        HF_CHECK(hf_payload_nth(in, i, &part) == HF_OK && strcmp(part.encoding, ENCODINGS[i]) == 0);
    }
}

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    check_list(in, "the activity");
    *ret_out = in;
    return HF_OK;
}

static hf_status hand_on(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_payload_free) hf_payload back = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload signal = hf_payload_none();
    check_list(in, "the workflow");
    HF_TRY(hf_activity_run("echo", in, &back, .start_to_close = hf_seconds(9)));
    check_list(back, "the workflow, from the activity,");
    HF_TRY(hf_signal_wait("more", &signal));
    check_list(signal, "the workflow, by a signal,");
    HF_TRY(hf_activity_run("echo", back, NULL, .start_to_close = hf_seconds(9)));
    return hf_payload_copy(signal, ret_out);
}

static hf_status add(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "hand_on", hand_on));
    return hf_worker_add_activity(worker, "echo", echo, .on_fiber = true);
}

static hf_status ask(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload list = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(make_list(&list));
    HF_TRY(hf_start(p->service, "hand_on", list, &execution, .task_queue = "orders"));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_signal(execution, "more", list));
    HF_TRY(hf_result(execution, &out));
    check_list(out, "the client");
    return HF_OK;
}

static void a_list_passes_through_a_workflow(void **state)
{
    (void)state;
    play_on((play_options){.add = add, .body = ask});
    play_on((play_options){.add = add, .body = ask, .worker = {.cached_max = HF_OFF}});
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_list_passes_through_a_workflow),
    };
    return hf_test_main("worker_payload", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
