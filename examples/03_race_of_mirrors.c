/* A race: ask all mirrors, take the first good answer, stop the others.
 *
 * HF_JOIN_ANY ends the scope with the first success. A mirror that fails does not end the race;
 * only if all fail, hf_join returns a failure, the first one. The losers are canceled: the wait
 * they are in fails, they can ask why, and their functions return in the ordinary way and close
 * what they opened. */
#include <holdfast/holdfast.h>

#include <stdio.h>

typedef struct mirror {
    const char *name;
    int ms;         /* how long its answer takes */
    bool is_broken; /* it answers with an error */
    char file[64];  /* the downloaded file; empty unless it succeeded */
} mirror;

static hf_status download(void *arg)
{
    mirror *m = arg;
    hf_status status = hf_sleep(hf_milliseconds(m->ms)); /* stands for connecting and reading: any wait would do */
    if (status == HF_ERR_CANCELED) {
        const char *reason = NULL;
        hf_cause cause = hf_cancel_cause(&reason);
        printf("  %-9s stops: %s (%s)\n", m->name, hf_cause_name(cause), reason);
    }
    HF_TRY(status);
    if (m->is_broken) {
        printf("  %-9s fails\n", m->name);
        return hf_raise(HF_ERR_FAILED, "%s has no such file", m->name);
    }
    (void)snprintf(m->file, sizeof m->file, "42 bytes from %s", m->name);
    printf("  %-9s has it\n", m->name);
    return HF_OK;
}

static hf_status race(mirror *mirrors, size_t count)
{
    HF_AUTO(hf_scope_close) hf_scope *mirrors_scope = NULL;
    HF_TRY(hf_scope_open(&mirrors_scope, .name = "mirrors", .join = HF_JOIN_ANY, .timeout = hf_seconds(30)));
    for (size_t i = 0; i < count; i++) {
        HF_TRY(hf_fork(mirrors_scope, download, &mirrors[i], .name = mirrors[i].name));
    }
    return hf_join(mirrors_scope);
}

static hf_status app(void *arg)
{
    (void)arg;
    mirror mirrors[] = {{.name = "far", .ms = 10000},
                        {.name = "broken", .ms = 5, .is_broken = true},
                        {.name = "near", .ms = 30},
                        {.name = "farthest", .ms = 20000}};
    printf("asking four mirrors:\n");
    HF_TRY(race(mirrors, 4));
    for (size_t i = 0; i < 4; i++) {
        if (mirrors[i].file[0] != '\0') {
            printf("the file: %s\n", mirrors[i].file);
        }
    }

    mirror all_broken[] = {{.name = "first", .ms = 5, .is_broken = true},
                           {.name = "second", .ms = 10, .is_broken = true}};
    printf("asking two broken ones:\n");
    hf_status status = race(all_broken, 2);
    printf("the race fails with %s: %s\n", hf_status_name(status), hf_error_text());
    return status == HF_ERR_FAILED ? HF_OK : hf_raise(HF_ERR_FAILED, "no mirror should have won");
}

int main(void)
{
    HF_OR_DIE(hf_run(app, NULL));
    return 0;
}
