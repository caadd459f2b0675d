/* A trip: flight, hotel, car; all of it or nothing. What was booked is given back when a later step fails, when somebody
 * cancels, and when the process was killed in between: the undoing is part of the workflow's history. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <string.h>

/* ---- The workflow ------------------------------------------------------------------------------------------------ */

/* The undoing is written down before the deed: a booking whose answer got lost is undone, too. */
static hf_status book(hf_saga *undo, const char *what, hf_payload trip)
{
    char cancel[32];
    char reserve[32];
    (void)snprintf(cancel, sizeof cancel, "cancel_%s", what);
    (void)snprintf(reserve, sizeof reserve, "book_%s", what);
    HF_TRY(hf_saga_add(undo, cancel, trip, .start_to_close = hf_minutes(1)));
    return hf_activity_run(reserve, trip, NULL, .start_to_close = hf_minutes(1), .attempts_max = 3,
                           .retry_initial = hf_milliseconds(100));
}

static hf_status trip(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_saga_close) hf_saga *undo = NULL; /* leaving without hf_saga_commit undoes, newest first */
    HF_TRY(hf_saga_open(&undo, .name = "trip", .bound = hf_hours(2)));
    HF_TRY(book(undo, "flight", in));
    HF_TRY(book(undo, "hotel", in));
    HF_TRY(book(undo, "car", in));
    HF_TRY(hf_saga_commit(undo));
    return hf_payload_printf(ret_out, "\"%s is booked\"", hf_workflow_id());
}

/* ---- Activities: the key makes a second attempt harmless ----------------------------------------------------------- */

static hf_status call_agency(hf_payload in, hf_payload *ret_out)
{
    const hf_activity_facts *facts = hf_activity_info();
    char city[64];
    (void)ret_out;
    HF_TRY(hf_json_get_text(in, "city", sizeof city, city));
    printf("%s for %s, key %s-%s\n", facts->name, city, facts->workflow_id, facts->id);
    if (strcmp(facts->name, "book_hotel") == 0 && facts->attempt == 1) {
        return hf_activity_fail("the hotel does not answer", .type = "Busy");
    }
    if (strcmp(facts->name, "book_car") == 0 && strcmp(city, "Porto") == 0) {
        return hf_activity_fail("no cars are left", .type = "SoldOut", .is_final = true);
    }
    return HF_OK;
}

/* ---- The program --------------------------------------------------------------------------------------------------- */

static hf_status travel(hf_service *service, const char *id, const char *json)
{
    HF_AUTO(hf_execution_free) hf_execution *mine = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(service, "trip", hf_payload_of_json(json), &mine, .id = id, .task_queue = "trips"));
    hf_status status = hf_result(mine, &out);
    printf("%s\n\n", status == HF_OK ? (const char *)out.data : hf_error_text());
    return status == HF_ERR_FAILED ? HF_OK : status;
}

static hf_status program(void *arg)
{
    static const char *const DESKS[] = {"book_flight",   "book_hotel",   "book_car",
                                        "cancel_flight", "cancel_hotel", "cancel_car"};
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "trips", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "trip", trip));
    for (size_t i = 0; i < sizeof DESKS / sizeof *DESKS; i++) {
        HF_TRY(hf_worker_add_activity(worker, DESKS[i], call_agency));
    }
    HF_TRY(hf_worker_start(worker));
    HF_TRY(travel(service, "lisbon", "{\"city\": \"Lisbon\"}"));
    return travel(service, "porto", "{\"city\": \"Porto\"}"); /* its bookings are given back */
}

int main(void)
{
    HF_OR_DIE(hf_run(program, NULL));
    return 0;
}
