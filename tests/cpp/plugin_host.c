/* A program in C that loads C++ later, as the only code that needs it: the C++ runtime comes with it, and its symbols are
 * private to it. Runtimes that are made from then on know it.
 *     plugin_host <the tests of exceptions as a module> */
#include <holdfast/holdfast.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static hf_status yield_once(void *arg)
{
    (void)arg;
    return hf_yield();
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        return 2;
    }
    HF_OR_DIE(hf_run(yield_once, NULL)); /* there is nothing to be found yet */
    void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void *address = module != NULL ? dlsym(module, "main") : NULL;
    int (*tests)(int, char **) = NULL;
    if (address == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    memcpy(&tests, &address, sizeof tests);
    return tests(1, argv);
}
