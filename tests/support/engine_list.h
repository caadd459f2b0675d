/* Steps about many runs and about namespaces, for the rig:
 *
 *     list, scan, count   query=FILTER ('_' for a space) page=N ns=N says=TEXT; `more` goes on behind the page before; list: `current`
 *     listopen, listclosed
 *                         id=ID type=T page=N ns=N status=N
 *     register NAME, nsupdate NAME, deprecate NAME, namespaces
 *                         describe=TEXT retention=SPAN
 *     addattr NAME type=T ns=N, removeattr NAME ns=N, attrs ns=N, allattrs
 *
 * says=TEXT compares the workflow ids of a list, joined by '+'; of a count the number and then "Status:N" for each group. */
#ifndef HF_TESTS_ENGINE_LIST_H
#define HF_TESTS_ENGINE_LIST_H

#include "support/engine_rig.h"
#include "support/engine_words.h"

/* False: it is another step. */
bool hf_rig_registry(hf_rig *rig, hf_rig_call *slot, const hf_words *w);
/* What such a call answered, as `says` compares it. False: the call is another one, or has failed. */
bool hf_rig_list_text(const hf_rig_call *slot, hf_buf *out);

#endif
