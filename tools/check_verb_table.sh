#!/usr/bin/env bash
# The table of verbs names every function that the public headers declare with HF_API, and nothing else; docs/verbs.md is
# generated from the table and up to date.
#     check_verb_table.sh <folder of headers> <verbs.def> <docs/verbs.md>
set -euo pipefail
headers=$1 table=$2 docs=$3
here=$(dirname "${BASH_SOURCE[0]}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# A declaration runs from HF_API to the semicolon; a function's name stands before the first parenthesis. hf_x_with is
# the verb hf_x.
cat "$headers"/*.h | sed -e 's|/\*.*\*/||' | tr '\n' ' ' | sed -e 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' |
    grep -oE 'HF_API [^;{]*;' | grep -F '(' | sed -E -e 's/\(.*//' -e 's/ +$//' -e 's/.*[ *]//' -e 's/_with$//' |
    sort -u >"$scratch/declared"
sed -nE 's/^HF_VERB\((hf_[a-z0-9_]+),.*/\1/p' "$table" | sort >"$scratch/listed"
if uniq -d "$scratch/listed" | grep .; then
    echo "FAILED: the verbs above are twice in ${table##*/}"
    failed=1
fi
if comm -23 "$scratch/declared" "$scratch/listed" | grep .; then
    echo "FAILED: the functions above are declared, but have no row in ${table##*/}"
    failed=1
fi
if comm -13 "$scratch/declared" "$scratch/listed" | grep .; then
    echo "FAILED: the verbs above have a row in ${table##*/}, but no header declares them"
    failed=1
fi
if grep -E '^HF_VERB\(' "$table" | grep -vE '^HF_VERB\([a-z0-9_]+, +((works|blocks|durable|misuse), +){7}(works|blocks|durable|misuse)\)$'; then
    echo "FAILED: the rows above are not eight answers out of works, blocks, durable, misuse"
    failed=1
fi
if ! "$here/verbs_doc.sh" "$table" | diff -u "$docs" -; then
    echo "FAILED: ${docs##*/} is not up to date: tools/verbs_doc.sh src/fiber/verbs.def >docs/verbs.md"
    failed=1
fi
echo "$(wc -l <"$scratch/listed") verbs"
exit $failed
