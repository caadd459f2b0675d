/* What a terminal adds: colours, and columns that fit its width. A file or a pipe gets neither, so that programs read whole words.
 *
 * On a terminal that is too narrow for a table, columns shrink to their least width first, from the last to the first; then columns without a
 * least width are left out. A text that does not fit its column ends with '~'. */
#include "main/grid.h"

#include "base/glyph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- The terminal ----------------------------------------------------------------------------------------------------------- */

bool hf_has_colors(int fd)
{
    const char *no = getenv("NO_COLOR"); /* https://no-color.org */
    const char *term = getenv("TERM");
    return isatty(fd) != 0 && (no == NULL || *no == '\0') && (term == NULL || strcmp(term, "dumb") != 0);
}

size_t hf_screen_width(void)
{
    struct winsize size = {0};
    if (isatty(STDOUT_FILENO) == 0) {
        return 0;
    }
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

const char *hf_tone_on(hf_tone tone)
{
    static const char *const CODES[] = {"", "\033[32m", "\033[31m", "\033[33m", "\033[36m", "\033[2m", "\033[1m"};
    static int is_on = -1; /* asked once */
    is_on = is_on < 0 ? hf_has_colors(STDOUT_FILENO) : is_on;
    return is_on != 0 ? CODES[tone] : "";
}

const char *hf_tone_off(hf_tone tone)
{
    return hf_tone_on(tone)[0] != '\0' ? "\033[0m" : "";
}

hf_tone hf_tone_of_status(int32_t status)
{
    switch (status) {
    case HF_WORKFLOW_EXECUTION_STATUS_RUNNING:
        return HF_TONE_BUSY;
    case HF_WORKFLOW_EXECUTION_STATUS_COMPLETED:
        return HF_TONE_GOOD;
    case HF_WORKFLOW_EXECUTION_STATUS_FAILED:
    case HF_WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
        return HF_TONE_BAD;
    case HF_WORKFLOW_EXECUTION_STATUS_CANCELED:
    case HF_WORKFLOW_EXECUTION_STATUS_TERMINATED:
        return HF_TONE_WARN;
    default:
        return HF_TONE_PLAIN;
    }
}

/* ---- Tables ------------------------------------------------------------------------------------------------------------------ */

static size_t width_of(const hf_grid *table)
{
    size_t all = 0;
    for (size_t i = 0; i < table->count; i++) {
        all += table->widths[i] > 0 ? table->widths[i] + HF_GRID_GAP : 0;
    }
    return all > HF_GRID_GAP ? all - HF_GRID_GAP : 0;
}

void hf_grid_init(hf_grid *table, const hf_column *columns, size_t count, size_t screen, hf_buf *out)
{
    hf_assert(count <= HF_GRID_COLUMNS_MAX);
    *table = (hf_grid){.columns = columns, .count = count, .screen = screen, .out = out};
    for (size_t i = 0; i < count; i++) {
        table->widths[i] = columns[i].width;
    }
    for (size_t i = count; screen > 0 && i-- > 0;) {
        size_t all = width_of(table);
        size_t most = table->widths[i] - (columns[i].least > 0 ? columns[i].least : table->widths[i]);
        size_t extra = all > screen ? all - screen : 0;
        table->widths[i] -= extra < most ? extra : most;
    }
    for (size_t i = count; screen > 0 && i-- > 0 && width_of(table) > screen;) {
        table->widths[i] = columns[i].least == 0 ? 0 : table->widths[i];
    }
}

/* The bytes of the first `count` characters. */
static size_t bytes_of(hf_str text, size_t count)
{
    size_t at = 0;
    while (at < text.len && count-- > 0) {
        at += hf_glyph_of(hf_str_of_len(text.data + at, text.len - at)).len;
    }
    return at;
}

void hf_grid_cell(hf_grid *table, hf_str text, hf_tone tone)
{
    hf_assert(table->at < table->count);
    size_t idx = table->at++;
    size_t width = table->widths[idx];
    if (width == 0) {
        return;
    }
    size_t fits = bytes_of(text, width);
    bool is_cut = table->screen > 0 && fits < text.len;
    hf_buf_puts(table->out, text.len > 0 ? hf_tone_on(tone) : "");
    size_t count =
        hf_put_text(table->out, is_cut ? hf_str_of_len(text.data, bytes_of(text, width - 1)) : text, SIZE_MAX);
    if (is_cut) {
        hf_buf_putc(table->out, '~');
        count++;
    }
    hf_buf_puts(table->out, text.len > 0 ? hf_tone_off(tone) : "");
    table->pending = (count < width ? width - count : 0) + HF_GRID_GAP;
    bool is_last = true;
    for (size_t i = idx + 1; i < table->count; i++) {
        is_last &= table->widths[i] == 0;
    }
    if (!is_last) {
        hf_buf_putf(table->out, "%*s", (int)table->pending, "");
    }
}

void hf_grid_cell_of(hf_grid *table, hf_buf *text, hf_tone tone)
{
    hf_grid_cell(table, hf_str_of_len(text->data, text->len), tone);
    hf_buf_deinit(text);
}

void hf_grid_end(hf_grid *table)
{
    while (table->out->len > 0 && table->out->data[table->out->len - 1] == ' ') {
        table->out->len--;
    }
    hf_buf_putc(table->out, '\n');
    table->at = 0;
}

void hf_grid_title(hf_grid *table)
{
    for (size_t i = 0; i < table->count; i++) {
        hf_grid_cell(table, hf_str_of(table->columns[i].title), HF_TONE_BOLD);
    }
    hf_grid_end(table);
}
