/* Executions: the handles of workflows. */
#include "base/env.h"
#include "client/errand.h"
#include "fiber/verbs.h"

hf_status hf_execution_make(hf_op *op, const hf_execution *like, hf_execution **ret_execution)
{
    hf_arena arena;
    hf_assert(like->service != NULL && like->id.len > 0);
    hf_assert(!like->is_bound || (like->run_id.len > 0 && like->first_run_id.len == 0));
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_execution *execution = HF_ARENA_NEW(&arena, hf_execution);
    hf_execution made = {
        .service = like->service,
        .namespace_ = hf_arena_copy(&arena, like->namespace_),
        .id = hf_arena_copy(&arena, like->id),
        .run_id = hf_arena_copy(&arena, like->run_id),
        .first_run_id = hf_arena_copy(&arena, like->first_run_id),
        .is_bound = like->is_bound,
    };
    made.arena = arena;
    if (arena.status != HF_OK) {
        hf_arena_deinit(&arena);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for an execution");
    }
    *execution = made;
    (void)atomic_fetch_add_explicit(&like->service->executions, 1, memory_order_relaxed);
    *ret_execution = execution;
    return HF_OK;
}

static hf_status check_execution(hf_op *op, const char *id, const hf_execution_options *o)
{
    HF_TRY(hf_text_check(op, "hf_execution_new", "the id", id != NULL ? id : "", 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, "hf_execution_new", ".namespace_", o->namespace_, 1, HF_ERRAND_TEXT_LEN_MAX));
    return hf_text_check(op, "hf_execution_new", ".run_id", o->run_id, 0, HF_ERRAND_TEXT_LEN_MAX);
}

hf_status hf_execution_new_with(hf_service *service, const char *id, hf_execution **ret_execution,
                                const hf_execution_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_execution_new));
    HF_OPTIONS(hf_execution_options, options, hf_execution_new);
    if (service == NULL || ret_execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_execution_new needs a service and a place for the execution");
    }
    hf_op op;
    hf_op_init(&op);
    hf_status status = check_execution(&op, id, options);
    if (status == HF_OK) {
        hf_execution like = {
            .service = service,
            .namespace_ = hf_namespace_or(options->namespace_, service),
            .id = hf_str_of(id),
            .run_id = hf_text_or(options->run_id, ""),
            .is_bound = options->run_id != NULL && options->run_id[0] != '\0',
        };
        status = hf_execution_make(&op, &like, ret_execution);
    }
    return status == HF_OK ? HF_OK : hf_failure_raise_op(&op);
}

void hf_execution_free(hf_execution *execution)
{
    if (execution != NULL) {
        hf_arena arena = execution->arena; /* copied: the execution itself lies in the arena */
        hf_service *service = execution->service;
        hf_arena_deinit(&arena);
        int before = atomic_fetch_sub_explicit(&service->executions, 1, memory_order_release);
        hf_assert(before > 0); /* the service may be closed from here on */
    }
}

const char *hf_execution_id(const hf_execution *execution)
{
    return execution != NULL ? execution->id.data : "";
}

const char *hf_execution_run_id(const hf_execution *execution)
{
    return execution != NULL ? execution->run_id.data : "";
}
