/* Links of a request to other things. */
#ifndef HF_ENGINE_LINKS_H
#define HF_ENGINE_LINKS_H

#include "engine/core.h"

/* False: the call has failed, because of too many links, or of one that is too long or incomplete. */
bool hf_links_are_good(hf_core *core, hf_call *call, hf_pb_link_list links);

#endif
