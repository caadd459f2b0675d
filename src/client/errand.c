#include "client/errand.h"

#include "base/env.h"

#include <stdio.h>

enum { SHOWN_LEN_MAX = 120 }; /* of an id in a sentence: the reason must fit, too */

void hf_errand_begin(hf_errand *e, const char *verb, hf_str id)
{
    e->verb = verb;
    e->id = id;
    hf_arena_init_in(&e->arena, hf_env_memory(hf_env_posix()), e->room, sizeof e->room);
    hf_op_init(&e->op);
    e->timeout = hf_nanoseconds(0);
}

hf_status hf_errand_end(hf_errand *e)
{
    hf_arena_deinit(&e->arena);
    return e->op.status == HF_OK ? HF_OK : hf_data_give_up(&e->op);
}

/* A failure begins with the verb; here the workflow comes behind it. */
static hf_status name_workflow(hf_errand *e)
{
    char text[HF_MESSAGE_LEN_MAX];
    size_t len = strlen(e->verb);
    if (strncmp(e->op.message, e->verb, len) != 0) {
        return e->op.status;
    }
    (void)snprintf(text, sizeof text, "%s", e->op.message + len);
    int shown = e->id.len > SHOWN_LEN_MAX ? SHOWN_LEN_MAX : (int)e->id.len;
    bool is_cut = (size_t)shown < e->id.len;
    while (is_cut && shown > 0 && ((unsigned char)e->id.data[shown] & 0xc0) == 0x80) {
        shown--; /* not within a character */
    }
    return hf_fail_at(&e->op, e->op.status, e->verb, "%s of workflow '%.*s%s'%s", e->verb, shown, e->id.data,
                      is_cut ? "..." : "", text);
}

hf_status hf_errand_ask(hf_errand *e, hf_service *service, hf_method method, const void *request)
{
    if (e->arena.status != HF_OK) {
        (void)hf_fail(&e->op, HF_ERR_NOMEM, "%s: no memory to ask", e->verb);
        return name_workflow(e);
    }
    hf_call_init(&e->call, method, request, &e->arena, NULL);
    e->call.timeout = e->timeout;
    e->call.in_process = true;
    e->call.verb = e->verb;
    return hf_service_ask(&e->op, service, &e->call) == HF_OK ? HF_OK : name_workflow(e);
}
