/* hf_value: a result with several holders. It does not belong to a runtime, so its memory comes from the operating
 * system's environment. The last holder may release it on any thread. */
#include "fiber/sync/value.h"

#include "fiber/sched/wait.h"

#include <string.h>

static hf_value *make(size_t head_len, size_t tail_len)
{
    if (tail_len > SIZE_MAX - head_len) {
        return NULL;
    }
    hf_env *env = hf_env_posix();
    hf_value *value = env->ops->allocate(env, head_len + tail_len, 0);
    if (value != NULL) {
        memset(value, 0, head_len);
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
    hf_value *value = ret_value != NULL ? make(sizeof(hf_value_object), 0) : NULL;
    if (value == NULL) {
        if (release != NULL) { /* `data` is taken also on failure */
            release(data);
        }
        return ret_value == NULL ? refuse(HF_ERR_MISUSE, "hf_value_new", "hf_value_new needs a place for the value")
                                 : refuse(HF_ERR_NOMEM, "hf_value_new", "no memory for a value");
    }
    hf_value_object *object = HF_CONTAINER(value, hf_value_object, head);
    object->head.is_object = true;
    object->head.len = len;
    object->data = data;
    object->release = release;
    *ret_value = value;
    return HF_OK;
}

hf_status hf_value_copy(const void *data, size_t len, hf_value **ret_value)
{
    if (ret_value == NULL || (data == NULL && len > 0)) {
        return refuse(HF_ERR_MISUSE, "hf_value_copy", "hf_value_copy needs bytes and a place for the value");
    }
    hf_value *value = make(sizeof *value, len);
    if (value == NULL) {
        return refuse(HF_ERR_NOMEM, "hf_value_copy", "no memory for a copy of the bytes");
    }
    value->len = len;
    if (len > 0) {
        memcpy(value + 1, data, len);
    }
    *ret_value = value;
    return HF_OK;
}

hf_value *hf_value_ref(hf_value *value)
{
    return value != NULL ? hf_value_hold(value) : NULL;
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
    hf_env *env = hf_env_posix();
    if (value->is_object) {
        hf_value_object *object = HF_CONTAINER(value, hf_value_object, head);
        if (object->release != NULL) {
            object->release(object->data);
        }
        env->ops->release(env, object, sizeof *object);
    } else {
        env->ops->release(env, value, sizeof *value + value->len);
    }
}

void *hf_value_data(const hf_value *value)
{
    if (value == NULL) {
        return NULL;
    }
    return hf_value_bytes(value);
}

size_t hf_value_len(const hf_value *value)
{
    return value != NULL ? value->len : 0;
}
