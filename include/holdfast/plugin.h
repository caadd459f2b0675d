/* Plugins: workflows and activities in a shared object, without a main(). The program `holdfast` runs them:
 *
 *     holdfast worker orders.db --plugin FILE.so --queue orders    a worker on a file, until SIGTERM or Ctrl-C
 *     holdfast serve --plugin FILE.so                              a worker inside the server
 *     holdfast replay HISTORY.json --plugin FILE.so                does this code do what that history says?
 *     holdfast sim --plugin FILE.so NAME                           a workflow with crashes and signals at every point
 *
 *     #include <holdfast/holdfast.h>
 *
 *     static hf_status hello(hf_payload in, hf_payload *ret_out) { ... }
 *
 *     HF_PLUGIN(worker)
 *     {
 *         return hf_worker_add_workflow(worker, "hello", hello);
 *     }
 *
 * Build it with `cc -shared -fPIC`; it need not be linked with libholdfast, because the program has all its functions. The program
 * calls the block once, before the worker starts, and refuses a plugin that was compiled for another version of Holdfast, or that
 * has a Holdfast of its own inside. If the block returns anything but HF_OK, the program ends. */
#ifndef HOLDFAST_PLUGIN_H
#define HOLDFAST_PLUGIN_H

#include <holdfast/worker.h>

#ifdef __cplusplus
#define HF_PLUGIN_ extern "C" __attribute__((visibility("default")))
#else
#define HF_PLUGIN_ __attribute__((visibility("default")))
#endif

/* Defines a plugin; a block that returns hf_status follows. Once per shared object. */
#define HF_PLUGIN(worker)                                    \
    HF_PLUGIN_ hf_status hf_plugin_add(hf_worker *worker);   \
    HF_PLUGIN_ const char *hf_plugin_version(void);          \
    HF_PLUGIN_ const char *(*hf_plugin_library(void))(void); \
    HF_PLUGIN_ const char *hf_plugin_version(void)           \
    {                                                        \
        return HF_VERSION_TEXT;                              \
    }                                                        \
    HF_PLUGIN_ const char *(*hf_plugin_library(void))(void)  \
    {                                                        \
        return hf_version;                                   \
    }                                                        \
    hf_status hf_plugin_add(hf_worker *worker)

/* For `holdfast sim`, and optional: what the activities of the plugin have done to the world, as JSON. The trials compare it. Give the fakes
 * of a plugin for trials variables in place of a bank and a warehouse, and say only what must be right in the end, such as sums:
 *
 *     HF_PLUGIN_WORLD(ret_out)
 *     {
 *         return hf_payload_printf(ret_out, "{\"charged\": %d}", charged - refunded);
 *     } */
#define HF_PLUGIN_WORLD(ret_out)                               \
    HF_PLUGIN_ hf_status hf_plugin_world(hf_payload *ret_out); \
    hf_status hf_plugin_world(hf_payload *ret_out)

#endif
