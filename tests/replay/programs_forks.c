/* Programs for activities and children without a fiber: every join, what a cancel does to them, ends that meet in one step. */
#include "replay/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A child workflow: sleeps for as many seconds; fails after that if the number is negative. */
static hf_status fork_child(hf_payload in, hf_payload *ret_out)
{
    long seconds = in.len > 0 ? strtol(in.data, NULL, 10) : 1;
    HF_TRY(hf_sleep(hf_seconds(labs(seconds))));
    return seconds < 0 ? hf_raise_typed(HF_ERR_FAILED, "Sad", "the child is sad") : hf_payload_copy(in, ret_out);
}

enum { FORKED = 6 };

static hf_status fork_all(hf_scope *scope, hf_payload outs[FORKED], hf_branch *branches[FORKED], const char *first,
                          hf_on_cancel how)
{
    HF_TRY(hf_fork_activity(scope, first, hf_payload_of_json("1000"), &outs[0], .start_to_close = hf_minutes(1),
                            .attempts_max = 1, .on_cancel = how, .ret_branch = &branches[0]));
    HF_TRY(hf_fork_activity(scope, "slow", hf_payload_of_json("2000"), &outs[1], .start_to_close = hf_minutes(1),
                            .on_cancel = how, .ret_branch = &branches[1]));
    HF_TRY(hf_fork_activity(scope, "beat", hf_payload_of_json("30000"), &outs[2], .start_to_close = hf_minutes(1),
                            .heartbeat = hf_seconds(10), .on_cancel = how, .ret_branch = &branches[2]));
    HF_TRY(hf_fork_child(scope, "fork-child", hf_payload_of_json("3"), &outs[3], .on_cancel = how,
                         .ret_branch = &branches[3]));
    HF_TRY(hf_fork_child(scope, "fork-child", hf_payload_of_json("-4"), &outs[4], .on_cancel = how,
                         .ret_branch = &branches[4]));
    return hf_fork_activity(scope, "slow", hf_payload_of_json("5000"), &outs[5], .start_to_close = hf_minutes(1),
                            .id = "named", .on_cancel = how, .ret_branch = &branches[5]);
}

static hf_status meet(notes *n, hf_join_policy join, hf_span timeout, const char *first, hf_on_cancel how)
{
    hf_payload outs[FORKED] = {{0}};
    hf_branch *branches[FORKED] = {NULL};
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "meeting", .join = join, .timeout = timeout));
        HF_TRY(fork_all(scope, outs, branches, first, how));
        HF_TRY(heard(n, hf_join(scope)));
        for (int i = 0; i < FORKED; i++) {
            HF_TRY(heard(n, hf_branch_status(branches[i])));
            note(n, "%s ", outs[i].len > 0 ? (const char *)outs[i].data : "-");
        }
    }
    note(n, "| ");
    return hf_sleep(hf_seconds(40)); /* whatever was given up has ended by then */
}

static hf_status fork_joins(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    hf_span none = hf_nanoseconds(0);
    (void)in;
    HF_TRY(meet(&n, HF_JOIN_ALL, none, "slow", HF_CANCEL_WAIT));
    HF_TRY(meet(&n, HF_JOIN_ANY, none, "slow", HF_CANCEL_WAIT));
    HF_TRY(meet(&n, HF_JOIN_QUORUM(3), none, "refuse", HF_CANCEL_WAIT));
    HF_TRY(meet(&n, HF_JOIN_TOLERATE(1), none, "refuse", HF_CANCEL_WAIT));
    HF_TRY(meet(&n, HF_JOIN_COLLECT, none, "refuse", HF_CANCEL_WAIT));
    HF_TRY(meet(&n, HF_JOIN_DISCARD, none, "refuse", HF_CANCEL_WAIT));
    HF_TRY(meet(&n, HF_JOIN_PARTIAL, hf_milliseconds(2500), "slow", HF_CANCEL_WAIT));
    return notes_result(&n, ret_out);
}

static hf_status fork_cancels(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    (void)in;
    for (int how = 0; how < HF_ON_CANCEL_COUNT; how++) {
        HF_TRY(meet(&n, HF_JOIN_ALL, hf_milliseconds(2500), "slow", (hf_on_cancel)how));
        HF_TRY(meet(&n, HF_JOIN_ALL, hf_seconds(2), "refuse", (hf_on_cancel)how)); /* ends and the deadline at once */
    }
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        hf_payload outs[FORKED] = {{0}};
        hf_branch *branches[FORKED] = {NULL};
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(fork_all(scope, outs, branches, "slow", HF_CANCEL_WAIT));
        HF_TRY(hf_scope_cancel(scope)); /* never sent, but their numbers are used up */
        HF_TRY(hf_fork_activity(scope, "slow", hf_payload_of_json("1"), NULL, .start_to_close = hf_minutes(1)));
        HF_TRY(heard(&n, hf_join(scope)));
        HF_TRY(hf_fork_activity(scope, "slow", hf_payload_of_json("9000"), NULL, .start_to_close = hf_minutes(1),
                                .ret_branch = &branches[0]));
        HF_TRY(hf_fork_activity(scope, "slow", hf_payload_of_json("3000"), NULL, .start_to_close = hf_minutes(1)));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_TRY(hf_branch_cancel(branches[0]));
        HF_TRY(heard(&n, hf_join(scope)));
    }
    return notes_result(&n, ret_out);
}

const program programs_of_forks[] = {
    {"fork-child", fork_child},
    {"fork-joins", fork_joins},
    {"fork-cancels", fork_cancels},
    {NULL, NULL},
};
