/* A store that outlives the depot that has it: closing it closes nothing.
 *
 *     lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}, .inner = inner}; */
#ifndef HF_TESTS_LENT_H
#define HF_TESTS_LENT_H

#include "store/store.h"

typedef struct lent {
    hf_store base;
    hf_store *inner; /* closed by the test */
} lent;

static hf_status lent_execute(hf_store *store, hf_store_request *request)
{
    hf_store *inner = HF_CONTAINER(store, lent, base)->inner;
    return inner->ops->execute(inner, request);
}

static uint64_t lent_last(hf_store *store)
{
    hf_store *inner = HF_CONTAINER(store, lent, base)->inner;
    return inner->ops->last_commit(inner);
}

static void lent_close(hf_store *store)
{
    (void)store;
}

static const hf_store_ops LENT = {
    .name = "lent", .execute = lent_execute, .last_commit = lent_last, .close = lent_close};

#endif
