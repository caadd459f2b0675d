#!/usr/bin/env bash
# The shared library exports what the public headers declare with HF_API, all of it and nothing else.
#     check_exports.sh <libholdfast.so> <folder of headers>
set -euo pipefail
library=$1 headers=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A declaration runs from HF_API to the semicolon; its name stands before the first parenthesis, or last for an object.
cat "$headers"/*.h | sed -e 's|/\*.*\*/||' | tr '\n' ' ' | sed -e 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' |
    grep -oE 'HF_API [^;{]*;' | sed -E -e 's/\(.*//' -e 's/;//' -e 's/ +$//' -e 's/.*[ *]//' |
    sort -u >"$scratch/declared"
nm -D --defined-only "$library" | awk '{ print $NF }' | sed -e 's/@.*//' | sort -u >"$scratch/exported"

failed=0
if grep -vE '^hf_' "$scratch/exported"; then
    echo "FAILED: the names above are exported but do not start with hf_"
    failed=1
fi
if comm -13 "$scratch/declared" "$scratch/exported" | grep .; then
    echo "FAILED: the names above are exported but not declared with HF_API in include/holdfast"
    failed=1
fi
if comm -23 "$scratch/declared" "$scratch/exported" | grep .; then
    echo "FAILED: the names above are declared with HF_API but not exported"
    failed=1
fi
soname=$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
if [[ $soname != libholdfast.so.* ]]; then
    echo "FAILED: the soname is '$soname'"
    failed=1
fi
if readelf -lW "$library" | grep -q 'GNU_STACK.*RWE'; then
    echo "FAILED: the library asks for an executable stack"
    failed=1
fi
echo "$(wc -l <"$scratch/declared") declared, $(wc -l <"$scratch/exported") exported, soname $soname"
exit $failed
