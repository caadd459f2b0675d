/* A plugin that was compiled for another version. */
#include <holdfast/holdfast.h>

HF_PLUGIN_ hf_status hf_plugin_add(hf_worker *worker);
HF_PLUGIN_ const char *hf_plugin_version(void);
HF_PLUGIN_ const char *(*hf_plugin_library(void))(void);

const char *hf_plugin_version(void)
{
    return "0.0.7";
}

const char *(*hf_plugin_library(void))(void)
{
    return hf_version;
}

hf_status hf_plugin_add(hf_worker *worker)
{
    (void)worker;
    return HF_OK;
}
