/* A survey of three regions. Each region is a workflow of its own, a child: it has its own history, can be looked at and
 * canceled by its id, and is canceled with its parent. The archive is a child, too, but outlives its parent. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <string.h>

/* ---- Workflows --------------------------------------------------------------------------------------------------- */

static hf_status region(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("count_houses", in, ret_out, .start_to_close = hf_minutes(1));
}

static hf_status archive(hf_payload in, hf_payload *ret_out)
{
    hf_payload last = {0};
    (void)ret_out;
    HF_TRY(hf_signal_wait("close", &last)); /* long after the survey has ended */
    printf("the archive closes with %s and %s\n", (const char *)in.data, (const char *)last.data);
    return HF_OK;
}

typedef struct part {
    const char *name; /* JSON */
    const char *id;
    int64_t houses;
} part;

static hf_status survey_region(void *arg)
{
    part *p = arg;
    hf_payload out = {0};
    HF_TRY(hf_child_run("region", hf_payload_of_json(p->name), &out, .id = p->id));
    return hf_json_get_int(out, "", &p->houses);
}

static hf_status survey(hf_payload in, hf_payload *ret_out)
{
    part parts[] = {
        {"\"north\"", "region-north", 0}, {"\"south\"", "region-south", 0}, {"\"islands\"", "region-islands", 0}};
    int64_t sum = 0;
    (void)in;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL; /* the first failure cancels the other children */
        HF_TRY(hf_scope_open(&scope, .name = "regions"));
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            HF_TRY(hf_fork(scope, survey_region, &parts[i]));
        }
        HF_TRY(hf_join(scope));
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        sum += parts[i].houses;
    }
    HF_TRY(hf_payload_printf(ret_out, "%lld", (long long)sum));
    return hf_child_start("archive", *ret_out, .id = "archive", .parent_close = HF_PARENT_CLOSE_ABANDON);
}

/* ---- An activity ------------------------------------------------------------------------------------------------- */

static hf_status count_houses(hf_payload in, hf_payload *ret_out)
{
    printf("counting the houses of %s\n", (const char *)in.data);
    return hf_payload_printf(ret_out, "%zu", 100 * strlen(in.data));
}

/* ---- The program ------------------------------------------------------------------------------------------------- */

static hf_status act(hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *mine = NULL;
    HF_AUTO(hf_execution_free) hf_execution *kept = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(service, "survey", hf_payload_none(), &mine, .id = "survey", .task_queue = "land"));
    HF_TRY(hf_result(mine, &out));
    printf("%s houses\n", (const char *)out.data);
    HF_TRY(hf_execution_new(service, "archive", &kept));
    HF_TRY(hf_signal(kept, "close", hf_payload_of_json("\"thanks\"")));
    return hf_result(kept, NULL);
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "land", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "survey", survey));
    HF_TRY(hf_worker_add_workflow(worker, "region", region));
    HF_TRY(hf_worker_add_workflow(worker, "archive", archive));
    HF_TRY(hf_worker_add_activity(worker, "count_houses", count_houses));
    HF_TRY(hf_worker_start(worker));
    return act(service);
}

int main(void)
{
    HF_OR_DIE(hf_run(program, NULL));
    return 0;
}
