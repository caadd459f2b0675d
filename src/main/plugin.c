/* Plugins: shared objects with workflows and activities in C, which a worker inside this program runs (holdfast/plugin.h).
 *
 * A plugin must use the Holdfast of this program, and not one of its own: two have nothing in common but their names. The program
 * exports the library's functions, so a plugin finds them here; one that was linked with libholdfast.a, or that was made for another
 * version, is refused. Plugins stay loaded until the program ends. */
#include "main/plugin.h"
#include "main/serve_private.h"
#include "open/open.h"

#include <dlfcn.h>
#include <stdio.h>

typedef const char *hf_version_fn(void);
typedef hf_version_fn *hf_plugin_library_fn(void);
typedef hf_status hf_plugin_add_fn(hf_worker *worker);

/* A function of the plugin, through a union: C does not convert between pointers to objects and to functions. */
typedef union hf_symbol {
    void *object;
    hf_version_fn *version;
    hf_plugin_library_fn *library;
    hf_plugin_add_fn *add;
    hf_plugin_world_fn *world;
} hf_symbol;

static hf_plugin_world_fn *last_world; /* of the plugin that was loaded last */

/* What a plugin is asked for. */
typedef struct plugin {
    hf_plugin_add_fn *add;
    hf_plugin_world_fn *world;
} plugin;

static hf_status open_plugin(hf_op *op, const char *path, plugin *ret_plugin)
{
    char name[HF_PATH_LEN_MAX];
    int len = snprintf(name, sizeof name, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
    void *handle = len > 0 && len < (int)sizeof name ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (handle == NULL) {
        const char *why = dlerror();
        return hf_fail(op, HF_ERR_INVALID, "cannot load the plugin %s: %s", path,
                       why != NULL ? why : "its name is too long");
    }
    hf_symbol version = {.object = dlsym(handle, "hf_plugin_version")};
    hf_symbol library = {.object = dlsym(handle, "hf_plugin_library")};
    hf_symbol body = {.object = dlsym(handle, "hf_plugin_add")};
    if (version.object == NULL || library.object == NULL || body.object == NULL) {
        return hf_fail(op, HF_ERR_INVALID, "%s is not a plugin: it has no HF_PLUGIN(worker) { ... }", path);
    }
    if (strcmp(version.version(), hf_version()) != 0) {
        return hf_fail(op, HF_ERR_INVALID,
                       "the plugin %s was compiled for Holdfast %s, and this is %s: compile it again", path,
                       version.version(), hf_version());
    }
    if (library.library() != &hf_version) {
        return hf_fail(
            op, HF_ERR_INVALID,
            "the plugin %s has a Holdfast of its own inside: link it without libholdfast.a, since this program "
            "has all functions that it needs",
            path);
    }
    ret_plugin->add = body.add;
    ret_plugin->world = ((hf_symbol){.object = dlsym(handle, "hf_plugin_world")}).world;
    return HF_OK;
}

hf_status hf_plugin_check(hf_op *op, const char *path)
{
    plugin opened;
    return open_plugin(op, path, &opened);
}

hf_status hf_plugin_load(hf_op *op, const char *path, hf_worker *worker)
{
    plugin opened;
    HF_TRY(open_plugin(op, path, &opened));
    last_world = opened.world;
    if (opened.add(worker) != HF_OK) {
        return hf_fail(op, hf_error()->status, "the plugin %s: %s", path, hf_error_text());
    }
    return HF_OK;
}

hf_plugin_world_fn *hf_plugin_world_last(void)
{
    return last_world;
}

hf_status hf_plugins_start(hf_op *op, hf_service *service, const char *const *paths, int count, const char *queue,
                           hf_worker **ret_worker)
{
    hf_worker *worker = NULL;
    if (count == 0) {
        return HF_OK;
    }
    if (hf_worker_new(service, queue != NULL ? queue : "default", &worker) != HF_OK) {
        return hf_fail(op, hf_error()->status, "%s", hf_error_text());
    }
    hf_status status = HF_OK;
    for (int i = 0; i < count && status == HF_OK; i++) {
        status = hf_plugin_load(op, paths[i], worker);
    }
    if (status == HF_OK && hf_worker_start(worker) != HF_OK) {
        status = hf_fail(op, hf_error()->status, "%s", hf_error_text());
    }
    if (status != HF_OK) {
        hf_worker_free(worker);
        return status;
    }
    *ret_worker = worker;
    return HF_OK;
}
