#!/usr/bin/env bash
# gdb shows the fibers of a program: gdb.sh SCRIPT PROGRAM. Skipped without a gdb that has Python and may trace.
set -euo pipefail
script=$1 program=$2
fail()
{
    printf 'FAILED: %s\n%s\n' "$1" "$out"
    exit 1
}
if ! gdb -nx -batch -ex 'python print(6 * 7)' 2>/dev/null | grep -q 42; then
    echo "skipped: there is no gdb with Python"
    exit 77
fi
out=$(gdb -nx -batch -ex 'set debuginfod enabled off' -ex "source $script" -ex 'break at_rest' -ex run -ex fibers -ex 'fiber 2 bt' \
    -ex 'fiber 3' -ex bt -ex 'fiber none' -ex 'fiber 1 bt' -ex bt -ex 'fiber 99' "$program" 2>&1 </dev/null) || true
if [[ $out == *"ptrace"*"not permitted"* || $out == *"ould not trace"* ]]; then
    echo "skipped: gdb may not trace here"
    exit 77
fi
[[ $out =~ 1\ +runs\ +main ]] || fail "the fiber that runs"
[[ $out =~ 2\ +waits\ +cook\ +in\ kitchen\ +hf_chan_recv\ on\ \'orders\' ]] || fail "the fiber that waits for an order"
[[ $out =~ 3\ +waits\ +baker\ +in\ kitchen\ +hf_sleep ]] || fail "the fiber that sleeps"
[[ $out =~ in\ hf_chan_recv.*in\ take_order.*in\ take_order.*in\ take_order.*in\ run_branch ]] || fail "the stack of a fiber"
[[ $out =~ in\ hf_sleep\ \(span=.*run_branch ]] || fail "bt of the fiber that was chosen"
[[ $out == *"fiber 1 runs: it is one of the threads"* ]] || fail "a fiber that runs is a thread"
[[ $out == *"1 to 3, or none"* ]] || fail "a number that there is not"
echo "fine"
