#include "support/engine_facts.h"

#include "history/history.h"
#include "service/grpc_code.h"
#include "wire/pb_private.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS_MAX = 64, ID_LEN_MAX = 80, STEP_LEN_MAX = 1000 };

typedef struct sight {
    char id[ID_LEN_MAX];
    char run_id[ID_LEN_MAX];
    int number; /* among the runs of this id, from 1 */
} sight;

typedef struct facts {
    hf_rig *rig;
    hf_buf *out;
    char id[ID_LEN_MAX];  /* whose run ids stand alone in what is printed */
    sight runs[RUNS_MAX]; /* in the order of their first sight */
    size_t run_count;
} facts;

/* Fields that depend on time or chance, or that say nothing about the rules. tests/oracle/text.go has the same. */
static const char *const SKIPPED[] = {
    "request_id",
    "history_size_bytes",
    "prev_auto_reset_points",
    "auto_reset_points",
    "namespace_id",
    "parent_workflow_namespace_id",
    "parent_namespace_id",
    "version",
    "task_id",
    "binary_checksum",
    "worker_version",
    "fork_event_version",
    "parent_initiated_event_version",
    "metering_metadata",
    "sdk_metadata",
    "task_token",
    "next_page_token",
    "backlog_count_hint",
    "poller_scaling_decision",
    "poller_group_id",
    "poller_group_infos",
    "poller_groups_info",
    "link",
    "links",
    "signal_link",
    "principal",
    "state_transition_count",
    "stack_trace",
    "request_id_infos",
    "execution_duration",
    "most_recent_worker_version_stamp",
    "start_request_id",
    "archived",
    "raw_history",
    "worker_may_ignore",
    "last_worker_deployment_version",
    "versioning_info",
    "assigned_build_id",
    "last_independently_assigned_build_id",
    "use_workflow_build_id",
    "delay_reason",
    "workflow_task_stamp",
    "current_retry_interval",
};

static bool is_skipped(const char *name)
{
    if (strncmp(name, "holdfast_", 9) == 0) { /* ours alone */
        return true;
    }
    for (size_t i = 0; i < HF_COUNT_OF(SKIPPED); i++) {
        if (strcmp(name, SKIPPED[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text);
    return len >= strlen(end) && strcmp(text + len - strlen(end), end) == 0;
}

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

static void copy(char *to, size_t len, hf_str from)
{
    (void)snprintf(to, len, "%.*s", HF_STR_ARGS(from));
}

static int number_of(facts *f, const char *id, hf_str run_id)
{
    int count = 0;
    for (size_t i = 0; i < f->run_count; i++) {
        if (strcmp(f->runs[i].id, id) == 0) {
            count++;
            if (hf_str_equal(hf_str_of(f->runs[i].run_id), run_id)) {
                return f->runs[i].number;
            }
        }
    }
    assert_true(f->run_count < RUNS_MAX);
    sight *new = &f->runs[f->run_count++];
    (void)snprintf(new->id, sizeof new->id, "%s", id);
    copy(new->run_id, sizeof new->run_id, run_id);
    new->number = count + 1;
    return new->number;
}

static void put_run(facts *f, const char *id, hf_str run_id, hf_buf *out)
{
    if (run_id.len == 36) {
        hf_buf_putf(out, "#%d", number_of(f, id, run_id));
    } else {
        hf_buf_putf(out, "%.*s", HF_STR_ARGS(run_id));
    }
}

/* The run that "#2" names. */
static const char *run_named(const facts *f, const char *id, int number)
{
    for (size_t i = 0; i < f->run_count; i++) {
        if (strcmp(f->runs[i].id, id) == 0 && f->runs[i].number == number) {
            return f->runs[i].run_id;
        }
    }
    fail_msg("%s#%d was not seen yet", id, number);
    return NULL;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static void put_message(facts *f, const hf_pb_type *type, const char *msg, hf_buf *out);

static void put_quoted(hf_buf *out, hf_str text)
{
    bool plain = text.len > 0;
    for (size_t i = 0; i < text.len && plain; i++) {
        char c = text.data[i];
        plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                strchr("_.:/@#*+~-", c) != NULL;
    }
    hf_buf_putf(out, plain ? "%.*s" : "'%.*s'", HF_STR_ARGS(text));
}

static void put_span(hf_buf *out, hf_pb_duration span)
{
    char text[64];
    int len = snprintf(text, sizeof text, "%lld.%09d", (long long)span.seconds, (int)span.nanos);
    while (text[len - 1] == '0') {
        len--;
    }
    len -= text[len - 1] == '.' ? 1 : 0;
    hf_buf_putf(out, "%.*ss", len, text);
}

static void put_payload(hf_buf *out, const hf_pb_payload *payload)
{
    hf_str encoding = {0};
    for (size_t i = 0; i < payload->metadata.count; i++) {
        if (hf_str_equal(payload->metadata.items[i].key, HF_STR("encoding"))) {
            encoding = payload->metadata.items[i].value;
        }
    }
    if (hf_str_equal(encoding, HF_STR("json/plain"))) {
        hf_buf_putf(out, "%.*s", HF_STR_ARGS(payload->data));
    } else if (hf_str_equal(encoding, HF_STR("binary/null"))) {
        hf_buf_puts(out, "null");
    } else {
        hf_buf_putf(out, "%zuB", payload->data.len);
    }
}

/* The first and the last event of a history in an answer. */
static void put_range(hf_buf *out, hf_str history)
{
    hf_arena arena;
    hf_op op;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_rig_heap);
    hf_str bytes = {0};
    hf_pb_history_event event;
    long long first = 0, last = 0;
    while (history.len > 0 && hf_history_next(&history, &bytes)) {
        hf_arena_reset(&arena);
        assert_int_equal(hf_pb_decode(&op, &hf_pb_history_event_type, bytes, &arena, &event), HF_OK);
        first = first != 0 ? first : (long long)event.event_id;
        last = (long long)event.event_id;
    }
    hf_buf_putf(out, "%lld..%lld", first, last);
    hf_arena_deinit(&arena);
}

/* "Payload" of "temporal.api.common.v1.Payload". */
static const char *last_name(const char *name)
{
    return strrchr(name, '.') != NULL ? strrchr(name, '.') + 1 : name;
}

/* A message whose type stands beside it. */
static void put_any(facts *f, const hf_pb_any *any, hf_buf *out)
{
    static const hf_pb_type *const TYPES[] = {&hf_pb_request_type, &hf_pb_multi_operation_execution_aborted_type,
                                              &hf_pb_workflow_execution_already_started_failure_type,
                                              &hf_pb_permission_denied_failure_type};
    char url[200];
    copy(url, sizeof url, any->type_url);
    hf_buf_puts(out, last_name(url));
    for (size_t i = 0; i < HF_COUNT_OF(TYPES); i++) {
        if (strcmp(last_name(url), last_name(TYPES[i]->name)) != 0) {
            continue;
        }
        hf_arena arena;
        hf_op op;
        hf_op_init(&op);
        hf_arena_init(&arena, hf_rig_heap);
        char *msg = hf_arena_zero(&arena, TYPES[i]->size, _Alignof(max_align_t));
        assert_non_null(msg);
        assert_int_equal(hf_pb_decode(&op, TYPES[i], any->value, &arena, msg), HF_OK);
        hf_buf_putc(out, '{');
        put_message(f, TYPES[i], msg, out);
        hf_buf_putc(out, '}');
        hf_arena_deinit(&arena);
    }
}

/* A message inside another one; nothing: it says nothing. */
static void put_nested(facts *f, const hf_pb_type *type, const char *msg, hf_buf *out)
{
    if (type == &hf_pb_payload_type) {
        put_payload(out, (const void *)msg);
        return;
    }
    if (type == &hf_pb_payloads_type) {
        const hf_pb_payloads *list = (const void *)msg;
        hf_buf_puts(out, list->payloads.count == 1 ? "" : "[");
        for (size_t i = 0; i < list->payloads.count; i++) {
            hf_buf_puts(out, i > 0 ? " " : "");
            put_payload(out, &list->payloads.items[i]);
        }
        hf_buf_puts(out, list->payloads.count == 1 ? "" : "]");
        return;
    }
    if (type == &hf_pb_workflow_execution_type) {
        const hf_pb_workflow_execution *execution = (const void *)msg;
        char id[ID_LEN_MAX];
        copy(id, sizeof id, execution->workflow_id);
        hf_buf_puts(out, id);
        if (execution->run_id.len > 0) {
            put_run(f, id, execution->run_id, out);
        }
        return;
    }
    if (type == &hf_pb_any_type) {
        put_any(f, (const void *)msg, out);
        return;
    }
    hf_buf inner;
    hf_buf_init(&inner, hf_rig_heap, SIZE_MAX / 4);
    put_message(f, type, msg, &inner);
    const char *text = hf_buf_text(&inner);
    if (strncmp(text, "name=", 5) == 0 && strchr(text, ' ') == NULL) {
        hf_buf_puts(out, text + 5);
    } else if (text[0] != '\0') {
        hf_buf_putf(out, "{%s}", text);
    }
    hf_buf_deinit(&inner);
}

static void put_number(const hf_pb_field *field, const char *at, hf_buf *out)
{
    union {
        bool truth;
        int32_t i32;
        int64_t i64;
        float f;
        double d;
    } v = {.i64 = 0};
    memcpy(&v, at, hf_pb_kind_size((hf_pb_kind)field->kind));
    if (field->kind == HF_PB_BOOL) {
        hf_buf_puts(out, v.truth ? "true" : "false");
    } else if (field->kind == HF_PB_ENUM) {
        const char *name = hf_pb_enum_brief(field->of.set, v.i32);
        if (name != NULL) {
            hf_buf_puts(out, name);
        } else {
            hf_buf_putf(out, "%d", (int)v.i32);
        }
    } else if (field->kind == HF_PB_FLOAT || field->kind == HF_PB_DOUBLE) {
        hf_buf_putf(out, "%g", field->kind == HF_PB_FLOAT ? (double)v.f : v.d);
    } else {
        hf_buf_putf(out, "%lld", hf_pb_kind_size((hf_pb_kind)field->kind) == 4 ? (long long)v.i32 : (long long)v.i64);
    }
}

/* A message is given itself. */
static void put_value(facts *f, const hf_pb_field *field, const char *name, const char *at, hf_buf *out)
{
    switch (field->kind) {
    case HF_PB_STRING:
        if (ends_with(name, "run_id")) {
            put_run(f, f->id, hf_pb_str_at(at), out);
        } else {
            put_quoted(out, hf_pb_str_at(at));
        }
        break;
    case HF_PB_BYTES:
        if (strcmp(name, "history") == 0) {
            put_range(out, hf_pb_str_at(at));
        } else {
            hf_buf_putf(out, "%zuB", hf_pb_str_at(at).len);
        }
        break;
    case HF_PB_MESSAGE:
        put_nested(f, field->of.type, at, out);
        break;
    case HF_PB_TIMESTAMP:
        break;
    case HF_PB_DURATION: {
        hf_pb_duration span;
        memcpy(&span, at, sizeof span);
        if (span.seconds != 0 || span.nanos != 0) {
            put_span(out, span);
        }
        break;
    }
    default:
        put_number(field, at, out);
        break;
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Writes the texts, which it frees, with spaces between them. */
static void put_texts(char **texts, size_t count, bool sorts, hf_buf *out)
{
    if (sorts) {
        qsort(texts, count, sizeof *texts, by_text);
    }
    for (size_t i = 0; i < count; i++) {
        hf_buf_putf(out, "%s%s", i > 0 ? " " : "", texts[i]);
        free(texts[i]);
    }
    free(texts);
}

static void put_items(facts *f, const hf_pb_field *field, const char *name, hf_pb_list list, hf_buf *out)
{
    bool is_map = field->shape == HF_PB_MAP;
    char **texts = calloc(list.count + 1, sizeof *texts);
    assert_non_null(texts);
    for (size_t i = 0; i < list.count; i++) {
        const char *item = (const char *)list.items + i * hf_pb_item_size(field);
        hf_buf text;
        hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
        if (is_map) {
            const hf_pb_field *key = &field->of.type->fields[0];
            const char *at = item + key[1].offset;
            at = key[1].kind == HF_PB_MESSAGE ? hf_pb_ptr_at(at) : at;
            hf_str word = hf_pb_str_at(item + key->offset);
            put_quoted(&text, strcmp(name, "queries") == 0 ? HF_STR("") : word); /* their names are chance */
            hf_buf_putc(&text, '=');
            if (at != NULL) {
                put_value(f, &key[1], "", at, &text);
            }
        } else {
            put_value(f, field, name, item, &text);
        }
        texts[i] = strdup(hf_buf_text(&text));
        assert_non_null(texts[i]);
        hf_buf_deinit(&text);
    }
    bool in_no_order = is_map || strcmp(name, "messages") == 0 || strcmp(name, "pending_activities") == 0 ||
                       strcmp(name, "pending_children") == 0;
    hf_buf_putc(out, is_map ? '{' : '[');
    put_texts(texts, list.count, in_no_order, out);
    hf_buf_putc(out, is_map ? '}' : ']');
}

/* Of a cron schedule it depends on the clock. */
static bool is_of_cron(const hf_pb_type *type, const char *msg)
{
    for (size_t i = 0; i < type->field_count; i++) {
        const hf_pb_field *field = &type->fields[i];
        int32_t number = 0;
        if (!hf_pb_is_set(field, msg)) {
            continue;
        }
        if (strcmp(type->names[i].name, "cron_schedule") == 0) {
            return true;
        }
        if (strcmp(type->names[i].name, "initiator") == 0) {
            memcpy(&number, msg + field->offset, sizeof number);
            if (number == HF_CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE) {
                return true;
            }
        }
    }
    return false;
}

static void put_field(facts *f, const hf_pb_type *type, size_t index, const char *msg, hf_buf *out)
{
    const hf_pb_field *field = &type->fields[index];
    const char *name = type->names[index].name;
    const char *at = msg + field->offset;
    if (field->shape == HF_PB_MAP || field->shape == HF_PB_LIST) {
        put_items(f, field, name, hf_pb_list_at(at), out);
    } else if ((strcmp(name, "first_workflow_task_backoff") == 0 || strcmp(name, "backoff_start_interval") == 0) &&
               is_of_cron(type, msg)) {
        hf_buf_puts(out, "~");
    } else {
        at = field->kind == HF_PB_MESSAGE ? hf_pb_ptr_at(at) : at;
        if (at != NULL) {
            put_value(f, field, name, at, out);
        }
    }
}

/* "a=1 b={c=2} d" */
static void put_message(facts *f, const hf_pb_type *type, const char *msg, hf_buf *out)
{
    bool some = false;
    for (size_t i = 0; i < type->field_count; i++) {
        const char *name = type->names[i].name;
        if (!hf_pb_is_set(&type->fields[i], msg) || is_skipped(name)) {
            continue;
        }
        hf_buf value;
        hf_buf_init(&value, hf_rig_heap, SIZE_MAX / 4);
        put_field(f, type, i, msg, &value);
        const char *text = hf_buf_text(&value);
        int len = (int)strlen(name) - (ends_with(name, "_event_id") ? 9 : 0);
        bool normal = strcmp(name, "kind") == 0 && strcmp(text, "Normal") == 0;
        if (text[0] != '\0' && !normal) {
            hf_buf_putf(out, "%s%.*s", some ? " " : "", len, name);
            some = true;
            if (!(type->fields[i].kind == HF_PB_BOOL && strcmp(text, "true") == 0)) {
                hf_buf_putf(out, "=%s", text);
            }
        }
        hf_buf_deinit(&value);
    }
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

/* The gRPC code that the failure of a call becomes, in the words of Go's library. */
static const char *code_of(const hf_call *call)
{
    static const char *const NAMES[HF_GRPC_CODE_COUNT] = {
        "OK",       "Canceled",        "Unknown",          "InvalidArgument",   "DeadlineExceeded",
        "NotFound", "AlreadyExists",   "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
        "Aborted",  "OutOfRange",      "Unimplemented",    "Internal",          "Unavailable",
        "DataLoss", "Unauthenticated",
    };
    return NAMES[hf_grpc_code_of(call->status, call->is_final)];
}

static bool is_poll(const hf_rig_call *slot)
{
    return slot->call.method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE ||
           slot->call.method == HF_METHOD_POLL_ACTIVITY_TASK_QUEUE;
}

/* Whose run ids the answer has: the task's, or the workflow that the step names. */
static void set_id(facts *f, const hf_rig_call *slot, const char *named)
{
    const hf_pb_workflow_execution *execution = NULL;
    if (slot->done && slot->call.status == HF_OK && is_poll(slot)) {
        const hf_pb_poll_workflow_task_queue_response *w = slot->call.response;
        const hf_pb_poll_activity_task_queue_response *a = slot->call.response;
        execution =
            slot->call.method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE ? w->workflow_execution : a->workflow_execution;
    }
    const hf_pb_execute_multi_operation_request *multi = slot->call.request;
    if (slot->call.method == HF_METHOD_EXECUTE_MULTI_OPERATION && multi->operations.count > 0 &&
        multi->operations.items[0].operation_case == HF_PB_EXECUTE_MULTI_OPERATION_REQUEST_OPERATION_START_WORKFLOW) {
        copy(f->id, sizeof f->id, multi->operations.items[0].start_workflow->workflow_id);
        return;
    }
    copy(f->id, sizeof f->id, execution != NULL ? execution->workflow_id : hf_str_of(named));
}

/* Its code, its detail and the sentence of a server. */
static void put_failure(facts *f, const hf_call *call)
{
    hf_buf_putf(f->out, "!%s", code_of(call));
    if (call->detail_type != NULL) {
        hf_buf text;
        hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
        put_message(f, call->detail_type, call->detail, &text);
        hf_buf_putf(f->out, text.len > 0 ? " %s{%s}" : " %s", last_name(call->detail_type->name), hf_buf_text(&text));
        hf_buf_deinit(&text);
    }
    hf_buf_putf(f->out, " '%s'\n", call->words != NULL ? call->words : call->message);
}

static void put_answer(facts *f, const hf_rig_call *slot, const char *named)
{
    set_id(f, slot, named);
    if (!slot->done) {
        hf_buf_puts(f->out, "parked\n");
        return;
    }
    if (slot->call.status != HF_OK) {
        put_failure(f, &slot->call);
        return;
    }
    const hf_pb_poll_workflow_task_queue_response *w = slot->call.response;
    if (is_poll(slot) && w->task_token.len == 0) { /* the first member of both */
        hf_buf_puts(f->out, "empty\n");
        return;
    }
    hf_buf text;
    hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
    put_message(f, hf_method_info_of(slot->call.method)->response_type, slot->call.response, &text);
    hf_buf_putf(f->out, "%s\n", text.len > 0 ? hf_buf_text(&text) : "ok");
    hf_buf_deinit(&text);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

/* The words of a step with one space between them, without what is expected; then the same with run ids for "#2". */
static void words_of(const facts *f, hf_str step, char *ret_text, char *ret_real, char *ret_id)
{
    char body[STEP_LEN_MAX];
    copy(body, sizeof body, step);
    char *arrow = strstr(body, "=>");
    if (arrow != NULL) {
        *arrow = '\0';
    }
    size_t text = 0, real = 0, count = 0;
    char named[ID_LEN_MAX] = ""; /* the workflow whose runs "#2" counts */
    bool is_next = false;
    ret_text[0] = ret_real[0] = ret_id[0] = '\0';
    char *rest = NULL;
    for (const char *word = strtok_r(body, " \n\t", &rest); word != NULL; word = strtok_r(NULL, " \n\t", &rest)) {
        if (count == 1) {
            (void)snprintf(ret_id, ID_LEN_MAX, "%s", word);
        }
        if (count == 1 || is_next) {
            (void)snprintf(named, ID_LEN_MAX, "%s", word);
        }
        is_next = strcmp(word, "xsignal") == 0 || strcmp(word, "xcancel") == 0;
        text += (size_t)snprintf(ret_text + text, STEP_LEN_MAX - text, "%s%s", count > 0 ? " " : "", word);
        const char *hash =
            strncmp(word, "run_id=#", 8) == 0 || strncmp(word, "first=#", 7) == 0 ? strchr(word, '#') : NULL;
        if (hash != NULL) {
            real += (size_t)snprintf(ret_real + real, STEP_LEN_MAX - real, " %.*s%s", (int)(hash - word), word,
                                     run_named(f, named, (int)strtol(hash + 1, NULL, 10)));
        } else {
            real += (size_t)snprintf(ret_real + real, STEP_LEN_MAX - real, "%s%s", count > 0 ? " " : "", word);
        }
        count++;
    }
}

static void play_step(facts *f, hf_str step)
{
    char text[STEP_LEN_MAX], real[STEP_LEN_MAX], id[ID_LEN_MAX];
    assert_true(step.len < STEP_LEN_MAX);
    words_of(f, step, text, real, id);
    if (text[0] == '\0') {
        return;
    }
    const char *times = strstr(real, " times=");
    long count = times != NULL ? strtol(times + 7, NULL, 10) : 1;
    const hf_rig_call *slot = NULL;
    do {
        slot = hf_rig_step(f->rig, real);
    } while (--count > 0 && (slot == NULL || slot->call.status == HF_OK));
    if (slot != NULL) {
        hf_buf_putf(f->out, "%s => ", text);
        put_answer(f, slot, id);
    }
}

/* ---- Histories --------------------------------------------------------------------------------------------------- */

static void put_event(facts *f, const hf_pb_history_event *event)
{
    hf_buf_putf(f->out, "%lld %s", (long long)event->event_id, hf_event_name(event->event_type));
    const hf_pb_type *type = &hf_pb_history_event_type;
    for (size_t i = 0; i < type->field_count; i++) {
        const hf_pb_field *field = &type->fields[i];
        bool attributes = field->shape == HF_PB_ONEOF && hf_pb_is_set(field, (const char *)event);
        const char *msg = attributes ? hf_pb_ptr_at((const char *)event + field->offset) : NULL;
        if (msg == NULL) {
            continue;
        }
        hf_buf text;
        hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
        put_message(f, field->of.type, msg, &text);
        hf_buf_putf(f->out, "%s%s", text.len > 0 ? " " : "", hf_buf_text(&text));
        hf_buf_deinit(&text);
    }
    hf_buf_putc(f->out, '\n');
}

static void put_history(facts *f, size_t index)
{
    hf_rig_call *slot = hf_rig_slot(f->rig, NULL);
    hf_pb_get_workflow_execution_history_request *request = HF_RIG_REQUEST(slot, get_workflow_execution_history);
    (void)snprintf(f->id, sizeof f->id, "%s", f->runs[index].id);
    hf_buf_putf(f->out, "== %s#%d\n", f->id, f->runs[index].number);
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
    request->execution->workflow_id = hf_arena_copy(&slot->request, hf_str_of(f->id));
    request->execution->run_id = hf_arena_copy(&slot->request, hf_str_of(f->runs[index].run_id));
    slot->call.replays = true; /* as a Temporal server shows it to an SDK */
    hf_rig_send(f->rig, slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, request);
    assert_true(slot->done);
    if (slot->call.status != HF_OK) {
        put_failure(f, &slot->call);
        return;
    }
    hf_arena arena;
    hf_op op;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_rig_heap);
    hf_str history = ((hf_pb_get_workflow_execution_history_response *)slot->call.response)->history;
    hf_str bytes = {0};
    while (history.len > 0 && hf_history_next(&history, &bytes)) {
        hf_pb_history_event event;
        hf_arena_reset(&arena);
        assert_int_equal(hf_pb_decode(&op, &hf_pb_history_event_type, bytes, &arena, &event), HF_OK);
        put_event(f, &event);
    }
    hf_arena_deinit(&arena);
}

void hf_facts_of(hf_rig *rig, const char *script, hf_buf *out)
{
    static facts f;
    f = (facts){.rig = rig, .out = out};
    while (*script != '\0') {
        size_t len = strcspn(script, ";");
        play_step(&f, hf_str_of_len(script, len));
        script += script[len] == ';' ? len + 1 : len;
    }
    for (size_t i = 0; i < f.run_count; i++) { /* more may come while they are printed */
        put_history(&f, i);
    }
}
