/* Headers as workflows and activities read them: what came with a start, a signal, a query, an update or an activity. A workflow
 * keeps a header as the bytes of its message, because few are read. */
#include "client/header.h"
#include "worker/activity_private.h"
#include "worker/wf.h"

#include "fiber/crew/crew_private.h"
#include "fiber/verbs.h"
#include "history/limits.h"

static bool is_ours(hf_str key)
{
    hf_str ours = HF_STR(HF_HEADER_OURS);
    return key.len >= ours.len && memcmp(key.data, ours.data, ours.len) == 0;
}

/* ---- Keeping ------------------------------------------------------------------------------------------------------- */

bool hf_wf_header_keep(hf_wf *wf, const hf_pb_header *header, hf_str *ret_kept)
{
    hf_buf bytes;
    *ret_kept = (hf_str){NULL, 0};
    if (header == NULL || header->fields.count == 0) {
        return true;
    }
    hf_allocator memory = wf->worker->memory;
    hf_buf_init(&bytes, memory, HF_HISTORY_LEN_MAX);
    hf_pb_encode(&hf_pb_header_type, header, &bytes);
    char *copy = bytes.status == HF_OK ? memory.allocate(memory.state, bytes.len + 1, 1) : NULL;
    if (copy != NULL) {
        hf_assert(bytes.len > 0); /* it has fields */
        memcpy(copy, bytes.data, bytes.len);
        *ret_kept = hf_str_of_len(copy, bytes.len);
    }
    hf_buf_deinit(&bytes);
    return copy != NULL;
}

void hf_wf_header_free(hf_wf *wf, hf_str *kept)
{
    if (kept->data != NULL) {
        hf_allocator memory = wf->worker->memory;
        memory.release(memory.state, (void *)(uintptr_t)kept->data, kept->len + 1);
        *kept = (hf_str){NULL, 0};
    }
}

/* ---- Reading ------------------------------------------------------------------------------------------------------- */

/* The header that came with the calling code, decoded in the arena if need be. False: the caller has none. */
static bool find(hf_arena *arena, hf_str kept, hf_pb_header *ret_header)
{
    *ret_header = (hf_pb_header){0};
    return kept.len == 0 || hf_pb_decode(NULL, &hf_pb_header_type, kept, arena, ret_header) == HF_OK;
}

static hf_status give(const hf_pb_header *header, const char *verb, const char *key, hf_payload *ret_value)
{
    for (size_t i = 0; i < header->fields.count; i++) {
        const hf_pb_header_fields_entry *field = &header->fields.items[i];
        if (field->value != NULL && hf_str_equal(field->key, hf_str_of(key)) && !is_ours(field->key)) {
            hf_pb_payloads one = {.payloads = {field->value, 1}};
            return hf_payload_decode(&one, hf_wf_self_payloads(), ret_value) == HF_OK
                       ? HF_OK
                       : hf_raise(HF_ERR_NOMEM, "%s: no memory for '%.100s'", verb, key);
        }
    }
    return hf_raise(HF_ERR_NOT_FOUND, "%s: the header has no field '%.100s'", verb, key);
}

static hf_status read_kept(hf_str kept, const char *verb, const char *key, hf_payload *ret_value)
{
    hf_arena arena;
    hf_pb_header header;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_status status = find(&arena, kept, &header) ? give(&header, verb, key, ret_value)
                                                   : hf_raise(HF_ERR_NOMEM, "%s: no memory for a header", verb);
    hf_arena_deinit(&arena);
    return status;
}

/* Whether the verb may be called here; in a process that fork() made, and in a hook of a join, it may not. */
static hf_status enter(void)
{
    HF_VERB_ENTER(self, hf_header_get, NULL);
    HF_LEAVE(self, HF_OK);
}

/* What the calling fiber of a workflow reads. */
static hf_str kept_of(const hf_wf *wf)
{
    const hf_wf_handling *handling = hf_wf_handling_self();
    return handling != NULL ? handling->header : wf->header;
}

hf_status hf_header_get(const char *key, hf_payload *ret_value)
{
    static const char VERB[] = "hf_header_get";
    HF_TRY(enter());
    const hf_wf *wf = hf_wf_self();
    const hf_activity_work *act = wf == NULL ? hf_local_get(&hf_activity_local) : NULL;
    if (key == NULL || ret_value == NULL || (wf == NULL && act == NULL)) {
        return hf_raise(HF_ERR_MISUSE, "%s needs a key and a place for its value, in a workflow or an activity", VERB);
    }
    if (wf != NULL) {
        return read_kept(kept_of(wf), VERB, key, ret_value);
    }
    static const hf_pb_header NONE = {0};
    hf_assert(act->task != NULL);
    return give(act->task->header != NULL ? act->task->header : &NONE, VERB, key, ret_value);
}

static hf_status enter_of_signal(void)
{
    HF_VERB_ENTER(self, hf_header_of_signal, NULL);
    HF_LEAVE(self, HF_OK);
}

hf_status hf_header_of_signal(const char *key, hf_payload *ret_value)
{
    static const char VERB[] = "hf_header_of_signal";
    HF_TRY(enter_of_signal());
    const hf_wf *wf = hf_wf_self();
    if (wf == NULL || key == NULL || ret_value == NULL) {
        return hf_raise(HF_ERR_MISUSE, "%s needs a key and a place for its value, in a workflow", VERB);
    }
    return read_kept(wf->taken_header, VERB, key, ret_value);
}

/* ---- Sending ------------------------------------------------------------------------------------------------------- */

static hf_status put_all(hf_header *to, const hf_pb_header *from)
{
    for (size_t i = 0; i < from->fields.count; i++) {
        const hf_pb_header_fields_entry *field = &from->fields.items[i];
        if (field->value == NULL || is_ours(field->key)) {
            continue;
        }
        hf_payload value = hf_payload_none();
        hf_pb_payloads one = {.payloads = {field->value, 1}};
        HF_TRY(hf_payload_decode(&one, NULL, &value));
        char key[HF_KEY_LEN_MAX + 1];
        size_t len = field->key.len < sizeof key ? field->key.len : sizeof key - 1;
        hf_assert(len <= HF_KEY_LEN_MAX);
        memcpy(key, field->key.data, len);
        key[len] = '\0';
        hf_status status = hf_header_put(to, key, value);
        hf_payload_free(&value);
        HF_TRY(status);
    }
    return HF_OK;
}

hf_status hf_header_forward(void *arg, hf_header *header)
{
    (void)arg;
    const hf_wf *wf = hf_wf_self();
    const hf_activity_work *act = wf == NULL ? hf_local_get(&hf_activity_local) : NULL;
    if (act != NULL) {
        return act->task->header != NULL ? put_all(header, act->task->header) : HF_OK;
    }
    if (wf == NULL || kept_of(wf).len == 0) {
        return HF_OK;
    }
    hf_arena arena;
    hf_pb_header from;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_status status =
        find(&arena, kept_of(wf), &from) ? put_all(header, &from) : hf_raise(HF_ERR_NOMEM, "no memory for a header");
    hf_arena_deinit(&arena);
    return status;
}

hf_pb_header *hf_wf_header_copy(const hf_pb_header *header, hf_arena *arena)
{
    hf_buf bytes;
    hf_pb_header *copy = header != NULL ? HF_ARENA_NEW(arena, hf_pb_header) : NULL;
    if (copy != NULL) {
        hf_buf_init(&bytes, hf_env_memory(hf_env_posix()), HF_HISTORY_LEN_MAX);
        hf_pb_encode(&hf_pb_header_type, header, &bytes);
        hf_str wire =
            bytes.status == HF_OK ? hf_arena_copy(arena, hf_str_of_len(bytes.data, bytes.len)) : (hf_str){NULL, 0};
        if (bytes.status != HF_OK || hf_pb_decode(NULL, &hf_pb_header_type, wire, arena, copy) != HF_OK) {
            arena->status = HF_ERR_NOMEM;
        }
        hf_buf_deinit(&bytes);
    }
    return copy;
}

hf_status hf_wf_header_make(const char *verb, const hf_entry *entries)
{
    hf_wf *wf = hf_wf_self();
    if (wf == NULL) {
        return HF_OK; /* the verb itself says what is wrong */
    }
    wf->out_header = NULL;
    if ((entries == NULL && wf->worker->service->on_header == NULL) || hf_crew_self_is_evicted() || wf->has_closed) {
        return HF_OK;
    }
    hf_op op;
    hf_op_init(&op);
    hf_crew_self_reads(true); /* the hook looks, and changes nothing */
    hf_status status = hf_header_make(&op, verb, wf->worker->service, entries, &wf->recorder.arena, &wf->out_header);
    hf_crew_self_reads(false);
    wf->is_nomem |= status == HF_ERR_NOMEM;
    return status == HF_OK ? HF_OK : hf_failure_raise_op(&op);
}
