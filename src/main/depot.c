/* holdfast depot: what one sees of a depot's file, and what can be done by hand about the writes in it. A file at rest is read, and
 * changed as a program would: by a depot without an origin. The program that has the file open is asked. */
#include "main/depot_view.h"
#include "main/grid.h"
#include "main/report.h"
#include "main/target.h"
#include "wire/base64.h"
#include "wire/time_text.h"

#include "base/glyph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 50, SHOWN_LEN = 200 };

/* ---- Pieces ------------------------------------------------------------------------------------------------------ */

static void key_time(hf_json *writer, const char *key, int64_t ns)
{
    char text[HF_TIME_TEXT_LEN_MAX] = "";
    hf_pb_timestamp at = {.seconds = ns / 1000000000, .nanos = (int32_t)(ns % 1000000000)};
    (void)hf_timestamp_format(at, text);
    hf_json_key_string(writer, key, text);
}

static bool is_text(hf_str bytes)
{
    for (size_t at = 0; at < bytes.len;) {
        hf_glyph glyph = hf_glyph_of(hf_str_of_len(bytes.data + at, bytes.len - at));
        bool is_space = glyph.code == '\n' || glyph.code == '\r' || glyph.code == '\t';
        if (!glyph.is_printable && !is_space) {
            return false;
        }
        at += glyph.len;
    }
    return true;
}

/* Text as it is, other bytes in base64 under another key. */
static void key_bytes(hf_json *writer, const char *key, const char *key_base64, hf_str bytes)
{
    if (is_text(bytes)) {
        hf_put_key(writer, key, bytes);
        return;
    }
    hf_buf text;
    hf_buf_init(&text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_base64_encode(bytes, &text);
    hf_json_key_string(writer, key_base64, hf_buf_text(&text));
    hf_buf_deinit(&text);
}

void hf_depot_put_key(hf_json *writer, const hf_depot_key *key)
{
    hf_json_key_string(writer, "ns", key->ns);
    hf_json_key_string(writer, "type", key->type);
    key_bytes(writer, "id", "idBase64", hf_str_of_len(key->id, key->id_len));
}

static void put_key(hf_buf *out, const hf_depot_key *key)
{
    hf_buf_putf(out, "%s/%s/", key->ns, key->type);
    (void)hf_put_text(out, hf_str_of_len(key->id, key->id_len), 60);
}

static void cell_key(hf_grid *grid, const hf_depot_key *key)
{
    hf_buf text;
    hf_buf_init(&text, hf_env_memory(hf_env_posix()), 4096);
    put_key(&text, key);
    hf_grid_cell_of(grid, &text, HF_TONE_PLAIN);
}

static void cell_number(hf_grid *grid, uint64_t number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    hf_grid_cell(grid, hf_str_of(text), HF_TONE_PLAIN);
}

static void cell_age(hf_grid *grid, int64_t since)
{
    hf_env *env = hf_env_posix();
    hf_buf text;
    hf_buf_init(&text, hf_env_memory(env), 100);
    int64_t now = env->ops->wall_now(env).ns;
    if (since > 0) {
        hf_put_span(&text, now > since ? now - since : 0);
    }
    hf_grid_cell_of(grid, &text, HF_TONE_PLAIN);
}

static bool number_of(const char *word, uint64_t *ret_number)
{
    char *end = NULL;
    *ret_number = strtoull(word, &end, 10);
    return word[0] >= '0' && word[0] <= '9' && *end == '\0';
}

static int end_with(const hf_op *op, hf_status status)
{
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", op->message);
}

static void put_place(hf_buf *out, const hf_depot_view *view)
{
    if (view->is_owned) {
        hf_buf_putf(out, "%s, open in process %lld\n", view->path, (long long)view->holder);
    } else {
        hf_buf_putf(out, "%s, not open in any program\n", view->path);
    }
}

static void flush(hf_buf *out)
{
    (void)fwrite(hf_buf_text(out), 1, out->len, stdout);
    hf_buf_deinit(out);
}

/* ---- stats ------------------------------------------------------------------------------------------------------- */

enum { FIGURES_MAX = 100 };

typedef struct figures {
    size_t count;
    struct {
        char name[64]; /* "file_bytes", "rows.entry", "hits.memory", "live.misses" */
        uint64_t value;
    } all[FIGURES_MAX];
    uint64_t pending, dead, damaged; /* rows of writes */
} figures;

static void add_figure(figures *f, const char *name, size_t len, uint64_t value)
{
    if (f->count < FIGURES_MAX) {
        (void)snprintf(f->all[f->count].name, sizeof f->all[0].name, "%.*s", (int)len, name);
        f->all[f->count++].value = value;
    }
}

static void take_figure(void *arg, const hf_door_frame *frame)
{
    if (frame->kind == HF_DOOR_FIGURE) {
        add_figure(arg, frame->text.data, frame->text.len, frame->number);
    }
}

static bool count_write(void *arg, const hf_row *row)
{
    figures *f = arg;
    hf_seen_write seen;
    if (hf_look_write(row, &seen) != HF_OK) {
        f->damaged++;
    } else if (strcmp(seen.state, "dead") == 0) {
        f->dead++;
    } else {
        f->pending++;
    }
    return true;
}

static hf_status figures_at_rest(hf_op *op, hf_depot_view *view, figures *f)
{
    hf_store_count count = {0};
    hf_store_request request = {.verb = HF_STORE_STATS, .count = &count};
    do {
        HF_TRY(hf_store_ask(op, view->peek.store, &request));
    } while (request.more);
    add_figure(f, "file_bytes", 10, request.stats.file_len);
    add_figure(f, "log_bytes", 9, request.stats.log_len);
    add_figure(f, "free_bytes", 10, request.stats.free_len);
    for (size_t i = 0; i < hf_depot_tables.count; i++) {
        char name[64];
        hf_table table = hf_depot_tables.tables[i];
        int len = snprintf(name, sizeof name, "rows.%s", hf_table_info_of(table)->name);
        add_figure(f, name, (size_t)len, request.stats.rows[table]);
    }
    return HF_OK;
}

/* "stale_served" as "staleServed"; "hits.memory" as "hitsMemory". */
static void camel(const char *name, char *ret_text, size_t room)
{
    size_t at = 0;
    bool raises = false;
    for (; *name != '\0' && at + 1 < room; name++) {
        if (*name == '_' || *name == '.') {
            raises = true;
            continue;
        }
        ret_text[at++] = raises && *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
        raises = false;
    }
    ret_text[at] = '\0';
}

static bool is_in(const char *name, const char *group)
{
    return strncmp(name, group, strlen(group)) == 0;
}

static bool is_of_file(const char *name)
{
    return strchr(name, '.') == NULL;
}

/* The name inside its group: "rows.entry" is "entry", "live.misses" is "misses"; those of a process keep both words. */
static const char *short_name(const char *name)
{
    return is_in(name, "rows.") || is_in(name, "live.") ? strchr(name, '.') + 1 : name;
}

static void stats_json(const hf_depot_view *view, const figures *f)
{
    hf_report report;
    char key[64];
    hf_report_init(&report);
    hf_json *writer = &report.writer;
    hf_json_object(writer);
    hf_json_key_string(writer, "file", view->path);
    hf_json_key_int(writer, "process", view->is_owned ? view->holder : 0);
    for (size_t i = 0; i < f->count; i++) {
        if (is_of_file(f->all[i].name)) {
            camel(f->all[i].name, key, sizeof key);
            hf_json_key_uint(writer, key, f->all[i].value);
        }
    }
    hf_json_key_uint(writer, "pending", f->pending);
    hf_json_key_uint(writer, "dead", f->dead);
    hf_json_key_uint(writer, "damagedWrites", f->damaged);
    for (int live = 0; live < (view->is_owned ? 2 : 1); live++) {
        hf_json_key(writer, live == 0 ? "rows" : "live");
        hf_json_object(writer);
        for (size_t i = 0; i < f->count; i++) {
            const char *name = f->all[i].name;
            if (!is_of_file(name) && is_in(name, "rows.") == (live == 0)) {
                camel(short_name(name), key, sizeof key);
                hf_json_key_uint(writer, key, f->all[i].value);
            }
        }
        hf_json_end(writer);
    }
    hf_json_end(writer);
    (void)hf_report_end(&report, true, HF_EXIT_FINE);
}

static void stats_text(const hf_depot_view *view, const figures *f)
{
    hf_buf out;
    hf_buf_init(&out, hf_env_memory(view->env), SIZE_MAX / 4);
    put_place(&out, view);
    for (size_t i = 0; i < f->count; i++) {
        char label[64];
        (void)snprintf(label, sizeof label, "%s", is_in(f->all[i].name, "live.") ? f->all[i].name + 5 : f->all[i].name);
        for (char *at = label; *at != '\0'; at++) {
            *at = *at == '_' || *at == '.' ? ' ' : *at;
        }
        hf_buf_putf(&out, "  %-24s%12llu\n", label, (unsigned long long)f->all[i].value);
    }
    hf_buf_putf(&out, "  %-24s%12llu\n  %-24s%12llu\n  %-24s%12llu\n", "writes that wait",
                (unsigned long long)f->pending, "dead writes", (unsigned long long)f->dead, "damaged writes",
                (unsigned long long)f->damaged);
    flush(&out);
}

int hf_cmd_depot_stats(const hf_tool_args *args)
{
    hf_op op;
    hf_depot_view view;
    figures f = {0};
    hf_op_init(&op);
    int code = hf_depot_view_open(&view, args->words[0]);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_status status =
        view.is_owned ? hf_depot_view_ask(&op, &view, "stats", take_figure, &f, NULL) : figures_at_rest(&op, &view, &f);
    if (status == HF_OK) {
        status = hf_depot_view_rows(&op, &view, HF_TABLE_PENDING, (hf_key){.a = 0}, count_write, &f);
    }
    if (status == HF_OK) {
        (args->json ? stats_json : stats_text)(&view, &f);
    }
    hf_depot_view_close(&view);
    return end_with(&op, status);
}

/* ---- show -------------------------------------------------------------------------------------------------------- */

typedef struct showing {
    const hf_tool_args *args;
    hf_depot_view *view;
    hf_op *op;
    hf_status status; /* of what was looked up meanwhile */
    char prefix[HF_DEPOT_NAME_LEN_MAX * 2 + HF_DEPOT_ID_LEN_MAX + 2];
    size_t prefix_len;
    bool is_exact; /* the prefix is a whole key */
    uint64_t limit, count, damaged, pending;
    bool more;
    hf_seen_generation all, space;
    char ns[HF_DEPOT_NAME_LEN_MAX + 1]; /* whose generation `space` is */
    hf_report report;
    hf_buf out;
    hf_grid grid;
} showing;

typedef struct generation_look {
    hf_table table;
    hf_str name;
    hf_seen_generation *into;
} generation_look;

static bool take_generation(void *arg, const hf_row *row)
{
    const generation_look *look = arg;
    if (hf_str_equal(row->key.text, look->name)) {
        (void)hf_look_generation(look->table, &row->key, row->value, look->into);
    }
    return false;
}

static void look_up(showing *s, hf_table table, const char *name, hf_seen_generation *into)
{
    generation_look look = {table, hf_str_of(name), into};
    *into = (hf_seen_generation){0};
    hf_status status = hf_depot_view_rows(s->op, s->view, table, (hf_key){.text = look.name}, take_generation, &look);
    s->status = s->status == HF_OK ? status : s->status;
}

static void show_json(showing *s, const hf_seen_entry *entry)
{
    hf_json *writer = &s->report.writer;
    hf_json_object(writer);
    hf_depot_put_key(writer, &entry->key);
    hf_json_key_string(writer, "kind", entry->kind);
    hf_json_key_uint(writer, "version", entry->version);
    hf_json_key_uint(writer, "bytes", entry->value != NULL ? hf_value_len(entry->value) : 0);
    hf_json_key_uint(writer, "failures", entry->failures);
    if (entry->validated_at > 0) {
        key_time(writer, "validatedTime", entry->validated_at);
    }
    if (entry->etag != NULL) {
        hf_json_key_string(writer, "etag", hf_value_data(entry->etag));
    }
    if (entry->last_modified != NULL) {
        hf_json_key_string(writer, "lastModified", hf_value_data(entry->last_modified));
    }
    if (entry->value != NULL && (s->is_exact || s->args->full)) {
        key_bytes(writer, "value", "valueBase64",
                  hf_str_of_len(hf_value_data(entry->value), hf_value_len(entry->value)));
    }
    hf_json_end(writer);
}

static void show_line(showing *s, const hf_seen_entry *entry)
{
    size_t len = entry->value != NULL ? hf_value_len(entry->value) : 0;
    cell_key(&s->grid, &entry->key);
    hf_grid_cell(&s->grid, hf_str_of(entry->kind), strcmp(entry->kind, "value") == 0 ? HF_TONE_GOOD : HF_TONE_WARN);
    cell_age(&s->grid, entry->validated_at);
    cell_number(&s->grid, entry->version);
    cell_number(&s->grid, len);
    hf_grid_cell(&s->grid, hf_str_of(entry->etag != NULL ? hf_value_data(entry->etag) : ""), HF_TONE_PLAIN);
    hf_grid_end(&s->grid);
    if (entry->value != NULL && (s->is_exact || s->args->full)) {
        hf_str bytes = hf_str_of_len(hf_value_data(entry->value), len);
        hf_buf_puts(&s->out, "  ");
        if (is_text(bytes)) {
            (void)hf_put_text(&s->out, bytes, s->args->full ? SIZE_MAX : SHOWN_LEN);
        } else {
            hf_buf_putf(&s->out, "(%zu bytes that are not text; --json has them in base64)", len);
        }
        hf_buf_putc(&s->out, '\n');
    }
}

static bool show_row(void *arg, const hf_row *row)
{
    showing *s = arg;
    bool fits = row->key.text.len >= s->prefix_len && memcmp(row->key.text.data, s->prefix, s->prefix_len) == 0 &&
                (!s->is_exact || row->key.text.len == s->prefix_len);
    if (!fits) {
        return false; /* keys are in order */
    }
    if (s->count == s->limit) {
        s->more = true;
        return false;
    }
    hf_seen_entry entry;
    size_t ns_len = strnlen(row->key.text.data, row->key.text.len);
    if (ns_len < sizeof s->ns && (strlen(s->ns) != ns_len || memcmp(s->ns, row->key.text.data, ns_len) != 0)) {
        memcpy(s->ns, row->key.text.data, ns_len);
        s->ns[ns_len] = '\0';
        look_up(s, HF_TABLE_SPACE, s->ns, &s->space);
    }
    if (hf_look_entry(row, &s->space, &s->all, &entry) != HF_OK) {
        s->damaged++;
        return true;
    }
    s->count++;
    if (s->args->json) {
        show_json(s, &entry);
    } else {
        show_line(s, &entry);
    }
    hf_seen_entry_drop(&entry);
    return s->status == HF_OK && !s->is_exact;
}

static bool count_of_key(void *arg, const hf_row *row)
{
    showing *s = arg;
    hf_seen_write seen;
    if (hf_look_write(row, &seen) == HF_OK && strcmp(seen.state, "dead") != 0 &&
        strcmp(seen.key.ns, s->args->words[1]) == 0 && strcmp(seen.key.type, s->args->words[2]) == 0) {
        hf_str id = hf_str_of_len(seen.key.id, seen.key.id_len);
        s->pending += hf_str_equal(id, hf_str_of(s->args->words[3]));
    }
    return true;
}

/* The words behind FILE as the beginning of a key. False: they are too long. */
static bool make_prefix(showing *s)
{
    for (int i = 1; i < s->args->word_count; i++) {
        size_t len = strlen(s->args->words[i]);
        size_t max = i < 3 ? HF_DEPOT_NAME_LEN_MAX : HF_DEPOT_ID_LEN_MAX;
        if (len < 1 || len > max) {
            return false;
        }
        memcpy(s->prefix + s->prefix_len, s->args->words[i], len);
        s->prefix_len += len;
        if (i < 3) {
            s->prefix[s->prefix_len++] = '\0';
        }
    }
    s->is_exact = s->args->word_count == 4;
    return true;
}

static int show_end(showing *s, hf_status status)
{
    const hf_tool_args *args = s->args;
    int code = end_with(s->op, status);
    if (code == HF_EXIT_FINE && s->is_exact && s->count == 0) {
        code = s->damaged > 0 ? hf_complain(HF_EXIT_DAMAGED, "the entry of this key is damaged: it counts as none")
                              : hf_complain(HF_EXIT_NOT_FOUND, "the file has no entry of this key");
    }
    if (args->json) {
        hf_json *writer = &s->report.writer;
        hf_json_end(writer);
        hf_json_key_bool(writer, "more", s->more);
        hf_json_key_uint(writer, "damaged", s->damaged);
        if (s->is_exact) {
            hf_json_key_uint(writer, "pendingWrites", s->pending);
        }
        hf_json_end(writer);
        hf_buf_deinit(&s->out);
        return hf_report_end(&s->report, true, code);
    }
    if (s->is_exact && s->pending > 0) {
        hf_buf_putf(&s->out, "  %llu writes of it wait, which callers see instead (holdfast depot pending %s)\n",
                    (unsigned long long)s->pending, s->view->path);
    }
    if (s->damaged > 0 && !s->is_exact) {
        hf_buf_putf(&s->out, "%llu entries are damaged: they count as none\n", (unsigned long long)s->damaged);
    }
    if (s->more) {
        hf_buf_puts(&s->out, "... there are more: --limit N, or name a namespace\n");
    }
    (void)hf_report_end(&s->report, false, code);
    flush(&s->out);
    return code;
}

int hf_cmd_depot_show(const hf_tool_args *args)
{
    static const hf_column COLUMNS[] = {{"KEY", 40, 16},   {"KIND", 8, 0},  {"AGE", 12, 0},
                                        {"VERSION", 7, 0}, {"BYTES", 8, 0}, {"ETAG", 16, 8}};
    hf_op op;
    hf_depot_view view;
    showing s = {.args = args, .view = &view, .op = &op, .limit = LIMIT};
    hf_op_init(&op);
    if (args->limit != NULL && (!number_of(args->limit, &s.limit) || s.limit == 0)) {
        return hf_complain(HF_EXIT_USAGE, "--limit needs a number from 1 on");
    }
    if (!make_prefix(&s)) {
        return hf_complain(HF_EXIT_USAGE, "a namespace and a type have 1 to %d bytes, an id has 1 to %d",
                           HF_DEPOT_NAME_LEN_MAX, HF_DEPOT_ID_LEN_MAX);
    }
    int code = hf_depot_view_open(&view, args->words[0]);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_report_init(&s.report);
    hf_buf_init(&s.out, hf_env_memory(view.env), SIZE_MAX / 4);
    hf_grid_init(&s.grid, COLUMNS, HF_COUNT_OF(COLUMNS), hf_screen_width(), &s.out);
    hf_json_object(&s.report.writer);
    hf_json_key_string(&s.report.writer, "file", view.path);
    hf_json_key(&s.report.writer, "entries");
    hf_json_array(&s.report.writer);
    if (!args->json) {
        hf_grid_title(&s.grid);
    }
    look_up(&s, HF_TABLE_META, "generation", &s.all);
    hf_status status = s.status;
    if (status == HF_OK) {
        status = hf_depot_view_rows(&op, &view, HF_TABLE_ENTRY, (hf_key){.text = hf_str_of_len(s.prefix, s.prefix_len)},
                                    show_row, &s);
    }
    if (status == HF_OK && s.status == HF_OK && s.is_exact) {
        status = hf_depot_view_rows(&op, &view, HF_TABLE_PENDING, (hf_key){.a = 0}, count_of_key, &s);
    }
    code = show_end(&s, status == HF_OK ? s.status : status);
    hf_depot_view_close(&view);
    return code;
}
