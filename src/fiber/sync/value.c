/* hf_value: a result with several holders. It does not belong to a runtime, so its memory comes from the operating
 * system's environment. The last holder may release it on any thread. */
#include "fiber/sched/wait.h"

#include <string.h>

struct hf_value {
    atomic_uint refs;
    void *data;
    size_t len;
    size_t tail_len; /* bytes of a copy, behind the struct */
    void (*release)(void *data);
};

static hf_value *make(size_t tail_len)
{
    if (tail_len > SIZE_MAX - sizeof(hf_value)) {
        return NULL;
    }
    hf_env *env = hf_env_posix();
    hf_value *value = env->ops->allocate(env, sizeof *value + tail_len, 0);
    if (value != NULL) {
        memset(value, 0, sizeof *value);
        value->tail_len = tail_len;
        atomic_store_explicit(&value->refs, 1, memory_order_relaxed);
    }
    return value;
}

static hf_status refuse(hf_status status, const char *verb, const char *message)
{
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return hf_forked();
    }
    HF_LEAVE(self, hf_refuse_at(self, status, verb, "%s", message));
}

hf_status hf_value_new(void *data, size_t len, void (*release)(void *data), hf_value **ret_value)
{
    hf_value *value = ret_value != NULL ? make(0) : NULL;
    if (value == NULL) {
        if (release != NULL) { /* `data` is taken also on failure */
            release(data);
        }
        return ret_value == NULL ? refuse(HF_ERR_MISUSE, "hf_value_new", "hf_value_new needs a place for the value")
                                 : refuse(HF_ERR_NOMEM, "hf_value_new", "no memory for a value");
    }
    value->data = data;
    value->len = len;
    value->release = release;
    *ret_value = value;
    return HF_OK;
}

hf_status hf_value_copy(const void *data, size_t len, hf_value **ret_value)
{
    if (ret_value == NULL || (data == NULL && len > 0)) {
        return refuse(HF_ERR_MISUSE, "hf_value_copy", "hf_value_copy needs bytes and a place for the value");
    }
    hf_value *value = make(len);
    if (value == NULL) {
        return refuse(HF_ERR_NOMEM, "hf_value_copy", "no memory for a copy of the bytes");
    }
    value->data = value + 1;
    value->len = len;
    if (len > 0) {
        memcpy(value->data, data, len);
    }
    *ret_value = value;
    return HF_OK;
}

hf_value *hf_value_ref(hf_value *value)
{
    if (value != NULL) {
        unsigned before = atomic_fetch_add_explicit(&value->refs, 1, memory_order_relaxed);
        hf_assert(before > 0);
    }
    return value;
}

void hf_value_unref(hf_value *value)
{
    if (value == NULL) {
        return;
    }
    unsigned before = atomic_fetch_sub_explicit(&value->refs, 1, memory_order_acq_rel);
    hf_assert(before > 0);
    if (before > 1) {
        return;
    }
    if (value->release != NULL) {
        value->release(value->data);
    }
    hf_env *env = hf_env_posix();
    env->ops->release(env, value, sizeof *value + value->tail_len);
}

void *hf_value_data(const hf_value *value)
{
    return value != NULL ? value->data : NULL;
}

size_t hf_value_len(const hf_value *value)
{
    return value != NULL ? value->len : 0;
}
