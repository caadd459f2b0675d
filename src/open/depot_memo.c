/* hf_depot_memo: a depot keeps the answers of activities (worker/memo.h, depot/learn.h). */
#include "depot/driven.h"
#include "depot/learn.h"
#include "fiber/enter.h"
#include "worker/memo.h"

#include <string.h>

_Static_assert((int)HF_MEMO_ID_LEN_MAX == HF_DEPOT_ID_LEN_MAX && (int)HF_MEMO_TYPE_LEN_MAX == HF_DEPOT_NAME_LEN_MAX,
               "every place of a memo is a key of a depot");

static hf_depot_key key_of(const hf_memo *memo, const hf_memo_place *place)
{
    hf_assert(place->id.len > 0 && place->id.len <= HF_DEPOT_ID_LEN_MAX);
    return hf_depot_key_of_bytes(memo->ns, place->type, place->id.data, place->id.len);
}

static hf_status check(hf_op *op, const hf_memo *memo, const char *type)
{
    size_t ns_len = memo->ns != NULL ? strlen(memo->ns) : 0;
    if (memo->state == NULL) {
        return hf_fail(op, HF_ERR_MISUSE, ".memo: hf_depot_memo was given no depot, or options that are not its own");
    }
    if (ns_len < 1 || ns_len > HF_DEPOT_NAME_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, ".memo: .ns of hf_depot_memo has %zu bytes: it must have 1 to %d", ns_len,
                       HF_DEPOT_NAME_LEN_MAX);
    }
    if (memo->ttl.ns < 0) {
        return hf_fail(op, HF_ERR_INVALID, ".memo: .ttl of hf_depot_memo is negative");
    }
    if (strlen(type) > HF_DEPOT_NAME_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, ".memo: the name of the activity has %zu bytes: it may have %d",
                       strlen(type), HF_DEPOT_NAME_LEN_MAX);
    }
    return HF_OK;
}

static bool peek(const hf_memo *memo, const hf_memo_place *place, hf_value **ret_value, hf_span *ret_age)
{
    return hf_depot_peek(memo->state, key_of(memo, place), memo->ttl, ret_value, ret_age);
}

static hf_status begin(const hf_memo *memo, const hf_memo_place *place, hf_value **ret_value, hf_span *ret_age,
                       void **ret_ticket)
{
    hf_depot_ticket *ticket = NULL;
    HF_TRY(hf_depot_expect(memo->state, key_of(memo, place), memo->ttl, ret_value, ret_age, &ticket));
    *ret_ticket = ticket;
    return HF_OK;
}

static void keep(const hf_memo *memo, void *ticket, const void *data, size_t len)
{
    HF_IGNORE(hf_depot_learn(ticket, data, len, memo->ttl)); /* counted by the depot; the next one makes it again */
}

static void drop(const hf_memo *memo, void *ticket)
{
    (void)memo;
    hf_depot_forget(ticket);
}

static const hf_memo_ops OPS = {.check = check, .peek = peek, .begin = begin, .keep = keep, .drop = drop};

hf_memo hf_depot_memo_with(hf_depot *depot, const hf_depot_memo_options *options)
{
    hf_depot_memo_options own = {0};
    bool is_good = hf_options_take(&own, sizeof own, options, "hf_depot_memo") == HF_OK;
    hf_span by_default = depot != NULL ? hf_depot_settings(depot)->ttl : hf_nanoseconds(0);
    return (hf_memo){
        .ops = &OPS, /* `check` tells what is wrong with the rest */
        .state = is_good ? depot : NULL,
        .ns = own.ns != NULL ? own.ns : "memo",
        .ttl = own.ttl.ns != 0 ? own.ttl : by_default,
        .key = own.key,
    };
}
