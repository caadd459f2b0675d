#include "client/errand.h"

#include "base/env.h"

void hf_errand_begin(hf_errand *e, const char *verb, hf_str id)
{
    hf_assert(verb != NULL);
    e->verb = verb;
    e->id = id;
    hf_arena_init_in(&e->arena, hf_env_memory(hf_env_posix()), e->room, sizeof e->room);
    hf_op_init(&e->op);
    e->timeout = hf_nanoseconds(0);
}

hf_status hf_errand_end(hf_errand *e)
{
    hf_assert(e->op.status == HF_OK || e->op.message[0] != '\0'); /* a failure has its sentence */
    hf_arena_deinit(&e->arena);
    return e->op.status == HF_OK ? HF_OK : hf_failure_raise_op(&e->op);
}

void hf_errand_again(hf_errand *e)
{
    hf_arena_deinit(&e->arena);
    hf_arena_init(&e->arena, hf_env_memory(hf_env_posix())); /* its room is not handed out twice */
    hf_op_init(&e->op);
}

int64_t hf_errand_until(hf_span timeout)
{
    int64_t span = timeout.ns != 0 ? timeout.ns : INT64_MAX;
    int64_t now = hf_now(NULL).ns;
    return span > INT64_MAX - now ? INT64_MAX : now + span;
}

int64_t hf_errand_left(int64_t until_ns)
{
    return until_ns == INT64_MAX ? INT64_MAX : until_ns - hf_now(NULL).ns;
}

hf_status hf_errand_raise(hf_errand *e, const hf_pb_failure *failure, const char *type, hf_str message)
{
    hf_assert(type != NULL);
    hf_op_init(&e->op);
    return failure != NULL ? hf_failure_raise_of(HF_ERR_FAILED, failure)
                           : hf_failure_raise(HF_ERR_FAILED, type, &(hf_pb_failure){.message = message});
}

hf_status hf_errand_ask(hf_errand *e, hf_service *service, hf_method method, const void *request)
{
    hf_assert(method < HF_METHOD_COUNT && request != NULL);
    hf_call_init(&e->call, method, request, &e->arena, NULL);
    e->call.timeout = e->timeout;
    e->call.in_process = true;
    e->call.verb = e->verb;
    e->call.workflow_id = e->id;
    if (e->arena.status != HF_OK) {
        return hf_call_report(&e->op, &e->call, HF_ERR_NOMEM, ": no memory to ask", "");
    }
    return hf_service_ask(&e->op, service, &e->call);
}

hf_str hf_id_or_random(hf_op *op, const char *given, char room[HF_UUID_LEN])
{
    if (given != NULL) {
        return hf_str_of(given);
    }
    _Static_assert(HF_UUID_LEN - 1 <= HF_ERRAND_TEXT_LEN_MAX, "a random id is short enough to be an id");
    if (hf_uuid_make(NULL, room) != HF_OK) {
        (void)hf_fail(op, HF_ERR_IO, "no random numbers for an id");
        return (hf_str){NULL, 0};
    }
    return hf_str_of(room);
}

void hf_page_token_init(hf_page_token *token)
{
    hf_arena_init(&token->arena, hf_env_memory(hf_env_posix()));
}

void hf_page_token_deinit(hf_page_token *token)
{
    hf_arena_deinit(&token->arena);
}

bool hf_page_token_next(hf_errand *e, hf_page_token *token, hf_str from, hf_str *ret_next)
{
    hf_assert(e->op.status == HF_OK);
    hf_arena_reset(&token->arena);
    *ret_next = hf_arena_copy(&token->arena, from);
    if (token->arena.status != HF_OK) {
        (void)hf_fail(&e->op, HF_ERR_NOMEM, "%s: no memory for a page", e->verb);
        return false;
    }
    hf_assert(ret_next->len == from.len);
    if (from.len > 0) {
        hf_errand_again(e);
    }
    return from.len > 0;
}
