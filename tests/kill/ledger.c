#include "kill/ledger.h"

#include "history/history.h"

#include <stdlib.h>
#include <string.h>

/* ---- The file --------------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *text)
{
    return hf_hash_bytes(1, text, strlen(text));
}

static size_t *slot_of(ledger *l, const char *id)
{
    size_t at = (size_t)hash_of(id) % l->slot_count;
    while (l->slots[at] != 0 && strcmp(l->entries[l->slots[at] - 1].id, id) != 0) {
        at = (at + 1) % l->slot_count;
    }
    return &l->slots[at];
}

entry *ledger_find(ledger *l, const char *id)
{
    size_t *slot = l->slot_count > 0 ? slot_of(l, id) : NULL;
    return slot != NULL && *slot != 0 ? &l->entries[*slot - 1] : NULL;
}

static void grow(ledger *l)
{
    l->capacity = l->capacity == 0 ? 256 : 2 * l->capacity;
    l->entries = realloc(l->entries, l->capacity * sizeof *l->entries);
    free(l->slots);
    l->slot_count = 4 * l->capacity;
    l->slots = calloc(l->slot_count, sizeof *l->slots);
    if (l->entries == NULL || l->slots == NULL) {
        abort();
    }
    for (size_t i = 0; i < l->count; i++) {
        *slot_of(l, l->entries[i].id) = i + 1;
    }
}

static entry *entry_of(ledger *l, const char *id)
{
    entry *found = ledger_find(l, id);
    if (found != NULL) {
        return found;
    }
    if (l->count == l->capacity) {
        grow(l);
    }
    entry *fresh = &l->entries[l->count++];
    *fresh = (entry){0};
    (void)snprintf(fresh->id, sizeof fresh->id, "%s", id);
    *slot_of(l, id) = l->count;
    return fresh;
}

static void take_line(ledger *l, char *line, long at)
{
    char id[64] = "";
    char rest[64] = "";
    (void)sscanf(line + 1, " %63s %63s", id, rest);
    if (line[0] == 'b' || line[0] == 'B') {
        if (line[0] == 'b') {
            l->backup_begun = at;
        } else { /* they are made one after the other */
            l->backup_at = l->backup_begun;
            (void)snprintf(l->backup, sizeof l->backup, "%s", id);
        }
        return;
    }
    entry *e = entry_of(l, id);
    unsigned bit = 1u << (unsigned)strtoul(rest, NULL, 10) % 10;
    switch (line[0]) {
    case 's':
        e->start_sent = true;
        break;
    case 'S':
        (void)snprintf(e->run_id, sizeof e->run_id, "%.39s", rest);
        break;
    case 'g':
        e->signals_sent |= bit;
        break;
    case 'G':
        e->signals_acked |= bit;
        break;
    case 'c':
        e->cancel_sent = true;
        break;
    case 'C':
        e->cancel_acked = true;
        break;
    case 'R':
        e->result_acked = true;
        break;
    case 'D':
        e->end_acked = true;
        break;
    default:
        (void)fprintf(stderr, "the ledger has a line '%s'\n", line);
        abort();
    }
}

void ledger_read(ledger *l, const char *path, long until)
{
    *l = (ledger){0};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    char line[200];
    long at = 0;
    while (fgets(line, sizeof line, file) != NULL && strchr(line, '\n') != NULL && (until < 0 || at < until)) {
        take_line(l, line, at);
        at = ftell(file);
    }
    (void)fclose(file);
}

void ledger_free(ledger *l)
{
    free(l->entries);
    free(l->slots);
    *l = (ledger){0};
}

/* ---- The store -------------------------------------------------------------------------------------------------------- */

/* What a history says, in the ledger's words. */
typedef struct facts {
    unsigned signals[10]; /* events of each */
    unsigned cancels;
    unsigned scheduled;
    unsigned results;
    unsigned ends;
} facts;

static void count_event(const hf_pb_history_event *event, facts *f)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED: {
        hf_str name = event->workflow_execution_signaled_event_attributes->signal_name;
        f->signals[name.len == 2 ? (unsigned)(name.data[1] - '0') % 10 : 9]++;
        break;
    }
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
        f->cancels++;
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
        f->scheduled++;
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        f->results++;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
        f->ends++;
        break;
    default:
        break;
    }
}

/* Events in the history, and those that wait for the end of a workflow task. */
static bool gather(const hf_run *run, hf_str history, facts *f)
{
    hf_arena arena;
    hf_arena_init(&arena, run->log.memory);
    hf_op op;
    hf_op_init(&op);
    hf_str bytes = {0};
    hf_pb_history_event event;
    bool is_sound = true;
    while (hf_history_next(&history, &bytes)) {
        hf_arena_reset(&arena);
        is_sound = is_sound && hf_pb_decode(&op, &hf_pb_history_event_type, bytes, &arena, &event) == HF_OK;
        count_event(&event, f);
    }
    for (size_t i = 0; i < run->buffered.count; i++) {
        is_sound = is_sound && hf_pb_decode(&op, &hf_pb_history_event_type, hf_owned_str(&run->buffered.items[i]),
                                            &arena, &event) == HF_OK;
        count_event(&event, f);
    }
    hf_arena_deinit(&arena);
    return is_sound && history.len == 0;
}

static size_t wrong(const char *what, const char *id, const char *how)
{
    (void)fprintf(stderr, "%s: %s: %s\n", what, id, how);
    return 1;
}

static size_t compare(const entry *e, const hf_run *run, const facts *f, bool is_older, const char *what)
{
    size_t bad = 0;
    hf_str run_id = hf_owned_str(&run->run_id);
    if (e->run_id[0] != '\0' && !hf_str_equal(run_id, hf_str_of(e->run_id))) {
        bad += wrong(what, e->id, "another run than the one that was acknowledged");
    }
    for (unsigned n = 0; n < 10; n++) {
        if (f->signals[n] > 1) {
            bad += wrong(what, e->id, "a signal is there twice");
        }
        if ((e->signals_acked >> n & 1) != 0 && f->signals[n] == 0) {
            bad += wrong(what, e->id, "an acknowledged signal is lost");
        }
        if (!is_older && (e->signals_sent >> n & 1) == 0 && f->signals[n] != 0) {
            bad += wrong(what, e->id, "a signal that nobody sent");
        }
    }
    if (f->cancels > 1 || f->scheduled > 1 || f->results > 1 || f->ends > 1) {
        bad += wrong(what, e->id, "something happened twice");
    }
    if ((e->cancel_acked && f->cancels == 0) || (!is_older && !e->cancel_sent && f->cancels > 0)) {
        bad += wrong(what, e->id, "a cancel request is lost, or from nobody");
    }
    if (e->result_acked && f->results == 0) {
        bad += wrong(what, e->id, "an acknowledged result of an activity is lost");
    }
    if (e->end_acked && (f->ends == 0 || hf_run_is_open(run))) {
        bad += wrong(what, e->id, "a workflow that had ended is open again");
    }
    return bad;
}

static size_t verify_run(ledger *l, hf_look *look, int64_t number, hf_buf *history, bool is_older, const char *what)
{
    hf_op op;
    hf_op_init(&op);
    hf_run *run = NULL;
    history->len = 0;
    hf_status status = hf_look_run(&op, look, number, &run);
    if (status == HF_OK) {
        status = hf_look_history(&op, look, run, history);
    }
    facts f = {0};
    size_t bad = 0;
    if (status != HF_OK || !gather(run, hf_str_of_len(history->data, history->len), &f)) {
        bad = wrong(what, op.message, "cannot be read");
    } else {
        char id[40];
        (void)snprintf(id, sizeof id, "%.*s", (int)(run->workflow_id.len < 39 ? run->workflow_id.len : 39),
                       run->workflow_id.data);
        entry *e = ledger_find(l, id);
        if (e != NULL) {
            e->seen++;
            bad = compare(e, run, &f, is_older, what);
        } else if (!is_older) {
            bad = wrong(what, id, "nobody started it");
        }
    }
    hf_look_run_free(look, run);
    return bad;
}

size_t ledger_verify(ledger *l, hf_look *look, bool is_older, const char *what)
{
    hf_op op;
    hf_op_init(&op);
    hf_buf history;
    hf_buf_init(&history, hf_look_core(look)->memory, SIZE_MAX / 4);
    size_t bad = 0;
    for (size_t i = 0; i < l->count; i++) {
        l->entries[i].seen = 0;
    }
    int64_t number = 0;
    do {
        if (hf_look_next(&op, look, number, &number) != HF_OK) {
            bad += wrong(what, op.message, "cannot be read");
            break;
        }
        bad += number != 0 ? verify_run(l, look, number, &history, is_older, what) : 0;
    } while (number != 0);
    hf_buf_deinit(&history);
    for (size_t i = 0; i < l->count; i++) {
        const entry *e = &l->entries[i];
        if (e->seen > 1) {
            bad += wrong(what, e->id, "was started twice");
        }
        if (e->run_id[0] != '\0' && e->seen == 0) {
            bad += wrong(what, e->id, "its start was acknowledged, and it is not there");
        }
    }
    return bad;
}
