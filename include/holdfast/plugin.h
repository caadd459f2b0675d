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
 * Build it with `cc -shared -fPIC -fstack-clash-protection`; it need not be linked with libholdfast, because the program has all its functions. The program
 * calls the block once, before the worker starts, and refuses a plugin that was compiled for another version of Holdfast, or that
 * has a Holdfast of its own inside. If the block returns anything but HF_OK, the program ends. */
#ifndef HOLDFAST_PLUGIN_H
#define HOLDFAST_PLUGIN_H

#include <holdfast/worker.h>

#ifdef __cplusplus
#include <exception>
#define HF_PLUGIN_ extern "C" __attribute__((visibility("default")))
#else
#define HF_PLUGIN_ __attribute__((visibility("default")))
#endif

#if defined(__cplusplus) && defined(__cpp_exceptions)
/* An exception that leaves the block is its failure. */
inline hf_status hf_plugin_failed_() noexcept
{
    try {
        throw;
    } catch (const std::exception &e) {
        return hf_raise(HF_ERR_FAILED, "an exception left HF_PLUGIN: %s", e.what());
    } catch (...) {
        return hf_raise(HF_ERR_FAILED, "an exception left HF_PLUGIN; it is not a std::exception");
    }
}
#define HF_PLUGIN_BLOCK_(worker)                          \
    static hf_status hf_plugin_block_(hf_worker *worker); \
    hf_status hf_plugin_add(hf_worker *worker)            \
    {                                                     \
        try {                                             \
            return hf_plugin_block_(worker);              \
        } catch (...) {                                   \
            return hf_plugin_failed_();                   \
        }                                                 \
    }                                                     \
    static hf_status hf_plugin_block_(hf_worker *worker)
#else
#define HF_PLUGIN_BLOCK_(worker) hf_status hf_plugin_add(hf_worker *worker)
#endif

/* Defines a plugin; a block that returns hf_status follows. In C++ it may throw. Once per shared object. */
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
    HF_PLUGIN_BLOCK_(worker)

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
