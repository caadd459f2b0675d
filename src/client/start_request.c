/* The request of a start: hf_start, hf_start_and_signal and hf_start_and_update send it. */
#include "base/env.h"
#include "base/json.h"
#include "base/span.h"
#include "client/errand.h"
#include "client/header.h"
#include "history/limits.h"
#include "history/payload.h"

#include <string.h>

static int32_t reuse_of(hf_id_reuse reuse)
{
    static const int32_t MAP[] = {
        [HF_ID_REUSE_DEFAULT] = HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
        [HF_ID_REUSE_ALLOW] = HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
        [HF_ID_REUSE_FAILED_ONLY] = HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
        [HF_ID_REUSE_REJECT] = HF_WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
    };
    _Static_assert(HF_COUNT_OF(MAP) == HF_ID_REUSE_REJECT + 1, "every policy has its line");
    return (size_t)reuse < HF_COUNT_OF(MAP) ? MAP[reuse] : MAP[0];
}

static int32_t conflict_of(hf_id_conflict conflict)
{
    static const int32_t MAP[] = {
        [HF_ID_CONFLICT_DEFAULT] = HF_WORKFLOW_ID_CONFLICT_POLICY_FAIL,
        [HF_ID_CONFLICT_FAIL] = HF_WORKFLOW_ID_CONFLICT_POLICY_FAIL,
        [HF_ID_CONFLICT_USE_EXISTING] = HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
        [HF_ID_CONFLICT_TERMINATE] = HF_WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
    };
    _Static_assert(HF_COUNT_OF(MAP) == HF_ID_CONFLICT_TERMINATE + 1, "every policy has its line");
    return (size_t)conflict < HF_COUNT_OF(MAP) ? MAP[conflict] : MAP[0];
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

static hf_status check_spans(hf_op *op, const char *verb, const hf_start_options *o)
{
    const struct {
        const char *what;
        hf_span span;
    } spans[] = {
        {".execution_timeout", o->execution_timeout},
        {".run_timeout", o->run_timeout},
        {".task_timeout", o->task_timeout},
        {".start_delay", o->start_delay},
        {".retry_initial", o->retry_initial},
        {".retry_max", o->retry_max},
        {".keep", o->keep},
    };
    for (size_t i = 0; i < HF_COUNT_OF(spans); i++) {
        HF_TRY(hf_span_check(op, verb, spans[i].what, spans[i].span, 0));
    }
    return HF_OK;
}

/* A start without .attempts_max has no retry policy. */
static bool is_retried(const hf_start_options *o)
{
    return o->attempts_max > 1 || o->attempts_max == HF_UNLIMITED;
}

static hf_status check_retries(hf_op *op, const char *verb, const hf_start_options *o)
{
    HF_TRY(hf_number_check(op, verb, ".attempts_max", o->attempts_max, HF_MAY_BE_OFF | HF_MAY_BE_UNLIMITED));
    bool has_more = o->retry_initial.ns != 0 || o->retry_max.ns != 0 || o->retry_coefficient != 0 || /* also NaN */
                    o->final_types != NULL;
    if (has_more && !is_retried(o)) {
        return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: an option about retries needs .attempts_max above 1", verb);
    }
    if (o->retry_coefficient != 0 && !(o->retry_coefficient >= 1 && o->retry_coefficient <= HF_RETRY_COEFFICIENT_MAX)) {
        return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: .retry_coefficient is %g: it must be 1 to %d", verb,
                          o->retry_coefficient, HF_RETRY_COEFFICIENT_MAX);
    }
    hf_span first = o->retry_initial.ns > 0 ? o->retry_initial : hf_seconds(1);
    if (hf_duration_of_bound(o->retry_max).has && o->retry_max.ns < first.ns) {
        return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: .retry_max is %g s, below .retry_initial of %g s%s", verb,
                          (double)o->retry_max.ns / 1e9, (double)first.ns / 1e9,
                          o->retry_initial.ns > 0 ? "" : ", the default");
    }
    size_t len = 0;
    for (size_t i = 0; o->final_types != NULL && o->final_types[i] != NULL && len <= HF_PAYLOAD_LEN_MAX; i++) {
        len += strlen(o->final_types[i]) + 1;
    }
    return len <= HF_PAYLOAD_LEN_MAX ? HF_OK
                                     : hf_fail_at(op, HF_ERR_TOO_BIG, verb, "%s: .final_types has more than %u bytes",
                                                  verb, HF_PAYLOAD_LEN_MAX);
}

static bool is_there_before(const hf_entry *entries, size_t idx)
{
    for (size_t i = 0; i < idx; i++) {
        if (strcmp(entries[i].key, entries[idx].key) == 0) {
            return true;
        }
    }
    return false;
}

hf_status hf_entries_check(hf_op *op, const char *verb, const char *what, const hf_entry *entries)
{
    for (size_t i = 0; entries != NULL && entries[i].key != NULL; i++) {
        const hf_entry *entry = &entries[i];
        if (i == HF_ENTRIES_MAX) {
            return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: %s has more than %d keys", verb, what, HF_ENTRIES_MAX);
        }
        HF_TRY(hf_text_check(op, verb, "a key", entry->key, 1, HF_ERRAND_TEXT_LEN_MAX));
        HF_TRY(hf_payload_check(op, what, entry->value));
        if (entry->value.data == NULL && entry->value.encoding == NULL) {
            return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: %s: the key '%.100s' has no value", verb, what,
                              entry->key);
        }
        if (is_there_before(entries, i)) {
            return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: %s has the key '%.100s' twice", verb, what, entry->key);
        }
    }
    return HF_OK;
}

static hf_status check_start(hf_op *op, const char *verb, const char *type, hf_payload in, const hf_start_options *o)
{
    HF_TRY(hf_text_check(op, verb, "the type", type != NULL ? type : "", 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, ".id", o->id, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, ".task_queue", o->task_queue, 1, HF_QUEUE_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, ".namespace_", o->namespace_, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, ".request_id", o->request_id, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, ".cron", o->cron, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, ".summary", o->summary, 0, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(check_spans(op, verb, o));
    HF_TRY(check_retries(op, verb, o));
    HF_TRY(hf_entries_check(op, verb, ".memo", o->memo));
    HF_TRY(hf_entries_check(op, verb, ".search_attributes", o->search_attributes));
    return hf_payload_check(op, "the input of the workflow", in);
}

/* ---- The request ------------------------------------------------------------------------------------------------- */

static hf_pb_retry_policy retry_of(hf_arena *arena, const hf_start_options *o)
{
    hf_pb_retry_policy retry = {
        .initial_interval = hf_duration_of_bound(o->retry_initial),
        .backoff_coefficient = o->retry_coefficient,
        .maximum_interval = hf_duration_of_bound(o->retry_max),
        .maximum_attempts = o->attempts_max > 0 ? o->attempts_max : 0,
    };
    size_t count = 0;
    while (o->final_types != NULL && o->final_types[count] != NULL) {
        count++;
    }
    retry.non_retryable_error_types.items = count > 0 ? HF_ARENA_ARRAY(arena, hf_str, count) : NULL;
    for (size_t i = 0; retry.non_retryable_error_types.items != NULL && i < count; i++) {
        retry.non_retryable_error_types.items[i] = hf_str_of(o->final_types[i]);
        retry.non_retryable_error_types.count++;
    }
    return retry;
}

static size_t entries_count(const hf_entry *entries)
{
    size_t count = 0;
    while (entries != NULL && entries[count].key != NULL) {
        count++;
    }
    hf_assert(count <= HF_ENTRIES_MAX);
    return count;
}

static hf_pb_payload *value_of(hf_arena *arena, const hf_entry *entry)
{
    hf_pb_payloads *list = hf_payload_encode(arena, entry->value);
    hf_assert(list != NULL || arena->status != HF_OK); /* hf_entries_check has seen a value */
    return list != NULL ? list->payloads.items : NULL;
}

void hf_entries_memo(hf_arena *arena, const hf_entry *entries, hf_pb_memo *ret_memo)
{
    size_t count = entries_count(entries);
    ret_memo->fields.items = HF_ARENA_ARRAY(arena, hf_pb_memo_fields_entry, count);
    for (size_t i = 0; arena->status == HF_OK && i < count; i++) {
        ret_memo->fields.items[ret_memo->fields.count++] = (hf_pb_memo_fields_entry){
            .key = hf_arena_copy(arena, hf_str_of(entries[i].key)), .value = value_of(arena, &entries[i])};
    }
}

void hf_entries_search(hf_arena *arena, const hf_entry *entries, hf_pb_search_attributes *ret_attributes)
{
    size_t count = entries_count(entries);
    ret_attributes->indexed_fields.items = HF_ARENA_ARRAY(arena, hf_pb_search_attributes_indexed_fields_entry, count);
    for (size_t i = 0; arena->status == HF_OK && i < count; i++) {
        ret_attributes->indexed_fields.items[ret_attributes->indexed_fields.count++] =
            (hf_pb_search_attributes_indexed_fields_entry){.key = hf_arena_copy(arena, hf_str_of(entries[i].key)),
                                                           .value = value_of(arena, &entries[i])};
    }
}

hf_pb_payload hf_summary_of(hf_arena *arena, const char *text)
{
    hf_buf buf;
    hf_json json;
    hf_buf_init(&buf, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_json_init(&json, &buf);
    hf_json_string(&json, text);
    if (buf.status != HF_OK) {
        arena->status = buf.status;
    }
    hf_str copy = hf_arena_copy(arena, hf_str_of_len(buf.data, buf.len));
    hf_buf_deinit(&buf);
    return hf_payload_json(arena, copy);
}

/* The parts of the request that most starts do not have. */
static void add_extras(hf_arena *arena, const hf_start_options *o, hf_start_request *r)
{
    if (is_retried(o)) {
        r->retry = retry_of(arena, o);
        r->pb.retry_policy = &r->retry;
    }
    if (o->memo != NULL) {
        hf_entries_memo(arena, o->memo, &r->memo);
        r->pb.memo = &r->memo;
    }
    if (o->search_attributes != NULL) {
        hf_entries_search(arena, o->search_attributes, &r->search_attributes);
        r->pb.search_attributes = &r->search_attributes;
    }
    if (o->summary != NULL) {
        r->summary = hf_summary_of(arena, o->summary);
        r->metadata.summary = &r->summary;
        r->pb.user_metadata = &r->metadata;
    }
}

hf_status hf_start_request_make(hf_errand *e, const hf_service *service, hf_arena *arena, const char *type,
                                hf_payload in, hf_id_conflict conflict, const hf_start_options *o,
                                hf_start_request *ret_request)
{
    hf_start_request *r = ret_request;
    memset(r, 0, sizeof *r);
    HF_TRY(check_start(&e->op, e->verb, type, in, o));
    r->type.name = hf_str_of(type);
    r->queue = (hf_pb_task_queue){.name = hf_text_or(o->task_queue, "default"), .kind = HF_TASK_QUEUE_KIND_NORMAL};
    r->pb = (hf_pb_start_workflow_execution_request){
        .namespace = hf_namespace_or(o->namespace_, service),
        .workflow_id = hf_id_or_random(&e->op, o->id, r->id),
        .workflow_type = &r->type,
        .task_queue = &r->queue,
        .input = hf_payload_encode(arena, in),
        .workflow_execution_timeout = hf_duration_of_bound(o->execution_timeout),
        .workflow_run_timeout = hf_duration_of_bound(o->run_timeout),
        .workflow_task_timeout = hf_duration_of_bound(o->task_timeout),
        .identity = HF_STR("client"),
        .workflow_id_reuse_policy = reuse_of(o->id_reuse),
        .workflow_id_conflict_policy = conflict_of(conflict),
        .workflow_start_delay = hf_duration_of_bound(o->start_delay),
        .cron_schedule = hf_text_or(o->cron, ""),
        .holdfast_keep = hf_duration_of_bound(o->keep),
    };
    /* A random workflow id can serve as the request id, too. */
    r->pb.request_id = o->id == NULL && o->request_id == NULL ? r->pb.workflow_id
                                                              : hf_id_or_random(&e->op, o->request_id, r->request_id);
    add_extras(arena, o, r);
    HF_TRY(hf_header_make(&e->op, e->verb, service, o->header, arena, &r->pb.header));
    hf_assert(e->op.status != HF_OK || (r->pb.workflow_id.len > 0 && r->pb.request_id.len > 0));
    e->id = r->pb.workflow_id;
    return e->op.status; /* the arena tells of a lack of memory */
}
