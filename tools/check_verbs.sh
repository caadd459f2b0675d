#!/usr/bin/env bash
# Every verb with options, hf_x beside hf_x_with, is called by the consumer programs of the package test, with and without
# options; in C++ also with designated initialisers. And the test of `.size` has a row for it.
#     check_verbs.sh <folder of headers> <consumer.c> <consumer.cpp> <options_test.c>
set -euo pipefail
headers=$1 c=$2 cpp=$3 sizes=$4
failed=0

# Prints "<verb> <plain> <named> <designated>": calls without options, with an options variable, with initialisers.
count_calls()
{
    local file=$1
    shift
    printf '%s\n' "$@" | awk -v file="$file" '
        { verbs[$1] = 1 }
        END {
            RS = ";"
            while ((getline statement < file) > 0) {
                for (verb in verbs) {
                    if (statement !~ ("(^|[^a-z_])" verb "\\(")) continue
                    if (statement ~ /[({ ]\.[a-z_]+ = /) designated[verb]++
                    else if (statement ~ /_options/) named[verb]++
                    else plain[verb]++
                }
            }
            for (verb in verbs) print verb, plain[verb] + 0, named[verb] + 0, designated[verb] + 0
        }'
}

mapfile -t verbs < <(cat "$headers"/*.h | grep -oE 'HF_API (HF_MUST_USE )?(hf_status|hf_memo) hf_[a-z0-9_]+_with\(' |
    sed -E 's/.* (hf_.*)_with\(/\1/' | sort -u)
while read -r verb plain _ designated; do
    if ((plain == 0 || designated == 0)); then
        echo "FAILED: ${c##*/}: $verb is called $plain times without and $designated times with options"
        failed=1
    fi
done < <(count_calls "$c" "${verbs[@]}")
while read -r verb plain named designated; do
    if ((plain == 0 || named == 0 || designated == 0)); then
        echo "FAILED: ${cpp##*/}: $verb is called $plain times without options," \
            "$named times with a variable, $designated times with initialisers"
        failed=1
    fi
done < <(count_calls "$cpp" "${verbs[@]}")
for verb in "${verbs[@]}"; do
    if ! grep -qF "{\"$verb\"," "$sizes"; then
        echo "FAILED: ${sizes##*/}: $verb has no row, so nothing tests that it reads .size"
        failed=1
    fi
done
if ((${#verbs[@]} == 0)); then
    echo "FAILED: no verbs found in $headers"
    failed=1
fi
echo "${#verbs[@]} verbs with options"
exit $failed
