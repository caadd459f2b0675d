/* The loader of plugins (docs/adr/0029), for every command that runs workflows of a shared object. */
#ifndef HF_MAIN_PLUGIN_H
#define HF_MAIN_PLUGIN_H

#include "base/op.h"

#include <holdfast/plugin.h>

typedef hf_status hf_plugin_world_fn(hf_payload *ret_out);

/* Whether the file is a plugin for this program; it stays loaded. Fails: HF_ERR_INVALID, with a sentence. */
hf_status hf_plugin_check(hf_op *op, const char *path);
/* Loads a plugin, which stays loaded, and adds what it has to the worker. Fails: HF_ERR_INVALID and what the plugin says, with a sentence. */
hf_status hf_plugin_load(hf_op *op, const char *path, hf_worker *worker);
/* HF_PLUGIN_WORLD of the plugin that was loaded last; NULL = it has none. */
hf_plugin_world_fn *hf_plugin_world_last(void);

#endif
