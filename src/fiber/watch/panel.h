/* Panels: what objects of the layers above show of themselves in hf_metrics and hf_dump of their runtime. A depot has one.
 *
 * A panel is asked from any thread, while its object works. It must neither wait nor call a verb that waits.
 *
 * fiber-A1  A panel is not asked any more when hf_panel_remove has returned. */
#ifndef HF_FIBER_PANEL_H
#define HF_FIBER_PANEL_H

#include "base/json.h"
#include "fiber/core.h"

enum { HF_PANEL_FIGURES_MAX = 64, HF_PANEL_NAME_LEN = 128 };

/* One number. The texts are literals. */
typedef struct hf_figure {
    const char *name;  /* "hits": lower case, words joined by "_" */
    const char *label; /* what the numbers with this name differ by: "place"; NULL = there is one */
    const char *word;  /* of this one: "memory" */
    const char *help;  /* a sentence */
    bool is_gauge;     /* it may fall; else it counts since the object was made */
    uint64_t value;
} hf_figure;

typedef struct hf_panel hf_panel;
struct hf_panel {
    hf_node node;     /* in rt->panels; under rt->panels_lock, as the next two */
    unsigned readers; /* calls inside */
    bool is_leaving;  /* takes no new ones */
    hf_word gone;     /* changes when the last reader of one that leaves is out */
    const char *kind; /* "depot"; a literal */
    const char *name; /* of the object */
    /* Writes up to HF_PANEL_FIGURES_MAX numbers and returns how many. All panels of a kind have the same in the same
     * order; numbers with the same name stand together. */
    size_t (*figures)(hf_panel *panel, hf_figure *ret_figures);
    /* What happens to it now: lines of text, or the members of a JSON object; the other one is NULL. */
    void (*dump)(hf_panel *panel, hf_buf *text, hf_json *json);
};

/* The panel is the caller's; it stays where it is until hf_panel_remove has returned. */
void hf_panel_add(hf_runtime *rt, hf_panel *panel);
/* Blocks while the panel is being asked. Does nothing with one that was not added. */
void hf_panel_remove(hf_runtime *rt, hf_panel *panel);

/* Calls `with` for each panel, in the order in which they came. */
void hf_panels_each(hf_runtime *rt, void (*with)(void *arg, hf_panel *panel), void *arg);

/* ---- For hf_metrics ---------------------------------------------------------------------------------------------- */

/* The numbers of one panel, copied. */
typedef struct hf_panel_shown {
    struct hf_panel_shown *next;
    const char *kind;
    char name[HF_PANEL_NAME_LEN];
    size_t count;
    hf_figure figures[HF_PANEL_FIGURES_MAX];
} hf_panel_shown;

/* All of them. Without memory for one it is left out, and `*ret_is_whole` is false. */
hf_panel_shown *hf_panels_show(hf_runtime *rt, bool *ret_is_whole);
void hf_panels_shown_free(hf_runtime *rt, hf_panel_shown *shown);

#endif
