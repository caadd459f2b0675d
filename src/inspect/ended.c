#include "inspect/ended.h"

#include "ledger/ended.h"

typedef struct ended_look {
    hf_arena arena; /* of the namespaces */
    hf_keeping *keepings;
    size_t count, room;
    int64_t now;
    hf_ended_report report;
    hf_find_told *progress;
    uint64_t looked;
} ended_look;

static void count_namespace(void *arg, const hf_pb_namespace_record *record)
{
    ended_look *self = arg;
    self->room += record->retention > 0 ? 1 : 0;
}

static void take_namespace(void *arg, const hf_pb_namespace_record *record)
{
    ended_look *self = arg;
    if (record->retention > 0 && self->keepings != NULL && self->count < self->room) {
        self->keepings[self->count++] = (hf_keeping){hf_arena_copy(&self->arena, record->name), record->retention};
    }
}

static hf_status take_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    ended_look *self = arg;
    self->looked++;
    if (self->progress != NULL && self->looked % HF_FIND_TOLD == 0) {
        self->progress(self->looked);
    }
    return hf_ended_add(op, row, self->keepings, self->count, self->now, arena, &self->report);
}

hf_status hf_ended_look(hf_op *op, hf_store *store, hf_allocator memory, int64_t now, hf_find_told *progress,
                        hf_ended_figures *ret_figures)
{
    ended_look self = {.now = now, .progress = progress};
    hf_arena_init(&self.arena, memory);
    hf_status status = hf_find_namespaces(op, store, memory, count_namespace, &self, progress);
    if (status == HF_OK && self.room > 0) {
        self.keepings = HF_ARENA_ARRAY(&self.arena, hf_keeping, self.room);
        status = hf_find_namespaces(op, store, memory, take_namespace, &self, progress);
    }
    if (status == HF_OK && self.arena.status != HF_OK) {
        status = hf_fail(op, HF_ERR_NOMEM, "no memory for the namespaces");
    }
    if (status == HF_OK) {
        status = hf_store_each_row(op, store, memory, HF_TABLE_RUN, NULL, NULL, take_row, &self);
    }
    hf_arena_deinit(&self.arena);
    const hf_ended_report *report = &self.report;
    *ret_figures = (hf_ended_figures){report->runs, report->len, report->expired_runs, report->expired_len};
    return status;
}
