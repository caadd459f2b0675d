/* Finding the C++ runtime of the process.
 *
 *     linked with the program      the weak reference below refers to it
 *     loaded by dlopen, with a     found by its name, even if its symbols are private to the library that needs it
 *     library that needs it
 *     anything else                found if its symbols are global
 *
 * In each case it stays loaded from then on: threads keep addresses in its thread-local storage. */
#include "env/exceptions.h"

#include <dlfcn.h>

typedef void *(*get_globals)(void);

extern void *__cxa_get_globals(void) __attribute__((weak, visibility("default")));

static _Atomic(get_globals) found;

static get_globals function_in(void *library)
{
    get_globals function = NULL;
    void *address = dlsym(library, "__cxa_get_globals");
    _Static_assert(sizeof function == sizeof address, "POSIX says that dlsym gives functions, too");
    __builtin_memcpy(&function, &address, sizeof function);
    return function;
}

/* Looks only in libraries that are loaded already; the library that has the function is never unloaded. */
static get_globals function_by_name(void)
{
    static const char *const NAMES[] = {"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1", "libcxxrt.so.1"};
    for (size_t i = 0; i < HF_COUNT_OF(NAMES); i++) {
        void *library = dlopen(NAMES[i], RTLD_LAZY | RTLD_NOLOAD);
        get_globals function = library != NULL ? function_in(library) : NULL;
        if (function != NULL) {
            return function;
        }
        if (library != NULL) {
            (void)dlclose(library);
        }
    }
    return NULL;
}

static get_globals function_by_symbol(void)
{
    get_globals function = function_in(RTLD_DEFAULT);
    void *address = NULL;
    Dl_info info;
    __builtin_memcpy(&address, &function, sizeof address);
    if (function != NULL && dladdr(address, &info) != 0) {
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD); /* so that it stays loaded */
    }
    return function;
}

void hf_exceptions_look(void)
{
    if (atomic_load_explicit(&found, memory_order_acquire) != NULL) {
        return;
    }
    get_globals function = __cxa_get_globals;
    function = function != NULL ? function : function_by_name();
    function = function != NULL ? function : function_by_symbol();
    if (function != NULL) {
        atomic_store_explicit(&found, function, memory_order_release);
    }
}

hf_exceptions *hf_exceptions_here(void)
{
    get_globals function = atomic_load_explicit(&found, memory_order_acquire);
    return function != NULL ? (hf_exceptions *)function() : NULL;
}
