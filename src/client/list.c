/* hf_list and hf_count: pages of the service, given to the caller item by item. */
#include "client/errand.h"
#include "client/show.h"
#include "fiber/verbs.h"

#include <holdfast/list.h>

#include <string.h>
#include <strings.h>

#define PAGE_MAX 200     /* runs of one request: few enough that a page is small in memory */
#define CURRENT_MAX 1000 /* of a list of current runs, which is one page */
#define QUERY_LEN_MAX (64 << 10)

static hf_status check(hf_op *op, const char *verb, const hf_list_options *o)
{
    HF_TRY(hf_text_check(op, verb, ".query", o->query, 0, QUERY_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, ".namespace_", o->namespace_, 1, HF_ERRAND_TEXT_LEN_MAX));
    return o->limit >= 0 ? HF_OK
                         : hf_fail_at(op, HF_ERR_INVALID, verb, "%s: .limit is %lld", verb, (long long)o->limit);
}

/* Gives the runs of a page to the caller; `*left` runs at most. False: it wants no more. */
static bool show(const hf_pb_list_workflow_executions_response *page, hf_arena *arena, hf_list_visit *visit, void *arg,
                 int64_t *left)
{
    size_t count = page->executions.count;
    hf_assert(*left > 0);
    for (size_t i = 0; i<count && * left> 0; i++, (*left)--) {
        hf_description run = {0};
        hf_description_fill(arena, &page->executions.items[i], &run);
        if (arena->status != HF_OK || !visit(arg, &run)) {
            return false;
        }
    }
    return *left > 0;
}

static hf_status list(hf_errand *e, hf_service *service, hf_list_visit *visit, void *arg, const hf_list_options *o)
{
    HF_TRY(check(&e->op, "hf_list", o));
    hf_page_token token;
    hf_page_token_init(&token);
    hf_pb_list_workflow_executions_request request = {
        .namespace = hf_namespace_or(o->namespace_, service), .query = hf_text_or(o->query, ""), .page_size = PAGE_MAX};
    int64_t left = o->limit > 0 ? o->limit : INT64_MAX;
    bool goes_on = true;
    if (o->current) {
        left = left < CURRENT_MAX ? left : CURRENT_MAX;
        request.page_size = (int32_t)left;
        request.holdfast_current = true;
    }
    while (goes_on) {
        hf_assert(left > 0);
        if (left < PAGE_MAX) {
            request.page_size = (int32_t)left;
        }
        if (hf_errand_ask(e, service, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, &request) != HF_OK) {
            break;
        }
        const hf_pb_list_workflow_executions_response *page = e->call.response;
        goes_on = show(page, &e->arena, visit, arg, &left) && !o->current;
        if (e->arena.status != HF_OK) {
            (void)hf_fail(&e->op, HF_ERR_NOMEM, "hf_list: no memory for a page");
            break;
        }
        goes_on = goes_on && hf_page_token_next(e, &token, page->next_page_token, &request.next_page_token);
    }
    hf_page_token_deinit(&token);
    return e->op.status;
}

hf_status hf_list_with(hf_service *service, hf_list_visit *visit, void *arg, const hf_list_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_list));
    HF_OPTIONS(hf_list_options, options, hf_list);
    if (service == NULL || visit == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_list needs a service and a function to call for each run");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_list", HF_STR(""));
    (void)list(&e, service, visit, arg, options);
    return hf_errand_end(&e);
}

/* ---- hf_count ------------------------------------------------------------------------------------------------------------ */

/* The status that a group is about: its value is a name in quotes. */
static int status_of(const hf_pb_count_workflow_executions_response_aggregation_group *group)
{
    hf_str name = group->group_values.count > 0 ? group->group_values.items[0].data : HF_STR("");
#define STATUS_IS(word, number, text)                 \
    if (hf_str_equal(name, HF_STR("\"" text "\""))) { \
        return number;                                \
    }
    HF_WORKFLOW_STATUS_MAP(STATUS_IS)
#undef STATUS_IS
    return 0;
}

/* Whether the query ends with this word; then `text` is what stands before it. */
static bool ends_with_word(hf_str *text, const char *word)
{
    while (text->len > 0 && text->data[text->len - 1] == ' ') {
        text->len--;
    }
    size_t len = strlen(word);
    if (text->len < len || strncasecmp(text->data + text->len - len, word, len) != 0) {
        return false;
    }
    text->len -= len;
    return true;
}

static bool has_groups(hf_str query)
{
    return ends_with_word(&query, "ExecutionStatus") && ends_with_word(&query, "BY") && ends_with_word(&query, "GROUP");
}

static hf_status count(hf_errand *e, hf_service *service, hf_counts *ret_counts, const hf_list_options *o)
{
    static const char GROUPS[] = " GROUP BY ExecutionStatus";
    HF_TRY(check(&e->op, "hf_count", o));
    hf_str given = hf_text_or(o->query, "");
    char *query = hf_arena_take(&e->arena, given.len + sizeof GROUPS, 1);
    if (query == NULL) {
        return hf_fail(&e->op, HF_ERR_NOMEM, "hf_count: no memory for the query");
    }
    if (given.len > 0) {
        memcpy(query, given.data, given.len);
    }
    if (has_groups(given)) {
        query[given.len] = '\0';
    } else {
        memcpy(query + given.len, GROUPS, sizeof GROUPS);
    }
    hf_assert(query[given.len] == ' ' || query[given.len] == '\0');
    hf_pb_count_workflow_executions_request request = {.namespace = hf_namespace_or(o->namespace_, service),
                                                       .query = hf_str_of(query)};
    HF_TRY(hf_errand_ask(e, service, HF_METHOD_COUNT_WORKFLOW_EXECUTIONS, &request));
    const hf_pb_count_workflow_executions_response *response = e->call.response;
    *ret_counts = (hf_counts){.total = response->count};
    for (size_t i = 0; i < response->groups.count; i++) {
        int status = status_of(&response->groups.items[i]);
        hf_assert(status >= 0 && (size_t)status < HF_COUNT_OF(ret_counts->by_status));
        ret_counts->by_status[status] += response->groups.items[i].count;
    }
    return HF_OK;
}

hf_status hf_count_with(hf_service *service, hf_counts *ret_counts, const hf_list_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_count));
    HF_OPTIONS(hf_list_options, options, hf_count);
    if (service == NULL || ret_counts == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_count needs a service and a place for the counts");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_count", HF_STR(""));
    (void)count(&e, service, ret_counts, options);
    return hf_errand_end(&e);
}
