/* Shared by the makers and the release functions of all objects. */
#include "fiber/sync/sync.h"

void *hf_object_new(hf_fiber *self, const char *verb, hf_runtime *option, size_t len, hf_runtime **ret_rt,
                    hf_status *ret_status)
{
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = hf_rt_choose(&op, option);
    if (rt == NULL) {
        op.where = verb;
        *ret_status = hf_op_end(self, &op);
        return NULL;
    }
    void *object = hf_rt_alloc(rt, len);
    if (object == NULL) {
        *ret_status = hf_refuse_at(self, HF_ERR_NOMEM, verb, "%s: no memory for %zu bytes", verb, len);
        return NULL;
    }
    *ret_rt = rt;
    *ret_status = HF_OK;
    return object;
}

hf_status hf_object_in_use(hf_fiber *self, hf_runtime *rt, const char *verb, const char *name)
{
    hf_log(rt, HF_LOG_ERROR, "misuse", "verb=%s name=%s message=still_in_use", verb, name);
    return hf_refuse_at(self, HF_ERR_MISUSE, verb, "'%s' cannot be freed: somebody holds it or waits for it", name);
}

/* ---- Objects with one queue of waiters --------------------------------------------------------------------------- */

static void free_around(hf_waitable *base)
{
    hf_rt_free(base->rt, (char *)base - base->kind->offset, base->kind->len);
}

static void drop_waitable(hf_owned_object *owned)
{
    hf_waitable *base = HF_CONTAINER(owned, hf_waitable, owned);
    if (hf_list_is_empty(&base->waiters)) {
        free_around(base);
    } else {
        hf_owned_in_use(base->rt, base->kind->noun, base->name);
    }
}

hf_waitable *hf_waitable_new(hf_fiber *self, const hf_waitable_kind *kind, const char *verb, bool has_place,
                             const hf_sync_options *options, hf_status *ret_status)
{
    if (!has_place) {
        *ret_status = hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s needs a place for the %s", verb, kind->noun);
        return NULL;
    }
    hf_runtime *rt = NULL;
    char *object = hf_object_new(self, verb, options->runtime, kind->len, &rt, ret_status);
    if (object == NULL) {
        return NULL;
    }
    hf_waitable *base = (hf_waitable *)(void *)(object + kind->offset);
    base->rt = rt;
    base->name = options->name != NULL ? options->name : kind->name;
    base->kind = kind;
    hf_list_init(&base->waiters);
    hf_own(self, &base->owned, drop_waitable);
    return base;
}

hf_status hf_waitable_free(hf_fiber *self, hf_waitable *base, const char *verb)
{
    hf_spin_lock(&base->lock);
    bool is_used = base->kind->is_used(base);
    hf_assert(is_used || hf_list_is_empty(&base->waiters));
    hf_spin_unlock(&base->lock);
    if (is_used) {
        return hf_object_in_use(self, base->rt, verb, base->name);
    }
    HF_TRY(hf_disown(self, &base->owned, verb, base->name));
    free_around(base);
    return HF_OK;
}
