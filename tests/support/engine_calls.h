/* More steps of the rig's language (engine_rig.h): calls of clients. */
#ifndef HF_TESTS_ENGINE_CALLS_H
#define HF_TESTS_ENGINE_CALLS_H

#include "support/engine_rig.h"
#include "support/engine_words.h"

/* sigstart; false: another verb. */
bool hf_rig_client(hf_rig *rig, hf_rig_call *slot, const hf_words *w);

#endif
