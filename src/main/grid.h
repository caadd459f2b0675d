/* Tables and colours for people. */
#ifndef HF_MAIN_GRID_H
#define HF_MAIN_GRID_H

#include "main/tool.h"

typedef enum hf_tone {
    HF_TONE_PLAIN,
    HF_TONE_GOOD,
    HF_TONE_BAD,
    HF_TONE_WARN,
    HF_TONE_BUSY,
    HF_TONE_DIM,
    HF_TONE_BOLD
} hf_tone;

/* Whether the descriptor is a terminal that shows colours, and NO_COLOR is not set. */
bool hf_has_colors(int fd);
/* Columns of the terminal; 0 = stdout is not a terminal. */
size_t hf_screen_width(void);
/* What begins and ends a tone on stdout; empty without colours. */
const char *hf_tone_on(hf_tone tone);
const char *hf_tone_off(hf_tone tone);
hf_tone hf_tone_of_status(int32_t status); /* WorkflowExecutionStatus */

enum { HF_GRID_COLUMNS_MAX = 10, HF_GRID_GAP = 2 };

typedef struct hf_column {
    const char *title;
    size_t width; /* as wide as it is if there is room; longer texts push the next column, except on a terminal */
    size_t least; /* on a narrow terminal; 0 = it is not made narrower, but left out at last */
} hf_column;

typedef struct hf_grid {
    const hf_column *columns;
    size_t count;
    size_t screen; /* columns of the terminal; 0 = none */
    size_t widths[HF_GRID_COLUMNS_MAX];
    size_t at;      /* the next column */
    size_t pending; /* spaces behind the last cell */
    hf_buf *out;
} hf_grid;

/* `screen` is hf_screen_width(), or what a test says. */
void hf_grid_init(hf_grid *table, const hf_column *columns, size_t count, size_t screen, hf_buf *out);
void hf_grid_title(hf_grid *table);
/* The next cell of the line. */
void hf_grid_cell(hf_grid *table, hf_str text, hf_tone tone);
void hf_grid_cell_of(hf_grid *table, hf_buf *text, hf_tone tone); /* frees the text */
void hf_grid_end(hf_grid *table);

#endif
