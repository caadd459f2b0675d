/* Handles of updates. Each names one run, because the next run of a chain does not know the updates of the last. */
#include "base/env.h"
#include "client/errand.h"
#include "fiber/verbs.h"

hf_status hf_update_handle_make(hf_op *op, const hf_update_handle *like, hf_update_handle **ret_update)
{
    hf_arena arena;
    hf_assert(like->service != NULL && like->workflow_id.len > 0 && like->id.len > 0);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_update_handle *handle = HF_ARENA_NEW(&arena, hf_update_handle);
    hf_update_handle made = {
        .service = like->service,
        .namespace_ = hf_arena_copy(&arena, like->namespace_),
        .workflow_id = hf_arena_copy(&arena, like->workflow_id),
        .run_id = hf_arena_copy(&arena, like->run_id),
        .id = hf_arena_copy(&arena, like->id),
    };
    made.arena = arena;
    if (arena.status != HF_OK) {
        hf_arena_deinit(&arena);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the handle of an update");
    }
    *handle = made;
    (void)atomic_fetch_add_explicit(&like->service->updates, 1, memory_order_relaxed);
    *ret_update = handle;
    return HF_OK;
}

hf_status hf_update_handle_new(hf_execution *execution, const char *id, hf_update_handle **ret_update)
{
    HF_TRY(HF_VERB_ALLOWED(hf_update_handle_new));
    if (execution == NULL || ret_update == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_update_handle_new needs an execution and a place for the handle");
    }
    hf_op op;
    hf_op_init(&op);
    if (hf_text_check(&op, "hf_update_handle_new", "the id", id != NULL ? id : "", 1, HF_ERRAND_TEXT_LEN_MAX) ==
        HF_OK) {
        hf_update_handle like = {
            .service = execution->service,
            .namespace_ = execution->namespace_,
            .workflow_id = execution->id,
            .run_id = hf_execution_target(execution).run_id,
            .id = hf_str_of(id),
        };
        (void)hf_update_handle_make(&op, &like, ret_update);
    }
    return op.status == HF_OK ? HF_OK : hf_failure_raise_op(&op);
}

void hf_update_handle_free(hf_update_handle *handle)
{
    if (handle != NULL) {
        hf_arena arena = handle->arena; /* copied: the handle itself lies in the arena */
        hf_service *service = handle->service;
        hf_arena_deinit(&arena);
        int before = atomic_fetch_sub_explicit(&service->updates, 1, memory_order_release);
        hf_assert(before > 0); /* the service may be closed from here on */
    }
}

const char *hf_update_handle_id(const hf_update_handle *handle)
{
    return handle != NULL ? handle->id.data : "";
}
