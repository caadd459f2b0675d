/* kill -9 of a program that writes through a depot. The program runs as a child again and again, is killed at some
 * moment, and runs once more at the end until everything is settled. Then the origin's own log is compared with what
 * the children were told:
 *
 *   kill-K1  every write that was acknowledged has reached the origin, at least once (DP6);
 *   kill-K2  in order per key: the first arrivals of the writes of a key are in the order in which they were made;
 *   kill-K3  one id per write, another for each write;
 *   kill-K4  what the depot shows at the end is what the origin has.
 *
 *     depot_kill FOLDER [KILLS] [SEED]
 *
 * Files in FOLDER: depot.db; acks, a line "key number" for each acknowledged write; origin, a line "key number id" for
 * each write that arrived. A line is written with one write(2) to a file that is opened to append, so a kill leaves
 * whole lines. */
#include <holdfast/holdfast.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KEYS = 8, WRITERS = 8, WRITES_MAX = 200000, LINE_MAX_LEN = 128 };

static const char *folder;

static void path_of(char *ret_path, size_t len, const char *name)
{
    (void)snprintf(ret_path, len, "%s/%s", folder, name);
}

static int open_log(const char *name)
{
    char path[512];
    path_of(path, sizeof path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        perror(path);
        exit(2);
    }
    return fd;
}

static void put_line(int fd, const char *line)
{
    size_t len = strlen(line);
    if (write(fd, line, len) != (ssize_t)len) {
        perror("write");
        exit(2);
    }
}

/* ---- The child --------------------------------------------------------------------------------------------------- */

typedef struct world {
    hf_depot *depot;
    int acks;
    int origin;
    uint64_t seed;
    bool only_settles;
} world;

typedef struct writer {
    world *world;
    int key;
} writer;

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The origin: writes its log, and fails now and then, before or after the write has arrived. */
static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    world *w = state;
    char line[LINE_MAX_LEN];
    uint64_t luck = next_random(&w->seed) % 100;
    if (!w->only_settles && luck < 10) {
        return hf_reply_fail(reply, HF_REPLY_NETWORK, .message = "lost on the way there");
    }
    (void)snprintf(line, sizeof line, "%.*s %.*s %s\n", (int)request->key.id_len, (const char *)request->key.id,
                   (int)request->len, (const char *)request->data, request->id);
    put_line(w->origin, line);
    if (!w->only_settles && luck < 20) {
        return hf_reply_fail(reply, HF_REPLY_NETWORK, .message = "lost on the way back");
    }
    return HF_OK;
}

static hf_depot_key key_of(int key, char text[8])
{
    (void)snprintf(text, 8, "%d", key);
    return hf_depot_key_of("kill", "thing", text);
}

/* The number of the last write of the key that can be seen. */
static hf_status last_of(world *w, int key, long *ret_number)
{
    char text[8];
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    hf_status status = hf_depot_get(w->depot, key_of(key, text), &value, .fresh = HF_FRESH_LOCAL);
    *ret_number = 0;
    if (status == HF_OK) {
        char number[24] = {0};
        memcpy(number, hf_value_data(value), hf_value_len(value) < 23 ? hf_value_len(value) : 23);
        *ret_number = strtol(number, NULL, 10);
    }
    return status == HF_ERR_NOT_FOUND ? HF_OK : status;
}

static hf_status write_on(void *arg)
{
    writer *one = arg;
    world *w = one->world;
    char text[8];
    char number[24];
    char line[LINE_MAX_LEN];
    long last = 0;
    HF_TRY(last_of(w, one->key, &last));
    for (;;) {
        (void)snprintf(number, sizeof number, "%ld", ++last);
        hf_status status = hf_depot_put(w->depot, key_of(one->key, text), number, strlen(number));
        if (status == HF_ERR_LIMIT) { /* too many wait */
            last--;
            HF_TRY(hf_sleep(hf_milliseconds(1)));
            continue;
        }
        HF_TRY(status);
        (void)snprintf(line, sizeof line, "%s %s\n", text, number);
        put_line(w->acks, line);
    }
}

static hf_status settle(world *w)
{
    hf_depot_counts counts;
    do {
        HF_TRY(hf_sleep(hf_milliseconds(20)));
        HF_TRY(hf_depot_stat(w->depot, &counts));
    } while (counts.pending > 0);
    int shown = open_log("shown");
    char line[LINE_MAX_LEN];
    for (int key = 0; key < KEYS; key++) {
        long last = 0;
        HF_TRY(last_of(w, key, &last));
        (void)snprintf(line, sizeof line, "%d %ld\n", key, last);
        put_line(shown, line);
    }
    (void)close(shown);
    return HF_OK;
}

static hf_status child_body(void *arg)
{
    world *w = arg;
    char file[600];
    (void)snprintf(file, sizeof file, "sqlite:%s/depot.db", folder);
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("kill", &depot, .push = push, .state = w, .file = file, .coalesce = HF_SPAN_OFF,
                         .pending_max = 200));
    w->depot = depot;
    if (w->only_settles) {
        return settle(w);
    }
    writer writers[WRITERS];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (writer){w, i % KEYS};
        HF_TRY(hf_fork(scope, write_on, &writers[i]));
    }
    return hf_join(scope);
}

static int run_child(uint64_t seed, bool only_settles)
{
    world w = {.acks = open_log("acks"), .origin = open_log("origin"), .seed = seed, .only_settles = only_settles};
    HF_OR_DIE(hf_run(child_body, &w));
    return 0;
}

/* ---- The parent -------------------------------------------------------------------------------------------------- */

typedef struct fact {
    long first_place; /* of its arrival, from 1 on; 0 = it did not arrive */
    char id[40];
} fact;

static int failures;

static void complain(const char *rule, int key, long number)
{
    printf("FAILED: %s: key %d, write %ld\n", rule, key, number);
    failures++;
}

static fact *facts[KEYS];

static void read_origin(void)
{
    char path[512];
    char line[LINE_MAX_LEN];
    path_of(path, sizeof path, "origin");
    FILE *file = fopen(path, "r");
    long place = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        int key = 0;
        long number = 0;
        char id[40];
        if (sscanf(line, "%d %ld %39s", &key, &number, id) != 3 || key < 0 || key >= KEYS || number < 1 ||
            number >= WRITES_MAX) {
            printf("FAILED: the origin's log has the line %s", line);
            failures++;
            continue;
        }
        fact *one = &facts[key][number];
        place++;
        if (one->first_place == 0) {
            one->first_place = place;
            memcpy(one->id, id, sizeof one->id);
        } else if (strcmp(one->id, id) != 0) {
            complain("kill-K3, another id", key, number);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

static long judge_acks(void)
{
    char path[512];
    char line[LINE_MAX_LEN];
    long count = 0;
    path_of(path, sizeof path, "acks");
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        int key = 0;
        long number = 0;
        if (sscanf(line, "%d %ld", &key, &number) != 2 || number >= WRITES_MAX) {
            printf("FAILED: a line of the acknowledgements: %s", line);
            failures++;
            continue;
        }
        count++;
        if (facts[key][number].first_place == 0) {
            complain("kill-K1, acknowledged and lost", key, number);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}

static void judge_order(void)
{
    char path[512];
    char line[LINE_MAX_LEN];
    long last[KEYS] = {0};
    for (int key = 0; key < KEYS; key++) {
        long place = 0;
        for (long number = 1; number < WRITES_MAX && facts[key][number].first_place != 0; number++) {
            if (facts[key][number].first_place < place) {
                complain("kill-K2, out of order", key, number);
            }
            if (number > 1 && strcmp(facts[key][number].id, facts[key][number - 1].id) == 0) {
                complain("kill-K3, one id for two", key, number);
            }
            place = facts[key][number].first_place;
            last[key] = number;
        }
    }
    path_of(path, sizeof path, "shown");
    FILE *file = fopen(path, "r");
    int shown = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        int key = 0;
        long number = 0;
        if (sscanf(line, "%d %ld", &key, &number) == 2 && key >= 0 && key < KEYS) {
            shown++;
            if (number != last[key]) {
                complain("kill-K4, shown", key, number);
            }
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    if (shown != KEYS) {
        printf("FAILED: kill-K4: %d keys were shown\n", shown);
        failures++;
    }
}

static pid_t start_child(uint64_t seed, bool only_settles)
{
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        exit(run_child(seed, only_settles));
    }
    return pid;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: depot_kill FOLDER [KILLS] [SEED]\n");
        return 2;
    }
    folder = argv[1];
    long kills = argc > 2 ? strtol(argv[2], NULL, 10) : 60;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    static const char *const NAMES[] = {"depot.db", "depot.db-wal", "acks", "origin", "shown"};
    char path[512];
    (void)mkdir(folder, 0700);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        path_of(path, sizeof path, NAMES[i]);
        (void)unlink(path);
    }
    printf("seed %llu\n", (unsigned long long)seed);
    for (long i = 0; i < kills; i++) {
        pid_t pid = start_child(seed + (uint64_t)i, false);
        struct timespec pause = {0, (long)(next_random(&seed) % 120) * 1000000 + 5000000};
        (void)nanosleep(&pause, NULL);
        (void)kill(pid, SIGKILL);
        int status = 0;
        (void)waitpid(pid, &status, 0);
        if (!WIFSIGNALED(status)) {
            printf("FAILED: the child ended by itself, with %d\n", status);
            failures++;
        }
    }
    int status = 0;
    (void)waitpid(start_child(seed, true), &status, 0);
    if (status != 0) {
        printf("FAILED: the last run ended with %d\n", status);
        failures++;
    }
    for (int key = 0; key < KEYS; key++) {
        facts[key] = calloc(WRITES_MAX, sizeof *facts[key]);
        if (facts[key] == NULL) {
            return 2;
        }
    }
    read_origin();
    long acks = judge_acks();
    judge_order();
    printf("%ld kills, %ld writes acknowledged, %d failures\n", kills, acks, failures);
    for (int key = 0; key < KEYS; key++) {
        free(facts[key]);
    }
    return failures == 0 ? 0 : 1;
}
