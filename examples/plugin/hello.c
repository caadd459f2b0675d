/* A plugin for `holdfast serve --plugin hello.so`: a workflow and an activity in C, run by the server itself.
 *
 *     cc -shared -fPIC -fstack-clash-protection hello.c -o hello.so      (with the headers of Holdfast; it is not linked with the library)
 *     holdfast serve --store memory: --plugin hello.so
 *
 * Any client starts it: type "hello", task queue "default". */
#include <holdfast/holdfast.h>

static hf_status greet(hf_payload in, hf_payload *ret_out) /* an activity: `in` is a name as JSON */
{
    return hf_payload_printf(ret_out, "{\"greeting\": \"hello\", \"to\": %.*s}", (int)in.len, (const char *)in.data);
}

static hf_status hello(hf_payload in, hf_payload *ret_out) /* a workflow */
{
    HF_TRY(hf_sleep(hf_milliseconds(10)));
    return hf_activity_run("greet", in, ret_out, .start_to_close = hf_seconds(10));
}

HF_PLUGIN(worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "hello", hello));
    return hf_worker_add_activity(worker, "greet", greet);
}
