#include "kill/ledger.h"

#include "base/rng.h"

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

/* Children have no entries: what is known of one is in that of its parent, "p.a". */
static bool take_line_of_kid(ledger *l, char letter, char *id, long at)
{
    char *dot = strchr(id, '.');
    if (dot == NULL) {
        return false;
    }
    *dot = '\0';
    kid *k = &entry_of(l, id)->kids[(unsigned)(dot[1] - 'a') % LEDGER_KIDS];
    if (letter == 'R') {
        k->result_acked = at;
    } else if (letter == 'D') {
        k->end_acked = at;
    }
    return true;
}

/* Lines that are not about one workflow. */
static bool take_other_line(ledger *l, char letter, const char *name, long at)
{
    if (letter == 'b') {
        l->backup_begun = at;
    } else if (letter == 'B') { /* they are made one after the other */
        l->backup_at = l->backup_begun;
        (void)snprintf(l->backup, sizeof l->backup, "%s", name);
    } else if (letter == 'Q') {
        l->queries++;
    } else {
        return false;
    }
    return true;
}

static void take_update(entry *e, char letter, unsigned n, const char *outcome, long at)
{
    lines *update = &e->updates[n % LEDGER_UPDATES].lines;
    if (letter == 'u') {
        update->sent = at;
        return;
    }
    update->acked = at;
    e->updates[n % LEDGER_UPDATES].is_rejected = letter == 'W';
    (void)snprintf(e->updates[n % LEDGER_UPDATES].outcome, LEDGER_TEXT_LEN, "%.19s", outcome);
}

static void take_reset(entry *e, char letter, unsigned n, const char *run_id, long at)
{
    lines *reset = &e->resets[n % LEDGER_RESETS].lines;
    if (letter == 't') {
        reset->sent = at;
        return;
    }
    reset->acked = at;
    (void)snprintf(e->resets[n % LEDGER_RESETS].run_id, sizeof e->resets[0].run_id, "%.39s", run_id);
}

static void take_line(ledger *l, const char *line, long at)
{
    char id[64] = "";
    char rest[64] = "";
    char last[64] = "";
    (void)sscanf(line + 1, " %63s %63s %63s", id, rest, last);
    if (take_other_line(l, line[0], id, at) || take_line_of_kid(l, line[0], id, at)) {
        return;
    }
    entry *e = entry_of(l, id);
    unsigned n = (unsigned)strtoul(rest, NULL, 10);
    switch (line[0]) {
    case 's':
        e->start.sent = at;
        break;
    case 'S':
        e->start.acked = at;
        (void)snprintf(e->run_id, sizeof e->run_id, "%.39s", rest);
        break;
    case 'g':
        e->again[n % LEDGER_SIGNALS] += e->signals[n % LEDGER_SIGNALS].sent != 0 ? 1 : 0;
        e->signals[n % LEDGER_SIGNALS].sent = at;
        break;
    case 'G':
        e->signals[n % LEDGER_SIGNALS].acked = at;
        break;
    case 'c':
        e->cancel.sent = at;
        break;
    case 'C':
        e->cancel.acked = at;
        break;
    case 'u':
    case 'U':
    case 'W':
        take_update(e, line[0], n, last, at);
        break;
    case 't':
    case 'T':
        take_reset(e, line[0], n, last, at);
        break;
    case 'x':
        e->deletion.sent = at;
        break;
    case 'X':
        e->deletion.acked = at;
        break;
    case 'R':
        e->result_acked = at;
        break;
    case 'D':
        e->end_acked = at;
        (void)snprintf(e->end_run, sizeof e->end_run, "%.39s", rest);
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
        bool is_sent = strchr("sgcutx", line[0]) != NULL;
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
