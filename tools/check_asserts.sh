#!/usr/bin/env bash
# Checks that the code says what cannot happen: at least 15 asserts (hf_assert, _Static_assert) per 1,000 lines of .c.
#     check_asserts.sh <source tree>
#
# The layers below are those whose faults lose or repeat work; "src" is all layers together. Asserts say what cannot happen; input of
# users, files and peers is checked and answered with a status.
set -euo pipefail
tree=$1 bar=15
failed=0
cd "$tree"
for place in src/{run,ledger,engine,worker,client,store,fiber} src; do
    lines=$(find "$place" -name '*.c' -exec cat {} + | wc -l)
    asserts=$(find "$place" -name '*.c' -exec cat {} + | grep -cE '\b(hf_assert|_Static_assert)\(')
    printf '%-11s %7d lines %5d asserts: %d.%d per 1,000\n' "$place" "$lines" "$asserts" \
        $((asserts * 1000 / lines)) $((asserts * 10000 / lines % 10))
    if ((asserts * 1000 < bar * lines)); then
        echo "FAILED: $place has less than $bar asserts per 1,000 lines"
        failed=1
    fi
done
exit $failed
