// An exception that leaves a body cannot go anywhere: the library must stop with a message that says "exception left".
// The argument says which body throws; `caught` throws and catches inside one, which is fine.
#include <holdfast/holdfast.h>

#include <cstring>
#include <stdexcept>

namespace
{

hf_status throws(void *)
{
    throw std::runtime_error("out of the body");
}

hf_status catches(void *)
{
    try {
        return throws(nullptr);
    } catch (const std::runtime_error &) {
        return hf_yield();
    }
}

hf_status in_fiber(void *)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = nullptr;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, throws, nullptr));
    return hf_join(scope);
}

hf_status in_pool(void *)
{
    return hf_block(throws, nullptr);
}

// Here the exception may pass through the library's frames first; it still must not leave the fiber.
hf_status in_once(void *)
{
    HF_AUTO(hf_once_free) hf_once *once = nullptr;
    HF_TRY(hf_once_new(&once));
    return hf_once_run(once, throws, nullptr);
}

} // namespace

int main(int argc, char **argv)
{
    const char *where = argc == 2 ? argv[1] : "";
    hf_body body = nullptr;
    if (std::strcmp(where, "fiber") == 0) {
        body = in_fiber;
    } else if (std::strcmp(where, "pool") == 0) {
        body = in_pool;
    } else if (std::strcmp(where, "once") == 0) {
        body = in_once;
    } else if (std::strcmp(where, "caught") == 0) {
        body = catches;
    } else {
        return 2;
    }
    HF_OR_DIE(hf_run(body, nullptr));
    return 0;
}
