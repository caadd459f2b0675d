/* Which scope a command belongs to, for tools that draw the graph of a run. It is in the `details` of the command's user
 * metadata, as JSON, and so in the event that the command becomes:
 *
 *     {"s":3}                                                 of scope 3
 *     {"s":3,"n":"pieces","p":2}                              its first command: its name, and the scope around it
 *     {"s":3,"n":"pieces","p":{"s":2,"n":"order"}}            that one has made no command itself so far
 *
 * Commands of the run's own scope, around the main function, have none, and neither have commands of handlers outside a
 * scope; a scope without "p" is inside that. Numbers are given by the first command, in the order of commands: so a replay
 * gives the same ones (worker-K3), but they are not compared. A shield is not a scope of its own here. */
#include "worker/wf.h"

#include "base/json.h"
#include "client/errand.h"
#include "fiber/crew/crew_private.h"
#include "history/payload.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    NAME_LEN_MAX = 40, /* of a name, in bytes: an event is not the place for a long one */
    DEPTH_MAX = 16,    /* scopes around a scope that are named with it */
    TEXT_LEN_MAX = 4096
};

static void write_scope(hf_wf *wf, hf_json *json, hf_scope *scope, int depth)
{
    hf_scope *parent = hf_crew_scope_around(scope);
    size_t name_len = strlen(scope->name);
    hf_assert(scope->number == 0); /* it is named once */
    scope->number = ++wf->scope_number;
    hf_json_object(json);
    hf_json_key_uint(json, "s", scope->number);
    hf_json_key(json, "n");
    hf_json_string_len(json, scope->name, name_len < NAME_LEN_MAX ? name_len : NAME_LEN_MAX);
    if (parent != NULL && parent->number == 0 && depth < DEPTH_MAX) {
        hf_json_key(json, "p");
        write_scope(wf, json, parent, depth + 1);
    } else if (parent != NULL && parent->number != HF_SCOPE_OF_RUN) {
        hf_json_key_uint(json, "p", parent->number); /* 0: too deep */
    }
    hf_json_end(json);
}

/* The text of a scope that was named before. */
static hf_str brief(hf_arena *arena, const hf_scope *scope)
{
    char text[24];
    int len = snprintf(text, sizeof text, "{\"s\":%" PRIu32 "}", scope->number);
    hf_assert(len > 0 && (size_t)len < sizeof text);
    return hf_arena_copy(arena, hf_str_of_len(text, (size_t)len));
}

static hf_str whole(hf_wf *wf, hf_arena *arena, hf_scope *scope)
{
    hf_buf buf;
    hf_json json;
    hf_buf_init(&buf, wf->worker->memory, TEXT_LEN_MAX);
    hf_json_init(&json, &buf);
    write_scope(wf, &json, scope, 0);
    hf_str text = {NULL, 0};
    if (hf_buf_status(&buf) == HF_OK) {
        text = hf_arena_copy(arena, hf_str_of_len(buf.data, buf.len));
    } else {
        arena->status = HF_ERR_NOMEM;
    }
    hf_buf_deinit(&buf);
    return text;
}

void hf_wf_tag(hf_wf *wf, hf_arena *arena, hf_pb_command *command, hf_scope *scope)
{
    if (scope == NULL || scope->number == HF_SCOPE_OF_RUN) {
        return;
    }
    hf_str text = scope->number != 0 ? brief(arena, scope) : whole(wf, arena, scope);
    hf_assert(scope->number != 0 && command->user_metadata == NULL);
    hf_pb_user_metadata *metadata = HF_ARENA_NEW(arena, hf_pb_user_metadata);
    hf_pb_payload *details = HF_ARENA_NEW(arena, hf_pb_payload);
    if (metadata != NULL && details != NULL) {
        *details = hf_payload_json(arena, text);
        metadata->details = details;
        command->user_metadata = metadata;
    }
}

void hf_wf_summarize(hf_wf *wf, hf_command_record *record, const char *summary)
{
    hf_arena *arena = &wf->recorder.arena;
    if (HF_LIKELY(summary == NULL)) {
        return;
    }
    hf_pb_command *command = record->pb;
    hf_pb_user_metadata *metadata =
        command->user_metadata != NULL ? command->user_metadata : HF_ARENA_NEW(arena, hf_pb_user_metadata);
    hf_pb_payload *text = HF_ARENA_NEW(arena, hf_pb_payload);
    if (metadata != NULL && text != NULL) {
        *text = hf_summary_of(arena, summary);
        metadata->summary = text;
        command->user_metadata = metadata;
    }
}
