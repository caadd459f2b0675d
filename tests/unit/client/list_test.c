/* hf_list, hf_count, namespaces and search attributes, through a service. */
#include "unit/client/scene.h"

#include <holdfast/list.h>

typedef struct seen {
    char ids[400]; /* joined by spaces */
    int count;
    int stop_after; /* 0 = never */
} seen;

static bool see(void *arg, const hf_description *run)
{
    seen *it = arg;
    size_t len = strlen(it->ids);
    if (len + strlen(run->id) + 2 < sizeof it->ids) {
        (void)snprintf(it->ids + len, sizeof it->ids - len, "%s%s", len > 0 ? " " : "", run->id);
    }
    it->count++;
    HF_CHECK(strlen(run->run_id) == 36 && run->started.ns > 0 && strcmp(run->type, "order") == 0);
    HF_CHECK((run->closed.ns > 0) == (run->status != HF_WORKFLOW_RUNNING));
    return it->stop_after == 0 || it->count < it->stop_after;
}

static hf_status start(scene *s, const char *id, const hf_entry *attributes)
{
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    return hf_start(s->service, "order", hf_payload_none(), &w, .id = id, .search_attributes = attributes);
}

static hf_status end(scene *s, const char *id)
{
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    HF_TRY(hf_execution_new(s->service, id, &w));
    return hf_terminate(w, .reason = "enough");
}

static hf_status lists(scene *s)
{
    seen all = {0};
    seen some = {0};
    seen few = {0};
    hf_counts counts;
    HF_TRY(hf_search_attribute_add(s->service, "Amount", HF_SEARCH_INT));
    HF_TRY(start(s, "a", NULL));
    HF_TRY(start(s, "b", (hf_entry[]){{"Amount", hf_payload_of_json("7")}, {NULL, hf_payload_none()}}));
    HF_TRY(start(s, "c", NULL));
    HF_TRY(end(s, "a"));
    HF_TRY(hf_list(s->service, see, &all));
    HF_CHECK(strcmp(all.ids, "c b a") == 0);
    HF_TRY(
        hf_list(s->service, see, &some, .query = "Amount > 5 OR ExecutionStatus = 'Terminated' ORDER BY WorkflowId"));
    HF_CHECK(strcmp(some.ids, "a b") == 0);
    HF_TRY(hf_list(s->service, see, &few, .limit = 2));
    few.stop_after = 3;
    HF_TRY(hf_list(s->service, see, &few));
    HF_CHECK(strcmp(few.ids, "c b c") == 0);
    HF_TRY(hf_count(s->service, &counts));
    HF_CHECK(counts.total == 3 && counts.by_status[HF_WORKFLOW_RUNNING] == 2 &&
             counts.by_status[HF_WORKFLOW_TERMINATED] == 1);
    HF_TRY(hf_count(s->service, &counts, .query = "WorkflowId = 'a'"));
    HF_CHECK(counts.total == 1 && counts.by_status[HF_WORKFLOW_RUNNING] == 0);
    HF_TRY(hf_count(s->service, &counts, .query = "WorkflowId != 'a' group by  ExecutionStatus "));
    HF_CHECK(counts.total == 2 && counts.by_status[HF_WORKFLOW_RUNNING] == 2);
    return HF_OK;
}

static void lists_and_counts(void **state)
{
    (void)state;
    scene_run(lists);
}

static hf_status currents(scene *s)
{
    seen it = {0};
    HF_TRY(start(s, "a", NULL));
    HF_TRY(start(s, "b", NULL));
    HF_TRY(end(s, "a"));
    HF_TRY(start(s, "c", NULL));
    HF_TRY(start(s, "a", NULL));
    HF_TRY(hf_list(s->service, see, &it, .current = true));
    HF_CHECK(strcmp(it.ids, "b c a") == 0);
    it = (seen){0};
    HF_TRY(hf_list(s->service, see, &it, .current = true, .limit = 2));
    HF_CHECK(strcmp(it.ids, "c a") == 0);
    HF_CHECK(hf_list(s->service, see, &it, .current = true, .query = "ORDER BY WorkflowId") == HF_ERR_INVALID);
    return HF_OK;
}

static void current_runs_come_oldest_first(void **state)
{
    (void)state;
    scene_run(currents);
}

/* More runs than one request gets. */
static hf_status many(scene *s)
{
    seen it = {0};
    for (int i = 0; i < 450; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "w%03d", i);
        HF_TRY(start(s, id, NULL));
    }
    HF_TRY(hf_list(s->service, see, &it));
    HF_CHECK(it.count == 450 && strncmp(it.ids, "w449 w448 ", 10) == 0);
    it = (seen){0};
    HF_TRY(hf_list(s->service, see, &it, .limit = 201, .query = "ORDER BY WorkflowId"));
    HF_CHECK(it.count == 201 && strncmp(it.ids, "w000 w001 ", 10) == 0);
    return HF_OK;
}

static void a_long_list_comes_in_pages(void **state)
{
    (void)state;
    scene_run(many);
}

static hf_status refusals(scene *s)
{
    hf_counts counts;
    seen it = {0};
    HF_CHECK(hf_list(s->service, see, &it, .query = "WorkflowId = 5") == HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), "at column 14: WorkflowId is a Keyword") != NULL);
    HF_CHECK(hf_count(s->service, &counts, .query = "Amount = 5") == HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), "at column 1: Amount is not a search attribute") != NULL);
    HF_CHECK(hf_list(s->service, see, &it, .namespace_ = "nowhere") == HF_ERR_NOT_FOUND);
    HF_CHECK(strstr(hf_error_text(), "there is no namespace 'nowhere'") != NULL);
    HF_CHECK(hf_list(s->service, see, &it, .limit = -1) == HF_ERR_INVALID);
    HF_CHECK(hf_list(s->service, NULL, NULL) == HF_ERR_MISUSE && hf_count(NULL, &counts) == HF_ERR_MISUSE);
    hf_entry amount[] = {{"Amount", hf_payload_of_json("\"x\"")}, {NULL, hf_payload_none()}};
    HF_CHECK(start(s, "a", amount) == HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), "the search attribute 'Amount' is not one of the namespace's") != NULL);
    HF_TRY(hf_search_attribute_add(s->service, "Amount", HF_SEARCH_INT));
    HF_CHECK(start(s, "a", amount) == HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), "'Amount' is a Int, and its value is not") != NULL);
    HF_CHECK(it.count == 0);
    return HF_OK;
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    scene_run(refusals);
}

static bool see_namespace(void *arg, const hf_namespace_info *info)
{
    seen *it = arg;
    size_t len = strlen(it->ids);
    (void)snprintf(it->ids + len, sizeof it->ids - len, "%s:%s:%d:%d ", info->name, info->description,
                   (int)(info->retention.ns / 1000000000), info->state == HF_NAMESPACE_DEPRECATED);
    return ++it->count != it->stop_after;
}

static bool see_attribute(void *arg, const char *name, hf_search_attribute_type type, bool is_custom)
{
    seen *it = arg;
    size_t len = strlen(it->ids);
    if (is_custom) {
        (void)snprintf(it->ids + len, sizeof it->ids - len, "%s:%s ", name, hf_search_attribute_type_name(type));
    }
    it->count++;
    return true;
}

static hf_status registry(scene *s)
{
    seen spaces = {0};
    seen attributes = {0};
    HF_TRY(hf_namespace_register(s->service, "shop", .description = "orders", .retention = hf_hours(24)));
    HF_CHECK(hf_namespace_register(s->service, "shop") == HF_ERR_EXISTS);
    HF_TRY(hf_namespace_deprecate(s->service, "shop"));
    HF_CHECK(hf_namespace_deprecate(s->service, "none") == HF_ERR_NOT_FOUND);
    HF_TRY(hf_namespace_list(s->service, see_namespace, &spaces));
    HF_CHECK(strcmp(spaces.ids, "default::0:0 shop:orders:86400:1 ") == 0);
    HF_TRY(hf_namespace_keep(s->service, "shop", hf_hours(1)));
    HF_CHECK(hf_namespace_keep(s->service, "none", hf_hours(1)) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_namespace_keep(s->service, "shop", hf_seconds(-1)) == HF_ERR_INVALID);
    spaces = (seen){0};
    HF_TRY(hf_namespace_list(s->service, see_namespace, &spaces));
    HF_CHECK(strcmp(spaces.ids, "default::0:0 shop:orders:3600:1 ") == 0);
    HF_TRY(hf_search_attribute_add(s->service, "Tags", HF_SEARCH_KEYWORD_LIST, .namespace_ = "shop"));
    HF_TRY(hf_search_attribute_add(s->service, "At", HF_SEARCH_DATETIME, .namespace_ = "shop"));
    HF_CHECK(hf_search_attribute_add(s->service, "At", HF_SEARCH_INT, .namespace_ = "shop") == HF_ERR_EXISTS);
    HF_TRY(hf_search_attribute_list(s->service, see_attribute, &attributes, .namespace_ = "shop"));
    HF_CHECK(strcmp(attributes.ids, "At:Datetime Tags:KeywordList ") == 0 && attributes.count > 16);
    HF_TRY(hf_search_attribute_remove(s->service, "At", .namespace_ = "shop"));
    HF_CHECK(hf_search_attribute_remove(s->service, "At", .namespace_ = "shop") == HF_ERR_NOT_FOUND);
    HF_CHECK(strcmp(hf_search_attribute_type_name((hf_search_attribute_type)99), "Unknown") == 0);
    return HF_OK;
}

static void namespaces_and_attributes(void **state)
{
    (void)state;
    scene_run(registry);
}

/* "name state seconds description owner key=value ..." */
static const char *told(scene *s, const char *name)
{
    static char text[400];
    HF_AUTO(hf_namespace_info_free) hf_namespace_info *info = NULL;
    HF_CHECK(hf_namespace_describe(s->service, name, &info) == HF_OK && strlen(info->id) == 36);
    int len = snprintf(text, sizeof text, "%s %d %d %s %s", info->name, (int)info->state,
                       (int)(info->retention.ns / 1000000000), info->description, info->owner);
    for (size_t i = 0; i < info->data_count; i++) {
        len += snprintf(text + len, sizeof text - (size_t)len, " %s=%s", info->data[i].key, info->data[i].value);
    }
    HF_CHECK(info->data[info->data_count].key == NULL);
    return text;
}

static hf_status updates(scene *s)
{
    static const hf_namespace_text FIRST[] = {{"team", "kelp"}, {"site", "sea"}, {NULL, NULL}};
    static const hf_namespace_text NEXT[] = {{"site", "shore"}, {"cost", NULL}, {NULL, NULL}};
    HF_CHECK(strcmp(told(s, "default"), "default 1 0  ") == 0);
    HF_TRY(hf_namespace_register(s->service, "shop", .description = "orders", .owner = "a@b", .data = FIRST));
    HF_CHECK(strcmp(told(s, "shop"), "shop 1 0 orders a@b team=kelp site=sea") == 0);
    /* What is not named stays. */
    HF_TRY(hf_namespace_update(s->service, "shop", .retention = hf_hours(2)));
    HF_CHECK(strcmp(told(s, "shop"), "shop 1 7200 orders a@b team=kelp site=sea") == 0);
    HF_TRY(hf_namespace_update(s->service, "shop", .description = "bills", .data = NEXT));
    HF_CHECK(strcmp(told(s, "shop"), "shop 1 7200 bills a@b team=kelp site=shore cost=") == 0);
    HF_TRY(hf_namespace_update(s->service, "shop", .owner = "c@d", .description = ""));
    HF_CHECK(strcmp(told(s, "shop"), "shop 1 7200 bills c@d team=kelp site=shore cost=") == 0);
    HF_TRY(hf_namespace_update(s->service, "shop", .keep_for_ever = true));
    HF_TRY(hf_namespace_deprecate(s->service, "shop"));
    HF_CHECK(strcmp(told(s, "shop"), "shop 2 0 bills c@d team=kelp site=shore cost=") == 0);
    HF_TRY(hf_namespace_update(s->service, "shop", .state = HF_NAMESPACE_REGISTERED));
    HF_CHECK(strcmp(told(s, "shop"), "shop 1 0 bills c@d team=kelp site=shore cost=") == 0);
    HF_TRY(hf_namespace_keep(s->service, "shop", hf_hours(1)));
    HF_TRY(hf_namespace_update(s->service, "shop"));
    HF_CHECK(strcmp(told(s, "shop"), "shop 1 3600 bills c@d team=kelp site=shore cost=") == 0);
    return HF_OK;
}

static void a_namespace_is_described_and_updated(void **state)
{
    (void)state;
    scene_run(updates);
}

static hf_status bad_updates(scene *s)
{
    hf_namespace_info *info = NULL;
    static char long_text[10001];
    memset(long_text, 'x', sizeof long_text - 1);
    HF_TRY(hf_namespace_register(s->service, "shop", .description = "orders", .retention = hf_hours(1)));
    HF_CHECK(hf_namespace_describe(s->service, "none", &info) == HF_ERR_NOT_FOUND && info == NULL);
    HF_CHECK(hf_namespace_describe(s->service, "", &info) == HF_ERR_INVALID);
    HF_CHECK(hf_namespace_describe(s->service, "shop", NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_namespace_update(s->service, "none", .description = "x") == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_namespace_update(s->service, "shop", .retention = hf_seconds(-1)) == HF_ERR_INVALID);
    HF_CHECK(hf_namespace_update(s->service, "shop", .retention = hf_hours(2), .keep_for_ever = true) ==
             HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), ".keep_for_ever") != NULL);
    HF_CHECK(hf_namespace_update(s->service, "shop", .state = HF_NAMESPACE_DELETED) == HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), "hf_namespace_delete deletes it") != NULL);
    /* All or nothing: the description is too long, so the retention stays. */
    HF_CHECK(hf_namespace_update(s->service, "shop", .description = long_text, .owner = "o",
                                 .retention = hf_hours(2)) == HF_ERR_INVALID);
    hf_namespace_text many[66] = {{NULL, NULL}};
    for (int i = 0; i < 65; i++) {
        many[i] = (hf_namespace_text){long_text + 9990 - i, "v"};
    }
    HF_CHECK(hf_namespace_update(s->service, "shop", .data = many, .retention = hf_hours(2)) == HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), "at most 64 keys") != NULL);
    HF_CHECK(strcmp(told(s, "shop"), "shop 1 3600 orders ") == 0);
    /* One that is being deleted is not there. */
    HF_TRY(hf_namespace_delete(s->service, "shop"));
    HF_CHECK(hf_namespace_describe(s->service, "shop", &info) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_namespace_update(s->service, "shop", .description = "x") == HF_ERR_NOT_FOUND);
    hf_namespace_info_free(NULL);
    return HF_OK;
}

static void a_wrong_update_changes_nothing(void **state)
{
    (void)state;
    scene_run(bad_updates);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(lists_and_counts),
        cmocka_unit_test(current_runs_come_oldest_first),
        cmocka_unit_test(a_long_list_comes_in_pages),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(namespaces_and_attributes),
        cmocka_unit_test(a_namespace_is_described_and_updated),
        cmocka_unit_test(a_wrong_update_changes_nothing),
    };
    return hf_test_main("list", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
