/* What hf_describe and hf_list share. */
#ifndef HF_CLIENT_SHOW_H
#define HF_CLIENT_SHOW_H

#include "client/errand.h"

/* What the service says of a run, without what it waits for. Texts are copied to the arena: check its status. */
void hf_description_fill(hf_arena *arena, const hf_pb_workflow_execution_info *info, hf_description *to);

#endif
