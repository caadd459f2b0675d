/* Programs as activities (command.c). */
#ifndef HF_WORKER_COMMAND_H
#define HF_WORKER_COMMAND_H

#include "base/buf.h"
#include "base/str.h"

enum { HF_COMMAND_LINE_MAX = 64 << 10, HF_COMMAND_TAIL_MAX = 3000, HF_COMMAND_EXIT_FINAL = 64 };

/* What a program writes to stderr: heartbeats, and a text of which the end is kept. */
typedef struct hf_command_notes {
    hf_buf line;    /* the line that has begun; cut at HF_COMMAND_LINE_MAX ... */
    bool is_cut;    /* ... and then it is not a heartbeat */
    size_t tail_at; /* where the next byte goes, in a ring */
    size_t tail_len;
    char tail[HF_COMMAND_TAIL_MAX];
} hf_command_notes;

void hf_command_notes_init(hf_command_notes *notes, hf_allocator memory);
void hf_command_notes_deinit(hf_command_notes *notes);
/* Takes what was read. `on_beat` is called for each heartbeat with its JSON text, of which nothing has been checked but the
 * length; false: it is none, and the line is text. */
void hf_command_notes_take(hf_command_notes *notes, hf_str bytes, bool (*on_beat)(void *arg, hf_str json), void *arg);
/* The end of the text, as one that can be printed, at most HF_COMMAND_TAIL_MAX bytes and a NUL. Begins with a whole
 * character. */
void hf_command_notes_end(hf_command_notes *notes, char text[HF_COMMAND_TAIL_MAX + 1]);

#endif
