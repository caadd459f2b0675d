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
