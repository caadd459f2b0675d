/* The scenes, and how one is played. See nomem.h.
 *
 * Workers that poll in a step belong to this process: when the core is opened again they have lost their tasks, which
 * are handed out again (`regain`). All other workers are in other processes: their tokens stay valid. */
#include "support/nomem.h"

#include <stdio.h>
#include <string.h>

typedef struct scene {
    const char *setup;  /* script */
    const char *step;   /* where memory runs out */
    const char *regain; /* script after a break, whatever the result of the step was; NULL = none */
    const char *finish; /* script */
} scene;

#define STICKY "start wf; poll; poll as=p queue=s timeout=1s => parked; complete sticky=s timer t 2s; "
/* Admitted by a reset, and passed over. */
#define REJECTED \
    "start wf; poll; complete; update wf up uinput=300; poll; complete accept up; reset wf 4; poll; complete"
#define ACTIVITY "start wf; poll; complete activity a retries=3 initial=1s beat=1m; apoll; "

static const scene SCENES[] = {
    /* Starts. */
    {"", "start wf request=r1 input=3000", NULL, "poll; complete done"},
    {"start wf request=r1", "start wf request=r1", NULL, "poll; complete done"},
    {"start wf request=r0; poll; complete done", "start wf request=r1 reuse=1", NULL, "poll; complete done"},
    {"start wf request=r0; poll; complete timer t 1h", "start wf request=r1 conflict=3", NULL, "poll; complete done"},
    {"start wf request=r0", "start wf request=r1 conflict=2", NULL, "poll; complete done"},
    {"start wf request=r0", "start wf request=r1 conflict=1", NULL, "poll; complete done"},
    {"start wf request=r0; poll; complete done", "start wf request=r1 reuse=3", NULL, ""},
    {"poll in_process => parked", "start wf request=r1", "poll in_process", "complete done"},
    {"", "start wf request=r1 eager", NULL, "time 11s; poll; complete done"}, /* nobody has its first task */
    /* Polls. */
    {"start wf", "poll in_process", "poll in_process", "complete done"},
    {"start wf input=3000; poll; complete force marker a; poll; complete force marker b; poll; complete timer t 1s;"
     "time 1s",
     "poll in_process", "poll in_process", "complete done"},
    {STICKY "time 2s", "poll in_process queue=s", "unstick wf; poll in_process", "complete done"},
    {"start wf; poll; fail", "poll in_process", "poll in_process", "complete done"},
    {"", "poll in_process => parked", NULL, "start wf; crash; poll as=y; complete of=y done"},
    {"start wf; poll; complete activity a", "apoll in_process", "apoll in_process", "acomplete; poll; complete done"},
    {"start wf; poll; complete activity a; apoll in_process", "heartbeat leaves", NULL,
     "acomplete by=wf/a; poll; complete done"},
    {"poll timeout=1s => parked", "time 2s", NULL, "start wf; poll; complete done"},
    {"poll as=p => parked", "drop p", NULL, "start wf; poll; complete done"},
    {"start wf; poll in_process", "unwanted w", NULL, "crash; poll; complete done"},
    {"start wf; poll; complete activity a; apoll in_process", "unwanted a", NULL,
     "crash; apoll; acomplete; poll; complete done"},
    /* Workflow tasks. */
    {"start wf; poll", "complete timer t 1s, activity a, marker m", NULL,
     "apoll; acomplete; time 1s; poll; complete done"},
    {"start wf; poll; signal wf s request=r2; cancel wf", "complete marker m", NULL, "poll; complete done"},
    {"start wf; poll; complete timer t 1h, activity a; apoll; signal wf s; poll", "complete untimer t, unactivity 6",
     NULL, "heartbeat asked; acancel; poll; complete done"},
    {"start wf; poll", "complete force sticky=s", NULL, "unstick wf; poll; complete done"},
    {"start wf; poll", "complete untimer nobody", NULL, "poll; complete done"},
    {"start wf; poll", "complete done, marker m", NULL, "complete done"},
    {"start wf; poll", "complete activity a, unactivity 5", NULL, "poll; complete done"},
    {"start wf; poll; signal wf s", "complete done", NULL, "poll; complete done"},
    {"start wf; poll; fail; poll", "complete done", NULL, ""},
    {"start wf; poll; complete timer t 1h, activity a; signal wf s; poll", "complete done", NULL, ""},
    {"start wf; poll", "complete failed why", NULL, ""},
    {"start wf; cancel wf; poll", "complete canceled", NULL, ""},
    {"start wf; poll", "fail", NULL, "poll; complete done"},
    {STICKY "time 2s", "unstick wf", NULL, "poll; complete done"},
    {STICKY "time 1s", "shutdown s", "shutdown s", "time 1s; poll; complete done"},
    /* What goes out with a completion is lost with the process, and comes back. */
    {"start wf; poll", "complete in_process force return", NULL, "crash; poll; complete done"},
    {"start wf; poll", "complete in_process activity a eager initial=1s", NULL,
     "crash; time 1s; apoll; acomplete; poll; complete done"},
    {"start wf; poll; complete activity a; poll key=k as=x => parked; apoll queue=z key=k as=y => parked",
     "shutdown none key=k", NULL, "apoll; acomplete; poll; complete done"},
    {"start wf; poll; complete activity a, activity b; apoll rate=1 as=x; apoll rate=1 in_process as=y => parked",
     "time 1s", NULL, "terminate wf"},
    {"start wf; poll; complete activity a; apoll as=x queue=o rate=2 => parked", "queue q activities stats status",
     NULL, "apoll; acomplete; poll; complete done"},
    /* Chains. */
    {"start wf memo=a:1; poll", "complete remember a:2, upsert K:v, continue input=100", NULL, "poll; complete done"},
    {"start wf initial=1s retries=2 input=100; poll", "complete failed", NULL, "time 1s; poll; complete done"},
    {"start wf initial=1s retries=2 run=5s input=100; time 4s", "time 1s", NULL, "time 1s; poll; complete done"},
    {"start wf initial=1s retries=2 input=3000; poll; complete force marker a; poll; complete timer t 1s; time 1s; "
     "poll",
     "complete failed", NULL, "time 1s; poll; complete done"},
    {"start wf cron=@every_10s; time 10s; poll", "complete done", NULL, "terminate wf"},
    {"", "start wf delay=5s request=r1", NULL, "time 5s; poll; complete done"},
    {"start wf delay=5s", "time 5s", NULL, "poll; complete done"},
    {"start wf delay=5s", "cancel wf", NULL, "poll; complete done"},
    /* Children. */
    {"start wf; poll", "complete child kid queue=p input=100", NULL,
     "poll queue=p as=k; complete of=k done; poll; complete done"},
    {"start wf; poll; complete child kid queue=p; poll; complete; poll queue=p as=k", "complete of=k done", NULL,
     "poll; complete done"},
    {"start wf; poll; complete child kid queue=p; poll; complete; poll queue=p as=k", "complete of=k failed", NULL,
     "poll; complete done"},
    {"start wf; poll; complete child kid queue=p, child b queue=p policy=3; poll", "complete done", NULL, ""},
    {"start wf; poll; complete child kid queue=p; poll; complete", "terminate kid", NULL, "poll; complete done"},
    {"start wf; poll; complete child kid queue=p; poll; complete", "terminate wf", NULL, ""},
    /* Messages between runs. */
    {"start other queue=o; start wf; poll", "complete xsignal other s", NULL,
     "poll; complete done; poll as=x queue=o; complete of=x done"},
    {"start other queue=o; poll as=x queue=o; start wf; poll", "complete xsignal other s", NULL,
     "poll; complete done; complete of=x; poll as=x queue=o; complete of=x done"},
    {"start other queue=o; start wf; poll", "complete xcancel other", NULL,
     "poll; complete done; poll as=x queue=o; complete of=x done"},
    {"start wf; poll", "complete xsignal nobody s", NULL, "poll; complete done"},
    {"start wf; poll", "complete xcancel nobody", NULL, "poll; complete done"},
    /* Activities. */
    {ACTIVITY, "acomplete input=2000", NULL, "poll; complete done"},
    {ACTIVITY "signal wf s; poll", "acomplete", NULL, "complete; poll; complete done"},
    {ACTIVITY, "afail details=half", NULL, "time 1s; apoll; acomplete; poll; complete done"},
    {ACTIVITY, "afail final", NULL, "poll; complete done"},
    {ACTIVITY "signal wf s; poll; complete unactivity 5; heartbeat asked", "acancel", NULL, "poll; complete done"},
    {ACTIVITY, "heartbeat details=half", NULL, "acomplete; poll; complete done"},
    {ACTIVITY "signal wf s; poll; complete unactivity 5", "heartbeat asked", NULL, "acancel; poll; complete done"},
    {ACTIVITY, "acomplete by=wf/a input=2000", NULL, "poll; complete done"},
    {"start wf; poll; complete activity a", "acomplete by=wf/a", NULL, "poll; complete done"},
    {ACTIVITY, "afail by=wf/a final", NULL, "poll; complete done"},
    {ACTIVITY "signal wf s; poll; complete unactivity 5", "acancel by=wf/a", NULL, "poll; complete done"},
    {ACTIVITY, "heartbeat by=wf/a details=half", NULL, "acomplete; poll; complete done"},
    {"start wf; poll; complete activity a", "apause wf a request=r", NULL,
     "aunpause wf a; apoll; acomplete; poll; complete done"},
    {ACTIVITY "afail; apause wf a", "aunpause wf a attempts", NULL, "apoll; acomplete; poll; complete done"},
    {ACTIVITY "afail", "areset wf a heartbeats", NULL, "apoll; acomplete; poll; complete done"},
    {ACTIVITY "afail", "aoptions wf a initial=2s queue=q2", NULL,
     "time 2s; apoll as=b queue=q2; acomplete of=b; poll; complete done"},
    {ACTIVITY, "apause wf type=act request=r", NULL, "aunpause wf all; acomplete; poll; complete done"},
    {ACTIVITY "apause wf a", "afail", NULL, "aunpause wf a; apoll; acomplete; poll; complete done"},
    {ACTIVITY "afail; apause wf a", "acomplete by=wf/a", NULL, "poll; complete done"},
    {ACTIVITY "apause wf a; afail details=half", "aunpause wf all heartbeats", NULL,
     "apoll; acomplete; poll; complete done"},
    {ACTIVITY, "areset wf all heartbeats", NULL, "heartbeat reset; acomplete; poll; complete done"},
    {ACTIVITY "aoptions wf a each=5s queue=q2; afail", "aoptions wf type=act original", NULL,
     "time 1s; apoll; acomplete; poll; complete done"},
    {ACTIVITY "apause wf a; aoptions wf a each=5s", "describe wf", NULL, "acomplete; poll; complete done"},
    /* Signals and the like. */
    {"start wf; poll; complete timer t 1h", "signal wf s request=r2 input=500", NULL, "poll; complete done"},
    {"start wf; poll; signal wf s request=r2", "signal wf s request=r3", NULL, "complete; poll; complete done"},
    {"start wf; signal wf s request=r2", "signal wf s request=r2", NULL, "poll; complete done"},
    {"", "sigstart wf s request=r2 sinput=500 input=300", NULL, "poll; complete done"},
    {"start wf; poll; complete timer t 1h", "sigstart wf s request=r2 sinput=500", NULL, "poll; complete done"},
    {"start wf; poll", "sigstart wf s request=r2", NULL, "complete; poll; complete done"},
    {"start wf; poll; complete timer t 1h", "sigstart wf s request=r2 conflict=3", NULL, "poll; complete done"},
    {"start wf delay=1h", "sigstart wf s request=r2", NULL, "poll; complete done"},
    {"start wf; poll; complete done", "sigstart wf s request=r2 reuse=3", NULL, ""},
    {"start wf", "options wf priority=3 auto", NULL, "poll; complete done"},
    {"start wf; poll; options wf priority=3", "options wf fairness=key", NULL,
     "complete; signal wf s; poll; complete done"},
    {"start wf request=r0; poll", "start wf request=r1 conflict=2 attach attach_links link=x", NULL,
     "complete; signal wf s; poll; complete done"},
    {"start wf request=r0; start wf request=r1 conflict=2 attach; poll; complete done", "start wf request=r1", NULL,
     ""},
    {"start wf", "signal nobody s request=r2", NULL, "poll; complete done"},
    {"start wf", "signal wf s request=r2 run_id=11111111-1111-4111-8111-111111111111", NULL, "poll; complete done"},
    {"start wf; poll; complete timer t 1h", "cancel wf", NULL, "poll; complete canceled"},
    {"start wf; poll", "cancel wf", NULL, "complete; poll; complete canceled"},
    {"start wf; poll; complete timer t 1h, activity a", "terminate wf", NULL, ""},
    {"start gone; poll; complete timer t 1h, activity a; start wf", "delete gone", NULL,
     "signal gone s => not_found; start gone; terminate wf"},
    {"start wf; start gone; signal gone s; terminate gone; start gone; terminate gone; start gone", "delete gone", NULL,
     "signal gone s => not_found; start gone; terminate gone; terminate wf"},
    {"start wf; start gone; terminate gone; start gone; terminate gone; start gone input=3000", "delete gone all", NULL,
     "signal gone s => not_found; start gone; terminate gone; terminate wf"},
    {"start wf; start gone; poll; poll; complete done; watch gone", "delete gone", NULL, "terminate wf"},
    /* Resets. */
    {"start wf; poll; complete timer t 1h, activity a; signal wf s request=r2", "reset wf 4 request=r3", NULL,
     "poll; complete done"},
    {"start wf; poll; complete activity a, child kid queue=p; signal wf s; poll; complete done",
     "reset wf last request=r3 signal=x", NULL, "terminate wf"},
    {"start wf; poll; complete continue; signal wf s; poll; complete continue; signal wf s2 input=3000; poll; complete",
     "reset wf activity=a request=r3 => invalid", NULL, "terminate wf"},
    {"start wf; poll; complete marker m", "reset wf 5 request=r3 => invalid", NULL, "terminate wf"},
    /* Queries. */
    {"start wf; poll; complete", "query wf q input=500", NULL, "terminate wf"},
    {"start wf; poll; complete; query wf q", "poll in_process", NULL, "terminate wf"},
    {"start wf; poll; complete; query wf q; poll", "qanswer", NULL, "terminate wf"},
    {"start wf; poll; complete; query wf q; poll", "qanswer error=oops", NULL, "terminate wf"},
    {"start wf; query wf q", "poll in_process", "poll in_process", "complete answer=fine done"},
    {"start wf; query wf q; poll", "complete answer=fine", NULL, "terminate wf"},
    {"start wf; query wf q", "terminate wf", NULL, ""},
    {"start wf; poll; complete sticky=s sticky_for=5s; poll queue=s as=x => parked; query wf q", "time 5s", NULL,
     "terminate wf"},
    /* Updates. */
    {"start wf; poll; complete", "update wf up uinput=500", NULL, "terminate wf"},
    {"start wf; poll; complete; update wf up", "update wf up as=v", NULL, "terminate wf"},
    {"start wf delay=1h", "update wf up", "update wf up", "terminate wf"},
    {"start wf; poll; complete; update wf up", "poll in_process", "update wf up; poll in_process",
     "complete reject up; terminate wf"},
    {"start wf; update wf up; poll", "complete accept up, respond up", NULL, "terminate wf"},
    {"start wf; update wf up; poll", "complete accept up silent", NULL, "terminate wf"},
    {"start wf; update wf up; poll; complete accept up, respond up", "updpoll wf up => answer", NULL, "terminate wf"},
    {"start wf; poll; complete; update wf up", "time 20s", NULL, "terminate wf"},
    {"start wf; update wf up; poll; complete accept up, timer t 1s", "terminate wf", NULL, ""},
    {REJECTED, "update wf up", NULL, "terminate wf"},
    {REJECTED "; update wf up; signal wf s; poll", "complete accept up, respond up", NULL, "terminate wf"},
    {"start wf request=r0", "updstart wf up request=r1 => exists", NULL, "terminate wf"},
    {"", "updstart wf up request=r1 uinput=300", "start wf request=r1", "terminate wf"},
    /* Looking. */
    {ACTIVITY "heartbeat details=half; signal wf s; poll; complete timer t 1h", "describe wf", NULL,
     "acomplete; poll; complete done"},
    {"start wf; poll; complete timer t 1h, marker m", "history wf", NULL, "terminate wf"},
    {"start wf; poll; complete timer t 1h, marker m; history wf 2", "history wf 2 more", NULL, "terminate wf"},
    {"start wf; poll; complete done", "history wf", NULL, ""},
    {"start wf; poll; complete timer t 1h, marker m", "reverse wf", NULL, "terminate wf"},
    {"start wf; poll; complete timer t 1h, marker m; reverse wf 2", "reverse wf 2 more", NULL, "terminate wf"},
    {"start wf; poll; fail; poll", "history wf replays", NULL, "terminate wf"},
    {"start wf", "watch wf", NULL, "poll; complete done"},
    {"start wf", "system", NULL, "poll; complete done"},
    {"start wf", "cluster", NULL, "poll; complete done"},
    {"start wf", "namespace other", NULL, "poll; complete done"},
    /* Streams, changes, task queues. */
    {"start wf; poll", "complete publish=a+b+c activity a", NULL, "apoll; acomplete; poll; complete done"},
    {"start wf; poll", "complete publish=a+b continue", NULL, "poll; complete publish=c done"},
    {ACTIVITY, "heartbeat publish=a rid=r7", NULL, "acomplete; poll; complete done"},
    {"start wf; poll; complete publish=a+b timer t 1s", "stream wf", NULL, "time 1s; poll; complete done"},
    {"start wf; poll; complete publish=a+b+c+d timer t 1s; crash", "stream wf max=2", NULL,
     "time 1s; poll; complete done"},
    {"start wf; poll; complete publish=a continue; poll; complete publish=b continue; crash", "stream wf", NULL,
     "poll; complete done"},
    {"start wf; poll", "stream wf wait => parked", NULL, "complete done"},
    {"start wf; poll; stream wf wait => parked", "complete publish=a done", NULL, ""},
    {"start wf; poll; complete publish=a+b timer t 1s; time 1s; poll", "reset wf first", NULL,
     "poll as=y; complete of=y done"},
    {"changes; start wf; changes", "changes", NULL, "poll; complete done"},
    {"changes", "changes wait => parked", NULL, "start wf; poll; complete done"},
    {"changes; changes wait => parked", "start wf", NULL, "poll; complete done"},
    {"start wf; poll as=p queue=other => parked", "queues", NULL, "poll; complete done"},
    {"start wf queue=one; start wg queue=two; crash", "queues page=1", NULL,
     "poll queue=one; complete done; poll queue=two; complete done"},
    {"start wf; poll; complete done; start wf; crash; start wg", "list current says=wf+wg", NULL, ""},
    {"addattr Color; start wf; start wg attrs=Color:red; crash", "list query=Color='red' says=wg", NULL,
     "terminate wf"},
    {"addattr Color; start wg attrs=Color:red; terminate wg; start wf; crash", "count query=Color_IS_NULL says=1", NULL,
     "terminate wf"},
    {"", "start wf keep=1m", NULL, "poll; complete done; time 30s"},
    {"start wf; start wg memo=a:b attrs=k:v", "list query=ExecutionStatus='Running'", NULL, "poll; complete done"},
    {"start wf; poll; complete done; crash; start wg", "list query=ORDER_BY_StartTime_DESC,WorkflowId page=1", NULL,
     ""},
    {"start wf; start wg; list page=1", "list page=1 more", NULL, "poll; complete done"},
    {"start wf", "scan query=WorkflowId='wf'", NULL, "poll; complete done"},
    {"start wf", "list query=Wrong", NULL, "poll; complete done"},
    {"start wf", "listopen id=wf", NULL, "poll; complete done"},
    {"start wf; poll; complete done", "listclosed status=2", NULL, ""},
    {"start wf; poll; complete done; start wg", "count query=GROUP_BY_ExecutionStatus", NULL, ""},
    {"start wf", "register other describe=text", "namespace other", "poll; complete done"},
    {"start wf", "nsupdate other describe=text", NULL, "poll; complete done"},
    {"start wf", "deprecate other", NULL, "poll; complete done"},
    {"start wf; namespace other", "namespaces", NULL, "poll; complete done"},
    {"start wf", "addattr Key type=Int", NULL, "poll; complete done"},
    {"start wf; addattr Key type=Int", "removeattr Key", "attrs", "poll; complete done"},
    {"start wf; addattr Key type=Int", "attrs", NULL, "poll; complete done"},
    {"start wf; addattr Key ns=default", "allattrs", NULL, "poll; complete done"},
    /* Operations on many runs. */
    {"start wf; start wg", "batch j op=signal query=TaskQueue='q'", NULL,
     "batchshow j says=completed:2/0/2; poll; complete done"},
    {"start wf; start wg", "batch j op=options ids=wf+wg", NULL,
     "batchshow j says=completed:2/0/2; poll; complete done"},
    {"start wf; start wg; batch j op=signal query=TaskQueue='q' rate=1", "time 1s", NULL,
     "batchshow j says=completed:2/0/2; poll; complete done"},
    {"start wf; start wg", "batch j op=terminate query=TaskQueue='q'", NULL, "batchshow j says=completed:2/0/2"},
    {"start wf; start wg; batch j op=signal ids=wf+wg rate=1", "batchstop j", NULL,
     "batchshow j says=failed:1/0/2; poll; complete done"},
    {"start wf; start wg; batch j op=signal ids=wg", "batchshow j", NULL, "poll; complete done"},
    {"start wf; start wg; batch j op=signal ids=wg", "batches", NULL, "poll; complete done"},
    {"start wf; start wg; batch j op=signal ids=wg", "time 200h", NULL, "batches says=; poll; complete done"},
    {"start wf; start wg ns=other; batch j op=signal ids=wg ns=other", "nsdelete other", NULL,
     "time 1s; time 1s; list ns=other says=; poll; complete done"},
    {"start wf; watch wf", "terminate wf", NULL, ""},
    {"start wf; poll; complete timer t 1h; history wf wait; history wf wait more", "signal wf s request=r2", NULL,
     "poll; complete done"},
    {"start wf; poll; complete timer t 1h; history wf wait; history wf wait more", "time 1m", NULL, "terminate wf"},
    /* Time. */
    {"start wf; poll; complete timer t 1s, timer u 1s", "time 1s", NULL, "poll; complete done"},
    {"start wf; poll; complete timer t 1s; signal wf s; poll", "time 1s", NULL, "complete; poll; complete done"},
    {"start wf; poll; complete activity a each=1s retries=1; apoll", "time 1s", NULL, "poll; complete done"},
    {"start wf; poll; complete activity a each=1s retries=2 initial=1s; apoll", "time 1s", NULL,
     "time 1s; apoll; acomplete; poll; complete done"},
    {"start wf; poll; complete activity a each=1m beat=1s retries=1; apoll; heartbeat details=half", "time 1s", NULL,
     "time 1s; poll; complete done"},
    {"start wf; poll; complete activity a start=1s", "time 1s", NULL, "poll; complete done"},
    {"start wf task=1s; poll", "time 2s", NULL, "poll; complete done"},
    {STICKY "time 2s", "time 10s", NULL, "poll; complete done"},
    {"start wf run=2s; poll; complete timer t 1h, activity a", "time 3s", NULL, ""},
    {ACTIVITY "afail", "time 1s", NULL, "apoll; acomplete; poll; complete done"},
};

enum { CONFIGS = 4 }; /* configurations of each scene */

static const scene *scene_of(size_t index)
{
    return &SCENES[index / CONFIGS];
}

size_t hf_nomem_count(void)
{
    return HF_COUNT_OF(SCENES) * CONFIGS;
}

const char *hf_nomem_name(size_t index)
{
    return scene_of(index)->step;
}

bool hf_nomem_is_sqlite(size_t index)
{
    return index % CONFIGS >= 2;
}

static char now[200];

const char *hf_nomem_now(void)
{
    return now[0] != '\0' ? now : NULL;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static struct {
    hf_rig rig;
    char page[256]; /* next_page_token of the last history */
    size_t page_len;
} stage;

static bool has(const char *text, const char *word)
{
    return strstr(text, word) != NULL;
}

static void keep_page(hf_str token)
{
    assert_true(token.len <= sizeof stage.page);
    stage.page_len = token.len;
    memcpy(stage.page, token.len > 0 ? token.data : "", token.len);
}

/* "reverse ID [N] [more]" */
static hf_status look_back(const char *text, const char *id, int page)
{
    hf_rig_call *slot = hf_rig_slot(&stage.rig, "d");
    hf_pb_get_workflow_execution_history_reverse_request *request =
        HF_RIG_REQUEST(slot, get_workflow_execution_history_reverse);
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
    request->execution->workflow_id = hf_arena_copy(&slot->request, hf_str_of(id));
    request->maximum_page_size = page;
    if (has(text, "more")) {
        request->next_page_token = hf_arena_copy(&slot->request, hf_str_of_len(stage.page, stage.page_len));
    }
    hf_rig_send(&stage.rig, slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE, request);
    if (slot->done && slot->call.status == HF_OK) {
        keep_page(
            ((const hf_pb_get_workflow_execution_history_reverse_response *)slot->call.response)->next_page_token);
    }
    return slot->done ? slot->call.status : HF_ERR_AGAIN;
}

/* "describe ID", "history ID [N] [wait] [more] [replays]", "watch ID": N events a page, with the last token, until the end. */
static hf_status look(const char *text, bool *ret_is_look)
{
    char verb[16] = "";
    char id[16] = "";
    int page = 0;
    *ret_is_look = sscanf(text, " %15s %15s %d", verb, id, &page) >= 2 &&
                   (strcmp(verb, "describe") == 0 || strcmp(verb, "history") == 0 || strcmp(verb, "watch") == 0 ||
                    strcmp(verb, "reverse") == 0);
    if (!*ret_is_look) {
        return HF_OK;
    }
    if (strcmp(verb, "reverse") == 0) {
        return look_back(text, id, page);
    }
    bool parks = strcmp(verb, "watch") == 0 || (has(text, "wait") && has(text, "more"));
    hf_rig_call *slot = hf_rig_slot(&stage.rig, parks ? "h" : "d");
    if (strcmp(verb, "describe") == 0) {
        hf_pb_describe_workflow_execution_request *request = HF_RIG_REQUEST(slot, describe_workflow_execution);
        request->namespace = HF_STR(HF_RIG_NS);
        request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
        request->execution->workflow_id = hf_arena_copy(&slot->request, hf_str_of(id));
        hf_rig_send(&stage.rig, slot, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, request);
        return slot->done ? slot->call.status : HF_ERR_AGAIN;
    }
    hf_pb_get_workflow_execution_history_request *request = HF_RIG_REQUEST(slot, get_workflow_execution_history);
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
    request->execution->workflow_id = hf_arena_copy(&slot->request, hf_str_of(id));
    request->maximum_page_size = page;
    request->wait_new_event = parks || has(text, "wait");
    request->history_event_filter_type = verb[0] == 'w' ? HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT : 0;
    if (has(text, "more")) {
        request->next_page_token = hf_arena_copy(&slot->request, hf_str_of_len(stage.page, stage.page_len));
    }
    slot->call.replays = has(text, "replays");
    hf_rig_send(&stage.rig, slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, request);
    if (slot->done && slot->call.status == HF_OK) {
        keep_page(((const hf_pb_get_workflow_execution_history_response *)slot->call.response)->next_page_token);
    }
    return slot->done ? slot->call.status : parks ? HF_OK : HF_ERR_AGAIN;
}

static hf_status try_step(const char *text)
{
    bool is_look = false;
    hf_status status = look(text, &is_look);
    return is_look ? status : hf_rig_try(&stage.rig, text);
}

static void play(const char *script)
{
    char text[600];
    while (*script != '\0') {
        size_t len = strcspn(script, ";");
        bool is_look = false;
        (void)snprintf(text, sizeof text, "%.*s", (int)len, script);
        hf_status status = look(text, &is_look);
        if (is_look) {
            assert_int_equal(status, HF_OK);
        } else {
            hf_rig_do(&stage.rig, text);
        }
        script += script[len] == ';' ? len + 1 : len;
    }
}

/* ---- A scene ----------------------------------------------------------------------------------------------------- */

static void open_stage(size_t index)
{
    hf_core_options options = {0};
    if (index % 2 == 1) { /* runs and tasks come from the store each time */
        options = (hf_core_options){
            .mem_max = 1, .trim_count = 1, .page_max = 1, .tail_len_max = 200, .reset_portion_count = 2};
    }
    stage.page_len = 0;
    hf_rig_open_on(&stage.rig, options, hf_nomem_is_sqlite(index) ? HF_RIG_SQLITE : HF_RIG_MEMORY);
}

static void histories(const scene *it, hf_buf *out)
{
    hf_buf_init(out, hf_rig_heap, SIZE_MAX / 4);
    hf_rig_history_text(hf_rig_history_bytes(&stage.rig, "wf"), true, out);
    if (has(it->setup, "start other")) {
        hf_rig_history_text(hf_rig_history_bytes(&stage.rig, "other"), true, out);
    }
}

/* Whether the step is a call with an answer that can be repeated; after polls and the like `regain` is played instead. */
static bool is_call(const scene *it)
{
    static const char *const OTHERS[] = {"poll",  "apoll", "time",   "drop",    "unwanted",
                                         "watch", "query", "update", "updpoll", "updstart"};
    for (size_t i = 0; i < HF_COUNT_OF(OTHERS); i++) {
        if (strncmp(it->step, OTHERS[i], strlen(OTHERS[i])) == 0) {
            return false;
        }
    }
    return true;
}

/* Stops a broken core: all waiting calls are answered with HF_ERR_NOMEM. */
static void stop_broken(void)
{
    hf_rig *rig = &stage.rig;
    hf_status status = hf_core_status(rig->core);
    /* SQLite may run out of memory in the middle of a COMMIT: then it is unknown whether the commit happened (S5). */
    if (status != HF_ERR_NOMEM && (status != HF_ERR_STORE || rig->disk == NULL)) {
        fail_msg("%s: %s: %s", now, hf_status_name(status), rig->core->why);
    }
    bool waits[HF_RIG_SLOTS];
    for (size_t i = 0; i < HF_RIG_SLOTS; i++) {
        waits[i] = rig->slots[i].used && !rig->slots[i].done;
    }
    hf_core_stop(rig->core, status, "out of memory");
    for (size_t i = 0; i < HF_RIG_SLOTS; i++) {
        if (waits[i] && (!rig->slots[i].done || rig->slots[i].call.status != status)) {
            fail_msg("%s: a call was not answered", now);
        }
    }
}

static void open_again(bool full, hf_nomem_counts *counts)
{
    hf_rig *rig = &stage.rig;
    rig->allocations = 0;
    rig->fail_at = full ? 1 : 0;
    rig->fail_on = false;
    hf_rig_crash(rig);
    for (uint64_t nth = 2; rig->core == NULL; nth++) {
        counts->opens++;
        rig->allocations = 0;
        rig->fail_at = full ? nth : 0;
        hf_status status = hf_rig_reopen(rig);
        if (status == HF_ERR_STORE && rig->disk != NULL) {
            hf_rig_reopen_store(rig);
        } else if (status != HF_OK && (status != HF_ERR_NOMEM || !full)) {
            fail_msg("%s: the core does not open again: %s", now, hf_status_name(status));
        }
    }
    rig->fail_at = 0;
    assert_true(hf_rig_settle(rig));
}

/* Frees the memory that the core keeps from one step to the next, so that each step has to allocate it. */
static void forget_buffers(hf_core *core)
{
    hf_buf *const buffers[] = {&core->row, &core->events};
    for (size_t i = 0; i < HF_COUNT_OF(buffers); i++) {
        hf_buf_deinit(buffers[i]);
        hf_buf_init(buffers[i], core->memory, SIZE_MAX / 4);
    }
    for (size_t i = 0; i < HF_COUNT_OF(core->batches); i++) {
        hf_arena_deinit(&core->batches[i].writes.arena); /* nothing is on its way */
        hf_buf_deinit(&core->batches[i].journal);
    }
    hf_arena_deinit(&core->scratch);
}

/* Plays the step with allocation `nth` failing; 0 = none. Returns the status, and in `*ret_count` the number of
 * allocations. */
static hf_status play_step(const scene *it, uint64_t nth, bool on, uint64_t *ret_count)
{
    hf_rig *rig = &stage.rig;
    forget_buffers(rig->core);
    rig->allocations = 0;
    rig->fail_at = nth;
    rig->fail_on = on;
    rig->may_break = true;
    hf_status status = try_step(it->step);
    rig->fail_at = 0;
    *ret_count = rig->allocations;
    return status;
}

/* After a break the sticky task is in the normal queue, and does not time out in the sticky one. */
static bool is_moved(const scene *it, const char *text)
{
    return has(it->setup, STICKY) && strcmp(it->step, "time 10s") == 0 &&
           strcmp(text, "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled\n3 WorkflowTaskStarted\n"
                        "4 WorkflowTaskCompleted\n5 TimerStarted\n6 TimerFired\n7 WorkflowTaskScheduled\n"
                        "8 WorkflowTaskStarted\n9 WorkflowTaskCompleted\n10 WorkflowExecutionCompleted\n") == 0;
}

static void play_with_failure(size_t index, uint64_t nth, bool on, bool full, hf_status expected,
                              const char *expected_text, hf_nomem_counts *counts)
{
    const scene *it = scene_of(index);
    uint64_t count = 0;
    bool broke = false;
    (void)snprintf(now, sizeof now, "scene %zu, %s, allocation %llu%s", index, it->step, (unsigned long long)nth,
                   on ? " and all after it" : "");
    open_stage(index);
    play(it->setup);
    hf_status status = play_step(it, nth, on, &count);
    counts->faults++;
    if (hf_core_status(stage.rig.core) != HF_OK) {
        counts->broke++;
        broke = true;
        if (status != expected && status != HF_OK && status != HF_ERR_AGAIN && status != HF_ERR_NOMEM) {
            fail_msg("%s: the call was answered with %s", now, hf_status_name(status)); /* before the core broke */
        }
        stop_broken();
        open_again(full, counts);
        if (is_call(it) &&
            status != expected) { /* not acknowledged: it is repeated, and may find that it happened before */
            status = try_step(it->step);
            assert_true(status == expected || status == HF_ERR_NOT_FOUND || status == HF_ERR_EXISTS);
        }
        stage.rig.may_break = false;
        play(it->regain != NULL ? it->regain : "");
    } else if (status != expected) {
        fail_msg("%s: %s", now, hf_status_name(status));
    } else if (!hf_nomem_is_sqlite(index)) { /* SQLite can do without some of its memory */
        fail_msg("%s: nobody has noticed (engine-E2)", now);
    }
    stage.rig.may_break = false;
    play(it->finish);
    hf_buf text;
    histories(it, &text);
    bool is_other = broke && is_moved(it, hf_buf_text(&text));
    if (strcmp(hf_buf_text(&text), expected_text) != 0 && !is_other) {
        fail_msg("%s:\n%s\ninstead of\n%s", now, hf_buf_text(&text), expected_text);
    }
    hf_buf_deinit(&text);
    hf_rig_close(&stage.rig);
}

static void count_method(const scene *it, hf_nomem_counts *counts)
{
    static const struct {
        const char *verb;
        hf_method method;
    } VERBS[] = {
        {"start ", HF_METHOD_START_WORKFLOW_EXECUTION},
        {"signal ", HF_METHOD_SIGNAL_WORKFLOW_EXECUTION},
        {"sigstart ", HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION},
        {"options ", HF_METHOD_UPDATE_WORKFLOW_EXECUTION_OPTIONS},
        {"cancel ", HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION},
        {"terminate ", HF_METHOD_TERMINATE_WORKFLOW_EXECUTION},
        {"delete ", HF_METHOD_DELETE_WORKFLOW_EXECUTION},
        {"reset ", HF_METHOD_RESET_WORKFLOW_EXECUTION},
        {"describe ", HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION},
        {"history ", HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY},
        {"reverse ", HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE},
        {"poll ", HF_METHOD_POLL_WORKFLOW_TASK_QUEUE},
        {"complete ", HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED},
        {"fail", HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED},
        {"unstick ", HF_METHOD_RESET_STICKY_TASK_QUEUE},
        {"apoll ", HF_METHOD_POLL_ACTIVITY_TASK_QUEUE},
        {"acomplete", HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED},
        {"afail", HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED},
        {"acancel", HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED},
        {"heartbeat", HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT},
        {"acomplete by", HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID},
        {"afail by", HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID},
        {"acancel by", HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID},
        {"heartbeat by", HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID},
        {"apause ", HF_METHOD_PAUSE_ACTIVITY},
        {"aunpause ", HF_METHOD_UNPAUSE_ACTIVITY},
        {"areset ", HF_METHOD_RESET_ACTIVITY},
        {"aoptions ", HF_METHOD_UPDATE_ACTIVITY_OPTIONS},
        {"queue ", HF_METHOD_DESCRIBE_TASK_QUEUE},
        {"shutdown ", HF_METHOD_SHUTDOWN_WORKER},
        {"system", HF_METHOD_GET_SYSTEM_INFO},
        {"cluster", HF_METHOD_GET_CLUSTER_INFO},
        {"namespace ", HF_METHOD_DESCRIBE_NAMESPACE},
        {"stream ", HF_METHOD_READ_STREAM},
        {"changes", HF_METHOD_READ_CHANGES},
        {"queues", HF_METHOD_LIST_TASK_QUEUES},
        {"list ", HF_METHOD_LIST_WORKFLOW_EXECUTIONS},
        {"scan ", HF_METHOD_SCAN_WORKFLOW_EXECUTIONS},
        {"count ", HF_METHOD_COUNT_WORKFLOW_EXECUTIONS},
        {"listopen ", HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS},
        {"listclosed ", HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS},
        {"register ", HF_METHOD_REGISTER_NAMESPACE},
        {"nsupdate ", HF_METHOD_UPDATE_NAMESPACE},
        {"deprecate ", HF_METHOD_DEPRECATE_NAMESPACE},
        {"namespaces", HF_METHOD_LIST_NAMESPACES},
        {"addattr ", HF_METHOD_ADD_SEARCH_ATTRIBUTES},
        {"removeattr ", HF_METHOD_REMOVE_SEARCH_ATTRIBUTES},
        {"attrs", HF_METHOD_LIST_SEARCH_ATTRIBUTES},
        {"allattrs", HF_METHOD_GET_SEARCH_ATTRIBUTES},
        {"batch ", HF_METHOD_START_BATCH_OPERATION},
        {"batchstop ", HF_METHOD_STOP_BATCH_OPERATION},
        {"batchshow ", HF_METHOD_DESCRIBE_BATCH_OPERATION},
        {"batches", HF_METHOD_LIST_BATCH_OPERATIONS},
        {"nsdelete ", HF_METHOD_DELETE_NAMESPACE},
        {"query ", HF_METHOD_QUERY_WORKFLOW},
        {"update ", HF_METHOD_UPDATE_WORKFLOW_EXECUTION},
        {"updpoll ", HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE},
        {"updstart ", HF_METHOD_EXECUTE_MULTI_OPERATION},
        {"qanswer", HF_METHOD_RESPOND_QUERY_TASK_COMPLETED},
    };
    for (size_t i = 0; i < HF_COUNT_OF(VERBS); i++) {
        if (strncmp(it->step, VERBS[i].verb, strlen(VERBS[i].verb)) == 0) {
            counts->methods[VERBS[i].method]++;
        }
    }
}

void hf_nomem_sweep(size_t index, uint64_t first, uint64_t stride, bool full, hf_nomem_counts *counts)
{
    const scene *it = scene_of(index);
    uint64_t count = 0;
    (void)snprintf(now, sizeof now, "scene %zu, %s", index, it->step);
    open_stage(index);
    play(it->setup);
    hf_status expected = play_step(it, 0, false, &count);
    stage.rig.may_break = false;
    count_method(it, counts);
    play(it->finish);
    hf_buf text;
    histories(it, &text);
    hf_rig_close(&stage.rig);
    for (uint64_t nth = first; nth <= count; nth += stride) {
        play_with_failure(index, nth, false, full, expected, hf_buf_text(&text), counts);
        if (full) {
            play_with_failure(index, nth, true, full, expected, hf_buf_text(&text), counts);
        }
    }
    counts->scenes++;
    now[0] = '\0';
    hf_buf_deinit(&text);
}
