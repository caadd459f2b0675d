/* What the service says of itself and of its namespaces. */
#ifndef HF_ENGINE_SYSTEM_H
#define HF_ENGINE_SYSTEM_H

#include "engine/core.h"

void hf_system_info_call(hf_core *core, hf_call *call);
/* The request's namespace is a good name. */
void hf_describe_namespace_call(hf_core *core, hf_call *call);

#endif
