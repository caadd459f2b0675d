/* Requests of tools to a running engine, from threads that block until they have the answer. */
#include "engine/loop_private.h"

#include "engine/list.h"
#include "engine/lister.h"

void hf_loop_answer(hf_engine *engine, hf_engine_ask *ask)
{
    if (ask->stats != NULL && engine->core != NULL) {
        *ask->stats = (hf_engine_stats){
            .calls = engine->core->calls,
            .transitions = engine->core->transitions,
            .run_commits = engine->core->run_commits,
            .events = engine->core->event_total,
            .commits = engine->core->commit_durable,
            .runs = engine->core->runs.count,
            .mem_used = engine->core->used,
            .reopened = engine->reopened,
        };
    }
    if (ask->arena != NULL && engine->core != NULL) {
        ask->keepings = hf_blocks_keepings(engine->core, ask->arena, &ask->keeping_count);
        ask->now = engine->core->now.wall;
    }
    if (ask->runs != NULL && engine->core != NULL) {
        hf_list_memory(engine->core, ask->runs);
    }
    if (engine->core == NULL) {
        memcpy(ask->why, engine->why, sizeof ask->why);
    }
    hf_latch_open(engine->env, &ask->done);
}

typedef struct hf_direct {
    hf_store_request request;
    hf_latch done;
    hf_env *env;
} hf_direct;

static void direct_done(hf_store_request *request)
{
    hf_direct *direct = HF_CONTAINER(request, hf_direct, request);
    hf_latch_open(direct->env, &direct->done);
}

/* Between two commits: the queue takes requests in order. */
static hf_status ask_store(hf_op *op, hf_engine *engine, hf_direct *direct)
{
    direct->env = engine->env;
    direct->request.done = direct_done;
    hf_latch_shut(&direct->done);
    hf_op_init(&direct->request.op);
    hf_store_queue_submit(engine->queue, &direct->request);
    hf_latch_wait(engine->env, &direct->done);
    return direct->request.status == HF_OK ? HF_OK
                                           : hf_fail(op, direct->request.status, "%s", direct->request.op.message);
}

/* Some rows at a time, between commits: engine-S2. */
static hf_status look_at_ended(hf_op *op, hf_engine *engine, const hf_engine_ask *ask, hf_ended_report *report)
{
    hf_arena rows;
    hf_arena scratch;
    hf_arena_init(&rows, ask->arena->memory);
    hf_arena_init(&scratch, ask->arena->memory);
    hf_status status = ask->arena->status;
    hf_key from = {0};
    bool more = status == HF_OK;
    while (more && status == HF_OK) {
        hf_direct direct = {.request = {.verb = HF_STORE_SCAN,
                                        .table = HF_TABLE_RUN,
                                        .key = from,
                                        .key_end = hf_key_last(),
                                        .row_max = HF_LIST_ROWS_MAX,
                                        .len_max = HF_LIST_LEN_MAX,
                                        .arena = &rows}};
        status = ask_store(op, engine, &direct);
        const hf_store_request *scan = &direct.request;
        for (size_t i = 0; status == HF_OK && i < scan->row_count; i++) {
            status = hf_ended_add(op, &scan->rows[i], ask->keepings, ask->keeping_count, ask->now, &scratch, report);
            from.a = scan->rows[i].key.a + 1;
            hf_arena_reset(&scratch);
        }
        more = scan->more;
        hf_arena_reset(&rows);
    }
    hf_arena_deinit(&rows);
    hf_arena_deinit(&scratch);
    return status;
}

hf_status hf_engine_stats_get(hf_op *op, hf_service *service, bool count_rows, hf_engine_stats *ret_stats)
{
    hf_engine *engine = (hf_engine *)(void *)service;
    *ret_stats = (hf_engine_stats){0};
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(engine->env));
    hf_engine_ask ask = {.post = {.kind = HF_POST_ASK}, .stats = ret_stats, .arena = count_rows ? &arena : NULL};
    hf_loop_post(engine, &ask.post);
    hf_latch_wait(engine->env, &ask.done);
    hf_ended_report ended = {0};
    hf_status status = count_rows ? look_at_ended(op, engine, &ask, &ended) : HF_OK;
    hf_arena_deinit(&arena);
    HF_TRY(status);
    ret_stats->ended = ended.runs;
    ret_stats->ended_len = ended.len;
    ret_stats->expired = ended.expired_runs;
    ret_stats->expired_len = ended.expired_len;
    hf_store_count count = {0};
    hf_direct direct = {.request = {.verb = HF_STORE_STATS, .count = count_rows ? &count : NULL}};
    do {
        HF_TRY(ask_store(op, engine, &direct));
    } while (direct.request.more);
    ret_stats->store = direct.request.stats;
    return HF_OK;
}

hf_status hf_engine_list(hf_op *op, hf_service *service, int64_t before, size_t count_max, hf_arena *arena,
                         hf_pb_admin_runs *ret_runs)
{
    hf_engine *engine = (hf_engine *)(void *)service;
    hf_listing listing = {.before = before, .count_max = count_max, .arena = arena};
    hf_engine_ask ask = {.post = {.kind = HF_POST_ASK}, .runs = &listing};
    hf_loop_post(engine, &ask.post);
    hf_latch_wait(engine->env, &ask.done); /* memory first: a run that leaves it afterwards is in the rows by then */
    if (!listing.is_there) {
        return hf_fail(op, HF_ERR_UNAVAILABLE, "the runs cannot be listed at the moment: %s",
                       ask.why[0] != '\0' ? ask.why : "the service is being closed");
    }
    hf_direct direct = {.request = hf_list_scan(&listing)};
    HF_TRY(ask_store(op, engine, &direct));
    HF_TRY(hf_list_rows(op, &listing, &direct.request));
    if (before == INT64_MAX) {
        hf_store_count count = {.table = HF_TABLE_RUN};
        direct = (hf_direct){.request = {.verb = HF_STORE_STATS, .count = &count}};
        do {
            HF_TRY(ask_store(op, engine, &direct));
        } while (direct.request.more && count.table == HF_TABLE_RUN);
        ret_runs->total = direct.request.stats.rows[HF_TABLE_RUN] + listing.unwritten;
    }
    ret_runs->runs = listing.runs;
    return arena->status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for a list of runs");
}

hf_status hf_engine_backup(hf_op *op, hf_service *service, const char *path, bool (*step_fn)(void *state), void *state)
{
    hf_engine *engine = (hf_engine *)(void *)service;
    hf_direct direct = {.request = {.verb = HF_STORE_BACKUP, .path = path}};
    do {
        HF_TRY(ask_store(op, engine, &direct));
        if (direct.request.more && step_fn != NULL && !step_fn(state)) {
            return hf_fail(op, HF_ERR_CANCELED, "the backup to %s was given up; the file there is not complete", path);
        }
    } while (direct.request.more);
    return HF_OK;
}
