/* What the service says of itself, and of every namespace alike. */
#ifndef HF_ENGINE_SYSTEM_H
#define HF_ENGINE_SYSTEM_H

#include "engine/core.h"

void hf_system_info_call(hf_core *core, hf_call *call);
void hf_cluster_info_call(hf_core *core, hf_call *call);
/* What all namespaces have: id, capabilities, limits. */
void hf_namespace_fill(const hf_core *core, hf_arena *arena, hf_str name, hf_pb_namespace_info *info,
                       hf_pb_namespace_config *config);

#endif
