/* holdfast show --follow: a run, and then each event as it happens, until the run has ended. With --json each event is a line.
 *
 * The program that has the file open, or a server, answers each request when there is something new. In a file at rest nothing happens: a run
 * that has ended is shown, and for any other one the exit code is 3. */
#include "main/target.h"
#include "main/timeline_private.h"

#include "history/history.h"
#include "service/call.h"

#include <stdio.h>
#include <string.h>

enum { WAIT_SECONDS = 60 };

typedef struct following {
    const hf_tool_args *args;
    hf_run_view view;
    hf_timeline timeline;
    hf_buf text;
    bool is_over; /* its last event was seen */
} following;

static void note_end(following *f, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
        f->is_over = true;
        break;
    default:
        break;
    }
}

/* {"events":[X]} becomes X. */
static hf_status put_json(hf_op *op, following *f, hf_str event)
{
    static const char HEAD[] = "{\"events\":[";
    static const char TAIL[] = "]}";
    hf_buf one;
    hf_buf json;
    hf_buf_init(&one, f->text.memory, SIZE_MAX / 4);
    hf_buf_init(&json, f->text.memory, SIZE_MAX / 4);
    hf_pb_put_bytes(&one, 1, event);
    hf_status status = hf_history_to_json(op, hf_str_of_len(one.data, one.len), true, &json);
    size_t around = sizeof HEAD - 1 + sizeof TAIL - 1;
    if (status == HF_OK && json.len > around) {
        hf_buf_put(&f->text, json.data + sizeof HEAD - 1, json.len - around);
        hf_buf_putc(&f->text, '\n');
    }
    hf_buf_deinit(&one);
    hf_buf_deinit(&json);
    return status;
}

/* Writes the events of one page. */
static hf_status put_page(hf_op *op, following *f, hf_str events)
{
    hf_env *env = hf_env_posix();
    hf_str rest = events;
    hf_str bytes = {0};
    f->text.len = 0;
    while (hf_history_next(&rest, &bytes)) {
        hf_arena arena;
        hf_pb_history_event event;
        hf_arena_init(&arena, f->text.memory);
        hf_status status = hf_pb_decode(op, &hf_pb_history_event_type, bytes, &arena, &event);
        if (status == HF_OK) {
            note_end(f, &event);
        }
        hf_arena_deinit(&arena);
        HF_TRY(status);
        if (f->args->json) {
            HF_TRY(put_json(op, f, bytes));
        }
    }
    if (!f->args->json) {
        HF_TRY(hf_timeline_add(op, &f->timeline, &f->view, events, env->ops->wall_now(env).ns));
    }
    (void)fputs(hf_buf_text(&f->text), stdout);
    (void)fflush(stdout);
    return f->text.status == HF_OK ? HF_OK : hf_fail(op, f->text.status, "no memory for the events");
}

static hf_status follow(hf_op *op, following *f, hf_service *service)
{
    hf_arena arena;
    hf_buf token;
    hf_status status = HF_OK;
    hf_pb_workflow_execution execution = {.workflow_id = f->view.workflow_id, .run_id = f->view.run_id};
    hf_arena_init(&arena, f->text.memory);
    hf_buf_init(&token, f->text.memory, SIZE_MAX / 4);
    do {
        hf_call call;
        hf_pb_get_workflow_execution_history_request request = {
            .namespace = hf_str_of(f->args->namespace_),
            .execution = &execution,
            .next_page_token = hf_str_of_len(token.data, token.len),
            .wait_new_event = true,
        };
        hf_arena_reset(&arena);
        hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena, NULL);
        call.verb = "show";
        call.timeout = hf_seconds(WAIT_SECONDS);
        status = hf_service_ask(op, service, &call);
        if (status == HF_ERR_TIMEOUT) { /* nothing has happened */
            hf_op_init(op);
            status = HF_OK;
            continue;
        }
        const hf_pb_get_workflow_execution_history_response *page = call.response;
        status = status == HF_OK ? put_page(op, f, page->history) : status;
        if (status == HF_OK && page->next_page_token.len > 0) { /* else the next request would begin anew */
            token.len = 0;
            hf_buf_put(&token, page->next_page_token.data, page->next_page_token.len);
        } else if (status == HF_OK) {
            f->is_over = true;
        }
    } while (status == HF_OK && !f->is_over);
    hf_buf_deinit(&token);
    hf_arena_deinit(&arena);
    return status;
}

int hf_show_follow(const hf_tool_args *args)
{
    static following f; /* it is large */
    hf_tool_target target;
    hf_shown shown;
    hf_op op;
    hf_op_init(&op);
    hf_shown_init(&shown);
    int code = hf_shown_take(args, args->words[1], NULL, &shown);
    f = (following){.args = args, .view = shown.view};
    f.view.is_full = args->full;
    hf_buf_init(&f.text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_timeline_init(&f.timeline, &f.view, &f.text);
    code = code == HF_EXIT_FINE ? hf_target_find(&target, args) : code;
    if (code == HF_EXIT_FINE && target.kind == HF_TARGET_REST) {
        hf_status status = put_page(&op, &f, shown.view.history);
        code = status != HF_OK ? hf_complain(HF_EXIT_DAMAGED, "%s", op.message)
               : f.is_over     ? HF_EXIT_FINE
                               : hf_complain(HF_EXIT_CANNOT_OPEN,
                                             "no program has %s open, and so nothing happens: start the program that "
                                                 "works on it",
                                             target.path);
    } else if (code == HF_EXIT_FINE && (code = hf_target_reach(&target)) == HF_EXIT_FINE) {
        hf_status status = follow(&op, &f, target.service);
        code = status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", hf_reason_of(op.message));
        code = hf_target_close(&target, code);
    }
    hf_timeline_deinit(&f.timeline);
    hf_buf_deinit(&f.text);
    hf_shown_deinit(&shown);
    return code;
}
