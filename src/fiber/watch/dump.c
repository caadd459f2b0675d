/* hf_dump: the scope tree as text or JSON, written from a snapshot (snapshot.h) after the world has moved on.
 *
 *     runtime 'holdfast': 2 threads, 3 fibers, 2 scopes
 *     thread 0: user code, fiber 'spin' #0
 *     thread 1: idle
 *     zombie activity="charge",id="5",attempt="2",workflow="order-1",run="...": canceled 12.003 s ago
 *     depot 'users': 1 fetch, 0 sends, ...
 *     scope 'main' x.0: join all, forked 1, running 1, ok 0, failed 0, canceled 0, open 1.204 s, of a thread in hf_join
 *       fiber 'main' #0: waiting in hf_join on 'workers', 1.204 s old, thread 1, stack used up to 3040 of 60512 bytes
 *           at hf_sched_leave+0x4d (app)
 *           ...
 *         scope 'workers' 1.1: join all, forked 2, ...
 *           fiber 'spin' #0: running in user code, 1.203 s old, thread 0
 *
 * The JSON form is flat: a list of nodes in the same order, each with its number, its parent's and its depth, because a
 * tree may be deeper than any reader of nested JSON goes. For the same reason the text is indented to a bound only. */
#include "base/glyph.h"
#include "base/json.h"
#include "fiber/crew/strand.h"
#include "fiber/enter.h"
#include "fiber/verbs.h"
#include "fiber/watch/backtrace.h"
#include "fiber/watch/panel.h"
#include "fiber/watch/snapshot.h"
#include "fiber/watch/text.h"
#include "fiber/watch/zombies.h"

#include <stdio.h>

enum { INDENT_MAX = 40, FRAMES_KEPT = 512 };
static const size_t NODE_LEN_MAX = (size_t)64 << 10; /* one node with all its escapes fits */

typedef struct frame {
    const void *pc;
    char text[HF_FRAME_LEN_MAX];
} frame;

typedef struct writer {
    hf_buf buf;
    hf_json json;
    const hf_snapshot *snap;
    hf_zombies zombies; /* owned */
    frame *frames;      /* names that were found before, by address: thousands of fibers wait in the same few places */
    uint32_t depth;
    uint32_t written;
} writer;

static const char *const STATE_WORDS[] = {
#define STATE_WORD(name, word) word,
    HF_SNAP_STATE_MAP(STATE_WORD)
#undef STATE_WORD
};

/* ---- Pieces ------------------------------------------------------------------------------------------------------ */

static const char *frame_text(writer *w, const void *pc)
{
    frame *kept = &w->frames[((uintptr_t)pc * UINT64_C(0x9e3779b97f4a7c15) >> 32) % FRAMES_KEPT];
    if (kept->pc != pc) {
        kept->pc = pc;
        hf_frame_format(pc, kept->text, sizeof kept->text);
    }
    return kept->text;
}

/* "0.17": the 17th scope of thread 0; "x.3": one that a plain or pool thread opened. */
static void scope_id(uint64_t id, char *text, size_t capacity)
{
    unsigned long long number = id & ((UINT64_C(1) << 48) - 1);
    if (id >> 48 == 0xffff) {
        (void)snprintf(text, capacity, "x.%llu", number);
    } else {
        (void)snprintf(text, capacity, "%u.%llu", (unsigned)(id >> 48), number);
    }
}

static void put_span(hf_buf *buf, int64_t ns)
{
    if (ns < 0) {
        ns = 0;
    }
    if (ns >= 1000 * 1000 * 1000) {
        hf_buf_putf(buf, "%lld.%03lld s", (long long)(ns / 1000000000), (long long)(ns / 1000000 % 1000));
    } else if (ns >= 1000 * 1000) {
        hf_buf_putf(buf, "%lld.%03lld ms", (long long)(ns / 1000000), (long long)(ns / 1000 % 1000));
    } else {
        hf_buf_putf(buf, "%lld us", (long long)(ns / 1000));
    }
}

/* A name on a line of text. Characters that would break the line, or that a terminal would obey, are replaced. */
static void put_name(hf_buf *buf, const char *name)
{
    size_t len = strlen(name);
    hf_buf_putc(buf, '\'');
    for (size_t at = 0; at < len;) {
        hf_glyph glyph = hf_glyph_of(hf_str_of_len(name + at, len - at));
        hf_buf_put(buf, glyph.is_printable ? name + at : "?", glyph.is_printable ? glyph.len : 1);
        at += glyph.len;
    }
    hf_buf_putc(buf, '\'');
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static void text_indent(writer *w, uint32_t extra)
{
    static const char SPACES[] = "                                                                                ";
    _Static_assert(sizeof SPACES - 1 >= 2 * INDENT_MAX, "indentation fits");
    uint32_t depth = w->depth < INDENT_MAX ? w->depth : INDENT_MAX;
    hf_buf_put(&w->buf, SPACES, 2 * (size_t)depth);
    for (uint32_t i = 0; i < extra; i++) {
        hf_buf_puts(&w->buf, "  ");
    }
    if (w->depth > INDENT_MAX && extra == 0) {
        hf_buf_putf(&w->buf, "[depth %u] ", w->depth);
    }
}

static void text_cancel(writer *w, const hf_snap_node *node)
{
    if (node->cause == HF_CAUSE_NONE) {
        return;
    }
    hf_buf_putf(&w->buf, ", canceled: %s", hf_cause_name((hf_cause)node->cause));
    const char *reason = hf_snap_string(w->snap, node->reason);
    if (reason != NULL) {
        hf_buf_putc(&w->buf, ' ');
        put_name(&w->buf, reason);
    }
}

static void text_wait(writer *w, const hf_snap_node *node)
{
    if (node->verb == NULL) {
        return;
    }
    hf_buf_putf(&w->buf, " in %s", node->verb);
    const char *object = hf_snap_string(w->snap, node->object);
    if (object != NULL) {
        hf_buf_puts(&w->buf, " on ");
        put_name(&w->buf, object);
    }
}

static void text_scope(writer *w, const hf_snap_node *node)
{
    hf_buf *buf = &w->buf;
    char id[32];
    scope_id(node->number, id, sizeof id);
    bool is_shield = node->kind == HF_SNAP_SHIELD;
    const char *name = hf_snap_string(w->snap, node->name);
    const char *policy = hf_snap_string(w->snap, node->policy);
    hf_buf_puts(buf, is_shield ? "shield " : "scope ");
    put_name(buf, name != NULL ? name : "");
    hf_buf_putf(buf, " %s: ", id);
    if (!is_shield) {
        const hf_tally *tally = &node->tally;
        hf_buf_putf(buf, "join %s, forked %llu, running %llu, ok %llu, failed %llu, canceled %llu, ",
                    policy != NULL ? policy : "?", (unsigned long long)tally->forked,
                    (unsigned long long)tally->running, (unsigned long long)tally->ok,
                    (unsigned long long)tally->failed, (unsigned long long)tally->canceled);
    }
    hf_buf_puts(buf, "open ");
    put_span(buf, node->age_ns);
    if (node->left_ns != INT64_MAX) {
        hf_buf_puts(buf, ", deadline in ");
        put_span(buf, node->left_ns);
    }
    if (node->by_thread) {
        hf_buf_puts(buf, ", of a thread");
        text_wait(w, node);
    }
    if (node->is_closing) {
        hf_buf_puts(buf, ", closing");
    }
    text_cancel(w, node);
    hf_buf_putc(buf, '\n');
}

static void text_branch_title(writer *w, const hf_snap_node *node)
{
    const char *name = hf_snap_string(w->snap, node->name);
    hf_buf_puts(&w->buf, "fiber ");
    if (name != NULL) {
        put_name(&w->buf, name);
        hf_buf_putc(&w->buf, ' ');
    }
    hf_buf_putf(&w->buf, "#%llu", (unsigned long long)node->number);
}

static void text_branch(writer *w, const hf_snap_node *node)
{
    hf_buf *buf = &w->buf;
    text_branch_title(w, node);
    hf_buf_putf(buf, ": %s", STATE_WORDS[node->state]);
    if (node->state == HF_SNAP_RUNNING || node->state == HF_SNAP_LOST) {
        hf_buf_puts(buf, " in user code");
    }
    text_wait(w, node);
    hf_buf_puts(buf, ", ");
    put_span(buf, node->age_ns);
    hf_buf_puts(buf, " old");
    if (node->thread >= 0) {
        hf_buf_putf(buf, ", thread %d", node->thread);
    }
    if (node->stack_most > 0) {
        hf_buf_putf(buf, ", stack used up to %u of %u bytes", node->stack_most, node->stack_size);
    }
    text_cancel(w, node);
    hf_buf_putc(buf, '\n');
    void *const *pcs = hf_snap_pcs(w->snap, node);
    for (int i = 0; i < node->pc_count; i++) {
        text_indent(w, 2);
        hf_buf_puts(buf, "at ");
        hf_buf_puts(buf, frame_text(w, pcs[i]));
        hf_buf_putc(buf, '\n');
    }
}

static void text_node(writer *w, uint32_t idx)
{
    const hf_snap_node *node = hf_snap_node_at(w->snap, idx);
    text_indent(w, 0);
    if (node->kind == HF_SNAP_BRANCH) {
        text_branch(w, node);
    } else {
        text_scope(w, node);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static int64_t to_us(int64_t ns)
{
    return ns / 1000;
}

static void json_scope(writer *w, const hf_snap_node *node)
{
    hf_json *json = &w->json;
    char id[32];
    scope_id(node->number, id, sizeof id);
    hf_json_key_string(json, "id", id);
    hf_json_key_string(json, "join", hf_snap_string(w->snap, node->policy));
    hf_json_key_uint(json, "forked", node->tally.forked);
    hf_json_key_uint(json, "running", node->tally.running);
    hf_json_key_uint(json, "ok", node->tally.ok);
    hf_json_key_uint(json, "failed", node->tally.failed);
    hf_json_key_uint(json, "canceled", node->tally.canceled);
    hf_json_key(json, "deadline_us");
    if (node->left_ns != INT64_MAX) {
        hf_json_int(json, to_us(node->left_ns));
    } else {
        hf_json_null(json);
    }
    hf_json_key_bool(json, "of_thread", node->by_thread);
    hf_json_key_bool(json, "closing", node->is_closing);
}

static void json_branch(writer *w, const hf_snap_node *node)
{
    hf_json *json = &w->json;
    hf_json_key_uint(json, "index", node->number);
    hf_json_key_string(json, "state", STATE_WORDS[node->state]);
    if (node->stack_most > 0) {
        hf_json_key_uint(json, "stack_used_max", node->stack_most);
        hf_json_key_uint(json, "stack_size", node->stack_size);
    }
    if (node->pc_count > 0) {
        void *const *pcs = hf_snap_pcs(w->snap, node);
        hf_json_key(json, "stack");
        hf_json_array(json);
        for (int i = 0; i < node->pc_count; i++) {
            hf_json_string(json, frame_text(w, pcs[i]));
        }
        hf_json_end(json);
    }
}

static void json_node(writer *w, uint32_t idx)
{
    static const char *const KINDS[] = {"scope", "shield", "fiber"};
    const hf_snap_node *node = hf_snap_node_at(w->snap, idx);
    hf_json *json = &w->json;
    hf_json_object(json);
    hf_json_key_uint(json, "node", idx);
    hf_json_key(json, "parent");
    if (node->parent != HF_SNAP_NONE) {
        hf_json_uint(json, node->parent);
    } else {
        hf_json_null(json);
    }
    hf_json_key_uint(json, "depth", w->depth);
    hf_json_key_string(json, "kind", KINDS[node->kind]);
    hf_json_key_string(json, "name", hf_snap_string(w->snap, node->name));
    hf_json_key_int(json, "age_us", to_us(node->age_ns > 0 ? node->age_ns : 0));
    if (node->thread >= 0) {
        hf_json_key_int(json, "thread", node->thread);
    }
    if (node->cause != HF_CAUSE_NONE) {
        hf_json_key_string(json, "cancel_cause", hf_cause_name((hf_cause)node->cause));
        hf_json_key_string(json, "cancel_reason", hf_snap_string(w->snap, node->reason));
    }
    if (node->verb != NULL) {
        hf_json_key_string(json, "waits_in", node->verb);
        hf_json_key_string(json, "waits_on", hf_snap_string(w->snap, node->object));
    }
    if (node->kind == HF_SNAP_BRANCH) {
        json_branch(w, node);
    } else {
        json_scope(w, node);
    }
    hf_json_end(json);
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

/* Every node after its parent, without recursion. False: the text is full. */
static bool each_node(writer *w, void (*write)(writer *w, uint32_t idx))
{
    uint32_t idx = w->snap->first_root;
    while (idx != HF_SNAP_NONE) {
        if (hf_buf_status(&w->buf) != HF_OK || w->buf.len > HF_TEXT_LEN_MAX - NODE_LEN_MAX) {
            return false;
        }
        hf_assert(idx < w->snap->count && w->written < w->snap->count); /* the tree has no loops */
        write(w, idx);
        w->written++;
        const hf_snap_node *node = hf_snap_node_at(w->snap, idx);
        if (node->first_child != HF_SNAP_NONE) {
            idx = node->first_child;
            w->depth++;
            continue;
        }
        while (node->next == HF_SNAP_NONE && node->parent != HF_SNAP_NONE) {
            node = hf_snap_node_at(w->snap, node->parent);
            w->depth--;
        }
        idx = node->next;
    }
    hf_assert(w->depth == 0);
    return true;
}

static void count_kinds(const hf_snapshot *snap, uint32_t *ret_branches, uint32_t *ret_scopes)
{
    *ret_branches = *ret_scopes = 0;
    for (uint32_t i = 0; i < snap->count; i++) {
        uint32_t *into = hf_snap_node_at(snap, i)->kind == HF_SNAP_BRANCH ? ret_branches : ret_scopes;
        (*into)++;
    }
}

static const char *const THREAD_WORDS[] = {"idle", "user code", "dumping"};

static void text_panel(void *arg, hf_panel *panel)
{
    writer *w = arg;
    hf_buf_putf(&w->buf, "%s ", panel->kind);
    put_name(&w->buf, panel->name);
    hf_buf_puts(&w->buf, ": ");
    panel->dump(panel, &w->buf, NULL);
}

static void json_panel(void *arg, hf_panel *panel)
{
    writer *w = arg;
    hf_json_object(&w->json);
    hf_json_key_string(&w->json, "kind", panel->kind);
    hf_json_key_string(&w->json, "name", panel->name);
    panel->dump(panel, NULL, &w->json);
    hf_json_end(&w->json);
}

static void write_text(writer *w, hf_runtime *rt)
{
    const hf_snapshot *snap = w->snap;
    uint32_t branches = 0;
    uint32_t scopes = 0;
    count_kinds(snap, &branches, &scopes);
    hf_buf_puts(&w->buf, "runtime ");
    put_name(&w->buf, rt->name);
    hf_buf_putf(&w->buf, ": %d threads, %u fibers, %u scopes", snap->thread_count, branches, scopes);
    uint64_t stranded = hf_stranded_count(rt);
    if (stranded > 0) {
        hf_buf_putf(&w->buf, ", %llu stranded", (unsigned long long)stranded);
    }
    hf_buf_putc(&w->buf, '\n');
    for (int i = 0; i < snap->thread_count; i++) {
        const hf_snap_thread *thread = &snap->threads[i];
        hf_buf_putf(&w->buf, "thread %d: %s", i, THREAD_WORDS[thread->state]);
        if (thread->node != HF_SNAP_NONE) {
            hf_buf_puts(&w->buf, ", ");
            text_branch_title(w, hf_snap_node_at(snap, thread->node));
        }
        hf_buf_putc(&w->buf, '\n');
    }
    for (int i = 0; i < w->zombies.count; i++) {
        hf_buf_puts(&w->buf, "zombie ");
        hf_zombie_fields(&w->buf, &w->zombies.all[i]);
        hf_buf_puts(&w->buf, ": canceled ");
        put_span(&w->buf, w->zombies.all[i].age_ns);
        hf_buf_puts(&w->buf, " ago\n");
    }
    hf_panels_each(rt, text_panel, w);
    bool whole = each_node(w, text_node);
    if (!whole || snap->is_cut) {
        hf_buf_putf(&w->buf, "... cut: the tree is larger than a dump may be; %u nodes were written\n", w->written);
    }
}

static void write_json(writer *w, hf_runtime *rt)
{
    const hf_snapshot *snap = w->snap;
    hf_json *json = &w->json;
    hf_json_init(json, &w->buf);
    hf_json_object(json);
    hf_json_key_string(json, "runtime", rt->name);
    hf_json_key_uint(json, "stranded", hf_stranded_count(rt));
    hf_json_key(json, "threads");
    hf_json_array(json);
    for (int i = 0; i < snap->thread_count; i++) {
        const hf_snap_thread *thread = &snap->threads[i];
        hf_json_object(json);
        hf_json_key_int(json, "thread", i);
        hf_json_key_string(json, "state", THREAD_WORDS[thread->state]);
        if (thread->node != HF_SNAP_NONE) {
            hf_json_key_uint(json, "node", thread->node);
        }
        hf_json_end(json);
    }
    hf_json_end(json);
    hf_json_key(json, "zombies");
    hf_json_array(json);
    for (int i = 0; i < w->zombies.count; i++) {
        hf_json_object(json);
        hf_zombie_json(json, &w->zombies.all[i]);
        hf_json_end(json);
    }
    hf_json_end(json);
    hf_json_key(json, "panels");
    hf_json_array(json);
    hf_panels_each(rt, json_panel, w);
    hf_json_end(json);
    hf_json_key(json, "nodes");
    hf_json_array(json);
    bool whole = each_node(w, json_node);
    hf_json_end(json);
    hf_json_key_bool(json, "cut", !whole || snap->is_cut);
    hf_json_end(json);
    hf_buf_putc(&w->buf, '\n');
}

static hf_status write_out(hf_op *op, hf_runtime *rt, const hf_snapshot *snap, bool is_json, char **ret_text)
{
    writer w = {.snap = snap};
    HF_TRY(hf_zombies_get(op, rt, &w.zombies));
    w.frames = hf_rt_alloc(rt, FRAMES_KEPT * sizeof(frame));
    if (w.frames == NULL) {
        hf_zombies_free(rt, &w.zombies);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the names of a dump");
    }
    hf_buf_init(&w.buf, rt->allocator, HF_TEXT_LEN_MAX);
    if (is_json) {
        write_json(&w, rt);
    } else {
        write_text(&w, rt);
    }
    hf_status status = hf_text_give(op, &w.buf, ret_text);
    hf_buf_deinit(&w.buf);
    hf_rt_free(rt, w.frames, FRAMES_KEPT * sizeof(frame));
    hf_zombies_free(rt, &w.zombies);
    return status;
}

hf_status hf_dump_with(hf_runtime *runtime, char **ret_text, const hf_dump_options *options)
{
    HF_OPTIONS(hf_dump_options, options, hf_dump);
    HF_VERB_ENTER(self, hf_dump, runtime);
    if (ret_text == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_dump needs a place for the text"));
    }
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = hf_rt_choose(&op, runtime); /* two fibers that stop each other's runtimes would wait for ever */
    if (rt == NULL) {
        HF_LEAVE(self, hf_op_end(self, &op));
    }
    hf_snapshot *snap = hf_rt_alloc(rt, sizeof *snap);
    if (snap == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_NOMEM, "no memory for a dump"));
    }
    if (!options->no_stacks) {
        snap->pc_count = hf_backtrace_here(snap->pcs_here, HF_BACKTRACE_DEPTH_MAX);
    }
    hf_status status = hf_snapshot_take(&op, rt, self, !options->no_stacks, snap);
    if (status == HF_OK) {
        status = write_out(&op, rt, snap, options->json, ret_text);
    }
    hf_snapshot_deinit(snap);
    hf_rt_free(rt, snap, sizeof *snap);
    HF_LEAVE(self, status == HF_OK ? HF_OK : hf_op_end(self, &op));
}
