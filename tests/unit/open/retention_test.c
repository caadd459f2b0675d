/* retention= of an address: how long the namespace "default" keeps runs after their end. On virtual time, with a database in a file. */
#include "unit/open/place.h"

#include <holdfast/batch.h>
#include <holdfast/list.h>
#include <holdfast/sim.h>

/* What one opening sees; the next one is of the same file. */
typedef struct life {
    const place *p;
    hf_service *service;
} life;

static hf_status begin(life *l, const char *keys)
{
    char address[300];
    (void)snprintf(address, sizeof address, "%s%s", l->p->address, keys);
    return hf_open(address, &l->service);
}

static hf_status end(life *l)
{
    hf_service *service = l->service;
    l->service = NULL;
    return hf_close(service);
}

static int64_t seconds_of(const life *l, const char *name)
{
    HF_AUTO(hf_namespace_info_free) hf_namespace_info *info = NULL;
    return HF_CHECK(hf_namespace_describe(l->service, name, &info) == HF_OK) ? info->retention.ns / 1000000000 : -1;
}

static hf_status start(const life *l, const char *id, const char *namespace_)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    return hf_start(l->service, "order", hf_payload_none(), &run, .id = id, .namespace_ = namespace_);
}

static hf_status start_and_end(const life *l, const char *id, const char *namespace_)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(start(l, id, namespace_));
    HF_TRY(hf_execution_new(l->service, id, &run, .namespace_ = namespace_));
    return hf_terminate(run);
}

static bool is_there(const life *l, const char *id, const char *namespace_)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_description_free) hf_description *description = NULL;
    hf_counts counts = {0};
    char query[100];
    (void)snprintf(query, sizeof query, "WorkflowId = '%s'", id);
    HF_CHECK(hf_execution_new(l->service, id, &run, .namespace_ = namespace_) == HF_OK);
    hf_status status = hf_describe(run, &description);
    HF_CHECK(status == HF_OK || status == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_count(l->service, &counts, .query = query, .namespace_ = namespace_) == HF_OK);
    HF_CHECK(counts.total == (status == HF_OK ? 1 : 0));
    return status == HF_OK;
}

/* Virtual time: housekeeping deletes some seconds after a run's time. */
static hf_status pass(hf_span span)
{
    HF_TRY(hf_sleep(span));
    return hf_sleep(hf_minutes(2));
}

static hf_status lives(void *arg)
{
    life l = {.p = arg};
    /* Without the key runs stay for ever. */
    HF_TRY(begin(&l, ""));
    HF_CHECK(seconds_of(&l, "default") == 0);
    HF_TRY(hf_namespace_register(l.service, "shop"));
    HF_TRY(start(&l, "open", NULL));
    HF_TRY(start_and_end(&l, "old", NULL));
    HF_TRY(start_and_end(&l, "other", "shop"));
    HF_TRY(pass(hf_days(400)));
    HF_CHECK(is_there(&l, "old", NULL));
    HF_TRY(end(&l));
    /* With it they go, also those that had ended before. Open ones stay, and those of other namespaces. */
    HF_TRY(begin(&l, "?retention=2h"));
    HF_CHECK(seconds_of(&l, "default") == 7200 && seconds_of(&l, "shop") == 0);
    HF_TRY(pass(hf_seconds(0)));
    HF_CHECK(!is_there(&l, "old", NULL) && is_there(&l, "open", NULL) && is_there(&l, "other", "shop"));
    HF_TRY(start_and_end(&l, "two", NULL));
    HF_TRY(pass(hf_minutes(100)));
    HF_CHECK(is_there(&l, "two", NULL));
    HF_TRY(pass(hf_minutes(20)));
    HF_CHECK(!is_there(&l, "two", NULL));
    HF_TRY(start_and_end(&l, "three", NULL));
    HF_TRY(end(&l));
    /* The file remembers it. */
    HF_TRY(begin(&l, ""));
    HF_CHECK(seconds_of(&l, "default") == 7200 && is_there(&l, "three", NULL));
    HF_TRY(pass(hf_hours(2)));
    HF_CHECK(!is_there(&l, "three", NULL));
    /* A call changes it; the next opening with the key changes it back. */
    HF_TRY(hf_namespace_keep(l.service, "default", hf_hours(5)));
    HF_TRY(end(&l));
    HF_TRY(begin(&l, "?durability=normal"));
    HF_CHECK(seconds_of(&l, "default") == 18000);
    HF_TRY(end(&l));
    HF_TRY(begin(&l, "?durability=normal&retention=90m"));
    HF_CHECK(seconds_of(&l, "default") == 5400);
    HF_TRY(end(&l));
    /* 0 is for ever. */
    HF_TRY(begin(&l, "?retention=0"));
    HF_CHECK(seconds_of(&l, "default") == 0);
    HF_TRY(start_and_end(&l, "four", NULL));
    HF_TRY(pass(hf_days(400)));
    HF_CHECK(is_there(&l, "four", NULL) && is_there(&l, "open", NULL));
    /* Another namespace may keep them shorter than the address says for "default"; the key does not touch it. */
    HF_TRY(hf_namespace_register(l.service, "brief", .retention = hf_hours(1)));
    HF_TRY(start_and_end(&l, "five", "brief"));
    HF_TRY(start_and_end(&l, "five", NULL));
    HF_TRY(end(&l));
    HF_TRY(begin(&l, "?retention=30d"));
    HF_CHECK(seconds_of(&l, "default") == 30 * 86400 && seconds_of(&l, "brief") == 3600);
    HF_CHECK(is_there(&l, "five", "brief"));
    HF_TRY(pass(hf_hours(1)));
    HF_CHECK(!is_there(&l, "five", "brief") && is_there(&l, "five", NULL) && is_there(&l, "other", "shop"));
    return end(&l);
}

static void default_keeps_runs_as_the_address_says(void **state)
{
    assert_int_equal(hf_sim_run(1, 2, lives, *state, NULL), HF_OK);
}

static hf_status in_memory(void *arg)
{
    (void)arg;
    life l = {0};
    HF_TRY(hf_open("memory:?retention=45s", &l.service));
    HF_CHECK(seconds_of(&l, "default") == 45);
    HF_TRY(start_and_end(&l, "a", NULL));
    HF_CHECK(is_there(&l, "a", NULL));
    HF_TRY(pass(hf_seconds(45)));
    HF_CHECK(!is_there(&l, "a", NULL));
    return end(&l);
}

static void a_store_that_forgets_has_it_too(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(1, 2, in_memory, NULL, NULL), HF_OK);
}

static void what_is_no_span_is_refused(void **state)
{
    const place *p = *state;
    static const char *const WRONG[] = {"",
                                        "2",
                                        "h",
                                        "2w",
                                        "-1d",
                                        "+1d",
                                        "1.5h",
                                        " 1d",
                                        "1d ",
                                        "1d2h",
                                        "1D",
                                        "0d0",
                                        "soon",
                                        "99999999999999999999d",
                                        "9223372036854775807d"};
    for (size_t i = 0; i < HF_COUNT_OF(WRONG); i++) {
        char address[300];
        char sentence[200];
        hf_service *service = NULL;
        (void)snprintf(address, sizeof address, "%s?retention=%s", p->address, WRONG[i]);
        (void)snprintf(sentence, sizeof sentence,
                       "retention=%s is not a span: write it like 30d, 12h, 90m or 45s, or 0", WRONG[i]);
        assert_int_equal(hf_open(address, &service), HF_ERR_INVALID);
        assert_null(service);
        assert_non_null(strstr(hf_error_text(), sentence));
        assert_int_equal(place_count(p), 0); /* no file was made */
    }
}

static void spans_have_four_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
    } CASES[] = {{"45s", 45}, {"90m", 5400}, {"12h", 43200}, {"30d", 2592000}, {"0", 0}, {"0d", 0}, {"00", 0}};
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        static hf_service_address where;
        char address[100];
        hf_op op;
        hf_op_init(&op);
        (void)snprintf(address, sizeof address, "sqlite:a.db?retention=%s", CASES[i].text);
        assert_int_equal(hf_service_address_parse(&op, address, &where), HF_OK);
        assert_true(where.has_retention);
        assert_true(where.retention == CASES[i].seconds * 1000000000);
        /* A server and an owner have their own. */
        for (int other = 0; other < 2; other++) {
            (void)snprintf(address, sizeof address, "%s?retention=%s", other == 0 ? "owner:a.db" : "temporal://h",
                           CASES[i].text);
            hf_op_init(&op);
            assert_int_equal(hf_service_address_parse(&op, address, &where), HF_ERR_INVALID);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)
static const struct CMUnitTest TESTS[] = {
    TEST(default_keeps_runs_as_the_address_says),
    TEST(a_store_that_forgets_has_it_too),
    TEST(what_is_no_span_is_refused),
    TEST(spans_have_four_units),
};

int main(int argc, char **argv)
{
    return hf_test_main("retention", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
