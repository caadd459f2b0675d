#include "support/engine_calls.h"

#include "history/payload.h"
#include "support/engine_ask.h"

#include <stdio.h>
#include <string.h>

/* "sinput=BYTES" */
static hf_pb_payloads *signal_input(hf_arena *arena, const hf_words *w)
{
    size_t len = (size_t)hf_words_number(w, "sinput", 0);
    if (hf_words_option(w, "sinput") == NULL) {
        return NULL;
    }
    hf_pb_payload payload = {.data = hf_str_of_len(hf_arena_zero(arena, len, 1), len)};
    return hf_payloads_of(arena, payload);
}

static void signal_with_start(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    hf_pb_signal_with_start_workflow_execution_request *request =
        HF_RIG_REQUEST(slot, signal_with_start_workflow_execution);
    hf_arena *arena = &slot->request;
    hf_pb_start_workflow_execution_request start = {0};
    hf_words_start(arena, w, &start);
    *request = (hf_pb_signal_with_start_workflow_execution_request){
        .namespace = start.namespace,
        .workflow_id = start.workflow_id,
        .workflow_type = start.workflow_type,
        .task_queue = start.task_queue,
        .input = start.input,
        .workflow_execution_timeout = start.workflow_execution_timeout,
        .workflow_run_timeout = start.workflow_run_timeout,
        .workflow_task_timeout = start.workflow_task_timeout,
        .request_id = start.request_id,
        .workflow_id_reuse_policy = start.workflow_id_reuse_policy,
        .workflow_id_conflict_policy = start.workflow_id_conflict_policy,
        .retry_policy = start.retry_policy,
        .cron_schedule = start.cron_schedule,
        .memo = start.memo,
        .search_attributes = start.search_attributes,
        .header = start.header,
        .workflow_start_delay = start.workflow_start_delay,
        .holdfast_keep = start.holdfast_keep,
        .signal_name = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 2))),
        .signal_input = signal_input(arena, w),
    };
    hf_rig_send(rig, slot, HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION, request);
}

void hf_words_attach(hf_arena *arena, const hf_words *w, hf_pb_start_workflow_execution_request *request)
{
    if (hf_words_has(w, "attach") || hf_words_has(w, "attach_links")) {
        request->on_conflict_options = HF_ARENA_NEW(arena, hf_pb_on_conflict_options);
        request->on_conflict_options->attach_request_id = hf_words_has(w, "attach");
        request->on_conflict_options->attach_links = hf_words_has(w, "attach_links");
    }
    if (hf_words_option(w, "link") != NULL) {
        hf_pb_link *link = HF_ARENA_NEW(arena, hf_pb_link);
        link->variant_case = HF_PB_LINK_WORKFLOW_EVENT;
        link->workflow_event = HF_ARENA_NEW(arena, hf_pb_link_workflow_event);
        link->workflow_event->namespace = HF_STR(HF_RIG_NS);
        link->workflow_event->workflow_id = hf_arena_copy(arena, hf_words_str(w, "link", ""));
        link->workflow_event->run_id = HF_STR("00000000-0000-4000-8000-000000000001");
        request->links = (hf_pb_link_list){link, 1};
    }
    if (hf_words_option(w, "priority") != NULL) {
        request->priority = HF_ARENA_NEW(arena, hf_pb_priority);
        request->priority->priority_key = hf_words_number(w, "priority", 0);
    }
}

static void add_path(const hf_words *w, const char *word, const char *path, hf_pb_field_mask *mask)
{
    if (hf_words_option(w, word) != NULL || hf_words_has(w, word)) {
        mask->paths.items[mask->paths.count++] = hf_str_of(path);
    }
}

void hf_rig_options(const hf_words *w, hf_arena *arena, hf_pb_workflow_execution_options *options,
                    hf_pb_field_mask *mask)
{
    mask->paths.items = HF_ARENA_ARRAY(arena, hf_str, 8);
    add_path(w, "priority", "priority.priority_key", mask);
    add_path(w, "fairness", "priority.fairnessKey", mask);
    add_path(w, "weight", "priority.fairness_weight", mask);
    add_path(w, "auto", "versioning_override", mask);
    add_path(w, "pinned", "versioningOverride", mask);
    add_path(w, "unset", "versioning_override", mask);
    if (hf_words_option(w, "mask") != NULL) {
        mask->paths.items[mask->paths.count++] = hf_arena_copy(arena, hf_words_str(w, "mask", ""));
    }
    if (hf_words_option(w, "priority") != NULL || hf_words_option(w, "fairness") != NULL ||
        hf_words_option(w, "weight") != NULL) {
        options->priority = HF_ARENA_NEW(arena, hf_pb_priority);
        options->priority->priority_key = hf_words_number(w, "priority", 0);
        options->priority->fairness_key = hf_arena_copy(arena, hf_words_str(w, "fairness", ""));
        options->priority->fairness_weight = (float)hf_words_number(w, "weight", 0);
    }
    if (hf_words_has(w, "auto") || hf_words_option(w, "pinned") != NULL) {
        hf_pb_versioning_override *override = HF_ARENA_NEW(arena, hf_pb_versioning_override);
        options->versioning_override = override;
        override->override_case = HF_PB_VERSIONING_OVERRIDE_AUTO_UPGRADE;
        override->auto_upgrade = true;
        if (hf_words_option(w, "pinned") != NULL) {
            override->override_case = HF_PB_VERSIONING_OVERRIDE_PINNED;
            override->pinned = HF_ARENA_NEW(arena, hf_pb_versioning_override_pinned_override);
            override->pinned->behavior = 1;
            if (hf_words_str(w, "pinned", "").len > 0) {
                override->pinned->version = HF_ARENA_NEW(arena, hf_pb_worker_deployment_version);
                override->pinned->version->build_id = hf_arena_copy(arena, hf_words_str(w, "pinned", ""));
            }
        }
    }
}

/* "options ID" */
static void update_options(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    hf_pb_update_workflow_execution_options_request *request = HF_RIG_REQUEST(slot, update_workflow_execution_options);
    hf_arena *arena = &slot->request;
    request->namespace = hf_arena_copy(arena, hf_words_str(w, "ns", HF_RIG_NS));
    request->workflow_execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    request->workflow_execution->workflow_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
    request->workflow_execution->run_id = hf_arena_copy(arena, hf_words_str(w, "run_id", ""));
    request->identity = hf_arena_copy(arena, hf_words_str(w, "identity", ""));
    request->workflow_execution_options = HF_ARENA_NEW(arena, hf_pb_workflow_execution_options);
    request->update_mask = HF_ARENA_NEW(arena, hf_pb_field_mask);
    hf_rig_options(w, arena, request->workflow_execution_options, request->update_mask);
    hf_rig_send(rig, slot, HF_METHOD_UPDATE_WORKFLOW_EXECUTION_OPTIONS, request);
}

static void describe_queue(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    hf_pb_describe_task_queue_request *request = HF_RIG_REQUEST(slot, describe_task_queue);
    hf_arena *arena = &slot->request;
    request->namespace = hf_arena_copy(arena, hf_words_str(w, "ns", HF_RIG_NS));
    request->task_queue = hf_words_queue(arena, hf_str_of(hf_words_place(w, 1)));
    request->task_queue->name = hf_arena_copy(arena, request->task_queue->name);
    request->task_queue_type =
        hf_words_has(w, "activities") ? HF_TASK_QUEUE_TYPE_ACTIVITY : HF_TASK_QUEUE_TYPE_WORKFLOW;
    request->include_task_queue_status = hf_words_has(w, "status");
    request->report_stats = hf_words_has(w, "stats");
    request->report_pollers = hf_words_has(w, "pollers");
    request->report_task_reachability = hf_words_has(w, "reach");
    request->api_mode = hf_words_has(w, "enhanced") ? HF_DESCRIBE_TASK_QUEUE_MODE_ENHANCED : 0;
    if (hf_words_has(w, "sticky")) {
        request->task_queue->kind = HF_TASK_QUEUE_KIND_STICKY;
    }
    int32_t builds = hf_words_number(w, "builds", -1); /* as many build ids as that: b0, b1, ... */
    if (builds >= 0 || hf_words_has(w, "unversioned")) {
        request->versions = HF_ARENA_NEW(arena, hf_pb_task_queue_version_selection);
        request->versions->unversioned = hf_words_has(w, "unversioned");
        request->versions->build_ids.items = HF_ARENA_ARRAY(arena, hf_str, builds > 0 ? (size_t)builds : 1);
        for (int32_t i = 0; i < builds; i++) {
            char name[32];
            (void)snprintf(name, sizeof name, "b%d", (int)i);
            request->versions->build_ids.items[request->versions->build_ids.count++] =
                hf_arena_copy(arena, hf_str_of(name));
        }
    }
    hf_rig_send(rig, slot, HF_METHOD_DESCRIBE_TASK_QUEUE, request);
}

bool hf_rig_client(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    const char *verb = hf_words_place(w, 0);
    if (strcmp(verb, "sigstart") == 0) {
        signal_with_start(rig, slot, w);
    } else if (strcmp(verb, "options") == 0) {
        update_options(rig, slot, w);
    } else if (strcmp(verb, "queue") == 0) {
        describe_queue(rig, slot, w);
    } else {
        return false;
    }
    return true;
}
