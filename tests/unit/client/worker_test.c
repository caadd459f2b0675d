/* The client's verbs with a worker of this library: a workflow in C with handlers, a client beside it. */
#include "unit/worker/play.h"

#include <stdlib.h>

typedef struct cart {
    int items;
    bool is_closed;
} cart;

static hf_status is_small(void *arg, hf_payload in)
{
    (void)arg;
    return strtol(in.data, NULL, 10) < 10 ? HF_OK : hf_raise_typed(HF_ERR_FAILED, "TooMany", "that is too much");
}

static hf_status on_add(void *arg, hf_payload in, hf_payload *ret_out)
{
    cart *c = arg;
    HF_TRY(hf_sleep(hf_minutes(5))); /* the client waits longer than one call of the service lasts */
    c->items += (int)strtol(in.data, NULL, 10);
    return hf_payload_printf(ret_out, "%d", c->items);
}

static hf_status on_view(void *arg, hf_payload in, hf_payload *ret_out)
{
    const cart *c = arg;
    (void)in;
    return hf_payload_printf(ret_out, "%d", c->items);
}

static hf_status shop(hf_payload in, hf_payload *ret_out)
{
    cart *c = HF_WORKFLOW_NEW(cart);
    c->items = (int)strtol(in.data, NULL, 10);
    HF_TRY(hf_on_update("add", on_add, .arg = c, .validator = is_small));
    HF_TRY(hf_on_query("view", on_view, .arg = c));
    HF_TRY(hf_signal_wait("close", NULL));
    HF_TRY(hf_handlers_wait());
    return hf_payload_printf(ret_out, "%d", c->items);
}

static hf_status add(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "shop", shop);
}

static void note(play *p, hf_status status, hf_payload *out)
{
    if (status == HF_OK) {
        play_note(p, "%.*s;", (int)out->len, out->data != NULL ? (const char *)out->data : "");
    } else {
        play_note(p, "%s %s;", hf_error()->type, hf_error_text());
    }
    hf_payload_free(out);
}

static hf_status buy(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    HF_AUTO(hf_update_handle_free) hf_update_handle *first = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start_and_update(p->service, "shop", hf_payload_of_json("1"), "add", hf_payload_of_json("2"), &w, &first,
                               .id = "w", .task_queue = "orders"));
    note(p, hf_query(w, "view", hf_payload_none(), &out), &out); /* the handler has not ended */
    note(p, hf_update_result(first, &out), &out);
    note(p, hf_query(w, "view", hf_payload_none(), &out), &out);
    note(p, hf_update(w, "add", hf_payload_of_json("4"), &out), &out);
    note(p, hf_update(w, "add", hf_payload_of_json("40"), &out), &out);
    note(p, hf_query(w, "price", hf_payload_none(), &out), &out);
    HF_TRY(hf_start_and_signal(p->service, "shop", hf_payload_of_json("1"), "close", hf_payload_none(), NULL, .id = "w",
                               .task_queue = "orders"));
    note(p, hf_result(w, &out), &out);
    note(p, hf_query(w, "view", hf_payload_none(), &out), &out); /* it has ended */
    return HF_OK;
}

static void a_client_and_a_workflow_in_c_talk_to_each_other(void **state)
{
    (void)state;
    play_on((play_options){.add = add,
                           .body = buy,
                           .result = "1;3;3;7;TooMany that is too much;"
                                     "NotFound workflow 'shop' has no handler for query 'price'; it has 'view';7;7;"});
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_client_and_a_workflow_in_c_talk_to_each_other),
    };
    return hf_test_main("worker", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
