/* A shopping cart that clients change by updates. An update is a question with an answer: a validator may refuse it before
 * anything is written, its handler may wait, and the caller gets its result or its failure. A repeated request with the
 * same id changes the cart once. The first update also starts the cart. */
#include <holdfast/holdfast.h>

#include <stdio.h>

/* ---- The workflow ------------------------------------------------------------------------------------------------ */

typedef struct cart {
    int64_t count;
    int64_t cents;
    bool is_ordered;
} cart;

typedef struct line {
    char item[32];
    int64_t count;
} line;

static const hf_member LINE[] = {HF_MEMBER(line, item), HF_MEMBER(line, count), HF_MEMBERS_END};

/* Looks, and changes nothing. An update that it refuses is not in the history, which may have a workflow task more, in which it was
 * refused. */
static hf_status may_add(void *arg, hf_payload in)
{
    const cart *c = arg;
    line l;
    HF_TRY(hf_payload_read(in, LINE, &l));
    if (c->is_ordered) {
        return hf_raise_typed(HF_ERR_FAILED, "TooLate", "the cart was ordered already");
    }
    return l.count > 0 ? HF_OK : hf_raise_typed(HF_ERR_FAILED, "Nothing", "a count above 0, please");
}

/* Waits for an activity, as other code of the workflow may. Meanwhile other updates are handled. */
static hf_status add(void *arg, hf_payload in, hf_payload *ret_out)
{
    cart *c = arg;
    line l;
    hf_payload price = {0};
    int64_t cents = 0;
    HF_TRY(hf_payload_read(in, LINE, &l));
    HF_TRY(hf_activity_run("price", in, &price, .start_to_close = hf_seconds(10)));
    HF_TRY(hf_json_get_int(price, "", &cents));
    c->count += l.count;
    c->cents += l.count * cents;
    return hf_payload_object(ret_out, hf_field_int("count", c->count), hf_field_int("cents", c->cents));
}

static hf_status order(void *arg, hf_payload in, hf_payload *ret_out)
{
    cart *c = arg;
    (void)in;
    c->is_ordered = true;
    return hf_payload_printf(ret_out, "%lld", (long long)c->cents);
}

static hf_status shopping(hf_payload in, hf_payload *ret_out)
{
    cart *c = HF_WORKFLOW_NEW(cart); /* handlers may run when this function has returned: not on its stack */
    (void)in;
    if (c == NULL) {
        return HF_ERR_NOMEM;
    }
    HF_TRY(hf_on_update("add", add, .arg = c, .validator = may_add));
    HF_TRY(hf_on_update("order", order, .arg = c));
    HF_TRY(hf_wait_until(c->is_ordered, .timeout = hf_days(30)));
    HF_TRY(hf_handlers_wait()); /* an update that is under way is answered before the end */
    return hf_payload_printf(ret_out, "%lld", (long long)c->cents);
}

/* ---- An activity ------------------------------------------------------------------------------------------------- */

static hf_status price(hf_payload in, hf_payload *ret_out)
{
    char item[32];
    HF_TRY(hf_json_get_text(in, "item", sizeof item, item));
    printf("looking up the price of %s\n", item);
    return hf_payload_printf(ret_out, "%d", item[0] == 'k' ? 250 : 400);
}

/* ---- The program ------------------------------------------------------------------------------------------------- */

/* A customer who is not sure whether the first request arrived sends it again: it counts once. */
static hf_status shop(hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *mine = NULL;
    HF_AUTO(hf_update_handle_free) hf_update_handle *first = NULL;
    HF_AUTO(hf_payload_free) hf_payload sum = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload again = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload result = hf_payload_none();
    hf_payload kelp = hf_payload_of_json("{\"item\": \"kelp\", \"count\": 2}");
    HF_TRY(hf_start_and_update(service, "shopping", hf_payload_none(), "add", kelp, &mine, &first, .id = "cart-7",
                               .task_queue = "shop", .update_id = "add-1"));
    HF_TRY(hf_update_result(first, &sum));
    HF_TRY(hf_update(mine, "add", kelp, &again, .id = "add-1"));
    printf("in the cart: %s, and still %s\n", (const char *)sum.data, (const char *)again.data);

    hf_payload none = hf_payload_of_json("{\"item\": \"squid\", \"count\": 0}");
    if (hf_update(mine, "add", none, NULL) == HF_ERR_FAILED) {
        printf("refused: %s\n", hf_error_text());
    }
    HF_TRY(hf_update(mine, "order", hf_payload_none(), NULL));
    HF_TRY(hf_result(mine, &result));
    printf("ordered for %s cents\n", (const char *)result.data);
    return HF_OK;
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "shop", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "shopping", shopping));
    HF_TRY(hf_worker_add_activity(worker, "price", price));
    HF_TRY(hf_worker_start(worker));
    return shop(service);
}

int main(void)
{
    HF_OR_DIE(hf_run(program, NULL));
    return 0;
}
