/* A quorum: three replicas vote, two equal votes decide, and a replica that hangs does not delay
 * the others.
 *
 * HF_JOIN_QUORUM(2) ends the scope with the second success, and also as soon as two successes
 * have become impossible. */
#include <holdfast/holdfast.h>

#include <stdio.h>

enum { REPLICAS = 3, NEEDED = 2 };

typedef enum mood { WELL, HUNG, DOWN } mood;

typedef struct replica {
    const char *name;
    mood mood;
    int ms; /* how long a vote takes */
    bool has_voted;
} replica;

static hf_status vote(void *arg)
{
    replica *r = arg;
    if (r->mood == HUNG) {
        return hf_sleep(hf_hours(1)); /* until it is canceled */
    }
    HF_TRY(hf_sleep(hf_milliseconds(r->ms)));
    if (r->mood == DOWN) {
        return hf_raise(HF_ERR_REFUSED, "%s is down", r->name);
    }
    r->has_voted = true;
    return HF_OK;
}

static hf_status decide(replica *replicas)
{
    HF_AUTO(hf_scope_close) hf_scope *round = NULL;
    HF_TRY(hf_scope_open(&round, .name = "round", .join = HF_JOIN_QUORUM(NEEDED), .timeout = hf_seconds(30)));
    for (int i = 0; i < REPLICAS; i++) {
        HF_TRY(hf_fork(round, vote, &replicas[i], .name = replicas[i].name));
    }
    hf_status status = hf_join(round);
    hf_tally tally = hf_scope_tally(round);
    printf("  %llu voted, %llu failed, %llu stopped\n", (unsigned long long)tally.ok, (unsigned long long)tally.failed,
           (unsigned long long)tally.canceled);
    /* Every failure is kept, not only the one that decided. */
    for (size_t i = 0; hf_scope_failure(round, i) != NULL; i++) {
        printf("  failure %zu: %s\n", i + 1, hf_scope_failure(round, i)->message);
    }
    return status;
}

static hf_status app(void *arg)
{
    (void)arg;
    replica one_hung[REPLICAS] = {{.name = "a", .ms = 20}, {.name = "b", .mood = HUNG}, {.name = "c", .ms = 10}};
    hf_instant start = hf_now(NULL);
    printf("three replicas, one of them hung:\n");
    HF_TRY(decide(one_hung));
    printf("  decided after %lld ms by", (long long)((hf_now(NULL).ns - start.ns) / 1000000));
    for (int i = 0; i < REPLICAS; i++) {
        if (one_hung[i].has_voted) {
            printf(" %s", one_hung[i].name);
        }
    }
    printf("\n");

    /* Two votes have become impossible: hf_join does not wait for the replica that hangs. */
    replica two_down[REPLICAS] = {
        {.name = "a", .mood = DOWN, .ms = 10}, {.name = "b", .mood = DOWN}, {.name = "c", .mood = HUNG}};
    printf("three replicas, two of them down, one hung:\n");
    hf_status status = decide(two_down);
    printf("  no decision: %s: %s\n", hf_status_name(status), hf_error_text());
    return status == HF_ERR_FAILED ? HF_OK : hf_raise(HF_ERR_FAILED, "one vote must not be enough");
}

int main(void)
{
    HF_OR_DIE(hf_run(app, NULL));
    return 0;
}
