/* Workflows of a plugin run on a worker of the program that loads it; what is not such a plugin is refused with a sentence. */
/* labels: plainonly */
#include "support/support.h"

#include "base/base.h"
#include "main/plugin.c"

#include <holdfast/service.h>

static hf_status run_hello(void *arg)
{
    const char *const paths[] = {arg};
    hf_op op;
    hf_op_init(&op);
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_open("memory:", &service));
    HF_CHECK_SAY(hf_plugins_start(&op, service, paths, 1, "greetings", &worker) == HF_OK, "%s", op.message);
    HF_TRY(hf_start(service, "hello", hf_payload_of_json("\"you\""), &execution, .task_queue = "greetings"));
    HF_TRY(hf_result(execution, &out));
    HF_CHECK_SAY(strstr(out.data, "\"to\": \"you\"") != NULL, "%s", (const char *)out.data);
    return HF_OK;
}

static void a_plugin_runs_workflows(void **state)
{
    (void)state;
    assert_int_equal(hf_run(run_hello, (void *)(uintptr_t)HF_PLUGIN_HELLO), HF_OK);
}

static hf_status be_refused(void *arg)
{
    static const struct {
        const char *path;
        const char *words;
    } CASES[] = {
        {HF_PLUGIN_NONE, "is not a plugin: it has no HF_PLUGIN(worker)"},
        {HF_PLUGIN_OTHER, "was compiled for Holdfast 0.0.7, and this is " HF_VERSION_TEXT},
        {HF_PLUGIN_INSIDE, "has a Holdfast of its own inside"},
        {HF_PLUGIN_FAILS, "hf_worker_add_workflow"},
        {"/nowhere.so", "cannot load the plugin /nowhere.so: "},
        {"nowhere.so", "cannot load the plugin nowhere.so: ./nowhere.so"},
    };
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_TRY(hf_open("memory:", &service));
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_worker *worker = NULL;
        hf_op op;
        hf_op_init(&op);
        hf_status status = hf_plugins_start(&op, service, &CASES[i].path, 1, NULL, &worker);
        print_message("%s\n", op.message);
        HF_CHECK_SAY(status != HF_OK && worker == NULL && strstr(op.message, CASES[i].words) != NULL, "%s", op.message);
    }
    return HF_OK;
}

static void other_files_are_refused_with_a_sentence(void **state)
{
    (void)state;
    assert_int_equal(hf_run(be_refused, NULL), HF_OK);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_plugin_runs_workflows),
    cmocka_unit_test(other_files_are_refused_with_a_sentence),
};

int main(int argc, char **argv)
{
    return hf_test_main("plugin", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
