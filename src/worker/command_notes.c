/* The stderr of a program that is an activity, line by line. */
#include "worker/command.h"

#include "base/glyph.h"

#define HEARTBEAT "heartbeat "

void hf_command_notes_init(hf_command_notes *notes, hf_allocator memory)
{
    hf_buf_init(&notes->line, memory, HF_COMMAND_LINE_MAX);
    notes->is_cut = false;
    notes->tail_at = notes->tail_len = 0;
}

void hf_command_notes_deinit(hf_command_notes *notes)
{
    hf_buf_deinit(&notes->line);
}

static void keep(hf_command_notes *notes, const char *bytes, size_t len)
{
    for (size_t i = len > HF_COMMAND_TAIL_MAX ? len - HF_COMMAND_TAIL_MAX : 0; i < len; i++) {
        notes->tail[notes->tail_at] = bytes[i];
        notes->tail_at = (notes->tail_at + 1) % HF_COMMAND_TAIL_MAX;
        notes->tail_len += notes->tail_len < HF_COMMAND_TAIL_MAX;
    }
    hf_assert(notes->tail_len <= HF_COMMAND_TAIL_MAX);
}

/* The line is complete, without its newline. */
static void end_line(hf_command_notes *notes, bool (*on_beat)(void *arg, hf_str json), void *arg)
{
    const size_t word = sizeof HEARTBEAT - 1;
    hf_str line = hf_str_of_len(notes->line.data, notes->line.len);
    bool is_beat = !notes->is_cut && line.len > word && memcmp(line.data, HEARTBEAT, word) == 0 &&
                   on_beat(arg, hf_str_of_len(line.data + word, line.len - word));
    if (!is_beat) {
        keep(notes, line.data, line.len);
        keep(notes, "\n", 1);
    }
    notes->line.len = 0;
    notes->line.status = HF_OK; /* no memory for a long line: it is lost, and the next one may fit */
    notes->is_cut = false;
}

void hf_command_notes_take(hf_command_notes *notes, hf_str bytes, bool (*on_beat)(void *arg, hf_str json), void *arg)
{
    while (bytes.len > 0) {
        const char *newline = memchr(bytes.data, '\n', bytes.len);
        size_t len = newline != NULL ? (size_t)(newline - bytes.data) : bytes.len;
        hf_buf_put(&notes->line, bytes.data, len);
        if (hf_buf_status(&notes->line) != HF_OK) { /* too long for a heartbeat: its end may be what matters */
            keep(notes, notes->line.data, notes->line.len);
            keep(notes, bytes.data, len);
            notes->line.len = 0;
            notes->line.status = HF_OK;
            notes->is_cut = true;
        }
        if (newline != NULL) {
            end_line(notes, on_beat, arg);
            len++;
        }
        bytes = hf_str_of_len(bytes.data + len, bytes.len - len);
    }
}

void hf_command_notes_end(hf_command_notes *notes, char text[HF_COMMAND_TAIL_MAX + 1])
{
    keep(notes, notes->line.data, notes->line.len); /* a last line without a newline */
    notes->line.len = 0;
    size_t from = (notes->tail_at + HF_COMMAND_TAIL_MAX - notes->tail_len) % HF_COMMAND_TAIL_MAX;
    size_t len = 0;
    for (size_t i = 0; i < notes->tail_len; i++) {
        text[len++] = notes->tail[(from + i) % HF_COMMAND_TAIL_MAX];
    }
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r' || text[len - 1] == ' ')) {
        len--;
    }
    size_t cut = 0; /* the first character may have lost its beginning */
    while (notes->tail_len == HF_COMMAND_TAIL_MAX && cut < len && ((unsigned char)text[cut] & 0xC0) == 0x80) {
        cut++;
    }
    memmove(text, text + cut, len - cut);
    text[len - cut] = '\0';
    for (size_t i = 0; i < len - cut; i++) {
        text[i] = text[i] == '\0' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r' ? ' ' : text[i];
    }
    hf_text_clean(text);
}
