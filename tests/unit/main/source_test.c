/* labels: threads */
/* A database, whoever has it: a tool waits for a program that is just opening or closing it. */
#include "unit/open/place.h"

#include "main/grid.c"
#include "main/put.c"
#include "main/source.c"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static void make_database(const place *p)
{
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    assert_int_equal(hf_close(service), HF_OK);
}

/* A program that has the lock and no socket, as long as it opens the file, and then gives up. */
static void *give_up(void *arg)
{
    (void)usleep(150000);
    hf_file_owner_release(hf_env_posix(), arg);
    return NULL;
}

static void a_program_that_gives_up_opening_leaves_the_file_to_the_tool(void **state)
{
    const place *p = *state;
    make_database(p);
    hf_op op;
    hf_op_init(&op);
    hf_file_owner owner;
    int64_t holder = 0;
    assert_int_equal(hf_file_owner_take(&op, hf_env_posix(), p->path, false, &owner, &holder), HF_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, give_up, &owner), 0);
    hf_tool_source source;
    assert_int_equal(hf_source_open(&source, p->path), HF_EXIT_FINE);
    assert_false(source.is_owned);
    hf_source_close(&source);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

typedef struct opening {
    hf_file_owner owner;
    const place *place;
    hf_admin *admin;
    hf_service *engine; /* nobody asks for anything */
} opening;

/* ... or is done with it. */
static void *listen_later(void *arg)
{
    opening *o = arg;
    hf_op op;
    hf_op_init(&op);
    (void)usleep(150000);
    (void)hf_admin_open(&op, hf_env_posix(), o->place->path, o->engine, o->engine, &o->admin);
    return NULL;
}

static void a_program_that_is_still_opening_is_asked_when_it_listens(void **state)
{
    const place *p = *state;
    make_database(p);
    hf_op op;
    hf_op_init(&op);
    opening o = {.place = p};
    int64_t holder = 0;
    assert_int_equal(hf_file_owner_take(&op, hf_env_posix(), p->path, false, &o.owner, &holder), HF_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, listen_later, &o), 0);
    hf_tool_source source;
    assert_int_equal(hf_source_open(&source, p->path), HF_EXIT_FINE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(source.is_owned && source.holder == getpid());
    assert_non_null(o.admin);
    assert_true(hf_admin_listens(hf_env_posix(), p->path));
    hf_source_close(&source);
    hf_admin_close(o.admin);
    assert_false(hf_admin_listens(hf_env_posix(), p->path));
    hf_file_owner_release(hf_env_posix(), &o.owner);
}

/* A program that closes the file while the tool's question is on its way. */
static void *hang_up(void *arg)
{
    int fd = accept(*(const int *)arg, NULL, NULL);
    (void)close(fd);
    return NULL;
}

static void ignore(void *state, hf_str kind, hf_str chunk)
{
    (void)state;
    (void)kind;
    (void)chunk;
}

static void a_program_that_hangs_up_is_said_to_have_closed_the_file(void **state)
{
    const place *p = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.90s-sock", p->path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hang_up, &fd), 0);
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_admin_ask(&op, hf_env_posix(), p->path, "stats", NULL, 0, ignore, NULL), HF_ERR_CLOSED);
    assert_non_null(strstr(op.message, "has closed it meanwhile, or ended: try again"));
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(fd);
}

/* An owner without a descriptor for the tool's connection, for a while: nobody tells it again of what waits in its queue. */
static hf_env_ops poor_ops;
static hf_env poor = {&poor_ops};
static atomic_int refusals; /* still to come */
static atomic_bool has_refused;

static hf_status accept_poorly(hf_env *env, hf_op *op, int fd, int *ret_fd, char *ret_peer)
{
    (void)env;
    if (atomic_load(&refusals) == 0) {
        return hf_env_posix()->ops->accept(hf_env_posix(), op, fd, ret_fd, ret_peer);
    }
    atomic_fetch_sub(&refusals, 1);
    atomic_store(&has_refused, true);
    return hf_fail(op, HF_ERR_LIMIT, "no descriptor is left");
}

static int wait_poorly(hf_env *env, hf_poller *poller, hf_event *ret_events, int count, hf_instant deadline)
{
    (void)env;
    if (atomic_exchange(&has_refused, false) && !HF_CHECK_SAY(deadline.ns != INT64_MAX, "it waits for news for ever")) {
        return 0;
    }
    return hf_env_posix()->ops->poller_wait(hf_env_posix(), poller, ret_events, count, deadline);
}

static void an_owner_without_descriptors_answers_when_it_has_some(void **state)
{
    const place *p = *state;
    hf_op op;
    hf_op_init(&op);
    hf_admin *admin = NULL;
    poor_ops = *hf_env_posix()->ops;
    poor_ops.accept = accept_poorly;
    poor_ops.poller_wait = wait_poorly;
    atomic_store(&refusals, 0);
    atomic_store(&has_refused, false);
    assert_int_equal(hf_admin_open(&op, &poor, p->path, NULL, NULL, &admin), HF_OK);
    atomic_store(&refusals, 3);
    assert_int_equal(hf_admin_ask(&op, hf_env_posix(), p->path, "hello", NULL, 0, ignore, NULL), HF_ERR_INVALID);
    assert_non_null(strstr(op.message, "there is no verb"));
    hf_admin_close(admin);
}

/* Somebody else's program has it open, with a lock that we may not even read: there is a log, and it is in use. */
static void a_file_in_use_by_another_user_is_not_said_to_be_left(void **state)
{
    const place *p = *state;
    if (geteuid() != 0) {
        skip();
    }
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    assert_int_equal(hf_start(service, "x", hf_payload_none(), NULL), HF_OK);
    char log[160];
    (void)snprintf(log, sizeof log, "%s-wal", p->path);
    assert_int_equal(chmod(p->folder, 0755) | chmod(p->path, 0644) | chmod(log, 0644), 0);
    hf_op op;
    hf_op_init(&op);
    hf_peek peek = {0};
    int64_t holder = 0;
    pid_t pid = fork(); /* SQLite's locks are between processes */
    if (pid == 0) {
        bool is_so = seteuid(65534) == 0 &&
                     hf_peek_open(&op, hf_env_posix(), p->path, &peek, &holder) == HF_ERR_CONFLICT &&
                     strstr(op.message, "is open") != NULL;
        _exit(is_so ? 0 : 1);
    }
    int code = 0;
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_int_equal(code, 0);
    assert_int_equal(hf_close(service), HF_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)
static const struct CMUnitTest TESTS[] = {
    TEST(a_program_that_gives_up_opening_leaves_the_file_to_the_tool),
    TEST(a_program_that_is_still_opening_is_asked_when_it_listens),
    TEST(a_program_that_hangs_up_is_said_to_have_closed_the_file),
    TEST(an_owner_without_descriptors_answers_when_it_has_some),
    TEST(a_file_in_use_by_another_user_is_not_said_to_be_left),
};

int main(int argc, char **argv)
{
    return hf_test_main("source", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
