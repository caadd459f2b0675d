/* A replay holds a bounded part of its history (worker-H2): the history of the play has more than 24 MiB, in steps of less than
 * 100 KiB, and its events take several times that when they are decoded. */
#include "unit/worker/play.h"

#include "worker/wf.h"

#include <stdlib.h>

enum { SIGNALS = 400, SIGNAL_LEN = 60000, BURST = 3000, BURST_LEN = 20 };

static hf_allocator real_memory;
static _Atomic(size_t) in_use, most;

static void *counted_allocate(void *state, size_t len, size_t align)
{
    void *ptr = real_memory.allocate(state, len, align);
    in_use += ptr != NULL ? len : 0;
    most = in_use > most ? in_use : most;
    return ptr;
}

static void counted_release(void *state, void *ptr, size_t len)
{
    in_use -= ptr != NULL ? len : 0;
    real_memory.release(state, ptr, len);
}

static bool is_many_steps; /* of one signal each; else all of them come in one step */

/* Takes the signals one by one, and says how many bytes they had. */
static hf_status count_bytes(hf_payload in, hf_payload *ret_out)
{
    long total = 0;
    (void)in;
    for (int i = 0; i < (is_many_steps ? SIGNALS : BURST); i++) {
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        HF_TRY(hf_signal_wait("blob", &out));
        total += (long)out.len;
    }
    HF_TRY(hf_signal_wait("end", NULL));
    return hf_payload_printf(ret_out, "%ld", total);
}

static hf_status add(hf_worker *worker)
{
    real_memory = worker->memory;
    in_use = 0;
    worker->memory.allocate = counted_allocate;
    worker->memory.release = counted_release;
    worker->arenas.memory = worker->memory;
    return hf_worker_add_workflow(worker, "main", count_bytes);
}

static hf_status send(hf_execution *execution, int count, size_t len, hf_span pause)
{
    char *text = malloc(len + 1);
    HF_CHECK(text != NULL);
    memset(text, 'x', len);
    text[0] = text[len - 1] = '"';
    text[len] = '\0';
    hf_status status = HF_OK;
    for (int i = 0; i < count && status == HF_OK; i++) {
        status = hf_signal(execution, "blob", hf_payload_of_json(text));
        status = status == HF_OK && pause.ns > 0 ? hf_sleep(pause) : status;
    }
    free(text);
    return status;
}

static hf_status start(play *p)
{
    HF_TRY(hf_start(p->service, "main", hf_payload_of_json("1"), &p->execution, .id = "w", .task_queue = "orders"));
    return is_many_steps ? HF_OK : send(p->execution, BURST, BURST_LEN, hf_nanoseconds(0));
}

static hf_status replay(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = p->execution;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(is_many_steps ? send(execution, SIGNALS, SIGNAL_LEN, hf_milliseconds(10)) : HF_OK);
    HF_TRY(hf_sleep(hf_minutes(2))); /* the run leaves memory */
    most = in_use;
    size_t before = in_use;
    HF_TRY(hf_signal(execution, "end", hf_payload_none()));
    HF_TRY(hf_result(execution, &out));
    play_note(p, "%s", (const char *)out.data);
    print_message("%zu KiB for the replay\n", (most - before) / 1024);
    HF_CHECK_SAY(most > before && (!is_many_steps || most - before <= HF_WF_HELD_MAX), "%zu bytes", most - before);
    return HF_OK;
}

static void a_replay_holds_a_part_of_its_history(void **state)
{
    (void)state;
    is_many_steps = true;
    (void)play_once((play_options){.add = add, .before = start, .body = replay, .result = "24000000"}, 1, 1);
}

/* A step that is larger than a page is read whole. */
static void a_large_step_is_read_whole(void **state)
{
    (void)state;
    is_many_steps = false;
    (void)play_once((play_options){.add = add, .before = start, .body = replay, .page_len = 4096, .result = "60000"}, 1,
                    1);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_replay_holds_a_part_of_its_history),
        cmocka_unit_test(a_large_step_is_read_whole),
    };
    return hf_test_main("held", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
