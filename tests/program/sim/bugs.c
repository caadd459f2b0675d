/* Workflows with one bug each. The trials (holdfast sim) must find every one of them: tests/program/sim.sh. */
#include "program/sim/shop.h"

#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define STEP(name, in, out) hf_activity_run((name), (in), (out), .start_to_close = hf_seconds(10))

/* 1. The wall clock decides. */
static hf_status clock_bug(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(STEP("echo", in, NULL));
    return hf_payload_printf(ret_out, "%d", (int)(time(NULL) % 2 == 7));
}

/* 2. Chance decides. */
static hf_status rand_bug(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(STEP("echo", in, NULL));
    return hf_payload_printf(ret_out, "%d", rand() % 100);
}

/* 3. A global variable is changed by the workflow, and read after a wait. */
static int orders;

static hf_status global_bug(hf_payload in, hf_payload *ret_out)
{
    int number = ++orders;
    HF_TRY(STEP("echo", in, NULL));
    HF_TRY(hf_sleep(hf_days(1)));
    return hf_payload_printf(ret_out, "{\"number\": %d}", number);
}

/* 4. The charge is not refunded when the shipment fails. */
static hf_status compensation_bug(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    HF_TRY(STEP("charge", in, NULL));
    HF_TRY(hf_sleep(hf_hours(1)));
    return STEP("ship", in, NULL);
}

/* 5. The charge has no idempotency key: an attempt that is lost with its process has charged. */
static hf_status charge_bug(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    HF_TRY(STEP("charge_again", in, NULL));
    return STEP("ship", in, NULL);
}

/* 6. The handler is registered once in a process, and not once in a replay: an evicted run loses its signals. */
static hf_status take_address(void *arg, hf_payload in)
{
    (void)in;
    *(bool *)arg = true;
    return HF_OK;
}

static hf_status signal_bug(hf_payload in, hf_payload *ret_out)
{
    static bool is_registered;
    bool *has_address = hf_workflow_alloc(sizeof *has_address);
    (void)ret_out;
    if (!is_registered) {
        is_registered = true;
        HF_TRY(hf_on_signal("address", take_address, .arg = has_address));
    }
    HF_TRY(STEP("echo", in, NULL));
    HF_TRY(hf_wait_until(*has_address));
    return STEP("ship", in, NULL);
}

/* 7. Items are taken in the order of their addresses. */
static hf_status order_of_addresses_bug(hf_payload in, hf_payload *ret_out)
{
    enum { COUNT = 6 };
    int *items[COUNT];
    char text[COUNT + 1] = "";
    for (int i = 0; i < COUNT; i++) {
        items[i] = malloc(sizeof *items[i]);
        *items[i] = i;
    }
    for (int i = 0; i < COUNT; i++) {
        int least = i;
        for (int k = i + 1; k < COUNT; k++) {
            least = (uintptr_t)items[k] < (uintptr_t)items[least] ? k : least;
        }
        int *swapped = items[i];
        items[i] = items[least];
        items[least] = swapped;
        text[i] = (char)('a' + *items[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        free(items[i]);
    }
    HF_TRY(STEP("echo", in, NULL));
    return hf_payload_printf(ret_out, "\"%s\"", text);
}

/* 8. The environment decides. */
static hf_status getenv_bug(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(STEP("echo", in, NULL));
    return hf_payload_printf(ret_out, "%d", getenv("SHOP_TAX") != NULL);
}

/* 9. A static counter makes the ids of steps. */
static hf_status counter_bug(hf_payload in, hf_payload *ret_out)
{
    static int next;
    char id[16];
    (void)snprintf(id, sizeof id, "step-%d", ++next);
    HF_TRY(hf_activity_run("echo", in, ret_out, .start_to_close = hf_seconds(10), .id = id));
    return hf_sleep(hf_seconds(1));
}

/* 10. The result depends on which of two activities ends first. */
typedef struct race {
    int place;
    int first;
} race;

static race result;

static hf_status runner(void *arg)
{
    int number = *(int *)arg;
    HF_TRY(STEP("echo", hf_payload_none(), NULL));
    result.first = result.place++ == 0 ? number : result.first;
    return HF_OK;
}

static hf_status race_bug(hf_payload in, hf_payload *ret_out)
{
    int numbers[2] = {1, 2};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    result = (race){0, 0};
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, runner, &numbers[0]));
    HF_TRY(hf_fork(scope, runner, &numbers[1]));
    HF_TRY(hf_join(scope));
    return hf_payload_printf(ret_out, "{\"first\": %d}", result.first);
}

/* 11. A file decides. */
static hf_status file_bug(hf_payload in, hf_payload *ret_out)
{
    FILE *file = fopen("/etc/hostname", "r");
    char name[64] = "";
    if (file != NULL) {
        (void)!fgets(name, sizeof name, file);
        (void)fclose(file);
    }
    HF_TRY(STEP("echo", in, NULL));
    return hf_payload_printf(ret_out, "%zu", strlen(name));
}

/* 12. It sleeps in the process, which a replay repeats. */
static hf_status sleep_bug(hf_payload in, hf_payload *ret_out)
{
    (void)usleep(1000);
    return STEP("echo", in, ret_out);
}

/* 13. A signal that comes before the charge has ended is not taken for the address. */
static hf_status early_signal_bug(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(STEP("echo", in, NULL));
    if (hf_signal_try("address", NULL) == HF_OK) {
        return hf_payload_printf(ret_out, "\"no address\"");
    }
    HF_TRY(hf_signal_wait("address", NULL));
    return hf_payload_printf(ret_out, "\"address\"");
}

/* 15. A refund that fails for good goes unnoticed. */
static hf_status silent_bug(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(STEP("charge", in, NULL));
    if (STEP("ship", in, NULL) == HF_ERR_FAILED) {
        HF_IGNORE(STEP("refund", in, NULL));
    }
    return hf_payload_printf(ret_out, "\"done\"");
}

/* 14. It crashes when it is replayed after an activity. */
static hf_status crash_bug(hf_payload in, hf_payload *ret_out)
{
    static int *times;
    if (times == NULL) {
        times = calloc(1, sizeof *times);
    } else {
        abort();
    }
    HF_TRY(STEP("echo", in, ret_out));
    return hf_sleep(hf_seconds(1));
}

HF_PLUGIN(worker)
{
    static const struct {
        const char *name;
        hf_function function;
    } BUGS[] = {
        {"clock", clock_bug},
        {"rand", rand_bug},
        {"global", global_bug},
        {"compensation", compensation_bug},
        {"charge", charge_bug},
        {"signal", signal_bug},
        {"addresses", order_of_addresses_bug},
        {"getenv", getenv_bug},
        {"counter", counter_bug},
        {"race", race_bug},
        {"file", file_bug},
        {"sleep", sleep_bug},
        {"early", early_signal_bug},
        {"crash", crash_bug},
        {"silent", silent_bug},
    };
    HF_TRY(shop_add(worker));
    for (size_t i = 0; i < sizeof BUGS / sizeof BUGS[0]; i++) {
        HF_TRY(hf_worker_add_workflow(worker, BUGS[i].name, BUGS[i].function));
    }
    return HF_OK;
}
