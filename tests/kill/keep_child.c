/* The program that is killed while runs are kept and forgotten: retention, operations on many runs, streams, namespaces that are deleted, and a file of
 * an older version that gets its blocks. Driven by work_drive.c.
 *
 *     keep_child DATABASE LEDGER SEED CYCLE    works until it is killed; the first one begins with a file of an older version
 *     keep_child DATABASE LEDGER SEED end      lets everything end, judges it, closes, exits with 0
 *
 * The ledger has one line for each thing, written at once:
 *
 *     t ID, T ID      a workflow that publishes is started, that was answered
 *     o ID            a run that stays open was started, in the namespace "brief", which keeps ended runs for a second
 *     g TAG N         a run of a crowd was started
 *     b TAG, B TAG    a batch that signals the crowd is sent, that was answered
 *     n NAME          a namespace with some runs is deleted
 *
 * In the end every stream has what its workflow has published, once and in order; every crowd has the signal of its batch, once; "brief" has its open
 * runs and no others; the deleted namespaces are gone. */
#include "support/support.h"

#include "base/rng.h"

#include <holdfast/batch.h>
#include <holdfast/list.h>
#include <holdfast/stream.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { RECORDS = 10, CROWD = 10, BRIEFS = 3, WAIT_S = 120, LINE_LEN = 200 };

static hf_service *service;
static int ledger_fd = -1;
static uint64_t seed;
static const char *cycle;
static const char *ledger_path;

static void give_up(const char *what, const char *which)
{
    (void)fprintf(stderr, "keep_child: %s: %s: %s\n", what, which, hf_error_text());
    _exit(3);
}

static void must(hf_status status, const char *what)
{
    if (status != HF_OK) {
        give_up(hf_status_name(status), what);
    }
}

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    char line[LINE_LEN];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    line[len] = '\n';
    if (write(ledger_fd, line, (size_t)len + 1) != len + 1) {
        give_up("the ledger cannot be written", ledger_path);
    }
}

/* ---- Workflows ---------------------------------------------------------------------------------------------------------- */

static hf_status tell(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_publish("activity", hf_payload_of_json("1"));
}

/* Half of the records, then an activity, then the rest in the next run of the chain. */
static hf_status talk(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    int from = atoi((const char *)in.data);
    for (int i = from; i < from + RECORDS / 2; i++) {
        HF_AUTO(hf_payload_free) hf_payload text = hf_payload_none();
        HF_TRY(hf_payload_printf(&text, "%d", i));
        HF_TRY(hf_publish("workflow", text));
        if (i % 2 == 0) {
            HF_TRY(hf_sleep(hf_milliseconds(3)));
        }
    }
    HF_TRY(hf_activity_run("tell", hf_payload_none(), NULL, .start_to_close = hf_hours(1)));
    return from == 0 ? hf_continue_as_new(hf_payload_of_json("5")) : HF_OK;
}

/* ---- Clients ------------------------------------------------------------------------------------------------------------ */

static hf_status start(const char *type, const char *id, const char *namespace_, const char *queue)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    return hf_start(service, type, hf_payload_of_json("0"), &execution, .id = id, .namespace_ = namespace_,
                    .task_queue = queue, .task_timeout = hf_hours(1));
}

static hf_status talker(void *arg)
{
    (void)arg;
    for (unsigned i = 0;; i++) {
        char id[LINE_LEN / 2];
        (void)snprintf(id, sizeof id, "talk-%s-%u", cycle, i);
        note("t %s", id);
        must(start("talk", id, "default", "talk"), "start");
        note("T %s", id);
        HF_TRY(hf_sleep(hf_milliseconds(15)));
    }
}

static hf_status brief(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0;; i++) {
        char id[LINE_LEN / 2];
        HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
        (void)snprintf(id, sizeof id, "brief-%s-%u-%u", cycle, me, i);
        must(start("brief", id, "brief", "idle"), "start");
        if (i % 50 == 7) {
            note("o %s", id);
            continue;
        }
        must(hf_execution_new(service, id, &execution, .namespace_ = "brief"), id);
        must(hf_terminate(execution, .reason = "enough"), id);
        HF_TRY(hf_sleep(hf_milliseconds(1)));
    }
}

static hf_status crowd(void *arg)
{
    (void)arg;
    for (unsigned i = 0;; i++) {
        char tag[LINE_LEN / 4];
        char query[LINE_LEN];
        (void)snprintf(tag, sizeof tag, "crowd-%s-%u", cycle, i);
        for (unsigned k = 0; k < CROWD; k++) {
            char id[LINE_LEN / 2];
            (void)snprintf(id, sizeof id, "%s-%u", tag, k);
            must(start(tag, id, "crowd", "idle"), "start");
            note("g %s %u", tag, k);
        }
        (void)snprintf(query, sizeof query, "WorkflowType = '%s'", tag);
        note("b %s", tag);
        must(hf_batch_start(service, tag, HF_BATCH_SIGNAL, .namespace_ = "crowd", .query = query, .signal = "go",
                            .rate = i % 2 == 0 ? 40 : 0),
             tag);
        note("B %s", tag);
        HF_TRY(hf_sleep(hf_milliseconds(20)));
    }
}

static hf_status doomer(void *arg)
{
    (void)arg;
    for (unsigned i = 0;; i++) {
        char name[LINE_LEN / 4];
        (void)snprintf(name, sizeof name, "doom-%s-%u", cycle, i);
        must(hf_namespace_register(service, name), name);
        for (unsigned k = 0; k < CROWD; k++) {
            char id[LINE_LEN / 2];
            (void)snprintf(id, sizeof id, "doomed-%u", k);
            must(start("doomed", id, name, "idle"), "start");
        }
        note("n %s", name);
        must(hf_namespace_delete(service, name), name);
        HF_TRY(hf_sleep(hf_milliseconds(100)));
    }
}

/* ---- The end ------------------------------------------------------------------------------------------------------------ */

/* Every line of the ledger that begins so; the rest of it is passed on. */
static void each_line(const char *kind, void (*what)(char *rest))
{
    char line[LINE_LEN + 2];
    FILE *file = fopen(ledger_path, "r");
    if (file == NULL) {
        give_up("the ledger cannot be read", ledger_path);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, kind, 2) == 0) {
            line[strcspn(line, "\n")] = '\0';
            what(line + 2);
        }
    }
    (void)fclose(file);
}

static const char *wanted_line;
static bool is_line_there;
static void compare_line(char *rest)
{
    is_line_there = is_line_there || strcmp(rest, wanted_line) == 0;
}

static bool has_line(const char *kind, const char *rest)
{
    wanted_line = rest;
    is_line_there = false;
    each_line(kind, compare_line);
    return is_line_there;
}

typedef struct heard {
    int64_t next; /* number of the next record */
    int workflow; /* records of the workflow so far */
    int activity; /* of its activities */
    const char *id;
} heard;

static bool hear(void *arg, const hf_stream_record *record)
{
    heard *it = arg;
    if (record->sequence != it->next++) {
        give_up("a record is missing or doubled", it->id);
    }
    if (strcmp(record->type, "activity") == 0) {
        it->activity++;
    } else if (atoi((const char *)record->value.data) != it->workflow++) {
        give_up("a record of the workflow is lost, doubled or in another place", it->id);
    }
    return true;
}

static void judge_stream(char *id)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    heard it = {.id = id};
    int64_t cursor = 0;
    must(hf_execution_new(service, id, &execution), id);
    hf_status status = hf_stream_read(execution, &cursor, hear, &it, .timeout = hf_seconds(WAIT_S));
    if (status == HF_ERR_NOT_FOUND && !has_line("T ", id)) {
        return; /* its start was in doubt */
    }
    must(status, id);
    if (it.workflow != RECORDS || it.activity < 2 || cursor != it.next) {
        give_up("a stream is not whole", id);
    }
}

static bool tag_is_sent;
static const char *tag_wanted;
static void judge_one(char *rest)
{
    char id[LINE_LEN / 2];
    size_t len = strlen(tag_wanted);
    if (strncmp(rest, tag_wanted, len) != 0 || rest[len] != ' ') {
        return;
    }
    (void)snprintf(id, sizeof id, "%s-%s", tag_wanted, rest + len + 1);
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload history = hf_payload_none();
    must(hf_execution_new(service, id, &execution, .namespace_ = "crowd"), id);
    must(hf_history(execution, &history), id);
    int signals = 0;
    for (const char *at = history.data; (at = strstr(at, "\"WorkflowExecutionSignaled\"")) != NULL; at++) {
        signals++;
    }
    for (const char *at = history.data; (at = strstr(at, "EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED")) != NULL; at++) {
        signals++;
    }
    if (signals != (tag_is_sent ? 1 : 0)) {
        (void)fprintf(stderr, "%d signals, %s\n", signals, tag_is_sent ? "a batch" : "no batch");
        give_up("a batch has not acted once", id);
    }
}

static void judge_batch(char *tag)
{
    hf_batch_info info = {0};
    hf_status status = HF_OK;
    for (int i = 0; i < WAIT_S * 20; i++) {
        status = hf_batch_describe(service, tag, &info, .namespace_ = "crowd");
        if (status != HF_OK || info.state != HF_BATCH_RUNNING) {
            break;
        }
        HF_IGNORE(hf_sleep(hf_milliseconds(50)));
    }
    if (status == HF_ERR_NOT_FOUND && has_line("B ", tag)) {
        give_up("a batch was acknowledged and is not there", tag);
    }
    tag_is_sent = status == HF_OK;
    tag_wanted = tag;
    if (tag_is_sent && (info.state != HF_BATCH_COMPLETED || info.failed > 0 || info.complete != info.total)) {
        give_up("a batch has not completed", tag);
    }
    each_line("g ", judge_one);
}

static int64_t count(const char *namespace_, const char *query)
{
    hf_counts counts = {0};
    must(hf_count(service, &counts, .namespace_ = namespace_, .query = query), "count");
    return counts.total;
}

static void judge_open(char *id)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_description_free) hf_description *description = NULL;
    must(hf_execution_new(service, id, &execution, .namespace_ = "brief"), id);
    must(hf_describe(execution, &description), id);
    if (description->status != HF_WORKFLOW_RUNNING) {
        give_up("it is not open any more", id);
    }
}

static void judge_doomed(char *name)
{
    hf_status status = hf_namespace_delete(service, name); /* it may not have been, before the kill */
    if (status != HF_ERR_NOT_FOUND) {
        must(status, name);
    }
    for (int i = 0; i < WAIT_S * 20; i++) {
        status = hf_namespace_register(service, name);
        if (status != HF_ERR_EXISTS) {
            break;
        }
        HF_IGNORE(hf_sleep(hf_milliseconds(50)));
    }
    must(status, name);
    if (count(name, "") != 0) {
        give_up("it has runs", name);
    }
}

static void judge_all(void)
{
    each_line("t ", judge_stream);
    each_line("b ", judge_batch);
    each_line("n ", judge_doomed);
    each_line("o ", judge_open);
    int64_t left = 1;
    for (int i = 0; i < WAIT_S * 5 && left > 0; i++) {
        HF_IGNORE(hf_sleep(hf_milliseconds(200)));
        left = count("brief", "ExecutionStatus != 'Running'");
    }
    if (left > 0) {
        give_up("retention has left runs", "brief");
    }
    hf_batch_info info = {.state = HF_BATCH_RUNNING};
    must(hf_batch_start(service, "wipe", HF_BATCH_DELETE, .namespace_ = "crowd", .query = "TaskQueue = 'idle'"),
         "wipe");
    for (int i = 0; i < WAIT_S * 20 && info.state == HF_BATCH_RUNNING; i++) {
        HF_IGNORE(hf_sleep(hf_milliseconds(50)));
        must(hf_batch_describe(service, "wipe", &info, .namespace_ = "crowd"), "wipe");
    }
    if (info.state != HF_BATCH_COMPLETED || count("crowd", "") != 0) {
        give_up("the last batch has left runs", "crowd");
    }
    each_line("o ", judge_open);
}

/* ---- The program -------------------------------------------------------------------------------------------------------- */

static hf_status work(void *worker)
{
    return hf_worker_run(worker);
}

static hf_status program(void *arg)
{
    bool is_end = *(const bool *)arg;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_worker_new(service, "talk", &worker, .cached_max = is_end ? 0 : (int)(seed % 3) - 1));
    HF_TRY(hf_worker_add_workflow(worker, "talk", talk));
    HF_TRY(hf_worker_add_activity(worker, "tell", tell, .on_fiber = true));
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, work, worker));
    if (is_end) {
        judge_all();
        HF_TRY(hf_worker_stop(worker));
        return hf_join(scope);
    }
    HF_TRY(hf_fork(scope, talker, NULL));
    HF_TRY(hf_fork(scope, crowd, NULL));
    HF_TRY(hf_fork(scope, doomer, NULL));
    for (uintptr_t i = 0; i < BRIEFS; i++) {
        HF_TRY(hf_fork(scope, brief, (void *)i));
    }
    return hf_join(scope);
}

/* The first child begins with a file of an older version. It gets its name when it is whole. */
static void copy_older(const char *database)
{
    char temporary[500];
    static char bytes[1 << 20];
    if (access(database, F_OK) == 0) {
        return;
    }
    (void)snprintf(temporary, sizeof temporary, "%s-new", database);
    FILE *from = fopen(HF_FIXTURES "/0003.db", "rb");
    FILE *to = fopen(temporary, "wb");
    size_t len = from != NULL ? fread(bytes, 1, sizeof bytes, from) : 0;
    if (to == NULL || len == 0 || fwrite(bytes, 1, len, to) != len || fclose(to) != 0 ||
        rename(temporary, database) != 0) {
        give_up("the older file cannot be copied", database);
    }
    (void)fclose(from);
}

static void must_register(const char *name, hf_span retention)
{
    hf_status status = hf_namespace_register(service, name, .retention = retention);
    if (status != HF_ERR_EXISTS) {
        must(status, name);
    }
}

int main(int argc, char **argv)
{
    char address[400];
    if (argc != 5) {
        return 2;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive the test */
    ledger_path = argv[2];
    seed = strtoull(argv[3], NULL, 10);
    cycle = argv[4];
    bool is_end = strcmp(cycle, "end") == 0;
    copy_older(argv[1]);
    (void)snprintf(address, sizeof address, "sqlite:%s?mem=16M&log=256K", argv[1]);
    must(hf_open(address, &service), "open");
    must_register("brief", hf_seconds(1));
    must_register("crowd", hf_seconds(0));
    ledger_fd = open(ledger_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (ledger_fd < 0) {
        give_up("the ledger", argv[2]);
    }
    must(hf_run(program, &is_end, .threads = 2), "run");
    must(hf_close(service), "close");
    return hf_checks_failed() == 0 ? 0 : 3;
}
