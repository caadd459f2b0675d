/* Field masks: which fields of a message an update is about. */
#ifndef HF_ENGINE_MASK_H
#define HF_ENGINE_MASK_H

#include "proto/pb.h"

/* Whether a path is this field. Paths come with underscores, or as JSON has them. */
bool hf_mask_is(hf_str path, const char *name);
/* Whether one of the mask's paths is. */
bool hf_mask_has(const hf_pb_field_mask *mask, const char *name);

#endif
