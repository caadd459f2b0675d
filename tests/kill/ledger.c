#include "kill/ledger.h"

#include "base/rng.h"
#include "history/history.h"
#include "run/run.h"

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

static void take_line(ledger *l, const char *line, long at)
{
    char id[64] = "";
    char rest[64] = "";
    (void)sscanf(line + 1, " %63s %63s", id, rest);
    if (line[0] == 'b') {
        l->backup_begun = at;
        return;
    }
    if (line[0] == 'B') { /* they are made one after the other */
        l->backup_at = l->backup_begun;
        (void)snprintf(l->backup, sizeof l->backup, "%s", id);
        return;
    }
    entry *e = entry_of(l, id);
    lines *signal = &e->signals[strtoul(rest, NULL, 10) % 10];
    switch (line[0]) {
    case 's':
        e->start.sent = at;
        break;
    case 'S':
        e->start.acked = at;
        (void)snprintf(e->run_id, sizeof e->run_id, "%.39s", rest);
        break;
    case 'g':
        signal->sent = at;
        break;
    case 'G':
        signal->acked = at;
        break;
    case 'c':
        e->cancel.sent = at;
        break;
    case 'C':
        e->cancel.acked = at;
        break;
    case 'R':
        e->result_acked = at;
        break;
    case 'D':
        e->end_acked = at;
        break;
    default:
        (void)fprintf(stderr, "the ledger has a line '%s'\n", line);
        abort();
    }
}

enum { LINE_LEN_MAX = 200 };

/* The next whole line; false: there is none. */
static bool next_line(FILE *file, char line[LINE_LEN_MAX])
{
    return fgets(line, LINE_LEN_MAX, file) != NULL && strchr(line, '\n') != NULL;
}

void ledger_read(ledger *l, const char *path)
{
    *l = (ledger){0};
    FILE *file = fopen(path, "re");
    char line[LINE_LEN_MAX];
    for (long at = 1; file != NULL && next_line(file, line); at++) {
        take_line(l, line, at);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

void ledger_copy(const char *path, long until, const char *to)
{
    FILE *file = fopen(path, "re");
    FILE *copy = fopen(to, "we");
    if (file == NULL || copy == NULL) {
        abort();
    }
    char line[LINE_LEN_MAX];
    for (long at = 1; next_line(file, line); at++) {
        bool is_sent = line[0] == 's' || line[0] == 'g' || line[0] == 'c';
        if (line[0] != 'b' && line[0] != 'B' && (is_sent || at <= until)) {
            (void)fputs(line, copy);
        }
    }
    (void)fclose(file);
    if (fclose(copy) != 0) {
        abort();
    }
}

void ledger_free(ledger *l)
{
    free(l->entries);
    free(l->slots);
    *l = (ledger){0};
}

/* ---- The store -------------------------------------------------------------------------------------------------------- */

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

static size_t compare(const entry *e, long until, const char *what)
{
    size_t bad = 0;
    const facts *f = &e->found;
    bool is_started = e->start.acked != 0 && e->start.acked <= until;
    if (e->seen == 0) {
        return is_started ? wrong(what, e->id, "its start was acknowledged, and it is not there") : 0;
    }
    if (e->seen > 1) {
        bad += wrong(what, e->id, "was started twice");
    }
    if (is_started && strcmp(e->found_run, e->run_id) != 0) {
        bad += wrong(what, e->id, "another run than the one that was acknowledged");
    }
    for (unsigned n = 0; n < 10; n++) {
        const lines *signal = &e->signals[n];
        if (f->signals[n] > 1) {
            bad += wrong(what, e->id, "a signal is there twice");
        }
        if (signal->acked != 0 && signal->acked <= until && f->signals[n] == 0) {
            bad += wrong(what, e->id, "an acknowledged signal is lost");
        }
        if (signal->sent == 0 && f->signals[n] != 0) {
            bad += wrong(what, e->id, "a signal that nobody sent");
        }
    }
    if (f->cancels > 1 || f->scheduled > 1 || f->results > 1 || f->ends > 1) {
        bad += wrong(what, e->id, "something happened twice");
    }
    bool is_canceled = e->cancel.acked != 0 && e->cancel.acked <= until;
    if ((is_canceled && f->cancels == 0) || (e->cancel.sent == 0 && f->cancels > 0)) {
        bad += wrong(what, e->id, "a cancel request is lost, or from nobody");
    }
    if (e->result_acked != 0 && e->result_acked <= until && f->results == 0) {
        bad += wrong(what, e->id, "an acknowledged result of an activity is lost");
    }
    if (e->end_acked != 0 && e->end_acked <= until && (f->ends == 0 || e->is_open)) {
        bad += wrong(what, e->id, "a workflow that had ended is open again");
    }
    return bad;
}

/* The last line of something that was found. */
static long reach(const entry *e)
{
    long last = e->seen > 0 ? e->start.sent : 0;
    for (unsigned n = 0; n < 10; n++) {
        if (e->found.signals[n] > 0 && e->signals[n].sent > last) {
            last = e->signals[n].sent;
        }
    }
    return e->found.cancels > 0 && e->cancel.sent > last ? e->cancel.sent : last;
}

/* Writes down what the store says of a run. */
static size_t take_run(ledger *l, hf_look *look, int64_t number, hf_buf *history, const char *what)
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
        if (e == NULL) {
            bad = wrong(what, id, "nobody started it");
        } else {
            e->seen++;
            e->found = f;
            e->is_open = hf_run_is_open(run);
            (void)snprintf(e->found_run, sizeof e->found_run, "%.*s", HF_STR_ARGS(hf_owned_str(&run->run_id)));
        }
    }
    hf_look_run_free(look, run);
    return bad;
}

size_t ledger_verify(ledger *l, hf_look *look, long *until, const char *what)
{
    hf_op op;
    hf_op_init(&op);
    hf_buf history;
    hf_buf_init(&history, hf_look_memory(look)->heap, SIZE_MAX / 4);
    size_t bad = 0;
    for (size_t i = 0; i < l->count; i++) {
        l->entries[i].seen = 0;
        l->entries[i].found = (facts){0};
    }
    int64_t number = 0;
    do {
        if (hf_look_next(&op, look, number, &number) != HF_OK) {
            bad += wrong(what, op.message, "cannot be read");
            break;
        }
        bad += number != 0 ? take_run(l, look, number, &history, what) : 0;
    } while (number != 0);
    hf_buf_deinit(&history);
    for (size_t i = 0; i < l->count; i++) {
        long last = reach(&l->entries[i]);
        *until = last > *until ? last : *until;
    }
    for (size_t i = 0; i < l->count; i++) {
        bad += compare(&l->entries[i], *until, what);
    }
    return bad;
}
