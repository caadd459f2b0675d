#!/usr/bin/env bash
# Each promise of the runtime has a test that begins with its id: ./dev test N7 finds it.
#     check_ids.sh <test_programs.txt>     lines "<name>\t<program>"
set -euo pipefail
ids=(Y1 Y{3..11} Y15 S{1..3} S{5..11} S{13..22} T2 T3 T8 T10 T{13..17} N{1..3} N{5..9})
failed=0
cases=$(while IFS=$'\t' read -r _ program; do
    [[ -z $program ]] || "$program" --list
done <"$1")
for id in "${ids[@]}"; do
    if ! grep -qE "^${id}_" <<<"$cases"; then
        echo "FAILED: no test begins with ${id}_"
        failed=1
    fi
done
echo "${#ids[@]} ids, $(grep -cE '^[A-Z][0-9]+_' <<<"$cases") tests that carry one"
exit $failed
