/* A depot beside workflows. It keeps the answers of an activity: ten parcels to one town ask the map service once, and after a
 * restart not at all. And a workflow drives what the depot sends: each write is an activity that can be listed, paused and
 * tried again. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <string.h>

/* ---- A slow map service, and an activity that asks it ------------------------------------------------------------ */

static int questions; /* that the map service was asked; one at a time */

static hf_status locate(hf_payload in, hf_payload *ret_out)
{
    questions++;
    HF_TRY(hf_sleep(hf_milliseconds(200)));
    return hf_payload_printf(ret_out, "{\"town\": %s, \"km\": %d}", (const char *)in.data, 7 * (int)in.len);
}

static hf_status parcel(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("locate", in, ret_out, .start_to_close = hf_seconds(30));
}

/* ---- Parcels ----------------------------------------------------------------------------------------------------- */

/* Sends parcels to a town, all at once, and prints how many were answered in which way. */
static hf_status send_parcels(hf_service *service, const char *town, int count)
{
    hf_execution *runs[10] = {NULL};
    int asked = 0;
    int shared = 0;
    int kept = 0;
    hf_status status = HF_OK;
    for (int i = 0; i < count && status == HF_OK; i++) {
        status = hf_start(service, "parcel", hf_payload_of_json(town), &runs[i], .task_queue = "parcels");
    }
    for (int i = 0; i < count; i++) {
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        HF_AUTO(hf_payload_free) hf_payload memo = hf_payload_none();
        if (status == HF_OK) {
            status = hf_result(runs[i], &out, .timeout = hf_seconds(60));
        }
        if (status == HF_OK && hf_payload_meta(out, HF_MEMO_NAME, &memo) == HF_OK) {
            bool is_hit = strncmp(memo.data, "hit", 3) == 0;
            kept += is_hit;
            shared += !is_hit;
        } else {
            asked += status == HF_OK;
        }
        hf_execution_free(runs[i]);
    }
    printf("  %d parcels to %s: %d asked, %d waited for that answer, %d had it from before\n", count, town, asked,
           shared, kept);
    return status;
}

static hf_status work(hf_service *service, hf_depot *answers)
{
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_TRY(hf_worker_new(service, "parcels", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "parcel", parcel));
    HF_TRY(hf_worker_add_activity(worker, "locate", locate, .on_fiber = true,
                                  .memo = hf_depot_memo(answers, .ttl = hf_hours(24))));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(send_parcels(service, "\"Ulm\"", 10));
    HF_TRY(send_parcels(service, "\"Ulm\"", 1));
    return HF_OK;
}

/* ---- Addresses, which the depot sends to a server that is down at first ------------------------------------------ */

static bool is_down = true;

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)state;
    if (is_down) {
        return hf_reply_fail(reply, HF_REPLY_NETWORK, .message = "nobody answers");
    }
    printf("  the server has %.*s for %.*s\n", (int)request->len, (const char *)request->data, (int)request->key.id_len,
           (const char *)request->key.id);
    return HF_OK;
}

static bool print_run(void *arg, const hf_description *run)
{
    (void)arg;
    printf("  %s %s\n", run->id, hf_workflow_status_name(run->status));
    return true;
}

static hf_status send_address(hf_service *service, hf_depot *addresses)
{
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
    HF_TRY(hf_depot_drive(addresses, service, .retry_initial = hf_milliseconds(50)));
    HF_TRY(hf_depot_put(addresses, hf_depot_key_of("acme", "address", "ann"), "Ulm", 3, .ret_write = &write));
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    HF_TRY(hf_list(service, print_run, NULL, .query = "WorkflowType = 'holdfast.depot'"));
    is_down = false;
    HF_TRY(hf_depot_write_wait(write, .timeout = hf_seconds(60)));
    return hf_depot_undrive(addresses);
}

static hf_status run(void *arg)
{
    (void)arg;
    for (int life = 1; life <= 2; life++) {
        HF_AUTO(hf_close) hf_service *service = NULL;
        HF_AUTO(hf_depot_close) hf_depot *answers = NULL;
        printf(life == 1 ? "a new program:\n" : "the next one finds the answers in its file:\n");
        HF_TRY(hf_open("memory:", &service));
        HF_TRY(hf_depot_open("answers", &answers, .file = "sqlite:answers.db"));
        HF_TRY(work(service, answers));
        printf("  the map service was asked %d time%s so far\n", questions, questions == 1 ? "" : "s");
    }
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_depot_close) hf_depot *addresses = NULL;
    printf("a write that a workflow drives, while its server is down:\n");
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_depot_open("addresses", &addresses, .push = push));
    HF_TRY(send_address(service, addresses));
    return questions == 1 ? HF_OK : hf_raise(HF_ERR_FAILED, "the map service was asked %d times", questions);
}

int main(void)
{
    (void)remove("answers.db"); /* begin from nothing */
    HF_OR_DIE(hf_run(run, NULL));
    return 0;
}
