#!/usr/bin/env bash
# Each promise of the runtime has a test whose name begins with its id, or with several: ./dev test N7 finds it.
#     check_ids.sh <test_programs.txt>     lines "<name>\t<program>"
set -euo pipefail
ids=(Y1 Y{3..11} Y15 S{1..3} S{5..11} S{13..22} T2 T3 T8 T10 T{13..17} N{1..3} N{5..9})
failed=0
cases=$(while IFS=$'\t' read -r name program; do
    case $name in
    unit/base/* | unit/env/*) ;; # below the promises
    ?*) "$program" --list ;;
    esac
done <"$1")
for id in "${ids[@]}"; do
    if ! grep -qE "^([A-Z][0-9]+_)*${id}_" <<<"$cases"; then
        echo "FAILED: no test begins with ${id}"
        failed=1
    fi
done
echo "${#ids[@]} ids, $(grep -cE '^[A-Z][0-9]+_' <<<"$cases") tests that carry one"
exit $failed
