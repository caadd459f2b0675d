/* Converters: what callers get of a value. The depot itself keeps, compares, folds and writes the bytes.
 *
 * A value that is fetched is decoded on the fiber of its fetch, before it lands: if that fails, the fetch has failed. A
 * value that comes from the source, or from a write, is decoded by the first one who reads it; the others wait for that
 * (depot-C1). Either way the result hangs on the snapshot, so it is made once for each value in memory.
 *
 * depot-C1  What .decode made of a snapshot's value is set once, and never changed. */
#include "depot/depot_private.h"
#include "depot/window.h"

#include "fiber/verbs.h"

typedef struct converting {
    const hf_depot *depot;
    const hf_value *from;
    hf_value *to;
    bool encodes;
} converting;

static hf_status convert(void *arg)
{
    converting *one = arg;
    const hf_depot_options *options = &one->depot->options;
    return one->encodes ? options->encode(options->state, one->from, &one->to)
                        : options->decode(options->state, one->from, &one->to);
}

/* Where the options say. A call of hf_block that has begun is waited for, so `one` may lie on the stack. */
static hf_status run(converting *one, hf_value **ret_value)
{
    const hf_depot *depot = one->depot;
    hf_status status =
        depot->options.compute != NULL ? hf_block(convert, one, .on = depot->options.compute) : convert(one);
    if (status == HF_OK && one->to == NULL) {
        status = hf_raise(HF_ERR_INVALID, "%s of depot '%s' returned HF_OK without a value",
                          one->encodes ? ".encode" : ".decode", depot->name);
    }
    if (status != HF_OK) {
        hf_value_unref(one->to);
        return status;
    }
    *ret_value = one->to;
    return HF_OK;
}

bool hf_depot_decodes(const hf_depot *depot, const hf_value *value)
{
    return depot->options.decode != NULL &&
           !hf_window_is_list(hf_str_of_len(hf_value_data(value), hf_value_len(value)));
}

hf_status hf_depot_decode(hf_depot *depot, const hf_value *value, hf_value **ret_object)
{
    hf_assert(depot->options.decode != NULL && value != NULL);
    converting one = {.depot = depot, .from = value};
    return run(&one, ret_object);
}

void hf_snap_set_object(hf_snap *snap, hf_value *object)
{
    hf_assert(atomic_load_explicit(&snap->object, memory_order_relaxed) == NULL); /* depot-C1 */
    atomic_store_explicit(&snap->object, hf_value_ref(object), memory_order_release);
}

static hf_status decode_once(hf_depot *depot, hf_snap *snap, hf_value **ret_value)
{
    hf_value *object = atomic_load_explicit(&snap->object, memory_order_acquire);
    if (object == NULL) {
        hf_value *made = NULL;
        HF_TRY(hf_depot_decode(depot, snap->value, &made));
        hf_snap_set_object(snap, made);
        hf_value_unref(made);
        object = made; /* the snapshot has a reference */
    }
    *ret_value = hf_value_ref(object);
    return HF_OK;
}

hf_status hf_snap_give(hf_depot *depot, hf_snap *snap, hf_value **ret_value)
{
    hf_assert(snap->kind == HF_ENTRY_VALUE && snap->value != NULL); /* DP2 */
    if (!hf_depot_decodes(depot, snap->value)) {
        *ret_value = hf_value_ref(snap->value);
        return HF_OK;
    }
    hf_value *object = atomic_load_explicit(&snap->object, memory_order_acquire);
    if (object != NULL) {
        *ret_value = hf_value_ref(object);
        return HF_OK;
    }
    hf_key_guard *guard = NULL;
    HF_TRY(hf_keylock_lock(depot->decoding, &snap, sizeof snap, &guard)); /* depot-C1 */
    hf_status status = decode_once(depot, snap, ret_value);
    (void)hf_key_unlock(guard);
    return status;
}

hf_status hf_depot_put_value_with(hf_depot *depot, hf_depot_key key, const hf_value *object,
                                  const hf_depot_write_options *options)
{
    HF_OPTIONS(hf_depot_write_options, options, hf_depot_put_value);
    HF_TRY(HF_VERB_ALLOWED(hf_depot_put_value));
    HF_TRY(hf_depot_enter(depot, "hf_depot_put_value"));
    hf_value *bytes = NULL;
    hf_status status = HF_OK;
    if (object == NULL || depot->options.encode == NULL) {
        hf_op op;
        hf_op_init(&op);
        (void)hf_fail_at(&op, HF_ERR_MISUSE, "hf_depot_put_value",
                         "hf_depot_put_value needs an object, and .encode of depot '%s'", depot->name);
        status = hf_depot_raise(depot, &op);
    } else {
        converting one = {.depot = depot, .from = object, .encodes = true};
        status = run(&one, &bytes);
    }
    if (status == HF_OK) {
        status = hf_depot_put_with(depot, key, hf_value_data(bytes), hf_value_len(bytes), options);
    }
    hf_value_unref(bytes);
    hf_depot_leave(depot);
    return status;
}
