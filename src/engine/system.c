/* What the service says of itself, and of every namespace alike.
 *
 * SDKs ask for both before anything else, and change what they send by the answers: a capability that is set here is a
 * promise. */
#include "engine/system.h"

#include "base/siphash.h"
#include "engine/answer.h"
#include "engine/core_private.h"

static const hf_pb_get_system_info_response_capabilities CAPABILITIES = {
    .signal_and_query_header = true,
    .internal_error_differentiation = true,
    .activity_failure_include_heartbeat = true,
    .encoded_failure_attributes = true,
    .upsert_memo = true,
    .eager_workflow_start = true,
    .sdk_metadata = true,
    .count_group_by_execution_status = true,
};

static const hf_pb_namespace_info_capabilities NAMESPACE_CAPABILITIES = {
    .eager_workflow_start = true,
    .sync_update = true,
    .async_update = true,
    .worker_poll_complete_on_shutdown = true,
};

void hf_system_info_call(hf_core *core, hf_call *call)
{
    hf_pb_get_system_info_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    response->server_version = HF_STR(HF_VERSION_TEXT);
    response->capabilities = HF_ARENA_NEW(call->arena, hf_pb_get_system_info_response_capabilities);
    if (response->capabilities != NULL) {
        *response->capabilities = CAPABILITIES;
    }
    hf_call_reply(core, call);
}

/* Each store is a cluster of its own. Its id never changes, and tells nothing of the key that it is made of. */
void hf_cluster_info_call(hf_core *core, hf_call *call)
{
    hf_pb_get_cluster_info_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    response->server_version = HF_STR(HF_VERSION_TEXT);
    response->cluster_id = hf_uuid_in(call->arena, hf_siphash(core->mac_key, HF_STR("cluster id, 1")),
                                      hf_siphash(core->mac_key, HF_STR("cluster id, 2")));
    response->cluster_name = HF_STR("holdfast");
    response->history_shard_count = 1;
    response->persistence_store = HF_STR("sqlite");
    response->visibility_store = HF_STR("sqlite");
    hf_call_reply(core, call);
}

/* The same name has the same id in every store, for ever: the keys must not change. */
static hf_str namespace_id(hf_arena *arena, hf_str name)
{
    static const unsigned char KEYS[2][HF_SIPHASH_KEY_LEN] = {"namespace id, 1", "namespace id, 2"};
    return hf_uuid_in(arena, hf_siphash(KEYS[0], name), hf_siphash(KEYS[1], name));
}

void hf_namespace_fill(const hf_core *core, hf_arena *arena, hf_str name, hf_pb_namespace_info *info,
                       hf_pb_namespace_config *config)
{
    info->name = hf_arena_copy(arena, name);
    info->id = namespace_id(arena, name);
    info->capabilities = HF_ARENA_NEW(arena, hf_pb_namespace_info_capabilities);
    info->limits = HF_ARENA_NEW(arena, hf_pb_namespace_info_limits);
    config->history_archival_state = HF_ARCHIVAL_STATE_DISABLED;
    config->visibility_archival_state = HF_ARCHIVAL_STATE_DISABLED;
    if (info->capabilities != NULL) {
        *info->capabilities = NAMESPACE_CAPABILITIES;
    }
    if (info->limits != NULL) {
        info->limits->blob_size_limit_error = (int64_t)core->options.limits.payload_len;
        info->limits->memo_size_limit_error = (int64_t)core->options.limits.payload_len;
    }
}
