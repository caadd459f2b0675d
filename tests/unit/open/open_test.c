/* labels: threads */
/* hf_open and hf_close; one owner per file; the owner's socket. */
#include "unit/open/place.h"

#include "base/arena.h"
#include "inspect/check.h"
#include "service/service.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/* ---- Opening ---------------------------------------------------------------------------------------------------------- */

static void start_one(hf_service *service, const char *id)
{
    hf_execution *execution = NULL;
    assert_int_equal(hf_start(service, "type", hf_payload_of_json("1"), &execution, .id = id), HF_OK);
    hf_execution_free(execution);
}

static void what_was_started_is_there_after_closing_and_opening(void **state)
{
    const place *p = *state;
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    start_one(service, "a");
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(place_count(p), 1); /* only the file is left */
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    hf_execution *execution = NULL;
    assert_int_equal(hf_start(service, "type", hf_payload_none(), &execution, .id = "a"), HF_ERR_EXISTS);
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(hf_close(NULL), HF_OK);
}

/* Sanitizers do not let the child of a program with threads use their allocator and start threads: it has no workers there. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { CHILD_HAS_WORKERS = 0 };
#else
enum { CHILD_HAS_WORKERS = 1 };
#endif

static hf_status make_worker_of(void *service)
{
    hf_worker *worker = NULL;
    return hf_worker_new(service, "queue", &worker);
}

static bool workers_are_refused(hf_service *service, hf_worker *made_before)
{
    hf_worker *made = NULL;
    return hf_worker_run(made_before) == HF_ERR_MISUSE && strstr(hf_error_text(), "is a fork()") != NULL &&
           hf_worker_new(service, "queue", &made) == HF_ERR_MISUSE && strstr(hf_error_text(), "is a fork()") != NULL &&
           made == NULL && hf_run(make_worker_of, service) == HF_ERR_MISUSE; /* a runtime of its own does not help */
}

/* As one does who becomes a daemon after it has opened its file, or whose child returns from main. */
static void a_process_that_fork_made_leaves_the_service_of_its_parent_alone(void **state)
{
    const place *p = *state;
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    start_one(service, "a");
    hf_worker *made_before = NULL;
    if (CHILD_HAS_WORKERS) {
        assert_int_equal(hf_worker_new(service, "queue", &made_before), HF_OK);
    }
    int files = place_count(p);
    pid_t pid = fork();
    if (pid == 0) {
        (void)alarm(300); /* it has none of the threads that it would wait for */
        bool is_so = hf_start(service, "type", hf_payload_none(), NULL, .id = "b") == HF_ERR_MISUSE &&
                     (!CHILD_HAS_WORKERS || workers_are_refused(service, made_before)) &&
                     hf_close(service) == HF_ERR_MISUSE && strstr(hf_error_text(), "is a fork()") != NULL;
        _exit(is_so ? 0 : 1);
    }
    int code = -1;
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_int_equal(code, 0);
    assert_int_equal(place_count(p), files);
    start_one(service, "b");
    assert_int_equal(hf_worker_free(made_before), HF_OK);
    assert_int_equal(hf_close(service), HF_OK);
}

static atomic_int answered;

static void on_answer(hf_call *call)
{
    (void)call;
    (void)atomic_fetch_add(&answered, 1);
}

/* More than the engine takes in one step, and polls that would wait for a minute. */
static void closing_answers_every_call_however_many_there_are(void **state)
{
    const place *p = *state;
    enum { CALLS = 3000 };
    static hf_call calls[CALLS];
    static hf_arena arenas[CALLS];
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    hf_pb_workflow_execution nobody = {.workflow_id = HF_STR("nobody")};
    hf_pb_describe_workflow_execution_request describe = {.namespace = HF_STR("default"), .execution = &nobody};
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_poll_activity_task_queue_request poll = {.namespace = HF_STR("default"), .task_queue = &queue};
    atomic_store(&answered, 0);
    for (int i = 0; i < CALLS; i++) {
        hf_arena_init(&arenas[i], hf_env_memory(hf_env_posix()));
        bool polls = i % 2 == 0;
        hf_call_init(&calls[i], polls ? HF_METHOD_POLL_ACTIVITY_TASK_QUEUE : HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION,
                     polls ? (void *)&poll : (void *)&describe, &arenas[i], on_answer);
        hf_service_submit(service, &calls[i]);
    }
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(atomic_load(&answered), CALLS);
    for (int i = 0; i < CALLS; i++) {
        hf_arena_deinit(&arenas[i]);
    }
}

static void every_key_of_an_address_is_taken(void **state)
{
    const place *p = *state;
    static const char *const TAILS[] = {"?mem=16M", "?mem=1G&durability=normal&log=64K", "?durability=full", "?"};
    for (size_t i = 0; i < HF_COUNT_OF(TAILS); i++) {
        char address[300];
        (void)snprintf(address, sizeof address, "%s%s", p->address, TAILS[i]);
        hf_service *service = NULL;
        print_message("%s\n", TAILS[i]);
        assert_int_equal(hf_open(address, &service), HF_OK);
        assert_int_equal(hf_close(service), HF_OK);
    }
}

static void a_budget_is_shared_out_within_itself(void **state)
{
    (void)state;
    hf_service_address where = {.mem = (size_t)48 << 20};
    hf_shares shares = hf_service_address_shares(&where);
    assert_true(shares.cache + shares.state <= where.mem * 2 / 3 && shares.journal <= shares.state / 2);
    assert_true(shares.cache == (size_t)8 << 20);
    where.mem = (size_t)64 << 30;
    assert_true(hf_service_address_shares(&where).journal == (size_t)32 << 20);
}

static hf_status on_a_fiber(void *arg)
{
    const place *p = arg;
    hf_service *service = NULL;
    HF_TRY(hf_open(p->address, &service));
    hf_status status = hf_start(service, "type", hf_payload_none(), NULL, .id = "f");
    hf_status closed = hf_close(service);
    HF_CHECK(hf_open("memory:", &service) == HF_OK);
    HF_CHECK(hf_start(service, "type", hf_payload_none(), NULL, .id = "m") == HF_OK);
    HF_CHECK(hf_close(service) == HF_OK);
    return status != HF_OK ? status : closed;
}

static void a_fiber_may_open_and_close(void **state)
{
    assert_int_equal(hf_run(on_a_fiber, *state), HF_OK);
}

static hf_status in_memory(void *arg)
{
    (void)arg;
    hf_service *service = NULL;
    hf_execution *execution = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_CHECK(hf_start(service, "type", hf_payload_none(), &execution, .id = "a") == HF_OK);
    HF_CHECK(hf_signal(execution, "s", hf_payload_none()) == HF_OK);
    HF_CHECK(hf_result(execution, NULL, .timeout = HF_SPAN_OFF) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_result(execution, NULL, .timeout = hf_hours(1)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_terminate(execution) == HF_OK);
    HF_CHECK(hf_result(execution, NULL) == HF_ERR_FAILED);
    hf_execution_free(execution);
    return hf_close(service);
}

static void a_simulated_runtime_opens_in_its_own_world(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t hash[2] = {0};
        assert_int_equal(hf_sim_run(seed, 2, in_memory, NULL, &hash[0]), HF_OK);
        assert_int_equal(hf_sim_run(seed, 2, in_memory, NULL, &hash[1]), HF_OK);
        assert_true(hash[0] == hash[1]);
    }
}

static hf_status nothing(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return HF_OK;
}

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status close_under_a_worker(void *arg)
{
    (void)arg;
    hf_service *service = NULL;
    hf_worker *worker = NULL;
    hf_execution *execution = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "nothing", nothing));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_worker, worker));
        HF_TRY(hf_start(service, "nothing", hf_payload_none(), &execution, .task_queue = "q"));
        HF_CHECK(hf_result(execution, NULL) == HF_OK);
        HF_CHECK(hf_close(service) == HF_ERR_MISUSE);
        HF_TRY(hf_worker_stop(worker));
        HF_TRY(hf_join(scope));
    }
    hf_execution_free(execution);
    HF_CHECK(hf_worker_free(worker) == HF_OK);
    return hf_close(service);
}

static void a_service_is_not_closed_under_a_worker(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(1, 2, close_under_a_worker, NULL, NULL), HF_OK);
    assert_int_equal(hf_run(close_under_a_worker, NULL), HF_OK);
}

static hf_status cancel_then_close(void *arg)
{
    const place *p = arg;
    hf_service *service = NULL;
    hf_scope *scope = NULL;
    HF_TRY(hf_open(p->address, &service));
    HF_TRY(hf_scope_open(&scope));
    HF_CHECK(hf_scope_cancel(scope) == HF_OK);
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
    HF_CHECK(hf_close(service) == HF_OK);
    (void)hf_scope_close(scope);
    return HF_OK;
}

static void a_canceled_fiber_may_still_close(void **state)
{
    const place *p = *state;
    HF_IGNORE(hf_run(cancel_then_close, *state));
    assert_int_equal(place_count(p), 1);
}

/* ---- Owners ----------------------------------------------------------------------------------------------------------- */

/* open-O1 */
static void a_second_opener_in_the_same_process_is_told_whose_it_is(void **state)
{
    const place *p = *state;
    hf_service *first = NULL;
    hf_service *second = NULL;
    assert_int_equal(hf_open(p->address, &first), HF_OK);
    assert_int_equal(hf_open(p->address, &second), HF_ERR_EXISTS);
    char pid[32];
    (void)snprintf(pid, sizeof pid, "process %d", (int)getpid());
    assert_non_null(strstr(hf_error_text(), pid));
    start_one(first, "still-works");
    assert_int_equal(hf_close(first), HF_OK);
    assert_int_equal(hf_open(p->address, &second), HF_OK);
    assert_int_equal(hf_close(second), HF_OK);
}

typedef struct looking {
    hf_peek peek;
    atomic_bool is_done;
} looking;

static void *close_later(void *arg)
{
    looking *l = arg;
    hf_env *env = hf_env_posix();
    hf_word nobody = 0;
    (void)env->ops->word_wait(env, &nobody, 0, (hf_instant){env->ops->now(env).ns + hf_milliseconds(50).ns});
    atomic_store(&l->is_done, true);
    hf_peek_close(&l->peek);
    return NULL;
}

static void who_opens_waits_for_a_tool_that_looks(void **state)
{
    const place *p = *state;
    hf_service *service = NULL;
    hf_op op;
    hf_op_init(&op);
    looking l = {0};
    int64_t holder = 0;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(hf_peek_open(&op, hf_env_posix(), p->path, &l.peek, &holder), HF_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, close_later, &l), 0);
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    assert_true(atomic_load(&l.is_done));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(hf_close(service), HF_OK);
}

static void by_another_name_the_file_is_still_one_mans(void **state)
{
    const place *p = *state;
    hf_service *first = NULL;
    hf_service *second = NULL;
    char name[200];
    char address[220];
    (void)snprintf(name, sizeof name, "%s/y.db", p->folder);
    (void)snprintf(address, sizeof address, "sqlite:%s", name);
    assert_int_equal(hf_open(p->address, &first), HF_OK);
    assert_int_equal(link(p->path, name), 0);
    assert_int_equal(hf_open(address, &second), HF_ERR_CONFLICT);
    hf_peek peek;
    hf_op op;
    hf_op_init(&op);
    int64_t holder = 0;
    assert_int_equal(hf_peek_open(&op, hf_env_posix(), name, &peek, &holder), HF_ERR_CONFLICT);
    start_one(first, "still-works");
    assert_int_equal(hf_close(first), HF_OK);
}

/* A process that has the file open until it is killed. What it starts is long, so that the file grows: the log has page 1. */
static pid_t open_elsewhere(const place *p)
{
    static char json[50000];
    memset(json, '1', sizeof json - 1);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        hf_service *service = NULL;
        char answer = hf_open(p->address, &service) == HF_OK ? 'y' : 'n';
        if (answer == 'y' && hf_start(service, "type", hf_payload_of_json(json), NULL, .id = "theirs") != HF_OK) {
            answer = 'n';
        }
        ssize_t put = write(ends[1], &answer, 1);
        while (put == 1) {
            (void)pause();
        }
        _exit(1);
    }
    char answer = 0;
    (void)close(ends[1]); /* if the child dies, reading ends */
    assert_int_equal(read(ends[0], &answer, 1), 1);
    assert_int_equal(answer, 'y');
    (void)close(ends[0]);
    return pid;
}

static void another_process_is_named_and_its_death_frees_the_file(void **state)
{
    const place *p = *state;
    pid_t pid = open_elsewhere(p);
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_ERR_EXISTS);
    char text[32];
    (void)snprintf(text, sizeof text, "process %d", (int)pid);
    assert_non_null(strstr(hf_error_text(), text));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(hf_open(p->address, &service), HF_OK); /* over the dead one's lock file and socket */
    assert_int_equal(hf_start(service, "type", hf_payload_none(), NULL, .id = "theirs"), HF_ERR_EXISTS);
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(place_count(p), 1);
}

/* Page 1 as a power cut in a checkpoint may leave it; the log still has it. */
static void a_first_page_that_was_torn_is_mended_from_the_log(void **state)
{
    const place *p = *state;
    static const char ZEROS[4096];
    hf_service *service = NULL;
    pid_t pid = open_elsewhere(p);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    file_put(p->path, 0, ZEROS, sizeof ZEROS);
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    assert_int_equal(hf_start(service, "type", hf_payload_none(), NULL, .id = "theirs"), HF_ERR_EXISTS);
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(place_count(p), 1);
}

/* A path that begins nowhere is meant where the program was then: another one's files of that name are left alone. */
static void a_program_that_goes_elsewhere_closes_what_it_opened(void **state)
{
    const place *p = *state;
    hf_service *service = NULL;
    char here[300];
    char elsewhere[200];
    char decoy[220];
    struct stat info;
    assert_non_null(getcwd(here, sizeof here));
    (void)snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", p->folder);
    (void)snprintf(decoy, sizeof decoy, "%s/x.db-sock", elsewhere);
    assert_int_equal(mkdir(elsewhere, 0700), 0);
    file_put(decoy, 0, "x", 1);
    assert_int_equal(chdir(p->folder), 0);
    assert_int_equal(hf_open("sqlite:x.db", &service), HF_OK);
    assert_int_equal(chdir(elsewhere), 0);
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(stat(decoy, &info), 0);
    assert_int_equal(unlink(decoy), 0);
    assert_int_equal(place_count(p), 2); /* the file and the folder */
}

static void files_are_for_their_owner_only(void **state)
{
    const place *p = *state;
    mode_t before = umask(0);
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    (void)umask(before);
    static const char *const SUFFIXES[] = {"", "-wal", "-owner", "-sock"};
    for (size_t i = 0; i < HF_COUNT_OF(SUFFIXES); i++) {
        char path[200];
        struct stat info;
        (void)snprintf(path, sizeof path, "%s%s", p->path, SUFFIXES[i]);
        print_message("%s\n", path);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0600);
    }
    assert_int_equal(hf_close(service), HF_OK);
}

/* ---- The socket ------------------------------------------------------------------------------------------------------- */

typedef struct heard {
    hf_buf bytes;
    size_t kinds;
} heard;

static void on_chunk(void *state, hf_str kind, hf_str chunk)
{
    heard *h = state;
    h->kinds += kind.len > 0 ? 1 : 0;
    hf_buf_put(&h->bytes, chunk.data, chunk.len);
}

static hf_status ask(const place *p, const char *verb, const char *a, const char *b, heard *h, hf_op *op)
{
    const char *args[] = {a, b};
    size_t count = b != NULL ? 2 : a != NULL ? 1 : 0;
    hf_op_init(op);
    h->bytes.len = 0;
    h->kinds = 0;
    return hf_admin_ask(op, hf_env_posix(), p->path, verb, args, count, on_chunk, h);
}

/* By a link one finds the owner, and after its death its log: without that the file is what it was at the last checkpoint. */
static void a_link_leads_to_the_file_and_all_that_lies_beside_it(void **state)
{
    const place *p = *state;
    hf_service *service = NULL;
    char name[200];
    char address[220];
    (void)snprintf(name, sizeof name, "%s/y.db", p->folder);
    (void)snprintf(address, sizeof address, "sqlite:%s", name);
    assert_int_equal(symlink("x.db", name), 0);
    pid_t pid = open_elsewhere(p);
    assert_int_equal(hf_open(address, &service), HF_ERR_EXISTS);
    hf_peek peek;
    hf_op op;
    hf_op_init(&op);
    int64_t holder = 0;
    assert_int_equal(hf_peek_open(&op, hf_env_posix(), name, &peek, &holder), HF_ERR_EXISTS);
    assert_int_equal(holder, pid);
    place by_link = *p;
    (void)snprintf(by_link.path, sizeof by_link.path, "%s/y.db", p->folder);
    heard h;
    hf_buf_init(&h.bytes, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    assert_int_equal(ask(&by_link, "show", "default", "theirs", &h, &op), HF_OK);
    hf_buf_deinit(&h.bytes);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(hf_peek_open(&op, hf_env_posix(), name, &peek, &holder), HF_OK);
    assert_true(peek.has_log && peek.store->ops->last_commit(peek.store) > 0);
    hf_peek_close(&peek);
    assert_int_equal(hf_open(address, &service), HF_OK);
    assert_int_equal(hf_start(service, "type", hf_payload_none(), NULL, .id = "theirs"), HF_ERR_EXISTS);
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(place_count(p), 2); /* the file and the link */
}

/* open-O4 */
static void tools_ask_the_owner(void **state)
{
    const place *p = *state;
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    start_one(service, "a");
    heard h;
    hf_op op;
    hf_buf_init(&h.bytes, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);

    assert_int_equal(ask(p, "stats", NULL, NULL, &h, &op), HF_OK);
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_pb_admin_stats stats;
    assert_int_equal(
        hf_pb_decode(&op, &hf_pb_admin_stats_type, hf_str_of_len(h.bytes.data, h.bytes.len), &arena, &stats), HF_OK);
    assert_true(stats.commits >= 1 && stats.rows.count == hf_engine_tables.count && stats.file_bytes > 0);
    hf_arena_deinit(&arena);

    assert_int_equal(ask(p, "show", "default", "a", &h, &op), HF_OK);
    assert_int_equal(h.kinds, 3);
    assert_int_equal(ask(p, "show", "default", "b", &h, &op), HF_ERR_NOT_FOUND);

    char copy[200];
    (void)snprintf(copy, sizeof copy, "%s/copy.db", p->folder);
    assert_int_equal(ask(p, "backup", copy, NULL, &h, &op), HF_OK);
    assert_int_equal(ask(p, "backup", copy, NULL, &h, &op), HF_ERR_EXISTS);
    assert_int_equal(ask(p, "backup", "relative.db", NULL, &h, &op), HF_ERR_INVALID);
    static char far[HF_PATH_LEN_MAX]; /* longer than the path of a database may be */
    memset(far, 'x', HF_PATH_LEN_MAX - 31);
    far[0] = '/';
    assert_int_equal(ask(p, "backup", far, NULL, &h, &op), HF_ERR_INVALID);
    assert_non_null(strstr(op.message, "the path of a backup has 4065 bytes, at most 4064 are taken"));
    assert_int_equal(ask(p, "dance", NULL, NULL, &h, &op), HF_ERR_INVALID);
    assert_non_null(strstr(op.message, "stats, backup, show, list and calls"));
    assert_int_equal(ask(p, "stats", "a", NULL, &h, &op), HF_ERR_INVALID);
    hf_buf_deinit(&h.bytes);

    hf_peek peek;
    int64_t holder = 0;
    hf_check_report report;
    hf_op_init(&op);
    assert_int_equal(hf_peek_open(&op, hf_env_posix(), copy, &peek, &holder), HF_OK);
    assert_int_equal(hf_check_store(&op, hf_env_memory(hf_env_posix()), peek.store, NULL, &report), HF_OK);
    assert_true(report.damages == 0 && report.runs == 1);
    hf_peek_close(&peek);
    assert_int_equal(hf_peek_open(&op, hf_env_posix(), p->path, &peek, &holder), HF_ERR_EXISTS);
    assert_int_equal(holder, getpid());
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(ask(p, "stats", NULL, NULL, &h, &op), HF_ERR_CLOSED);
}

static int connect_to(const place *p)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.90s-sock", p->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Whatever is sent, the next one is served. Connections that say nothing are closed after a while, or when the owner closes. */
enum { LISTED = 100 };

/* Every third is closed, and so has a row; the others are in the journal, and in memory. */
static void start_many(hf_service *service)
{
    for (int i = 0; i < LISTED; i++) {
        char id[16];
        hf_execution *execution = NULL;
        (void)snprintf(id, sizeof id, "w-%d", i);
        assert_int_equal(hf_start(service, "type", hf_payload_none(), &execution, .id = id), HF_OK);
        if (i % 3 == 0) {
            assert_int_equal(hf_terminate(execution), HF_OK);
        }
        hf_execution_free(execution);
    }
}

/* Reads the whole list in pages of so many, and compares. */
static void compare_list(const place *p, const char *page_max)
{
    hf_arena arena;
    hf_op op;
    heard h;
    char before[24];
    int seen = 0;
    (void)snprintf(before, sizeof before, "%lld", (long long)INT64_MAX);
    hf_buf_init(&h.bytes, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    for (size_t count = 1; count > 0;) {
        hf_pb_admin_runs page = {0};
        assert_int_equal(ask(p, "list", before, page_max, &h, &op), HF_OK);
        assert_int_equal(
            hf_pb_decode(&op, &hf_pb_admin_runs_type, hf_str_of_len(h.bytes.data, h.bytes.len), &arena, &page), HF_OK);
        assert_int_equal(page.total, seen == 0 ? LISTED : 0);
        count = page.runs.count;
        for (size_t i = 0; i < count; i++) {
            const hf_pb_admin_run *run = &page.runs.items[i];
            char id[16];
            int which = LISTED - 1 - seen++;
            (void)snprintf(id, sizeof id, "w-%d", which);
            assert_true(hf_str_equal(run->workflow_id, hf_str_of(id)));
            assert_true(hf_str_equal(run->type, HF_STR("type")) && hf_str_equal(run->namespace, HF_STR("default")));
            assert_int_equal(run->status, which % 3 == 0 ? HF_WORKFLOW_EXECUTION_STATUS_TERMINATED
                                                         : HF_WORKFLOW_EXECUTION_STATUS_RUNNING);
            assert_true(run->start_ns > 0 && run->last_ns >= run->start_ns && run->events >= 2);
            (void)snprintf(before, sizeof before, "%lld", (long long)run->number);
        }
    }
    assert_int_equal(seen, LISTED);
    hf_arena_deinit(&arena);
    hf_buf_deinit(&h.bytes);
}

static void the_owner_lists_runs_newest_first_wherever_they_are(void **state)
{
    const place *p = *state;
    static const char *const PAGES[] = {"1", "7", "99", "100", "1000"};
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    start_many(service);
    for (int opened = 0; opened < 2; opened++) { /* as they were made, and as they were found */
        for (size_t i = 0; i < HF_COUNT_OF(PAGES); i++) {
            compare_list(p, PAGES[i]);
        }
        assert_int_equal(hf_close(service), HF_OK);
        assert_int_equal(hf_open(p->address, &service), HF_OK);
    }
    static const char *const BAD[][2] = {
        {"0", "5"}, {"5", "0"}, {"5", "1001"}, {"x", "5"}, {"99999999999999999999", "5"}};
    for (size_t i = 0; i < HF_COUNT_OF(BAD); i++) {
        hf_op op;
        heard h;
        hf_buf_init(&h.bytes, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
        assert_int_equal(ask(p, "list", BAD[i][0], BAD[i][1], &h, &op), HF_ERR_INVALID);
        hf_buf_deinit(&h.bytes);
    }
    assert_int_equal(hf_close(service), HF_OK);
}

/* A run that cannot be read is listed as that, and hides no other. */
static void the_owner_lists_damaged_runs_among_the_others(void **state)
{
    const place *p = *state;
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    start_many(service);
    assert_int_equal(hf_close(service), HF_OK);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(p->path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "UPDATE run SET v=CAST(substr(v,1,60)||x'00' AS BLOB) WHERE id=1", NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1); /* it was terminated, so it has a row */
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    heard h;
    hf_op op;
    hf_arena arena;
    hf_pb_admin_runs page = {0};
    hf_buf_init(&h.bytes, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    assert_int_equal(ask(p, "list", "9223372036854775807", "1000", &h, &op), HF_OK);
    assert_int_equal(hf_pb_decode(&op, &hf_pb_admin_runs_type, hf_str_of_len(h.bytes.data, h.bytes.len), &arena, &page),
                     HF_OK);
    assert_int_equal(page.runs.count, LISTED);
    for (size_t i = 0; i < page.runs.count; i++) {
        bool is_first = page.runs.items[i].number == 1;
        assert_true((page.runs.items[i].damage.len > 0) == is_first);
        assert_true((page.runs.items[i].workflow_id.len > 0) == !is_first);
    }
    hf_arena_deinit(&arena);
    hf_buf_deinit(&h.bytes);
    assert_int_equal(hf_close(service), HF_OK);
}

static void nonsense_does_no_harm(void **state)
{
    const place *p = *state;
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    static const struct {
        const char *bytes;
        size_t len;
    } NONSENSE[] = {
        {"", 0},
        {"\xff\xff\xff\xff", 4},
        {"\x01\x00\x01\x00", 4},
        {"\x04\x00\x00\x00\xff\xff\xff\xff", 8},
        {"\x00\x00\x00\x00", 4},
        {"\x02\x00\x00\x00\x0a\x7f", 6},
        {"GET / HTTP/1.1\r\n\r\n", 18},
    };
    for (size_t i = 0; i < HF_COUNT_OF(NONSENSE); i++) {
        int fd = connect_to(p);
        assert_int_equal(send(fd, NONSENSE[i].bytes, NONSENSE[i].len, MSG_NOSIGNAL), (ssize_t)NONSENSE[i].len);
        (void)shutdown(fd, SHUT_WR);
        char buf[512];
        ssize_t got = 0;
        do {
            got = recv(fd, buf, sizeof buf, 0); /* an answer that says so, then the end */
        } while (got > 0);
        assert_true(got == 0 || errno == ECONNRESET);
        (void)close(fd);
    }
    hf_rng rng = {.state = 7};
    for (int i = 0; i < 200; i++) {
        char bytes[64];
        size_t len = (size_t)hf_rng_below(&rng, sizeof bytes - 4);
        for (size_t k = 0; k < sizeof bytes; k++) {
            bytes[k] = (char)hf_rng_next(&rng);
        }
        bytes[0] = (char)len;
        bytes[1] = bytes[2] = bytes[3] = 0;
        int fd = connect_to(p);
        (void)send(fd, bytes, len + 4, MSG_NOSIGNAL);
        (void)close(fd);
    }
    heard h;
    hf_op op;
    hf_buf_init(&h.bytes, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    assert_int_equal(ask(p, "stats", NULL, NULL, &h, &op), HF_OK);
    hf_buf_deinit(&h.bytes);
    int silent = connect_to(p); /* and closing does not wait for this one */
    assert_int_equal(hf_close(service), HF_OK);
    (void)close(silent);
}

static char logged[1000];

static void keep_log(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    if (level >= HF_LOG_WARN) {
        (void)snprintf(logged, sizeof logged, "%s %s", event, fields);
    }
}

static void a_path_too_long_for_a_socket_works_without_one(void **state)
{
    const place *p = *state;
    char deep[400];
    char address[420];
    (void)snprintf(deep, sizeof deep, "%s/%0120d.db", p->folder, 7);
    (void)snprintf(address, sizeof address, "sqlite:%s", deep);
    hf_runtime *runtime = NULL;
    hf_service *service = NULL;
    assert_int_equal(hf_runtime_new(&runtime, .threads = 1, .log = keep_log), HF_OK);
    logged[0] = '\0';
    assert_int_equal(hf_open(address, &service, .runtime = runtime), HF_OK);
    assert_non_null(
        strstr(logged, "admin_socket_missing why=\"the path of a unix socket has 1 to 107 bytes: \\\"unix:"));
    start_one(service, "a");
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(hf_runtime_free(runtime), HF_OK);
    assert_int_equal(place_count(p), 1);
}

static hf_status wait_in_vain(void *arg)
{
    HF_CHECK(hf_result(arg, NULL) == HF_ERR_CANCELED);
    HF_CHECK_SAY(strcmp(hf_error_text(), "hf_result of workflow 'order-1': the caller went away") == 0, "%s",
                 hf_error_text());
    HF_CHECK(hf_result(arg, NULL) == HF_ERR_CANCELED);
    HF_CHECK_SAY(strncmp(hf_error_text(), "hf_result of workflow 'order-1' was not asked: ", 47) == 0, "%s",
                 hf_error_text());
    return HF_OK;
}

static hf_status ask_in_vain(void *arg)
{
    static const char NO_ORDER[] = "there is no workflow 'order-2' in the namespace 'default'";
    (void)arg;
    hf_service *service = NULL;
    hf_execution *one = NULL;
    hf_execution *two = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_start(service, "type", hf_payload_none(), &one, .id = "order-1"));
    HF_CHECK(hf_start(service, "type", hf_payload_none(), NULL, .id = "order-1") == HF_ERR_EXISTS);
    HF_CHECK_SAY(strstr(hf_error_text(), "hf_start of workflow 'order-1': ") == hf_error_text(), "%s", hf_error_text());
    HF_TRY(hf_execution_new(service, "order-2", &two));
    for (int i = 0; i < 4; i++) {
        static const char *const VERBS[] = {"hf_result", "hf_signal", "hf_cancel", "hf_terminate"};
        char text[200];
        (void)snprintf(text, sizeof text, "%s of workflow 'order-2': %s", VERBS[i], NO_ORDER);
        hf_status status = i == 0   ? hf_result(two, NULL)
                           : i == 1 ? hf_signal(two, "s", hf_payload_none())
                           : i == 2 ? hf_cancel(two)
                                    : hf_terminate(two);
        HF_CHECK(status == HF_ERR_NOT_FOUND);
        HF_CHECK_SAY(strcmp(hf_error_text(), text) == 0, "%s", hf_error_text());
    }
    hf_execution_free(two);
    char long_id[601] = "";
    for (int i = 0; i < 200; i++) {
        memcpy(&long_id[3 * i], "\xe2\x82\xac", 3); /* a euro sign has three bytes */
    }
    long_id[0] = long_id[1] = long_id[2] = 'x';
    HF_TRY(hf_execution_new(service, long_id + 1, &two));
    HF_CHECK(hf_cancel(two) == HF_ERR_NOT_FOUND);
    HF_CHECK_SAY(strstr(hf_error_text(), "\xe2\x82\xac...': there is no workflow 'xx") != NULL, "%s", hf_error_text());
    hf_execution_free(two);
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "waits", .join = HF_JOIN_COLLECT));
        HF_TRY(hf_fork(scope, wait_in_vain, one));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_IGNORE(hf_scope_cancel(scope));
        HF_IGNORE(hf_join(scope));
    }
    hf_execution_free(one);
    return hf_close(service);
}

static void what_a_client_is_told_names_the_verb_and_the_workflow(void **state)
{
    (void)state;
    HF_CHECK(hf_sim_run(1, 1, ask_in_vain, NULL, NULL) == HF_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)
static const struct CMUnitTest TESTS[] = {
    TEST(what_was_started_is_there_after_closing_and_opening),
    TEST(a_process_that_fork_made_leaves_the_service_of_its_parent_alone),
    TEST(closing_answers_every_call_however_many_there_are),
    TEST(every_key_of_an_address_is_taken),
    TEST(a_budget_is_shared_out_within_itself),
    TEST(a_fiber_may_open_and_close),
    TEST(a_simulated_runtime_opens_in_its_own_world),
    TEST(a_service_is_not_closed_under_a_worker),
    TEST(a_canceled_fiber_may_still_close),
    TEST(a_second_opener_in_the_same_process_is_told_whose_it_is),
    TEST(who_opens_waits_for_a_tool_that_looks),
    TEST(by_another_name_the_file_is_still_one_mans),
    TEST(another_process_is_named_and_its_death_frees_the_file),
    TEST(a_first_page_that_was_torn_is_mended_from_the_log),
    TEST(a_program_that_goes_elsewhere_closes_what_it_opened),
    TEST(files_are_for_their_owner_only),
    TEST(a_link_leads_to_the_file_and_all_that_lies_beside_it),
    TEST(tools_ask_the_owner),
    TEST(the_owner_lists_runs_newest_first_wherever_they_are),
    TEST(the_owner_lists_damaged_runs_among_the_others),
    TEST(nonsense_does_no_harm),
    TEST(a_path_too_long_for_a_socket_works_without_one),
    TEST(what_a_client_is_told_names_the_verb_and_the_workflow),
};

int main(int argc, char **argv)
{
    return hf_test_main("open", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
