#!/usr/bin/env bash
# The trials find the bugs of sim/bugs.c, each with a line that repeats it, and none in sim/fine.c: sim.sh HOLDFAST BUGS FINE SCRATCH.
set -euo pipefail
holdfast=$1 bugs=$2 fine=$3 scratch=$4
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

fail()
{
    printf 'FAILED: %s\n' "$*"
    exit 1
}

# finds NAME WORDS [OPTIONS]: the trials of this bug fail, and the report has these words and a line that repeats the failure.
finds()
{
    local name=$1 words=$2 code=0 line
    shift 2
    "$holdfast" sim --plugin "$bugs" "$name" "$@" >"$name.txt" 2>"$name.err" || code=$?
    [[ $code == 1 ]] || fail "$name: exit code $code: $(cat "$name.txt" "$name.err")"
    grep -q -- "$words" "$name.txt" || fail "$name: no '$words' in: $(cat "$name.txt" "$name.err")"
    line=$(grep -m1 '^  repeat: ' "$name.txt") || fail "$name: no line that repeats it: $(cat "$name.txt")"
    code=0
    eval "${line/  repeat:   holdfast/\"\$holdfast\"}" >"$name.again" 2>&1 || code=$?
    [[ $code == 1 ]] || fail "$name: '$line' does not repeat it: $(cat "$name.again")"
    printf '%-14s %s\n' "$name" "$(grep -m1 '^FAILED' "$name.txt")"
}

finds clock 'time() in code of a workflow, at bugs.c:[0-9]'
finds rand 'rand() in code of a workflow, at bugs.c:[0-9]'
finds getenv 'getenv() in code of a workflow, at bugs.c:[0-9]'
finds file 'fopen() in code of a workflow, at bugs.c:[0-9]'
finds sleep 'usleep() in code of a workflow, at bugs.c:[0-9]'
finds global 'it ends differently'
finds compensation 'neither as before nor as after a success'
finds charge 'it leaves another world'
finds signal 'every step is a replay' --signal address
finds addresses 'it ends differently'
finds counter 'not deterministic'
finds race 'reverse order'
finds early 'a signal comes with the start' --signal address
finds crash 'Aborted'
finds silent 'activity 2 .* and the next one fail for good, and do nothing: it ends as if nothing had failed, and leaves another world'

"$holdfast" sim --plugin "$fine" order --input '{"item": "kelp"}' --signal 'address="harbour 1"' --seeds 10 >fine.txt 2>&1 ||
    fail "fine: $(cat fine.txt)"
grep -q ' 0 failed$' fine.txt || fail "fine: $(cat fine.txt)"
cat fine.txt

# A death may use up the only attempt of an activity, which is no fault of the workflow.
"$holdfast" sim --plugin "$fine" once --seeds 10 --verbose >once.txt 2>&1 || fail "once: $(cat once.txt)"

! grep -q 'note:' fine.txt || fail "fine: $(cat fine.txt)"

# What a plan may have wrong although the workflow is right.
"$holdfast" sim --plugin "$fine" order --input '{"item": "kelp"}' --signal adress=1 --signal 'address="harbour 1"' --seeds 1 >note.txt 2>&1 || true
grep -q "note: *nobody took the signal adress: is its name right?" note.txt || fail "a signal that nobody took: $(cat note.txt)"
"$holdfast" sim --plugin "$fine" picky --play plain >note.txt 2>&1 || true
grep -q "outcome: *failed, HF_ERR_INVALID: " note.txt || fail "without an input: $(cat note.txt)"
grep -q "note: *it refused a value: is --input missing?" note.txt || fail "without an input: $(cat note.txt)"
tail -1 note.txt | grep -q ' 0 failed; undisturbed, the workflow does not succeed, and plays are compared with that$' ||
    fail "a workflow that fails: $(cat note.txt)"
"$holdfast" sim --plugin "$fine" picky --input '{"count": 1}' --signal more --signal again --play plain --json >note.txt 2>&1 || fail "picky: $(cat note.txt)"
grep -q '"notes":\["nobody took the signal more, again: is its name right?"\]' note.txt || fail "notes as JSON: $(cat note.txt)"

# What cannot be tried is said.
refused()
{
    local code=0 words=$1 expected=$2
    shift 2
    "$holdfast" sim "$@" >out 2>&1 || code=$?
    [[ $code == "$expected" ]] || fail "exit code $code, not $expected: $(cat out)"
    grep -q -- "$words" out || fail "no '$words' in: $(cat out)"
}
refused 'needs a plugin' 2 order
refused 'is not JSON' 2 --plugin "$fine" order --input '{'
refused 'cannot load the plugin' 2 --plugin nowhere.so order
refused "waits for the signal 'address'" 1 --plugin "$fine" order --input 1
refused 'no such play' 2 --plugin "$fine" order --play dance:3
refused "has no workflow 'unknown'" 2 --plugin "$fine" unknown --play plain
