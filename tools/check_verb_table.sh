#!/usr/bin/env bash
# The table of verbs names every function that the public headers declare with HF_API, and nothing else; docs/verbs.md is
# generated from the table and up to date. Output parameters (ret_...) come last; only options follow them (ADR 0014).
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
    grep -oE 'HF_API [^;{]*;' | grep -F '(' >"$scratch/declarations"
sed -E -e 's/\(.*//' -e 's/ +$//' -e 's/.*[ *]//' -e 's/_with$//' "$scratch/declarations" |
    sort -u >"$scratch/declared"
# The length of a buffer stays beside it, and so do the arguments of a format.
if grep -vE ' hf_(random|resolve|payload_printf)\(' "$scratch/declarations" | sed -E 's/ +/ /g' | awk '{
        count = split($0, parameters, ", ")
        for (i = 2; i <= count; i++) {
            if (parameters[i - 1] ~ /[ *]ret_/ && parameters[i] !~ /[ *]ret_/ && parameters[i] !~ /_options \*options\)/) {
                print
            }
        }
    }' | grep .; then
    echo "FAILED: an output parameter of the functions above is not the last one"
    failed=1
fi
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
