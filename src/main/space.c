/* holdfast namespace register, describe, update.
 *
 *     name         shop
 *     state        Registered
 *     retention    30 d
 *     description  orders
 *
 * A file at rest is looked at, and not changed. A program that has it open, or a server, is asked. What changes opens a file at rest as a
 * program does. */
#include "main/report.h"
#include "main/target.h"

#include "inspect/find.h"

#include <holdfast/list.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const STATES[] = {"Unknown", "Registered", "Deprecated", "Deleting"};

const char *hf_namespace_state_word(int state)
{
    return (unsigned)state < HF_COUNT_OF(STATES) ? STATES[state] : STATES[0];
}

/* ---- Options ----------------------------------------------------------------------------------------------------------- */

/* What --description, --owner, --retention, --state and --data say. */
typedef struct wish {
    hf_namespace_text *data; /* NULL = none */
    hf_span retention;
    hf_namespace_state state; /* 0 = none was given */
} wish;

/* Each word is KEY=VALUE; it is parted in place. */
static bool take_data(const hf_tool_args *args, wish *w)
{
    w->data = args->each_count > 0 ? calloc(args->each_count + 1, sizeof *w->data) : NULL;
    for (size_t i = 0; i < args->each_count; i++) {
        char *sign = strchr(args->each[i], '=');
        if (w->data == NULL || sign == NULL || sign == args->each[i]) {
            (void)hf_complain(0, "--data %s is not a pair: write it like team=kelp", args->each[i]);
            return false;
        }
        *sign = '\0';
        w->data[i] = (hf_namespace_text){args->each[i], sign + 1};
    }
    return true;
}

static bool take(const hf_tool_args *args, wish *w)
{
    int64_t ns = 0;
    if (args->retention != NULL && !hf_retention_parse(hf_str_of(args->retention), &ns)) {
        (void)hf_complain(0, "--retention %s is not a span: write it like 30d, 12h, 90m or 45s; 0 keeps runs for ever",
                          args->retention);
        return false;
    }
    w->retention = hf_nanoseconds(ns);
    for (int state = HF_NAMESPACE_REGISTERED; args->state != NULL && state <= HF_NAMESPACE_DEPRECATED; state++) {
        w->state = strcmp(args->state, STATES[state]) == 0 ? (hf_namespace_state)state : w->state;
    }
    if (args->state != NULL && w->state == 0) {
        (void)hf_complain(0, "--state %s is neither Registered nor Deprecated", args->state);
        return false;
    }
    return take_data(args, w);
}

/* ---- register, update -------------------------------------------------------------------------------------------------- */

static hf_status register_it(hf_service *service, const hf_tool_args *args, const wish *w)
{
    return hf_namespace_register(service, args->words[1], .description = args->description, .owner = args->owner,
                                 .retention = w->retention, .data = w->data);
}

static hf_status update_it(hf_service *service, const hf_tool_args *args, const wish *w)
{
    return hf_namespace_update(
        service, args->words[1], .description = args->description, .owner = args->owner, .retention = w->retention,
        .keep_for_ever = args->retention != NULL && w->retention.ns == 0, .state = w->state, .data = w->data);
}

static int change(const hf_tool_args *args, hf_status (*with)(hf_service *, const hf_tool_args *, const wish *))
{
    wish w = {0};
    int code = take(args, &w) ? HF_EXIT_FINE : HF_EXIT_USAGE;
    hf_service *service = code == HF_EXIT_FINE ? hf_change_open(args, &code) : NULL;
    if (service != NULL) {
        code = hf_put_done(args, "name", hf_change_close(service, with(service, args, &w)));
    }
    free(w.data);
    return code;
}

int hf_cmd_namespace_register(const hf_tool_args *args)
{
    return change(args, register_it);
}

int hf_cmd_namespace_update(const hf_tool_args *args)
{
    bool is_empty = args->description == NULL && args->owner == NULL && args->retention == NULL &&
                    args->state == NULL && args->each_count == 0;
    return is_empty ? hf_complain(HF_EXIT_USAGE, "nothing to change: give --description, --owner, --retention, "
                                                 "--state or --data")
                    : change(args, update_it);
}

/* ---- describe ---------------------------------------------------------------------------------------------------------- */

/* A namespace, as a file or a service tells it. */
typedef struct view {
    hf_str name, description, owner;
    int state;
    int64_t retention; /* ns */
} view;

typedef struct showing {
    const hf_tool_args *args;
    bool is_found;
    hf_report report; /* of --json */
    hf_buf text;      /* for people */
} showing;

static void put_line(hf_buf *out, const char *key, hf_str value)
{
    if (value.len > 0) {
        hf_buf_putf(out, "%-11s  ", key);
        (void)hf_put_text(out, value, 1000);
        hf_buf_puts(out, "\n");
    }
}

/* Everything but its data, which follows by put_pair; then end. */
static void begin(showing *s, const view *v)
{
    hf_json *json = &s->report.writer;
    s->is_found = true;
    if (s->args->json) {
        hf_json_object(json);
        hf_put_key(json, "name", v->name);
        hf_json_key_string(json, "state", hf_namespace_state_word(v->state));
        hf_json_key_int(json, "retentionSeconds", v->retention / 1000000000);
        hf_put_key(json, "description", v->description);
        hf_put_key(json, "owner", v->owner);
        hf_json_key(json, "data");
        hf_json_array(json);
        return;
    }
    put_line(&s->text, "name", v->name);
    put_line(&s->text, "state", hf_str_of(hf_namespace_state_word(v->state)));
    hf_buf_puts(&s->text, "retention    ");
    if (v->retention > 0) {
        hf_put_span(&s->text, v->retention);
    } else {
        hf_buf_puts(&s->text, "for ever");
    }
    hf_buf_puts(&s->text, "\n");
    put_line(&s->text, "description", v->description);
    put_line(&s->text, "owner", v->owner);
}

static void put_pair(showing *s, hf_str key, hf_str value)
{
    if (s->args->json) {
        hf_json_object(&s->report.writer);
        hf_put_key(&s->report.writer, "key", key);
        hf_put_key(&s->report.writer, "value", value);
        hf_json_end(&s->report.writer);
        return;
    }
    hf_buf_puts(&s->text, "data         ");
    (void)hf_put_text(&s->text, key, 1000);
    hf_buf_puts(&s->text, "=");
    (void)hf_put_text(&s->text, value, 1000);
    hf_buf_puts(&s->text, "\n");
}

static void end(showing *s)
{
    if (s->args->json) {
        hf_json_end(&s->report.writer);
        hf_json_end(&s->report.writer);
    }
}

static void show_record(void *arg, const hf_pb_namespace_record *record)
{
    showing *s = arg;
    if (!hf_str_equal(record->name, hf_str_of(s->args->words[1]))) {
        return;
    }
    begin(s, &(view){.name = record->name,
                     .description = record->description,
                     .owner = record->owner_email,
                     .state = record->state,
                     .retention = record->retention});
    for (size_t i = 0; i < record->data.count; i++) {
        put_pair(s, record->data.items[i].key, record->data.items[i].value);
    }
    end(s);
}

static int read_it(const hf_tool_target *target, showing *s)
{
    hf_tool_source source;
    hf_op op;
    hf_op_init(&op);
    int code = hf_source_open_still(&source, target->path);
    if (code == HF_EXIT_FINE) {
        hf_status status =
            hf_find_namespaces(&op, source.peek.store, hf_env_memory(source.env), show_record, s, hf_progress_runs);
        hf_progress(NULL);
        code = status != HF_OK ? hf_complain(HF_EXIT_DAMAGED, "%s", op.message)
               : !s->is_found  ? hf_no_namespace(s->args->words[1])
                               : HF_EXIT_FINE;
        hf_source_close(&source);
    }
    return code;
}

static int ask_it(hf_tool_target *target, showing *s)
{
    HF_AUTO(hf_namespace_info_free) hf_namespace_info *info = NULL;
    int code = hf_target_reach(target);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    code = hf_told(hf_namespace_describe(target->service, s->args->words[1], &info));
    if (code == HF_EXIT_FINE) {
        begin(s, &(view){.name = hf_str_of(info->name),
                         .description = hf_str_of(info->description),
                         .owner = hf_str_of(info->owner),
                         .state = (int)info->state,
                         .retention = info->retention.ns});
        for (size_t i = 0; i < info->data_count; i++) {
            put_pair(s, hf_str_of(info->data[i].key), hf_str_of(info->data[i].value));
        }
        end(s);
    }
    return hf_target_close(target, code);
}

int hf_cmd_namespace_describe(const hf_tool_args *args)
{
    hf_tool_target target;
    showing s = {.args = args};
    hf_report_init(&s.report);
    hf_buf_init(&s.text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    int code = hf_target_find(&target, args);
    if (code == HF_EXIT_FINE) {
        code = target.kind == HF_TARGET_REST ? read_it(&target, &s) : ask_it(&target, &s);
    }
    if (code == HF_EXIT_FINE && !args->json) {
        (void)fputs(hf_buf_text(&s.text), stdout);
    }
    hf_buf_deinit(&s.text);
    return hf_report_end(&s.report, args->json, code);
}
