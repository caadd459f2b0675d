/* The process is killed between any two commits of its file, while a run is released, loaded and signaled: SQLite calls back
 * before each commit, and the files are copied as they are then. Every copy is opened, and the run is brought to its end. It
 * must have taken every event once, in order. */
#include "support/support.h"

#include "base/base.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENTS = 6, COPIES_MAX = 400, NAME_LEN = 80 };

/* ---- The workflow --------------------------------------------------------------------------------------------------- */

static hf_status note(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

/* Takes the events, has each noted, and says which came. */
static hf_status collect(hf_payload in, hf_payload *ret_out)
{
    char text[100] = "";
    (void)in;
    for (int i = 0; i < EVENTS; i++) {
        hf_payload event = {0};
        hf_payload noted = {0};
        HF_TRY(hf_signal_wait("event", &event));
        HF_TRY(hf_activity_run("note", event, &noted, .start_to_close = hf_minutes(1)));
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof text - len, "%s ", (const char *)noted.data);
    }
    return hf_payload_printf(ret_out, "\"%s\"", text);
}

static const char EXPECTED[] = "\"1 2 3 4 5 6 \"";

/* ---- Copies ---------------------------------------------------------------------------------------------------------- */

typedef struct copy {
    int acknowledged; /* events that the client was told of as accepted */
} copy;

static copy copies[COPIES_MAX];
static int copy_count;
static int acknowledged;
static bool is_copying;

static void file_name(int number, const char *suffix, char name[NAME_LEN])
{
    (void)snprintf(name, NAME_LEN, "killed-%d-%d.db%s", (int)getpid(), number, suffix);
}

static void copy_file(int to, const char *suffix)
{
    static char bytes[1 << 16];
    char from_name[NAME_LEN];
    char to_name[NAME_LEN];
    size_t len = 0;
    file_name(-1, suffix, from_name);
    file_name(to, suffix, to_name);
    FILE *in = fopen(from_name, "rb");
    FILE *out = in != NULL ? fopen(to_name, "wb") : NULL;
    while (out != NULL && (len = fread(bytes, 1, sizeof bytes, in)) > 0) {
        HF_CHECK(fwrite(bytes, 1, len, out) == len);
    }
    HF_CHECK(in == NULL || (out != NULL && fclose(out) == 0));
    if (in != NULL) {
        (void)fclose(in);
    }
}

static void remove_files(int number)
{
    static const char *const SUFFIXES[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < HF_COUNT_OF(SUFFIXES); i++) {
        char name[NAME_LEN];
        file_name(number, SUFFIXES[i], name);
        (void)remove(name);
    }
}

/* Before a commit: what the commits before it have left. */
static int before_commit(void *state)
{
    (void)state;
    if (is_copying && HF_CHECK(copy_count < COPIES_MAX)) {
        copies[copy_count].acknowledged = acknowledged;
        copy_file(copy_count, "");
        copy_file(copy_count, "-wal");
        copy_count++;
    }
    return 0;
}

static int on_connection(sqlite3 *db, char **ret_message, const void *api)
{
    (void)ret_message;
    (void)api;
    (void)sqlite3_commit_hook(db, before_commit, NULL);
    return SQLITE_OK;
}

/* ---- The play -------------------------------------------------------------------------------------------------------- */

static hf_status send(hf_execution *run, int number)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", number);
    return hf_signal(run, "event", hf_payload_of_json(text), .request_id = text);
}

static hf_status begin(int number, hf_service **ret_service, hf_worker **ret_worker)
{
    char address[NAME_LEN + 40];
    char name[NAME_LEN];
    file_name(number, "", name);
    (void)snprintf(address, sizeof address, "sqlite:%s?durability=normal", name);
    HF_TRY(hf_open(address, ret_service));
    HF_TRY(hf_worker_new(*ret_service, "q", ret_worker, .idle_timeout = hf_seconds(1)));
    HF_TRY(hf_worker_add_workflow(*ret_worker, "collect", collect));
    HF_TRY(hf_worker_add_activity(*ret_worker, "note", note, .on_fiber = true));
    return hf_worker_start(*ret_worker);
}

static hf_status start(hf_service *service, hf_execution **ret_run)
{
    return hf_start(service, "collect", hf_payload_none(), ret_run, .id = "c", .task_queue = "q", .request_id = "once");
}

/* Some events come to a run that was released, some to one in memory, and two at once. */
static hf_status first_life(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_worker_stats stats;
    (void)arg;
    HF_TRY(begin(-1, &service, &worker));
    is_copying = true;
    HF_TRY(start(service, &run));
    for (int i = 1; i <= EVENTS; i++) {
        HF_TRY(i % 3 == 0 ? HF_OK : hf_sleep(i % 2 == 0 ? hf_milliseconds(500) : hf_seconds(3)));
        HF_TRY(send(run, i));
        acknowledged = i;
    }
    HF_TRY(hf_result(run, &out));
    HF_CHECK(strcmp(out.data, EXPECTED) == 0);
    HF_TRY(hf_worker_stat(worker, &stats));
    HF_CHECK(stats.released > 0 && stats.replays > 0);
    return HF_OK;
}

/* The process comes again, and the client sends what was not acknowledged, once more. */
static hf_status second_life(void *arg)
{
    const copy *c = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(begin((int)(c - copies), &service, &worker));
    hf_status status = start(service, &run);
    HF_CHECK_SAY(status == HF_OK, "it did not start: %s", hf_error_text());
    HF_TRY(status);
    HF_TRY(hf_sleep(hf_seconds(c->acknowledged % 2 == 0 ? 0 : 5)));
    for (int i = c->acknowledged + 1; i <= EVENTS; i++) {
        status = send(run, i);
        bool has_ended = status == HF_ERR_NOT_FOUND && i == EVENTS; /* the last one had arrived, unacknowledged */
        HF_CHECK_SAY(status == HF_OK || has_ended, "event %d: %s", i, hf_error_text());
    }
    HF_TRY(hf_result(run, &out, .timeout = hf_hours(1)));
    HF_CHECK_SAY(strcmp(out.data, EXPECTED) == 0, "killed before commit %d, with %d acknowledged, it took %s",
                 (int)(c - copies), c->acknowledged, (const char *)out.data);
    return HF_OK;
}

static void kill_everywhere(uint64_t seed)
{
    copy_count = acknowledged = 0;
    (void)sqlite3_auto_extension((void (*)(void))on_connection);
    hf_status status = hf_sim_run(seed, 1 + (int)(seed % 2), first_life, NULL, NULL);
    HF_CHECK_SAY(status == HF_OK, "the first life ended with %s: %s", hf_status_name(status), hf_error_text());
    is_copying = false;
    sqlite3_reset_auto_extension();
    remove_files(-1);
    HF_CHECK_SAY(copy_count > 2 * EVENTS, "%d commits", copy_count);
    for (int i = 0; i < copy_count; i++) {
        status = hf_sim_run(seed, 1, second_life, &copies[i], NULL);
        HF_CHECK_SAY(status == HF_OK, "killed before commit %d, with %d acknowledged: %s: %s", i,
                     copies[i].acknowledged, hf_status_name(status), hf_error_text());
        remove_files(i);
    }
}

static void N10_a_kill_between_any_two_commits_loses_and_doubles_no_event(void **state)
{
    (void)state;
    hf_each_seed("lives of a run that is killed before each commit", 8, kill_everywhere);
    print_message("%d commits in the last one\n", copy_count);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(N10_a_kill_between_any_two_commits_loses_and_doubles_no_event),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_killed", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
