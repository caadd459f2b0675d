#!/usr/bin/env bash
# Time, randomness, memory, threads, network, files and processes are reached through hf_env: no object of the other layers
# may refer to such a symbol, except for those in symbols.allow, each with its reason.
#     check_symbols.sh <list of objects> <symbols.forbidden> <symbols.allow>
set -euo pipefail
list=$1 forbidden=$2 allow=$3
mapfile -t patterns < <(sed -e 's/#.*//' "$forbidden" | tr -s ' \t' '\n\n' | grep .)
failed=0
count=0
declare -A used

# The source of an allowed exception, such as base/spin.c, is the end of the object's path without its suffix.
is_allowed()
{
    local object=${1%.o} symbol=$2 file name reason
    while read -r file name reason; do
        if [[ $file != '#'* && $name == "$symbol" && $object == */src/$file ]]; then
            if [[ -z $reason ]]; then
                echo "FAILED: $allow: '$file $name' gives no reason"
                failed=1
            fi
            used["$file $name"]=1
            return 0
        fi
    done <"$allow"
    return 1
}

while read -r object; do
    [[ -n $object ]] || continue
    count=$((count + 1))
    while read -r symbol; do
        # Fortified and large-file names are the same functions: __read_chk, open64, __isoc99_sscanf.
        plain=$symbol
        [[ $plain == __*_chk ]] && plain=${plain#__} && plain=${plain%_chk}
        plain=${plain#__isoc99_}
        plain=${plain%64}
        for pattern in "${patterns[@]}"; do
            # shellcheck disable=SC2053
            if [[ $plain == $pattern ]] && ! is_allowed "$object" "$plain"; then
                echo "FAILED: ${object##*/src/} refers to $symbol, which only env may"
                failed=1
                break
            fi
        done
    done < <(nm -u "$object" 2>/dev/null | awk '{ print $NF }' | sed -e 's/@.*//')
done <"$list"

# An exception that is no longer needed would hide the next violation.
while read -r file name reason; do
    if [[ -n $file && $file != '#'* && -z ${used["$file $name"]:-} ]]; then
        echo "FAILED: symbols.allow: '$file $name' is not needed"
        failed=1
    fi
done <"$allow"
if ((count == 0)); then
    echo "FAILED: no objects were given"
    failed=1
fi
echo "$count objects, ${#patterns[@]} forbidden names"
exit $failed
