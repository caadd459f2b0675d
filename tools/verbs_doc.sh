#!/usr/bin/env bash
# Prints docs/verbs.md, made from the table of verbs.
#     verbs_doc.sh <src/fiber/verbs.def>
set -euo pipefail
cat <<'TOP'
<!-- Made by tools/verbs_doc.sh from src/fiber/verbs.def; do not edit. -->
# Every verb, and where it may be called

A verb is a function of the library. What a verb does depends on the fiber or thread that calls it: it may park a fiber,
block a thread, become a part of a workflow's history, or be refused. A refused call returns `HF_ERR_MISUSE` and leaves a
sentence in `hf_error_text()`.

| answer | meaning |
|---|---|
| works | returns at once |
| blocks | may wait: a fiber parks and its thread runs other fibers, a thread blocks |
| durable | may wait, and the wait is part of the run's history: it survives the process |
| misuse | `HF_ERR_MISUSE` and a sentence |

| place | what it is |
|---|---|
| fiber | the body of a fiber; an activity with `.on_fiber` is one, but the verbs of `activity.h` answer it as in the column "activity" |
| workflow | the main fiber of a workflow, and the fibers that it forks |
| handler | a handler of signals or updates |
| query | a query, a validator or a condition: it reads and changes nothing |
| activity | an activity on a thread of its own, as they are without `.on_fiber`; also any job on a pool thread (`hf_fork` with `.on` a pool), for which the verbs of `activity.h` are misuse |
| thread | a thread that the library did not start; functions that make an object need `.runtime` |
| forked | a process that fork() made, inside a scope of the parent. `hf_runtime_new` and `hf_run` work on a thread outside a scope |
| hook | a hook of a join: runs on any fiber of the scope's home thread, must not wait, and owns nothing |

Verbs with options are listed without `_with`.
TOP
awk '
    /^HF_VERBS\(/ {
        split($0, part, "\"")
        printf "\n## %s\n\n%s\n\n", part[4], "`" part[2] "`"
        print "| verb | fiber | workflow | handler | query | activity | thread | forked | hook |"
        print "|---|---|---|---|---|---|---|---|---|"
    }
    /^HF_VERB\(/ {
        sub(/^HF_VERB\(/, "")
        sub(/\).*/, "")
        count = split($0, cell, / *, */)
        printf "| `%s`", cell[1]
        for (i = 2; i <= count; i++) {
            printf " | %s", cell[i]
        }
        print " |"
    }' "$1"
cat <<'EVICTED'

## In a workflow that was evicted

Calls that wait or fork return `HF_ERR_EVICTED`, and the code must return. After 1,000 of the calls below the next one does
not return: the fiber never runs again (`holdfast/workflow.h`). All other calls may be made as often as cleanup needs.

| answer | meaning |
|---|---|
| refused | `HF_ERR_EVICTED`; counts |
| tries | counts when it does not succeed: `HF_ERR_AGAIN`, or false |
| looks | counts: its result does not change any more |

| verb | answer |
|---|---|
EVICTED
awk '
    /^HF_COUNTED\(/ {
        sub(/^HF_COUNTED\(/, "")
        sub(/\).*/, "")
        split($0, cell, / *, */)
        printf "| `%s` | %s |\n", cell[1], cell[2]
    }' "$1"
