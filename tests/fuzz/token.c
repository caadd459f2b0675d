/* Task tokens and page tokens.
 *
 * A rig has a few runs with tasks in hand. An input is calls that come with a token, one after the other:
 *
 *     1  a step      1 = which call (CALLS below), 2 = the token, or 3 = which of those that the rig has given out,
 *                    4 = bits: the token is sealed first, the call is for another namespace; 5 = nanoseconds that pass before it;
 *                    from 8 on = a part of the token, in the order in which it has them, is this number (PARTS below)
 *
 * A token that is not sealed here is refused, unless it is one that the rig has given out. One that is sealed, whatever it says,
 * is answered: with what it is worth, or with a refusal. After every step the rig compares every run with its history, and the
 * runs themselves are what they were unless the token named a task that is in hand. */
#include "fuzz/fuzz.h"
#include "fuzz/mutate.h"

#include "engine/token.h"
#include "support/engine_rig.h"

enum { STEP = 1, STEP_CALL = 1, STEP_TOKEN = 2, STEP_GIVEN = 3, STEP_BITS = 4, STEP_TIME = 5, STEP_PARTS = 8 };
enum { BIT_SEALED = 1, BIT_ELSEWHERE = 2 };
enum { STEPS_MAX = 8, BODY_LEN = HF_TOKEN_LEN - 8, GIVEN_MAX = 8 };

#define TIME_SPAN (UINT64_C(1) << 50) /* ns, some days */

static const char SCRIPT[] =
    "start one; poll; complete timer t 1h, activity a each=1h beat=1h retries=5 queue=q; apoll as=a; signal one s;"
    "poll as=w in_process; start two; poll as=x; fail of=x; poll as=x; start three input=400; poll as=y;"
    "complete of=y marker m, activity b each=1h queue=p, marker n; apoll as=b queue=p; start four; poll as=z; complete "
    "of=z done";

static hf_rig rig;

/* ---- What was given out ------------------------------------------------------------------------------------------------ */

static char given[GIVEN_MAX][HF_TOKEN_LEN];
static size_t given_count;

static void give(hf_str token)
{
    FUZZ_CHECK(token.len == HF_TOKEN_LEN && given_count < GIVEN_MAX, "a token of %zu bytes", token.len);
    memcpy(given[given_count++], token.data, token.len);
}

static void open_rig(void)
{
    hf_rig_open(&rig, (hf_core_options){.history_page_len = 100, .tail_len_max = 1, .mem_max = 20000});
    rig.no_check = true;
    hf_rig_do(&rig, SCRIPT);
    rig.no_check = false;
    given_count = 0;
    give(hf_rig_task(&rig, "w")->task_token);
    give(hf_rig_task(&rig, "x")->task_token);
    give(hf_rig_task(&rig, "y")->task_token);
    give(hf_rig_task(&rig, "z")->task_token);
    give(hf_rig_activity(&rig, "a")->task_token);
    give(hf_rig_activity(&rig, "b")->task_token);
    give(hf_rig_task(&rig, "y")->next_page_token);
}

static bool was_given(hf_str token)
{
    for (size_t i = 0; i < given_count; i++) {
        if (hf_str_equal(token, hf_str_of_len(given[i], HF_TOKEN_LEN))) {
            return true;
        }
    }
    return false;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------- */

static hf_status send(hf_rig_call *slot, hf_method method, void *request, hf_str *token_at, hf_str *namespace_at,
                      hf_str token, bool elsewhere)
{
    *token_at = token;
    *namespace_at = elsewhere ? HF_STR("other") : HF_STR(HF_RIG_NS);
    hf_rig_send(&rig, slot, method, request);
    FUZZ_CHECK(slot->done, "a call with a token is not answered");
    return slot->call.status;
}

#define SEND(method, stem, token, elsewhere)                                                                 \
    do {                                                                                                     \
        hf_pb_##stem##_request *request = HF_RIG_REQUEST(slot, stem);                                        \
        return send(slot, method, request, &request->task_token, &request->namespace, (token), (elsewhere)); \
    } while (0)

static hf_status complete(hf_str token, bool elsewhere)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    SEND(HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, respond_workflow_task_completed, token, elsewhere);
}

static hf_status fail_task(hf_str token, bool elsewhere)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    SEND(HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED, respond_workflow_task_failed, token, elsewhere);
}

static hf_status complete_activity(hf_str token, bool elsewhere)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    SEND(HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, respond_activity_task_completed, token, elsewhere);
}

static hf_status fail_activity(hf_str token, bool elsewhere)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    SEND(HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, respond_activity_task_failed, token, elsewhere);
}

static hf_status cancel_activity(hf_str token, bool elsewhere)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    SEND(HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED, respond_activity_task_canceled, token, elsewhere);
}

static hf_status heartbeat(hf_str token, bool elsewhere)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    SEND(HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, record_activity_task_heartbeat, token, elsewhere);
}

/* All pages from this one on: they come to an end. `wait` asks for what is to come, too, and is given up. */
static hf_status read_pages(hf_str token, bool elsewhere, const char *workflow_id)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    char bytes[HF_TOKEN_LEN];
    hf_status first = HF_OK;
    for (int page = 0; page < 64; page++) {
        hf_pb_get_workflow_execution_history_request *request = HF_RIG_REQUEST(slot, get_workflow_execution_history);
        hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(workflow_id)};
        request->execution = &execution;
        hf_status status = send(slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, request, &request->next_page_token,
                                &request->namespace, token, elsewhere);
        first = page == 0 ? status : first;
        const hf_pb_get_workflow_execution_history_response *response = slot->call.response;
        if (status != HF_OK || response->next_page_token.len == 0) {
            return first;
        }
        FUZZ_CHECK(response->next_page_token.len == sizeof bytes, "a token of another length");
        memcpy(bytes, response->next_page_token.data, sizeof bytes);
        token = hf_str_of_len(bytes, sizeof bytes);
    }
    FUZZ_CHECK(false, "a history without end");
    return HF_OK;
}

static hf_status read_first(hf_str token, bool elsewhere)
{
    return read_pages(token, elsewhere, "one");
}

static hf_status read_third(hf_str token, bool elsewhere)
{
    return read_pages(token, elsewhere, "three");
}

/* A worker does not want the task. */
static hf_status unwanted(hf_str token, bool elsewhere)
{
    (void)elsewhere;
    hf_core_unwanted(rig.core, token, rig.now);
    (void)hf_rig_settle(&rig);
    return HF_ERR_INVALID; /* nobody is answered */
}

typedef hf_status call_fn(hf_str token, bool elsewhere);
static call_fn *const CALLS[] = {complete,  fail_task,  complete_activity, fail_activity, cancel_activity,
                                 heartbeat, read_first, read_third,        unwanted};

/* ---- Steps ------------------------------------------------------------------------------------------------------------- */

/* Where the parts of a token are: version, kind, run, two events, attempt, stamp. */
static const struct {
    size_t at, len;
} PARTS[] = {{0, 1}, {1, 1}, {2, 8}, {10, 8}, {18, 8}, {26, 4}, {30, 8}};

typedef struct step {
    uint64_t call;
    uint64_t bits;
    size_t len; /* of the token */
    char token[HF_TOKEN_LEN + 8];
} step;

static void set_token(step *s, const void *bytes, size_t len)
{
    s->len = len < sizeof s->token ? len : sizeof s->token;
    memcpy(s->token, bytes, s->len);
}

static void seal(step *s)
{
    s->len = HF_TOKEN_LEN;
    uint64_t mac = hf_siphash(rig.core->mac_key, hf_str_of_len(s->token, BODY_LEN));
    memcpy(s->token + BODY_LEN, &mac, sizeof mac); /* little endian, as this machine is */
}

static step read_step(hf_str bytes)
{
    step s = {0};
    hf_pb_raw field;
    while (bytes.len > 0 && hf_pb_next(&bytes, &field)) {
        if (field.number == STEP_CALL) {
            s.call = field.value % HF_COUNT_OF(CALLS);
        } else if (field.number == STEP_BITS) {
            s.bits = field.value;
        } else if (field.number == STEP_TOKEN && field.bytes.len > 0) {
            set_token(&s, field.bytes.data, field.bytes.len);
        } else if (field.number == STEP_GIVEN) {
            set_token(&s, given[field.value % given_count], HF_TOKEN_LEN);
        } else if (field.number == STEP_TIME) {
            rig.now.wall += (int64_t)(field.value % TIME_SPAN);
            rig.now.mono += (int64_t)(field.value % TIME_SPAN);
            (void)hf_rig_settle(&rig);
        } else if (field.number >= STEP_PARTS && field.number - STEP_PARTS < HF_COUNT_OF(PARTS)) {
            memcpy(s.token + PARTS[field.number - STEP_PARTS].at, &field.value, PARTS[field.number - STEP_PARTS].len);
        }
    }
    return s;
}

static void take_step(hf_str bytes)
{
    step s = read_step(bytes);
    bool is_sealed = (s.bits & BIT_SEALED) != 0;
    if (is_sealed) {
        seal(&s);
    }
    call_fn *call = CALLS[s.call];
    hf_str token = hf_str_of_len(s.token, s.len);
    /* A history without a token begins at its start. */
    bool is_start = token.len == 0 && (call == read_first || call == read_third);
    bool is_forged = !is_sealed && !is_start && !was_given(token);
    uint64_t before = is_forged ? hf_core_hash(rig.core) : 0;
    hf_status status = call(token, (s.bits & BIT_ELSEWHERE) != 0);
    if (is_forged) {
        FUZZ_CHECK(status == HF_ERR_INVALID, "a forged token was taken: status %d", (int)status);
        FUZZ_CHECK(before == hf_core_hash(rig.core), "a forged token changed something");
    }
    FUZZ_CHECK(status == HF_OK || status == HF_ERR_INVALID || status == HF_ERR_NOT_FOUND, "status %d: %s", (int)status,
               hf_rig_slot(&rig, NULL)->call.message);
}

bool fuzz_is_message(const uint8_t *data, size_t size, size_t *ret_head)
{
    (void)data;
    *ret_head = 0;
    return size > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hf_str input = hf_str_of_len(data, size);
    hf_pb_raw field;
    open_rig();
    (void)heartbeat(HF_STR("no token"), true); /* the other namespace is known from its first use on */
    for (int steps = 0; steps < STEPS_MAX && input.len > 0 && hf_pb_next(&input, &field); steps++) {
        if (field.number == STEP) {
            take_step(field.bytes);
        }
    }
    hf_rig_close(&rig);
    return 0;
}
