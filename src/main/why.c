/* holdfast why: why a workflow failed, or why it does not go on.
 *
 *     order-1 failed: ChargeFailed: the card was declined
 *       child pay-1: CardDeclined: insufficient funds
 *         activity charge, attempt 3: BankError: code 51
 *
 * The last event of the run has a failure with its causes. A cause that is a child's failure leads to the child's own history, and so on: the deepest
 * line is where it began. For a run that has not ended, `show` says what it waits for; here the last failure of its workflow task or of its
 * activities is told, or that nobody polls its task queue. */
#include "main/stuck.h"

#include "base/json.h"
#include "history/history.h"
#include "history/payload.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 20, TEXT_MAX = 1000 };

/* One line of the answer. */
typedef struct finding {
    char what[200]; /* "activity charge, attempt 3" */
    char type[200];
    char message[TEXT_MAX];
} finding;

typedef struct inquiry {
    const hf_tool_args *args;
    finding lines[DEPTH_MAX];
    int count;
    char child_id[1024]; /* the run to go on with; empty = none */
    int child_at;        /* its line, and those that came with it: its own history tells more */
    char child_run[128];
} inquiry;

static void copy_text(char *to, size_t room, hf_str text)
{
    (void)snprintf(to, room, "%.*s", text.len > room ? (int)room : (int)text.len, text.data);
}

/* Whether it tells of an activity or a child. */
static bool is_of_other(const hf_pb_failure *failure)
{
    return failure->failure_info_case == HF_PB_FAILURE_ACTIVITY_FAILURE_INFO ||
           failure->failure_info_case == HF_PB_FAILURE_CHILD_WORKFLOW_EXECUTION_FAILURE_INFO;
}

/* The causes of a failure, outermost first. */
static void follow(inquiry *q, const hf_pb_failure *failure, const char *what)
{
    q->child_id[0] = '\0';
    if (failure != NULL && q->count < DEPTH_MAX && is_of_other(failure)) { /* the run has passed it on as it came */
        finding *head = &q->lines[q->count++];
        *head = (finding){.message = "failed"};
        (void)snprintf(head->what, sizeof head->what, "%s", what);
    }
    for (; failure != NULL && q->count < DEPTH_MAX; failure = failure->cause) {
        finding *line = &q->lines[q->count++];
        *line = (finding){0};
        (void)snprintf(line->what, sizeof line->what, "%s", what);
        what = "cause";
        copy_text(line->type, sizeof line->type, hf_failure_type(failure));
        copy_text(line->message, sizeof line->message, failure->message);
        if (failure->failure_info_case == HF_PB_FAILURE_ACTIVITY_FAILURE_INFO &&
            failure->activity_failure_info != NULL) {
            const hf_pb_activity_failure_info *info = failure->activity_failure_info;
            (void)snprintf(line->what, sizeof line->what, "activity %.*s",
                           HF_STR_ARGS(info->activity_type != NULL ? info->activity_type->name : info->activity_id));
        } else if (failure->failure_info_case == HF_PB_FAILURE_CHILD_WORKFLOW_EXECUTION_FAILURE_INFO &&
                   failure->child_workflow_execution_failure_info != NULL &&
                   failure->child_workflow_execution_failure_info->workflow_execution != NULL) {
            const hf_pb_workflow_execution *child = failure->child_workflow_execution_failure_info->workflow_execution;
            (void)snprintf(line->what, sizeof line->what, "child %.*s", HF_STR_ARGS(child->workflow_id));
            q->child_at = q->count - 1;
            copy_text(q->child_id, sizeof q->child_id, child->workflow_id);
            copy_text(q->child_run, sizeof q->child_run, child->run_id);
        }
    }
}

/* What the last event says, or the last one of its workflow tasks that failed. */
static void look_at(inquiry *q, const hf_pb_history_event *event, const char *what)
{
    const hf_pb_failure *failure = NULL;
    finding *line = &q->lines[q->count];
    char text[300];
    switch ((int)event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
        failure = event->workflow_execution_failed_event_attributes->failure;
        break;
    case HF_EVENT_TYPE_WORKFLOW_TASK_FAILED:
        failure = event->workflow_task_failed_event_attributes->failure;
        (void)snprintf(text, sizeof text, "%s: its workflow task fails again and again (event %lld)", what,
                       (long long)event->event_id);
        what = text;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
        *line = (finding){.type = "WorkflowTerminated"};
        copy_text(line->message, sizeof line->message, event->workflow_execution_terminated_event_attributes->reason);
        (void)snprintf(line->what, sizeof line->what, "%s", what);
        q->count++;
        return;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
        *line = (finding){.type = "WorkflowTimedOut", .message = "its time was over"};
        (void)snprintf(line->what, sizeof line->what, "%s", what);
        q->count++;
        return;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
        *line = (finding){.type = "WorkflowCanceled", .message = "it was asked to end"};
        (void)snprintf(line->what, sizeof line->what, "%s", what);
        q->count++;
        return;
    default:
        return;
    }
    follow(q, failure, what);
}

typedef struct last_events {
    hf_pb_history_event closing; /* of these two only the last */
    hf_pb_history_event task;
    hf_str cancel_cause; /* why it was asked to end; empty = it was not, or without a reason */
} last_events;

static hf_status read_last(hf_op *op, hf_shown *s, last_events *ret_last)
{
    hf_str rest = s->view.history;
    hf_pb_raw field;
    while (hf_pb_next(&rest, &field)) {
        hf_pb_history_event event;
        HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, field.bytes, &s->arena, &event));
        if (event.event_type == HF_EVENT_TYPE_WORKFLOW_TASK_FAILED) {
            ret_last->task = event;
        } else if (event.event_type == HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED) {
            ret_last->task = (hf_pb_history_event){0};
        } else if (event.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED) {
            ret_last->cancel_cause = event.workflow_execution_cancel_requested_event_attributes->cause;
        }
        ret_last->closing = event;
    }
    return rest.data == NULL && s->view.history.len > 0 ? hf_fail(op, HF_ERR_INVALID, "the history cannot be read")
                                                        : HF_OK;
}

/* An open run whose workflow tasks do not fail: the first of its activities whose last attempt failed; else the first that was asked to
 * end and has not ended. */
static void look_at_pending(inquiry *q, const hf_run_view *view)
{
    char what[200];
    const hf_pb_pending_activity_info *asked = NULL;
    const hf_pb_pending_activity_info *failed = NULL;
    for (size_t i = view->pending_count; i-- > 0;) {
        failed = view->pending[i].last_failure != NULL ? &view->pending[i] : failed;
        asked = view->pending[i].state == HF_PENDING_ACTIVITY_STATE_CANCEL_REQUESTED ? &view->pending[i] : asked;
    }
    const hf_pb_pending_activity_info *pending = failed != NULL ? failed : asked;
    if (pending == NULL) {
        return;
    }
    (void)snprintf(what, sizeof what, "activity %.*s, attempt %d",
                   HF_STR_ARGS(pending->activity_type != NULL ? pending->activity_type->name : pending->activity_id),
                   pending->attempt);
    if (failed != NULL) {
        follow(q, failed->last_failure, what);
        return;
    }
    finding *line = &q->lines[q->count++];
    *line = (finding){.message = "it was asked to end, and has not ended yet"};
    (void)snprintf(line->what, sizeof line->what, "%s", what);
}

/* One run. Sets child_id if a child's failure is behind its own. */
static int look_into(inquiry *q, const char *id, const char *run_id)
{
    hf_shown s;
    hf_op op;
    last_events last = {.closing = {0}};
    char what[200];
    hf_op_init(&op);
    hf_shown_init(&s);
    int code = hf_shown_take(q->args, id, run_id, &s);
    q->child_id[0] = '\0';
    if (code == HF_EXIT_FINE && read_last(&op, &s, &last) != HF_OK) {
        code = hf_complain(HF_EXIT_DAMAGED, "%s", op.message);
    }
    (void)snprintf(what, sizeof what, "%s%s", run_id == NULL ? "" : "child ", id);
    bool is_open = s.view.status == HF_WORKFLOW_EXECUTION_STATUS_RUNNING;
    if (code == HF_EXIT_FINE && is_open && last.task.event_type != 0) {
        look_at(q, &last.task, what);
    } else if (code == HF_EXIT_FINE) {
        look_at(q, &last.closing, what);
    }
    if (code == HF_EXIT_FINE && last.closing.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED &&
        last.cancel_cause.len > 0) {
        finding *line = &q->lines[q->count - 1];
        copy_text(line->message, sizeof line->message, last.cancel_cause);
    }
    if (code == HF_EXIT_FINE && is_open && q->count == 0) {
        look_at_pending(q, &s.view);
    }
    hf_shown_deinit(&s);
    return code;
}

static void put_findings(const inquiry *q)
{
    hf_buf out;
    hf_json writer;
    hf_buf_init(&out, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_json_init(&writer, &out);
    if (q->args->json) {
        hf_json_array(&writer);
    }
    for (int i = 0; i < q->count; i++) {
        const finding *line = &q->lines[i];
        if (q->args->json) {
            hf_json_object(&writer);
            hf_json_key_string(&writer, "what", line->what);
            hf_json_key_string(&writer, "type", line->type);
            hf_json_key_string(&writer, "message", line->message);
            hf_json_end(&writer);
            continue;
        }
        hf_buf_putf(&out, "%*s", 2 * i, "");
        (void)hf_put_text(&out, hf_str_of(line->what), sizeof line->what);
        hf_buf_puts(&out, ": ");
        if (line->type[0] != '\0') {
            (void)hf_put_text(&out, hf_str_of(line->type), sizeof line->type);
            hf_buf_puts(&out, ": ");
        }
        (void)hf_put_text(&out, hf_str_of(line->message), TEXT_MAX);
        hf_buf_putc(&out, '\n');
    }
    if (q->args->json) {
        hf_json_end(&writer);
        hf_buf_putc(&out, '\n');
    }
    (void)fputs(hf_buf_text(&out), stdout);
    hf_buf_deinit(&out);
}

static void take_stuck(hf_stuck_search *s, const hf_stuck *stuck)
{
    inquiry *q = s->arg;
    finding *line = &q->lines[q->count++];
    *line = (finding){0};
    copy_text(line->what, sizeof line->what, stuck->workflow_id);
    (void)snprintf(line->message, sizeof line->message, "%s: %s", stuck->why, stuck->help);
}

/* A run that has not failed may have ended its program; or it may wait for a worker that is not there, which a program that has the file
 * open, or a server, knows. */
static int look_whether_stuck(inquiry *q)
{
    static hf_stuck_search s; /* it is large */
    hf_tool_target target;
    hf_tool_source source;
    hf_op op;
    hf_op_init(&op);
    hf_status status = HF_OK;
    int code = hf_target_find(&target, q->args);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    bool is_at_rest = target.kind == HF_TARGET_REST;
    code = is_at_rest ? hf_source_open_still(&source, target.path) : hf_target_reach(&target);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    s = (hf_stuck_search){.args = q->args, .target = &target, .visit = take_stuck, .arg = q};
    if (is_at_rest) {
        status = hf_stuck_look(&op, &s, &source, q->args->words[1]);
        hf_source_close(&source);
    } else {
        status = hf_stuck_ask(&op, &s, q->args->words[1]);
    }
    code = status == HF_OK ? code : hf_complain(hf_exit_of(status), "%s", hf_reason_of(op.message));
    return hf_target_close(&target, code);
}

int hf_cmd_why(const hf_tool_args *args)
{
    inquiry q = {.args = args};
    int code = look_into(&q, args->words[1], NULL);
    while (code == HF_EXIT_FINE && q.child_id[0] != '\0' && q.count < DEPTH_MAX) {
        char id[sizeof q.child_id];
        char run[sizeof q.child_run];
        int before = q.count;
        int at = q.child_at;
        memcpy(id, q.child_id, sizeof id);
        memcpy(run, q.child_run, sizeof run);
        q.count = at;
        if (look_into(&q, id, run) != HF_EXIT_FINE || q.count == at) {
            q.count = before; /* its run may have been deleted: what came with the failure is told */
            break;
        }
    }
    if (code == HF_EXIT_FINE && q.count == 0) {
        code = look_whether_stuck(&q);
    }
    if (code != HF_EXIT_FINE) {
        return code;
    }
    if (q.count == 0 && !args->json) {
        (void)printf("%s has not failed; holdfast show %s %s says what it waits for, or what it has returned\n",
                     args->words[1], args->words[0], args->words[1]);
    } else {
        put_findings(&q);
    }
    return HF_EXIT_FINE;
}
